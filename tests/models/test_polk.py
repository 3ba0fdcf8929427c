"""How POLK behaves: new classes, weights, batches, predictions on the way, losses."""

import copy

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream import DivergenceError, Loss, POLKClassifier, POLKRegressor
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from tests.models.tools import FORMS, POLK, stream, wave

both = pytest.mark.parametrize("estimator_class", POLK)

# New classes


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("labels", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
def test_a_new_class_leaves_what_was_known(loss, labels, average):
    centres = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    random = np.random.default_rng(0)
    model = POLKClassifier(loss, average=average)
    for known, label in enumerate(labels):
        X = np.vstack([centre + 0.4 * random.normal(size=(100, 2)) for centre in centres[:known]] or
                      [centres[:0]])  # fmt: skip
        before = model.predict(X) if known else []
        model.partial_fit(centres[known][None], [label], sample_weight=[0.0])
        assert label in model.classes_
        assert np.array_equal(model.classes_, np.sort(labels[: known + 1]))
        if known:
            assert np.array_equal(model.predict(X), before)
        rows = np.repeat(np.arange(known + 1), 80)
        X = centres[rows] + 0.4 * random.normal(size=(len(rows), 2))
        order = random.permutation(len(rows))
        model.partial_fit(X[order], np.array(labels)[rows[order]])
        assert model.score(X, np.array(labels)[rows]) > 0.95
    values = model.decision_function(centres)
    assert values.shape == (4, 4)
    assert np.array_equal(model.classes_[values.argmax(axis=1)], labels)


def test_one_class_is_always_predicted():
    model = POLKClassifier("log_loss").partial_fit([[0.0], [1.0]], ["only", "only"])
    assert model.predict([[5.0]]).tolist() == ["only"]
    assert model.predict_proba([[5.0]]).tolist() == [[1.0]]


def test_longer_strings_are_not_cut():
    model = POLKClassifier().partial_fit([[0.0], [1.0]], ["a", "b"])
    model.partial_fit([[2.0]], ["much longer"])
    assert model.classes_.tolist() == ["a", "b", "much longer"]


def test_classes_given_in_advance_are_there_from_the_start():
    model = POLKClassifier().partial_fit([[0.0]], ["b"], classes=["c", "b", "a"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.decision_function([[0.0]]).shape == (1, 3)


# Weights and batches


@both
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_size", [1, 4])
def test_weight_zero_is_absence(estimator_class, form, batch_size):
    X, y = stream(estimator_class)
    weight = np.arange(len(y)) % 3 + 0.0
    used = weight != 0.0
    X = FORMS[form](X)
    known = {"classes": [0, 1]} if estimator_class is POLKClassifier else {}
    model = estimator_class(random_state=0, batch_size=batch_size)
    other = estimator_class(random_state=0, batch_size=batch_size)
    model.partial_fit(X, y, sample_weight=weight, **known)
    other.partial_fit(X[used], y[used], sample_weight=weight[used], **known)
    assert model.n_seen_ == used.sum() // batch_size * batch_size
    assert model.fingerprint() == other.fingerprint()


@both
def test_weight_multiplies_the_step(estimator_class):
    twice = estimator_class(compression_error=0.0).partial_fit([[0.5]], [1], sample_weight=[2.0])
    once = estimator_class(compression_error=0.0).partial_fit([[0.5]], [1])
    assert np.allclose(twice.dual_coef_, 2.0 * once.dual_coef_, rtol=1e-12)


@both
def test_flush_learns_the_unfinished_batch(estimator_class):
    X, y = stream(estimator_class, n=23)
    model = estimator_class(batch_size=10).partial_fit(X, y)
    assert (model.n_seen_, model.n_waiting_) == (20, 3)
    assert model.flush().n_seen_ == 23
    assert model.n_waiting_ == 0
    assert model.flush().n_seen_ == 23


@both
@pytest.mark.parametrize("batch_size", [1, 3, 20])
def test_batch_size_may_change(estimator_class, batch_size):
    X, y = stream(estimator_class, n=60)
    model = estimator_class(batch_size=10).partial_fit(X[:28], y[:28])
    model.set_params(batch_size=batch_size).partial_fit(X[28:], y[28:])
    assert model.flush().n_seen_ == 60


# Predictions on the way


@both
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_predict_then_learn(estimator_class, form, batch_size, average, weighted):
    X, y = stream(estimator_class)
    if estimator_class is POLKClassifier:
        y[100:] += 2 * (np.arange(100) % 3 == 0)
        y[150:] -= 9 * (np.arange(50) % 3 == 0)
    X = FORMS[form](X)
    weight = np.arange(200) % 4 / 2.0 if weighted else np.ones(200)
    model = estimator_class(batch_size=batch_size, average=average, random_state=0)
    model.partial_fit(X[:30], y[:30])
    one_by_one, expected = copy.deepcopy(model), []
    said = model.predict_then_learn(X[30:], y[30:], sample_weight=weight[30:])
    for i in range(30, 200):
        expected.extend(one_by_one.predict(X[i : i + 1]))
        one_by_one.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weight[i : i + 1])
    assert model.fingerprint() == one_by_one.fingerprint()
    if estimator_class is POLKClassifier:
        assert said.tolist() == expected
    else:
        assert np.allclose(said, expected, rtol=1e-9, atol=1e-12)


def test_a_label_never_seen_is_never_predicted():
    model = POLKClassifier().partial_fit([[0.0]], [5])
    assert model.predict_then_learn([[100.0], [200.0]], [3, 2]).tolist() == [5, 3]
    with pytest.raises(ValueError, match=r"classes= on the first call.* or begin with partial_fit"):
        POLKClassifier().predict_then_learn([[0.0]], [1])
    with pytest.raises(ValueError, match="classes must be a list of labels, got 5"):
        POLKClassifier().predict_then_learn([[0.0]], [1], classes=5)
    fixed = POLKClassifier().partial_fit([[0.0]], [5], classes=[3, 5])
    with pytest.raises(ValueError, match=r"label 4 at row 1, .* never given any accepts new ones"):
        fixed.partial_fit([[0.0], [1.0]], [3, 4])


@both
@pytest.mark.parametrize(
    "parameters", [{}, {"batch_size": 4}, {"average": True}, {"kernel": "poly", "eta0": 0.01}]
)
def test_learn_one_equals_partial_fit(estimator_class, parameters):
    X, y = stream(estimator_class)
    if estimator_class is POLKClassifier:
        y = np.array(["no", "yes", "maybe"])[y + (np.arange(200) > 100)]
    one, other = (estimator_class(random_state=0, **parameters) for _ in range(2))
    for i in range(200):
        if i == 150:
            one.set_params(eta0=0.005)
            other.set_params(eta0=0.005)
        one.learn_one(X[i], y[i])
        other.partial_fit(X[i : i + 1], y[i : i + 1])
    assert one.fingerprint() == other.fingerprint()


# Probabilities


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities(classes):
    X, y = stream(POLKClassifier, n=1000, classes=classes)
    model = POLKClassifier("log_loss").partial_fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (1000, classes)
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    assert np.allclose(np.exp(model.predict_log_proba(X)), probabilities)
    # They are probabilities: where 0.7 or more is said, about as much comes true.
    sure = probabilities.max(axis=1) > 0.7
    assert (model.predict(X) == y)[sure].mean() > 0.7


# Parameters

X_SMALL, Y_SMALL = [[0.0], [1.0], [2.0]], [0, 1, 1]
REFUSED = {
    "eta0 too large for alpha": ({"eta0": 2.0, "alpha": 0.5}, "eta0 .* alpha must be below 1"),
    "negative eta0": ({"eta0": -1.0}, "eta0"),
    "NaN": ({"eta0": np.nan}, "eta0"),
    "infinite error": ({"compression_error": np.inf}, "compression_error"),
    "unknown kernel": ({"kernel": "magic"}, "kernel"),
    "unknown loss": ({"loss": "magic"}, "loss"),
    "no points": ({"max_points": 0}, "max_points"),
    "huge degree": ({"degree": 65}, "degree"),
    "horizon as average": ({"average": 50}, "average must be True or False.*average_horizon"),
    "short average": ({"average": True, "average_horizon": 1}, "average_horizon"),
}


@both
@pytest.mark.parametrize("name", REFUSED)
def test_bad_parameters_are_refused_in_one_line(estimator_class, name):
    parameters, match = REFUSED[name]
    for call in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=match) as refusal:
            getattr(estimator_class(**parameters), call)(X_SMALL, Y_SMALL)
        assert "\n" not in str(refusal.value)


def test_losses_of_the_other_kind_are_refused():
    with pytest.raises(ValueError, match="POLKRegressor"):
        POLKClassifier(Loss("huber")).fit(X_SMALL, Y_SMALL)
    with pytest.raises(ValueError, match="POLKClassifier"):
        POLKRegressor(Loss("hinge")).fit(X_SMALL, Y_SMALL)


@both
@pytest.mark.parametrize("change", [{"gamma": 2.0}, {"kernel": "laplacian"}, {"average": True}])
def test_what_makes_the_space_cannot_change(estimator_class, change):
    model = estimator_class(gamma=1.0).partial_fit(X_SMALL, Y_SMALL)
    state = model.dual_coef_
    with pytest.raises(ValueError, match="cannot"):
        model.set_params(**change).partial_fit(X_SMALL, Y_SMALL)
    assert np.array_equal(model.dual_coef_, state)
    model.fit(X_SMALL, Y_SMALL)  # from scratch it may


@both
def test_step_size_may_change(estimator_class):
    X, y = stream(estimator_class, n=20)
    model = estimator_class(compression_error=0.0, alpha=0.0).partial_fit(X, y)
    before = model.expansion_
    model.set_params(eta0=1e-6).partial_fit(X, y)
    assert 0.0 < before.distance(model.expansion_) < 1e-4


@both
def test_a_single_point(estimator_class):
    X, y = stream(estimator_class)
    model = estimator_class(max_points=1).partial_fit(X, y)
    assert model.model_order_ == 1
    assert model.n_forced_ > 0


@both
def test_no_error_keeps_all_points(estimator_class):
    X = np.arange(40.0)[:, None]
    y = 1 + np.arange(40) % 2
    model = estimator_class(compression_error=0.0, gamma=3.0).partial_fit(X, y)
    assert np.array_equal(np.sort(model.dictionary_[:, 0]), X[:, 0])
    assert model.error_spent_ == 0.0


def test_a_larger_budget_saves_points():
    X, y = stream(POLKRegressor, n=1000)
    orders = [
        POLKRegressor(compression_error=e).partial_fit(X, y).model_order_
        for e in (0.003, 0.03, 0.3)
    ]
    assert orders == sorted(orders, reverse=True)
    assert orders[0] > 2 * orders[-1]


@both
def test_fit_is_epochs_in_order_or_shuffled(estimator_class):
    X, y = stream(estimator_class)
    fitted = estimator_class(n_epochs=3, shuffle=False, random_state=0).fit(X, y)
    streamed = estimator_class(n_epochs=3, shuffle=False, random_state=0)
    known = {"classes": [0, 1]} if estimator_class is POLKClassifier else {}
    for _ in range(3):
        streamed.partial_fit(X, y, **known)
    assert fitted.n_seen_ == 600
    assert np.array_equal(fitted.dual_coef_, streamed.dual_coef_)
    shuffled = estimator_class(n_epochs=3, random_state=0).fit(X, y)
    assert not np.array_equal(shuffled.dual_coef_, fitted.dual_coef_)
    again = shuffled.fit(X, y).fingerprint()
    assert again == estimator_class(n_epochs=3, random_state=0).fit(X, y).fingerprint()


def test_divergence_raises_an_error_and_keeps_what_was_learned():
    X = np.linspace(0.0, 1.0, 200)[:, None]
    model = POLKRegressor(eta0=1e3, compression_error=0.0, kernel="linear").partial_fit(
        X[:1], [1.0]
    )
    with pytest.raises(DivergenceError, match=r"Sample \d+ .* smaller eta0") as error:
        model.partial_fit(100.0 * X, np.ones(200))
    assert "\n" not in str(error.value)
    assert np.isfinite(model.predict(X)).all()


# Losses


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_every_regression_loss_learns(loss):
    X, y = wave()
    model = POLKRegressor(loss, average=True).partial_fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_classification_loss_learns(loss, classes):
    X, y = stream(POLKClassifier, n=3000, classes=classes)
    model = POLKClassifier(loss, average=True).partial_fit(X, y)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantile_is_the_quantile(level):
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (8000, 1))
    y = X[:, 0] + random.normal(size=8000)
    model = POLKRegressor(Loss("quantile", level), average=True).partial_fit(X, y)
    for part in (X[:, 0] < -0.7, np.abs(X[:, 0]) < 0.7, X[:, 0] > 0.7):
        assert (y <= model.predict(X))[part].mean() == pytest.approx(level, abs=0.06)


