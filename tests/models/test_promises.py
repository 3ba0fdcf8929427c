"""What the estimators promise whatever the input: see each section's first line."""

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse, random_array
from sklearn.base import clone

from kernelstream import (
    AVMClassifier,
    AVMRegressor,
    BPAPClassifier,
    DivergenceError,
    IllConditionedError,
    Loss,
    Parsimony,
    POLKClassifier,
    POLKRegressor,
)
from kernelstream.compression.komp import HOPELESS_ABOVE
from kernelstream.core.state import STATUS
from kernelstream.kernels import KERNEL_NAMES
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from kernelstream.models._base import KernelEstimator
from tests.models.tools import (
    CLASSIFIERS,
    ESTIMATORS,
    EXPANSIONS,
    FACTORED,
    FORMS,
    KOMP,
    REGRESSORS,
    at_once,
    drawn,
    having,
    in_bytes,
    in_pieces,
    is_fitted,
    stream,
    usable,
    waiting,
)

every = pytest.mark.parametrize("estimator_class", ESTIMATORS)
every_expansion = pytest.mark.parametrize("estimator_class", EXPANSIONS)
with_factor = pytest.mark.parametrize("estimator_class", FACTORED)
with_komp = pytest.mark.parametrize("estimator_class", KOMP)
capped = pytest.mark.filterwarnings("ignore::kernelstream.CapWarning")
REFUSALS = (DivergenceError, IllConditionedError, ValueError)

# Bad input changes nothing: the error says where, the model is what it was.

#: AVM says that this kernel is not for it: it keeps the promises all the same.
pytestmark = pytest.mark.filterwarnings("ignore:kernel='laplacian' depends on the l1 distance")


def put(value):
    def damage(X, y):
        X[500, 1] = value
        return X, y

    return damage


def put_in_target(value):
    def damage(X, y):
        y = y.astype(object if value is None else float)
        y[500] = value
        return X, y

    return damage


PLACE = "row 500, column 1"
DAMAGES = {
    "NaN": (put(np.nan), f"NaN at {PLACE}.*Imputer"),
    "infinity": (put(-np.inf), f"infinity at {PLACE}"),
    "huge": (put(1e200), rf"too large, 1e\+200 at {PLACE}.*StandardScaler"),
    "wider": (lambda X, y: (np.hstack([X, X]), y), "6 features.*expecting 3"),
    "complex": (lambda X, y: (X + 1j, y), "[Cc]omplex"),
    "one-dimensional": (lambda X, y: (X[:, 0], y), "2D array"),
    "empty": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "short y": (lambda X, y: (X, y[:-1]), r"1000, 999"),
    "NaN in y": (put_in_target(np.nan), "(?i)nan at row 500"),
    "infinity in y": (put_in_target(np.inf), "inf.* at row 500"),
    "None in y": (put_in_target(None), "row 500|numbers"),
    "y of two columns": (
        lambda X, y: (X, np.column_stack([y, y])),
        "1d array|2 numbers per sample",
    ),
    "complex y": (lambda X, y: (X, y + 1j), "[Cc]omplex"),
}
DENSE_DAMAGES = {
    "strings": (lambda X, y: (X.astype(str).astype(object) + "x", y), "could not convert|numeric"),
    "objects": (lambda X, y: (np.full(X.shape, object()), y), "float|number"),
}
BAD_WEIGHTS = {"NaN": np.nan, "negative": -1.0, "infinity": np.inf, "huge": 1e300}
CASES = [(form, name) for form in FORMS for name in DAMAGES] + [
    ("dense", name) for name in DENSE_DAMAGES
]


def assert_refused(model, call, match=None):
    """The call fails; a fitted model is what it was, a new one is still new."""
    before = model.fingerprint() if is_fitted(model) else None
    with pytest.raises((ValueError, TypeError), match=match):
        call(model)
    assert before == (model.fingerprint() if is_fitted(model) else None)


