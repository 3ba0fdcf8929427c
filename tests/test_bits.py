"""The same bits in every process: whatever was compiled, loaded or called before.

Numba links a copy of every function that a compiled one calls into it and optimises the two
together; a process uses the copy that it happened to load first. All copies must compute the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelstream.core.jit import INTERPRETED
from tests.fingerprints import dispatchers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(INTERPRETED, reason="nothing is compiled with NUMBA_DISABLE_JIT=1"),
]

ROOT = Path(__file__).parents[1]
#: What the processes did before their fits.
RUNS = {
    "alone": "nothing",
    "cold": "nothing, with an empty cache",
    "warm": "nothing, with the cache that the cold one left",
    "loaded": "load all machine code of the core in random order",
    "called": "compress a function, then all fits in random order",
    "tested": "run other tests",
}


class Run:
    """A process of `tests/fingerprints.py`, which begins at once."""

    def __init__(self, folder: Path, name: str, cache: Path | None = None) -> None:
        self.name, self._folder = name, folder
        self.seed = int(np.random.default_rng().integers(2**31))
        # Nor does it matter how many threads BLAS has.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1" if name == "alone" else "2"}
        if cache is not None:
            environment["NUMBA_CACHE_DIR"] = str(cache)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fingerprints", str(folder), name, str(self.seed)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait(self) -> Run:
        self.output = self._process.communicate()[0]
        assert self._process.returncode == 0, f"{self.name}: {self.output}"
        found = json.loads((self._folder / f"{self.name}.json").read_text())
        self.fits, self.rest = found.pop("fits"), found
        return self


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """All processes, two side by side: one compiles, the others use the cache of this package."""
    own, shared = tmp_path_factory.mktemp("own"), tmp_path_factory.mktemp("shared")
    cold = Run(own, "cold", own / "cache")
    found = {name: Run(shared, name).wait() for name in RUNS if name not in ("cold", "warm")}
    return {**found, "cold": cold.wait(), "warm": Run(own, "warm", own / "cache").wait()}


@pytest.mark.parametrize("name", RUNS)
def test_the_process_does_not_matter(runs: dict[str, Run], name: str) -> None:
    run, expected = runs[name], runs["alone"].fits
    different = [
        fit for fit, found in run.fits.items() if found != expected[fit.removesuffix(", resumed")]
    ]
    assert not different, (
        f"{len(different)} of {len(run.fits)} fits have other bits after: {RUNS[name]} "
        f"(seed {run.seed}): {'; '.join(different)}"
    )


def test_other_engines_after_other_tests(runs: dict[str, Run]) -> None:
    assert runs["tested"].rest["tests"] == 0, runs["tested"].output


def test_no_function_is_compiled_with_freedom() -> None:
    options: dict[str, Any] = {
        name: dispatcher.targetoptions.get("fastmath") for name, dispatcher in dispatchers().items()
    }
    assert len(options) > 100
    free = {name: freedom for name, freedom in options.items() if freedom}
    assert not free, f"{len(free)} functions may be optimised differently by each caller: {free}"


def test_no_instruction_has_freedom(runs: dict[str, Run]) -> None:
    freedoms = runs["loaded"].rest["freedoms"]
    assert not {*dispatchers()} - {*freedoms}, "no fit uses these"
    free = {name: instruction for name, instruction in freedoms.items() if instruction}
    assert not free, f"{len(free)} functions have instructions such as these: {free}"
