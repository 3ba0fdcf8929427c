"""River's own checks, pipelines and metrics, with models of this package."""

import copy
import itertools
import warnings

import numpy as np
import pytest

import kernelstream
from kernelstream import AVMClassifier, POLKClassifier, POLKRegressor, registry
from kernelstream.compat._columns import Columns
from kernelstream.evaluation import prequential
from kernelstream.features import OnlineKernelFeatures
from kernelstream.models._widening import add_features, can_widen
from kernelstream.parameters import parameters_of
from tests.models.tools import stream

river = pytest.importorskip("river")
pd = pytest.importorskip("pandas")
from river import (  # noqa: E402
    checks,
    datasets,
    drift,
    evaluate,
    linear_model,
    metrics,
    optim,
    preprocessing,
)

from kernelstream.compat.river import (  # noqa: E402
    RiverClassifier,
    RiverKernelFeatures,
    RiverRegressor,
)


def small(kind, max_points=10):
    """An estimator that takes little time."""
    given = {"random_state": 0, "max_points": max_points, "n_components": 5}
    return kind(**{name: value for name, value in given.items() if name in parameters_of(kind)})


KINDS = [
    (wrapper, kind)
    for method in registry.methods().values()
    for wrapper, kind in ((RiverClassifier, method.classifier), (RiverRegressor, method.regressor))
    if kind is not None
]
every = pytest.mark.parametrize(("wrapper", "kind"), KINDS, ids=lambda kind: kind.__name__)
pytestmark = pytest.mark.filterwarnings("ignore::kernelstream.errors.CapWarning")  # they are small


def arrays(rows):
    """The same samples as arrays, features sorted by name as the wrappers have them."""
    names = sorted(rows[0][0], key=repr)
    X = np.array([[float(x[name]) for name in names] for x, _ in rows])
    return X, np.array([y for _, y in rows])


# ---- the contract ----------------------------------------------------------------------------


