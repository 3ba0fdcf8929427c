"""Raw rows in, predictions in the stream's own terms out; one file; any chunking, same bits."""

import re
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import kernelstream
from kernelstream import ModelFileError, POLKClassifier, POLKRegressor, storage
from kernelstream.pipeline import StreamModel, guess_task
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch, Text
from tests.test_preparation import cut, in_pieces

N = 160
WARM_UP = 40


def rows(task, *, texts, n=N, gaps=True, seed=0):
    """A stream with a target that the features explain, some targets missing."""
    random = np.random.default_rng(seed)
    x, z = random.normal(3.0, 2.0, n), random.normal(size=n)
    colour = random.integers(0, 3, n).astype(np.int32)
    columns = {"x": x, "z": z}
    signal = (x - 3.0) / 2.0 + (0.5 * (colour - 1) if texts else 0.0)
    if texts:
        columns["colour"] = Text(colour, ["red", "green", "blue"])
    missing = (random.random(n) < 0.2) & gaps
    missing[:3] = gaps  # a stream may begin without targets
    if task == "regression":
        target = 500.0 + 100.0 * np.sin(signal)
        columns["y"] = np.where(missing, np.nan, target)
    else:
        classes = np.where((np.arange(n) > n // 2) & (signal > 1.0), 2, signal > 0.0)  # one late
        codes = np.where(missing, -1, classes).astype(np.int32)
        columns["y"] = Text(codes, ["no", "yes", "late"])
        if not texts:
            columns["y"] = np.where(missing, np.nan, classes.astype(float))
    return Batch(columns, lines=np.arange(n) + 2)


def fresh(task, batch, units="moving", **parameters):
    kinds = {
        name: "text" if isinstance(column, Text) else "number"
        for name, column in batch.columns.items()
    }
    preparation = Preparation(kinds, ignore=["y"], units=units, warm_up=WARM_UP, buckets=8)
    preparation.start(cut(batch, 0, min(10, len(batch))))
    estimator = POLKClassifier if task == "classification" else POLKRegressor
    parameters = {"gamma": preparation.suggested_gamma, "random_state": 0, **parameters}
    return StreamModel(estimator(**parameters), preparation, "y", task)


def equal(a, b):
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f")


tasks = pytest.mark.parametrize("task", ["classification", "regression"])
texts_or_not = pytest.mark.parametrize("texts", [False, True])


@tasks
@texts_or_not
@pytest.mark.parametrize("batch_size", [1, 5])
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cuts=st.lists(st.integers(1, N - 1), max_size=6),
    stops=st.sets(st.integers(0, 6)),
    silent=st.sets(st.integers(0, 6)),
)
def test_any_chunking_any_stop_gives_the_same_bits(
    task, texts, batch_size, cuts, stops, silent, tmp_path
):
    batch = rows(task, texts=texts)
    whole = fresh(task, batch, batch_size=batch_size)
    expected, true = whole.predict_then_learn(batch)
    pieces = fresh(task, batch, batch_size=batch_size)
    done = 0
    for number, piece in enumerate(in_pieces(batch, cuts)):
        if number in silent:
            pieces.learn(piece)
        else:
            said, targets = pieces.predict_then_learn(piece)
            span = slice(done, done + len(piece))
            if batch_size > 1 and task == "regression":  # evaluated together
                np.testing.assert_allclose(said, expected[span], rtol=1e-9)
            else:
                assert equal(said.astype(expected.dtype), expected[span])
            assert equal(targets.astype(true.dtype), true[span])
        if number in stops:
            pieces.save(tmp_path / "model")
            pieces = kernelstream.load(tmp_path / "model")
        done += len(piece)
    assert pieces.fingerprint() == whole.fingerprint()
    assert equal(pieces.predict(batch), whole.predict(batch))
    assert pieces.flush().fingerprint() == whole.flush().fingerprint()


@tasks
@texts_or_not
def test_predictions_are_made_before_learning_also_of_rows_without_target(task, texts):
    batch = rows(task, texts=texts)
    said, _ = fresh(task, batch, "frozen").predict_then_learn(batch)
    model = fresh(task, batch, "frozen").learn(cut(batch, 0, WARM_UP + 20))
    for row in range(WARM_UP + 20, N):  # no statistics move any more
        one = cut(batch, row, row + 1)
        expected = model.predict(one)[0]
        model.learn(one)
        if task == "classification":
            assert said[row] == expected
        else:
            np.testing.assert_allclose(said[row], expected, rtol=1e-9)


@tasks
@texts_or_not
def test_it_learns(task, texts):
    batch = rows(task, texts=texts, n=3000, gaps=False)
    said, true = fresh(task, batch).predict_then_learn(batch)
    if task == "classification":
        assert np.mean(said[1000:] == true[1000:]) > 0.85
    else:
        assert np.abs(said - true)[1000:].mean() < 0.3 * true.std()


def test_labels_come_back_as_they_were():
    batch = rows("classification", texts=False, gaps=False)
    model = fresh("classification", batch)
    said, true = model.predict_then_learn(batch)
    assert np.isnan(said[0])  # no class is known yet
    assert true.dtype == np.int64
    assert set(said[1:]) <= {0, 1, 2}
    assert model.predict(batch).dtype == np.int64
    assert model.classes_.tolist() == [0, 1, 2]
    batch = rows("classification", texts=True)
    model = fresh("classification", batch)
    said, true = model.predict_then_learn(batch)
    assert said[:4].tolist() == [""] * 4  # three rows without target, and the first with
    assert true[:3].tolist() == [""] * 3
    assert set(model.predict(batch)) <= {"no", "yes", "late"}
    assert model.classes_.tolist() == ["late", "no", "yes"]


def test_rows_without_target_are_counted_and_not_learned():
    batch = rows("regression", texts=False)
    known = ~np.isnan(batch.columns["y"])
    model = fresh("regression", batch)
    said, true = model.predict_then_learn(batch)
    assert model.unlabelled_ == N - known.sum()
    assert model.model.n_seen_ == known.sum()
    assert np.isfinite(said).all()
    assert equal(true, batch.columns["y"])
    assert said[:4].tolist() == [0.0] * 4
    assert said[4] == batch.columns["y"][3]  # the mean of the targets so far
    nobody = Batch({**batch.columns, "y": np.full(N, np.nan)}, lines=batch.lines)
    model = fresh("regression", batch)
    assert model.learn(nobody).flush().unlabelled_ == N
    with pytest.raises(ValueError, match="not learned from any row with a target"):
        model.predict(batch)


def test_waiting_rows_are_learned_in_units_once_these_are_known(tmp_path):
    batch = rows("regression", texts=False, gaps=False)
    model = fresh("regression", batch).learn(cut(batch, 0, WARM_UP - 1))
    y = batch.columns["y"]
    assert not hasattr(model.model, "_state")
    np.testing.assert_allclose(model.predict(batch), y[: WARM_UP - 1].mean())
    model.learn(cut(batch, WARM_UP - 1, N))
    preparation = fresh("regression", batch).preparation
    X = preparation.transform(batch, learn=True)
    mean, unit = y[:WARM_UP].mean(), y[:WARM_UP].std()
    by_hand = POLKRegressor(gamma=preparation.suggested_gamma, random_state=0)
    by_hand.partial_fit(X, (y - mean) / unit)
    expected = by_hand.predict(preparation.transform(batch)) * unit + mean
    np.testing.assert_allclose(model.predict(batch), expected, rtol=1e-9)
    short = fresh("regression", batch).learn(cut(batch, 0, 20)).flush()
    assert short.model.n_seen_ == 20
    short.save(tmp_path / "short")
    assert StreamModel.load(tmp_path / "short").learn(cut(batch, 20, N)).model.n_seen_ == N


@pytest.mark.parametrize("target", [0.0, 1e150, 1e-170, -1e150])
def test_extreme_targets_stay_finite(target):
    batch = rows("regression", texts=False, gaps=False)
    y = np.where(np.arange(N) % 2, target, 0.0)
    y[100:] = 1e150
    model = fresh("regression", batch)
    said, _ = model.predict_then_learn(Batch({**batch.columns, "y": y}, lines=batch.lines))
    assert np.isfinite(said).all()
    constant = fresh("regression", batch)
    constant.learn(Batch({**batch.columns, "y": np.full(N, 7.5)}, lines=batch.lines))
    assert (constant.predict(batch) == 7.5).all()


def test_loading_in_another_process(tmp_path):
    fingerprints = []
    cases = product(["classification", "regression"], [False, True])
    for number, (task, texts) in enumerate(cases):
        batch = rows(task, texts=texts)
        model = fresh(task, batch).learn(batch)
        model.save(tmp_path / str(number))
        fingerprints.append(model.fingerprint())
    code = "import sys, kernelstream as k; print(*(k.load(p).fingerprint() for p in sys.argv[1:]))"
    run = subprocess.run(
        [sys.executable, "-c", code, *sorted(tmp_path.iterdir())], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert run.stdout.split() == fingerprints


@tasks
@texts_or_not
def test_predicting_after_loading(task, texts, tmp_path):
    batch = rows(task, texts=texts)
    model = fresh(task, batch).learn(batch)
    model.save(tmp_path / "model")
    before = model.fingerprint()
    raw = Batch({k: c for k, c in batch.columns.items() if k != "y"}, lines=batch.lines)
    again = StreamModel.load(tmp_path / "model")
    assert equal(again.predict(raw), model.predict(batch))
    assert model.fingerprint() == before
    with pytest.raises(ModelFileError, match="holds a StreamModel, not a POLKClassifier"):
        POLKClassifier.load(tmp_path / "model")


def test_probabilities_and_decisions():
    batch = rows("classification", texts=True)
    model = fresh("classification", batch, loss="log_loss").learn(batch)
    np.testing.assert_allclose(model.predict_proba(batch).sum(axis=1), 1.0)
    assert model.decision_function(batch).shape == (N, 3)
    hinge = fresh("classification", batch).learn(batch)
    assert hinge.predict_proba(batch).shape == (N, 3)
    numbers = rows("regression", texts=False)
    assert not hasattr(fresh("regression", numbers), "decision_function")


@tasks
@texts_or_not
def test_bad_rows_change_nothing(task, texts):
    batch = rows(task, texts=texts)
    x = batch.columns["x"].copy()
    x[150] = np.inf
    bad = Batch({**batch.columns, "x": x}, lines=batch.lines)
    for learned in (0, 25, 60):
        model = fresh(task, batch)
        if learned:
            model.learn(cut(batch, 0, learned))
        before = model.fingerprint()
        with pytest.raises(ValueError, match="line 152, column 'x'"):
            model.predict_then_learn(bad)
        with pytest.raises(ValueError, match="no column 'y'"):
            model.learn(Batch({"x": x}, lines=batch.lines))
        assert model.fingerprint() == before


@tasks
def test_an_error_inside_the_estimator_changes_nothing(task):
    # A polynomial of this degree overflows far from 0: some calls succeed, then one fails.
    batch = rows(task, texts=False)
    x = batch.columns["x"].copy()
    x[155] = 1e140
    bad = Batch({**batch.columns, "x": x}, lines=batch.lines)
    for learned in (20, 100):
        poly = {"kernel": "poly", "degree": 30, "gamma": 0.01, "eta0": 1e-9}
        model = fresh(task, batch, "frozen", **poly)  # moving units would compress it
        model.learn(cut(batch, 0, learned))
        before = model.fingerprint()
        with pytest.raises(ValueError, match="too large for"):
            model.predict_then_learn(bad)
        assert model.fingerprint() == before


def test_a_class_without_room_after_others_changes_nothing():
    """Rows without a target split the batch: the new class is in a part of its own."""
    batch = rows("classification", texts=False, gaps=False)
    y = (np.arange(N) % 2).astype(float)
    y[100], y[130] = np.nan, 2.0
    batch = Batch({**batch.columns, "y": y}, lines=batch.lines)
    with pytest.raises(ValueError, match="must be") as refused:
        fresh("classification", batch, max_bytes=1).learn(cut(batch, 0, 60))
    least = int(re.search(r"must be (\d+) at least", str(refused.value))[1])
    model = fresh("classification", batch, max_bytes=least).learn(cut(batch, 0, 60))
    before = model.fingerprint()
    with pytest.raises(ValueError, match="3 outputs it must be"):
        model.predict_then_learn(cut(batch, 60, N))
    assert model.fingerprint() == before


@tasks
def test_no_model_is_copied(task, monkeypatch):
    batch = rows(task, texts=False)
    model = fresh(task, batch).learn(cut(batch, 0, 100))
    monkeypatch.setattr("copy.deepcopy", None)
    points = model.model._state.points
    model.predict_then_learn(cut(batch, 100, 101))
    assert np.shares_memory(model.model._state.points, points)


def test_targets_that_make_no_sense():
    batch = rows("classification", texts=False)

    def with_target(y):
        return Batch({**batch.columns, "y": y}, lines=batch.lines)

    model = fresh("classification", batch).learn(batch)
    with pytest.raises(ValueError, match=r"line 2, target 'y' is 0.5.*use regression"):
        model.learn(with_target(np.full(N, 0.5)))
    with pytest.raises(ValueError, match="target 'y' holds texts here, but numbers"):
        model.learn(with_target(Text(np.zeros(N, np.int32), ["a"])))
    with pytest.raises(ValueError, match="holds dates, not fit for classification"):
        model.learn(with_target(np.zeros(N, "datetime64[us]")))
    numbers = fresh("regression", batch)
    with pytest.raises(ValueError, match="holds texts, not fit for regression"):
        numbers.learn(with_target(Text(np.zeros(N, np.int32), ["a"])))
    with pytest.raises(ValueError, match="line 2, target 'y' is inf"):
        numbers.learn(with_target(np.full(N, np.inf)))
    words = rows("classification", texts=True)
    broken = {**words.columns, "y": Text(np.full(N, 9, np.int32), ["a"])}
    model = fresh("classification", words)
    with pytest.raises(ValueError, match="codes without a text"):
        model.learn(Batch(broken, lines=words.lines))
    cut_off = {**words.columns, "y": Text((np.arange(N) % 2).astype(np.int32), ["a", "a\0"])}
    with pytest.raises(ValueError, match="line 3, target 'y' holds a NUL character"):
        model.learn(Batch(cut_off, lines=words.lines))
    prose = {**words.columns, "y": Text((np.arange(N) % 2).astype(np.int32), ["a", 70_000 * "b"])}
    with pytest.raises(ValueError, match=r"line 3, target 'y' is a text of 70,000 characters"):
        model.learn(Batch(prose, lines=words.lines))
    with pytest.raises(ValueError, match=r"line 2, target 'y' is 1e\+200: numbers up to 1e\+150"):
        numbers.learn(with_target(np.full(N, 1e200)))


def test_arguments_that_make_no_sense():
    schema = {"x": "number", "y": "number", "t": "text", "d": "date"}
    preparation = Preparation(schema, ignore=["y", "t", "d"])
    fitted = POLKClassifier().partial_fit([[0.0], [1.0]], [0, 1])
    for model, target, task, message in (
        (POLKClassifier(), "y", "ranking", "task must be one of"),
        (POLKClassifier(), "y", "regression", "cannot be learned with a POLKClassifier"),
        (fitted, "y", "classification", "give a new one"),
        (POLKClassifier(gamma="scale"), "y", "classification", "suggested_gamma"),
        (POLKClassifier(), "x", "classification", "among the features"),
        (POLKClassifier(), "d", "classification", "holds dates"),
        (POLKRegressor(), "t", "regression", "holds texts"),
    ):
        with pytest.raises(ValueError, match=message):
            StreamModel(model, preparation, target, task)


@tasks
@texts_or_not
def test_anew_prepares_and_measures_alike(task, texts, tmp_path):
    first, other = rows(task, texts=texts), rows(task, texts=texts, seed=1)
    model = fresh(task, first).learn(first).flush()
    again = model.with_new_model(clone(model.model))
    assert again.prepares_like(model)
    assert not fresh(task, other).learn(other).flush().prepares_like(model)
    again.save(tmp_path / "unlearned.ks")
    loaded = StreamModel.load(tmp_path / "unlearned.ks")
    with pytest.raises(NotFittedError):
        again.predict(other)
    said, _ = again.predict_then_learn(other)
    assert len(said) == len(other)
    assert again.prepares_like(model)
    assert loaded.learn(other).fingerprint() == again.fingerprint()
    with pytest.raises(NotFittedError):
        fresh(task, first).with_new_model(clone(model.model))


def test_nothing_learned_and_empty_batches(tmp_path):
    batch = rows("classification", texts=True)
    preparation = Preparation({"x": "number"})
    model = StreamModel(POLKClassifier(), preparation, "y", "classification")
    for call in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match="not learned from any row"):
            call(batch)
    with pytest.raises(ValueError, match="seen no rows"):
        model.save(tmp_path / "model")
    nothing = cut(batch, 0, 0)
    said, true = model.predict_then_learn(nothing)
    assert len(said) == len(true) == 0
    assert len(model.learn(batch).predict(nothing)) == 0
    before = model.fingerprint()
    assert model.learn(nothing).fingerprint() == before
    assert model.predict([]).tolist() == []
    assert model.learn([]).fingerprint() == before


def test_input_is_never_modified():
    for task in ("classification", "regression"):
        batch = rows(task, texts=True)
        arrays = [c.codes if isinstance(c, Text) else c for c in batch.columns.values()]
        before = [array.copy() for array in arrays]
        for array in arrays:
            array.flags.writeable = False
        model = fresh(task, batch)
        model.predict_then_learn(cut(batch, 0, 80))
        model.learn(cut(batch, 80, N)).predict(batch)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(arrays, before, strict=True))


