"""Roots, inverses and products of triangles, against NumPy."""

import numpy as np
import pytest

from kernelstream.core.elimination import eliminate, fill_up, spread_values, square_product


def in_blocks(lower):
    """As the functions take it; nothing else of the matrix is looked at."""
    rows = len(lower)
    n = -(-rows // 4) * 4
    matrix = np.full((n, n), np.nan)
    matrix[:rows, :rows] = np.where(np.tri(rows, dtype=bool), lower, np.nan)
    fill_up(matrix, rows)
    return matrix


def test_a_triangle_in_blocks():
    found = in_blocks(np.arange(1.0, 26.0).reshape(5, 5))
    expected = np.zeros((8, 8))
    expected[:5, :5] = np.tril(np.arange(1.0, 26.0).reshape(5, 5))
    expected[range(5, 8), range(5, 8)] = 1.0
    expected[:4, 4:] = np.nan
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 64])
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_matrix_and_its_root_are_inverted(n, everywhere):
    rows = np.random.default_rng(n).normal(size=(n, 3 * n))
    matrix = rows @ rows.T + np.eye(n)
    inverse = np.linalg.inv(matrix if everywhere else np.linalg.cholesky(matrix))
    found = in_blocks(matrix)
    eliminate(found, everywhere)
    np.testing.assert_allclose(np.tril(found[:n, :n]), np.tril(inverse), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_root_that_is_none_is_not_a_number(place):
    matrix = np.eye(7)
    matrix[place, place] = -1.0
    found = in_blocks(matrix)
    eliminate(found, False)
    assert not np.isfinite(found.diagonal()[:7]).all()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 64])
def test_values_and_their_covariance_in_other_coordinates(n):
    random = np.random.default_rng(n)
    inverse = np.tril(random.normal(size=(n, n)), -1) / max(1, n) + np.eye(n)
    left = np.tril(random.normal(size=(n, n)))
    rows = random.normal(size=(n, 3 * n))
    covariance = rows @ rows.T + np.eye(n)
    values = in_blocks(inverse)
    spread, product = np.full((2, *values.shape), np.nan)
    spread_values(values, in_blocks(covariance), spread)
    expected = np.linalg.inv(inverse)
    np.testing.assert_allclose(np.tril(values[:n, :n]), np.tril(expected), rtol=1e-10, atol=1e-12)
    expected = expected @ np.linalg.cholesky(covariance)
    np.testing.assert_allclose(np.tril(spread[:n, :n]), np.tril(expected), rtol=1e-10, atol=1e-12)
    square_product(in_blocks(left), spread, product)
    expected = np.tril(left @ expected @ expected.T @ left.T)
    np.testing.assert_allclose(np.tril(spread[:n, :n]), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("place", [0, 3, 6])
def test_values_without_a_covariance_are_still_known(place):
    covariance, values = np.eye(7), in_blocks(2.0 * np.eye(7))
    covariance[place, place] = -1e-9
    spread = np.zeros((8, 8))
    spread_values(values, in_blocks(covariance), spread)
    assert np.array_equal(np.tril(values)[:7, :7], 0.5 * np.eye(7))
    assert not np.isfinite(spread.diagonal()[:7]).all()
