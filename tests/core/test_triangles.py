"""Products with triangles, against NumPy and against each other."""

import numpy as np
import pytest

from kernelstream.core.jit import compiled
from kernelstream.core.triangles import (
    multiply_back,
    multiply_lower,
    multiply_lower4,
    multiply_reduced,
    multiply_symmetric,
    reduce_symmetric,
)
from kernelstream.models._auto._group import unpacked


@compiled
def all_triangular(matrix, n, u, lower, back, symmetric):
    multiply_lower(matrix, n, u, lower)
    multiply_back(matrix, n, u, back)
    multiply_symmetric(matrix, n, u, symmetric)


@compiled
def at_once(matrix, n, gain, v, u, h):
    multiply_reduced(matrix, n, gain, v, u, h)


@compiled
def one_by_one(matrix, n, gain, v, u, h):
    reduce_symmetric(matrix, n, gain, v)
    multiply_symmetric(matrix, n, u, h)


@compiled
def four_at_once(matrix, n, u, h):
    multiply_lower4(matrix, n, u, h)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 32])
def test_four_products_have_the_bits_of_one(n):
    random = np.random.default_rng(n)
    matrix, u = random.normal(size=33 * 34 // 2), random.normal(size=(4, 33))
    found, expected, rest = np.full((4, 33), 7.0), np.full((4, 33), 7.0), np.empty((2, 33))
    four_at_once(matrix, n, u, found)
    for r in range(4):
        all_triangular(matrix, n, u[r], expected[r], *rest)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 32])
def test_reduced_and_multiplied_at_once(n):
    random = np.random.default_rng(n)
    matrix, (u, v) = random.normal(size=33 * 34 // 2), random.normal(size=(2, 33))
    found, expected = (matrix.copy(), np.zeros(33)), (matrix.copy(), np.zeros(33))
    at_once(found[0], n, 0.3, v, u, found[1])
    one_by_one(expected[0], n, 0.3, v, u, expected[1])
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b)
    change = np.tril(0.3 * np.outer(v[:n], v[:n]))
    np.testing.assert_allclose(unpacked(matrix - found[0], n), change, atol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 32])
def test_products_with_a_triangle(n):
    random = np.random.default_rng(n)
    matrix, u = random.normal(size=33 * 34 // 2), random.normal(size=33)
    found = np.full((3, 33), 7.0)
    all_triangular(matrix, n, u, *found)
    lower = unpacked(matrix, n)
    symmetric = lower + np.tril(lower, -1).T
    expected = [lower @ u[:n], lower.T @ u[:n], symmetric @ u[:n]]
    np.testing.assert_allclose(found[:, :n], np.reshape(expected, (3, n)), atol=1e-13)
    assert np.all(found[:, n:] == 7.0)
