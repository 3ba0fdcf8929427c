"""Predictions of a saved model: of other rows, with intervals, beside columns that are kept."""

import csv
import json

import numpy as np
import pytest

from tests.cli.tools import as_stdin, write_rows


def test_numbers_to_predict(tool, tmp_path):
    write_rows(tmp_path / "numbers.csv", 3000, numbers=True)
    words = ("learn", "numbers.csv", "--target", "height", "--model", "polk", "--eta0", 1)
    words = (*words, "--compression-error", 0.1)
    shown = json.loads(tool(*words, "--out", "m.ks", "--json").out)
    assert shown["task"] == "regression"
    assert shown["mae"] < 0.6 * shown["majority"]
    measured = json.loads(tool("evaluate", "m.ks", "numbers.csv", "--json").out)
    assert measured["rmse"] < 12
    assert "higher" in tool("inspect", "m.ks").out
    assert (
        "--scores is for classes" in tool("predict", "m.ks", "numbers.csv", "--scores", code=2).err
    )


def test_intervals_of_numbers(tool, tmp_path):
    write_rows(tmp_path / "numbers.csv", 600, numbers=True)
    words = ("learn", "numbers.csv", "--target", "height", "--model", "krlst", "--out", "m.ks")
    tool(*words, "--max-points", 20)
    lines = tool("predict", "m.ks", "numbers.csv", "--interval", 0.8).out.splitlines()
    assert lines[0] == "line,predicted_height,low,high"
    rows = np.array([line.split(",") for line in lines[1:]], dtype=float)
    assert len(rows) == 600
    assert (rows[:, 2] < rows[:, 1]).all()
    assert (rows[:, 1] < rows[:, 3]).all()
    wider = tool("predict", "m.ks", "numbers.csv", "--interval", 0.95).out.splitlines()
    assert float(wider[1].split(",")[2]) < rows[0, 2]
    wrong = tool("predict", "m.ks", "numbers.csv", "--interval", 90, code=2).err
    assert "between 0 and 1" in wrong
    tool(*words[:4], "--model", "polk", "--out", "polk.ks")
    none = tool("predict", "polk.ks", "numbers.csv", "--interval", 0.9, code=2).err
    assert "has no intervals; learn with --model auto or krlst" in none


def test_predict_takes_what_may_differ(tool, model, rows):
    """An unseen category, no target, other columns, another order; bad rows skipped."""
    (model.parent / "new.csv").write_text(
        "extra,city,y,x,one\nz,Wien,0.5,,1\n?,Ulm,-0.5,2,7\nz,Ulm,oops,2,7\n"
    )
    result = tool("predict", model, "new.csv", "--on-bad", "skip", "--scores")
    lines = result.out.splitlines()
    assert lines[0] == "line,predicted_label,decision"
    assert [line.split(",")[0] for line in lines[1:]] == ["2", "3"]
    assert "1 row refused, the first on line 4" in result.err
    tool("predict", model, "new.csv", "--out", "said.csv", code=2)
    assert not (model.parent / "said.csv").exists()
    same = tool("predict", model, "new.csv", "--on-bad", "skip", "--scores", "--out", "-")
    assert same.out == result.out
    refused = tool("predict", model, "new.csv", "--out", "said.parquet", code=2)
    assert "predictions are written as CSV" in refused.err


NEW = """id,when,city,y,x,one,line
007,2024-01-01 10:00,Wien,0.5,,1,a
008,,Ulm,oops,2,7,b
"0,09",2024-01-03 10:00,,-0.5,3,7,c
"""


@pytest.mark.parametrize("source", ["new.csv", "-"])
def test_columns_to_keep(tool, model, monkeypatch, source):
    """As they stand, beside the predictions of their own rows; inputs too, and a name of ours."""
    (model.parent / "new.csv").write_text(NEW)
    if source == "-":
        as_stdin(monkeypatch, NEW.encode())
    kept = ("id", "when", "x", "city", "line", "id")
    words = [word for name in kept for word in ("--keep", name)]
    result = tool("predict", model, source, *words, "--on-bad", "skip", "--scores")
    lines = list(csv.reader(result.out.splitlines()))
    assert lines[0] == ["line", "id", "when", "x", "city", "line_", "predicted_label", "decision"]
    assert [line[:6] for line in lines[1:]] == [
        ["2", "007", "2024-01-01 10:00", "", "Wien", "a"],
        ["4", "0,09", "2024-01-03 10:00", "3", "", "c"],
    ]
    plain = tool("predict", model, "new.csv", "--on-bad", "skip", "--scores").out.splitlines()
    assert [line[:1] + line[6:] for line in lines] == list(csv.reader(plain))


def test_columns_to_keep_of_a_long_file(tool, model, rows):
    """More than a batch, with bad rows in between; the target is kept as it stands."""
    head, *lines = rows.read_text().splitlines()
    many = [f"{line},{place}" for place, line in enumerate(lines * 50)]
    many[5] = "much" + many[5][many[5].index(",") :]
    many[12_345] = "too few"
    (model.parent / "new.csv").write_text("\n".join([f"{head},place", *many]) + "\n")
    words = ("predict", model, "new.csv", "--on-bad", "skip")
    tool(*words, "--keep", "place", "--keep", "label", "--out", "said.csv")
    said = list(csv.DictReader((model.parent / "said.csv").read_text().splitlines()))
    assert len(said) == 50 * 400 - 2
    assert all(int(row["place"]) + 2 == int(row["line"]) for row in said)
    assert all(row["label"] == many[int(row["place"])].split(",")[4] for row in said)
    plain = csv.DictReader(tool(*words).out.splitlines())
    assert [row["predicted_label"] for row in plain] == [row["predicted_label"] for row in said]


@pytest.mark.parametrize("form", ["parquet", "npz", "libsvm"])
def test_columns_to_keep_in_every_form(tool, tmp_path, form):
    lines = [f"{i % 7},{i % 3},{i % 2}" for i in range(100)]
    (tmp_path / "m.csv").write_text("a,b,target\n" + "\n".join(lines) + "\n")
    tool("datasets", "convert", "m.csv", "--out", f"m.{form}")
    tool("learn", f"m.{form}", "--out", "m.ks")
    said = tool("predict", "m.ks", f"m.{form}", "--keep", "target").out.splitlines()
    assert said[0] == "line,target,predicted_target"
    assert [line.split(",")[1] for line in said[1:]] == [str(i % 2) for i in range(100)]
    result = tool("predict", "m.ks", f"m.{form}", "--keep", "tarrget", code=2)
    assert "has no column 'tarrget'. Did you mean 'target'?" in result.err
    assert result.out == ""
