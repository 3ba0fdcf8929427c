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
    pack,
    reduce_symmetric,
    square_columns,
)
from kernelstream.models._auto._group import packed, triangle, unpacked, zero_triangle


def triangle_of(random, above=0.0):
    """A triangle of 33 rows as it is held; ``above`` the diagonal is what the rows have there."""
    numbers = np.full(triangle(33), above)
    pack(random.normal(size=(33, 33)), numbers)
    return numbers


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
    matrix, u = triangle_of(random), random.normal(size=(2, 33))
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
    numbers = triangle_of(np.random.default_rng(n))
    lower, first = unpacked(numbers, n), 0
    for i in range(n):  # each row up to the end of its block of four
        assert np.array_equal(lower[i, : i + 1], numbers[first:][: i + 1])
        assert np.all(lower[i, i + 1 :] == 0.0)
        first += 4 * (i // 4 + 1)
    assert triangle(n) == first
    assert np.array_equal(packed(np.asfortranarray(lower)), numbers[:first])


@pytest.mark.parametrize("n", [1, 33, 129, 401])
def test_rows_of_a_triangle_begin_where_vectors_do(n):
    numbers = zero_triangle(n)
    assert numbers.shape == (triangle(n),)
    assert not numbers.any()
    assert numbers.ctypes.data % 64 == 0


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 32])
def test_four_products_have_the_bits_of_one(n):
    random = np.random.default_rng(n)
    matrix, u = triangle_of(random), random.normal(size=(4, 33))
    found, expected, rest = np.full((4, 33), 7.0), np.full((4, 33), 7.0), np.empty((2, 33))
    four_at_once(matrix, n, u, found)
    for r in range(4):
        all_triangular(matrix, n, u[r], expected[r], *rest)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 32])
def test_reduced_and_multiplied_at_once(n):
    random = np.random.default_rng(n)
    matrix, (u, v) = triangle_of(random, above=np.inf), random.normal(size=(2, 33))
    found, expected = (matrix.copy(), np.zeros(33)), (matrix.copy(), np.zeros(33))
    at_once(found[0], n, 0.3, v, u, found[1])
    one_by_one(expected[0], n, 0.3, v, u, expected[1])
    assert np.array_equal(unpacked(found[0], 33), unpacked(expected[0], 33))
    assert np.array_equal(found[1], expected[1])
    change = np.tril(0.3 * np.outer(v[:n], v[:n]))
    reduced = unpacked(matrix, n) - unpacked(found[0], n)
    np.testing.assert_allclose(reduced, change, atol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 32])
def test_products_with_a_triangle(n):
    random = np.random.default_rng(n)
    matrix, u = triangle_of(random), random.normal(size=33)
    found = np.full((3, 33), 7.0)
    all_triangular(matrix, n, u, *found)
    lower = unpacked(matrix, n)
    symmetric = lower + np.tril(lower, -1).T
    expected = [lower @ u[:n], lower.T @ u[:n], symmetric @ u[:n]]
    np.testing.assert_allclose(found[:, :n], np.reshape(expected, (3, n)), atol=1e-13)
    assert np.all(found[:, n:] == 7.0)
