"""Products with triangles, against NumPy and against each other."""

import numpy as np
import pytest

from kernelstream.core.jit import compiled
from kernelstream.core.triangles import (
    multiply_back,
    multiply_back2,
    multiply_lower,
    multiply_lower4,
    multiply_reduced,
    multiply_symmetric,
    reduce_symmetric,
    square_columns,
)
from kernelstream.models._auto._group import packed, unpacked


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


@compiled
def back_by_twos(matrix, n, u, v, h, g, squares):
    multiply_back2(matrix, n, u, v, h, g)
    square_columns(matrix, n, squares)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 32])
def test_two_products_have_the_bits_of_one_and_columns_their_squares(n):
    random = np.random.default_rng(n)
    matrix, u = random.normal(size=33 * 34 // 2), random.normal(size=(2, 33))
    found, expected, rest = np.full((3, 33), 7.0), np.full((2, 33), 7.0), np.empty((2, 33))
    back_by_twos(matrix, n, *u, *found)
    for r in range(2):
        all_triangular(matrix, n, u[r], rest[0], expected[r], rest[1])
    assert np.array_equal(found[:2], expected)
    squares = np.square(unpacked(matrix, n)).sum(axis=0)
    np.testing.assert_allclose(found[2, :n], squares, rtol=1e-14)
    assert np.all(found[2, n:] == 7.0)


@pytest.mark.parametrize("n", [0, 1, 4, 33])
def test_a_triangle_is_unpacked_and_packed(n):
    numbers = np.random.default_rng(n).normal(size=33 * 34 // 2)
    lower = unpacked(numbers, n)
    for i in range(n):
        assert np.array_equal(lower[i, : i + 1], numbers[i * (i + 1) // 2 :][: i + 1])
        assert np.all(lower[i, i + 1 :] == 0.0)
    assert np.array_equal(packed(np.asfortranarray(lower)), numbers[: n * (n + 1) // 2])


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
