"""How AVM behaves: parameters, averages, losses, long streams."""

import copy
import math
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream import (
    AVMClassifier,
    AVMRegressor,
    DivergenceError,
    KernelExpansion,
    Loss,
    merge,
)
from kernelstream.kernels import Gaussian, Linear
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from tests.models.tools import AVM, FORMS, in_pieces, stream, wave
from tests.naive import avm as twin

both = pytest.mark.parametrize("estimator_class", AVM)

HALF = {"average": True, "average_horizon": 0.5}
AVERAGES = {
    "last": {"average": False}, "all": {"average": True}, "half": HALF, "auto": {"average": "auto"},
}  # fmt: skip

# Against the twin, through the estimators


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_estimator_is_the_paper(form, classes):
    X, y = stream(AVMClassifier, n=400, classes=classes)
    options = {"delta": 0.9, "exact_probability": 5.0, "exact_decay": 0.8}
    model = AVMClassifier(
        "margin_log_loss", alpha=0.01, gamma=0.5, average=False, random_state=0, **options
    )
    model.partial_fit(FORMS[form](X), y, classes=range(classes))
    silent = AVMClassifier(random_state=0, delta=1.0).partial_fit(X, y)  # draws no numbers
    seed = int(silent._state.status[0]["random"])
    targets = 2.0 * y - 1.0 if classes == 2 else y
    expected = twin.avm(
        twin.gaussian(0.5), X, targets, "margin_log_loss", outputs=1 if classes == 2 else 3,
        regularisation=0.01, seed=seed, delta=0.9, beta=5.0, rho=0.8,
    )  # fmt: skip
    assert model.model_order_ == len(expected.points)
    assert model.n_cells_ == len(expected.core)
    values = twin.gaussian(0.5)(((X[:50, None] - expected.points) ** 2).sum(axis=2))
    said = model.decision_function(X[:50]).reshape(50, -1)
    assert said == pytest.approx(values @ expected.weights, rel=1e-8, abs=1e-8)


# Kernels and parameters


@both
@pytest.mark.parametrize("kernel", ["linear", "poly", Linear(), Gaussian(1.0) + Gaussian(2.0)])
def test_kernels_that_are_not_isotropic_are_refused_with_the_reason(estimator_class, kernel):
    with pytest.raises(ValueError, match=r"distance alone with k\(x, x\) = 1.*'rbf'"):
        estimator_class(kernel=kernel).fit([[0.0], [1.0]], [0, 1])


@both
def test_the_laplacian_of_the_other_distance_is_named(estimator_class):
    X, y = stream(estimator_class)
    with pytest.warns(UserWarning, match="use 'matern12'"):
        estimator_class(kernel="laplacian", delta=1.0).partial_fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator_class(kernel="matern12", delta=1.0).partial_fit(X, y)


@both
@pytest.mark.parametrize(
    "change",
    [{"gamma": 2.0}, {"kernel": "matern12"}, {"delta": 2.0}, {"coverage": "hyperrectangle"},
     {"average": True}],
)  # fmt: skip
def test_what_makes_the_model_cannot_change(estimator_class, change):
    X, y = stream(estimator_class)
    model = estimator_class(gamma=1.0, delta=1.0).partial_fit(X, y)
    with pytest.raises(ValueError, match="cannot"):
        model.set_params(**change).partial_fit(X, y)
    model.fit(X, y)


