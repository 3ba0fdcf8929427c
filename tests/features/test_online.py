"""Online kernel features as a user sees them."""

import numpy as np
import pytest

from kernelstream.features import (
    KernelFeatures,
    OnlineKernelFeatureClassifier,
    OnlineKernelFeatureRegressor,
    OnlineKernelFeatures,
)
from tests.core.tools import size
from tests.features.tools import FORMS, VARIANTS, in_pieces, small, stream
from tests.naive import features as naive


def spheres(n, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    X *= random.choice([1.0, 2.0], n)[:, None] / np.linalg.norm(X, axis=1)[:, None]
    return X + 0.1 * random.normal(size=(n, 3))


def gaussian(gamma):
    return lambda x, z: np.exp(-gamma * np.sum((x - z) ** 2))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", FORMS)
def test_features_and_fit_errors_are_those_of_the_factor(variant, form):
    """z, l and the approximation, from the stored samples and A alone (twin)."""
    X, _ = stream(OnlineKernelFeatures, n=60)
    model = small(OnlineKernelFeatures, **VARIANTS[variant]).partial_fit(FORMS[form](X))
    kernel = (
        (lambda x, z: (0.1 * (x @ z) + 1.0) ** 2) if variant == "polynomial" else gaussian(1 / 3)
    )
    parts = kernel, model.dictionary_, model.factor_, X[:20], model.alpha
    expected = naive.features(*parts)
    Z = model.transform(FORMS[form](X[:20]))
    assert Z.shape == (20, 5)
    assert np.allclose(Z @ Z.T, expected @ expected.T, atol=1e-7)
    assert np.allclose(model.kernel_approximation(X[:20], X[:3]), (Z @ Z.T)[:, :3], atol=1e-9)
    assert np.allclose(
        model.inverse_fit_error(FORMS[form](X[:20])), naive.fit_errors(*parts), atol=1e-7
    )
    assert np.array_equal(model.dictionary_, X[model.dictionary_numbers_])


def test_errors_while_learning_are_those_from_before():
    X, _ = stream(OnlineKernelFeatures)
    model = small(OnlineKernelFeatures, censoring="auto").partial_fit(X[:50])
    expected = []
    twin = small(OnlineKernelFeatures, censoring="auto").partial_fit(X[:50])
    for x in X[50:]:
        expected.append(twin.inverse_fit_error(x[None])[0])
        twin.partial_fit(x[None])
    errors = model.partial_fit_errors(X[50:])
    assert np.allclose(errors, expected, atol=1e-9)
    assert model.fingerprint() == twin.fingerprint()
    assert np.array_equal(model.fit_errors_[-150:], errors)
    assert model.fit_error_numbers_[-1] == 199
    assert 0.2 < model.censoring_rate_ < 0.8
    assert model.n_updates_ + round(model.censoring_rate_ * 195) == 195
    assert model.n_forced_ == model.n_updates_ - 6


def test_the_history_is_a_ring():
    X = np.random.default_rng(0).normal(size=(1300, 2))
    model = OnlineKernelFeatures(3, max_points=6)
    errors = model.partial_fit_errors(X)
    assert np.array_equal(model.fit_errors_, errors[-1000:])
    assert np.array_equal(model.fit_error_numbers_, np.arange(300, 1300))


@pytest.mark.parametrize(("gamma", "loose", "budgeted"), [(0.5, 1.15, 1.2), (0.01, 2.0, 2.5)])
def test_spheres_come_close_to_the_batch_solution(gamma, loose, budgeted):
    X = spheres(size(2000, 500))
    best = KernelFeatures(7, gamma=gamma, random_state=0).fit(X).inverse_fit_error(X).mean()
    for parameters, factor in (
        ({"solver": "parametric", "max_points": None}, loose),
        ({"solver": "nonparametric", "max_points": 35}, budgeted),
        ({"solver": "nonparametric", "max_points": 35, "step_size": "tracking"}, budgeted),
    ):
        model = OnlineKernelFeatures(7, gamma=gamma, **parameters).partial_fit(X)
        assert model.inverse_fit_error(X).mean() < factor * best


def test_alignment_keeps_features_of_old_samples_in_place():
    X = spheres(size(600, 200))

    def movement(align):
        model = OnlineKernelFeatures(
            6, max_points=18, gamma=0.5, align=align, solver="nonparametric", step_size="tracking"
        ).partial_fit(X[:100])
        moved = []
        for first in range(100, len(X), 50):
            before = model.transform(X[:100])
            moved.append(
                np.abs(model.partial_fit(X[first : first + 50]).transform(X[:100]) - before)
            )
        return np.mean(moved)

    assert movement(True) < 0.9 * movement(False)


def test_alignment_changes_the_basis_only():
    X, _ = stream(OnlineKernelFeatures)
    plain, aligned = (
        small(OnlineKernelFeatures, align=align).partial_fit(X) for align in (False, True)
    )
    assert np.array_equal(plain.dictionary_, aligned.dictionary_)
    assert np.allclose(plain.kernel_approximation(X), aligned.kernel_approximation(X), atol=1e-9)


def test_before_there_are_as_many_samples_as_features():
    model = OnlineKernelFeatures(5, gamma=1.0).partial_fit(np.eye(3))
    assert model.rank_ == 3
    Z = model.transform(np.eye(3))
    assert np.array_equal(Z[:, 3:], np.zeros((3, 2)))
    assert np.allclose(Z @ Z.T, model.kernel_(np.eye(3)), atol=2e-3)
    assert model.factor_.shape == (3, 5)
    flat = OnlineKernelFeatures(5, kernel="linear").partial_fit(
        np.random.default_rng(0).normal(size=(50, 2))
    )
    assert (flat.rank_, len(flat.dictionary_)) == (2, 2)
    assert flat.inverse_fit_error(np.eye(2)).max() < 1e-5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_points": 4}, "max_points=4 .* n_components=5"),
        ({"forgetting": 0.9}, "removal='recency'"),
        ({"censoring": "often"}, "censoring must be"),
        ({"censoring": "rate:2"}, "censoring must be"),
        ({"censoring": ("rate",)}, "censoring must be"),
        ({"censoring": -1.0}, "censoring"),
        ({"step_size": "constant"}, "step_size"),
        ({"n_components": 0}, "n_components"),
        ({"solver": "newton"}, "solver"),
        ({"basis": "any"}, "basis"),
    ],
)
def test_unusable_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        small(OnlineKernelFeatures, **parameters).partial_fit(np.eye(3))


