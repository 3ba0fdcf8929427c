"""How COLK behaves: pairs, risks, trackers, outliers, and functions of the user's own."""

import copy
import pickle

import joblib
import numba
import numpy as np
import pytest

from kernelstream import (
    COLKClassifier,
    COLKRegressor,
    CompositionalLearner,
    DivergenceError,
    IllConditionedError,
    KernelExpansion,
    ModelFileError,
    POLKClassifier,
    POLKRegressor,
    load,
    merge,
)
from kernelstream.core.reduce.komp import BLOCK, GREEDY, prune_block
from kernelstream.models.colk import largest_deviation
from tests.models.tools import COLK, FORMS, in_pieces, stream
from tests.naive import kernels as naive_kernels
from tests.naive.colk import colk

both = pytest.mark.parametrize("estimator_class", COLK)
RISKS = ("variance", "semivariance", "moments", "semideviations", "cvar")


def skewed(n, seed):
    """Skewed noise, eight times larger on the right half."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, (n, 1))
    spread = np.where(X[:, 0] > 0.0, 0.8, 0.1)
    return X, np.sin(3.0 * X[:, 0]) + spread * (random.exponential(size=n) - 1.0)


# Against the twin and against POLK, through the estimators


@pytest.mark.parametrize("risk", RISKS)
def test_the_estimator_is_the_paper(risk):
    X, y = stream(COLKRegressor, n=100)
    model = COLKRegressor(
        risk=risk, risk_weight=0.3, order=3, level=0.8, tracking_rate=0.1, clip=2.0, gamma=0.5,
        eta0=0.4, alpha=0.01, compression_error=0.05,
    ).partial_fit(X, y)  # fmt: skip
    expected = colk(
        naive_kernels.gaussian(0.5), X, y, "squared_error", regularisation=0.01, initial_step=0.4,
        budget_number=0.05, risk=risk, risk_weight=0.3, order=3, level=0.8, beta=0.1,
        cut=largest_deviation(
            0.3, 3 if risk in ("moments", "semideviations") else 2, None if risk == "cvar" else 2.0
        ),
    )  # fmt: skip
    values = naive_kernels.matrix(naive_kernels.gaussian(0.5), X, expected.points)
    assert model.predict(X) == pytest.approx((values @ expected.weights)[:, 0], abs=1e-8)
    assert model.tracker_ == pytest.approx(expected.trackers[-1])
    assert model.threshold_ == pytest.approx(expected.thresholds[-1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", [3, 30])
@pytest.mark.parametrize("parameters", [{}, {"batch_size": 6, "average": True}])
def test_without_risk_it_is_polk(form, features, parameters):
    for mine, other in ((COLKRegressor, POLKRegressor), (COLKClassifier, POLKClassifier)):
        X, y = stream(mine, n=401, features=features, classes=3)
        options = {"eta0": 0.4, "compression_error": 0.1, "random_state": 0, **parameters}
        model = mine(risk_weight=0.0, **options).partial_fit(FORMS[form](X), y)
        polk = other(**{"batch_size": 2, **options}).partial_fit(FORMS[form](X), y)
        assert np.array_equal(model.dictionary_, polk.dictionary_)
        assert np.array_equal(model.dual_coef_, polk.dual_coef_)
        assert model.error_spent_ == polk.error_spent_
        assert np.array_equal(model.flush().dual_coef_, polk.flush().dual_coef_)


@pytest.mark.parametrize(
    ("weight", "order"), [(0.1, 2), (3.0, 4), (1e-6, 8), (1e90, 3), (1e-60, 8)]
)
def test_deviations_are_cut_where_they_reach_the_clip(weight, order):
    d = largest_deviation(weight, order, 4.0)
    assert weight * sum(p * d ** (p - 1) for p in range(2, order + 1)) == pytest.approx(4.0)
    assert largest_deviation(weight, order, None) == largest_deviation(0.0, order, 4.0) == np.inf


# Pairs


@both
def test_a_lone_sample_waits_or_is_flushed_without_the_risk(estimator_class):
    X, y = stream(estimator_class, n=101)
    models = [
        estimator_class(risk_weight=weight, random_state=0).partial_fit(X[:100], y[:100])
        for weight in (5.0, 5.0)
    ]
    before = models[0].predict(X)
    models[0].partial_fit(X[100:], y[100:])
    assert models[0].n_seen_ == 100
    assert np.array_equal(models[0].predict(X), before)
    models[1].set_params(risk_weight=0.0).partial_fit(X[100:], y[100:])
    assert np.array_equal(models[0].flush()._evaluate(X), models[1].flush()._evaluate(X))
    assert models[0].n_seen_ == 101


def test_an_odd_batch_is_refused():
    with pytest.raises(ValueError, match="even"):
        COLKRegressor(batch_size=3).partial_fit(*stream(COLKRegressor))


@both
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("size", [1, 7, 200])
def test_predictions_are_those_before_the_pair(estimator_class, average, size):
    X, y = stream(estimator_class, n=200)
    options = {"random_state": 0, "average": average}
    known = {} if estimator_class is COLKRegressor else {"classes": [0, 1]}
    model = estimator_class(**options).partial_fit(X[:21], y[:21], **known)
    twin = copy.deepcopy(model)
    said = [
        model.predict_then_learn(X[i : i + size], y[i : i + size]) for i in range(21, 200, size)
    ]
    expected = []
    for i in range(21, 200):
        expected.append(twin.predict(X[i : i + 1]))
        twin.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.concatenate(said) == pytest.approx(np.concatenate(expected), abs=1e-12)
    assert model.fingerprint() == twin.fingerprint()


def test_tracking_cannot_be_switched_on_the_way():
    X, y = stream(COLKRegressor)
    model = COLKRegressor().partial_fit(X, y)
    with pytest.raises(ValueError, match="tracking cannot change"):
        model.set_params(tracking="average").partial_fit(X, y)


# Risks


@pytest.mark.parametrize(
    ("risk", "weight", "share"),
    [
        ("variance", 0.3, 0.9),
        ("semivariance", 0.3, 0.9),
        ("moments", 0.1, 0.9),
        ("cvar", 0.3, 0.96),
    ],
)
def test_each_risk_does_what_its_name_says(risk, weight, share):
    X, y = skewed(8000, seed=0)
    X_test, y_test = skewed(20_000, seed=1)

    def losses(risk_weight):
        model = COLKRegressor(risk=risk, risk_weight=risk_weight, gamma=5.0, eta0=0.1, average=True)
        return (model.partial_fit(X, y).predict(X_test) - y_test) ** 2 / 2.0

    measure = {
        "variance": np.var,
        "semivariance": lambda v: np.mean(np.maximum(v - v.mean(), 0.0) ** 2),
        "moments": lambda v: sum(np.mean((v - v.mean()) ** p) for p in (2, 3, 4)),
        "cvar": lambda v: v[v >= np.quantile(v, 0.9)].mean(),
    }[risk]
    neutral, averse = losses(0.0), losses(weight)
    assert measure(averse) < share * measure(neutral)
    assert neutral.mean() < averse.mean() < 1.2 * neutral.mean()  # the price


def test_the_threshold_is_the_quantile():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20_000, 1)), random.exponential(size=20_000)
    model = COLKRegressor("absolute_error", risk="cvar", level=0.8, eta0=1e-9, tracking_rate=0.01)
    model.partial_fit(X, y)  # f stays 0: the losses are the targets
    assert model.threshold_ == pytest.approx(np.log(5.0), rel=0.15)
    assert model.tracker_ == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1])
def test_gradient_tracking_follows_a_function_that_learns(rate):
    """Lemma 1: f's own progress does not enter the error of (20); it does that of (19)."""
    errors = {"momentum": 0.0, "average": 0.0}
    for seed in range(4):
        random = np.random.default_rng(seed)
        X = random.uniform(-1.0, 1.0, (1000, 1))
        y = 2.0 * np.sin(3.0 * X[:, 0]) + 0.3 * random.normal(size=1000)
        for tracking in errors:
            model = COLKRegressor(
                risk_weight=0.0, gamma=5.0, eta0=0.05, tracking_rate=rate, tracking=tracking
            ).partial_fit(X[:60], y[:60])
            for first in range(60, 500, 20):
                mean = np.mean((model.predict(X) - y) ** 2) / 2.0
                model.partial_fit(X[first : first + 2], y[first : first + 2])
                errors[tracking] += (model.tracker_ - mean) ** 2
                model.partial_fit(X[first + 2 : first + 20], y[first + 2 : first + 20])
    assert errors["momentum"] < 0.8 * errors["average"]