@pytest.mark.parametrize(
    ("column", "task"),
    [
        (Text(np.zeros(2, np.int32), ["a"]), "classification"),
        (np.array([0.0, 1.0, np.nan]), "classification"),
        (np.arange(20.0), "classification"),
        (np.arange(21.0), "regression"),
        (np.array([0.5]), "regression"),
        (np.array([True, False]), "classification"),
    ],
)
def test_guess_task(column, task):
    assert guess_task(column) == task


def test_guess_task_refuses():
    with pytest.raises(ValueError, match="dates"):
        guess_task(np.zeros(2, "datetime64[us]"))
    with pytest.raises(ValueError, match="no value"):
        guess_task(np.full(2, np.nan))


WRONG = [
    ("task", "ranking"), ("task", "classification"), ("target", "x"), ("target", 3),
    ("kind", "date"), ("unlabelled", -1), ("unlabelled", "many"),
    ("units", {"settled": True, "waiting": "dense"}), ("units", None),
    ("units", {"settled": False, "waiting": None}),
    ("units", {"settled": False, "waiting": "sparse"}), ("preparation", {}), ("preparation", None),
    ("model", {"kind": "StreamModel", "fitted": True, "header": {}}),
    ("model", {"kind": "os.system", "fitted": True, "header": {}}),
    ("model", {"kind": [], "fitted": False, "header": {}}), ("model", None),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_malicious_headers(field, value, tmp_path):
    batch = rows("regression", texts=False)
    header, arrays = fresh("regression", batch).learn(cut(batch, 0, 20))._document()
    storage.write(tmp_path / "model", "StreamModel", {**header, field: value}, arrays)
    with pytest.raises(ModelFileError):
        kernelstream.load(tmp_path / "model")


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda part: part[:-1],
        lambda part: part * np.inf if part.dtype.kind == "f" else part + 1_000_000,
        lambda part: part.astype(np.float32),
        lambda part: part[None],
    ],
)
def test_malicious_waiting_rows(texts, change, tmp_path):
    batch = rows("regression", texts=texts)
    header, arrays = fresh("regression", batch).learn(cut(batch, 0, 20))._document()
    names = [name for name in arrays if name.startswith(("waiting_", "target_"))]
    assert len(names) == (8 if texts else 6)
    for name in names:
        if arrays[name].ndim == 0:
            continue
        with np.errstate(invalid="ignore"):
            wrong = {**arrays, name: change(arrays[name])}
        storage.write(tmp_path / "model", "StreamModel", header, wrong)
        with pytest.raises(ModelFileError):
            kernelstream.load(tmp_path / "model")


