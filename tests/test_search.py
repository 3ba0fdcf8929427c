"""Ranges of parameters: declared beside them, accepted by them, and what searches draw from."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingRandomSearchCV,
    ParameterSampler,
    RandomizedSearchCV,
)

from kernelstream import AVMClassifier, POLKClassifier, POLKRegressor, registry
from kernelstream.parameters import parameters_of
from kernelstream.search import Choices, LogRange, search_space

ESTIMATORS = [
    kind
    for method in registry.models().values()
    for kind in method.estimators
    if method.name != registry.DEFAULT  # which has nothing to search
]


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_candidate_is_accepted(kind):
    for parameters in ParameterSampler(search_space(kind, 1 / 8), 20, random_state=0):
        model = kind(**parameters)
        model._check_parameters(fresh=True)
        for name, parameter in parameters_of(kind).items():
            assert parameter.accepts(getattr(model, name)), name


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_what_bounds_memory_is_not_searched(kind):
    assert not {"max_points", "max_bytes", "random_state"} & set(search_space(kind, 1.0))


def test_the_first_parameters_to_try_are_searched():
    for method in registry.models().values():
        wanted = set(method.try_first) - {"max_points", "initial_points"}
        for kind in method.estimators:
            assert wanted <= set(search_space(kind, 1.0)), kind


def test_ranges_keep_to_their_ends_and_orders_of_magnitude():
    wide = LogRange(1e-4, 1.0)
    assert wide.at(0.0, 9.0) == pytest.approx(1e-4)
    assert wide.at(0.25, 9.0) == pytest.approx(1e-3)
    drawn = wide.distribution(9.0).rvs(size=2000, random_state=0)
    assert 1e-4 <= drawn.min() < 1.2e-4 < 0.8 < drawn.max() <= 1.0
    assert np.median(drawn) == pytest.approx(1e-2, rel=0.5)


def test_ranges_follow_the_columns():
    assert LogRange(1.0, 4.0, unit="gamma").at(0.5, 1 / 16) == pytest.approx(2.0 / 16)
    assert LogRange(1.0, 4.0, unit="distance").at(0.5, 1 / 16) == pytest.approx(2.0 * 4.0)


def test_choices_are_all_reached():
    three = Choices("a", "b", "c")
    assert [three.at(place, 1.0) for place in (0.0, 0.5, 0.99)] == ["a", "b", "c"]


# ---- scikit-learn's searches --------------------------------------------------------------


def rings(n=400):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 2))
    return X, (np.hypot(*X.T) > 1.2).astype(int)


def test_grid_search():
    X, y = rings()
    grid = {"eta0": [1e-6, 0.5], "gamma": [1.0]}
    found = GridSearchCV(POLKClassifier(random_state=0, n_epochs=1), grid, cv=3).fit(X, y)
    assert found.best_params_["eta0"] == 0.5
    assert found.best_score_ > 0.85
    assert found.best_estimator_.model_order_ > 1


def test_halving_random_search():
    X, y = rings()
    search = HalvingRandomSearchCV(
        AVMClassifier(random_state=0, n_epochs=1), search_space(AVMClassifier, 1 / 2),
        n_candidates=8, factor=2, cv=2, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert search.n_candidates_[0] == 8
    assert search.n_resources_[-1] > search.n_resources_[0]
    assert search.best_score_ > 0.8
    assert set(search.best_params_) == set(search_space(AVMClassifier, 1.0))


def test_randomised_search_of_a_regressor():
    X, _ = rings()
    y = np.sin(2.0 * X[:, 0])
    model = POLKRegressor(random_state=0, n_epochs=1)
    space = search_space(POLKRegressor, 1 / 2)
    found = RandomizedSearchCV(model, space, n_iter=4, cv=2, random_state=0).fit(X, y)
    assert found.best_score_ > 0.3
    again = clone(model).set_params(**found.best_params_).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
