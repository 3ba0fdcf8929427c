"""At first use a second process makes half of the machine code.

Compiling keeps one core busy for some twenty seconds. The first pass needs the kernel's
functions, then those of the dictionary: the latter are made here meanwhile, then what predicting
needs, and all are found in Numba's cache when their turn comes. Where they are not, because there
is no second core or no cache, they are compiled there and then as if nothing had happened. For
blocks the first process begins with what needs the kernel: the second one gets further by then.
"""

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np

from kernelstream.core.calibration import calibrate
from kernelstream.core.grow.block import _take_in_pair, enter, take_in_block
from kernelstream.core.grow.span import take_in
from kernelstream.core.jit import INTERPRETED
from kernelstream.core.kernel import Program, Rows, kernel_rows
from kernelstream.core.reduce.komp import _prune, prune_block
from kernelstream.core.state import allocate


def is_cached(function: Any) -> bool:
    """Whether there is machine code of a function on the disk, or nothing to be compiled."""
    cache = getattr(function, "_cache", None)
    if cache is None:
        return True
    return any(Path(cache.cache_path).glob(f"*.{function.__name__}-*.nbi"))


@functools.cache
def explain() -> None:
    """Say on a terminal why the first call takes so long; once, or not at all if others say it."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(
            "kernelstream: compiling for this machine, which takes up to half a minute, once ...",
            file=sys.stderr,
        )


@functools.cache
def start(kind: str) -> subprocess.Popen[bytes] | None:
    """Begin, unless it was done before; to be called before the first pass.

    ``kind``: "samples" or "blocks" that are taken in with a factor of the Gram matrix, or
    "others".
    """
    if INTERPRETED or is_cached(_FIRST[kind]):
        return None
    second = beside(__name__, f"compile({kind!r})")
    if second is not None and kind == "blocks":
        compile("kernel of blocks")
    return second


@functools.cache
def beside(module: str, call: str) -> subprocess.Popen[bytes] | None:
    """Call a function of a module in a second process, once; None where there is none to be had."""
    if INTERPRETED:
        return None
    code = f"import sys; sys.path[:] = {sys.path!r}; import {module} as ahead; ahead.{call}"
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-c", code], stdin=nothing, stdout=nothing, stderr=nothing
        )
    except (OSError, TypeError):  # no second process, or no interpreter to start
        return None


#: What each kind begins with.
_FIRST = {"samples": take_in, "blocks": enter, "others": kernel_rows}


def compile(kind: str) -> None:
    """Compile how points are taken in and removed, kernel values of many samples, calibration.

    "kernel of blocks" is what the first process makes meanwhile for "blocks".
    """
    state = allocate(1, 1, 1, seed=0)
    empty = np.empty((1, 1))
    rows = Rows(empty, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)
    count, number = numba.int64, numba.float64
    program = Program(np.empty(1, np.int64), empty, True, True, True, 1)
    types = [numba.typeof(part) for part in (state, program, rows, empty, np.empty(1))]
    held, kernel, samples, matrix, vector = types
    single = held, samples, count, number, number, matrix, number, vector, count, number, matrix
    if kind == "samples":
        take_in.compile(single)
        _prune.compile((held, count, number, number, count, count))
    elif kind == "blocks":
        wanted = numba.typeof(np.empty(1, np.bool_))
        enter.compile((held, samples, matrix, matrix, vector, matrix, matrix, wanted, count))
        prune_block.compile((held, count, number, number, count, count, count))
        take_in.compile(single)
    if kind != "blocks":
        kernel_rows.compile(
            (kernel, samples, count, count, matrix, vector, vector, count, matrix, matrix)
        )
    if kind == "kernel of blocks":
        several = matrix, matrix, matrix
        take_in_block.compile((held, kernel, matrix, *several, count, count))
        _take_in_pair.compile((held, kernel, samples, *several, count, number))
        return
    calibrate.compile((matrix, matrix, vector, vector, count, matrix))
