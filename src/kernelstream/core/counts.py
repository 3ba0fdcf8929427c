"""Inner products of sparse samples and points that hold only zeros and ones, by counting.

Sparse rows are often sets: categories in one-hot form, the words of a text. Their inner product
with a set is the number of common members, which fits into a byte: a vector holds 32 points
instead of four, and a table of the points in bytes stays in the first-level cache. Counts are
exact, so the distances have the same bits as those from :mod:`kernelstream.core.tiles`.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernelstream.core.jit import INTERPRETED, allocating, inline, inner
from kernelstream.core.tiles import Tile

#: Points that are counted together; a table has a multiple of so many columns.
COUNTED_POINTS = 128
#: A table reads every feature of the points, a product only those of its sample: it is worth
#: making where the samples have this many times as many entries as there are features.
WORTHWHILE = 8

_LARGEST_COUNT = 255
_BYTES = ir.VectorType(ir.IntType(8), 32)


@inner
def only_sets(rows, first, last, points, n):
    """Whether samples ``first`` to ``last - 1`` and ``n`` points are sets, and worth a table."""
    if not rows.sparse:
        return False
    begin, end = rows.indptr[first], rows.indptr[last]
    good = end - begin >= WORTHWHILE * points.shape[0]
    for i in range(first, last):
        good &= rows.indptr[i + 1] - rows.indptr[i] <= _LARGEST_COUNT
    if good:
        for q in range(begin, end):
            good &= rows.data[q] == 1.0
    q = 0
    while good and q < points.shape[0]:
        for j in range(n):
            good &= (points[q, j] == 0.0) | (points[q, j] == 1.0)
        q += 1
    return good


@allocating
def make_table(wanted, points, n, capacity):
    """The ``n`` points, which are sets, a byte for each feature; empty unless ``wanted``."""
    if not wanted:
        return np.zeros((0, 0), np.uint8)
    columns = -(-capacity // COUNTED_POINTS) * COUNTED_POINTS
    table = np.zeros((points.shape[0], columns), np.uint8)
    for q in range(points.shape[0]):
        for j in range(n):
            table[q, j] = points[q, j] != 0.0
    return table


@inner
def enter(rows, i, j, table):
    """Sample ``i`` has become point ``j``."""
    for q in range(rows.indptr[i], rows.indptr[i + 1]):
        table[rows.indices[q], j] = 1


@intrinsic
def _count(typingctx, indices, begin, end, table, column, out):
    """``out[0, column + k]`` = members that a sample, which has some, shares with the points."""

    def codegen(context, builder, signature, arguments):
        tile = Tile(context, builder, signature, arguments, _BYTES)
        features, start, stop, sets, place, result = tile.arrays

        def entry(q):
            return tile.feature(features, q), [None]

        vectors = COUNTED_POINTS // _BYTES.count
        line = ir.Constant(start.type, 0)
        tile.loop(start, stop, sets, place, result, line, 1, vectors, entry)
        return context.get_dummy_value()

    return types.void(indices, begin, end, table, column, out), codegen


@inline
def count_common(rows, i, table, n, counts):
    """``counts[0, :n]`` = how many members sample ``i`` has in common with each point."""
    begin, end = rows.indptr[i], rows.indptr[i + 1]
    if begin == end or INTERPRETED:
        for j in range(n):
            counts[0, j] = 0
            for q in range(begin, end):
                counts[0, j] += table[rows.indices[q], j]
    else:
        for j in range(0, n, COUNTED_POINTS):
            _count(rows.indices, begin, end, table, j, counts)