@both
@pytest.mark.parametrize(
    "parameters",
    [{"alpha": 0.0}, {"delta": 0.0}, {"delta": -1.0}, {"exact_probability": -1.0},
     {"exact_decay": -0.5}, {"average": 0.5}, {"average_horizon": 1.5}, {"average_horizon": 0.0},
     {"coverage": "cube"}, {"max_points": 0}],
)  # fmt: skip
def test_bad_parameters_are_refused(estimator_class, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        estimator_class(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_losses_of_the_other_kind_are_refused():
    with pytest.raises(ValueError, match="AVMRegressor"):
        AVMClassifier(Loss("huber")).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="AVMClassifier"):
        AVMRegressor(Loss("hinge")).fit([[0.0], [1.0]], [0, 1])


def test_divergence_raises_an_error_and_keeps_what_was_learned():
    X, y = stream(AVMRegressor)
    model = AVMRegressor(alpha=1e-60, delta=1.0).partial_fit(X[:1], [0.0])
    with pytest.raises(DivergenceError, match=r"Sample \d+ .* larger alpha") as error:
        model.partial_fit(X, 1e20 * y)
    assert "\n" not in str(error.value)
    assert np.isfinite(model.predict(X)).all()


# Learning


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_every_regression_loss_learns(loss):
    X, y = wave()
    assert AVMRegressor(loss, alpha=1e-3, **HALF).partial_fit(X, y).score(X, y) > 0.9


def test_the_default_regression_follows_a_changing_stream():
    random = np.random.default_rng(0)
    X = random.uniform(-3.0, 3.0, (5000, 1))
    y = np.sin(X[:, 0] + np.linspace(0.0, 6.0, 5000))
    errors = {
        name: np.mean((AVMRegressor(**given).predict_then_learn(X, y) - y) ** 2)
        for name, given in {"default": {}, "half": HALF}.items()
    }
    assert errors["default"] < 0.7 * errors["half"]


def test_auto_takes_the_average_unless_the_stream_changes():
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (4000, 2))
    noise = 0.8 * random.normal(size=4000)
    steady, moving = X[:, 0] * X[:, 1], X[:, 0] * np.cos(np.linspace(0.0, 12.0, 4000))
    mistakes = {}
    for name, y in (("steady", steady + noise > 0.0), ("moving", moving > 0.0)):
        for average in ("last", "half", "auto"):
            model = AVMClassifier(**AVERAGES[average])
            mistakes[name, average] = np.mean(model.predict_then_learn(X, y, classes=[0, 1]) != y)
    assert mistakes["steady", "half"] < 0.9 * mistakes["steady", "last"]
    assert mistakes["moving", "last"] < 0.5 * mistakes["moving", "half"]
    for name, better in (("steady", "half"), ("moving", "last")):
        assert mistakes[name, "auto"] < 1.05 * mistakes[name, better]


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("average", AVERAGES)
def test_every_classification_loss_learns(loss, classes, average):
    X, y = stream(AVMClassifier, n=3000, classes=classes)
    model = AVMClassifier(loss, alpha=1e-3, **AVERAGES[average]).partial_fit(X, y)
    assert model.score(X, y) > 0.75


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("labels", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
def test_a_new_class_leaves_what_was_known(loss, labels, average):
    centres = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    random = np.random.default_rng(0)
    model = AVMClassifier(loss, alpha=1e-3, delta=1.0, **AVERAGES[average])
    for known, label in enumerate(labels):
        X = random.normal(size=(50, 2))
        before = model.predict(X) if known else []
        model.partial_fit(centres[known][None], [label], sample_weight=[0.0])
        if known:
            assert np.array_equal(model.predict(X), before)
        rows = np.repeat(np.arange(known + 1), 80)
        X = centres[rows] + 0.4 * random.normal(size=(len(rows), 2))
        order = random.permutation(len(rows))
        model.partial_fit(X[order], np.array(labels)[rows[order]])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.score(X, np.array(labels)[rows]) > 0.8


def test_the_norm_survives_a_new_class():
    X, y = stream(AVMClassifier)
    model = AVMClassifier("squared_hinge", alpha=0.05, delta=0.8, average=False)
    model.partial_fit(X, y).partial_fit(X[:1], [7])
    model.partial_fit(X, y)
    assert math.sqrt(model._state.status[0]["square_norm"]) == pytest.approx(
        model.expansion_.norm(), rel=1e-9
    )


@both
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("delta", ["auto", 0.8])
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("weighted", [False, True])
def test_predict_then_learn(estimator_class, form, delta, average, weighted):
    X, y = stream(estimator_class, n=300)
    if estimator_class is AVMClassifier:
        y[100:] += 2 * (np.arange(200) % 3 == 0)
        y[250:] -= 9 * (np.arange(50) % 3 == 0)
    X = FORMS[form](X)
    weight = np.arange(300) % 4 / 2.0 if weighted else np.ones(300)
    model = estimator_class(delta=delta, random_state=0, **AVERAGES[average])
    model.partial_fit(X[:30], y[:30])
    one_by_one, expected = copy.deepcopy(model), []
    said = model.predict_then_learn(X[30:], y[30:], sample_weight=weight[30:])
    for i in range(30, 300):
        expected.extend(one_by_one.predict(X[i : i + 1]))
        one_by_one.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weight[i : i + 1])
    assert model.fingerprint() == one_by_one.fingerprint()
    if estimator_class is AVMClassifier:
        assert said.tolist() == expected
    else:
        assert np.allclose(said, expected, rtol=1e-9, atol=1e-9)