def test_sparse_and_dense_learn_the_same():
    X, y = stream(POLKClassifier, n=500)
    dense = POLKClassifier(random_state=0).partial_fit(X, y)
    sparse = POLKClassifier(random_state=0).partial_fit(csr_array(X), y)
    assert dense.expansion_.distance(sparse.expansion_) < 1e-6


def test_learn_one_takes_a_waiting_batch_first():
    X, y = stream(POLKRegressor, n=30)
    models = [POLKRegressor(batch_size=5, random_state=0).partial_fit(X[:13], y[:13]) for _ in "ab"]
    for model in models:
        model.set_params(batch_size=1)
    for i in range(13, 30):
        models[0].learn_one(X[i], y[i])
    models[1].partial_fit(X[13:], y[13:])
    assert models[0].n_seen_ == models[1].n_seen_ == 30
    assert models[0].fingerprint() == models[1].fingerprint()


def test_gamma_scale_far_from_the_origin():
    X, y = stream(POLKRegressor, n=50)
    here, far = (POLKRegressor(gamma="scale").partial_fit(Z, y).kernel_.gamma for Z in (X, X + 1e8))
    assert np.isclose(here, far, rtol=1e-6)


def test_a_model_that_cannot_be_read_again_is_not_written(tmp_path):
    X, y = stream(POLKRegressor, n=50)
    model = POLKRegressor(gamma=0.5).partial_fit(X, y).set_params(gamma=5.0)
    with pytest.raises(ValueError, match="gamma cannot change"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
