"""Decimal commas on the command line: learned, remembered, predicted; or a note what to do."""

import json

import numpy as np
import pytest

from kernelstream import load
from tests.cli.tools import as_stdin

LEARN = ("learn", "--target", "height", "--model", "polk", "--batch-rows", 64)


def write(path, rows, mark, delimiter, quote=""):
    random = np.random.default_rng(0)
    lines = [delimiter.join(["x", "k", "height"])]
    for x, k in zip(random.normal(3.0, 1.0, rows), random.integers(9, size=rows), strict=True):
        cells = (f"{x:.2f}", str(k), f"{x * x + k:.2f}")
        lines.append(delimiter.join(quote + cell.replace(".", mark) + quote for cell in cells))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("delimiter", "quote"), [(";", ""), (",", '"')])
def test_a_file_with_commas_gives_the_model_of_one_with_points(tool, tmp_path, delimiter, quote):
    points = write(tmp_path / "points.csv", 300, ".", ",")
    commas = write(tmp_path / "commas.csv", 300, ",", delimiter, quote)
    reading = ("--delimiter", delimiter)
    plain = json.loads(tool(*LEARN, points, "--out", "points.ks", "--json").out)
    found = json.loads(tool(*LEARN, commas, *reading, "--out", "commas.ks", "--json").out)
    assert found["mae"] == plain["mae"]
    assert [note for note in found["notes"] if "decimal comma" in note]
    assert not [note for note in plain["notes"] if "decimal" in note]
    assert load("points.ks").preparation.decimal is None
    assert load("commas.ks").preparation.decimal == ","

    wanted = tool("predict", "points.ks", points).out
    for model in ("points.ks", "commas.ks"):  # either model reads either file
        assert tool("predict", model, points).out == wanted
        assert tool("predict", model, commas, *reading).out == wanted
    measured = tool("evaluate", "points.ks", points).out
    assert tool("evaluate", "commas.ks", commas, *reading).out == measured


def test_the_model_remembers_what_a_single_row_leaves_open(tool, tmp_path, monkeypatch):
    commas = write(tmp_path / "commas.csv", 300, ",", ";")
    tool(*LEARN, commas, "--delimiter", ";", "--out", "model.ks")
    words = ("predict", "model.ks", "-", "--delimiter", ";")

    def predicted(text, *more):
        as_stdin(monkeypatch, text.encode())
        return tool(*words, *more).out

    one = predicted("x;k\n1.234;5\n")
    assert predicted("x;k\n1,234;5\n") == one  # not 1234
    assert predicted("x;k\n1,234;5\n", "--decimal", ",") == one
    far = predicted("x;k\n1234;5\n")
    assert far != one
    tool(*LEARN, write(tmp_path / "points.csv", 300, ".", ","), "--out", "model.ks")
    as_stdin(monkeypatch, b"x;k\n1,234;5\n")
    assert "--decimal ," in tool(*words, code=2).err


def test_a_run_goes_on_as_if_it_had_not_stopped(tool, tmp_path):
    commas = write(tmp_path / "commas.csv", 300, ",", ";")
    words = (*LEARN, commas, "--delimiter", ";")
    whole = commas.read_text()
    tool(*words, "--out", "whole.ks")
    commas.write_text("".join(whole.splitlines(keepends=True)[:129]))
    going_on = (*words, "--checkpoint", "place")
    tool(*going_on)
    commas.write_text(whole)
    tool(*going_on, "--resume", "--out", "again.ks")
    assert (tmp_path / "again.ks").read_bytes() == (tmp_path / "whole.ks").read_bytes()


def test_features_remember_it_too(tool, tmp_path):
    commas = write(tmp_path / "commas.csv", 300, ",", ";")
    words = ("--delimiter", ";", "--target", "height")
    tool("features", commas, *words, "--out", "learned.csv", "--save", "features.ks")
    (tmp_path / "one.csv").write_text("x;k\n1,234;5\n")
    (tmp_path / "point.csv").write_text("x;k\n1.234;5\n")
    for name in ("one", "point"):
        apply = ("--apply", "features.ks", "--delimiter", ";", "--out", f"out-{name}.csv")
        tool("features", f"{name}.csv", *apply)
    assert (tmp_path / "out-one.csv").read_text() == (tmp_path / "out-point.csv").read_text()


def test_thousands_are_left_alone_and_noted(tool, tmp_path):
    random = np.random.default_rng(0)
    lines = [f"{n:,};{n:,}.5;{n}" for n in random.integers(1000, 99000, size=200).tolist()]
    (tmp_path / "rows.csv").write_text("\n".join(["a;b;height", *lines]))
    words = (*LEARN, "rows.csv", "--delimiter", ";", "--json")
    notes = json.loads(tool(*words).out)["notes"]
    (a,) = (note for note in notes if "'a' is taken as text" in note)
    (b,) = (note for note in notes if "'b' is taken as text" in note)
    assert "--decimal , reads numbers" in a
    assert "thousands" in b
    assert "--decimal" not in b
    notes = json.loads(tool(*words, "--decimal", ",").out)["notes"]
    assert not [note for note in notes if "'a' is taken as text" in note]
