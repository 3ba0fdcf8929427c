"""Rows in every form that files and pipes bring: what is learned of them."""

import gzip
import json

import numpy as np
import pytest

from kernelstream import load, make_multidist
from tests.cli.tools import LEARN, as_stdin


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
        as_stdin(monkeypatch, (tmp_path / "m.csv").read_bytes())
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
    as_stdin(monkeypatch, b"1 1:0.5 3:2\n0 2:1\n" * 50)
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
    as_stdin(monkeypatch, rows)
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