# Outliers


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("tracking", ["momentum", "average"])
@pytest.mark.parametrize("weight", [0.1, 0.9])
@pytest.mark.filterwarnings("ignore::kernelstream.CapWarning")
def test_outliers_of_a_million_leave_it_finite(risk, tracking, weight):
    X, y = stream(COLKRegressor, n=1000)
    random = np.random.default_rng(0)
    bad = random.random(1000) < 0.05
    y[bad] += 1e6 * random.choice([-1.0, 1.0], bad.sum())
    model = COLKRegressor(risk=risk, risk_weight=weight, tracking=tracking, max_points=40)
    values = model.partial_fit(X, y).predict(X)
    assert np.isfinite(values).all()
    assert np.abs(values).max() < 3e6
    if risk != "cvar":  # no outlier enters the tracker as it is
        assert abs(model.tracker_) < 1e3


def test_without_the_clip_such_outliers_are_refused():
    X, y = stream(COLKRegressor, n=500)
    y[100] = 1e6
    with pytest.raises(DivergenceError, match="risk_weight"):
        COLKRegressor(risk="moments", clip=None).partial_fit(X, y)


def test_the_clip_does_not_touch_ordinary_data():
    X, y = stream(COLKRegressor, n=500)
    y = np.tanh(y)  # no tails
    for risk in RISKS:
        weight = 0.01 if risk == "moments" else 0.1
        models = [
            COLKRegressor(risk=risk, risk_weight=weight, clip=c, random_state=0).partial_fit(X, y)
            for c in (4.0, None)
        ]
        assert np.array_equal(models[0].dual_coef_, models[1].dual_coef_)


