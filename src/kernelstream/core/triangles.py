"""Products with triangles, and with symmetric matrices of which a triangle is held.

Lower triangles are held row by row, each up to the end of the diagonal's block of four: row i
begins at ``row_start(i)``, a multiple of four. What is above the diagonal there is 0 in a triangle,
and not looked at in a symmetric matrix. Sums have the order that is written here: see ``lanes``.
"""

from kernelstream.core.jit import INTERPRETED, compiled, inline, inner
from kernelstream.core.lanes import dot, fma

if not INTERPRETED:
    from kernelstream.core.lanes import (
        fma4,
        load4,
        mirrored4,
        spread4,
        store4,
        sum4,
        sums4,
        zero4,
    )


@inline
def row_start(i):
    """Where row i of a triangle begins."""
    block = i // 4
    return 4 * (block + 1) * (i - 2 * block)


@compiled
def unpack(numbers, out):
    """The lower triangle of ``out`` (n, n) from one that is held row by row."""
    for i in range(len(out)):
        start = row_start(i)
        for q in range(i + 1):
            out[i, q] = numbers[start + q]


@compiled
def pack(lower, out):
    """The reverse of ``unpack``."""
    for i in range(len(lower)):
        start = row_start(i)
        for q in range(i + 1):
            out[start + q] = lower[i, q]


if INTERPRETED:

    def reduce_symmetric(matrix, n, gain, v):
        """A -= gain v v^T for a symmetric A."""
        for i in range(n):
            row = row_start(i)
            for q in range(i + 1):
                matrix[row + q] -= gain * v[i] * v[q]

    def multiply_symmetric(matrix, n, u, h):
        """h = A u for a symmetric A."""
        for i in range(n):
            row = matrix[row_start(i) :]
            h[i] = dot(row, 0, u, 0, 0, i + 1)
            for q in range(i):
                h[q] += u[i] * row[q]

    def multiply_reduced(matrix, n, gain, v, u, h):
        """A -= gain v v^T, then h = A u for a symmetric A."""
        reduce_symmetric(matrix, n, gain, v)
        multiply_symmetric(matrix, n, u, h)

    def multiply_lower(matrix, n, u, h):
        """h = A u for a lower triangle A."""
        for i in range(n):
            h[i] = dot(matrix[row_start(i) :], 0, u, 0, 0, i + 1)

    def multiply_lower4(matrix, n, u, h):
        """The same for four u and h, the rows of two arrays."""
        for r in range(4):
            multiply_lower(matrix, n, u[r], h[r])

    def multiply_back(matrix, n, u, h):
        """h = A^T u for a lower triangle A."""
        for i in range(n):
            h[i] = 0.0
            row = matrix[row_start(i) :]
            for q in range(i + 1):
                h[q] += u[i] * row[q]

    def multiply_back2(matrix, n, u, v, h, g):
        """The same for two vectors: h = A^T u and g = A^T v."""
        multiply_back(matrix, n, u, h)
        multiply_back(matrix, n, v, g)

    def square_columns(matrix, n, h):
        """The sums of squares of the columns of a lower triangle A."""
        for i in range(n):
            h[i] = 0.0
            row = matrix[row_start(i) :]
            for q in range(i + 1):
                h[q] += row[q] * row[q]

