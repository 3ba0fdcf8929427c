"""What users do: good input in every form, and every mistake with its one line of advice."""

import csv
import gzip
import io
import json
import os
import re
import sys
from typing import Any

import numpy as np
import pytest

from kernelstream import CapWarning, POLKClassifier, load, make_multidist, storage
from kernelstream.cli.display import size
from kernelstream.evaluation import quality
from kernelstream.models._words import cap_note
from tests.cli.tools import write_rows

LEARN = ("learn", "rows.csv", "--target", "label", "--model", "polk")


def _text(name: str, text: str) -> Any:
    return lambda folder: (folder / name).write_text(text)


def _twice(folder):
    (folder / "bad.csv").write_text("a,a,label\n1,2,yes\n")


def _infinite(folder):
    text = (folder / "rows.csv").read_text().splitlines()
    text[20] = "inf,1,Ulm,1,yes"
    (folder / "bad.csv").write_text("\n".join(text))


def _truncated_gzip(folder):
    whole = gzip.compress(write_rows(folder / "long.csv", 3000).read_bytes())
    (folder / "bad.csv.gz").write_bytes(whole[: len(whole) // 2])


def _truncated_model(folder):
    whole = (folder / "model.ks").read_bytes()
    (folder / "bad.ks").write_bytes(whole[: len(whole) // 2])


def _estimator(folder):
    X, y = make_multidist(100, random_state=0)
    POLKClassifier(gamma=1.0).fit(X, y).save(folder / "bad.ks")


def _checkpoint(folder):
    (folder / "old").mkdir()
    (folder / "old" / "checkpoint.ks").write_bytes((folder / "model.ks").read_bytes())


def _without(column):
    def make(folder):
        lines = [line.split(",") for line in (folder / "rows.csv").read_text().splitlines()]
        place = lines[0].index(column)
        kept = [",".join(line[:place] + line[place + 1 :]) for line in lines]
        (folder / "bad.csv").write_text("\n".join(kept))

    return make


def _unlabelled(folder):
    (folder / "bad.csv").write_text("x,y,city,one,label\n" + "1,2,Ulm,1,\n" * 5)


def _read_only(folder):
    (folder / "closed").mkdir(mode=0o500)


BAD = ("learn", "bad.csv", "--target", "label", "--model", "polk")

#: What is wrong, what it takes, the command, and words of the line that it says.
MISTAKES = {
    "no such file": (None, ("learn", "none.csv"), "none.csv: no such file"),
    "empty file": (_text("bad.csv", ""), BAD, "bad.csv is empty"),
    "header only": (_text("bad.csv", "a,label\n"), BAD, "a header and no rows"),
    "wrong target": (
        None, ("learn", "rows.csv", "--target", "labels"), "Did you mean 'label'? Its columns: x"),
    "directory": (None, ("learn", "."), "is a directory: name one of the files"),
    "unknown suffix": (
        _text("rows.xyz", "a"), ("learn", "rows.xyz"), "Name one of csv, tsv, libsvm"),
    "unknown format": (None, (*LEARN, "--format", "xls"), "format must be one of csv"),
    "not parquet": (None, (*LEARN, "--format", "parquet"), "rows.csv is no Parquet file"),
    "truncated gzip": (
        _truncated_gzip, ("learn", "bad.csv.gz", "--target", "label"), "ends too early"),
    "two columns of one name": (_twice, BAD, "the column 'a' twice. Rename one"),
    "infinity": (_infinite, BAD, "line 21: column 'x' holds 'inf', not a finite number"),
    "dates as target": (
        _text("bad.csv", "a,label\n1,2020-01-01\n"), BAD, "the target holds dates"),
    "no target at all": (
        _unlabelled, BAD, "the target has no value in the first rows"),
    "no target at all, task known": (
        _unlabelled, (*BAD, "--task", "classification"), "no row of bad.csv has a value of"),
    "texts as numbers": (None, (*LEARN, "--task", "regression"), "holds texts, which are classes"),
    "fractions as classes": (
        _text("bad.csv", "a,label\n1,0.5\n"), (*BAD, "--task", "classification"),
        "line 2, target 'label' is 0.5: classes are whole numbers"),
    "nothing but bad rows": (
        _text("bad.csv", "a,label\n1,2,3\n4,5,6\n"), (*BAD, "--on-bad", "skip"),
        "no row that fits: 2 were refused"),
    "nothing but the target": (_text("bad.csv", "label\nyes\n"), BAD, "no features are left"),
    "unknown task": (
        None, (*LEARN, "--task", "clustering"), "use one of: classification, regression"),
    "unknown metric": (
        None, (*LEARN, "--metrics", "accuracy,beauty"), "auc, each once; got accuracy, beauty\n"),
    "bytes that are no number": (
        None, (*LEARN, "--max-bytes", "64Q"),
        "use one of: none, a whole number of at least 1 such as 65536, 64K or 2M"),
    "no target": (None, ("learn", "rows.csv"), "Name the column to predict: --target. Its col"),
    "metric of the other task": (None, (*LEARN, "--metrics", "rmse"), "rmse"),
    "unknown method": (None, (*LEARN, "--model", "trees"), "use one of: auto, ahpatron"),
    "misspelt method": (
        None, (*LEARN, "--model", "plok"), "--model plok is not accepted; did you mean polk?"),
    "gamma of one batch": (None, (*LEARN, "--gamma", "scale"), "give a number, or leave it out"),
    "not npz": (
        None, ("learn", "rows.csv", "--format", "npz"), "rows.csv is no .npz file of plain arrays"),
    "bad parameter": (
        None, (*LEARN, "--eta0", "-1"), "--eta0 -1 is not accepted; use a number above 0"),
    "parameter that is no number": (
        None, (*LEARN, "--compression-error", "much"),
        "--compression-error much is not accepted; use one of: auto, a number of at least 0, "
        "parsimony:FACTOR"),
    "parameter out of range": (
        None, (*LEARN, "--degree", "65"), "use a whole number of at least 1 and at most 64"),
    "unknown kernel": (
        None, (*LEARN, "--kernel", "rbff"),
        "--kernel rbff is not accepted; did you mean rbf? Use one of: gaussian, laplacian, linear"),
    "unknown kernel, nothing near": (
        None, (*LEARN, "--kernel", "4"), "--kernel 4 is not accepted; use one of: gaussian, lap"),
    "loss of the other task": (
        None, (*LEARN, "--loss", "huber"),
        "--loss huber is not accepted; use one of: hinge, log_loss"),
    "misspelt loss": (
        None, (*LEARN, "--loss", "logloss"), "did you mean log_loss?"),
    "gamma that is no number": (
        None, (*LEARN, "--gamma", "wide"), "use one of: auto, a number above 0"),
    "average or not": (
        None, (*LEARN, "--average", "ture"),
        "did you mean true? Use one of: true, false"),
    "parsimony": (
        None, (*LEARN, "--compression-error", "parsimony:-1"), "parsimony:-1 is not accepted"),
    "seed": (None, (*LEARN, "--random-state", "x"), "--random-state x is not accepted; use a w"),
    "parameters that contradict": (
        None, (*LEARN, "--eta0", "10", "--alpha", "1"), "eta0 * alpha must be below 1"),
    "unknown policy": (None, (*LEARN, "--on-bad", "weep"), "raise, skip, quarantine"),
    "quarantine without a file": (
        None, (*LEARN, "--on-bad", "quarantine"), "add --quarantine FILE"),
    "quarantine file without quarantine": (
        None, (*LEARN, "--quarantine", "q.csv"), "add --on-bad quarantine"),
    "drop a column that is not there": (
        None, (*LEARN, "--drop", "town"), "has no column 'town'"),
    "drop the target": (None, (*LEARN, "--drop", "label"), "cannot be left out"),
    "no folder for the model": (
        None, (*LEARN, "--out", "no/model.ks"), "make it first"),
    "model into a folder": (None, (*LEARN, "--out", "."), "name a file"),
    "model into a device": (None, (*LEARN, "--out", "/dev/null"), "no regular file"),
    "output that replaces the input": (
        None, (*LEARN, "--out", "rows.csv"), "would replace the file rows.csv that is read"),
    "two outputs in one file": (
        None, (*LEARN, "--out", "m", "--report", "./m"), "--report m would replace"),
    "closed folder": (_read_only, (*LEARN, "--out", "closed/m.ks"), "cannot be written to"),
    "resume without checkpoint": (None, (*LEARN, "--resume"), "add --checkpoint FOLDER"),
    "checkpoint is a file": (None, (*LEARN, "--checkpoint", "rows.csv"), "name a folder"),
    "checkpoint is there": (
        _checkpoint, (*LEARN, "--checkpoint", "old"), "go on with --resume, or delete it"),
    "checkpoint is none": (
        _checkpoint, (*LEARN, "--checkpoint", "old", "--resume"), "is not a checkpoint"),
    "like nothing": (None, (*LEARN, "--like", "none.ks"), "there is no file none.ks"),
    "like another target": (
        None, ("learn", "rows.csv", "--target", "city", "--like", "model.ks"),
        "predicts 'label' (classification); give --target label"),
    "libsvm from a pipe": (None, ("learn", "-", "--format", "libsvm"), "--n-features"),
    "libsvm under another name": (
        _text("bad.csv", "1 1:0.5 3:2\n0 2:1\n"), BAD, "Name the format: --format libsvm.\n"),
    "parquet from a pipe": (None, ("learn", "-", "--format", "parquet"), "name a file"),
    "delimiter of two characters": (None, (*LEARN, "--delimiter", "::"), "one ASCII character"),
    "no model": (None, ("predict", "none.ks", "rows.csv"), "there is no file none.ks; name"),
    "truncated model": (
        _truncated_model, ("predict", "bad.ks", "rows.csv"), "bad.ks: the file is cut short; name"),
    "not a model": (None, ("predict", "rows.csv", "rows.csv"), "not a kernelstream model file"),
    "model of prepared rows": (
        _estimator, ("predict", "bad.ks", "rows.csv"), "holds a POLKClassifier, not a StreamModel"),
    "missing column": (
        _without("city"), ("predict", "model.ks", "bad.csv"), "bad.csv has no column 'city'"),
    "bad row to predict": (
        _infinite, ("predict", "model.ks", "bad.csv", "--out", "p.csv"),
        "Use --on-bad skip to go on without such rows."),
    "bad row to evaluate": (
        _infinite, ("evaluate", "model.ks", "bad.csv"), "Use --on-bad skip to go on"),
    "bad row to learn features of": (
        _infinite, ("features", "bad.csv", "--target", "label", "--out", "f.csv"),
        "Use --on-bad skip to go on"),
    "bad row to choose a diameter by": (
        _infinite, ("diameter", "bad.csv", "--target", "label"), "Use --on-bad skip to go on"),
    "bad row to convert": (
        _text("bad.csv", "a,b\n1,2\n1,2,3\n"), ("datasets", "convert", "bad.csv", "--out", "b.csv"),
        "Use --on-bad skip to go on"),
    "nothing to predict": (
        _text("bad.csv", "x,y,city,one\n"), ("predict", "model.ks", "bad.csv"),
        "bad.csv has a header and no rows: there is nothing to read"),
    "evaluate without labels": (
        _without("label"), ("evaluate", "model.ks", "bad.csv"), "has no column 'label'"),
    "evaluate with empty labels": (
        _unlabelled, ("evaluate", "model.ks", "bad.csv"), "no row of bad.csv has a value"),
    "evaluate nonsense": (
        None, ("evaluate", "model.ks", "rows.csv", "--metrics", "beauty"), "beauty"),
    "evaluate what needs more": (
        None, ("evaluate", "model.ks", "rows.csv", "--metrics", "auc"), "use learn --metrics"),
    "predict with quarantine": (
        None, ("predict", "model.ks", "rows.csv", "--on-bad", "quarantine"), "raise, skip"),
    "predictions in place of the model": (
        None, ("predict", "model.ks", "rows.csv", "--out", "model.ks"), "would replace"),
    "keep a column that is not there": (
        None, ("predict", "model.ks", "rows.csv", "--keep", "labels"),
        "rows.csv has no column 'labels'. Did you mean 'label'?"),
    "inspect text": (None, ("inspect", "rows.csv"), "not a kernelstream model file"),
    "compress how far": (
        None, ("compress", "model.ks", "--out", "s.ks"), "give --max-points N or --error E"),
    "compress by a negative error": (
        None, ("compress", "model.ks", "--out", "s.ks", "--error", "-1"), "error must be"),
    "merge without the file": (
        None, ("merge", "model.ks", "none.ks", "--out", "s.ks"), "there is no file none.ks"),
    "unknown generator": (
        None, ("datasets", "generate", "seas", "--out", "sea.csv"), "one of: multidist, outliers"),
    "unknown suffix to write": (
        None, ("datasets", "generate", "outliers", "--out", "o.xls"), ".csv, .tsv, .parquet"),
    "convert texts to libsvm": (
        None, ("datasets", "convert", "rows.csv", "--out", "r.svm", "--target", "label"),
        "LIBSVM text needs a target of numbers"),
    "convert texts to npz": (
        None, ("datasets", "convert", "rows.csv", "--out", "r.npz", "--target", "label"),
        "column 'city' does not hold numbers"),
    "convert without the target": (
        None, ("datasets", "convert", "rows.csv", "--out", "r.npz"), "no column 'target'"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line_with_the_cure(tool, model, case):
    make, words, advice = MISTAKES[case]
    folder = model.parent
    if make is not None:
        make(folder)
    if case == "closed folder":
        _pretend_closed(folder, tool)
    before = _state(folder)
    result = tool(*words, code=2)
    assert result.out == ""
    assert result.err.startswith("kernelstream: ")
    assert result.err.count("\n") == 1
    assert advice in result.err
    assert _state(folder) == before, "something is left behind"


def _pretend_closed(folder, tool):
    """Permissions do not bind the superuser, who may run this."""
    real = os.access
    tool._monkeypatch.setattr(
        os, "access", lambda path, mode: "closed" not in str(path) and real(path, mode)
    )


def _state(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("case", ["wrong target", "truncated model", "evaluate nonsense"])
def test_errors_as_json(tool, model, case):
    make, words, advice = MISTAKES[case]
    if make is not None:
        make(model.parent)
    command = ("inspect", words[1]) if words[0] == "predict" else words
    result = tool(*command, "--json", code=2)
    assert advice.partition(";")[0] in json.loads(result.out)["error"]
    assert result.err.count("\n") == 1


# ---- good input --------------------------------------------------------------------------


def test_categories_gaps_and_a_constant(tool, rows):
    shown = json.loads(tool(*LEARN, "--json", "--every", 100).out)
    assert shown["samples"] == 400
    assert shown["task"] == "classification"
    assert shown["accuracy"] > shown["majority"]
    assert shown["bad_rows"] == shown["unlabelled"] == 0


def test_what_is_printed(tool, rows):
    result = tool(*LEARN)
    assert result.err == ""
    assert "accuracy" in result.out
    assert "--out FILE would write it" in result.out
    kept = tool(*LEARN, "--out", "m.ks", "--trace", "t.csv", "--report", "r.html", "--every", 100)
    assert "would write" not in kept.out
    lines = (rows.with_name("t.csv")).read_text().splitlines()
    assert lines[0].startswith("samples,seconds,")
    assert len(lines) == 5
    assert "<html" in rows.with_name("r.html").read_text()


@pytest.fixture(scope="module")
def turning(tmp_path_factory):
    """A column that turns to text in row 70,000."""
    path = tmp_path_factory.mktemp("turning") / "turning.csv"
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 71_000))
    lines = [f"{a:.4f},{b:.4f},{int(a > b)}\n" for a, b in zip(x, y, strict=True)]
    for row in range(70_000, 70_003):
        lines[row - 1] = "1.0,oops,1\n"
    path.write_text("x,y,label\n" + "".join(lines))
    return path


QUICK = ("--target", "label", "--model", "polk", "--eta0", 1, "--compression-error", 1,
         "--max-points", 20)  # fmt: skip


def test_a_column_that_turns_to_text(tool, turning, tmp_path):
    stopped = tool("learn", turning, *QUICK, "--out", "m.ks", code=2)
    assert "line 70001: column 'y' holds 'oops', not a number" in stopped.err
    assert "Use --on-bad skip or quarantine to go on" in stopped.err
    assert not (tmp_path / "m.ks").exists()

    skipped = json.loads(tool("learn", turning, *QUICK, "--on-bad", "skip", "--json").out)
    assert (skipped["samples"], skipped["bad_rows"]) == (70_997, 3)

    words = ("learn", turning, *QUICK, "--on-bad", "quarantine", "--quarantine", "q.csv")
    for _ in range(2):  # the file begins again with each run
        put_aside = tool(*words, "--metrics", "accuracy")
        assert "3 rows refused (quarantine), the first on line 70001" in put_aside.out
        assert (tmp_path / "q.csv").read_text() == "x,y,label\n" + "1.0,oops,1\n" * 3


def test_a_class_that_comes_late(tool, tmp_path):
    lines = ["1,no", "2,yes"] * 300 + ["30,perhaps"] * 50
    (tmp_path / "late.csv").write_text("x,label\n" + "\n".join(lines))
    tool("learn", "late.csv", "--target", "label", "--out", "m.ks", "--batch-rows", 100)
    shown = json.loads(tool("inspect", "m.ks", "--json").out)
    assert shown["classes"] == ["no", "perhaps", "yes"]
    assert "perhaps" in tool("predict", "m.ks", "late.csv").out


def test_rows_without_a_target(tool, rows, tmp_path):
    lines = rows.read_text().splitlines()
    for place in (0, 5, 6, 200):
        lines[place + 1] = lines[place + 1].rpartition(",")[0] + ","
    rows.write_text("\n".join(lines))
    result = tool(*LEARN, "--out", "m.ks")
    assert "4 rows had no target: not learned" in result.out
    assert len(tool("predict", "m.ks", "rows.csv").out.splitlines()) == 401
    measured = json.loads(tool("evaluate", "m.ks", "rows.csv", "--json").out)
    assert (measured["rows"], measured["unlabelled"]) == (396, 4)


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


def _as_stdin(monkeypatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("form", ["parquet", "npz", "libsvm", "tsv", "csv.gz", "-", "no header"])
def test_every_form_gives_the_same_model(tool, tmp_path, monkeypatch, form):
    X, y = make_multidist(500, random_state=0)
    lines = [f"{a!r},{b!r},{c}" for (a, b), c in zip(X.tolist(), y, strict=True)]
    (tmp_path / "m.csv").write_text("a,b,target\n" + "\n".join(lines) + "\n")
    tool("learn", "m.csv", "--out", "reference.ks")
    words = ["learn", f"m.{form}", "--out", "m.ks"]
    if form in ("parquet", "npz", "libsvm", "tsv"):
        tool("datasets", "convert", "m.csv", "--out", f"m.{form}")
    elif form == "csv.gz":
        (tmp_path / "m.csv.gz").write_bytes(gzip.compress((tmp_path / "m.csv").read_bytes()))
    elif form == "-":
        _as_stdin(monkeypatch, (tmp_path / "m.csv").read_bytes())
        words[1] = "-"
    else:
        (tmp_path / "plain.csv").write_text("\n".join(lines))
        words[1:2] = ["plain.csv", "--no-header", "--target", "c2"]
    tool(*words)
    model = load(tmp_path / "m.ks")
    if form in ("libsvm", "npz"):  # columns without names are prepared in another order
        assert model.preparation.matrix_width == 2
    else:
        reference = load(tmp_path / "reference.ks")
        assert model.model.fingerprint() == reference.model.fingerprint()
    source = words[1] if form != "-" else "m.csv"
    options = ["--no-header"] if form == "no header" else []
    said = tool("predict", "m.ks", source, *options).out.splitlines()
    assert len(said) == 501
    assert np.mean([int(line.split(",")[1]) for line in said[1:]] == y) > 0.8
    measured = json.loads(tool("evaluate", "m.ks", source, *options, "--json").out)
    assert measured["accuracy"] > 0.8


def test_libsvm_from_a_pipe(tool, tmp_path, monkeypatch):
    _as_stdin(monkeypatch, b"1 1:0.5 3:2\n0 2:1\n" * 50)
    result = tool("learn", "-", "--format", "libsvm", "--n-features", 3, "--json")
    assert json.loads(result.out)["samples"] == 100


def test_points_are_described_as_the_file_has_them(tool, tmp_path, rows):
    """LIBSVM text counts features from 1, and they are not standardised."""
    (tmp_path / "rows.svm").write_bytes(b"1 1:0.5 3:2\n0 2:1\n" * 50)
    tool("learn", "rows.svm", "--model", "polk", "--out", "m.ks", "--report", "r.html")
    told = json.loads(tool("inspect", "m.ks", "--json").out)["influential"]
    inputs = [point["inputs"] for point in told]
    assert {"feature 1": 0.5, "feature 3": 2.0} in inputs
    assert {"feature 2": 1.0} in inputs
    assert "feature 3" in (tmp_path / "r.html").read_text()
    assert "standardised" not in tool("inspect", "m.ks").out
    tool(*LEARN, "--out", "m.ks")
    assert "(standardised)" in tool("inspect", "m.ks").out
    tool(*LEARN, "--out", "m.ks", "--no-standardise")
    assert "(standardised)" not in tool("inspect", "m.ks").out


@pytest.mark.parametrize(
    "words", [("learn", "-"), ("features", "-", "--out", "-"), ("predict", "m.ks", "-")]
)
def test_libsvm_from_a_pipe_that_does_not_say_so(tool, tmp_path, monkeypatch, words):
    rows = b"1 1:0.5 3:2\n0 2:1\n" * 50
    (tmp_path / "rows.svm").write_bytes(rows)
    tool("learn", "rows.svm", "--out", "m.ks")
    _as_stdin(monkeypatch, rows)
    result = tool(*words, code=2)
    assert "standard input begins with a row of LIBSVM text" in result.err
    assert "--format libsvm" in result.err
    assert result.err.count("\n") == 1
    assert result.out == ""


def test_json_has_no_nan(tool, tmp_path):
    (tmp_path / "one.csv").write_text("x,target\n1,1\n1,1\n")
    for words in (
        ("learn", "one.csv", "--metrics", "kappa,auc", "--out", "auto.ks", "--json"),
        ("inspect", "auto.ks", "--json"),
        ("learn", "one.csv", "--model", "polk", "--out", "m.ks", "--json"),
        ("evaluate", "m.ks", "one.csv", "--metrics", "kappa,accuracy", "--json"),
        ("inspect", "m.ks", "--json"),
        ("compress", "m.ks", "--max-points", 1, "--out", "s.ks", "--json"),
    ):
        text = tool(*words).out
        assert text.count("\n") == 1
        json.loads(text, parse_constant=lambda word: pytest.fail(word))


def test_predict_takes_what_may_differ(tool, model, rows):
    """An unseen category, no target, other columns, another order; bad rows skipped."""
    (model.parent / "new.csv").write_text(
        "extra,city,y,x,one\nz,Wien,0.5,,1\n?,Ulm,-0.5,2,7\nz,Ulm,oops,2,7\n"
    )
    result = tool("predict", model, "new.csv", "--on-bad", "skip", "--scores")
    lines = result.out.splitlines()
    assert lines[0] == "line,predicted_label,decision"
    assert [line.split(",")[0] for line in lines[1:]] == ["2", "3"]
    assert "1 rows refused, the first on line 4" in result.err
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
        _as_stdin(monkeypatch, NEW.encode())
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


def test_what_comes_from_a_pipe_is_converted(tool, tmp_path, monkeypatch):
    """It cannot be looked at beforehand: its width and its columns are said."""
    _as_stdin(monkeypatch, b"1 1:2 3:4\n0 2:5\n")
    words = ("datasets", "convert", "-", "--out", "m.csv", "--format", "libsvm")
    assert "needs --n-features" in tool(*words, code=2).err
    _as_stdin(monkeypatch, b"1 1:2 3:4\n0 2:5\n")
    tool(*words, "--n-features", 3)
    assert (tmp_path / "m.csv").read_text() == ('"f0","f1","f2","target"\n2,0,4,1\n0,5,0,0\n')
    _as_stdin(monkeypatch, b"1;2\n3;4\n")
    tool("datasets", "convert", "-", "--out", "n.csv", "--delimiter", ";", "--no-header")
    assert (tmp_path / "n.csv").read_text() == '"c0","c1"\n1,2\n3,4\n'


def test_drop_is_not_even_read(tool, rows):
    lines = [line + ("," if i else ",messy") + "?" * (i % 3) for i, line in
             enumerate(rows.read_text().splitlines())]  # fmt: skip
    rows.write_text("\n".join(lines))
    tool(*LEARN, "--drop", "messy", "--drop", "one", "--out", "m.ks")
    inputs = json.loads(tool("inspect", "m.ks", "--json").out)["inputs"]
    assert inputs == ["x (number)", "y (number)", "city (text)"]


def test_the_kind_of_a_column_can_be_given(tool, rows):
    shown = tool(*LEARN, "--column", "x=text", "--out", "m.ks").out
    assert "x (text)" in shown
    result = tool(*LEARN, "--column", "x=colour", code=2)
    assert "--column x=colour does not say what a column is" in result.err


def test_a_kind_for_a_column_that_is_not_there(tool, rows):
    for command in ("learn", "features"):
        more = ("--out", "f.parquet") if command == "features" else ()
        words = (command, rows, "--target", "label", "--column", "cty=text", *more)
        assert "Did you mean 'city'?" in tool(*words, code=2).err


def test_notes_of_a_column_that_runs_away_and_of_a_poor_model(tool, tmp_path):
    """A counter leaves its range for good, and with it whatever the model knows."""
    random = np.random.default_rng(0)
    x, label = random.normal(size=4000), np.arange(4000) // 50 % 2
    file = tmp_path / "counted.csv"
    lines = [f"{i},{x[i]:.6f},{label[i]}\n" for i in range(4000)]
    file.write_text("count,x,label\n" + "".join(lines))
    words = ("learn", file, "--target", "label", "--model", "polk", "--warm-up", "200", "--json")
    notes = json.loads(tool(*words).out)["notes"]
    assert not any("range" in note for note in notes)  # units move with it
    words = (*words, "--units", "frozen")
    notes = json.loads(tool(*words).out)["notes"]
    assert any("column 'count' has left the range" in note for note in notes)
    assert any("no change would have done better" in note for note in notes)
    assert not any("'x'" in note for note in notes)
    notes = json.loads(tool(*words, "--drop", "count").out)["notes"]
    assert not any("range" in note for note in notes)


def test_a_column_that_runs_away_is_noted_for_a_model_better_than_none(tool, tmp_path):
    """A counter that ends 10 deviations away is named; a season that goes up to 7 is not."""
    random = np.random.default_rng(0)
    x, n = random.normal(size=6000), np.arange(6000)
    season = 7.0 * np.sin(n / 4000) ** 2 + random.normal(size=6000)
    file = tmp_path / "counted.csv"
    lines = [f"{i},{season[i]:.4f},{x[i]:.6f},{int(x[i] > 0)}\n" for i in n]
    file.write_text("id,season,x,label\n" + "".join(lines))
    words = ("learn", file, "--target", "label", "--model", "polk")
    words = (*words, "--units", "frozen", "--json")
    # A last batch of a single row is no reason to look no further.
    for more, told in (((), ["id"]), (("--batch-rows", "5999"), ["id"]), (("--drop", "id"), [])):
        notes = json.loads(tool(*words, *more).out)["notes"]
        assert not any("would have done better" in note for note in notes)
        assert [note.split("'")[1] for note in notes if "has left the range" in note] == told


@pytest.mark.parametrize("numbers", [False, True])
def test_evaluate_shows_what_rules_without_a_model_come_to(tool, tmp_path, numbers):
    rows = write_rows(tmp_path / "rows.csv", 1500, numbers=numbers)
    target, metric, constant = ("height", "mae", "mean") if numbers else LABEL
    tool("learn", rows, "--target", target, "--warm-up", 500, "--out", "m.ks")
    result = json.loads(tool("evaluate", "m.ks", rows, "--json").out)
    learned = json.loads(tool("learn", rows, "--target", target, "--json").out)
    for rule in ("no_change", "majority"):  # of the same rows, by the same rules
        assert result[rule] == learned[rule]
    assert result["notes"] == []
    shown = tool("evaluate", "m.ks", rows).out
    assert (
        f"{metric} of no change {quality.number(result['no_change'])}, of the {constant}" in shown
    )
    assert "note" not in shown


LABEL = ("label", "accuracy", "majority")


def test_evaluate_says_when_the_model_is_no_better(tool, tmp_path):
    random = np.random.default_rng(0)
    rows = [f"{x:.4f},{int(x > 0)}" for x in random.normal(size=400)]
    (tmp_path / "learned.csv").write_text("\n".join(["x,target", *rows]))
    tool("learn", "learned.csv", "--model", "polk", "--out", "m.ks")

    def measured(*rows):
        (tmp_path / "rows.csv").write_text("\n".join(["x,target", *rows]))
        result = json.loads(tool("evaluate", "m.ks", "rows.csv", "--json").out)
        note = result["notes"][0] if result["notes"] else ""
        assert note in " ".join(tool("evaluate", "m.ks", "rows.csv").out.split())
        return note

    assert measured(*rows) == ""
    turned = [row[:-1] + str(1 - int(row[-1])) for row in rows]
    assert "would have done better than the model (accuracy 0." in measured(*turned)
    assert "no change would have done as well as the model (accuracy 1)" in measured(
        *(row for row in rows if row.endswith("1") and not row.startswith("0.0"))
    )
    # Right where the label is 1, never right where it is 0, and no rule gets that many right.
    alternating = ["2.0,1", "2.0,0"] * 50 + ["2.0,1"]
    assert "no better than chance (kappa 0)" in measured(*alternating)


def test_learn_says_nothing_of_a_model_that_waits_for_its_units(tool, tmp_path):
    rows = write_rows(tmp_path / "rows.csv", 300, numbers=True)
    words = ("learn", rows, "--target", "height", "--json")
    notes = json.loads(tool(*words, "--model", "polk").out)["notes"]
    assert not any("would have done" in note for note in notes)
    assert any("the first 300 rows only set the units" in note for note in notes)
    notes = json.loads(tool(*words).out)["notes"]  # predicts from the second row on
    assert not any("set the units" in note for note in notes)


@pytest.mark.parametrize("method", ["auto", "polk", "avm", "colk"])
@pytest.mark.parametrize("numbers", [False, True])
def test_a_model_has_one_size(tool, tmp_path, method, numbers):
    """Also once it is loaded, when it has less spare room."""
    rows = write_rows(tmp_path / "rows.csv", 1500, numbers=numbers)
    words = ("learn", rows, "--target", "height" if numbers else "label", "--model", method)
    words = (*words, "--warm-up", 100, "--out", "m.ks", "--report", "learn.html")
    learned = json.loads(tool(*words, "--json").out)
    inspected = json.loads(tool("inspect", "m.ks", "--report", "inspect.html", "--json").out)
    assert learned["bytes"] == inspected["bytes"] > 10_000
    told = size(learned["bytes"])
    assert told in tool(*words).out
    assert told in tool("inspect", "m.ks").out
    cards = [re.search(r"<dt>Size</dt>.*?</div>", (tmp_path / f"{name}.html").read_text(), re.S)
             for name in ("learn", "inspect")]  # fmt: skip
    assert cards[0][0] == cards[1][0]
    model = load("m.ks").model
    assert learned["bytes"] <= model.nbytes_  # that has room for more


@pytest.mark.parametrize("method", ["polk", "avm"])
def test_a_cap_is_noted_in_the_same_words_everywhere(tool, tmp_path, method):
    rows = write_rows(tmp_path / "rows.csv", 600)
    words = ("learn", rows, "--target", "label", "--model", method, "--out", "m.ks")
    words = (*words, "--report", "page.html", "--json")
    assert not any("room" in note for note in json.loads(tool(*words).out)["notes"])
    told = json.loads(tool(*words, "--max-points", 5).out)["notes"][-1]
    model = load("m.ks").model
    note = cap_note(model)
    assert note.startswith("max_points=5 ")
    assert f" {model.n_forced_} " in note
    assert told == note.replace("max_points=5", "--max-points 5")
    assert f"{note}." in (tmp_path / "page.html").read_text()
    assert not re.search("would avoid|larger --compression-error|little harm", told)
    if method == "avm":
        X, y = make_multidist(300, random_state=0)
        with pytest.warns(CapWarning) as warned:
            model = type(model)(max_points=5).partial_fit(X, y)
        same = re.sub(r"of \d+ samples", f"of {model.n_forced_} samples", str(warned[0].message))
        assert same.startswith(f"{cap_note(model)}. n_forced_ ")
    wide = json.loads(tool(*words, "--max-bytes", "20K").out)["notes"][-1]
    assert wide.startswith("--max-bytes 20480 ")


def test_why_there_is_no_auc(tool, tmp_path):
    for classes in (2, 4):
        lines = [f"{i % 7},{i % classes}\n" for i in range(200)]
        (tmp_path / "rows.csv").write_text("x,target\n" + "".join(lines))
        result = json.loads(tool("learn", "rows.csv", "--metrics", "accuracy,auc", "--json").out)
        assert (result["auc_window"] is None) == (classes == 4)
        told = "auc is for two classes, and there are 4: try balanced_accuracy" in result["notes"]
        assert told == (classes == 4)


def test_a_stray_word_in_numbers_is_noted(tool, rows):
    lines = rows.read_text().splitlines()
    lines[7] = "oops" + lines[7][lines[7].index(",") :]
    rows.write_text("\n".join(lines))
    shown = " ".join(tool(*LEARN).out.split())
    assert "column 'x' is taken as text because of values like 'oops'" in shown


@pytest.mark.parametrize("written", ["01/03/2024 08:00", "Oct 02, 2020", "2 May 2021"])
def test_dates_that_are_read_as_texts_are_noted(tool, tmp_path, written):
    rows = "".join(f'"{written}",{i % 7},{i % 2}\n' for i in range(60))
    (tmp_path / "dates.csv").write_text("opened,x,y\n" + rows)
    shown = " ".join(tool("learn", "dates.csv", "--target", "y", "--model", "polk").out.split())
    assert "column 'opened' is taken as text: dates are read where they are written" in shown
    assert "leave the column out (--drop opened)" in shown


def test_texts_that_never_come_again_are_noted(tool, tmp_path):
    rows = "".join(f"order-{i},{'ab'[i % 2]},label-{i % 3}\n" for i in range(60))
    (tmp_path / "orders.csv").write_text("order_id,kind,y\n" + rows)
    words = ("learn", "orders.csv", "--target", "y", "--model", "polk")
    shown = " ".join(tool(*words).out.split())
    assert "column 'order_id' differs in (nearly) every row" in shown
    assert "(--drop order_id)" in shown
    assert "column 'kind' differs" not in shown
    assert "differs" not in tool(*words, "--drop", "order_id").out


def test_labels_that_look_like_markup(tool, tmp_path):
    rows = "1,[bold]x[/zz]\n2,[/]\n" * 50
    (tmp_path / "marked.csv").write_text("temp [celsius],y\n" + rows)
    tool("learn", "marked.csv", "--target", "y", "--out", "m[red].ks")
    shown = tool("inspect", "m[red].ks").out
    assert "temp [celsius] (number)" in shown
    assert "[/]" in shown


def test_a_huge_field(tool, rows):
    lines = rows.read_text().splitlines()
    lines[60] = lines[60].replace("Ulm", "x" * 3_000_000).replace("Bonn", "x" * 3_000_000)
    rows.write_text("\n".join(lines))
    tool(*LEARN)


def test_features_applied_where_they_know_nothing(tool, tmp_path):
    random = np.random.default_rng(0)
    for name, shift in (("here", 0.0), ("far", 1e4)):
        np.savetxt(tmp_path / f"{name}.csv", random.normal(size=(600, 2)) + shift,
                   delimiter=",", header="a,b", comments="")  # fmt: skip
    words = ("features", "here.csv", "--warm-up", "100", "--out", "f.parquet", "--save", "f.ks")
    words = (*words, "--units", "frozen")  # moving ones keep rows within those that were learned
    assert "not what they were learned from" not in " ".join(tool(*words).out.split())
    shown = tool("features", "far.csv", "--apply", "f.ks", "--out", "g.parquet").out
    assert "not what they were learned from" in " ".join(shown.split())


def test_files_that_are_no_models_say_what_they_are_for(tool, rows):
    tool(*LEARN, "--checkpoint", "place")
    said = tool("inspect", "place/checkpoint.ks", code=2).err
    assert "the checkpoint of a run" in said
    assert "--resume" in said
    tool("features", rows, "--target", "label", "--out", "f.parquet", "--save", "f.ks")
    assert "features FILE --apply" in tool("inspect", "f.ks", code=2).err


def test_a_checkpoint_that_is_none(tool, rows, tmp_path):
    (tmp_path / "old").mkdir()
    for header in ({}, {"plan": 3}):
        storage.write(tmp_path / "old" / "checkpoint.ks", "Checkpoint", header, {})
        result = tool(*LEARN, "--checkpoint", "old", "--resume", code=2)
        assert "cannot be gone on from" in result.err


@pytest.mark.parametrize("changes", [
    {"labels": {"names": ["no", "yes"], "dtype": ",i8"}},
    {"labels": {"names": ["no", 1], "dtype": "U"}},
    {"samples": None}, {"samples": 2**70}, {"record_every": -1}, {"offset": "x"}, {"seconds": []},
])  # fmt: skip
def test_a_checkpoint_of_nonsense(tool, rows, tmp_path, changes):
    command = (*LEARN, "--checkpoint", "old", "--resume")
    tool(*command)
    path = tmp_path / "old" / "checkpoint.ks"
    kind, header, arrays = storage.read(path)
    storage.write(path, kind, {**header, "score": {**header["score"], **changes}}, arrays)
    assert "cannot be gone on from" in tool(*command, code=2).err
    header["position"]["bad"]["count"] = 5
    storage.write(path, kind, header, arrays)
    assert "contradicts itself: start again" in tool(*command, code=2).err


# ---- datasets ------------------------------------------------------------------------------


def test_generated_rows_do_not_depend_on_how_many(tool):
    for name in ("multidist", "outliers"):
        short = tool("datasets", "generate", name, "--rows", 50, "--seed", 3, "--out", "-").out
        long = tool("datasets", "generate", name, "--rows", 100_010, "--seed", 3, "--out", "-").out
        assert long.startswith(short)
        assert long.count("\n") == 100_011
        assert len(set(long.splitlines())) > 100_000  # the second block is not the first again


def test_convert_back_and_forth(tool, tmp_path):
    tool("datasets", "generate", "market", "--rows", 20_000, "--out", "a.csv")
    tool("datasets", "convert", "a.csv", "--out", "b.parquet")
    tool("datasets", "convert", "b.parquet", "--out", "c.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()


def test_convert_does_not_guess_types_from_a_batch(tool, tmp_path):
    lines = [f"{i},,{i}" for i in range(20_000)] + ["0.5,1,7"]
    (tmp_path / "a.csv").write_text('"x","gap","t"\n' + "\n".join(lines) + "\n")
    for name in ("b.parquet", "c.csv"):
        tool("datasets", "convert", "a.csv", "--out", name)
    assert (tmp_path / "c.csv").read_text() == (tmp_path / "a.csv").read_text()


def test_bad_rows_are_skipped_on_the_way(tool, tmp_path):
    rows = "\n".join(f"{i % 7},{i % 2}" for i in range(60))
    (tmp_path / "a.csv").write_text(f"x,target\n1,0\n1,2,3\n{rows}\n")
    for words in (("datasets", "convert", "a.csv", "--out", "b.csv"), ("diameter", "a.csv")):
        result = tool(*words, "--on-bad", "skip")
        assert "1 rows refused, the first on line 3" in result.err
    assert (tmp_path / "b.csv").read_text().count("\n") == 62


def test_list(tool, tmp_path, monkeypatch):
    np.savez(tmp_path / "mine.npz", X=np.zeros((3, 1)), y=np.zeros(3))
    monkeypatch.setenv("KERNELSTREAM_DATA", str(tmp_path))
    shown = tool("datasets", "list").out
    assert "multidist" in shown
    assert "mine" in shown


@pytest.mark.parametrize("words", [("true", "false"), ("True", "False")])
def test_true_and_false_are_written_as_the_file_has_them(tool, tmp_path, words):
    random = np.random.default_rng(0).normal(size=100)
    lines = [f"{x:.3f},{words[0] if x > 0.0 else words[1]}" for x in random]
    (tmp_path / "rows.csv").write_text("\n".join(["x,label", *lines, "1,"]))
    weights = f"{words[0]}=2,maybe=9"
    learned = json.loads(tool(*LEARN, "--out", "m.ks", "--class-weight", weights, "--json").out)
    note = next(note for note in learned["notes"] if "--class-weight" in note)
    assert "'maybe'" in note
    assert words[0] not in note.partition(" and ")[0]  # that class is there
    said = tool("predict", "m.ks", "rows.csv", "--proba").out.splitlines()
    assert said[0] == f"line,predicted_label,probability_{words[1]},probability_{words[0]}"
    assert {line.split(",")[1] for line in said[1:]} == {*words}
    assert json.loads(tool("evaluate", "m.ks", "rows.csv", "--json").out)["accuracy"] > 0.9
