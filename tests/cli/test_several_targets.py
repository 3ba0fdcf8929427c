"""Models for raw rows with several target columns, in Python and on the command line."""

import csv
import json

import numpy as np
import pytest

import kernelstream
from kernelstream import AutoRegressor, KRLSTRegressor, POLKClassifier, POLKRegressor, StreamModel
from kernelstream.runs import Run, RunError
from kernelstream.streams import make_robot_arm

TARGETS = ["north", "east"]
MODELS = {
    "polk": lambda: POLKRegressor(max_points=30, random_state=0),  # in units of the first rows
    "krlst": lambda: KRLSTRegressor(max_points=30, random_state=0),  # in units of its own
    "auto": lambda: AutoRegressor(random_state=0),
}
kinds = pytest.mark.parametrize("kind", MODELS)


def columns(n=300):
    """Targets of very different size; some rows lack one of them."""
    X, Y = make_robot_arm(n, random_state=0)
    found = {f"angle{i}": X[:, i] for i in range(X.shape[1])}
    found["north"], found["east"] = Y[:, 0].copy(), 500.0 + 100.0 * Y[:, 1]
    found["east"][[0, 7, 120]] = np.nan
    return found


def part(rows, first, end):
    return {name: column[first:end] for name, column in rows.items()}


def new(kind, rows, **given):
    return StreamModel.for_rows(
        part(rows, 0, 20), TARGETS, MODELS[kind](), warm_up=50, standardise=False, **given
    )


@kinds
def test_any_cut_and_a_file_give_the_same_model(kind, tmp_path):
    rows = columns()
    whole = new(kind, rows).follow_importances()
    predicted, true = whole.predict_then_learn(rows)
    assert predicted.shape == true.shape == (300, 2)
    assert np.isnan(predicted[0]).all() == (kind != "polk")  # before the first target
    assert np.isnan(true[7, 1])
    assert not np.isnan(true[7, 0])
    assert whole.unlabelled_ == 3
    spread = np.nanstd(true, axis=0)
    late = np.sqrt(np.nanmean(np.square(predicted - true)[150:], axis=0))
    assert np.all(late < 0.8 * spread)
    assert set(whole.column_importances_) == {f"angle{i}" for i in range(4)}

    parts = new(kind, rows).follow_importances()
    parts.learn(part(rows, 0, 31))
    parts.save(tmp_path / "model.ks")  # with rows that wait for units
    parts = kernelstream.load(tmp_path / "model.ks")
    assert parts.targets == TARGETS
    assert parts.target == "north, east"
    for first, end in ((31, 32), (32, 260), (260, 300)):
        parts.learn(part(rows, first, end))
    assert parts.fingerprint() == whole.fingerprint()
    assert np.array_equal(parts.predict(rows), whole.predict(rows))
    one = whole.predict_one({name: column[3] for name, column in rows.items()})
    np.testing.assert_allclose([one["north"], one["east"]], whole.predict(rows)[3])
    assert whole.predict(part(rows, 0, 0)).shape == (0, 2)
    if kind != "polk":
        assert whole.predict_interval(rows).shape == (300, 2, 2)
        assert whole.predict_interval(part(rows, 0, 0)).shape == (0, 2, 2)
    with pytest.raises(ValueError, match="this model predicts 2 numbers"):
        whole.explain(part(rows, 0, 2))


def preparation_of(rows):
    return StreamModel.for_rows(rows, TARGETS, POLKRegressor()).preparation


def test_what_is_refused():
    rows = columns()
    with pytest.raises(ValueError, match="learns one target, not 2: several are for numbers"):
        StreamModel(POLKClassifier(), preparation_of(rows), TARGETS, "classification")
    with pytest.raises(ValueError, match="'north' is named twice"):
        StreamModel.for_rows(rows, ["north", "north"], POLKRegressor())
    for no_name in (2, None, [2]):
        with pytest.raises(ValueError, match=r"target must be the name of a column.*; got"):
            StreamModel.for_rows(rows, no_name, POLKRegressor())
    with pytest.raises(ValueError, match="no column 'west'"):
        StreamModel.for_rows(rows, ["north", "west"], POLKRegressor())
    text = {**rows, "east": ["far"] * 300}
    with pytest.raises(ValueError, match="'east' holds texts"):
        StreamModel.for_rows(text, TARGETS, POLKRegressor())
    model = new("polk", rows).learn(rows)
    header, arrays = model._document()
    with pytest.raises(ValueError, match="outputs are not the targets"):
        StreamModel._from_document(
            kernelstream.storage.Document("StreamModel", {**header, "target": "north"}, arrays)
        )


@pytest.mark.parametrize("model", ["krlst", "auto"])
def test_a_run_of_rows_in_memory_has_metrics_of_each(model, tmp_path):
    path = write(tmp_path)
    run = Run(path, TARGETS, model, window=100)
    result = run.run()
    assert result.samples == 297
    each = run.score.values_by_output()
    assert np.isclose(result.metrics["mae"], np.mean([own["mae"] for own in each]))
    with pytest.raises(RunError, match="POLKClassifier learns one target, not 2; take"):
        Run(path, TARGETS, "polk", task="classification")


def write(folder):
    path = folder / "arm.csv"
    rows = columns()
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        for row in zip(*rows.values(), strict=True):
            writer.writerow(["" if number != number else number for number in row])
    return path


@pytest.mark.parametrize("model", [["--model", "krlst"], []], ids=["krlst", "automatic"])
def test_the_commands(model, tool, tmp_path):
    path, out, page = write(tmp_path), tmp_path / "model.ks", tmp_path / "page.html"
    given = ["--target", "north", "--target", "east", *model]
    learned = json.loads(tool(
        "learn", path, *given, "--max-points", "30", "--window", "100",
        "--out", out, "--report", page, "--json",
    ).out)  # fmt: skip
    assert learned["samples"] == 297
    assert list(learned["by_target"]) == TARGETS
    mean = np.mean([each["mae"] for each in learned["by_target"].values()])
    assert np.isclose(learned["mae"], mean)
    text = page.read_text()
    assert "north, east" in text
    assert all(f"of {name}" in text for name in TARGETS)

    lines = tool("predict", out, path, "--interval", "0.9").out.splitlines()
    assert lines[0] == (
        "line,predicted_north,predicted_east,low_north,high_north,low_east,high_east"
    )
    table = np.array([line.split(",") for line in lines[1:]], dtype=float)
    model = kernelstream.load(out)
    np.testing.assert_allclose(table[:, 1:3], model.predict(columns()))
    np.testing.assert_allclose(table[:, 3:], model.predict_interval(columns()).reshape(300, 4))

    measured = json.loads(tool("evaluate", out, path, "--json").out)
    assert (measured["rows"], measured["unlabelled"]) == (297, 3)
    wrong = np.abs(table[:, 2] - columns()["east"])
    assert np.isclose(measured["by_target"]["east"]["mae"], np.nanmean(np.delete(wrong, [0, 7])))
    assert "north, east" in tool("inspect", out).out
    assert "of east" in tool("evaluate", out, path).out


def test_explanations_are_refused_before_anything_is_written(tool, tmp_path):
    path = write(tmp_path)
    words = ("--target", "north", "--target", "east", "--model", "krlst", "--out", "both.ks")
    tool("learn", path, *words)
    found = tool("predict", "both.ks", path, "--explain", code=2)
    assert found.out == ""
    assert "predicts 2 numbers of a row" in found.err
    assert "learn a model of each target" in " ".join(found.err.split())