def test_what_cannot_change_on_the_way():
    X, _ = stream(OnlineKernelFeatures)
    model = small(OnlineKernelFeatures).partial_fit(X)
    before = model.fingerprint()
    for change in ({"n_components": 4}, {"max_points": 20}, {"align": True}, {"gamma": 2.0}):
        original = {name: getattr(model, name) for name in change}
        with pytest.raises(ValueError, match="cannot change"):
            model.set_params(**change).partial_fit(X)
        model.set_params(**original)
    assert model.fingerprint() == before
    model.set_params(censoring=0.5, step_size="tracking").partial_fit(X)
    assert model.n_seen_ == 400


# The joint mode.


def test_joint_classifier_learns_what_a_line_cannot():
    X = spheres(size(3000, 600))
    y = (np.linalg.norm(X, axis=1) > 1.5).astype(int)
    model = OnlineKernelFeatureClassifier(15, max_points=30, gamma=0.5, random_state=0)
    said = model.predict_then_learn(X, y, classes=[0, 1])
    assert (said != y)[len(y) // 2 :].mean() < 0.1
    assert np.array_equal(model.predict(X), (model.expansion_(X) > 0.0).astype(int))
    assert model.score(X, y) > 0.9


def test_joint_classifier_follows_a_subspace_that_moves():
    """Full steps move the subspace at every sample; the learned function is carried along."""
    random = np.random.default_rng(0)
    X = random.normal(size=(size(3000, 600), 4))
    X[:, 2:] *= 0.1
    y = (X[:, 0] * X[:, 1] > 0.0).astype(int)
    model = OnlineKernelFeatureClassifier(10, max_points=40, gamma=0.3, step_size="tracking")
    said = model.predict_then_learn(X, y, classes=[0, 1])
    assert (said != y)[len(y) // 2 :].mean() < 0.2
    assert model.n_updates_ > 0.9 * len(y)


def test_three_classes_and_probabilities():
    X, y = stream(OnlineKernelFeatureClassifier, n=size(1500, 400), classes=3)
    model = OnlineKernelFeatureClassifier(loss="log_loss").partial_fit(X[:100], y[:100] % 2)
    model = in_pieces(model, X[100:], y[100:], 50)
    assert list(model.classes_) == [0, 1, 2]
    probabilities = model.predict_proba(X)
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert (probabilities.argmax(axis=1) == y)[100:].mean() > 0.6


def test_joint_regressor():
    X, y = stream(OnlineKernelFeatureRegressor, n=size(2000, 500))
    model = OnlineKernelFeatureRegressor(random_state=0)
    said = model.predict_then_learn(X, y)
    late = slice(len(y) // 2, None)
    assert np.mean((said - y)[late] ** 2) < 0.5 * np.var(y)
    assert np.allclose(model.predict(X), model.expansion_(X))


def test_steps_of_lms_never_overshoot():
    X, y = stream(OnlineKernelFeatureRegressor)
    model = OnlineKernelFeatureRegressor(
        5, max_points=11, kernel="poly", degree=3, gamma=10.0, eta0=1e6, weight_alpha=0.0
    ).partial_fit(X, 1e6 * y)
    assert np.abs(model.predict(X)).max() < 1e10


def test_sample_weight_zero_is_a_sample_that_never_came():
    X, y = stream(OnlineKernelFeatureClassifier)
    weight = (np.arange(200) % 3 > 0).astype(float)
    model = small(OnlineKernelFeatureClassifier)
    said = model.predict_then_learn(X, y, classes=[0, 1], sample_weight=weight)
    used = weight > 0.0
    other = small(OnlineKernelFeatureClassifier)
    expected = other.predict_then_learn(X[used], y[used], classes=[0, 1])
    assert model.fingerprint() == other.fingerprint()
    assert np.array_equal(said[used], expected)


@pytest.mark.parametrize("shift", [3.0, 100.0])
def test_tracking_steps_follow_a_stream_that_jumps(shift):
    """Also to where no stored sample reaches."""
    X = spheres(2000)
    X[1000:] += shift
    model = OnlineKernelFeatures(15, max_points=45, gamma=0.5, step_size="tracking", random_state=0)
    errors = model.partial_fit_errors(X)
    before, after = errors[800:1000].mean(), errors[1800:].mean()
    assert errors[1000:1010].mean() > 2.0 * before
    assert after < 2.0 * before


# Numbers at the edge.


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("step_size", ["inverse", "inverse_square", "tracking"])
def test_an_orthonormal_basis_stays_so_on_the_smallest_budget(rank, step_size):
    X = np.ones((30, 3)) if rank == 1 else spheres(120)
    model = OnlineKernelFeatures(
        rank, max_points=rank, kernel="linear" if rank == 1 else "rbf", removal="fifo",
        step_size=step_size, solver="parametric", basis="orthonormal",
    )  # fmt: skip
    for x in X:
        A = model.partial_fit(x[None]).factor_[:, : model.rank_]
        assert np.allclose(A.T @ model.kernel_(model.dictionary_) @ A, np.eye(model.rank_), 0, 1e-6)


@pytest.mark.parametrize(
    ("scale", "parameters"),
    [
        (1.0, {"alpha": 1e3, "gamma": 0.5, "solver": "parametric"}),
        (1.0, {"alpha": 1e6, "gamma": 0.5, "solver": "nonparametric"}),
        (1e-100, {"kernel": "linear", "solver": "nonparametric"}),
        (1e-100, {"kernel": "linear", "solver": "nonparametric", "alpha": 0.0}),
        (1e-49, {"kernel": "linear", "solver": "nonparametric", "alpha": 0.0}),
        (1e-49, {"kernel": "linear", "solver": "parametric", "alpha": 0.0}),
    ],
)
@pytest.mark.parametrize("step_size", ["tracking", "tracking_square"])
def test_printed_steps_stay_finite(scale, parameters, step_size):
    X = scale * np.random.default_rng(0).normal(size=(400, 3))
    model = OnlineKernelFeatures(
        2, max_points=6, basis="printed", step_size=step_size, **parameters
    )
    for first in range(0, 400, 20):
        model.partial_fit(X[first : first + 20])
        assert all(np.isfinite(part).all() for part in model._state[:-1])
        assert np.isfinite(model.transform(X[:9])).all()
    model.fingerprint()  # JSON without NaN


def test_alignment_survives_a_direction_that_dies_out():
    """The features turn no more than the subspace does, and the next direction fits in."""
    X = np.random.default_rng(0).normal(size=(140, 4))
    model = OnlineKernelFeatures(
        4, max_points=8, gamma=0.3, align=True, removal="fifo", step_size="tracking",
        solver="parametric",
    ).partial_fit(X[:100])  # fmt: skip
    ranks = set()
    for x in [*np.repeat(X[100:101], 40, axis=0), *X[100:]]:
        old, rank = model.transform(X[:50]), model.rank_
        new = model.partial_fit(x[None]).transform(X[:50])
        ranks.add(model.rank_)
        u, _, vt = np.linalg.svd(old.T @ new)
        best = np.linalg.norm(old @ (u @ vt) - new)
        if model.rank_ < rank:
            assert np.linalg.norm(new - old) < 1.5 * best + 0.05
        rotation = model._state.rotation
        assert np.allclose(rotation.T @ rotation, np.eye(4), 0, 1e-9)
        assert np.allclose(new @ new.T, _products(model, X[:50]), 0, 1e-6)
    assert min(ranks) < 4
    assert model.rank_ == 4


def _products(model, X):
    parts = gaussian(0.3), model.dictionary_, model.factor_[:, : model.rank_], X, model.alpha
    Z = naive.features(*parts)
    return Z @ Z.T


def test_without_parameters_memory_is_bounded_and_learning_does_not_hurt():
    X = np.random.default_rng(0).normal(size=(size(3000, 300), 5))
    model = OnlineKernelFeatures(6, gamma=0.05)
    first = model.partial_fit(X[:30]).inverse_fit_error(X).mean()
    assert model.partial_fit(X[30:]).inverse_fit_error(X).mean() < 1.05 * first
    assert (len(model.dictionary_), model._solver) == (30, "nonparametric")
    assert model.set_params(max_points=None)._solver == "parametric"
