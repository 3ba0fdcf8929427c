"""``python -m tests.precompile``: all machine code that tests share, made once, on two cores.

With an empty cache each worker of pytest would compile the same passes at the same time. Here two
processes share the fits of `tests/fingerprints.py`, which reach every compiled function, and leave
the code in the cache for all workers, and the fingerprints of what they learned with code that was
never on a disk for `tests/test_bits.py`. Where the cache is full there is nothing to do.
"""

import contextlib
import hashlib
import json
import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import distributions
from pathlib import Path

import kernelstream
from kernelstream.core import ahead
from kernelstream.core.jit import INTERPRETED
from tests.machine_code import called
from tests.processes import NAMES, compute

#: What takes long to compile comes first, so that no process is left alone with it in the end;
#: what shares most with POLK after it.
FIRST = ["POLK", "features", "automatic", "AVM", "KLMS", "KRLS-T", "DualSGD", "BSGD", "COLK",
         "consensus", "policy", "compositional", "Projectron"]  # fmt: skip


def jobs() -> list[list[str]]:
    """Names of fits: those of one method together, as they share most of their machine code."""
    groups: dict[str, list[str]] = {method: [] for method in FIRST}
    for name in NAMES:
        groups.setdefault(name.partition(",")[0], []).append(name)
    return [*groups.values()]


def fit(names: list[str]) -> dict[str, str]:
    warnings.simplefilter("ignore")
    ahead.beside = lambda *_: None  # a third process would only be in the way
    found = {}
    for name in names:
        try:
            found[name] = compute(name)
        except Exception as error:  # tests say better what is broken
            found[name] = repr(error)
    return found


def notes() -> Path:
    """Where the fingerprints are: those of these sources, fits, packages and this processor."""
    one, seen = next(iter(called().values())), hashlib.blake2b(digest_size=16)
    package, tests = Path(kernelstream.__file__).parent, Path(__file__).parent
    for path in sorted([*package.rglob("*.py"), *tests.glob("*.py"), *tests.glob("features/*.py")]):
        seen.update(path.read_bytes())
    versions = sorted((each.name, each.version) for each in distributions())
    seen.update(repr((versions, one.targetctx.codegen().magic_tuple())).encode())
    return Path(one._cache.cache_path) / f"fingerprints-{seen.hexdigest()}.json"


def main() -> None:
    if INTERPRETED:
        return
    caches = [function._cache._cache_file for function in called().values()]
    if all(cache._load_index() for cache in caches):
        return
    print("Compiling what the tests need, once: some minutes of processor time ...", flush=True)
    # Not a Pool, which would wait for ever for a process that crashed.
    pool = ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))
    with contextlib.suppress(BrokenProcessPool), pool:
        found = {name: bits for part in pool.map(fit, jobs()) for name, bits in part.items()}
        notes().write_text(json.dumps(found))


if __name__ == "__main__":
    main()
