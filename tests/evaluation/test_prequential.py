"""Prequential runs: against naive loops, for any chunking, stopped and resumed."""

import copy
import importlib
import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, roc_auc_score

from kernelstream import POLKClassifier, POLKRegressor, storage
from kernelstream.evaluation import Prequential, Trace, prequential
from kernelstream.evaluation import trace as trace_module
from kernelstream.evaluation.baselines import Baselines
from kernelstream.evaluation.labels import Labels
from kernelstream.evaluation.risk import sample_losses

N = 240


def samples(classes=3, n=N, seed=0, names=None):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    signal = np.sin(2.0 * X[:, 0]) + X[:, 1]
    if not classes:
        return X, signal
    y = np.digitize(signal, np.quantile(signal, np.arange(1, classes) / classes))
    if classes == 5:  # a class that comes late, and sorts first
        y[: n // 3][y[: n // 3] == 0] = 2
    return X, y if names is None else np.array(names)[y]


CASES = {
    "classes": (
        lambda: POLKClassifier(random_state=0),
        {"metrics": ["accuracy", "balanced_accuracy", "f1", "kappa", "kappa_temporal"]},
        samples(5, names=["a", "bb", "c", "d", "e"]),
    ),
    "scores of two": (
        lambda: POLKClassifier("log_loss", random_state=0),
        {"metrics": ["log_loss", "auc", "error"]},
        samples(2),
    ),
    "scores of many": (
        lambda: POLKClassifier("log_loss", average=True, random_state=0),
        {"metrics": ["accuracy", "log_loss"]},
        samples(12),
    ),
    "numbers": (
        lambda: POLKRegressor(random_state=0),
        {"metrics": ["mae", "rmse", "r2"]},
        samples(0),
    ),
    "batches": (lambda: POLKRegressor(batch_size=8), {}, samples(0)),
    "batches of classes": (
        lambda: POLKClassifier("log_loss", batch_size=7),
        {"metrics": ["log_loss"]},
        samples(5),
    ),
    "lag": (lambda: POLKRegressor(random_state=0), {"lag": 13}, samples(0)),
    "lag, scores": (
        lambda: POLKClassifier("log_loss"),
        {"lag": 5, "metrics": ["log_loss", "auc"], "classes": [0, 1]},
        samples(2),
    ),
    "linear": (
        lambda: SGDClassifier(random_state=0),
        {"classes": [0, 1, 2, 3, 4], "metrics": ["accuracy", "kappa"]},
        samples(5),
    ),
    "linear, scores": (
        lambda: SGDClassifier(loss="log_loss", random_state=0),
        {"classes": [0, 1], "metrics": ["auc", "log_loss"]},
        samples(2),
    ),
    "linear numbers": (lambda: SGDRegressor(random_state=0), {}, samples(0)),
}
FORMS = {"dense": np.asarray, "csr": csr_array}


def run_in_pieces(model, options, X, y, size):
    run = Prequential(model, every=70, window=60, fading=0.98, **options)
    for first in range(0, len(y), size):
        run.update(X[first : first + size], y[first : first + size])
    return run.finish()


def bits(trace):
    columns = trace.to_columns()
    del columns["seconds"]
    return {name: column.tobytes() for name, column in columns.items()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", FORMS)
def test_chunking_changes_no_bit(case, form, monkeypatch):
    make, options, (X, y) = CASES[case]
    X = FORMS[form](X)
    whole = run_in_pieces(make(), options, X, y, N)
    assert whole.to_columns()["samples"].tolist() == [70, 140, 210, 240]
    module = importlib.import_module("kernelstream.evaluation.prequential")
    monkeypatch.setattr(module, "MOST_UNCOUNTED", 16)  # nor does when the metrics are updated
    for size in (7,) if "lag" in case else (1, 7, 133):
        assert bits(run_in_pieces(make(), options, X, y, size)) == bits(whole)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stop", [1, 95])
def test_resuming_equals_never_having_stopped(case, form, stop):
    make, options, (X, y) = CASES[case]
    X = FORMS[form](X)
    whole = run_in_pieces(make(), options, X, y, N)
    run = Prequential(make(), every=70, window=60, fading=0.98, **options)
    run.update(X[:stop], y[:stop])
    before = run.state()
    header, arrays = json.loads(json.dumps(before[0])), storage.dumps("run", *before)
    again = Prequential.restore(
        copy.deepcopy(run.model), header, storage.loads(arrays).arrays, on_record=None
    )
    for resumed in (again, run):  # taking the state changed nothing
        resumed.update(X[stop:], y[stop:])
        assert bits(resumed.finish()) == bits(whole)


def test_resuming_with_a_model_from_a_file(tmp_path):
    X, y = samples(5)
    whole = run_in_pieces(POLKClassifier(random_state=0), {}, X, y, N)
    run = Prequential(POLKClassifier(random_state=0), every=70, window=60, fading=0.98)
    run.update(X[:170], y[:170])
    run.model.save(tmp_path / "model.ks")
    again = Prequential.restore(POLKClassifier.load(tmp_path / "model.ks"), *run.state())
    again.update(X[170:], y[170:])
    resumed, expected = bits(again.finish()), bits(whole)
    del resumed["bytes"], expected["bytes"]  # a loaded model has other spare memory
    assert resumed == expected


def naive(model, X, y, lag, classes=None):
    """Predictions of a loop over samples; None where the model knows nothing yet."""
    said = []
    for i in range(len(y)):
        fitted = hasattr(model, "n_features_in_")
        said.append(model.predict(X[i : i + 1])[0] if fitted else None)
        due = i - lag
        if due >= 0:
            extra = {} if classes is None or due else {"classes": classes}
            model.partial_fit(X[due : due + 1], y[due : due + 1], **extra)
    return said


@pytest.mark.parametrize("lag", [0, 1, 10, 500])
@pytest.mark.parametrize("classes", [0, 5])
def test_lag_against_a_naive_loop(lag, classes):
    X, y = samples(classes)
    make = POLKClassifier if classes else POLKRegressor
    metric, score = ("accuracy", accuracy_score) if classes else ("mae", mean_absolute_error)
    slow = make(random_state=0)
    said = naive(slow, X, y, lag)
    assert said.count(None) == min(lag + 1, N)
    run = Prequential(make(random_state=0), [metric], lag=lag, every=N)
    run.update(X, y)
    value = run.trace.to_columns()[metric][-1]
    if lag >= N:
        assert np.isnan(value)
    else:
        assert value == pytest.approx(score(y[lag + 1 :], said[lag + 1 :]), rel=1e-9)
        assert run.model.fingerprint() == slow.fingerprint()
    run.finish()  # the last labels have come: the same model as without a lag
    assert run.model.fingerprint() == make(random_state=0).partial_fit(X, y).fingerprint()


def test_scores_are_those_of_a_naive_loop():
    X, y = samples(2)
    y = np.where(np.arange(N) < 9, 1, y)  # one class only for a while
    slow, decision, probability = POLKClassifier("log_loss"), [], []
    slow.partial_fit(X[:1], y[:1])
    for i in range(1, N):
        decision.append(slow.decision_function(X[i : i + 1])[0])
        known = slow.classes_.tolist()
        proba = slow.predict_proba(X[i : i + 1])[0]
        probability.append(proba[known.index(y[i])] if y[i] in known else 0.0)
        slow.partial_fit(X[i : i + 1], y[i : i + 1])
    trace = prequential(
        POLKClassifier("log_loss"), (X, y), ["log_loss", "auc"], every=N, window=N - 20
    )
    columns = trace.to_columns()
    probability = np.array(probability)
    expected = log_loss(
        np.ones(N - 1), np.stack([1 - probability, probability], axis=1), labels=[0, 1]
    )
    assert columns["log_loss"][0] == pytest.approx(expected, rel=1e-9)
    last = slice(-(N - 20), None)
    assert columns["auc_window"][0] == pytest.approx(roc_auc_score(y[last], decision[last]))
    assert np.isnan(columns["no_change"]).all()  # no baseline gives probabilities


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("classes", [2, 5])
def test_decide_then_learn_says_what_labels_and_probabilities_follow(batch_size, classes):
    X, y = samples(classes)
    models = [POLKClassifier("log_loss", batch_size=batch_size).partial_fit(X[:1], y[:1])] * 2
    models = [copy.deepcopy(model) for model in models]
    labels = models[0].predict_then_learn(X[1:], y[1:])
    values = models[1].decide_then_learn(X[1:], y[1:])
    assert models[0].fingerprint() == models[1].fingerprint()
    known = models[1].classes_
    winners = (values > 0).astype(int) if classes == 2 else values.argmax(axis=1)
    assert known[winners].tolist() == labels.tolist()
    assert np.isinf(values).any()  # where fewer classes were known
    assert np.isfinite(values[-10:]).all()
    assert np.allclose(models[1].decision_function(X[:5]).shape[1:], values.shape[1:])


@pytest.mark.parametrize("lag", [0, 1, 6])
@pytest.mark.parametrize("classes", [0, 4])
@pytest.mark.parametrize("size", [1, 9, 300])
def test_baselines_against_naive_loops(lag, classes, size):
    random = np.random.default_rng(3)
    y = random.integers(0, 4, 300) if classes else random.normal(size=300)
    no_change, majority = [], []
    counts, leader = {}, None
    for t in range(300):
        came = y[: max(0, t - lag)]
        no_change.append(came[-1] if len(came) else None)
        if classes:
            if len(came):
                counts[came[-1]] = counts.get(came[-1], 0) + 1
                if leader is None or counts[came[-1]] > counts[leader]:
                    leader = came[-1]
            majority.append(leader)
        else:
            majority.append(came.mean() if len(came) else None)
    labels = Labels() if classes else None
    baselines = Baselines("accuracy" if classes else "mae", labels, window=50, lag=lag)
    for first in range(0, 300, size):
        part = y[first : first + size]
        baselines.update(labels.encode(part) if classes else part)
    score = accuracy_score if classes else mean_absolute_error
    for name, said in (("no_change", no_change), ("majority", majority)):
        values, start = baselines.values(), lag + 1
        assert values[name] == pytest.approx(score(y[start:], said[start:]))
        assert values[f"{name}_window"] == pytest.approx(score(y[-50:], said[-50:]))


def test_a_scikit_learn_model_is_tested_then_trained_on_blocks():
    X, y = samples(2)
    trace = prequential(SGDClassifier(random_state=0), (X, y), every=100, classes=[0, 1])
    model, said = SGDClassifier(random_state=0).partial_fit(X[:1], y[:1], classes=[0, 1]), []
    for first, end in [(1, 100), (100, 200), (200, 240)]:
        said.extend(model.predict(X[first:end]))
        model.partial_fit(X[first:end], y[first:end])
    assert trace.to_columns()["accuracy"][-1] == accuracy_score(y[1:], said)
    assert np.isnan(trace.to_columns()["model_order"]).all()


def test_any_form_of_stream_and_data_frames():
    X, y = samples(3)
    pairs = [(X[:150], y[:150]), (X[150:], y[150:])]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = bits(prequential(POLKClassifier(), (X, y), every=100))
    model = POLKClassifier()
    for stream in (pairs, tuple(pairs), iter(pairs)):
        assert bits(prequential(POLKClassifier(), stream, every=100)) == expected
    assert bits(prequential(model, (frame, pd.Series(y)), every=100)) == expected
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_what_is_no_stream_is_refused():
    with pytest.raises(ValueError, match="iterable of them, got a ndarray"):
        prequential(POLKClassifier(), list(samples(2)))


@pytest.mark.parametrize("dtype", [np.uint8, bool, "U1"])
@pytest.mark.parametrize("lag", [0, 4])
def test_labels_keep_their_type(dtype, lag):
    X, y = samples(2)
    run = Prequential(POLKClassifier(), lag=lag)
    run.update(X[:50], y[:50].astype(dtype))
    again = Prequential.restore(run.model, *run.state())
    again.finish()
    assert again.model.classes_.dtype == np.dtype(dtype)


def test_a_model_that_has_learned_is_scored_from_the_first_sample():
    X, y = samples(3)
    model = POLKClassifier().partial_fit(X[:100], y[:100])
    said = copy.deepcopy(model).predict_then_learn(X[100:], y[100:])
    trace = prequential(model, (X[100:], y[100:]))
    assert trace.summary()["accuracy"] == accuracy_score(y[100:], said)


@pytest.mark.parametrize("bad", ["nan", "width", "label", "length"])
@pytest.mark.parametrize("options", [{}, {"lag": 3}])
def test_bad_input_changes_nothing(bad, options):
    X, y = samples(3)
    run = Prequential(POLKClassifier(), every=50, classes=[0, 1, 2], **options)
    run.update(X[:120], y[:120])
    before = run.model.fingerprint(), run.samples, bits(run.trace)
    X, y = X[120:].copy(), y[120:].copy()
    match bad:
        case "nan":
            X[100, 1] = np.nan
        case "width":
            X = X[:, :2]
        case "label":
            y[100] = 7
        case "length":
            y = y[:-1]
    with pytest.raises(ValueError, match=r"NaN at row 100|features|label 7|\b7\b|inconsistent"):
        run.update(X, y)
    assert (run.model.fingerprint(), run.samples, bits(run.trace)) == before


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (POLKClassifier(), {"metrics": ["log_loss"]}, "loss='log_loss'"),
        (POLKClassifier(gamma="scale"), {}, "gamma as a number"),
        (SGDClassifier(), {}, "give classes="),
        (POLKClassifier(), {"metrics": ["mae"]}, "metrics for classification"),
        (POLKClassifier(), {"every": 0}, "every must be a whole number"),
        (POLKClassifier(), {"lag": -1}, "lag must be a whole number"),
        (object(), {}, "neither a classifier nor a regressor"),
    ],
)
def test_what_makes_no_sense_is_refused(model, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Prequential(model, **options)


def test_a_state_of_another_version_is_refused():
    with pytest.raises(ValueError, match="format 2"):
        Prequential.restore(POLKClassifier(), {"format": 2}, {})


SPOILED_CLASSES = [
    ("metrics/recent", lambda a: a[1:]),
    ("metrics/recent", lambda a: a + 0.5),
    ("metrics/recent", lambda a: a - 9.0),
    ("metrics/places", lambda a: a[1:]),
    ("metrics/places", lambda a: a - 1000),
    ("metrics/places", lambda a: a + 10**6),
    ("metrics/counts", lambda a: a[1:]),
    ("metrics/counts", lambda a: np.zeros((9, 9))),
    ("metrics/losses_fading", lambda a: a[1:]),
    ("baselines/waiting", lambda a: a[1:]),
    ("baselines/waiting", lambda a: a + 100.0),
    ("baselines/counts", lambda a: a.astype(float)),
    ("baselines/counts", lambda a: a - 1000),
    ("baselines/numbers", lambda a: a[1:]),
    ("baselines/numbers", lambda a: a + 100.0),
    ("baselines/majority_recent", lambda a: a[:, 1:]),
    ("losses/sums", lambda a: a[1:]),
    ("trace/samples", lambda a: a[1:]),
    ("waiting/targets", lambda a: a[1:]),
    ("waiting/dense", lambda a: a[:, 1:]),
    ("waiting/dense", lambda a: a * np.nan),
]
SPOILED_NUMBERS = [
    ("metrics/recent", lambda a: a[:, 1:]),
    ("metrics/places", lambda a: a - 1000),
    ("metrics/sums", lambda a: a[1:]),
    ("metrics/spread_fading", lambda a: a.astype(int)),
    ("baselines/majority_sums", lambda a: a[1:]),
    ("waiting/targets", lambda a: a * np.nan),
]


@pytest.mark.parametrize(
    ("model", "classes", "name", "spoil"),
    [(POLKClassifier, 3, *case) for case in SPOILED_CLASSES]
    + [(POLKRegressor, 0, *case) for case in SPOILED_NUMBERS],
)
def test_nonsense_in_a_state_is_refused(model, classes, name, spoil):
    """A checkpoint with a right checksum may hold anything."""
    X, y = samples(classes)
    run = Prequential(model(), every=20, window=30, lag=2, losses=True)
    run.update(X[:80], y[:80])
    header, arrays = run.state()
    Prequential.restore(run.model, header, dict(arrays))
    with pytest.raises((ValueError, IndexError)):
        Prequential.restore(run.model, header, {**arrays, name: spoil(arrays[name])})


@pytest.mark.parametrize("setting", ["window", "lag"])
def test_a_setting_that_the_arrays_contradict_takes_no_memory(setting):
    run = Prequential(POLKRegressor(), every=20, window=30)
    header, arrays = run.state()
    with pytest.raises(ValueError, match="contradict"):
        Prequential.restore(run.model, {**header, setting: 10**12}, arrays)


def test_records_are_announced_and_time_passes():
    X, y = samples(0)
    records = []
    trace = prequential(POLKRegressor(), (X, y), every=100, on_record=records.append)
    assert [record["samples"] for record in records] == [100, 200, 240]
    assert records[-1]["mae"] == trace.summary()["mae"]
    assert (np.diff(trace.to_columns()["seconds"]) > 0).all()


def test_long_streams_keep_a_bounded_trace(monkeypatch):
    monkeypatch.setattr(trace_module, "MOST_RECORDS", 10)
    X, y = samples(0)
    fine = prequential(POLKRegressor(), (X, y), every=10)
    for size in (1, 239):
        run = Prequential(POLKRegressor(), every=10)
        for first in range(0, N, size):
            run.update(X[first : first + size], y[first : first + size])
        assert bits(run.finish()) == bits(fine)
    assert fine.every == 40
    assert fine.to_columns()["samples"].tolist() == [40, 80, 120, 160, 200, 240]
    every_sample = prequential(POLKRegressor(), (X, y), every=40)
    assert bits(every_sample)["mae_fading"] == bits(fine)["mae_fading"]


def test_finishing_an_empty_run():
    trace = Prequential(POLKRegressor()).finish()
    assert isinstance(trace, Trace)
    assert len(trace) == 0


class TestHeldOut:
    """The error and the regularised risk of the function as it is at each record."""

    @pytest.mark.parametrize("estimator_class", [POLKClassifier, POLKRegressor])
    def test_columns_are_what_the_model_then_gives(self, estimator_class):
        X, y = samples(3 if estimator_class is POLKClassifier else 0)
        stream, held = slice(20, 170), slice(170, None)
        model = estimator_class(alpha=0.01, random_state=0).partial_fit(X[:20], y[:20])
        again, losses = copy.deepcopy(model), []
        trace = prequential(model, (X[stream], y[stream]), every=50, held_out=(X[held], y[held]))
        columns = trace.to_columns()

        def values(rows):
            return (again.decision_function if hasattr(again, "classes_") else again.predict)(rows)

        for i in range(20, 170):
            losses.append(sample_losses(again, values(X[i : i + 1]), y[i : i + 1])[0])
            again.partial_fit(X[i : i + 1], y[i : i + 1])
            if (i - 19) % 50 == 0:
                k, said = (i - 19) // 50 - 1, again.predict(X[held])
                numbers = estimator_class is POLKRegressor
                error = np.abs(said - y[held]) if numbers else said == y[held]
                shape = 0.005 * again.expansion_.norm() ** 2
                risk = np.mean(sample_losses(again, values(X[held]), y[held])) + shape
                assert columns["held_out"][k] == pytest.approx(np.mean(error))
                assert columns["held_out_risk"][k] == pytest.approx(risk)
                assert columns["risk"][k] == pytest.approx(np.mean(losses) + shape)

    def test_a_run_goes_on_with_what_was_held_out(self):
        X, y = samples()
        held = X[200:], y[200:]
        whole = prequential(
            POLKClassifier(random_state=0), (X[:200], y[:200]), every=50, held_out=held
        )
        run = Prequential(
            POLKClassifier(random_state=0), every=50, held_out=held, losses=True
        )  # fmt: skip
        run.update(X[:70], y[:70])
        header, arrays = run.state()
        with pytest.raises(ValueError, match="held_out must be given again"):
            Prequential.restore(run.model, header, arrays)
        again = Prequential.restore(run.model, header, arrays, held_out=held)
        again.update(X[70:200], y[70:200])
        ours, theirs = again.finish().to_columns(), whole.to_columns()
        for name in ("held_out", "held_out_risk", "risk"):
            assert np.array_equal(ours[name], theirs[name])

    def test_other_models_have_no_risk(self):
        X, y = samples()
        trace = prequential(
            SGDClassifier(random_state=0), (X[:200], y[:200]), every=100, classes=range(3),
            held_out=(X[200:], y[200:]),
        )  # fmt: skip
        columns = trace.to_columns()
        assert np.isnan(columns["risk"]).all()
        assert not np.isnan(columns["held_out"]).any()

    @pytest.mark.parametrize(
        ("held_out", "metrics", "message"),
        [
            ([1, 2, 3], None, "tuple"),
            ((np.zeros((3, 2)), np.zeros(2)), None, "3 rows"),
            ((np.zeros((3, 2)), np.zeros(3)), ["log_loss"], "name another one first"),
        ],
    )
    def test_unusable(self, held_out, metrics, message):
        with pytest.raises(ValueError, match=message):
            Prequential(POLKClassifier("log_loss"), metrics, held_out=held_out)
