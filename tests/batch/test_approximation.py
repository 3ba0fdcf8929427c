"""Approximations of a kernel matrix, against their definitions."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from kernelstream.batch import improved_nystroem, meka, shifted_nystroem
from kernelstream.kernels import Gaussian

X = np.random.default_rng(0).normal(size=(60, 2))
NEAR, SHARP = Gaussian(0.3), Gaussian(20.0)


def test_improved_nystroem_interpolates_at_the_centres():
    """E W^-1 E' is the kernel of the projections on the span of the centres."""
    found = improved_nystroem(NEAR, X, 8, random_state=np.random.RandomState(3))
    centres = KMeans(8, n_init=1, random_state=np.random.RandomState(3)).fit(X).cluster_centers_
    solved = np.linalg.solve(NEAR(centres), NEAR(X, centres).T)
    assert np.allclose(found.matrix(), NEAR(X, centres) @ solved, atol=1e-6)


@pytest.mark.parametrize("kernel", [NEAR, SHARP])
def test_a_shift_and_a_core_are_the_best_of_all(kernel):
    """Least squares over all entries of U and the shift, solved as one plain problem."""
    points = 5
    found = shifted_nystroem(kernel, X, points, random_state=0)
    K, C = kernel(X), found.factor
    columns = [np.outer(C[:, a], C[:, b]).ravel() for a in range(points) for b in range(points)]
    system = np.column_stack([*columns, np.eye(len(X)).ravel()])
    best = np.linalg.lstsq(system, K.ravel(), rcond=None)[0]
    assert found.shift == pytest.approx(best[-1], abs=1e-6)
    assert np.allclose(found.matrix().ravel(), system @ best, atol=1e-6)
    assert any(np.array_equal(C[:, 0], column) for column in K.T)


def test_a_shift_helps_where_eigenvalues_fall_slowly():
    shifted = shifted_nystroem(SHARP, X, 10, random_state=0)
    without = shifted._replace(shift=0.0)
    K = SHARP(X)
    assert np.linalg.norm(shifted.matrix() - K) < 0.5 * np.linalg.norm(without.matrix() - K)


def test_meka_with_all_points_and_one_part_is_the_kernel():
    assert np.allclose(meka(NEAR, X, 60, clusters=1).matrix(), NEAR(X), atol=1e-6)


def test_mekas_blocks_are_nystroem_within_and_least_squares_between():
    found = meka(NEAR, X, 30, clusters=2, random_state=0)
    labels = KMeans(2, n_init=1, random_state=np.random.RandomState(0)).fit(X).labels_
    one, two = (np.flatnonzero(labels == part) for part in (0, 1))
    K, matrix = NEAR(X), found.matrix()
    assert np.allclose(matrix, matrix.T)
    assert np.allclose(matrix[np.ix_(one, one)], K[np.ix_(one, one)], atol=1e-3)
    assert np.allclose(matrix[np.ix_(one, two)], K[np.ix_(one, two)], atol=0.02)


def test_meka_leaves_blocks_out_below_the_threshold():
    found = meka(SHARP, X, 12, clusters=3, threshold=2.0, random_state=0)
    labels = KMeans(3, n_init=1, random_state=np.random.RandomState(0)).fit(X).labels_
    apart = labels[:, None] != labels[None]
    assert (found.matrix()[apart] == 0.0).all()
    assert (meka(SHARP, X, 12, clusters=3, random_state=0).matrix()[apart] != 0.0).any()


@pytest.mark.parametrize("make", [improved_nystroem, shifted_nystroem, meka])
def test_more_points_than_samples_are_refused(make):
    with pytest.raises(ValueError, match="at most all"):
        make(NEAR, X, 61)
