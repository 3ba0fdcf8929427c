"""Triangles of a few hundred rows: roots, inverses and products, four rows at a time.

For matrices of that size LAPACK spends most of its time in loops over single rows, and BLAS
multiplies the zeros of triangles as well. Everything here is a chain of updates A -= L^T R with
four rows in L and R.

Matrices are ``in_blocks``: they have a multiple of four rows, and of each row what is right of the
diagonal's block is not looked at. They are overwritten: memory that is taken anew for every step
may cost more time than the step.
"""

import math

import numpy as np

from kernelstream.core.jit import INTERPRETED, allocating, compiled, inner, lean
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


@lean
def fill_up(matrix, rows):
    """Make a lower triangle of so many rows one in blocks.

    Above the diagonal its blocks get zeros, and the last rows are those of the identity.
    """
    for i in range(len(matrix)):
        for q in range(i + 1 if i < rows else 0, i // 4 * 4 + 4):
            matrix[i, q] = 1.0 if q == i else 0.0


@inner
def clear(matrix):
    """Zeros up to the end of the diagonal's blocks."""
    for i in range(len(matrix)):
        for q in range(i // 4 * 4 + 4):
            matrix[i, q] = 0.0


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
def eliminate(matrix, everywhere):
    """Eliminate the rows of a positive definite A, of which the lower triangle is given in blocks.

    Each row from those below: what is left is the inverse of the Cholesky factor of A. Where
    ``everywhere``, from those above as well (Gauss and Jordan), and the inverse of A is left. Where
    A is not positive definite these are not numbers.
    """
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
    if everywhere:
        for i in range(n):
            for q in range(i + 1):
                matrix[i, q] = -matrix[i, q]


@allocating
def multiply_triangles(left, right, out):
    """The product of two lower triangles in blocks."""
    n = len(left)
    columns = np.empty((4, n))
    clear(out)
    for k in range(0, n, 4):
        for i in range(k, n):
            for c in range(4):
                columns[c, i] = -left[i, k + c]
        subtract_products(out, k, 0, k + 4, columns, right, k)


@compiled
def spread_values(triangle, root, spread):
    """Of values L w, where L is the inverse of a lower triangle and w has a covariance.

    Parameters
    ----------
    triangle : (n, n) in blocks; becomes L.
    root : (n, n) in blocks, the covariance; becomes its Cholesky factor G.
    spread : (n, n), out: L G; not numbers where the covariance is not positive definite.
    """
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
    multiply_triangles(triangle, root, spread)


@compiled
def square_product(left, right, product):
    """P P^T, where P is the product of two lower triangles in blocks.

    P goes to ``product``, and the lower triangle of P P^T to ``right``.
    """
    multiply_triangles(left, right, product)
    n = len(product)
    columns, minus = np.empty((4, n)), np.empty((4, n))
    clear(right)
    for k in range(0, n, 4):
        for i in range(k, n):
            for c in range(4):
                columns[c, i] = product[i, k + c] if k + c <= i else 0.0
                minus[c, i] = -columns[c, i]
        subtract_products(right, k, k, n, minus, columns, 0)
