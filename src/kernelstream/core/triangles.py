"""Products with triangles, and with symmetric matrices of which a triangle is held.

Lower triangles are held row by row without what is above the diagonal: row i begins at
``row_start(i)``. For a symmetric matrix that is all there is: half of the memory to go through.
Sums have the order that is written here: see ``lanes``.
"""

from kernelstream.core.jit import INTERPRETED, inline, inner
from kernelstream.core.lanes import dot, fma

if not INTERPRETED:
    from kernelstream.core.lanes import fma4, load4, spread4, store4, sum4, zero4


@inline
def row_start(i):
    """Where row i of a triangle begins."""
    return i * (i + 1) // 2


@inner
def reduce_symmetric(matrix, n, gain, v):
    """A -= gain v v^T for a symmetric A."""
    place = 0
    for i in range(n):
        c = -gain * v[i]
        for q in range(i + 1):
            matrix[place + q] = fma(c, v[q], matrix[place + q])
        place += i + 1


if INTERPRETED:

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

else:

    @inner
    def multiply_symmetric(matrix, n, u, h):
        """h = A u for a symmetric A.

        Four rows at a time, left of their diagonal block four columns at a time.
        """
        for i in range(0, n - 3, 4):
            a = b = c = d = zero4()
            ua, ub, uc, ud = spread4(u[i]), spread4(u[i + 1]), spread4(u[i + 2]), spread4(u[i + 3])
            ra, rb, rc, rd = row_start(i), row_start(i + 1), row_start(i + 2), row_start(i + 3)
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
            h[i], h[i + 1], h[i + 2], h[i + 3] = sum4(a), sum4(b), sum4(c), sum4(d)
            for j in range(i, i + 4):  # the diagonal block
                _multiply_row(matrix, i, j, u, h)
        for i in range(n - n % 4, n):
            h[i] = 0.0
            _multiply_row(matrix, 0, i, u, h)

    @inline
    def _multiply_row(matrix, first, i, u, h):
        """What row i from column ``first`` on adds to h = A u."""
        row = row_start(i)
        for q in range(first, i):
            h[i] = fma(matrix[row + q], u[q], h[i])
            h[q] = fma(matrix[row + q], u[i], h[q])
        h[i] = fma(matrix[row + i], u[i], h[i])

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
            ra, rb, rc, rd = row_start(i), row_start(i + 1), row_start(i + 2), row_start(i + 3)
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
            h[i], h[i + 1], h[i + 2], h[i + 3] = sum4(a), sum4(b), sum4(c), sum4(d)
            for j in range(i, i + 4):  # the diagonal block
                _reduce_row(matrix, i, j, gain, v)
                _multiply_row(matrix, i, j, u, h)
        for i in range(n - n % 4, n):
            _reduce_row(matrix, 0, i, gain, v)
            h[i] = 0.0
            _multiply_row(matrix, 0, i, u, h)

    @inline
    def _reduce_row(matrix, first, i, gain, v):
        """Row i of A -= gain v v^T from column ``first`` on."""
        row, c = row_start(i), -gain * v[i]
        for q in range(first, i + 1):
            matrix[row + q] = fma(c, v[q], matrix[row + q])

    @inner
    def multiply_lower(matrix, n, u, h):
        """h = A u for a lower triangle A, four rows at a time."""
        for i in range(0, n - 3, 4):
            a = b = c = d = zero4()
            ra, rb, rc, rd = row_start(i), row_start(i + 1), row_start(i + 2), row_start(i + 3)
            for q in range(0, i, 4):
                x = load4(u, 0, q)
                a = fma4(load4(matrix, 0, ra + q), x, a)
                b = fma4(load4(matrix, 0, rb + q), x, b)
                c = fma4(load4(matrix, 0, rc + q), x, c)
                d = fma4(load4(matrix, 0, rd + q), x, d)
            h[i], h[i + 1], h[i + 2], h[i + 3] = sum4(a), sum4(b), sum4(c), sum4(d)
        _multiply_ends(matrix, n, u, h)

    @inner
    def _multiply_ends(matrix, n, u, h):
        """What the diagonal blocks of four rows, and the last rows, add to h = A u."""
        for i in range(n):
            if i >= n - n % 4:
                h[i] = 0.0
            row = row_start(i)
            for q in range(i - i % 4 if i < n - n % 4 else 0, i + 1):
                h[i] = fma(matrix[row + q], u[q], h[i])

    @inner
    def multiply_lower4(matrix, n, u, h):
        """The same for four u and h, the rows of two arrays: the same bits, one trip through A."""
        for i in range(0, n - n % 4, 2):
            a = b = c = d = zero4()
            e = f = g = k = zero4()
            ra, rb = row_start(i), row_start(i + 1)
            for q in range(0, i - i % 4, 4):
                row, below = load4(matrix, 0, ra + q), load4(matrix, 0, rb + q)
                x = load4(u, 0, q)
                a, e = fma4(row, x, a), fma4(below, x, e)
                x = load4(u, 1, q)
                b, f = fma4(row, x, b), fma4(below, x, f)
                x = load4(u, 2, q)
                c, g = fma4(row, x, c), fma4(below, x, g)
                x = load4(u, 3, q)
                d, k = fma4(row, x, d), fma4(below, x, k)
            h[0, i], h[1, i], h[2, i], h[3, i] = sum4(a), sum4(b), sum4(c), sum4(d)
            i += 1
            h[0, i], h[1, i], h[2, i], h[3, i] = sum4(e), sum4(f), sum4(g), sum4(k)
        for r in range(4):
            _multiply_ends(matrix, n, u[r], h[r])

    @inner
    def multiply_back(matrix, n, u, h):
        """h = A^T u for a lower triangle A, four rows at a time."""
        for i in range(0, n - 3, 4):
            a, b, c, d = spread4(u[i]), spread4(u[i + 1]), spread4(u[i + 2]), spread4(u[i + 3])
            ra, rb, rc, rd = row_start(i), row_start(i + 1), row_start(i + 2), row_start(i + 3)
            for q in range(0, i, 4):
                y = fma4(load4(matrix, 0, ra + q), a, load4(h, 0, q))
                y = fma4(load4(matrix, 0, rb + q), b, y)
                y = fma4(load4(matrix, 0, rc + q), c, y)
                store4(h, q, fma4(load4(matrix, 0, rd + q), d, y))
            for q in range(i, i + 4):
                h[q] = 0.0
                for j in range(q, i + 4):
                    h[q] = fma(matrix[row_start(j) + q], u[j], h[q])
        for i in range(n - n % 4, n):
            h[i], row = 0.0, row_start(i)
            for q in range(i + 1):
                h[q] = fma(u[i], matrix[row + q], h[q])
