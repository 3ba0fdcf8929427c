"""Rotations of coordinates, each with the next: what a triangle needs when a point leaves it.

A chain of rotations goes along a row number by number, each waiting for the one before: four rows
go side by side. Between two rows all numbers turn alike: lanes of a vector.
"""

import math

from kernelstream.core.jit import INTERPRETED, inline, inner
from kernelstream.core.lanes import fma
from kernelstream.core.triangles import row_start

if not INTERPRETED:
    from kernelstream.core.lanes import column4, fma4, lane4, load4, multiply4, spread4, store4


@inner
def rotate(numbers, start, first, last, cosines, sines):
    """Rotate numbers after ``start``, each with the next, from ``first`` to ``last``."""
    x = numbers[start + first]
    for c in range(first, last):
        y = numbers[start + c + 1]
        numbers[start + c] = fma(cosines[c], x, -sines[c] * y)
        x = fma(sines[c], x, cosines[c] * y)
    numbers[start + last] = x


if INTERPRETED:

    def _rotate4(a, b, c, d, at, bt, ct, dt, first, last, cosines, sines):
        """``rotate`` of four rows; numbers of ``a`` begin at ``at`` ..."""
        for row, start in ((a, at), (b, bt), (c, ct), (d, dt)):
            rotate(row, start, first, last, cosines, sines)

else:

    @inner
    def _rotate4(a, b, c, d, at, bt, ct, dt, first, last, cosines, sines):
        """``rotate`` of four rows; numbers of ``a`` begin at ``at`` ...

        The rows are lanes of a vector, four columns at a time; with the bits of one by one.
        """
        q = first
        if q + 4 <= last:
            w, x = load4(a, 0, at + q), load4(b, 0, bt + q)
            y, z = load4(c, 0, ct + q), load4(d, 0, dt + q)
            carry = column4(w, x, y, z, 0)
            while q + 4 <= last:
                w, x = load4(a, 0, at + q + 1), load4(b, 0, bt + q + 1)
                y, z = load4(c, 0, ct + q + 1), load4(d, 0, dt + q + 1)
                e, carry = _rotated(carry, column4(w, x, y, z, 0), cosines[q], sines[q])
                f, carry = _rotated(carry, column4(w, x, y, z, 1), cosines[q + 1], sines[q + 1])
                g, carry = _rotated(carry, column4(w, x, y, z, 2), cosines[q + 2], sines[q + 2])
                h, carry = _rotated(carry, column4(w, x, y, z, 3), cosines[q + 3], sines[q + 3])
                store4(a, at + q, column4(e, f, g, h, 0))
                store4(b, bt + q, column4(e, f, g, h, 1))
                store4(c, ct + q, column4(e, f, g, h, 2))
                store4(d, dt + q, column4(e, f, g, h, 3))
                q += 4
            a[at + q], b[bt + q] = lane4(carry, 0), lane4(carry, 1)
            c[ct + q], d[dt + q] = lane4(carry, 2), lane4(carry, 3)
        rotate(a, at, q, last, cosines, sines)
        rotate(b, bt, q, last, cosines, sines)
        rotate(c, ct, q, last, cosines, sines)
        rotate(d, dt, q, last, cosines, sines)

    @inline
    def _rotated(x, y, cosine, sine):
        """What stays of a rotation of x and y, and what goes on."""
        c, s = spread4(cosine), spread4(sine)
        return fma4(c, x, multiply4(spread4(-sine), y)), fma4(s, x, multiply4(c, y))


@inner
def rotate_rows(rows, first, last, cosines, sines):
    """``rotate`` of every row of an array."""
    n = len(rows)
    for r in range(0, n - 3, 4):
        a, b, c, d = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        _rotate4(a, b, c, d, 0, 0, 0, 0, first, last, cosines, sines)
    for r in range(n - n % 4, n):
        rotate(rows[r], 0, first, last, cosines, sines)


if INTERPRETED:

    def turn(carry, matrix, source, target, first, last, cosine, sine):
        """Rotate the numbers of ``carry`` with those of ``matrix`` after ``source``.

        Those from ``first`` to ``last``. One half of the result goes to ``matrix`` after
        ``target``, the other half to ``carry``.
        """
        for i in range(first, last):
            x, y = carry[i], matrix[source + i]
            matrix[target + i] = fma(cosine, x, -sine * y)
            carry[i] = fma(sine, x, cosine * y)

else:

    @inner
    def turn(carry, matrix, source, target, first, last, cosine, sine):
        """Rotate the numbers of ``carry`` with those of ``matrix`` after ``source``.

        Those from ``first`` to ``last``. One half of the result goes to ``matrix`` after
        ``target``, the other half to ``carry``.
        """
        c, s, minus, i = spread4(cosine), spread4(sine), spread4(-sine), first
        while i + 4 <= last:
            x, y = load4(carry, 0, i), load4(matrix, 0, source + i)
            store4(matrix, target + i, fma4(c, x, multiply4(minus, y)))
            store4(carry, i, fma4(s, x, multiply4(c, y)))
            i += 4
        while i < last:
            x, y = carry[i], matrix[source + i]
            matrix[target + i] = fma(cosine, x, -sine * y)
            carry[i] = fma(sine, x, cosine * y)
            i += 1


@inner
def leave_triangle(matrix, n, j, cosines, sines, carry):
    """Take column j out of the inverse of a Cholesky factor, and keep it a triangle.

    Coordinates are rotated, each with the next, until only the last one depends on point j. The
    rotations stay in ``cosines`` and ``sines`` from j on.
    """
    for i in range(j + 1):
        carry[i] = matrix[row_start(j) + i]
    for c in range(j, n - 1):
        row, below = row_start(c), row_start(c + 1)
        x, y = carry[j], matrix[below + j]
        length = math.sqrt(fma(x, x, y * y))
        cosine, sine = y / length, x / length
        cosines[c], sines[c] = cosine, sine
        carry[c + 1] = 0.0
        turn(carry, matrix, below, row, 0, j, cosine, sine)
        carry[j] = length
        turn(carry, matrix, below, row - 1, j + 1, c + 2, cosine, sine)


@inner
def rotate_symmetric(matrix, first, last, cosines, sines, carry):
    """Both sides of a symmetric matrix, of which the lower triangle is held."""
    for r in range(first + 1, last - 2, 4):
        a, b, c, d = row_start(r), row_start(r + 1), row_start(r + 2), row_start(r + 3)
        _rotate4(matrix, matrix, matrix, matrix, a, b, c, d, first, r - 1, cosines, sines)
        for below in range(r + 1, r + 4):
            rotate(matrix, row_start(below), r - 1, below - 1, cosines, sines)
    for r in range(last - (last - first) % 4 + 1, last + 1):
        rotate(matrix, row_start(r), first, r - 1, cosines, sines)
    for i in range(first + 1):
        carry[i] = matrix[row_start(first) + i]
    for c in range(first, last):
        row, below = row_start(c), row_start(c + 1)
        # Row c + 1 is in the rotated coordinates before c; row c waits in ``carry``.
        cosine, sine = cosines[c], sines[c]
        turn(carry, matrix, below, row, 0, c, cosine, sine)
        d, x, e = carry[c], matrix[below + c], matrix[below + c + 1]
        a, b = fma(cosine, d, -sine * x), fma(cosine, x, -sine * e)
        matrix[row + c] = fma(cosine, a, -sine * b)
        carry[c] = fma(sine, a, cosine * b)
        a, b = fma(sine, d, cosine * x), fma(sine, x, cosine * e)
        carry[c + 1] = fma(sine, a, cosine * b)