@every
def test_checks_of_river(wrapper, kind, monkeypatch):
    # River's streams have 200 to 2000 rows: the beginnings do, for so many methods. They are longer
    # than `max_points`: points leave, too.
    whole = checks._yield_datasets

    def short(model, scale=1):
        for rows in itertools.islice(whole(model), 3):
            yield list(itertools.islice(rows, 10))

    monkeypatch.setattr(checks, "_yield_datasets", short)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks.check_estimator(wrapper(small(kind, max_points=6)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [RiverClassifier(POLKClassifier(max_points=25, random_state=0)),
     RiverRegressor(POLKRegressor(max_points=25, random_state=0)),
     RiverKernelFeatures(OnlineKernelFeatures(4, max_points=8, random_state=0))],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_checks_of_river_as_they_are(model):
    checks.check_estimator(model)


def test_no_check_is_skipped():
    for model in (RiverClassifier(), RiverRegressor(), RiverKernelFeatures()):
        assert model._unit_test_skips() == set()


# ---- the same as our own evaluation ----------------------------------------------------------


@pytest.mark.parametrize("method", ["polk", "avm", "krlst", "auto"])
@pytest.mark.parametrize("data", [datasets.Phishing, datasets.Bananas, datasets.ImageSegments])
def test_progressive_validation_is_our_evaluation(method, data):
    rows = list(data().take(250))
    model = RiverClassifier(method)
    found = evaluate.progressive_val_score(rows, model, metrics.Accuracy()).get()
    own = registry.models()[method].classifier(random_state=0)
    assert found == prequential(own, arrays(rows), metrics=["accuracy"]).summary()["accuracy"]
    assert model._learner.fingerprint() == own.fingerprint()


@pytest.mark.parametrize("method", ["polk", "krlst", "auto"])
def test_the_same_of_numbers(method):
    rows = list(datasets.TrumpApproval().take(250))
    model = RiverRegressor(method)
    assert model.predict_one(rows[0][0]) == 0.0
    model.learn_one(*rows[0])  # ours says nothing before the first sample
    found = evaluate.progressive_val_score(rows[1:], model, metrics.MAE()).get()
    own = registry.models()[method].regressor(random_state=0)
    mae = prequential(own, arrays(rows), metrics=["mae"]).summary()["mae"]
    assert found == pytest.approx(mae, rel=1e-9)  # sums of errors in another order
    assert model._learner.fingerprint() == own.fingerprint()


@every
def test_one_sample_is_predicted_as_before_it_is_learned(wrapper, kind):
    X, y = stream(kind, n=120, classes=3)
    model = small(kind).partial_fit(X[:40], y[:40])
    said = model.predict_one(X[40])
    expected = copy.deepcopy(model).predict_then_learn(X[40:41], y[40:41]).tolist()[0]
    assert said == (expected if wrapper is RiverClassifier else pytest.approx(expected, rel=1e-9))
    before = model.fingerprint()
    model.predict_one(X[50])
    assert model.fingerprint() == before


def test_predict_one_takes_one_sample():
    X, y = stream(POLKClassifier, n=50)
    model = POLKClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="the features of one sample, got shape"):
        model.predict_one(X)


# ---- features that come and go ---------------------------------------------------------------


@every
def test_features_that_were_always_zero_change_nothing(wrapper, kind, tmp_path):
    X, y = stream(kind, n=120, features=2, classes=2)
    given = {"gamma": 0.5} if "gamma" in parameters_of(kind) else {}
    model = small(kind).set_params(**given).partial_fit(X[:60], y[:60])
    if not can_widen(model):
        pytest.skip("begins again with the latest samples")
    wider = copy.deepcopy(model)
    add_features(wider, 3)
    zeros = np.column_stack([X, np.zeros((120, 3))])
    assert wider.n_features_in_ == 5
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    np.testing.assert_allclose(
        getattr(wider, method)(zeros), getattr(model, method)(X), rtol=1e-9, atol=1e-9
    )
    wider.partial_fit(zeros[60:], y[60:])  # and goes on learning
    assert np.isfinite(getattr(wider, method)(np.column_stack([X, np.ones((120, 3))]))).all()
    wider.save(tmp_path / "m")
    again = kernelstream.load(tmp_path / "m")
    assert np.array_equal(getattr(again, method)(zeros), getattr(wider, method)(zeros))


def test_a_new_feature_is_learned_without_losing_the_rest():
    random = np.random.default_rng(0)
    model = RiverClassifier(POLKClassifier(gamma=1.0, random_state=0))
    for _ in range(300):
        a = random.normal()
        model.learn_one({"a": a}, bool(a > 0.0))
    assert model.predict_one({"a": 1.0})
    assert not model.predict_one({"a": -1.0})
    assert model.predict_one({"a": 1.0, "b": 5.0})  # not known yet: left out
    for _ in range(300):  # from now on b decides, where it is there
        a, b = random.normal(size=2)
        model.learn_one({"b": b, "a": a}, bool(b > 0.0))
    right = sum(
        model.predict_one({"a": a, "b": b}) == (b > 0.0) for a, b in random.normal(size=(200, 2))
    )
    assert right > 170
    assert model._learner.n_seen_ == 600


@pytest.mark.parametrize("nothing", [{}, {"a": None}, {"a": float("nan")}])
def test_a_first_sample_of_which_nothing_is_known(nothing):
    for wrapper, model, labels in (
        (RiverClassifier, POLKClassifier(max_points=20, random_state=0), ("low", "high")),
        (RiverRegressor, POLKRegressor(max_points=20, random_state=0), (0.0, 1.0)),
    ):
        wrapped = wrapper(model)
        wrapped.learn_one(nothing, labels[0])
        wrapped.predict_one({"a": 1.0})
        for _ in range(40):
            wrapped.learn_one({"a": -2.0}, labels[0])
            wrapped.learn_one({"a": 2.0}, labels[1])
        found = [wrapped.predict_one({"a": place}) for place in (-2.0, 2.0)]
        if wrapper is RiverRegressor:
            found = [float(value > 0.5) for value in found]
        assert found == list(labels)
    features = RiverKernelFeatures()
    features.learn_one(nothing)
    assert features.transform_one({"a": 1.0})


def test_texts_gaps_and_what_is_refused():
    model = RiverClassifier(POLKClassifier(gamma=1.0))
    for _ in range(50):
        model.learn_one({"colour": "red", "x": 3.0, "on": True}, "warm")
        model.learn_one({"colour": "blue", "x": None, "on": False}, "cold")
    assert model.predict_one({"colour": "red"}) == "warm"
    assert model.predict_one({"colour": "blue", "x": float("nan")}) == "cold"
    assert model._columns.row({})[1:].tolist()  # missing numbers are means
    assert 3.0 in model._columns.row({})
    with pytest.raises(TypeError, match="feature 'x' is a list: numbers, truth values and texts"):
        model.learn_one({"x": [1.0]}, "warm")


@pytest.mark.parametrize("method", ["krlst", "auto"])
def test_features_without_end_share_columns(method):
    model = RiverClassifier(method)
    model.learn_one({"colour": "red"}, "warm")
    many = {f"n{i}": 1.0 for i in range(600)} | {("a", "b", i): 2.0 for i in range(9)}
    with pytest.warns(UserWarning, match="share 64 columns"):
        model.learn_one(many, "cold")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        for i in range(20):
            model.learn_one({"id": f"2026-11-16 {i}", "colour": "red"}, "warm")
            model.learn_one({"id": f"2026-11-17 {i}", "colour": "blue"}, "cold")
    assert model._learner.n_features_in_ == len(model._columns) <= 512
    assert model.predict_one({"id": "2026-11-18", "colour": "red"}) == "warm"


def test_one_text_does_not_take_all_columns():
    columns = Columns(200)
    rows = [{"id": str(i // 2)} for i in range(1000)]
    with pytest.warns(UserWarning, match="of the text 'id'"):
        list(map(columns.learn, rows))
    place = len(columns)
    columns.learn({"colour": "red"})
    assert columns.row({"colour": "red"})[place] == 1.0  # one of its own
    assert columns.row({"id": "499"}).sum() == 1.0  # a shared one
    for i in range(500):
        columns.learn({f"x{i}": 1.0})
    assert len(columns) <= 200
    wide = Columns(100)
    wide.learn({f"x{i}": 1.0 for i in range(300)})
    with pytest.warns(UserWarning, match="'y' has none.*left out"):
        assert len(wide.learn({"y": 1.0})) == 300


def test_identifiers_have_no_columns():
    columns = Columns(200)
    for i in range(3000):
        columns.learn({"id": f"order {i}", "city": f"city {i % 40}"})
    assert len(columns) == 16 + 40
    assert columns.row({"id": "order 2999", "city": "city 7"}).sum() == 1.0
    columns.learn({"id": "order 2999"})  # comes again
    assert columns.row({"id": "order 2999"}).sum() == 1.0
    assert len(columns) == 57
    assert columns.nbytes < 24 * 57 + 8 * 1024 + 100
    named = Columns(200)  # numbers whose names are pairs are no texts
    for i in range(40):
        named.learn({("x", f"{i}"): 1.0})
    assert len(named) == 40


# ---- pipelines, drift, frames ----------------------------------------------------------------


def test_pipelines():
    scaled = preprocessing.StandardScaler() | RiverClassifier(AVMClassifier(random_state=0))
    score = evaluate.progressive_val_score(datasets.Phishing().take(400), scaled, metrics.ROCAUC())
    assert score.get() > 0.8
    features = RiverKernelFeatures(OnlineKernelFeatures(15, gamma=1.0, align=True, random_state=0))
    steps = optim.SGD(0.5)  # the features are small
    linear = preprocessing.StandardScaler() | features | linear_model.LogisticRegression(steps)
    score = evaluate.progressive_val_score(
        datasets.Bananas().take(1500), linear, metrics.Accuracy()
    )
    straight = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    plain = evaluate.progressive_val_score(
        datasets.Bananas().take(1500), straight, metrics.Accuracy()
    )
    assert score.get() > plain.get() + 0.1


def test_a_drift_detector_makes_it_begin_again():
    random = np.random.default_rng(0)
    X = random.normal(size=(1200, 2))
    y = (X[:, 0] > 0.0) ^ (np.arange(1200) >= 600)  # turned round in the middle

    def score(detector):
        model = RiverClassifier(
            POLKClassifier(gamma=1.0, eta0=0.02, random_state=0), drift_detector=detector
        )
        rows = [({"a": a, "b": b}, bool(label)) for (a, b), label in zip(X, y, strict=True)]
        found = evaluate.progressive_val_score(rows, model, metrics.Accuracy())
        return found.get(), model.n_drifts

    without, none = score(None)
    found, drifts = score(drift.ADWIN())
    assert none == 0
    assert drifts >= 1
    assert found > without


def test_frames_as_rows():
    rows = list(datasets.Phishing().take(120))
    X, y = pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows])
    one, many = RiverClassifier("polk"), RiverClassifier("polk")
    assert many.predict_many(X).empty
    for x, label in rows:
        one.learn_one(x, label)
    many.learn_many(X, y)
    assert many._learner.fingerprint() == one._learner.fingerprint()
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x, _ in rows]
    assert list(many.predict_proba_many(X).columns) == [False, True]


def test_predicting_changes_nothing():
    rows = list(datasets.Phishing().take(60))
    model = RiverClassifier(POLKClassifier(random_state=0))
    for x, label in rows:
        model.learn_one(x, label)
    before, columns = model._learner.fingerprint(), len(model._columns)
    for x, _ in rows:
        model.predict_one(x | {"never seen": 2.0})
        model.predict_proba_one(x | {"never seen": 2.0})
    model.predict_many(pd.DataFrame([x for x, _ in rows]))
    assert (model._learner.fingerprint(), len(model._columns)) == (before, columns)


def test_a_misspelt_model_is_told():
    with pytest.raises(ValueError, match="no model 'polkk', did you mean 'polk'"):
        RiverClassifier("polkk")


@pytest.mark.parametrize("model", ["no-such", POLKRegressor(), "rbf"])
def test_models_that_are_none(model):
    with pytest.raises(ValueError, match="model"):
        RiverClassifier(model)
    with pytest.raises(ValueError, match="model"):
        RiverKernelFeatures(POLKClassifier())
