"""What a model for raw rows refuses: rows, targets, arguments and files; nothing changes then."""

import re

import numpy as np
import pytest

import kernelstream
from kernelstream import ModelFileError, POLKClassifier, POLKRegressor, storage
from kernelstream.pipeline import StreamModel, guess_task
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch, Text
from tests.pipeline_rows import N, fresh, rows, tasks, texts_or_not
from tests.test_preparation import cut


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