@both
@pytest.mark.parametrize(
    "parameters", [{}, {"delta": 0.8}, {"delta": 3.0, "exact_probability": 4.0}, {"average": True}]
)
@pytest.mark.parametrize("features", [3, 20])
def test_learn_one_equals_partial_fit(estimator_class, parameters, features):
    X, y = stream(estimator_class, n=300, features=features)
    if estimator_class is AVMClassifier:
        y = np.array(["no", "yes", "maybe"])[y + (np.arange(300) > 150)]
    one, other = (estimator_class(random_state=0, **parameters) for _ in range(2))
    for i in range(300):
        one.learn_one(X[i], y[i])
        other.partial_fit(X[i : i + 1], y[i : i + 1])
    assert one.fingerprint() == other.fingerprint()


@both
def test_weight_zero_is_absence(estimator_class):
    X, y = stream(estimator_class, n=400)
    weight = np.arange(len(y)) % 3 + 0.0
    used = weight != 0.0
    known = {"classes": [0, 1]} if estimator_class is AVMClassifier else {}
    model, other = estimator_class(random_state=0), estimator_class(random_state=0)
    model.partial_fit(X, y, sample_weight=weight, **known)
    other.partial_fit(X[used], y[used], sample_weight=weight[used], **known)
    assert model.n_seen_ == used.sum()
    assert model.fingerprint() == other.fingerprint()


def test_probabilities():
    X, y = stream(AVMClassifier, n=2000, classes=3)
    model = AVMClassifier("log_loss", alpha=1e-3).partial_fit(X, y)
    probabilities = model.predict_proba(X)
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))


def test_sparse_and_dense_learn_the_same():
    X, y = stream(AVMClassifier, n=500, features=20)
    dense = AVMClassifier(delta=5.0, random_state=0).partial_fit(X, y)
    sparse = AVMClassifier(delta=5.0, random_state=0).partial_fit(csr_array(X), y)
    assert np.array_equal(dense.dictionary_, sparse.dictionary_)
    assert np.allclose(dense.dual_coef_, sparse.dual_coef_, rtol=1e-9)


def test_functions_merge_but_models_do_not():
    X, y = stream(AVMRegressor, n=600)
    parts = [AVMRegressor(delta=0.8).partial_fit(X[i::2], y[i::2]) for i in range(2)]
    with pytest.raises(ValueError, match=r"KernelExpansion\.merge"):
        merge(parts)
    function = KernelExpansion.merge([part.expansion_ for part in parts], max_points=20)
    mean = 0.5 * sum(part.predict(X) for part in parts)
    assert np.corrcoef(function(X), mean)[0, 1] > 0.9


# Long streams


@pytest.mark.slow
def test_a_million_samples_in_flat_memory():
    random = np.random.default_rng(0)
    model = AVMClassifier(delta=1.0, random_state=0)
    sizes = []
    for _ in range(100):
        X = random.uniform(-2.0, 2.0, (10_000, 2))
        model.partial_fit(X, (X[:, 0] * X[:, 1] > 0).astype(int))
        sizes.append(model.nbytes_)
    assert model.n_seen_ == 1_000_000
    assert sizes[-1] == sizes[9]
    assert model.score(X, (X[:, 0] * X[:, 1] > 0).astype(int)) > 0.95
    assert np.isfinite(model.dual_coef_).all()


@both
def test_pieces_of_any_size_and_the_whole_are_one(estimator_class):
    X, y = stream(estimator_class, n=500, features=25)
    prints = {
        in_pieces(estimator_class(random_state=0), X, y, size).fingerprint() for size in (3, 4, 499)
    }
    assert len(prints) == 1


def test_targets_far_from_unit_scale_are_saved_and_loaded(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 2))
    model = AVMRegressor(random_state=0).partial_fit(X, 4e9 * np.sin(X[:, 0]))
    model.save(tmp_path / "model.ks")
    assert AVMRegressor.load(tmp_path / "model.ks").fingerprint() == model.fingerprint()