@every
@pytest.mark.parametrize(("form", "name"), CASES)
def test_bad_input_changes_nothing(estimator_class, form, name):
    X, y = stream(estimator_class, n=1000)
    damage, message = (DAMAGES | DENSE_DAMAGES)[name]
    bad_X, bad_y = damage(X.copy(), y.copy())
    if bad_X.ndim == 2 and bad_X.dtype != object:
        bad_X = FORMS[form](bad_X)
    model = estimator_class(random_state=0, **waiting(estimator_class, 3))
    model.partial_fit(X[:100], y[:100])
    assert_refused(model, lambda model: model.partial_fit(bad_X, bad_y), message)
    vectors = name == "y of two columns" and model.__sklearn_tags__().target_tags.multi_output
    if name == "wider" or vectors:  # a new model takes what an old one does not fit
        return
    assert_refused(model, lambda model: model.fit(bad_X, bad_y), message)
    for call in ("fit", "partial_fit"):
        assert_refused(estimator_class(), lambda model, c=call: getattr(model, c)(bad_X, bad_y))


@every
@pytest.mark.parametrize("name", ["NaN", "infinity", "huge", "wider", "complex"])
def test_bad_input_is_not_predicted(estimator_class, name):
    X, y = stream(estimator_class, n=1000)
    damage, message = DAMAGES[name]
    model = estimator_class().partial_fit(X, y)
    for form in FORMS.values():
        bad_X = form(damage(X.copy(), y)[0])
        assert_refused(model, lambda model, X=bad_X: model.predict(X), message)


