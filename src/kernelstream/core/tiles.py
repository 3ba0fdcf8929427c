"""Inner products of samples with many points, the sums kept in vector registers.

A loop over the features around a loop over the points, as a compiler vectorises it, loads and
stores every sum once per feature. Here a tile of points is finished before the next one begins,
for several dense samples at a time: the points come from the second-level cache, and come once.
Numba has no vectors to write this with, so the innermost loop is written in LLVM's language; what
is left over at the edges, and everything without the compiler, is a plain loop.

Every sum is one chain of multiply-adds in the order of the features, so that a sample gives the
same bits alone or with others, and wherever its points lie in a tile.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernelstream.core.jit import INTERPRETED, inner
from kernelstream.core.lanes import VECTOR, fma, fused, spread

#: Dense samples that share a tile, and sparse ones that go through a tile of points one after the
#: other while it is in the first-level cache.
BLOCK, SPARSE_BLOCK = 4, 8
#: Points per tile: for several dense samples, for a single one, and for a sparse one where there
#: are many: its few entries leave more time waiting for the points than multiplying.
SEVERAL_POINTS, FEW_POINTS, MANY_POINTS = 8, 16, 32

_I64, _I32, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_DOUBLE, _LANES = VECTOR.element, VECTOR.count


class Tile:
    """Writes the loop ``sums[r] += value[r] * points[feature]`` over the entries of a sample.

    The points are numbers as in ``vector``.
    """

    def __init__(self, context, builder, signature, arguments, vector=VECTOR):
        self.builder, self._bytes = builder, _BYTE.as_pointer()
        self._vector, self._size = vector, 8 if vector.element == _DOUBLE else 1
        self.arrays = [
            context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else
            context.cast(builder, value, kind, types.int64)
            for kind, value in zip(signature.args, arguments, strict=True)
        ]  # fmt: skip

    def address(self, array, *offsets):
        """Of the element at these (index, bytes) offsets."""
        place = self.builder.bitcast(array.data, self._bytes)
        for index, size in offsets:
            size = ir.Constant(_I64, size) if isinstance(size, int) else size
            index = ir.Constant(_I64, index) if isinstance(index, int) else index
            place = self.builder.gep(place, [self.builder.mul(index, size)])
        return place

    def load(self, place, kind):
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()), align=4)

    def feature(self, indices, q):
        """The feature of entry ``q``."""
        return self.builder.sext(self.load(self.address(indices, (q, 4)), _I32), _I64)

    def stride(self, array):
        return self.builder.extract_value(array.strides, 0)

    def add(self, sums, value, parts):
        """``sums + value * parts``, vector by vector."""
        if value is None:
            return [self.builder.add(s, p) for s, p in zip(sums, parts, strict=True)]
        factor = spread(self.builder, value)
        return [fused(self.builder, factor, p, s) for s, p in zip(sums, parts, strict=True)]

    def loop(self, begin, end, points, column, out, line, rows, vectors, entry):
        """``entry(q)`` gives the feature and the rows' values of entry q; begin < end.

        A value of None is the one of whole numbers. The sums go to ``out[line:, column:]``.
        """
        builder, vector, size = self.builder, self._vector, self._size
        step = vector.count * size
        before, body = builder.block, builder.append_basic_block("tile")
        after = builder.append_basic_block("tile.end")
        builder.branch(body)
        builder.position_at_end(body)
        q = builder.phi(_I64)
        q.add_incoming(begin, before)
        sums = [[builder.phi(vector) for _ in range(vectors)] for _ in range(rows)]
        feature, values = entry(q)
        place = self.address(points, (feature, self.stride(points)), (column, size))
        parts = [
            self.load(builder.gep(place, [ir.Constant(_I64, step * v)]), vector)
            for v in range(vectors)
        ]
        totals = [self.add(row, value, parts) for row, value in zip(sums, values, strict=True)]
        following = builder.add(q, ir.Constant(_I64, 1))
        q.add_incoming(following, body)
        for row, total in zip(sums, totals, strict=True):
            for s, t in zip(row, total, strict=True):
                s.add_incoming(ir.Constant(vector, None), before)
                s.add_incoming(t, body)
        builder.cbranch(builder.icmp_signed("<", following, end), body, after)
        builder.position_at_end(after)
        for r, total in enumerate(totals):
            for v, t in enumerate(total):
                across = self.stride(out)
                place = self.address(out, (line, across), (r, across), (column, size), (v, step))
                builder.store(t, builder.bitcast(place, vector.as_pointer()), align=size)


def _dense_tile(samples, points):
    """A function for tiles of so many samples and points."""

    def tile_function(typingctx, dense, first, stored, column, out):
        """out[r, column + k] = sum_q dense[first + r, q] stored[q, column + k]."""

        def codegen(context, builder, signature, arguments):
            tile = Tile(context, builder, signature, arguments)
            matrix, row, dictionary, place, result = tile.arrays

            def entry(q):
                size = tile.stride(matrix)
                return q, [
                    tile.load(tile.address(matrix, (row, size), (r, size), (q, 8)), _DOUBLE)
                    for r in range(samples)
                ]

            begin, end = ir.Constant(_I64, 0), builder.extract_value(dictionary.shape, 0)
            vectors = points // _LANES
            tile.loop(begin, end, dictionary, place, result, begin, samples, vectors, entry)
            return context.get_dummy_value()

        return types.void(dense, first, stored, column, out), codegen

    return intrinsic(tile_function)


_tile_of_several = _dense_tile(BLOCK, SEVERAL_POINTS)
_tile_of_one = _dense_tile(1, FEW_POINTS)


def _sparse_tile(points):
    """A function for tiles of one sample and so many points."""

    def tile_function(typingctx, data, indices, begin, end, stored, column, out, row):
        """out[row, column + k] = sum over the entries of a sample, of which there is one."""

        def codegen(context, builder, signature, arguments):
            tile = Tile(context, builder, signature, arguments)
            numbers, features, start, stop, dictionary, place, result, line = tile.arrays

            def entry(q):
                value = tile.load(tile.address(numbers, (q, 8)), _DOUBLE)
                return tile.feature(features, q), [value]

            vectors = points // _LANES
            tile.loop(start, stop, dictionary, place, result, line, 1, vectors, entry)
            return context.get_dummy_value()

        return types.void(data, indices, begin, end, stored, column, out, row), codegen

    return intrinsic(tile_function)


_sparse_tile_of_many = _sparse_tile(MANY_POINTS)
_sparse_tile_of_few = _sparse_tile(FEW_POINTS)


# The last tile reaches into the spare places behind the points and the sums; where there are none
# it overlaps the tile before: same numbers.
@inner
def dense_products(rows, first, count, points, n, out):
    """``out[r, :n]`` = inner products of the dense samples ``first + r`` with ``n`` points.

    There are one or ``BLOCK`` samples.
    """
    room = min(points.shape[1], out.shape[1]) if points.shape[0] > 0 else 0
    if not INTERPRETED and count == BLOCK and room >= SEVERAL_POINTS:
        for j in range(0, n, SEVERAL_POINTS):
            _tile_of_several(rows.dense, first, points, min(j, room - SEVERAL_POINTS), out)
        return
    if not INTERPRETED and count == 1 and room >= FEW_POINTS:
        for j in range(0, n, FEW_POINTS):
            _tile_of_one(rows.dense, first, points, min(j, room - FEW_POINTS), out)
        return
    for r in range(count):
        for j in range(n):
            out[r, j] = 0.0
        for q in range(points.shape[0]):
            for j in range(n):
                out[r, j] = fma(rows.dense[first + r, q], points[q, j], out[r, j])


@inner
def sparse_products(rows, first, count, points, n, out):
    """``out[r, :n]`` = inner products of the sparse samples ``first + r`` with ``n`` points."""
    room = min(points.shape[1], out.shape[1])
    if INTERPRETED or room < FEW_POINTS:
        for r in range(count):
            for j in range(n):
                out[r, j] = 0.0
            for q in range(rows.indptr[first + r], rows.indptr[first + r + 1]):
                for j in range(n):
                    out[r, j] = fma(rows.data[q], points[rows.indices[q], j], out[r, j])
        return
    j = 0
    while j < n:
        few = n - j <= FEW_POINTS or room < MANY_POINTS
        width = FEW_POINTS if few else MANY_POINTS
        column = min(j, room - width)
        for r in range(count):
            begin, end = rows.indptr[first + r], rows.indptr[first + r + 1]
            if begin == end:
                for k in range(column, column + width):
                    out[r, k] = 0.0
            elif few:
                _sparse_tile_of_few(rows.data, rows.indices, begin, end, points, column, out, r)
            else:
                _sparse_tile_of_many(rows.data, rows.indices, begin, end, points, column, out, r)
        j += width


@inner
def products(rows, first, count, points, n, out):
    """``out[r, :n]`` = inner products of the samples ``first + r`` with ``n`` points."""
    if rows.sparse:
        sparse_products(rows, first, count, points, n, out)
    else:
        dense_products(rows, first, count, points, n, out)
