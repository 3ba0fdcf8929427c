"""Which columns matter, and why a row is predicted as it is."""

import copy
import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmarks import importances as stream
from kernelstream import KRLSTClassifier, KRLSTRegressor, POLKClassifier, StreamModel, load
from kernelstream.buffer import Buffer
from kernelstream.importances import (
    EACH,
    FORGET,
    LOOK,
    ColumnImportances,
    features_by_column,
    raw_column,
)
from kernelstream.models._validation import check_rows
from tests.cli.conftest import rows, tool

__all__ = ["rows", "tool"]  # fixtures

RIGHT = {f"x{k}" for k in stream.SECOND}
BEFORE = {f"x{k}" for k in stream.FIRST}


@pytest.mark.slow
@pytest.mark.parametrize("classes", [True, False])
def test_the_right_columns_lead_soon_after_a_change(classes):
    rows = stream.changing_rows(6000, classes, seed=1)
    model = StreamModel.for_rows(rows, "y").follow_importances()
    model.learn(stream.part_of(rows, 0, 3000))
    assert stream.leading(model) == BEFORE
    led = []
    for first in range(3000, 3000 + stream.SOON, LOOK):
        model.learn(stream.part_of(rows, first, first + LOOK))
        led.append(stream.leading(model))
    assert RIGHT in led
    assert sum(model.column_importances_.values()) == pytest.approx(1.0)


def polk(rows):
    return StreamModel.for_rows(
        rows, "y", POLKClassifier(max_points=30, random_state=0)
    ).follow_importances()


def test_any_chunking_and_files_give_the_same(tmp_path):
    rows = stream.changing_rows(3 * LOOK + 50, True, seed=2)
    whole = polk(rows).learn(rows)
    parts = polk(rows)
    assert parts.column_importances_ == {}
    for first, end in ((0, 1), (1, LOOK + 3), (LOOK + 3, 2 * LOOK), (2 * LOOK, 2 * LOOK + 9)):
        parts.learn(stream.part_of(rows, first, end))
    parts.save(tmp_path / "m.ks")
    parts = load(tmp_path / "m.ks")
    parts.predict_then_learn(stream.part_of(rows, 2 * LOOK + 9, len(rows["y"])))
    assert parts.column_importances_ == whole.column_importances_
    assert parts.fingerprint() == whole.fingerprint()


def test_learning_is_the_same_without():
    rows = stream.changing_rows(600, True, seed=3)
    plain = StreamModel.for_rows(rows, "y", POLKClassifier(max_points=30, random_state=0)).learn(
        rows
    )
    assert polk(rows).learn(rows).model.fingerprint() == plain.model.fingerprint()


def test_columns_of_all_kinds():
    random = np.random.default_rng(0)
    n = 1100
    city = np.array(["Bonn", "Rom", "Oslo"])[random.integers(0, 3, n)]
    day = np.datetime64("2020-01-01", "us") + random.integers(0, 10**13, n).astype("m8[us]")
    x = np.where(random.random(n) < 0.1, np.nan, random.normal(size=n))
    rows = {"x": x, "city": city, "day": day, "y": np.where(city == "Rom", "yes", "no")}
    model = polk(rows).learn(rows)
    assert set(features_by_column(model.preparation)) >= {"x", "city", "day"}
    assert next(iter(model.column_importances_)) == "city"
    found = model.explain({"x": [0.5], "city": ["Rom"], "day": day[:1]})[0]
    assert found.prediction == "yes"
    name, effect = next(iter(found.columns.items()))
    assert name == "city=Rom"
    assert effect > 0.0
    assert found.points[0].effect > 0.0
    assert len(found.points) == 3
    assert str(found).startswith("city=Rom +")


def test_effects_are_what_a_missing_value_changes():
    rows = stream.changing_rows(500, False, seed=4)
    model = StreamModel.for_rows(rows, "y", "krlst").learn(rows)
    part = stream.part_of(rows, 0, 20)
    found = model.explain(part, most=12)
    for name in ("x0", "x3"):
        unknown = {**part, name: np.full(20, np.nan)}
        X = model.preparation.transform(model._batch(unknown))
        place = model.preparation.feature_names_out.index("missing elsewhere")
        X[:, place] = 0.0  # the effect is that of the value, not that of its absence
        changed = model.predict(part) - model.estimator.predict(X)
        effects = [each.columns.get(name, 0.0) for each in found]
        assert effects == pytest.approx(changed.tolist(), abs=1e-9)
    assert [each.prediction for each in found] == model.predict(part).tolist()
    assert model.explain(stream.part_of(rows, 0, 0)) == []


