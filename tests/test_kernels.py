"""Kernels against scikit-learn's, and as values."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import pairwise

from kernelstream.kernels import (
    KERNEL_NAMES,
    Gaussian,
    Laplacian,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Polynomial,
    Product,
    Scaled,
    Sum,
    first_gamma,
    kernel_from_config,
    make_kernel,
)
from kernelstream.rows import as_rows

X = np.random.default_rng(0).normal(size=(7, 3))
Y = np.random.default_rng(1).normal(size=(5, 3))

REFERENCES = {
    Gaussian(0.7): lambda X, Y: pairwise.rbf_kernel(X, Y, gamma=0.7),
    Laplacian(0.3): lambda X, Y: pairwise.laplacian_kernel(X, Y, gamma=0.3),
    Matern12(0.4): Matern(length_scale=1.0 / np.sqrt(0.8), nu=0.5),
    Matern32(0.4): Matern(length_scale=1.0 / np.sqrt(0.8), nu=1.5),
    Matern52(0.4): Matern(length_scale=1.0 / np.sqrt(0.8), nu=2.5),
    Polynomial(3, 0.5, 2.0): lambda X, Y: pairwise.polynomial_kernel(X, Y, 3, 0.5, 2.0),
    Linear(): pairwise.linear_kernel,
}

simple = st.sampled_from(list(REFERENCES))
kernels = st.recursive(
    simple,
    lambda inner: (
        st.builds(Sum, inner, inner)
        | st.builds(Product, inner, inner)
        | st.builds(Scaled, inner, st.floats(0.01, 10.0))
    ),
    max_leaves=6,
)


def reference(kernel, X, Y):
    if isinstance(kernel, Sum):
        return reference(kernel.first, X, Y) + reference(kernel.second, X, Y)
    if isinstance(kernel, Product):
        return reference(kernel.first, X, Y) * reference(kernel.second, X, Y)
    if isinstance(kernel, Scaled):
        return kernel.factor * reference(kernel.kernel, X, Y)
    return REFERENCES[kernel](X, Y)


@given(kernels)
@settings(max_examples=60)
def test_values(kernel):
    expected = reference(kernel, X, Y)
    for form in (np.asarray, csr_array, np.asfortranarray, np.ndarray.tolist):
        assert np.allclose(kernel(form(X), form(Y)), expected, rtol=1e-10, atol=1e-12)
        assert np.allclose(kernel.diagonal(form(X)), np.diag(reference(kernel, X, X)), rtol=1e-10)
    assert np.allclose(kernel(X), reference(kernel, X, X), rtol=1e-10, atol=1e-12)


@given(kernels)
@settings(max_examples=40)
def test_positive_semi_definite(kernel):
    gram = kernel(X)
    eigenvalues = np.linalg.eigvalsh(gram)
    assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]


@given(kernels)
@settings(max_examples=60)
def test_config_and_pickle_round_trip(kernel):
    kernel(X)
    for again in (kernel_from_config(kernel.to_config()), pickle.loads(pickle.dumps(kernel))):
        assert again == kernel
        assert repr(again) == repr(kernel)
        assert hash(again) == hash(kernel)
        assert np.array_equal(again(X), kernel(X))


def test_operators():
    assert Gaussian(1.0) + Linear() == Sum(Gaussian(1.0), Linear())
    assert Gaussian(1.0) * Linear() == Product(Gaussian(1.0), Linear())
    assert 2 * Linear() == Linear() * 2.0 == Scaled(Linear(), 2.0)
    assert np.float32(2.0) * Linear() == Scaled(Linear(), 2.0)
    assert Gaussian(1.0) != Laplacian(1.0)
    for wrong in (lambda: Linear() + 1, lambda: Linear() * "2"):
        with pytest.raises(TypeError):
            wrong()


def test_numbers_become_plain():
    kernel = Polynomial(np.int64(2), np.float32(0.5), 1)
    assert kernel == Polynomial(2, 0.5, 1.0)
    assert [type(value) for value in kernel.to_config().values()] == [str, int, float, float]


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_names(name):
    kernel = make_kernel(name, 0.5, 2, 1.5)
    assert getattr(kernel, "gamma", 0.5) == 0.5
    assert getattr(kernel, "degree", 2) == 2
    assert make_kernel(kernel, 9.0, 9, 9.0) is kernel


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "1", None, True, 1j])
def test_bad_numbers_are_refused(value):
    for make in (Gaussian, Laplacian, Matern12, Matern32, Matern52, lambda v: Polynomial(2, v)):
        with pytest.raises(ValueError, match="gamma must be a finite number > 0"):
            make(value)
    with pytest.raises(ValueError, match="factor"):
        Scaled(Linear(), value)


@pytest.mark.parametrize("degree", [0, -1, 65, 2.0, "2", True])
def test_bad_degrees_are_refused(degree):
    with pytest.raises(ValueError, match="whole number from 1 to 64"):
        Polynomial(degree)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_bad_samples_are_refused(bad):
    damaged = X.copy()
    damaged[4, 2] = bad
    for wrong in ((damaged,), (X, damaged), (csr_array(damaged),)):
        with pytest.raises(ValueError, match="row 4, column 2"):
            Gaussian(1.0)(*wrong)
    with pytest.raises(ValueError, match="3 features, but Y has 2"):
        Gaussian(1.0)(X, Y[:, :2])
    with pytest.raises(ValueError, match="one row per sample"):
        Gaussian(1.0)(X[0])


def test_gamma_of_scale_is_that_of_all_samples_together_wherever_they_lie():
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[X < 0.0] = 0.0
    expected = 1.0 / (4 * X.var())
    parts = [as_rows(part) for part in (X[:7], csr_array(X[7:20]), X[20:])]
    assert first_gamma("scale", *parts) == pytest.approx(expected, rel=1e-14)
    shifted = [as_rows(part + 1e8) for part in (X[:20], X[20:])]
    assert first_gamma("scale", *shifted) == pytest.approx(expected, rel=1e-6)
    assert first_gamma("auto", *parts) == 0.25
    assert first_gamma(3, *parts) == 3.0
    assert first_gamma("scale", as_rows(np.ones((5, 2)))) == 1.0  # nothing varies
