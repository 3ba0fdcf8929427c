"""At first use a second process makes half of the machine code.

Compiling keeps one core busy for some twenty seconds. The first pass needs the kernel's
functions, then those of the dictionary: the latter are made here meanwhile, and are found in
Numba's cache when their turn comes. Where they are not, because there is no second core or no
cache, they are compiled there and then as if nothing had happened.
"""

import functools
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np

from kernelstream.core.jit import INTERPRETED
from kernelstream.core.kernel import Rows
from kernelstream.core.komp import prune, take_in
from kernelstream.core.state import allocate


@functools.cache
def start() -> subprocess.Popen[bytes] | None:
    """Begin, unless it was done before; to be called before a pass that takes points in."""
    if INTERPRETED or any(Path(prune._cache.cache_path).glob("komp.*.nbi")):
        return None
    code = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as ahead; ahead.compile()"
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-c", code], stdin=nothing, stdout=nothing, stderr=nothing
        )
    except (OSError, TypeError):  # no second process to be had, or no interpreter to start
        return None


def compile() -> None:
    """Compile how points are taken in and removed, for the arguments a pass has."""
    state = allocate(1, 1, 1, seed=0)
    empty = np.empty((1, 1))
    rows = Rows(empty, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)
    count, number = numba.int64, numba.float64
    types = [numba.typeof(part) for part in (state, rows, empty, np.empty(1))]
    held, samples, matrix, vector = types
    prune.compile((held, count, number, number, count, count))
    take_in.compile(
        (held, samples, count, number, number, matrix, number, vector, count, number, matrix)
    )
