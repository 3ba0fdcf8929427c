"""Adaptive filters against naive twins that solve everything again for each sample."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from kernelstream.core.jit import INTERPRETED
from kernelstream.models.fixed_budget_krls import FixedBudgetKRLSRegressor
from kernelstream.models.klms import KLMSRegressor
from kernelstream.models.knlms import KNLMSRegressor
from kernelstream.models.krls import KRLSRegressor
from kernelstream.models.qklms import QKLMSRegressor
from kernelstream.models.sliding_krls import SlidingKRLSRegressor
from tests.core.tools import kinds_of_rows
from tests.naive import filters as naive
from tests.naive.filters import gaussian

N = 40 if INTERPRETED else 100
ROWS = {
    **kinds_of_rows(N),
    "wide": lambda random: random.normal(size=(N, 30)) / 3.0,
}
FILTERS = {
    KLMSRegressor: (naive.klms, {"eta0": 0.3}),
    QKLMSRegressor: (naive.qklms, {"eta0": 0.3, "radius": 0.7}),
    KNLMSRegressor: (naive.knlms, {"eta0": 0.4, "coherence": 0.8, "ridge": 0.02}),
    KRLSRegressor: (naive.krls, {"novelty": 0.01}),
    SlidingKRLSRegressor: (naive.sliding_krls, {"ridge": 0.05}),
    FixedBudgetKRLSRegressor: (naive.fixed_budget_krls, {"ridge": 0.05}),
}


def samples(kind, seed=0):
    random = np.random.default_rng(seed)
    X = ROWS[kind](random)
    if kind in ("random", "wide"):
        X[random.random(X.shape) < 0.2] = 0.0
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=len(X))


@pytest.mark.parametrize(
    ("kind", "most"), [*((kind, most) for kind in ROWS for most in (12, 200)), ("random", 1)]
)
@pytest.mark.parametrize("filter_class", FILTERS)
def test_the_twin_agrees(filter_class, kind, most):
    X, y = samples(kind)
    twin, parameters = FILTERS[filter_class]
    expected, points, weights = twin(
        lambda A, B: gaussian(A, B, 0.4), X, y, *parameters.values(), most
    )
    model = filter_class(gamma=0.4, max_points=most, **parameters)
    for made in (clone(model).predict_then_learn(csr_array(X), y), model.predict_then_learn(X, y)):
        np.testing.assert_allclose(made, expected, rtol=1e-6, atol=1e-7)
    places = [np.flatnonzero((points == point).all(axis=1)) for point in model.dictionary_]
    assert model.model_order_ == len(points)
    assert all(len(place) for place in places)
    test = np.random.default_rng(1).normal(size=(20, X.shape[1]))
    values = gaussian(test, points, 0.4) @ weights
    np.testing.assert_allclose(model.predict(test), values, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("filter_class", FILTERS)
def test_square_roots_keep_their_digits(filter_class):
    """After many samples least squares are still those of a fresh solve."""
    random = np.random.default_rng(0)
    n = 100 if INTERPRETED else 20_000
    X = random.normal(size=(n, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=n)
    model = filter_class(gamma=0.3, max_points=25, **FILTERS[filter_class][1]).partial_fit(X, y)
    state, order = model._state, model.model_order_
    if not state.factor.size:
        return
    K = gaussian(model.dictionary_, model.dictionary_, 0.3)
    if state.labels.size:
        K = K + model.ridge * np.eye(order)
        fresh = np.linalg.solve(K, state.labels[0, :order])
        np.testing.assert_allclose(model.dual_coef_[0], fresh, rtol=1e-8, atol=1e-8)
    S = state.factor[:order, :order]
    assert np.abs(S @ S.T @ K - np.eye(order)).max() < 1e-8


def test_spread_of_least_squares_is_that_of_all_samples():
    X, y = samples("random")
    model = KRLSRegressor(gamma=0.4, novelty=0.01).partial_fit(X, y)
    points, order = model.dictionary_, model.model_order_
    K = gaussian(points, points, 0.4)
    A, met = np.zeros((len(X), order)), 0
    for t, x in enumerate(X):
        if met < order and (x == points[met]).all():
            A[t, met], met = 1.0, met + 1
        else:
            A[t, :met] = np.linalg.solve(K[:met, :met], gaussian(points[:met], x[None], 0.4)[:, 0])
    G = model._state.spread[:order, :order]
    np.testing.assert_allclose(G @ G.T, np.linalg.inv(A.T @ A), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("filter_class", FILTERS)
@pytest.mark.parametrize("later", [5, 40])
def test_another_cap_on_the_way(filter_class, later):
    X, y = samples("random")
    half = N // 2
    twin, parameters = FILTERS[filter_class]
    model = filter_class(gamma=0.4, max_points=15, **parameters).partial_fit(X[:half], y[:half])
    points, before = model.dictionary_, model.predict(X)
    model.set_params(max_points=later).partial_fit(X[half : half + 1], y[half : half + 1])
    assert model.model_order_ <= later
    model.partial_fit(X[half + 1 :], y[half + 1 :])
    assert np.isfinite(model.predict(X)).all()
    if filter_class is SlidingKRLSRegressor and later == 5:  # its window is all it knows
        _, window, weights = twin(lambda A, B: gaussian(A, B, 0.4), X, y, 0.05, later)
        assert {*map(tuple, model.dictionary_)} == {*map(tuple, window)}
        np.testing.assert_allclose(model.predict(X), gaussian(X, window, 0.4) @ weights)
    if later == 40:  # nothing was lost when room was made
        again = filter_class(gamma=0.4, max_points=15, **parameters).partial_fit(X[:half], y[:half])
        again.set_params(max_points=40)
        again._resize(40)
        np.testing.assert_allclose(again.predict(X), before, rtol=1e-9, atol=1e-12)
        assert {*map(tuple, again.dictionary_)} == {*map(tuple, points)}


def test_weights_of_samples_are_repetitions_for_a_ridge():
    """A sample of weight 2 has half the noise: the same as twice the sample, in least squares."""
    X, y = samples("random")
    weighted = SlidingKRLSRegressor(gamma=0.4, ridge=0.1, max_points=200)
    weighted.partial_fit(X[:40], y[:40], sample_weight=np.full(40, 2.0))
    repeated = SlidingKRLSRegressor(gamma=0.4, ridge=0.1, max_points=200)
    repeated.partial_fit(np.repeat(X[:40], 2, axis=0), np.repeat(y[:40], 2))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6, atol=1e-8)