def test_the_command(tool, rows, tmp_path):
    words = ("learn", rows, "--target", "label", "--model", "polk", "--report", "page.html")
    told = json.loads(tool(*words, "--importances", "--out", "m.ks", "--json").out)
    seen = json.loads(tool("inspect", "m.ks", "--json").out)
    assert seen["importances"] == told["importances"]
    assert set(told["importances"]) >= {"x", "y", "city"}
    assert "missing elsewhere" not in told["importances"]  # there are no such gaps
    assert "Which columns matter" in (tmp_path / "page.html").read_text()
    lines = tool("predict", "m.ks", rows, "--explain").out.splitlines()
    assert lines[0].endswith(",because")
    assert any("city=" in line for line in lines[1:])
    plain = json.loads(tool(*words, "--json").out)
    assert plain["importances"] == {}


def test_points_speak_for_the_only_class():
    rows = {"x": [0.5], "y": ["only"]}
    found = StreamModel.for_rows(rows, "y", "polk").learn(rows).explain(rows)[0]
    assert found.prediction == "only"
    assert found.points[0].effect > 0.0


class Counting:
    """An estimator that predicts its first feature, and counts what it is asked."""

    def __init__(self, factored):
        self._factored = factored
        self.asked = []

    def predict(self, X):
        self.asked.append(len(X))
        return X[:, 0]


