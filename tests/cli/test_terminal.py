"""What reaches a terminal, and what happens where there is none or a disk is full."""

import csv
import errno
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kernelstream
from kernelstream.cli import main
from kernelstream.cli.terminal import visible
from tests.cli.tools import write_rows

#: A title for the window, a colour by one character, a text that runs backwards, two lines.
EVIL = "\x1b]0;owned\x07\x9b31m\u202eno\r\nyes"
RAW = ("\x1b]", "\x07", "\x9b", "\u202e", "no\r")
SHOWN = r"\x1b]0;owned\x07\x9b31m\u202eno"  # a new line is one in CSV, a space in errors


class Screen(io.StringIO):
    """A terminal, as far as programs ask."""

    def isatty(self):
        return True


@pytest.fixture
def screen(monkeypatch, tmp_path):
    """``screen("learn", "rows.csv")`` runs the tool and returns all that it shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "2000")  # nothing is folded

    def run(*words, code=0):
        shown = Screen()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["kernelstream", *map(str, words)])
            patch.setattr(sys, "stdout", shown)
            patch.setattr(sys, "stderr", shown)
            with pytest.raises(SystemExit) as ended:
                main()
        text = shown.getvalue()
        assert (ended.value.code or 0) == code, text
        assert not [raw for raw in RAW if raw in text]
        return text

    return run


@pytest.fixture
def evil(tmp_path):
    """Rows with nasty labels, a nasty category and a nasty name of a column."""
    random = np.random.default_rng(0)
    rows = []
    for x in random.normal(size=300):
        rows.append([x, random.normal(), EVIL if x > 1 else "plain", EVIL if x > 0 else "no"])
    with open(tmp_path / "evil.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["x", EVIL, "kind", "label"], *rows])
    return tmp_path / "evil.csv"


def test_visible():
    assert visible(EVIL) == SHOWN + r"\r\nyes"
    assert visible("Köln, 東京, 10 %") == "Köln, 東京, 10 %"
    assert visible("a\tb\n", keep="\n\t") == "a\tb\n"
    assert visible("\udcff\0\x7f") == r"\udcff\x00\x7f"


def test_commands_show_no_control_characters(screen, evil):
    learn = ("learn", "evil.csv", "--target", "label")
    assert SHOWN in screen(*learn, "--out", "model.ks")
    assert SHOWN in screen("inspect", "model.ks")
    assert SHOWN in screen("predict", "model.ks", "evil.csv", "--scores", "--keep", "kind")
    assert SHOWN in screen("features", "evil.csv", "--target", "label", "--out", "-")
    assert SHOWN in screen("datasets", "convert", "evil.csv", "--out", "-")
    screen("evaluate", "model.ks", "evil.csv")
    screen("diameter", "evil.csv", "--target", "label", "--deltas", "1")
    assert json.loads(screen("inspect", "model.ks", "--json"))["classes"] == [EVIL, "no"]


def test_errors_and_notes_show_no_control_characters(screen, evil, tmp_path):
    learn = ("learn", "evil.csv", "--target", "label", "--model", "polk")
    assert SHOWN in screen(*learn, "--out", f"{EVIL}.ks")
    assert SHOWN in screen("compress", f"{EVIL}.ks", "--max-points", 5, "--out", f"{EVIL}.2")
    assert SHOWN in screen("learn", f"{EVIL}.csv", code=2)
    assert SHOWN in screen(*learn, EVIL, code=2)  # a word too many
    assert SHOWN in screen(f"--{EVIL}", code=2)
    screen("learn", "evil.csv", code=2)  # the error lists the columns
    with evil.open("a") as file:
        file.write(f'1,2,plain\n"{EVIL}",1,2,no\n')
    skip = ("--on-bad", "skip")
    assert "rows refused" in screen(*learn, *skip, "--batch-rows", 100)
    assert "2 rows refused" in screen("predict", f"{EVIL}.ks", "evil.csv", *skip)
    screen("predict", f"{EVIL}.ks", "evil.csv", code=2)
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / f"{EVIL}[red].npz", X=np.ones((2, 1)), y=np.ones(2))
    (tmp_path / "data" / "damaged.npz").write_bytes(b"PK")
    assert "yes[red]" in screen("datasets", "list", "--folder", "data")


def test_data_stay_data_where_there_is_no_terminal(tool, evil):
    tool("learn", "evil.csv", "--target", "label", "--out", "model.ks")
    out = tool("predict", "model.ks", "evil.csv", "--keep", "kind").out
    said = list(csv.DictReader(io.StringIO(out, newline="")))
    assert {row["predicted_label"] for row in said} == {EVIL, "no"}
    assert {row["kind"] for row in said} == {EVIL, "plain"}
    tool("predict", "model.ks", "evil.csv", "--keep", "kind", "--out", "said.csv")
    with open("said.csv", newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == said


def test_reports_take_nothing_for_markup(tool, tmp_path):
    tags = [f"</td><b>{place}<script>" for place in range(4)]
    random = np.random.default_rng(0)
    lines = [[x, y, tags[2 + (x > y)]] for x, y in random.normal(size=(200, 2))]
    with open(tmp_path / "<b>.csv", "w", newline="") as file:
        csv.writer(file).writerows([[tags[0], tags[1], "<i>"], *lines, [1, 2]])
    reading = ("<b>.csv", "--target", "<i>", "--on-bad", "skip", "--report")
    tool("learn", *reading, "learn.html", "--out", "<b>.ks")
    tool("inspect", "<b>.ks", "--report", "inspect.html")
    tool("features", *reading, "features.html", "--out", "f.csv")
    for name in ("learn", "inspect", "features"):
        page = (tmp_path / f"{name}.html").read_text()
        assert "&lt;i&gt;" in page
        assert not [tag for tag in ("<b>", "<i>", "<script") if tag in page]


@pytest.mark.parametrize("words", [
    ("learn", "-"), ("features", "-", "--out", "f.csv"), ("diameter", "-"),
    ("predict", "model.ks", "-"), ("evaluate", "model.ks", "-"),
    ("datasets", "convert", "-", "--out", "rows.parquet"),
])  # fmt: skip
def test_closed_input(tool, model, monkeypatch, words):
    monkeypatch.setattr(sys, "stdin", None)
    assert "Standard input is closed: name a file" in tool(*words, code=2).err


@pytest.mark.parametrize("words", [
    ("learn", "rows.csv", "--target", "label"), ("inspect", "model.ks", "--json"),
    ("predict", "model.ks", "rows.csv"), ("datasets", "generate", "market", "--out", "-"),
])  # fmt: skip
def test_closed_output(model, monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "argv", ["kernelstream", *words])
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "kernelstream: standard output is closed; send it somewhere: > /dev/null\n"
    )


def test_closed_errors_do_not_go_to_the_output(tool, model, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert "x,y" not in tool("predict", "model.ks", "none.csv", code=2).out
    assert tool("predict", "model.ks", "none.csv", code=2).out == ""
    assert tool("learn", "rows.csv", "--target", "label").out


@pytest.mark.parametrize(("line", "code", "says"), [
    ("learn - --target label <&-", 2, "Standard input is closed"),
    ("predict model.ks rows.csv >&-", 2, "standard output is closed"),
    ("predict model.ks rows.csv >/dev/full", 2, "standard output: no space left on device"),
    ("inspect model.ks >/dev/full", 2, "standard output: no space left on device"),
    ("learn rows.csv --target label --out new.ks 2>&-", 0, ""),
    ("inspect model.ks | true", 0, ""),
])  # fmt: skip
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_in_a_shell(model, line, code, says):
    command = f"{shlex.quote(sys.executable)} -m kernelstream {line}"
    source = str(Path(kernelstream.__file__).parents[1])
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": source},
    )  # fmt: skip
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.stderr.startswith(f"kernelstream: {says}" if says else "")
    assert len(done.stderr.splitlines()) == bool(says)


@pytest.mark.parametrize(("words", "file"), [
    (("learn", "rows.csv", "--target", "label", "--out", "new.ks"), "new.ks"),
    (("learn", "rows.csv", "--target", "label", "--report", "page.html"), "page.html"),
    (("learn", "rows.csv", "--target", "label", "--trace", "trace.csv"), "trace.csv"),
    (("learn", "rows.csv", "--target", "label", "--checkpoint", "safe"), "safe/checkpoint.ks"),
    (("predict", "model.ks", "rows.csv", "--out", "said.csv"), "said.csv"),
    (("compress", "model.ks", "--max-points", "5", "--out", "small.ks"), "small.ks"),
    (("inspect", "model.ks", "--report", "page.html"), "page.html"),
    (("features", "rows.csv", "--out", "f.parquet"), "f.parquet"),
    (("features", "rows.csv", "--out", "f.csv", "--save", "f.ks"), "f.csv"),
    (("datasets", "generate", "spheres", "--out", "s.npz"), "s.npz"),
    (("datasets", "convert", "rows.csv", "--out", "rows.parquet"), "rows.parquet"),
])  # fmt: skip
def test_a_full_disk_raises_an_error_that_names_the_file(tool, model, monkeypatch, words, file):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    err = tool(*words, code=2).err
    assert err == f"kernelstream: {file}: no space left on device\n"
    assert not os.path.exists(file)


def test_a_full_disk_under_the_quarantine(tool, tmp_path, monkeypatch):
    rows = write_rows(tmp_path / "rows.csv", 20)
    with rows.open("a") as file:
        file.write("1,2\n")
    monkeypatch.setattr("kernelstream.cli.learn.check_outputs", lambda *places: None)
    words = ("learn", rows, "--target", "label", "--on-bad", "quarantine")
    err = tool(*words, "--quarantine", "/dev/full", code=2).err
    assert err == "kernelstream: /dev/full: no space left on device\n"