# From outside


def test_points_dropped_outside_a_step_make_past_and_present_equal():
    X, y = stream(COLKRegressor, n=200)
    model = COLKRegressor(compression_error=0.01).partial_fit(X, y)
    assert model.model_order_ > 20
    model._drop_points(10)
    state = model._state
    current = state.weights[0, :10] * state.status[0]["scale"]
    assert np.array_equal(state.weights[1, :10], current)
    assert (state.order, state.extent) == (10, 10)


def test_a_factor_that_is_given_up_leaves_points_and_weights_together(monkeypatch):
    X, y = stream(COLKRegressor, n=200)
    model = COLKRegressor(compression_error=0.01).partial_fit(X, y)

    def watch(state, kernel, outputs):
        prune_block(state, outputs, 0.0, 0.0, 10, GREEDY, BLOCK)
        raise IllConditionedError("hopeless")

    twin = copy.deepcopy(model)
    twin._drop_points(10)
    monkeypatch.setattr("kernelstream.models._past.komp.watch", watch)
    with pytest.raises(IllConditionedError):
        model._watch()
    assert model.fingerprint() == twin.fingerprint()


# Merging


@both
def test_merged_models_go_on_learning(estimator_class, tmp_path):
    X, y = stream(estimator_class, n=600)
    models = [estimator_class(random_state=0).partial_fit(X[i::2], y[i::2]) for i in range(2)]
    merged = merge(models)
    expected = KernelExpansion.merge([model.expansion_ for model in models])
    assert merged._evaluate(X)[:, 0] == pytest.approx(expected(X), abs=1e-3)
    assert merged.tracker_ == pytest.approx(np.mean([model.tracker_ for model in models]))
    merged.partial_fit(X[:101], y[:101]).save(tmp_path / "model")
    again = load(tmp_path / "model").partial_fit(X, y)
    assert again.fingerprint() == merged.partial_fit(X, y).fingerprint()


# Functions of the user's own


def loss(value, x, y):
    return 0.5 * (value - y) ** 2


def slope(value, x, y):
    return value - y


def outer(value, mean, x, y):
    excess = 0.5 * (value - y) ** 2 - mean
    return (1.0 + 0.6 * excess) * (value - y), -0.6 * excess


def loss_and_square(value, x, y):
    return 0.5 * (value - y) ** 2, 0.25 * (value - y) ** 4


def slope_and_square(value, x, y):
    return value - y, (value - y) ** 3