else:

    @inline
    def _four_rows(i):
        """Where rows i to i + 3 begin, which end in the same block."""
        a = row_start(i)
        return a, a + i + 4, a + 2 * (i + 4), a + 3 * (i + 4)

    @inner
    def reduce_symmetric(matrix, n, gain, v):
        """A -= gain v v^T for a symmetric A, four rows at a time."""
        for i in range(0, n - 3, 4):
            va, vb = spread4(-gain * v[i]), spread4(-gain * v[i + 1])
            vc, vd = spread4(-gain * v[i + 2]), spread4(-gain * v[i + 3])
            ra, rb, rc, rd = _four_rows(i)
            for q in range(0, i + 4, 4):
                w = load4(v, 0, q)
                store4(matrix, ra + q, fma4(va, w, load4(matrix, 0, ra + q)))
                store4(matrix, rb + q, fma4(vb, w, load4(matrix, 0, rb + q)))
                store4(matrix, rc + q, fma4(vc, w, load4(matrix, 0, rc + q)))
                store4(matrix, rd + q, fma4(vd, w, load4(matrix, 0, rd + q)))
        for i in range(n - n % 4, n):
            _reduce_row(matrix, i, gain, v)

    @inline
    def _reduce_row(matrix, i, gain, v):
        """Row i of A -= gain v v^T where it is one of the last, which are no block of four."""
        row, c, end = row_start(i), -gain * v[i], i - i % 4
        cs = spread4(c)
        for q in range(0, end, 4):
            store4(matrix, row + q, fma4(cs, load4(v, 0, q), load4(matrix, 0, row + q)))
        for q in range(end, i + 1):
            matrix[row + q] = fma(c, v[q], matrix[row + q])

    @inner
    def multiply_symmetric(matrix, n, u, h):
        """h = A u for a symmetric A.

        Four rows at a time, left of their diagonal block four columns at a time.
        """
        for i in range(0, n - 3, 4):
            a = b = c = d = zero4()
            ua, ub, uc, ud = spread4(u[i]), spread4(u[i + 1]), spread4(u[i + 2]), spread4(u[i + 3])
            ra, rb, rc, rd = _four_rows(i)
            for q in range(0, i, 4):
                x, y = load4(u, 0, q), load4(h, 0, q)
                row = load4(matrix, 0, ra + q)
                a, y = fma4(row, x, a), fma4(row, ua, y)
                row = load4(matrix, 0, rb + q)
                b, y = fma4(row, x, b), fma4(row, ub, y)
                row = load4(matrix, 0, rc + q)
                c, y = fma4(row, x, c), fma4(row, uc, y)
                row = load4(matrix, 0, rd + q)
                d, y = fma4(row, x, d), fma4(row, ud, y)
                store4(h, q, y)
            sums = sums4(a, b, c, d)
            a, b = load4(matrix, 0, ra + i), load4(matrix, 0, rb + i)
            c, d = load4(matrix, 0, rc + i), load4(matrix, 0, rd + i)
            store4(h, i, _multiply_block(a, b, c, d, ua, ub, uc, ud, sums))
        for i in range(n - n % 4, n):
            _multiply_row(matrix, i, u, h)

    @inline
    def _multiply_block(a, b, c, d, ua, ub, uc, ud, sums):
        """``sums`` and the product with the block that has the lower triangle of a, b, c, d."""
        sums = fma4(mirrored4(a, b, c, d, 0), ua, sums)
        sums = fma4(mirrored4(a, b, c, d, 1), ub, sums)
        return fma4(d, ud, fma4(mirrored4(a, b, c, d, 2), uc, sums))

    @inline
    def _multiply_row(matrix, i, u, h):
        """What row i adds to h = A u where it is one of the last, which are no block of four."""
        row, end = row_start(i), i - i % 4
        a, ui = zero4(), spread4(u[i])
        for q in range(0, end, 4):
            x = load4(matrix, 0, row + q)
            a = fma4(x, load4(u, 0, q), a)
            store4(h, q, fma4(x, ui, load4(h, 0, q)))
        total = sum4(a)
        for q in range(end, i):
            total = fma(matrix[row + q], u[q], total)
            h[q] = fma(matrix[row + q], u[i], h[q])
        h[i] = fma(matrix[row + i], u[i], total)

    @inner
    def multiply_reduced(matrix, n, gain, v, u, h):
        """A -= gain v v^T, then h = A u for a symmetric A.

        The bits of ``reduce_symmetric`` and ``multiply_symmetric`` in one trip through memory.
        """
        for i in range(0, n - 3, 4):
            a = b = c = d = zero4()
            ua, ub, uc, ud = spread4(u[i]), spread4(u[i + 1]), spread4(u[i + 2]), spread4(u[i + 3])
            va, vb = spread4(-gain * v[i]), spread4(-gain * v[i + 1])
            vc, vd = spread4(-gain * v[i + 2]), spread4(-gain * v[i + 3])
            ra, rb, rc, rd = _four_rows(i)
            for q in range(0, i, 4):
                w, x, y = load4(v, 0, q), load4(u, 0, q), load4(h, 0, q)
                row = fma4(va, w, load4(matrix, 0, ra + q))
                store4(matrix, ra + q, row)
                a, y = fma4(row, x, a), fma4(row, ua, y)
                row = fma4(vb, w, load4(matrix, 0, rb + q))
                store4(matrix, rb + q, row)
                b, y = fma4(row, x, b), fma4(row, ub, y)
                row = fma4(vc, w, load4(matrix, 0, rc + q))
                store4(matrix, rc + q, row)
                c, y = fma4(row, x, c), fma4(row, uc, y)
                row = fma4(vd, w, load4(matrix, 0, rd + q))
                store4(matrix, rd + q, row)
                d, y = fma4(row, x, d), fma4(row, ud, y)
                store4(h, q, y)
            w, sums = load4(v, 0, i), sums4(a, b, c, d)
            a, b = fma4(va, w, load4(matrix, 0, ra + i)), fma4(vb, w, load4(matrix, 0, rb + i))
            c, d = fma4(vc, w, load4(matrix, 0, rc + i)), fma4(vd, w, load4(matrix, 0, rd + i))
            store4(matrix, ra + i, a)
            store4(matrix, rb + i, b)
            store4(matrix, rc + i, c)
            store4(matrix, rd + i, d)
            store4(h, i, _multiply_block(a, b, c, d, ua, ub, uc, ud, sums))
        for i in range(n - n % 4, n):
            _reduce_row(matrix, i, gain, v)
            _multiply_row(matrix, i, u, h)

    @inner
    def multiply_lower(matrix, n, u, h):
        """h = A u for a lower triangle A, four rows at a time."""
        for i in range(0, n - 3, 4):
            a = b = c = d = zero4()
            ra, rb, rc, rd = _four_rows(i)
            for q in range(0, i + 4, 4):
                x = load4(u, 0, q)
                a = fma4(load4(matrix, 0, ra + q), x, a)
                b = fma4(load4(matrix, 0, rb + q), x, b)
                c = fma4(load4(matrix, 0, rc + q), x, c)
                d = fma4(load4(matrix, 0, rd + q), x, d)
            store4(h, i, sums4(a, b, c, d))
        for i in range(n - n % 4, n):
            _multiply_last(matrix, i, u, h)

    @inline
    def _multiply_last(matrix, i, u, h):
        """h[i] of a triangle where row i is one of the last, which are no block of four."""
        row, end, a = row_start(i), i - i % 4, zero4()
        for q in range(0, end, 4):
            a = fma4(load4(matrix, 0, row + q), load4(u, 0, q), a)
        total = sum4(a)
        for q in range(end, i + 1):
            total = fma(matrix[row + q], u[q], total)
        h[i] = total

    @inner
    def multiply_lower4(matrix, n, u, h):
        """The same for four u and h, the rows of two arrays: the same bits, one trip through A."""
        u0, u1, u2, u3 = u[0], u[1], u[2], u[3]
        h0, h1, h2, h3 = h[0], h[1], h[2], h[3]
        for i in range(0, n - 3, 4):
            _multiply_lower2(matrix, i, u0, u1, h0, h1)
            _multiply_lower2(matrix, i, u2, u3, h2, h3)
        for i in range(n - n % 4, n):
            for r in range(4):
                _multiply_last(matrix, i, u[r], h[r])

    @inline
    def _multiply_lower2(matrix, i, u, v, h, g):
        """Rows i to i + 3 of A u and of A v."""
        a = b = c = d = zero4()
        e = f = k = w = zero4()
        ra, rb, rc, rd = _four_rows(i)
        for q in range(0, i + 4, 4):
            x, y = load4(u, 0, q), load4(v, 0, q)
            row = load4(matrix, 0, ra + q)
            a, e = fma4(row, x, a), fma4(row, y, e)
            row = load4(matrix, 0, rb + q)
            b, f = fma4(row, x, b), fma4(row, y, f)
            row = load4(matrix, 0, rc + q)
            c, k = fma4(row, x, c), fma4(row, y, k)
            row = load4(matrix, 0, rd + q)
            d, w = fma4(row, x, d), fma4(row, y, w)
        store4(h, i, sums4(a, b, c, d))
        store4(g, i, sums4(e, f, k, w))

    @inner
    def multiply_back(matrix, n, u, h):
        """h = A^T u for a lower triangle A, four rows at a time."""
        for i in range(0, n - 3, 4):
            a, b, c, d = spread4(u[i]), spread4(u[i + 1]), spread4(u[i + 2]), spread4(u[i + 3])
            ra, rb, rc, rd = _four_rows(i)
            store4(h, i, zero4())
            for q in range(0, i + 4, 4):
                y = fma4(load4(matrix, 0, ra + q), a, load4(h, 0, q))
                y = fma4(load4(matrix, 0, rb + q), b, y)
                y = fma4(load4(matrix, 0, rc + q), c, y)
                store4(h, q, fma4(load4(matrix, 0, rd + q), d, y))
        for i in range(n - n % 4, n):
            _multiply_back_last(matrix, i, u, h)

    @inline
    def _multiply_back_last(matrix, i, u, h):
        """What row i adds where it is one of the last, which are no block of four."""
        h[i], row = 0.0, row_start(i)
        for q in range(i + 1):
            h[q] = fma(u[i], matrix[row + q], h[q])

    @inner
    def multiply_back2(matrix, n, u, v, h, g):
        """The same for two vectors, h = A^T u and g = A^T v: the same bits, one trip through A."""
        for i in range(0, n - 3, 4):
            a, b, c, d = spread4(u[i]), spread4(u[i + 1]), spread4(u[i + 2]), spread4(u[i + 3])
            e, f, k, w = spread4(v[i]), spread4(v[i + 1]), spread4(v[i + 2]), spread4(v[i + 3])
            ra, rb, rc, rd = _four_rows(i)
            store4(h, i, zero4())
            store4(g, i, zero4())
            for q in range(0, i + 4, 4):
                row = load4(matrix, 0, ra + q)
                x, y = fma4(row, a, load4(h, 0, q)), fma4(row, e, load4(g, 0, q))
                row = load4(matrix, 0, rb + q)
                x, y = fma4(row, b, x), fma4(row, f, y)
                row = load4(matrix, 0, rc + q)
                x, y = fma4(row, c, x), fma4(row, k, y)
                row = load4(matrix, 0, rd + q)
                store4(h, q, fma4(row, d, x))
                store4(g, q, fma4(row, w, y))
        for i in range(n - n % 4, n):
            _multiply_back_last(matrix, i, u, h)
            _multiply_back_last(matrix, i, v, g)

    @inner
    def square_columns(matrix, n, h):
        """The sums of squares of the columns of a lower triangle A, four rows at a time."""
        for i in range(0, n - 3, 4):
            ra, rb, rc, rd = _four_rows(i)
            store4(h, i, zero4())
            for q in range(0, i + 4, 4):
                row, y = load4(matrix, 0, ra + q), load4(h, 0, q)
                y = fma4(row, row, y)
                row = load4(matrix, 0, rb + q)
                y = fma4(row, row, y)
                row = load4(matrix, 0, rc + q)
                y = fma4(row, row, y)
                row = load4(matrix, 0, rd + q)
                store4(h, q, fma4(row, row, y))
        for i in range(n - n % 4, n):
            h[i], row_i = 0.0, row_start(i)
            for q in range(i + 1):
                h[q] = fma(matrix[row_i + q], matrix[row_i + q], h[q])
