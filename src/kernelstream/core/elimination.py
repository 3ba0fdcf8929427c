"""Triangles of a few hundred rows: roots, inverses and products, four rows at a time.

For matrices of that size LAPACK spends most of its time in loops over single rows, and BLAS
multiplies the zeros of triangles as well. Everything here is a chain of updates A -= L^T R with
four rows in L and R.
"""

import math

import numpy as np

from kernelstream.core.jit import INTERPRETED, allocating, compiled, inner
from kernelstream.core.lanes import fma

if not INTERPRETED:
    from kernelstream.core.lanes import fma4, load4, spread4, store4

if INTERPRETED:

    def subtract_products(matrix, first, begin, end, left, right, at):
        """A -= L^T R from row ``first`` on, between these columns, up to the diagonal's block.

        L is ``left`` (4, n), R are four rows of ``right`` from ``at`` on; first, begin and end are
        multiples of four.
        """
        for i in range(first, len(matrix)):
            last = min(end, i // 4 * 4 + 4)
            matrix[i, begin:last] -= left[:, i] @ right[at : at + 4, begin:last]

else:

    @inner
    def subtract_products(matrix, first, begin, end, left, right, at):
        """A -= L^T R from row ``first`` on, between these columns, up to the diagonal's block.

        L is ``left`` (4, n), R are four rows of ``right`` from ``at`` on; first, begin and end are
        multiples of four. Two rows of A at a time.
        """
        for i in range(first, len(matrix), 2):
            row, next_ = matrix[i], matrix[i + 1]
            a0, a1 = spread4(-left[0, i]), spread4(-left[1, i])
            a2, a3 = spread4(-left[2, i]), spread4(-left[3, i])
            b0, b1 = spread4(-left[0, i + 1]), spread4(-left[1, i + 1])
            b2, b3 = spread4(-left[2, i + 1]), spread4(-left[3, i + 1])
            for q in range(begin, min(end, i + 1), 4):
                x = load4(right, at, q)
                a, b = fma4(a0, x, load4(row, 0, q)), fma4(b0, x, load4(next_, 0, q))
                x = load4(right, at + 1, q)
                a, b = fma4(a1, x, a), fma4(b1, x, b)
                x = load4(right, at + 2, q)
                a, b = fma4(a2, x, a), fma4(b2, x, b)
                x = load4(right, at + 3, q)
                a, b = fma4(a3, x, a), fma4(b3, x, b)
                store4(row, q, a)
                store4(next_, q, b)


@allocating
def in_blocks(lower):
    """A copy of a lower triangle, 0 above, with rows of the identity up to a multiple of four."""
    rows = len(lower)
    n = (rows + 3) // 4 * 4
    matrix = np.zeros((n, n))
    for i in range(n):
        if i >= rows:
            matrix[i, i] = 1.0
            continue
        for q in range(i + 1):
            matrix[i, q] = lower[i, q]
    return matrix


@inner
def take_root(matrix, k, t):
    """The Cholesky factor of the diagonal block at ``k`` into ``t`` (4, 4)."""
    for i in range(4):
        for j in range(i + 1):
            rest = matrix[k + i, k + j]
            for c in range(j):
                rest -= t[i, c] * t[j, c]
            if i == j:
                t[i, j] = math.sqrt(rest) if rest > 0.0 else math.nan
            else:
                t[i, j] = rest / t[j, j]


@inner
def invert_block(t):
    """A lower triangle (4, 4) becomes its inverse."""
    for j in range(4):
        t[j, j] = 1.0 / t[j, j]
        for i in range(j + 1, 4):
            rest = 0.0
            for c in range(j, i):
                rest -= t[i, c] * t[c, j]
            t[i, j] = rest / t[i, i]


@inner
def multiply_left(matrix, k, t, r):
    """t times what is left of the diagonal block at ``k`` into ``r`` (4, n); in the block, t."""
    for c in range(4):
        for q in range(k):
            total = t[c, 0] * matrix[k, q]
            for e in range(1, c + 1):
                total = fma(t[c, e], matrix[k + e, q], total)
            r[c, q] = total
        for e in range(4):
            r[c, k + e] = t[c, e]


@inner
def multiply_below(matrix, k, t, r):
    """t times the transpose of what is below the diagonal block at ``k`` into ``r`` (4, n)."""
    for q in range(k + 4, len(matrix)):
        for c in range(4):
            total = t[c, 0] * matrix[q, k]
            for e in range(1, c + 1):
                total = fma(t[c, e], matrix[q, k + e], total)
            r[c, q] = total


@inner
def clear_block(matrix, k, first):
    """Columns k to k + 3 become 0 from row ``first`` on."""
    for i in range(first, len(matrix)):
        for q in range(k, k + 4):
            matrix[i, q] = 0.0


@inner
def write_rows(matrix, k, r):
    """Rows k to k + 3 up to the diagonal's block from ``r``."""
    for c in range(4):
        for q in range(k + 4):
            matrix[k + c, q] = r[c, q]


@compiled
def eliminate(lower, everywhere, out):
    """Eliminate the rows of a positive definite A, of which the lower triangle is given.

    Parameters
    ----------
    lower : (n, n)
    everywhere : bool
        False: each row from those below, and ``out`` is the inverse of the Cholesky factor of A.
        True: from those above as well (Gauss and Jordan), and ``out`` is the inverse of A.
    out : (n, n), its lower triangle; not numbers where A is not positive definite.
    """
    matrix = in_blocks(lower)
    n = len(matrix)
    r, t = np.zeros((4, n)), np.zeros((4, 4))
    # Left of what is yet to eliminate, rows hold the inverse so far: of the triangle or, in
    # rows that are done and with the other sign, of A.
    for k in range(0, n, 4):
        take_root(matrix, k, t)
        invert_block(t)
        multiply_left(matrix, k, t, r)
        multiply_below(matrix, k, t, r)
        clear_block(matrix, k, k)
        if everywhere:
            for i in range(k, k + 4):
                for q in range(k):
                    matrix[i, q] = 0.0
        subtract_products(matrix, 0 if everywhere else k + 4, 0, n, r, r, 0)
        if not everywhere:
            write_rows(matrix, k, r)
    for i in range(len(lower)):
        for q in range(i + 1):
            out[i, q] = -matrix[i, q] if everywhere else matrix[i, q]


@allocating
def multiply_triangles(left, right):
    """The product of two lower triangles (n, n), n a multiple of four."""
    n = len(left)
    result, columns = np.zeros((n, n)), np.empty((4, n))
    for k in range(0, n, 4):
        for i in range(k, n):
            for c in range(4):
                columns[c, i] = -left[i, k + c]
        subtract_products(result, k, 0, k + 4, columns, right, k)
    return result


@compiled
def spread_values(inverse, covariance, out, spread):
    """Of values L w, where L is the inverse of a lower triangle and w has a covariance.

    Parameters
    ----------
    inverse, covariance : (n, n), of which the lower triangle is given.
    out : (n, n), its lower triangle is L.
    spread : (n, n), its lower triangle is L G, where G is the Cholesky factor of the covariance;
        not numbers where that is not positive definite.
    """
    triangle, root = in_blocks(inverse), in_blocks(covariance)
    n = len(root)
    r, below, t = np.zeros((4, n)), np.zeros((4, n)), np.zeros((4, 4))
    for k in range(0, n, 4):
        for i in range(4):
            for j in range(i + 1):
                t[i, j] = triangle[k + i, k + j]
        for i in range(k + 4, n):
            for c in range(4):
                below[c, i] = triangle[i, k + c]
        invert_block(t)
        multiply_left(triangle, k, t, r)
        clear_block(triangle, k, k + 4)
        subtract_products(triangle, k + 4, 0, k + 4, below, r, 0)
        write_rows(triangle, k, r)

        take_root(root, k, t)
        for i in range(4):
            for j in range(i + 1):
                root[k + i, k + j] = t[i, j]
        invert_block(t)
        multiply_below(root, k, t, r)
        for i in range(k + 4, n):
            for c in range(4):
                root[i, k + c] = r[c, i]
        subtract_products(root, k + 4, k + 4, n, r, r, 0)
        for i in range(k + 4, min(n, k + 8)):  # above the diagonal there is nothing
            for q in range(i + 1, k + 8):
                root[i, q] = 0.0
    product = multiply_triangles(triangle, root)
    for i in range(len(out)):
        for q in range(i + 1):
            out[i, q] = triangle[i, q]
            spread[i, q] = product[i, q]


@compiled
def square_product(left, right, out):
    """The lower triangle of P P^T into ``out``, where P is the product of two lower triangles."""
    product = multiply_triangles(in_blocks(left), in_blocks(right))
    n = len(product)
    result, columns, minus = np.zeros((n, n)), np.empty((4, n)), np.empty((4, n))
    for k in range(0, n, 4):
        for i in range(k, n):
            for c in range(4):
                columns[c, i] = product[i, k + c] if k + c <= i else 0.0
                minus[c, i] = -columns[c, i]
        subtract_products(result, k, k, n, minus, columns, 0)
    for i in range(len(out)):
        for q in range(i + 1):
            out[i, q] = result[i, q]
