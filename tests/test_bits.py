"""The same bits in every process, whatever was compiled, loaded or called before, in any threads.

Numba links a copy of every function that a compiled one calls into it and optimises the two
together; a process uses the copy that it happened to load first. All copies must compute the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kernelstream import POLKRegressor, make_multidist
from kernelstream.core.jit import INTERPRETED
from kernelstream.features import OnlineKernelFeatures
from tests.machine_code import called, dispatchers
from tests.precompile import notes

pytestmark = pytest.mark.skipif(
    INTERPRETED, reason="nothing is compiled with NUMBA_DISABLE_JIT=1: there is one order of sums"
)

#: Processes that use the cache of this package, and what they did before their fits ...
SHARED = {
    "alone": "nothing",
    "loaded": "loading all machine code of the core in random order, in memory that is not empty",
    "called": "compressing a function, and other fits in random order",
    "tested": "other tests",
}
#: ... and two with a cache of their own, where nobody knows the bits of those that filled that one.
OWN = {
    "cold": "nothing, with an empty cache",
    "warm": "nothing, with the cache that the cold process left",
}


def start(folder: Path, seed: int, names: list[str], **environment: str) -> subprocess.Popen[str]:
    """`tests/processes.py` for these processes, one after the other."""
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "tests.processes", str(folder), str(seed), *names],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


# One test, not one for each process: parallel workers would compute everything for themselves.
@pytest.mark.slow
def test_the_process_does_not_matter(tmp_path: Path) -> None:
    seed = int(np.random.default_rng().integers(2**31))
    own, shared = tmp_path / "own", tmp_path / "shared"
    processes = [start(shared, seed, [*SHARED], OPENBLAS_NUM_THREADS="1")]
    runs = {}
    if (known := notes()).exists():
        runs["cold"] = {"fits": json.loads(known.read_text())}
    else:
        cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "OPENBLAS_NUM_THREADS": "2"}
        processes.append(start(own, seed, [*OWN], **cache))
    outputs = [process.communicate()[0] for process in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output
    for path in (*shared.glob("*.json"), *own.glob("*.json")):
        runs[path.stem] = json.loads(path.read_text())

    problems, expected = [], runs["alone"]["fits"]
    for name, fits in ((name, run["fits"]) for name, run in runs.items()):
        different = [fit for fit in fits if fits[fit] != expected[fit.removesuffix(", resumed")]]
        if different:
            problems.append(
                f"{len(different)} of {len(fits)} fits have other bits in a process that is "
                f"{name!r}, after {(SHARED | OWN)[name]} (seed {seed}): {'; '.join(different)}"
            )
    if runs["tested"]["tests"] != 0:
        problems.append(f"other tests fail there: {outputs[0]}")
    freedoms = runs["loaded"]["freedoms"]
    free = {name: instruction for name, instruction in freedoms.items() if instruction}
    for instruction in [*free.values()][:1]:
        problems.append(
            f"the compiler was free to reorder, fuse or ignore something ({instruction!r}) in "
            f"{', '.join(free)}"
        )
    if unused := {*called()} - {*freedoms}:
        problems.append(
            f"no fit in tests/fingerprints.py or tests/other_fits.py uses {', '.join(unused)}"
        )
    assert not problems, "\n\n".join(problems)


def test_no_function_is_compiled_with_freedom() -> None:
    options = {name: found.targetoptions.get("fastmath") for name, found in dispatchers().items()}
    assert len(options) > 50
    free = [name for name, freedom in options.items() if freedom]
    assert not free, f"compiled with fastmath, each caller with bits of its own: {', '.join(free)}"


def test_the_thread_does_not_matter() -> None:
    """OpenBLAS does not hear every thread that wants one thread for all: see core/threads.py."""
    X, _ = make_multidist(1200, random_state=8)
    wide = np.random.default_rng(0).normal(size=(300, 6))

    def fit() -> list[str]:
        polk = POLKRegressor(gamma=20.0, max_points=200, batch_size=60, random_state=0)
        features = OnlineKernelFeatures(random_state=0)
        return [polk.fit(X, X[:, 0]).fingerprint(), features.fit(wide).fingerprint()]

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as other:
        assert other.submit(fit).result() == fit()
