import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream.core import kernel
from kernelstream.core.kernel import FEW_FEATURES, exponentials, first_bad_entry, self_value
from tests.core.tools import KERNELS, from_python, gaussian, kernel_matrix, program, rows_of, size
from tests.naive import kernels as naive

WIDTHS = [1, 2, 5, FEW_FEATURES, FEW_FEATURES + 1, 41]
RADIAL = ["gaussian", "laplacian", "matern12", "matern32", "matern52"]


def samples(width, count=7, seed=0, zeros=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, width)) / math.sqrt(width)
    return np.where(rng.random(X.shape) < zeros, 0.0, X)


def close(values, expected, tolerance=1e-13):
    return np.abs(values - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("count", [1, 7], ids=["one sample", "several"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", KERNELS)
def test_values_equal_the_twin(name, width, count, sparse):
    compiled, twin = KERNELS[name]
    X = samples(width, count, seed=1, zeros=0.4 if sparse else 0.0)
    Z = samples(width, 9, seed=2, zeros=0.4)
    Z[3] = X[0]
    values, norms = kernel_matrix(compiled, X, Z, sparse)
    assert close(values, naive.matrix(twin, X, Z))
    assert norms[:, 0] == pytest.approx((X**2).sum(axis=1), rel=1e-13)
    assert norms[:, 1] == pytest.approx(np.abs(X).sum(axis=1), rel=1e-13)


@pytest.mark.parametrize("name", KERNELS)
def test_self_value_is_the_diagonal(name):
    compiled, twin = KERNELS[name]
    for x in samples(6):
        assert self_value(compiled, float(np.sum(x * x))) == pytest.approx(twin(x, x), rel=1e-13)


def test_a_large_product_equals_the_twin():
    X, Z = samples(size(60, 20), 40, seed=1), samples(size(60, 20), 30, seed=2)
    values, _ = kernel_matrix(gaussian(2.0), X, Z)
    assert close(values, naive.matrix(naive.gaussian(2.0), X, Z))


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("width", [2, FEW_FEATURES + 4])
@pytest.mark.parametrize("name", RADIAL)
def test_far_from_the_origin_no_digits_are_lost(name, width, sparse, count):
    """|d|^2 - 2 d.x + |x|^2 alone would keep four digits of a distance of 1 at 1e6."""
    if sparse and name == "laplacian":
        pytest.skip("sparse samples are corrections of |d|_1: sums of 1e6 keep ten digits")
    compiled, twin = KERNELS[name]
    X, Z = 1e6 + samples(width, count, seed=1), 1e6 + samples(width, 8, seed=2)
    Z[1] = X[0]
    Z[2] = X[0] + 1e-5
    values, _ = kernel_matrix(compiled, X, Z, sparse)
    assert close(values, naive.matrix(twin, X, Z), 1e-12)
    assert values[0, 1] == 1.0


@pytest.mark.parametrize("empty", [0, 1, 2, 3])
def test_cancellation_with_features_that_the_sample_lacks(empty):
    """A sparse sample's distance counts the points' other features, before and after its own."""
    X = np.full((1, 4), 1e6)
    X[0, empty] = 0.0
    Z = X + np.array([[0.3, -0.2, 0.5, 0.4], [0.0, 0.0, 0.0, 0.0], [1.0, 0.1, -0.3, 0.2]])
    values, _ = kernel_matrix(gaussian(0.7), X, Z, sparse=True)
    assert close(values, naive.matrix(naive.gaussian(0.7), X, Z))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("width", [2, FEW_FEATURES + 4])
@pytest.mark.parametrize("name", RADIAL)
def test_huge_numbers_give_zero_or_one(name, width, sparse):
    compiled, _ = KERNELS[name]
    X = np.full((2, width), 1e150)
    Z = np.stack([X[0], -X[0], np.zeros(width), np.full(width, 9e149)])
    values, norms = kernel_matrix(compiled, X, Z, sparse)
    assert np.array_equal(values, [[1.0, 0.0, 0.0, 0.0]] * 2)
    assert np.isfinite(norms).all()


@pytest.mark.parametrize("name", RADIAL)
@pytest.mark.parametrize("gamma", [1e-300, 1e300, 1.7e308])
def test_extreme_widths_stay_within_zero_and_one(name, gamma):
    code = KERNELS[name][0].codes[0]
    X = samples(3)
    values, _ = kernel_matrix(program((code, gamma)), X, X)
    assert np.allclose(values, 1.0 if gamma < 1.0 else np.eye(len(X)))


exponentials_of_row = from_python(exponentials)


def exponential_of(rate, arguments):
    """exp(-rate * argument), by the compiled loop."""
    source, target = np.array([np.atleast_1d(arguments)]), np.empty((1, np.size(arguments)))
    with np.errstate(all="ignore"):  # without the compiler: infinity less infinity, not used
        exponentials_of_row(source, 0, float(rate), source.shape[1], target, 0)
    return target[0]


@given(st.floats(1e-300, 1e300), st.floats(0.0, 707.9))
def test_exponentials_are_accurate(rate, power):
    x = power / rate
    exact = math.exp(-(rate * x))
    assert abs(exponential_of(rate, x)[0] - exact) <= (1e-15 + 5e-16 * power) * exact


def test_exponentials_on_a_fine_grid():
    x = np.concatenate([np.linspace(0.0, 707.9, size(200_000, 3000)), np.logspace(-300, 2, 1000)])
    expected = np.exp(-x)
    error = np.abs(exponential_of(1.0, x) - expected)
    assert (error <= (1e-15 + 3e-16 * x) * expected).all()
    assert error.max() <= 1e-15


def test_exponentials_at_the_ends():
    assert exponential_of(1.0, [0.0, -0.0]).tolist() == [1.0, 1.0]
    assert exponential_of(1.0, 707.99) <= 1e-307
    assert exponential_of(1.0, [708.0, 1e300, math.inf]).tolist() == [0.0, 0.0, 0.0]
    for rate in (np.nextafter(0.0, 1.0), np.finfo(float).max):  # neither may spoil the value at 0
        assert exponential_of(rate, [0.0, math.inf]).tolist() == [1.0, 0.0]


vectors = st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4)


@settings(max_examples=size(100, 30))
@given(st.lists(vectors, min_size=1, max_size=4), st.lists(vectors, min_size=1, max_size=4))
def test_dense_and_sparse_agree(X, Z):
    X, Z = np.array(X), np.array(Z)
    for name in RADIAL:
        dense, _ = kernel_matrix(KERNELS[name][0], X, Z)
        sparse, _ = kernel_matrix(KERNELS[name][0], X, Z, sparse=True)
        assert np.abs(dense - sparse).max() <= 1e-10


def test_only_the_first_points_are_used():
    """Columns beyond n are spare capacity and may hold anything."""
    compiled, twin = KERNELS["product of sums"]
    for width in (3, FEW_FEATURES + 3):
        X, Z = samples(width, 3, seed=1), samples(width, 4, seed=2)
        points = np.full((width, 9), np.nan)
        points[:, :4] = Z.T
        norms = np.full((2, 9), np.nan)
        norms[0, :4], norms[1, :4] = (Z**2).sum(axis=1), np.abs(Z).sum(axis=1)
        out = np.full((3, 9), 5.0)
        kernel.kernel_rows(
            compiled, rows_of(X), 1, 2, points, norms[0], norms[1], 4, out, np.empty((2, 2))
        )
        assert close(out[:2, :4], naive.matrix(twin, X[1:], Z))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.1e150])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_the_first_bad_entry_is_found(bad, sparse):
    X = samples(5, 6)
    X[0, :2] = 0.0
    assert first_bad_entry(rows_of(X, sparse), 1e150) == (-1, -1)
    X[4, 3] = X[4, 4] = X[5, 0] = bad
    assert first_bad_entry(rows_of(X, sparse), 1e150) == (4, 3)
