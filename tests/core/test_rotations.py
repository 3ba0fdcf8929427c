"""Points that leave a triangle, against NumPy; rows turned together, against each by itself."""

import numpy as np
import pytest

from kernelstream.core.jit import compiled
from kernelstream.core.rotations import leave_triangle, rotate, rotate_rows, rotate_symmetric
from kernelstream.models._auto._group import packed, unpacked


@compiled
def leave(inverse, weights, covariance, n, j):
    cosines, sines, carry = np.zeros((3, n + 1))
    leave_triangle(inverse, n, j, cosines, sines, carry)
    rotate_rows(weights, j, n - 1, cosines, sines)
    rotate_symmetric(covariance, j, n - 1, cosines, sines, carry)


@compiled
def rotate_all(rows, first, last, cosines, sines):
    rotate_rows(rows, first, last, cosines, sines)


@compiled
def rotate_each(rows, first, last, cosines, sines):
    for r in range(len(rows)):
        rotate(rows[r], 0, first, last, cosines, sines)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 9, 16, 23])
def test_a_point_leaves(n):
    """Functions and covariances at the other points stay, and so does the triangle."""
    random = np.random.default_rng(n)
    points = random.normal(size=(n, 3))
    squares = np.square(points[:, None] - points[None]).sum(axis=2)
    gram = np.exp(-0.5 * squares) + 1e-3 * np.eye(n)
    factor = np.linalg.cholesky(gram)
    spread = random.normal(size=(n, n))
    functions = random.normal(size=(5, n))
    for j in range(n):
        inverse = packed(np.linalg.inv(factor))
        weights, covariance = functions.copy(), packed(spread @ spread.T)
        leave(inverse, weights, covariance, n, j)
        rest = np.delete(np.arange(n), j)
        own = np.linalg.cholesky(gram[np.ix_(rest, rest)])
        left = unpacked(inverse, n - 1)
        np.testing.assert_allclose(np.abs(left @ own), np.eye(n - 1), atol=1e-9)
        # u = T k at the other points, before and after; rotations keep all of it but the last.
        before, after = factor[rest], np.linalg.inv(left).copy()
        np.testing.assert_allclose(weights[:, : n - 1] @ after.T, functions @ before.T, atol=1e-9)
        lower = unpacked(covariance, n - 1)
        whole = lower + np.tril(lower, -1).T
        np.testing.assert_allclose(
            after @ whole @ after.T, before @ spread @ spread.T @ before.T, atol=1e-8
        )


@pytest.mark.parametrize("rows", [1, 4, 7])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 9), (3, 8)])
def test_rows_together_have_the_bits_of_each(rows, first, last):
    random = np.random.default_rng(rows)
    numbers, angles = random.normal(size=(rows, 10)), random.normal(size=10)
    found, expected = numbers.copy(), numbers.copy()
    rotate_all(found, first, last, np.cos(angles), np.sin(angles))
    rotate_each(expected, first, last, np.cos(angles), np.sin(angles))
    assert np.array_equal(found, expected)
    np.testing.assert_allclose(
        np.linalg.norm(found, axis=1), np.linalg.norm(numbers, axis=1), rtol=1e-12
    )
