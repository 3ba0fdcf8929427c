"""Methods that keep samples as points: what they say of themselves, and their caps."""

import warnings

import numpy as np
import pytest

import kernelstream
from kernelstream import (
    BSGDClassifier,
    CapWarning,
    KernelPAClassifier,
    KernelPARegressor,
    KernelPerceptronClassifier,
    Loss,
    NORMAClassifier,
    NORMARegressor,
    NPBSGDClassifier,
    NPBSGDRegressor,
    OGDClassifier,
    OGDRegressor,
    PegasosClassifier,
    WindowedOGDClassifier,
)
from tests.models.tools import stream

UNBUDGETED = [
    KernelPerceptronClassifier, OGDClassifier, OGDRegressor, PegasosClassifier, KernelPAClassifier,
    KernelPARegressor,
]  # fmt: skip


@pytest.mark.parametrize("kind", UNBUDGETED)
def test_methods_without_a_budget_say_once_that_a_cap_was_reached(kind):
    X, y = stream(kind, 400)
    model = kind(max_points=10, random_state=0)
    with pytest.warns(CapWarning, match="max_points=10 made room .* without a cap") as caught:
        model.partial_fit(X[:300], y[:300])
    assert len(caught) == 1
    forced = model.n_forced_
    model.partial_fit(X[300:], y[300:])  # a warning would be an error
    assert model.n_forced_ > forced > 0
    assert model.model_order_ == 10
    with pytest.warns(CapWarning):
        model.fit(X, y)


@pytest.mark.parametrize("kind", UNBUDGETED)
def test_without_a_cap_every_step_is_a_point(kind):
    X, y = stream(kind, 400)
    model = kind(max_points=None, random_state=0).partial_fit(X, y)
    assert model.n_forced_ == 0
    assert model.model_order_ == model._state.status[0]["taken"] > 10


def test_capped_ogd_is_ogd_in_a_window():
    X, y = stream(OGDClassifier, 400)
    window = WindowedOGDClassifier(max_points=10, alpha=0.01).partial_fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapWarning)
        capped = OGDClassifier(max_points=10, alpha=0.01).partial_fit(X, y)
    assert np.array_equal(window.decision_function(X), capped.decision_function(X))


@pytest.mark.parametrize("kind", [NORMAClassifier, NORMARegressor])
def test_the_width_that_norma_learned(kind, tmp_path):
    X, y = stream(kind, 400)
    model = kind(nu=0.3).partial_fit(X, y)
    name = "margin_" if kind is NORMAClassifier else "epsilon_"
    assert getattr(model, name) > 0.0
    model.save(tmp_path / "model.ks")
    assert getattr(kernelstream.load(tmp_path / "model.ks"), name) == getattr(model, name)


def test_only_the_product_of_step_and_regularisation_matters_to_norma():
    X, y = stream(NORMAClassifier, 400, classes=3)
    small = NORMAClassifier(eta0=0.125, alpha=2.0**-6).partial_fit(X, y)
    large = NORMAClassifier(eta0=1.0, alpha=2.0**-9).partial_fit(X, y)
    assert np.allclose(8.0 * small.decision_function(X), large.decision_function(X))
    assert np.isclose(8.0 * small.margin_, large.margin_)


def test_npbsgd_begins_as_bsgd():
    X, y = stream(BSGDClassifier, 400)
    fixed = BSGDClassifier(max_points=20).partial_fit(X, y)
    still = NPBSGDClassifier(initial_points=20, growth_delay=1e9).partial_fit(X, y)
    assert np.array_equal(fixed.decision_function(X), still.decision_function(X))
    assert still.n_forced_ == 0 < fixed.n_forced_  # its own rule made room, no cap
    grown = NPBSGDClassifier(initial_points=20, growth_delay=100.0, max_points=60, random_state=0)
    assert 20 < grown.partial_fit(X, y).model_order_ <= 60


def test_npbsgd_takes_no_loss_whose_slope_has_no_bound():
    with pytest.raises(ValueError, match="take loss='huber'"):
        NPBSGDRegressor(Loss("squared_error")).partial_fit([[0.0], [1.0]], [0.0, 1.0])


def test_points_of_no_length_can_be_halved():
    """A linear kernel and rows of zeros: nothing to divide by."""
    X, y = np.zeros((40, 1)), np.zeros(40, int)
    model = kernelstream.AhpatronClassifier(kernel="linear", max_points=5, random_state=0)
    model.partial_fit(X, y)
    assert np.isfinite(model.dual_coef_).all()
    assert model.error_spent_ == 0.0