@every
@pytest.mark.parametrize("value", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_sample_weight_changes_nothing(estimator_class, value):
    X, y = stream(estimator_class, n=1000)
    weight = np.ones(1000)
    weight[500] = value
    model = estimator_class(random_state=0).partial_fit(X, y)
    for new in (model, estimator_class()):
        message = rf"numbers from 0 to 1e\+150, got {re.escape(str(value))} at row 500"
        assert_refused(new, lambda m: m.partial_fit(X, y, sample_weight=weight), message)
        assert_refused(new, lambda m: m.partial_fit(X, y, sample_weight=weight[1:]), "shape")


@pytest.mark.parametrize("estimator_class", CLASSIFIERS)
def test_an_unseen_class_changes_nothing_where_classes_are_fixed(estimator_class):
    X, y = stream(estimator_class, n=1000)
    model = estimator_class().partial_fit(X, y, classes=[0, 1])
    y[500] = 7
    assert_refused(model, lambda m: m.partial_fit(X, y), "label .*7.* at row 500")
    assert_refused(
        model, lambda m: m.partial_fit(X, y, classes=[0, 1, 7]), "classes .*7.* at row 2"
    )
    assert_refused(estimator_class(), lambda m: m.partial_fit(X, y, classes=[0, 1]), "at row 500")
    assert_refused(estimator_class(), lambda m: m.partial_fit(X, y, classes=[0, np.nan]), "nan")
    assert_refused(model, lambda m: m.partial_fit(X, y.astype(str)), "type")


@pytest.mark.parametrize("estimator_class", CLASSIFIERS)
def test_classes_given_later_are_added_and_then_no_others_are_accepted(estimator_class):
    X, y = stream(estimator_class, n=40)
    model = estimator_class().partial_fit(X, y)
    for words in (["a", "b"], [0, "b"]):
        assert_refused(model, lambda m, words=words: m.partial_fit(X, y, classes=words), "type")
    assert_refused(model, lambda m: m.partial_fit(X, y + 2, classes=[2]), "label 3 at row .* given")
    model.partial_fit(X, y, classes=[2, 3])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    model.partial_fit(X, y + 2, classes=[2, 3])  # the same again
    assert_refused(model, lambda m: m.partial_fit(X, y + 4), "label .* is not among the known")
    assert_refused(model, lambda m: m.partial_fit(X, y, classes=[3, 4]), "classes .* label 4 at")


@with_factor
def test_what_only_the_kernel_refuses_changes_nothing(estimator_class):
    X, y = stream(estimator_class, n=100)
    model = estimator_class(kernel="poly").partial_fit(X, y)
    other = np.arange(100) % 4
    for call in ("partial_fit", "fit"):
        for new in (model, estimator_class(kernel="poly")):
            assert_refused(new, lambda m, c=call: getattr(m, c)(X * 1e40, other), r"k\(x, x\)")


@every
def test_what_only_the_memory_refuses_changes_nothing(estimator_class):
    X, y = stream(estimator_class, n=100)
    small = estimator_class(max_bytes=10)
    assert_refused(small, lambda m: m.partial_fit(X, y), "max_bytes=10 does not hold")


def test_bad_feature_names_change_nothing():
    pd = pytest.importorskip("pandas")
    X, y = stream(POLKClassifier)
    frame = pd.DataFrame(X, columns=["a", 1, "c"])
    assert_refused(POLKClassifier(), lambda model: model.partial_fit(frame, y), "names")


@every
def test_learn_one_refuses_bad_samples(estimator_class):
    X, y = stream(estimator_class)
    last = having(estimator_class, kernel="linear", delta=0.5)
    for parameters in ({}, waiting(estimator_class, 3), last):
        model = estimator_class(**parameters).partial_fit(X, y)
        model.learn_one(X[0], y[0])
        for bad in (np.array([0.0, np.nan, 0.0]), np.array([np.inf, 0.0, 0.0]), X[0, :2],
                    np.array([1e200, 0.0, 0.0])):  # fmt: skip
            assert_refused(model, lambda m, x=bad: m.learn_one(x, y[0]))
        assert_refused(model, lambda m: m.learn_one(X[0], np.nan))


# Finite stays finite, or is refused.

magnitudes = st.sampled_from([0.0, 1e-300, 1e-20, 1e-3, 1.0, 30.0, 1e4, 1e20, 1e50, 1e100, 1e150])


WILD = {
    "kernel": sorted(KERNEL_NAMES),
    "gamma": ["auto", "scale", 1e-8, 1.0, 1e8],
    "eta0": [1e-3, 0.5, 10.0, 1e6, 1e100],
    "alpha": [1e-100, 1e-8, 1e-2, 1.0, 1e3, 1e100],
    "batch_size": [1, 2, 4],
    "average": [False, True, "auto"],
    "average_horizon": [None, 5, 0.5],
    "compression_error": ["auto", 0.0, 1.0, Parsimony(1.0, 2)],
    "max_points": [1, 5, 40],
    "slack": [0, 3],
    "delta": ["auto", 1e-100, 1.0, 1e100, 1e200],
    "coverage": ["hypersphere", "hyperrectangle"],
    "exact_probability": [0.0, 0.05, 3.0, 1e100],
    "tracking_rate": [0.05, 1.0],
    "risk": ["variance", "semivariance", "moments", "semideviations", "cvar"],
    "risk_weight": [0.0, 1e-100, 1.0, 1e100],
    "tracking": ["momentum", "average"],
    "clip": [None, 1e-3, 4.0, 1e100],
}


@st.composite
def wild_runs(draw):
    estimator_class = draw(st.sampled_from(ESTIMATORS))
    regression = estimator_class in REGRESSORS
    losses = {"loss": REGRESSION_LOSSES if regression else CLASSIFICATION_LOSSES}
    parameters = drawn(draw, estimator_class, {**losses, **WILD}) | {"random_state": 0}
    if parameters.get("batch_size", 1) > 1:  # batches have no slack
        parameters.pop("slack", None)
    if {"eta0", "alpha"} <= set(parameters):  # eta0 * alpha must be below 1
        parameters["alpha"] = 0.0
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    n, features = 40, draw(st.integers(1, 3))
    scales = [draw(magnitudes) for _ in range(features)]
    spread = draw(st.sampled_from([0.0, 1.0, 20.0]))
    sizes = np.clip(scales * 10.0 ** (spread * random.normal(size=(n, features))), 0.0, 1e150)
    X = random.uniform(-1.0, 1.0, (n, features)) * sizes
    X[random.integers(n, size=n // 4)] = X[0]
    if regression:
        y = random.uniform(-1.0, 1.0, n) * draw(magnitudes)
    else:
        y = random.integers(draw(st.sampled_from([1, 2, 4])), size=n)
    weight = draw(st.sampled_from([None, 1e-150, 1e100, 1e150]))
    return estimator_class, parameters, X, y, weight


@capped
@given(wild_runs(), st.sampled_from(sorted(FORMS)))
@settings(max_examples=400)
def test_finite_stays_finite(run, form):
    estimator_class, parameters, X, y, weight = run
    model = estimator_class(**parameters)
    weights = None if weight is None else np.full(len(y), weight)
    try:
        in_pieces(model, FORMS[form](X), y, 10, weights).flush()
    except REFUSALS:
        if not is_fitted(model):
            return
    if isinstance(model, KernelEstimator):
        state = [model.dual_coef_, model.dictionary_, model.error_spent_]
        assert all(np.isfinite(part).all() for part in state)
    model.fingerprint()  # JSON without NaN: every number of the state is finite
    for sample in X:  # one by one: a refused sample must not hide the others
        try:
            value = model._evaluate(sample[None])
        except ValueError:
            continue
        assert np.isfinite(value).all()


# Memory is a contract: the closed form of the docstring and the caps, after every call.


def assert_within_contract(model):
    if isinstance(model.max_bytes, int):
        assert model.nbytes_ <= model.max_bytes
    # nbytes_ is the truth: all that a pickle carries besides is names and parameters.
    assert len(pickle.dumps(model)) <= model.nbytes_ + 8000
    if isinstance(model, KernelEstimator):
        assert_within_closed_form(model)


def assert_within_closed_form(model):
    p, columns = model.n_features_in_, model._columns
    order, batch = model._state.extent, model.batch_size + model.slack
    if not model._factored:
        capacity = max(17, 2 * order + 1)
        row, held = p + columns + 4, 201 if getattr(model, "_deciding", False) else batch
    else:
        capacity = 4 * max(16 + batch, order + batch)
        row, held = p + columns + 3 + capacity, batch
    waiting = (held - 1) * (12 * p + 24) + 8
    assert model.nbytes_ <= 8 * capacity * row + STATUS.itemsize + waiting
    if model.max_points is not None:
        assert model.model_order_ <= model.max_points + model.slack


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


# The error budget is kept at every step, and error_spent_ is the true sum.


def hilbert_distance(f, g):
    """|f - g| with equal points added up first: no rounding where nothing changed."""
    points, place = np.unique(np.vstack([f.points, g.points]), axis=0, return_inverse=True)
    weights = np.zeros((len(points), f._columns.shape[1]))
    np.add.at(weights, place.ravel(), np.vstack([f._columns, -g._columns]))
    return np.sqrt(max(0.0, np.sum(weights * (f.kernel(points) @ weights))))


@pytest.mark.parametrize(
    ("estimator_class", "loss", "classes"),
    [
        (POLKClassifier, "hinge", 2),
        (POLKClassifier, "log_loss", 3),
        (POLKRegressor, "squared_error", 0),
        (POLKRegressor, "huber", 0),
    ],
)
@pytest.mark.parametrize("projection", ["greedy", "random"])
@pytest.mark.parametrize("max_points", [None, 8])
def test_error_budget_is_kept(estimator_class, loss, classes, projection, max_points):
    X, y = stream(estimator_class, n=150, classes=max(classes, 1))
    X[100:110] = X[:10]
    eta, alpha, epsilon = 0.3, 0.01, 0.08
    model = estimator_class(
        loss, eta0=eta, alpha=alpha, compression_error=epsilon, projection=projection,
        max_points=max_points, random_state=0,
    )  # fmt: skip
    known = {"classes": np.arange(classes)} if classes else {}
    targets = 2.0 * y - 1.0 if classes == 2 else y
    model.partial_fit(X[:1], y[:1], **known)
    total, forced = model.error_spent_, model.n_forced_
    for x, label, target in zip(X[1:, None], y[1:], targets[1:], strict=True):
        before = model.expansion_
        slope = Loss(loss).derivative(before(x), [target])
        model.partial_fit(x, [label])
        step = type(before)(before.kernel, x, -eta * slope)
        error = hilbert_distance(model.expansion_, (1.0 - eta * alpha) * before + step)
        total += error
        if model.n_forced_ == forced:
            assert error <= epsilon * (1.0 + 1e-6)
        forced = model.n_forced_
    assert model.error_spent_ == pytest.approx(total, rel=1e-6)
    assert (forced > 0) == (max_points is not None)
    assert total > 10 * epsilon  # there was something to check


@pytest.mark.parametrize(
    ("estimator_class", "loss", "classes"),
    [
        (AVMClassifier, "hinge", 2),
        (AVMClassifier, "log_loss", 3),
        (AVMRegressor, "absolute_error", 0),
        (AVMRegressor, "huber", 0),
    ],
)
@pytest.mark.parametrize("max_points", [None, 8])
@capped
def test_steps_stay_within_their_cell(estimator_class, loss, classes, max_points):
    """Theorem 4: k(x, .) and k(c, .) are at most sqrt(2 (1 - k(delta / 2))) apart."""
    X, y = stream(estimator_class, n=150, classes=max(classes, 1))
    alpha, delta, gamma = 0.05, 0.9, 0.5
    model = estimator_class(
        loss, alpha=alpha, delta=delta, gamma=gamma, average=False, max_points=max_points
    )
    known = {"classes": np.arange(classes)} if classes else {}
    targets = 2.0 * y - 1.0 if classes == 2 else y
    model.partial_fit(X[:1], y[:1], **known)
    total, forced, largest = 0.0, 0, np.sqrt(2.0 - 2.0 * np.exp(-gamma * delta**2 / 4.0))
    for t in range(1, len(y)):
        before = model.expansion_
        slope = Loss(loss).derivative(before(X[t : t + 1]), [targets[t]])
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        eta = 1.0 / (alpha * (t + 1))
        step = type(before)(before.kernel, X[t : t + 1], -eta * slope)
        error = hilbert_distance(model.expansion_, (t / (t + 1)) * before + step)
        total += error
        if model.n_forced_ == forced:
            assert error <= eta * np.linalg.norm(slope) * largest + 1e-9
        forced = model.n_forced_
    assert model.error_spent_ == pytest.approx(total, rel=1e-5)
    assert (forced > 0) == (max_points is not None)
    assert total > 0.1  # there was something to check


# Chunking does not matter; the same seed gives the same bits; no global random state.

CHUNKING = {
    "plain": {},
    "batches of 5": {"batch_size": 5},
    "batches of 32": {"batch_size": 32},
    "average": {"average": True},
    "fading average": {"average": True, "average_horizon": 50},
    "average of a part": {"average": True, "average_horizon": 0.2},
    "averaged batches": {"average": True, "average_horizon": 50, "batch_size": 5},
    "random projection": {"projection": "random"},
    "cap": {"max_points": 9},
    "slack": {"max_points": 9, "slack": 4},
    "cap on bytes": {"max_bytes": 6000},
    "cap on bytes of batches": {"max_bytes": 6000, "batch_size": 5},
    "polynomial": {"kernel": "poly", "degree": 2, "eta0": 0.01},
    "laplacian": {"kernel": "laplacian"},
    "schedule": {"learning_rate": "inverse_sqrt", "compression_error": Parsimony(1.0, 2)},
    "delta given": {"delta": 0.5},
    "rectangles": {"delta": 0.5, "coverage": "hyperrectangle"},
    "exact at times": {"exact_probability": 10.0, "exact_decay": 0.7},
    "averaged moments": {
        "batch_size": 6,
        "risk": "moments",
        "average": True,
        "average_horizon": 50,
    },
    "without gradient tracking": {"tracking": "average", "risk": "cvar", "max_points": 9},
}
CHUNKED = [(c, name) for c in ESTIMATORS for name in CHUNKING if usable(c, CHUNKING[name])]


@capped
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [3, 20])
@pytest.mark.parametrize(("estimator_class", "name"), CHUNKED)
def test_chunking_does_not_matter(estimator_class, name, features, form):
    X, y = stream(estimator_class, n=403, features=features)
    parameters = CHUNKING[name]
    if "max_bytes" in parameters:
        most = parameters["max_bytes"] * in_bytes(estimator_class) * features // 3
        parameters = {**parameters, "max_bytes": most}
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(y))
    if estimator_class in CLASSIFIERS:  # new classes appear, before and after the others
        y[100:] += 3 * (np.arange(303) % 5 == 0)
        y[303:] -= 4 * (np.arange(100) % 3 == 0)
    X = FORMS[form](X)
    for sample_weight in (None, weight):
        prints = {
            in_pieces(
                estimator_class(random_state=0, **parameters), X, y, size, sample_weight
            ).fingerprint()
            for size in (1, 7, 1000)
        }
        assert len(prints) == 1


@every_expansion
def test_gamma_scale_is_frozen_by_the_first_call(estimator_class):
    X, y = stream(estimator_class)
    model = estimator_class(gamma="scale", **at_once(estimator_class)).partial_fit(X[:100], y[:100])
    assert model.kernel_.gamma == pytest.approx(1.0 / (3.0 * X[:100].var()))
    assert model.partial_fit(5.0 * X, y).kernel_.gamma == pytest.approx(1.0 / (3.0 * X[:100].var()))


def drawing(estimator_class):
    """What draws random numbers while learning."""
    return having(estimator_class, projection="random", exact_probability=10.0)


@every
@pytest.mark.parametrize("random", [False, True])
def test_same_seed_same_bits(estimator_class, random):
    X, y = stream(estimator_class)
    parameters = drawing(estimator_class) if random else {}

    def learn(seed):
        return estimator_class(random_state=seed, **parameters).fit(X, y)

    assert learn(3).fingerprint() == learn(3).fingerprint()
    assert not np.array_equal(learn(3)._evaluate(X), learn(4)._evaluate(X))


@every
def test_global_random_state_is_neither_used_nor_changed(estimator_class):
    X, y = stream(estimator_class)
    weights = []
    before = np.random.get_state()  # noqa: NPY002
    try:
        for seed in (0, 1):
            np.random.seed(seed)  # noqa: NPY002
            expected = np.random.get_state()[1].copy()  # noqa: NPY002
            estimator_class(**drawing(estimator_class)).fit(X, y)
            weights.append(estimator_class(random_state=0).fit(X, y)._evaluate(X))
            _, now, position, *_ = np.random.get_state()  # noqa: NPY002
            assert np.array_equal(now, expected)
            assert position == 624
    finally:
        np.random.set_state(before)  # noqa: NPY002
    assert np.array_equal(*weights)


# Input is never modified or kept; predicting and saving change nothing; copies are independent.


def arrays_in(value):
    """All arrays that can be reached from a value."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif type(value).__module__.startswith("kernelstream.") and hasattr(value, "__dict__"):
        value = vars(value).values()
    elif not isinstance(value, list | tuple):
        return []
    return [array for part in value for array in arrays_in(part)]


def arrays_of(X):
    return [X.data, X.indices, X.indptr] if issparse(X) else [X]


@every
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_size", [1, 7])
def test_input_is_neither_modified_nor_kept(estimator_class, form, batch_size):
    X, y = stream(estimator_class)
    X, weight = FORMS[form](X), np.linspace(0.0, 1.0, len(y))
    given = [*arrays_of(X), y, weight]
    originals = [array.copy() for array in given]
    model = estimator_class(random_state=0, **waiting(estimator_class, batch_size))
    model.partial_fit(X, y, sample_weight=weight)
    model.predict(X)
    estimator_class().fit(X, y, sample_weight=weight)
    for array, original in zip(given, originals, strict=True):
        assert np.array_equal(array, original)
    kept = arrays_in(vars(model))
    assert not any(np.shares_memory(a, b) for a in given for b in kept)
    before = model.fingerprint()
    for array in given:
        array[...] = 0
    assert model.fingerprint() == before


@every
def test_a_matrix_with_duplicates_is_not_tidied_up(estimator_class):
    X = csr_array((np.ones(4), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 3))
    estimator_class().partial_fit(X, [0, 1]).predict(X)
    assert X.indices.tolist() == [2, 0, 0, 1]
    assert X.data.tolist() == [1.0] * 4


@every
@pytest.mark.parametrize("batch_size", [1, 7])
def test_looking_changes_nothing(estimator_class, batch_size, tmp_path):
    X, y = stream(estimator_class)
    average = having(estimator_class, average=True)
    model = estimator_class(**average, **waiting(estimator_class, batch_size))
    model.partial_fit(X[:150], y[:150])
    before = model.fingerprint()
    model.predict(X)
    model.score(X, y)
    model.save(tmp_path / "model")
    if estimator_class in EXPANSIONS:
        model.expansion_.compress(max_points=2)
        for name in ("dictionary_", "dual_coef_"):
            getattr(model, name)[...] = 0.0
    if estimator_class in FACTORED:
        # BPA-P keeps all points, however close to the span of the others.
        assert model.residual_ < (1e-4 if estimator_class is BPAPClassifier else 1e-6)
    assert repr(model)
    assert model.fingerprint() == before


@every
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_and_clones_are_independent(estimator_class, duplicate):
    X, y = stream(estimator_class)
    model = estimator_class(random_state=0, **waiting(estimator_class, 7))
    model.partial_fit(X[:100], y[:100])
    before = model.fingerprint()
    twin = duplicate(model)
    assert twin.fingerprint() == before
    twin.partial_fit(X[100:], y[100:])
    clone(model).partial_fit(X, y)
    assert model.fingerprint() == before
    model.partial_fit(X[100:], y[100:])
    assert model.fingerprint() == twin.fingerprint()


# Numerics are watched: the factor stays exact on streams that break a naive inverse.

NASTY = {
    "duplicates": lambda r: r.normal(size=(30, 2))[r.integers(30, size=1500)],
    "nearly duplicates": lambda r: (
        r.normal(size=(30, 2))[r.integers(30, size=1500)] + 1e-7 * r.normal(size=(1500, 2))
    ),
    "collinear": lambda r: r.normal(size=(1500, 1)) @ np.ones((1, 3)),
    "constant": lambda r: np.ones((1500, 2)),
    "badly scaled": lambda r: r.normal(size=(1500, 3)) * [1e-6, 1.0, 1e6],
    "float32": lambda r: r.normal(size=(1500, 2)).astype(np.float32),
    "offset": lambda r: 1e4 + r.normal(size=(1500, 2)),
}


@with_factor
@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("batch_size", [1, 16])
def test_factor_stays_exact(estimator_class, name, batch_size):
    random = np.random.default_rng(0)
    X = NASTY[name](random)
    y = (np.sin(X[:, 0]) > 0.0).astype(int)
    batches = waiting(estimator_class, batch_size)
    small = having(estimator_class, compression_error=1e-4, novelty=1e-4)
    model = estimator_class(max_points=100, **small, **batches).partial_fit(X, y)
    assert model.residual_ < 1e-4
    assert np.isfinite(model.dual_coef_).all()


def test_a_factor_without_digits_is_refused():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(500, 3)), random.normal(size=500)
    model = POLKRegressor(compression_error=0.0)  # all points: condition number 3e15
    try:
        model.partial_fit(X, y)
    except IllConditionedError:
        return
    assert model.residual_ <= HOPELESS_ABOVE


@capped
@pytest.mark.parametrize("estimator_class", REGRESSORS)
def test_bits_do_not_depend_on_where_arrays_lie(estimator_class):
    """Sums in compiled loops must not change their order with the placement of memory."""
    parameters = having(
        estimator_class, batch_size=50, max_points=100, compression_error=Parsimony(0.001),
        eta0=0.01, delta=3.0, average=True, average_horizon=0.5,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    held = []
    for seed in range(12):
        X = rng.normal(size=(700, 8))
        y = np.sin(X.sum(axis=1))
        prints = set()
        for _ in range(3):
            held.append(np.empty(int(rng.integers(1, 200_000))))
            model = estimator_class(random_state=seed, **parameters)
            prints.add(model.partial_fit(X, y).fingerprint())
        assert len(prints) == 1


@pytest.mark.parametrize("index", [25, -5, 10**8])
def test_a_sparse_index_out_of_range_is_refused(index):
    X = random_array((50, 20), density=0.3, format="csr", random_state=0)
    y = np.arange(50.0)
    model = POLKRegressor().partial_fit(X, y)
    before = model.fingerprint()
    X.indices[3] = index
    with pytest.raises(ValueError, match="ind"):
        model.partial_fit(X, y)
    assert model.fingerprint() == before


def test_masked_arrays_and_dates_are_refused():
    X, y = stream(POLKRegressor, n=20)
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape, bool))
    for bad, target in (
        (masked, y),
        (X, np.ma.masked_array(y)),
        (X.astype("datetime64[s]"), y),
    ):
        with pytest.raises(ValueError, match=r"masked|dates"):
            POLKRegressor().partial_fit(bad, target)


@pytest.mark.parametrize("estimator_class", [POLKRegressor, AVMRegressor])
def test_samples_left_out_do_not_change_a_bit_of_the_predictions(estimator_class):
    """In any chunking: what is said of the others comes from the compiled pass throughout."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 5)), random.normal(size=300)
    weights = (random.random(300) < 0.8).astype(float)
    said = []
    for size in (300, 41, 1):
        model = estimator_class(random_state=0)
        said.append(np.concatenate([
            model.predict_then_learn(X[i : i + size], y[i : i + size], weights[i : i + size])
            for i in range(0, 300, size)
        ]))  # fmt: skip
    assert np.array_equal(said[0], said[1])
    # A sample that is left out and comes alone is evaluated alone, which may round otherwise.
    assert np.array_equal(said[0][weights > 0], said[2][weights > 0])
    assert said[0] == pytest.approx(said[2], rel=1e-12, abs=1e-12)
