"""Every mistake gets one line with its cure, and leaves nothing behind."""

import gzip
import json
import os
from typing import Any

import pytest

from kernelstream import POLKClassifier, make_multidist, storage
from tests.cli.tools import LEARN, write_rows


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
        _text("bad.csv", "a,label\n1,2,3\n4\n"), (*BAD, "--on-bad", "skip"),
        "no row that fits: 2 were refused"),
    "nothing but the target": (
        _text("bad.csv", "label\nyes\n"), BAD, "there is no column to learn from"),
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
        _without("label"), ("evaluate", "model.ks", "bad.csv"),
        "has no column 'label'. It is the target: give the column that holds it this name."),
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


def test_a_kind_for_a_column_that_is_not_there(tool, rows):
    for command in ("learn", "features"):
        more = ("--out", "f.parquet") if command == "features" else ()
        words = (command, rows, "--target", "label", "--column", "cty=text", *more)
        assert "Did you mean 'city'?" in tool(*words, code=2).err


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
