"""Roots, inverses and products of triangles, against NumPy."""

import numpy as np
import pytest

from kernelstream.core.elimination import eliminate, spread_values, square_product


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 64])
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_matrix_and_its_root_are_inverted(n, everywhere):
    rows = np.random.default_rng(n).normal(size=(n, 3 * n))
    matrix = rows @ rows.T + np.eye(n)
    inverse = np.linalg.inv(matrix if everywhere else np.linalg.cholesky(matrix))
    above, found = np.triu(np.full((n, n), np.nan), 1), np.full((n, n), 7.0)
    eliminate(np.tril(matrix) + above, everywhere, found)  # only the lower triangle is looked at
    np.testing.assert_allclose(np.tril(found), np.tril(inverse), rtol=1e-10, atol=1e-13)
    assert np.all(found[np.triu_indices(n, 1)] == 7.0)


@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_root_that_is_none_is_not_a_number(place):
    matrix, found = np.eye(7), np.zeros((7, 7))
    matrix[place, place] = -1.0
    eliminate(matrix, False, found)
    assert not np.isfinite(found.diagonal()).all()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 31, 64])
def test_values_and_their_covariance_in_other_coordinates(n):
    random = np.random.default_rng(n)
    inverse = np.tril(random.normal(size=(n, n)), -1) / max(1, n) + np.eye(n)
    left = np.tril(random.normal(size=(n, n)))
    rows = random.normal(size=(n, 3 * n))
    covariance = rows @ rows.T + np.eye(n)
    above = np.triu(np.full((n, n), np.nan), 1)  # is not looked at
    values, spread, found = np.zeros((3, n, n))
    spread_values(inverse + above, np.tril(covariance) + above, values, spread)
    expected = np.linalg.inv(inverse)
    np.testing.assert_allclose(values, np.tril(expected), rtol=1e-10, atol=1e-12)
    expected = expected @ np.linalg.cholesky(covariance)
    np.testing.assert_allclose(spread, np.tril(expected), rtol=1e-10, atol=1e-12)
    square_product(left + above, spread + above, found)
    expected = np.tril(left @ expected @ expected.T @ left.T)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("place", [0, 3, 6])
def test_values_without_a_covariance_are_still_known(place):
    covariance, (values, spread) = np.eye(7), np.zeros((2, 7, 7))
    covariance[place, place] = -1e-9
    spread_values(2.0 * np.eye(7), covariance, values, spread)
    assert np.array_equal(values, 0.5 * np.eye(7))
    assert not np.isfinite(spread.diagonal()).all()
