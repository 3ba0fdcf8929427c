"""Cells of bounded diameter around core points (AVM, Algorithms 3 and 4).

Which cell holds a sample is read off the squared distances that its kernel values were
computed from. Cells are open: a sample at exactly the radius is outside.
"""

import math

import numpy as np

from kernelstream.core.dictionary import store
from kernelstream.core.jit import compiled, inline, inner
from kernelstream.core.kernel import (
    DOTS,
    FEW_FEATURES,
    SQUARES,
    Rows,
    evaluate,
    row_l1,
    row_norms,
    squares_from_differences,
    squares_from_dots,
)
from kernelstream.core.passes import DONE, FULL, LARGEST_SQUARE_NORM, UNUSABLE
from kernelstream.core.state import State
from kernelstream.core.tiles import products

HYPERSPHERE, HYPERRECTANGLE = range(2)

_INFINITE = int(np.float64(np.inf).view(np.int64))


@inner
def distances(rows, i, points, square_norms, square, n, work):
    """``work[SQUARES, :n]`` = squared distances of sample ``i``, whose squared norm is given."""
    if not rows.sparse and points.shape[0] <= FEW_FEATURES:
        squares_from_differences(rows, i, points, n, work)
    else:
        products(rows, i, np.int64(1), points, n, work)
        squares_from_dots(rows, i, points, square_norms, square, work, DOTS, n, work)


@inline
def values_of(program, rows, i, points, absolute_norms, n, work, values):
    """``values[0, :n]`` = kernel values of sample ``i``, from the squared distances in ``work``."""
    if program.needs_l1:
        row_l1(rows, i, points, absolute_norms, n, work)
    evaluate(program, work, n, values, np.int64(0))  # a literal would be compiled for separately


@inner
def kernel_values(program, rows, i, points, square_norms, absolute_norms, square, n, work, values):
    """``values[0, :n]`` = kernel values of sample ``i``; ``work[SQUARES]`` = squared distances."""
    distances(rows, i, points, square_norms, square, n, work)
    values_of(program, rows, i, points, absolute_norms, n, work, values)


@inline
def nearest(work, n):
    """The nearest of the first ``n`` points, the first one in a tie; -1 without points.

    Numbers that are not negative are in the order of their bits, of which, unlike of floats,
    the least is found with vectors.
    """
    least = np.int64(_INFINITE)
    for j in range(n):
        bits = np.float64(work[SQUARES, j]).view(np.int64)
        least = bits if bits < least else least
    square = np.int64(least).view(np.float64)
    for j in range(n):
        if work[SQUARES, j] == square:
            return j
    return -1 if n == 0 else 0


@inner
def _in_box(rows, i, points, j, half):
    """Whether |x_i - d_j|_inf < half."""
    if not rows.sparse:
        for q in range(points.shape[0]):
            if not abs(rows.dense[i, q] - points[q, j]) < half:
                return False
        return True
    q = 0
    for s in range(rows.indptr[i], rows.indptr[i + 1]):
        while q < rows.indices[s]:
            if not abs(points[q, j]) < half:
                return False
            q += 1
        if not abs(rows.data[s] - points[q, j]) < half:
            return False
        q += 1
    while q < points.shape[0]:
        if not abs(points[q, j]) < half:
            return False
        q += 1
    return True


@inline
def find_cell(shape, delta, rows, i, points, work, cells):
    """The core point among the first ``cells`` whose cell holds sample ``i``, or -1.

    Hypersphere: the nearest one, if closer than delta / 2 (delta is a diameter). Erratum: the
    authors' code takes delta as the radius. Hyperrectangle: the first one with
    |x - c|_inf < delta / sqrt(p).
    """
    if shape == HYPERSPHERE:
        j = nearest(work, cells)
        inside = j >= 0 and (work[SQUARES, j] < 0.25 * delta * delta or work[SQUARES, j] == 0.0)
        return j if inside else -1  # at distance 0 even where the square of delta is none
    half = delta / math.sqrt(points.shape[0])
    for j in range(cells):
        # |.|_inf <= |.|_2 <= sqrt(p) |.|_inf: for most points this is enough to decide.
        if work[SQUARES, j] <= 1.000001 * delta * delta and _in_box(rows, i, points, j, half):
            return j
    return -1


@inner
def add_point(state, rows, i, square, absolute):
    """Store sample ``i`` as a point without a cell; returns its place."""
    place = state.status[0].order
    store(state, place, rows, i, square, absolute, 1.0)
    for c in range(state.weights.shape[0]):
        state.weights[c, place] = 0.0
    state.status[0].order += 1
    return place


@inner
def make_core_point(state, j):
    """Give point ``j`` a cell; returns its new place, behind the other core points."""
    place = state.status[0].cells
    if j != place:
        for q in range(state.points.shape[0]):
            _swap(state.points[q], j, place)
        _swap(state.square_norms, j, place)
        _swap(state.absolute_norms, j, place)
        for c in range(state.weights.shape[0]):
            _swap(state.weights[c], j, place)
    state.status[0].cells += 1
    return place


@inner
def _swap(array, j, k):
    value = array[j]
    array[j] = array[k]
    array[k] = value


@compiled
def cover(
    points, square_norms, absolute_norms, self_kernels, weights, factor, diagonal, status,
    shape, delta, dense, data, indices, indptr, sparse, first,
):  # fmt: skip
    """Build cells until every sample from ``first`` on lies in one (Algorithms 3 and 4).

    Returns why it stopped (``FULL``: give the state more room, call again), and where.
    """
    state = State(
        points, square_norms, absolute_norms, self_kernels, weights, factor, diagonal, status
    )
    rows = Rows(dense, data, indices, indptr, sparse)
    record = status[0]
    work = np.empty((3, diagonal.shape[0]))
    count = indptr.shape[0] - 1 if sparse else dense.shape[0]
    for i in range(first, count):
        if record.order == diagonal.shape[0]:
            return FULL, i
        square, absolute = row_norms(rows, i)
        if not square <= LARGEST_SQUARE_NORM:
            return UNUSABLE, i
        cells = record.cells
        distances(rows, i, points, square_norms, square, cells, work)
        if find_cell(shape, delta, rows, i, points, work, cells) < 0:
            make_core_point(state, add_point(state, rows, i, square, absolute))
    return DONE, count