def mean_and_variance(value, tracked, x, y):
    """E l + 0.3 (E l^2 - (E l)^2): no term of its own at x."""
    return 0.0, (1.0 - 0.6 * tracked[0], 0.3)


PLAIN = (loss, slope, outer)
JITTED = tuple(numba.njit(function) for function in PLAIN)


def assert_built_in(functions, parameters, form):
    X, y = stream(COLKRegressor, n=301)
    ready = COLKRegressor(risk_weight=0.3, clip=None, random_state=0, **parameters)
    model = CompositionalLearner(*functions, random_state=0, **parameters)
    for one in (ready, model):
        in_pieces(one, FORMS[form](X), y, 37)
    assert np.array_equal(model.dictionary_, ready.dictionary_)
    assert model.dual_coef_ == pytest.approx(ready.dual_coef_, rel=1e-9)
    assert model.tracker_ == pytest.approx(ready.tracker_)
    assert model.flush().predict(X) == pytest.approx(ready.flush().predict(X), rel=1e-9)
    said = model.predict_then_learn(X, y)
    assert said == pytest.approx(ready.predict_then_learn(X, y), rel=1e-6, abs=1e-9)


OWN = [{}, {"tracking": "average", "average": True}]


@pytest.mark.parametrize("parameters", OWN)
@pytest.mark.parametrize("form", FORMS)
def test_own_functions_give_what_is_built_in(parameters, form):
    assert_built_in(PLAIN, parameters, form)


# One test: a pass for functions of one's own is not cached, and takes many seconds to compile.
def test_own_compiled_functions_give_what_is_built_in():
    for parameters in OWN:
        for form in FORMS:
            assert_built_in(JITTED, parameters, form)


def test_a_vector_is_tracked():
    """The variance as E l^2 - (E l)^2 with both means tracked: another way to the same minimum."""
    X, y = skewed(3000, seed=0)
    functions = (loss_and_square, slope_and_square, mean_and_variance)
    options = {"gamma": 5.0, "eta0": 0.1, "average": True}
    model = CompositionalLearner(*functions, n_tracked=2, tracking_rate=0.1, **options).partial_fit(
        X, y
    )
    ready = COLKRegressor(risk_weight=0.3, clip=None, **options).partial_fit(X, y)
    neutral = COLKRegressor(risk_weight=0.0, **options).partial_fit(X, y)
    assert model.tracker_.shape == (2,)
    grid = np.linspace(-0.9, 0.9, 50)[:, None]
    shift = np.abs(ready.predict(grid) - neutral.predict(grid)).max()
    assert shift > 0.1
    assert np.abs(model.predict(grid) - ready.predict(grid)).max() < 0.5 * shift


def test_own_functions_and_files(tmp_path):
    X, y = stream(COLKRegressor, n=100)
    model = CompositionalLearner(*PLAIN, random_state=0).partial_fit(X[:51], y[:51])
    again = pickle.loads(pickle.dumps(model))
    assert again.fingerprint() == model.fingerprint()
    assert again.partial_fit(X[51:], y[51:]).fingerprint() == (
        model.partial_fit(X[51:], y[51:]).fingerprint()
    )
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"load\(path, inner=\.\.\., inner_deriv"):
        load(tmp_path / "model")
    names = ("inner", "inner_derivative", "outer_derivative")
    loaded = load(tmp_path / "model", **dict(zip(names, PLAIN, strict=True)))
    assert loaded.fingerprint() == model.fingerprint()
    assert loaded.partial_fit(X, y).fingerprint() == model.partial_fit(X, y).fingerprint()
    with pytest.raises(ModelFileError, match="inner must be"):
        load(tmp_path / "model", **dict.fromkeys(names, 1.0))
    with pytest.raises(ValueError, match="outer_derivative cannot change"):
        model.set_params(outer_derivative=mean_and_variance).partial_fit(X, y)


def test_a_function_that_is_not_finite_is_refused():
    def endless(value, x, y):
        return np.inf if y > 2.0 else 0.5 * (value - y) ** 2

    X, y = stream(COLKRegressor, n=100)
    model = CompositionalLearner(endless, slope, outer).partial_fit(X, np.clip(y, -1.0, 1.0))
    before = model.fingerprint()
    with pytest.raises(DivergenceError, match="not finite"):
        model.partial_fit(X[:2], [3.0, 0.0])
    assert model.fingerprint() == before


