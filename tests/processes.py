"""Fingerprints of many fits, in processes that differ in what they did before.

``python -m tests.processes FOLDER SEED RUN...`` starts a process for each run, one after the
other, and writes what it finds to ``FOLDER/RUN.json``. `tests/test_bits.py` compares.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import multiprocessing
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelstream.core import ahead
from tests.fingerprints import MODELS, described, learned, resumed
from tests.machine_code import freedoms, load_everything
from tests.other_fits import OTHERS

NAMES = [*MODELS, *OTHERS]


#: What is compiled cold, too. All of it would keep a processor busy for some two minutes.
COLD = [name for name in MODELS if name.startswith("features")]


def compute(name: str) -> str:
    """The fingerprint of one of them."""
    return OTHERS[name]() if name in OTHERS else described(name, learned(name))


def fingerprints(names: list[str], folder: Path) -> dict[str, str]:
    """Of these fits; those of models once more with a stop half-way."""
    found = {}
    for name in names:
        found[name] = compute(name)
        if name in MODELS:
            found[f"{name}, resumed"] = described(name, resumed(name, folder))
    return found


class DirtyNumPy:
    """NumPy whose empty arrays hold what warns as soon as anything is computed with it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, *words: Any, **options: Any) -> Any:
        """Of numbers, signalling ones that are none."""
        array = np.empty(*words, **options)
        if array.dtype == np.float64:
            array.reshape(-1).view(np.uint64)[:] = 0x7FF0000000000001
        return array

    def empty_like(self, other: Any) -> Any:
        return self.empty(other.shape, other.dtype)


def fill_memory() -> None:
    """From now on memory that nobody has written to holds no numbers.

    What is computed with such memory by mistake is then no number or a warning, not only where
    chance has left something there. In compiled code it takes a C library that can do it.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(-6, 256)  # M_PERTURB: all bits of new memory are set
    for name, module in list(sys.modules.items()):
        own = name.startswith("kernelstream.") and not name.startswith("kernelstream.core")
        if own and hasattr(module, "np"):
            module.np = DirtyNumPy()  # type: ignore[attr-defined]
    warnings.simplefilter("error", RuntimeWarning)


def run(name: str, folder: Path, seed: int) -> None:
    """What a process of this name does."""
    found: dict[str, Any] = {}
    names = list(NAMES)
    if name in ("cold", "warm"):
        names = COLD
        ahead.beside = lambda *_: None  # features need nothing of what the second process compiles
    elif name == "loaded":
        load_everything(seed)
        found["freedoms"] = freedoms()
        fill_memory()
    elif name == "called":
        random.Random(seed).shuffle(names)
        names.sort(key=lambda fit: fit != "compress")
    elif name == "tested":
        words = ["-q", "-p", "no:cacheprovider", "-W", "default", "tests/test_expansion.py"]
        found["tests"] = int(pytest.main(words))
    found["fits"] = fingerprints(names, folder)
    (folder / f"{name}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # Nothing is compiled or loaded yet: each child begins where a fresh interpreter would be after
    # some seconds of imports.
    for name in sys.argv[3:]:
        child = multiprocessing.get_context("fork").Process(
            target=run, args=(name, Path(sys.argv[1]), int(sys.argv[2]))
        )
        child.start()
        child.join()
        if child.exitcode:
            sys.exit(f"{name} ended with {child.exitcode}")
