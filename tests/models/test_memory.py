"""Memory is a contract: the closed form of the docstring and the caps, after every call."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream import (
    IllConditionedError,
    POLKRegressor,
)
from kernelstream.models._base import KernelEstimator
from tests.models.tools import (
    CLASSIFIERS,
    ESTIMATORS,
    FORMS,
    assert_within_closed_form,
    capped,
    drawn,
    every,
    having,
    in_bytes,
    in_pieces,
    is_fitted,
    stream,
    with_komp,
)


def assert_within_contract(model):
    if isinstance(model.max_bytes, int):
        assert model.nbytes_ <= model.max_bytes
    # nbytes_ is the truth: all that a pickle carries besides is names and parameters.
    assert len(pickle.dumps(model)) <= model.nbytes_ + 8000
    if isinstance(model, KernelEstimator):
        assert_within_closed_form(model)


class _LeakyRegressor(POLKRegressor):
    """Remembers every sample."""

    def partial_fit(self, X, y, sample_weight=None):
        self._history = [*getattr(self, "_history", []), X.copy()]
        return super().partial_fit(X, y, sample_weight)


def test_the_contract_notices_a_leak():
    X, y = stream(POLKRegressor, n=500)
    assert_within_contract(in_pieces(POLKRegressor(), X, y, 1))
    leaky = in_pieces(_LeakyRegressor(), X, y, 1)
    with pytest.raises(AssertionError, match="pickle"):
        assert_within_contract(leaky)


CAPPED = {
    "max_points": [None, 1, 10, 100],
    "slack": [0, 7],
    "max_bytes": [None, 3000, 30_000, 100_000],
    "compression_error": [0.0, 0.05, 0.5],
    "batch_size": [1, 2, 8, 32],
    "average": [False, True],
    "average_horizon": [None, 5, 0.3],
    "tracking": ["momentum", "average"],
    "delta": ["auto", 0.1, 2.0],
    "exact_probability": [0.0, 0.05, 10.0],
}


@capped
@given(data=st.data())
@settings(max_examples=120)
def test_memory_is_a_contract(data):
    estimator_class = data.draw(st.sampled_from(ESTIMATORS))
    features = data.draw(st.sampled_from([1, 3, 20]))
    special = drawn(data.draw, estimator_class, CAPPED)
    if special.get("batch_size", 1) > 1:  # batches have no slack
        special.pop("slack", None)
    if special.get("max_bytes"):
        special["max_bytes"] *= in_bytes(estimator_class)
    model = estimator_class(random_state=0, **special)
    X, y = stream(estimator_class, n=300, features=features, classes=2)
    if estimator_class in CLASSIFIERS:
        y = y + np.arange(len(y)) // 40 * data.draw(st.sampled_from([0, 1]))  # a new one at times
    form = FORMS[data.draw(st.sampled_from(sorted(FORMS)))]
    first = 0
    while first < len(y):
        size = data.draw(st.sampled_from([1, 5, 50, 100]))
        try:
            model.partial_fit(form(X[first : first + size]), y[first : first + size])
        except (ValueError, IllConditionedError):
            if not is_fitted(model):
                return
        assert_within_contract(model)
        first += size


@every
@capped
def test_caps_can_be_lowered_on_the_way(estimator_class):
    X, y = stream(estimator_class, n=300)
    small = having(estimator_class, compression_error=0.0, eta0=0.1, delta=0.1)
    for n in range(20, 60):  # whatever the spare capacity is
        model = estimator_class(**small).partial_fit(X[:n], y[:n])
        model.set_params(max_points=10).partial_fit(X[n : n + 2], y[n : n + 2])
        assert_within_contract(model)
        model.set_params(max_bytes=3000 * in_bytes(estimator_class)).partial_fit(
            X[n : n + 2], y[n : n + 2]
        )
        assert_within_contract(model)


@with_komp
def test_memory_is_given_back_after_learn_one(estimator_class):
    X, y = stream(estimator_class, n=150)
    model = estimator_class(compression_error=0.0, gamma=5.0).partial_fit(X, y)
    assert model.model_order_ > 80
    model.set_params(compression_error=50.0)
    for x, target in zip(X[:5], y, strict=False):
        model.learn_one(x, target)
    assert model.model_order_ == 0
    assert_within_contract(model)


@with_komp
def test_learn_one_meets_a_lowered_cap_as_partial_fit_does(estimator_class):
    X, y = stream(estimator_class, n=150)
    one, all_at_once = (
        estimator_class(compression_error=0.0, gamma=5.0, random_state=0).partial_fit(X, y)
        for _ in range(2)
    )
    before = one.set_params(max_points=20).fingerprint()
    with pytest.raises(ValueError, match="NaN"):
        one.learn_one(np.full(X.shape[1], np.nan), y[0])
    assert one.fingerprint() == before
    for x, target in zip(X[:5], y, strict=False):
        one.learn_one(x, target)
    assert (one._call[0] is not None) == one._lean  # straight into compiled code again
    all_at_once.set_params(max_points=20).partial_fit(X[:5], y[:5])
    assert one.fingerprint() == all_at_once.fingerprint()