def test_a_function_that_raises_leaves_the_steps_before_it():
    X, y = stream(COLKRegressor, n=100)
    y[61] = 100.0  # the second of its pair

    def picky(value, x, y):
        if y > 50.0:
            raise ArithmeticError("no such target")
        return loss(value, x, y)

    for size in (100, 61):  # within a pass, and within what waited
        model = CompositionalLearner(picky, slope, outer, random_state=0)
        with pytest.raises(ArithmeticError, match="no such"):
            in_pieces(model, X, y, size)
        assert (model.n_seen_, model._pending is None) == (60, size == 100)
        model._pending = None
        whole = CompositionalLearner(picky, slope, outer, random_state=0).partial_fit(
            X[:60], y[:60]
        )
        assert model.fingerprint() == whole.fingerprint()


def test_own_functions_give_memory_back_and_may_be_mapped(tmp_path):
    X, y = stream(COLKRegressor, n=200)
    model = CompositionalLearner(*PLAIN, random_state=0, gamma=50.0, compression_error=0.0)
    model.partial_fit(X, y)
    held = model.nbytes_
    model.set_params(max_points=5).partial_fit(X[:4], y[:4])
    assert model.nbytes_ < held / 4
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r").partial_fit(X[:2], y[:2])
    assert mapped.fingerprint() == model.partial_fit(X[:2], y[:2]).fingerprint()


@pytest.mark.parametrize("estimator_class", [*COLK, POLKClassifier, POLKRegressor])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_waits_is_learned_once_when_batches_become_smaller(estimator_class, weighted):
    X, y = stream(estimator_class, n=40)
    weights = np.where(np.arange(20) % 5 == 0, 0.0, 1.0) if weighted else None
    models = [
        estimator_class(batch_size=20, random_state=0).partial_fit(X[:19], y[:19]) for _ in range(2)
    ]
    for model in models:
        model.set_params(batch_size=4)
    models[0].predict_then_learn(X[20:], y[20:], sample_weight=weights)
    models[1].partial_fit(X[20:], y[20:], sample_weight=weights)
    assert models[0].fingerprint() == models[1].fingerprint()


def test_what_waits_may_be_longer_than_the_room_for_predictions():
    X, y = stream(POLKRegressor, n=40)
    model = POLKRegressor(batch_size=40, random_state=0).partial_fit(X[:30], y[:30])
    model.set_params(batch_size=1)
    again = copy.deepcopy(model).flush()
    assert model.predict_then_learn(X[:2], y[:2]) == pytest.approx(
        again.predict_then_learn(X[:2], y[:2])
    )


@pytest.mark.parametrize("estimator_class", [*COLK, POLKRegressor])
def test_complex_numbers_are_refused_one_by_one(estimator_class):
    X, y = stream(estimator_class, n=10)
    model = estimator_class(random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="Complex"):
        model.learn_one(X[0] + 1j, y[0])
    if not hasattr(model, "classes_"):
        with pytest.raises(ValueError, match="Complex"):
            model.learn_one(X[0], np.complex64(1j))


def test_advice_names_what_bounds_the_step():
    for risk, name, other in (("variance", "clip", "level"), ("cvar", "level", "clip")):
        advice = COLKRegressor(risk=risk)._overflow_cure()
        assert f"{name}=" in advice
        assert other not in advice
    assert "set clip" in COLKRegressor(clip=None)._overflow_cure()


def test_without_risk_it_is_polk_where_probabilities_are_one():
    X, y = stream(COLKRegressor, n=60)
    labels = np.digitize(y, [-0.3, 0.3])
    options = {"eta0": 200.0, "alpha": 0.0, "compression_error": 0.0, "random_state": 0}
    ours = COLKClassifier("log_loss", risk_weight=0.0, **options)
    polk = POLKClassifier("log_loss", batch_size=2, **options)
    for model in (ours, polk):
        model.partial_fit(X, labels, classes=[0, 1, 2])
    assert np.array_equal(ours.dictionary_, polk.dictionary_)
    assert np.array_equal(ours.dual_coef_, polk.dual_coef_)