def test_divergence_while_the_unit_is_settled_changes_nothing():
    batch = rows("regression", texts=False)
    model = fresh("regression", batch, eta0=1e140, alpha=0.0, max_points=None)
    model.learn(cut(batch, 0, 20))
    before = model.fingerprint()
    with pytest.raises(kernelstream.DivergenceError):
        model.learn(cut(batch, 20, N))
    assert model.fingerprint() == before


def test_labels_that_floats_cannot_tell_apart_are_refused():
    batch = rows("classification", texts=False)
    y = np.where(np.arange(N) % 2, 2.0**53, 0.0)
    with pytest.raises(ValueError, match="classes are whole numbers"):
        fresh("classification", batch).learn(Batch({**batch.columns, "y": y}, lines=batch.lines))


# ---- rows as Python has them ---------------------------------------------------------------


def python_rows(n=N, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    return {
        "x": np.where(random.random(n) < 0.1, np.nan, x),
        "colour": random.choice(["red", "green"], n).tolist(),
        "y": (x > 0.0).tolist(),
    }


def test_every_form_of_rows_gives_the_same_model_and_the_file_of_the_tool_takes_them(tmp_path):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = python_rows()
    frame = pd.DataFrame(columns)
    forms = [columns, frame, pl.from_pandas(frame), frame.to_dict("records")]
    made = []
    for rows_ in forms:
        model = StreamModel.for_rows(rows_, "y", POLKClassifier(random_state=0))
        made.append(model.learn(rows_))
    assert len({model.fingerprint() for model in made}) == 1
    one_by_one = StreamModel.for_rows(frame, "y", POLKClassifier(random_state=0))
    for row in forms[3]:
        one_by_one.learn_one(row)
    assert one_by_one.fingerprint() == made[0].fingerprint()

    frame.to_csv(tmp_path / "rows.csv", index=False)
    result = kernelstream.Run(str(tmp_path / "rows.csv"), "y", "polk").run()
    result.model.save(tmp_path / "m.ks")
    model = kernelstream.load(tmp_path / "m.ks")
    shuffled = frame[["colour", "x"]].assign(more=1)  # other order, one more, no target
    predicted = model.predict(shuffled)
    assert predicted.dtype == np.bool_
    assert predicted.tolist() == [model.predict_one(row) for row in shuffled.to_dict("records")]
    assert np.mean(predicted == frame["y"]) > 0.8
    learned = model.learn(frame).model.n_seen_
    assert learned == 2 * N
    with pytest.raises(ValueError, match="no column 'x', which the model looks at"):
        model.predict(frame[["colour"]])


def test_true_and_false_stay_true_and_false(tmp_path):
    columns = python_rows()
    columns["y"][3] = None
    model = StreamModel.for_rows(columns, "y", POLKClassifier(random_state=0))
    predicted, true = model.predict_then_learn(columns)
    assert [type(label) for label in true[:4].tolist()] == [bool, bool, bool, type(None)]
    assert predicted[0] is None
    assert set(predicted[1:].tolist()) == {True, False} == set(model.classes_.tolist())
    model.save(tmp_path / "m")
    again = kernelstream.load(tmp_path / "m")
    assert again.predict(columns).dtype == np.bool_
    numbers = {**columns, "y": [0, 1] * (N // 2)}  # the same classes, written as numbers
    assert again.learn(numbers).classes_.dtype == np.bool_
    assert model.learn({**numbers, "y": [2] * N}).classes_.tolist() == [0, 1, 2]


def test_features_without_names_are_arrays():
    X, y = kernelstream.make_multidist(300, random_state=0)
    model = StreamModel.for_rows((X, y), "target", POLKClassifier(random_state=0)).learn((X, y))
    assert model.predict(X).shape == (300,)
    with pytest.raises(ValueError, match="the features have no names"):
        model.predict({"a": 1.0})


def test_models_by_name_for_rows():
    columns = {**python_rows(60), "y": np.arange(60.0) + 0.5}
    assert type(StreamModel.for_rows(columns, "y").model).__name__ == "AutoRegressor"
    assert type(StreamModel.for_rows(columns, "x", "avm").model).__name__ == "AVMRegressor"
    for model, message in (("svm", "model must be .* one of auto"), ("rbp", "does not learn")):
        with pytest.raises(ValueError, match=message):
            StreamModel.for_rows(columns, "y", model)
    with pytest.raises(ValueError, match="no column 'z'; they have"):
        StreamModel.for_rows(columns, "z")
