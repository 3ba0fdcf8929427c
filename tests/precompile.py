"""``python -m tests.precompile``: all machine code that tests share, made once, on two cores.

With an empty cache each worker of pytest would compile the same passes at the same time. Here two
processes share the fits of `tests/fingerprints.py`, which reach every compiled function, and leave
the code in the cache for all workers. Where the cache is full there is nothing to do.
"""

import contextlib
import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

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


def fit(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    ahead.start = lambda kind: None  # a third process would only be in the way
    for name in names:
        with contextlib.suppress(Exception):  # tests say better what is broken
            compute(name)


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
        list(pool.map(fit, jobs()))


if __name__ == "__main__":
    main()
