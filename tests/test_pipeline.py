"""Raw rows in, predictions in the stream's own terms out; one file; any chunking, same bits."""

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
from kernelstream import ModelFileError, POLKClassifier, POLKRegressor
from kernelstream.pipeline import StreamModel, guess_task
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch, Text
from tests.pipeline_rows import WARM_UP, N, equal, fresh, rows, tasks, texts_or_not
from tests.test_preparation import cut, in_pieces


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
def test_no_model_is_copied(task, monkeypatch):
    batch = rows(task, texts=False)
    model = fresh(task, batch).learn(cut(batch, 0, 100))
    monkeypatch.setattr("copy.deepcopy", None)
    points = model.model._state.points
    model.predict_then_learn(cut(batch, 100, 101))
    assert np.shares_memory(model.model._state.points, points)


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