@pytest.mark.parametrize("sparse", [False, True])
def test_what_a_look_predicts(sparse):
    rows = stream.changing_rows(LOOK, False, seed=7)
    model = StreamModel.for_rows(rows, "y", "krlst")
    X, y = model.admit(rows)
    X[:, 3] = 1.5  # a constant: nothing is spent on it
    given = csr_array(X) if sparse else X
    asked = []
    for factored in (False, True):
        found, estimator = ColumnImportances(), Counting(factored)
        for part in (slice(0, 1), slice(1, 100), slice(100, LOOK)):
            found.follow(given[part], y[part], model.preparation, estimator)
            held = found.to_document()
            found = ColumnImportances.from_document(*held, X.shape[1])
        asked += estimator.asked
        assert found.means["x3"] == found.means["x5"] == found.means["missing elsewhere"] == 0.0
        assert found.means["x0"] != 0.0
        assert held[1] == {}  # what was looked at is not kept
    # Once as they are and once for each of eleven columns; the more the steps of the model cost.
    assert asked == [EACH // 12 * 12, 6 * EACH // 12 * 12]


def test_files_of_earlier_formats_go_on():
    rows = stream.changing_rows(2 * LOOK, True, seed=5)
    model = polk(rows).learn(stream.part_of(rows, 0, LOOK))
    width = model.preparation.width
    header, arrays = model.importances.to_document()
    counted = {**header, "saved": 40, "unsettled": 0, "usual": [0.2, 0.1]}
    squares = {name: value for name, value in header.items() if name != "weights"}
    squares |= {"squares": header["means"], "looks": dict.fromkeys(header["means"], 3)}
    for earlier in (counted, squares):
        model.importances = ColumnImportances.from_document(earlier, arrays, width)
        assert model.importances.means == header["means"]
        follower = copy.deepcopy(model).learn(stream.part_of(rows, LOOK, 2 * LOOK))
        assert follower.importances.means != header["means"]
        assert set(follower.column_importances_) == {f"x{k}" for k in range(stream.COLUMNS)}
    # Rows from before the last look as well: they are not looked at again.
    whole = polk(rows).learn(stream.part_of(rows, 0, LOOK + 100))
    later, _ = whole.importances.to_document()
    X, y = polk(rows).admit(stream.part_of(rows, 0, LOOK + 100))
    kept = Buffer.of(X[100:], np.zeros(LOOK)).to_arrays()
    longer = {**later, "targets": y[100:].tolist(), "dtype": y.dtype.str}
    model = copy.deepcopy(whole)
    model.importances = ColumnImportances.from_document(longer, kept, width)
    for each in (model, whole):
        each.learn(stream.part_of(rows, LOOK + 100, 2 * LOOK))
    assert model.column_importances_ == whole.column_importances_
    for name, wrong in (("rows", -1), ("turn", "a"), ("weights", {}), ("means", {"x0": np.inf})):
        with pytest.raises(ValueError, match="importances"):
            ColumnImportances.from_document({**header, name: wrong}, arrays, width)


@pytest.mark.parametrize("method", ["auto", "krlst"])
@pytest.mark.parametrize("classes", [True, False])
def test_stored_points_of_experts_add_up(method, classes):
    rows = stream.changing_rows(400, classes, seed=6)
    model = StreamModel.for_rows(rows, "y", method).learn(rows)
    part = stream.part_of(rows, 0, 9)
    X = model.preparation.transform(model._batch(part))
    points, votes = model.model._point_votes(X)
    assert points.shape == (model.model.model_order_, X.shape[1])
    assert votes.shape[:2] == (9, len(points))
    found = model.explain(part)
    assert all(len(each.points) == 3 for each in found)
    totals = votes.sum(axis=1)
    if classes and method == "krlst":  # its values before they are less for being uncertain
        assert (model.classes_[totals.argmax(axis=1)] == model.predict(part)).all()
    elif not classes:
        state = model.model._state
        rest = model.model.predict(X) - totals[:, 0]
        if method == "krlst":
            assert rest == pytest.approx(np.full(9, state.targets.center), abs=1e-9)
        else:  # linear experts and the mean: a plane; and trees
            X = model.preparation.transform(model._batch(rows))
            measured = state.rows.measure(check_rows(model.model, X), learning=False)
            rest = model.model.predict(X) - model.model._point_votes(X)[1].sum(axis=1)[:, 0]
            trees = state.experts.forest.run(measured, np.empty((0, 1)), np.ones(400))[:, 0]
            far = np.sign(measured) * (2.0 + np.exp(np.abs(measured) - 3.0))
            plane = np.where(np.abs(measured) > 3.0, far, measured)
            plane = np.column_stack([np.ones(400), plane, trees])
            off = rest - plane @ np.linalg.lstsq(plane, rest, rcond=None)[0]
            assert np.abs(off).max() < 1e-9 * np.abs(rest).max()


def test_texts_that_share_are_named_in_short_and_without_those_that_name_rows():
    texts = dict.fromkeys([f"t{k}" for k in range(10)], "text")
    assert raw_column("other texts [3]", texts) == "t0 or t1 or 8 other texts"
    assert raw_column("other texts [3]", texts, list(texts)[1:]) == "t0"
    assert raw_column("t1=a", texts, ["t1"]) == "t1"


@pytest.mark.parametrize("cities", [False, True])
def test_a_column_that_names_its_rows_is_not_said_to_matter(cities):
    random, n = np.random.default_rng(0), 600
    rows = {"id": [f"order {k}" for k in range(n)], "x": random.normal(size=n)}
    if cities:
        rows["city"] = [f"city {k}" for k in random.integers(0, 40, n)]
    rows["y"] = random.normal(size=n)  # nothing matters
    model = StreamModel.for_rows(rows, "y").follow_importances()
    model.learn(stream.part_of(rows, 0, 300))
    model.learn(stream.part_of(rows, 300, n))
    assert model.preparation.naming_columns == ["id"]
    assert not any("id" in name for name in model.column_importances_)
    assert "id" not in model.what_it_did().split()
    later = {name: column[-5:] for name, column in rows.items() if name != "y"}
    assert not any("id" in name for each in model.explain(later) for name in str(each).split())


class Quick(Counting):
    """The same without deviations."""

    def _predict_means(self, X):
        return self.predict(X)


def test_a_model_that_predicts_fast_without_deviations_has_larger_looks_but_fewer():
    rows = stream.changing_rows(4 * LOOK, False, seed=7)
    model = StreamModel.for_rows(rows, "y", "krlst")
    X, y = model.admit(rows)
    found, estimator = ColumnImportances(), Quick(factored=False)
    weights = []
    for first in range(0, 4 * LOOK, LOOK):
        part = slice(first, first + LOOK)
        found.follow(X[part], y[part], model.preparation, estimator)
        weights.append(found.weights.get("x0"))
    asked = 6 * EACH // 13 * 13
    assert estimator.asked == [asked, asked]
    # What was there before weighs as much after so many rows as with other models.
    one = asked // 13
    assert weights == [one, one, one * (1.0 + FORGET**2), one * (1.0 + FORGET**2)]


@pytest.mark.parametrize("task", ["classes", "numbers", "several", "sparse", "folded"])
def test_functions_alone_are_what_krlst_predicts(task):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 600 if task == "folded" else 5))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1]
    if task == "sparse":
        X = csr_array(np.where(X > 0.5, X, 0.0))
    if task == "classes":
        y = np.digitize(y, [-0.5, 0.5])
        model = KRLSTClassifier(forget=1.0, learn_scales=True).partial_fit(X, y)
        found = model._predict_means(X)
        assert found.sum(axis=1) == pytest.approx(np.ones(400))
        assert (found.argmax(axis=1) == model.predict(X)).all()
        # Who is not certain says less.
        assert (found.max(axis=1) >= model.predict_proba(X).max(axis=1) - 1e-9).all()
        return
    y = np.column_stack([y, 1000.0 - 50.0 * y]) if task == "several" else y
    model = KRLSTRegressor(max_points=100, learn_scales=True).partial_fit(X, y)
    for many in (1, 400):
        found, expected = model._predict_means(X[:many]), model.predict(X[:many])
        assert found.shape == expected.shape
        assert found == pytest.approx(expected, abs=1e-8 * np.abs(y).max())


def test_explanations_while_rows_wait_for_the_unit_of_the_target():
    rows = stream.changing_rows(60, False, seed=8)
    model = StreamModel.for_rows(rows, "y", "polk").learn(rows)
    part = stream.part_of(rows, 0, 2)
    found = model.explain(part)
    assert [each.prediction for each in found] == model.predict(part).tolist()
    assert [(each.columns, each.points) for each in found] == [({}, [])] * 2
