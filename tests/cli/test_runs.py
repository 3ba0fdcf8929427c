"""Runs that are stopped, killed and taken up again; models that leave the tool."""

import csv
import json
import os
import re
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from kernelstream import StreamModel, load
from kernelstream.cli import learn as learning
from kernelstream.cli.display import rounded
from kernelstream.runs import Run
from kernelstream.streams import open_stream
from tests.cli.tools import LEARN, start, wait_until, write_rows

SETTINGS = {
    False: ("--target", "label", "--model", "polk", "--eta0", 1, "--compression-error", 0.5,
            "--max-points", 60),
    True: ("--target", "height", "--model", "polk", "--eta0", 0.5, "--compression-error", 0.1,
           "--max-points", 60),
}  # fmt: skip
#: Checkpoints are written all the time.
OFTEN = ("--batch-rows", 200, "--checkpoint-seconds", 0, "--checkpoint", "place")
PUT_ASIDE = ("--on-bad", "quarantine", "--quarantine", "aside.csv")


def spoil(path: Path, every: int) -> Path:
    """Some rows that do not fit."""
    lines = path.read_text().splitlines(keepends=True)
    for place in range(every, len(lines), every):
        lines[place] = f"1,oops {place},Ulm,1,1\n"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "numbers"])
def run(request, tmp_path_factory):
    """A command, the model that it comes to, and the rows that it puts aside."""
    folder = tmp_path_factory.mktemp("run")
    spoil(write_rows(folder / "rows.csv", 12_000, numbers=request.param), 700)
    words = ("learn", "rows.csv", *SETTINGS[request.param], *OFTEN, *PUT_ASIDE, "--out", "model.ks")
    result = start(folder, *words).wait()
    assert (result.code, result.err) == (0, "")
    assert "17 rows refused" in result.out
    outcome = load(folder / "model.ks").fingerprint(), (folder / "aside.csv").read_text()
    return words, folder / "rows.csv", outcome


def outcome_of(folder: Path) -> tuple[str, str]:
    return load(folder / "model.ks").fingerprint(), (folder / "aside.csv").read_text()


def checkpoint_is_there(folder: Path) -> bool:
    return (folder / "place" / "checkpoint.ks").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_and_the_command_shown_goes_on(run, tmp_path, number):
    words, rows, outcome = run
    (tmp_path / "rows.csv").symlink_to(rows)
    child = start(tmp_path, *words)
    wait_until(lambda: checkpoint_is_there(tmp_path))
    stopped = child.kill(number)
    assert (stopped.code, stopped.err) == (128 + number, "")
    assert f"Stopped by {number.name}. Go on with: kernelstream learn" in stopped.out
    early = load(tmp_path / "model.ks")
    assert early.model.n_seen_ < 11_000 if hasattr(early.model, "_state") else True
    assert early.fingerprint() != outcome[0]

    command = re.search("Go on with: kernelstream (.*)", stopped.out)[1]
    assert start(tmp_path, *shlex.split(command)).wait().code == 0
    assert outcome_of(tmp_path) == outcome


def _is_new(place: Path, before: bytes | None) -> bool:
    return place.exists() and place.read_bytes() != before


def test_killed_at_any_moment_it_goes_on(run, tmp_path):
    words, rows, outcome = run
    (tmp_path / "rows.csv").symlink_to(rows)
    place = tmp_path / "place" / "checkpoint.ks"
    random = np.random.default_rng(5)
    for _ in range(3):  # for each of the two tasks
        before = place.read_bytes() if place.exists() else None
        child = start(tmp_path, *words, "--resume")
        wait_until(lambda: _is_new(place, before) or not child.process.is_alive())  # noqa: B023
        time.sleep(random.uniform(0.0, 0.25))
        if not child.process.is_alive() or child.kill(signal.SIGKILL).code == 0:
            break  # it was over already
    assert start(tmp_path, *words, "--resume").wait().code == 0
    assert outcome_of(tmp_path) == outcome
    # What a killed process leaves behind is named as the manual says.
    left = {path.name for path in (tmp_path / "place").iterdir()} - {"checkpoint.ks"}
    assert all(re.fullmatch(r"\.kernelstream-\w+\.tmp", name) for name in left)


def test_a_pipe_is_taken_up_again(run, tmp_path):
    words, rows, outcome = run
    words = ("learn", "-", *words[2:])
    os.mkfifo(tmp_path / "pipe")
    child = start(tmp_path, *words, stdin=tmp_path / "pipe")
    text = rows.read_bytes()
    with open(tmp_path / "pipe", "wb") as pipe:
        pipe.write(text[: len(text) // 2])
        pipe.flush()
        wait_until(lambda: checkpoint_is_there(tmp_path))
        time.sleep(0.2)
        stopped = child.kill(signal.SIGTERM)  # while it waits for more
    assert stopped.code == 143
    assert "Go on with, given the same input from its start: kernelstream learn -" in stopped.out
    assert start(tmp_path, *words, "--resume", stdin=rows).wait().code == 0
    assert outcome_of(tmp_path) == outcome


@pytest.mark.parametrize("method", ["polk", "avm", "colk"])
def test_a_signal_before_anything_is_learned(tmp_path, method):
    """The first rows of a target of numbers only set its units: there is no model to report on."""
    rows = write_rows(tmp_path / "rows.csv", 3000, numbers=True).read_bytes()
    os.mkfifo(tmp_path / "pipe")
    words = ("learn", "-", "--target", "height", "--model", method, "--warm-up", 5000, "--every",
             100, *OFTEN, "--out", "model.ks", "--report", "report.html", "--json")  # fmt: skip
    child = start(tmp_path, *words, stdin=tmp_path / "pipe")
    with open(tmp_path / "pipe", "wb") as pipe:
        pipe.write(rows)
        pipe.flush()
        wait_until(lambda: checkpoint_is_there(tmp_path))
        stopped = child.kill(signal.SIGTERM)
    assert (stopped.code, stopped.err) == (143, "")
    shown = json.loads(stopped.out)
    assert "stopped too early for a report: there is nothing to show yet" in shown["notes"]
    assert shown["report"] is None
    assert not (tmp_path / "report.html").exists()
    assert start(tmp_path, *words, "--resume", stdin=tmp_path / "rows.csv").wait().code == 0
    assert load(tmp_path / "model.ks").model.n_seen_ == 3000


def test_json_shows_how_to_go_on(run, tmp_path):
    words, rows, _ = run
    (tmp_path / "rows.csv").symlink_to(rows)
    child = start(tmp_path, *words, "--json")
    wait_until(lambda: checkpoint_is_there(tmp_path))
    shown = json.loads(child.kill(signal.SIGINT).out)
    assert shown["stopped_by"] == "SIGINT"
    assert shown["go_on_with"].endswith("--json --resume")


def test_without_a_checkpoint(run, tmp_path):
    words, rows, _ = run
    (tmp_path / "rows.csv").symlink_to(rows)
    words = [word for word in words if word not in ("--checkpoint", "place")]
    child = start(tmp_path, *words)
    wait_until((tmp_path / "aside.csv").exists)
    stopped = child.kill(signal.SIGINT)
    assert stopped.code == 130
    assert "With --checkpoint FOLDER the run could have gone on" in stopped.out


def test_going_on_with_other_settings_is_refused(tool, rows, tmp_path):
    words = ("learn", rows, "--target", "label", "--model", "polk", "--checkpoint", "place")
    tool(*words, "--eta0", 1)
    before = (tmp_path / "place" / "checkpoint.ks").read_bytes()
    refused = tool(*words, "--eta0", 2, "--window", 5, "--resume", code=2).err
    assert "other settings: --window (1000 then, 5 now), --eta0 (1 then, 2 now); give" in refused
    assert (tmp_path / "place" / "checkpoint.ks").read_bytes() == before
    (tmp_path / "place" / "checkpoint.ks").write_bytes(before[:-1])
    refused = tool(*words, "--eta0", 1, "--resume", code=2).err
    assert "delete it and start again" in refused


def test_a_file_that_has_grown(tool, rows, tmp_path):
    whole = rows.read_bytes()
    words = ("learn", rows, "--target", "label", "--batch-rows", 40)
    tool(*words, "--out", "whole.ks")
    lines = whole.splitlines(keepends=True)
    rows.write_bytes(b"".join(lines[:201]))
    tool(*words, "--checkpoint", "place")
    rows.write_bytes(whole)
    tool(*words, "--checkpoint", "place", "--resume", "--out", "grown.ks")
    grown, once = load(tmp_path / "grown.ks"), load(tmp_path / "whole.ks")
    assert grown.fingerprint() == once.fingerprint()


# ---- models in files -----------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [False, True])
def test_the_file_predicts_raw_rows_as_the_model_in_memory_does(tool, tmp_path, numbers):
    rows = write_rows(tmp_path / "rows.csv", 3000, numbers=numbers)
    tool("learn", rows, *SETTINGS[numbers], "--out", "model.ks")
    source = open_stream(rows)
    first = next(source)
    kept = load(tmp_path / "model.ks")
    again = StreamModel(
        type(kept.model)(**kept.model.get_params()),
        type(kept.preparation)(source.schema, ignore=[kept.target]).start(first),
        kept.target,
        kept.task,
    )
    again.learn(first)
    again.flush()
    assert again.fingerprint() == kept.fingerprint()
    said = list(csv.reader(tool("predict", "model.ks", rows).out.splitlines()))[1:]
    kind = float if numbers else str
    assert [kind(value) for _, value in said] == again.predict(first).tolist()
    assert [int(line) for line, _ in said] == list(range(2, 3002))


@pytest.mark.parametrize("numbers", [False, True])
def test_merging(tool, tmp_path, numbers):
    for seed, name in enumerate(("a.csv", "b.csv")):
        write_rows(tmp_path / name, 2000, seed=seed, numbers=numbers)
    tool("learn", "a.csv", *SETTINGS[numbers], "--out", "a.ks")
    tool("learn", "b.csv", *SETTINGS[numbers], "--out", "stranger.ks")
    tool("learn", "b.csv", *SETTINGS[numbers], "--like", "a.ks", "--out", "b.ks")
    refused = tool("merge", "a.ks", "stranger.ks", "--out", "m.ks", code=2)
    assert "in another way than a.ks; learn it with --like a.ks (" in refused.err
    assert not (tmp_path / "m.ks").exists()

    merged = json.loads(tool("merge", "a.ks", "b.ks", "--out", "m.ks", "--json").out)
    assert merged["points"] <= merged["points_before"]
    metric = "mae" if numbers else "error"
    scores = {
        name: json.loads(tool("evaluate", name, "b.csv", "--metrics", metric, "--json").out)[metric]
        for name in ("a.ks", "b.ks", "m.ks")
    }
    assert scores["m.ks"] < 1.1 * max(scores["a.ks"], scores["b.ks"])

    first, second, mean = (load(tmp_path / name) for name in ("a.ks", "b.ks", "m.ks"))
    batch = next(open_stream(tmp_path / "b.csv"))
    if numbers:  # the mean of two functions is in the units of both
        expected = 0.5 * (first.predict(batch) + second.predict(batch))
        assert np.abs(mean.predict(batch) - expected).max() < 2.0


@pytest.mark.parametrize("numbers", [False, True])
def test_colk_from_a_file_and_back(tool, tmp_path, numbers):
    rows = write_rows(tmp_path / "rows.csv", 601, numbers=numbers)
    words = (
        "learn",
        rows,
        *SETTINGS[numbers],
        "--model",
        "colk",
        "--risk-weight",
        0.3,
        "--tracking-rate",
        0.1,
    )
    refused = tool(*words, "--risk", "luck", code=2).err
    assert "risk" in refused
    words = (*words, "--risk", "cvar", "--level", 0.8, "--tracking", "momentum", "--warm-up", 100)
    for size, name in ((200, "a.ks"), (1000, "b.ks")):
        tool(*words, "--batch-rows", size, "--out", name)
    assert load(tmp_path / "a.ks").fingerprint() == load(tmp_path / "b.ks").fingerprint()
    shown = json.loads(tool("inspect", "a.ks", "--json").out)
    assert shown["points"] > 5
    tool("compress", "a.ks", "--max-points", 5, "--out", "small.ks")
    said = tool("predict", "small.ks", rows).out.splitlines()
    assert len(said) == 602


def test_compressing_says_what_it_costs(tool, model):
    before = json.loads(tool("inspect", model, "--json").out)
    assert before["points"] > 10
    result = tool("compress", model, "--max-points", 10, "--out", "small.ks")
    pattern = rf"{before['points']} points became 10, at a distance of ([\d.]+) in the RKHS: small"
    cost = float(re.match(pattern, result.out)[1])
    after = json.loads(tool("inspect", "small.ks", "--json").out)
    assert after["points"] == 10
    assert after["error_spent"] == pytest.approx(before["error_spent"] + cost, rel=1e-3)
    tool("compress", model, "--error", 1e-9, "--out", model)  # in place is allowed


def test_inspecting(tool, model):
    shown = tool("inspect", model, "--points", 3, "--report", "page.html").out
    assert "The 3 most influential points" in shown
    assert "votes for" in shown
    page = (model.parent / "page.html").read_text()
    assert "<html" in page
    spent = json.loads(tool("inspect", model, "--json").out)["error_spent"]
    assert len(str(spent)) > 10  # all digits
    assert re.search(rf"error spent  {rounded(spent)} *\n", shown)
    assert str(spent) not in page


# ---- display -------------------------------------------------------------------------------


def test_a_terminal_shows_the_run(tool, rows, monkeypatch, tmp_path):
    shown = (tmp_path / "screen").open("w+")
    monkeypatch.setattr("kernelstream.cli.display._SECONDS", 0.0)

    def console(stderr=False):
        return Console(file=shown, force_terminal=True, width=100) if stderr else Console()

    monkeypatch.setattr(learning, "Console", console)
    words = ("learn", rows, "--target", "label", "--batch-rows", 50, "--every", 40)
    tool(*words, "--quiet")
    assert shown.tell() == 0
    json.loads(tool(*words, "--json").out)  # the display is on standard error
    shown.seek(0)
    text = shown.read()
    for word in ("samples", "per second", "accuracy, last 1000", "points", "memory", "Ctrl-C"):
        assert word in text
    assert any(bar in text for bar in "▁▂▃▄▅▆▇█")
    shown.close()


@pytest.mark.parametrize("header", [True, False])
def test_a_row_of_a_pipe_is_answered_before_the_next_one_comes(tool, tmp_path, header):
    rows = write_rows(tmp_path / "rows.csv", 300)
    tool("learn", rows, "--target", "label", "--model", "polk", "--out", tmp_path / "m.ks", "-q")
    lines = rows.read_text().splitlines(keepends=True)
    words = ["predict", "m.ks", "-", "--probabilities"]
    if not header:
        without = write_rows(tmp_path / "plain.csv", 300)
        without.write_text("".join(lines[1:]))
        tool("learn", without, "--no-header", "--target", "c4", "--model", "polk", "--out",
             tmp_path / "m.ks", "-q")  # fmt: skip
        words.append("--no-header")
    os.mkfifo(tmp_path / "pipe")
    child = start(tmp_path, *words, stdin=tmp_path / "pipe")
    out = child.log.with_suffix(".out")
    with open(tmp_path / "pipe", "wb", buffering=0) as pipe:
        if header:
            pipe.write(lines[0].encode())
        for number, row in enumerate(lines[1:4], start=1):
            pipe.write(row.encode())  # and nothing more until it is answered
            wait_until(lambda n=number: out.exists() and out.read_text().count("\n") == n + 1)
        pipe.write("".join(lines[4:]).encode())
    ended = child.wait()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 301
    assert ended.out.startswith("line,predicted_")


def test_a_signal_after_the_last_row_lets_everything_be_written(tool, rows, monkeypatch):
    write = Run.write_report

    def signalled(run: Run, *given: Any) -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        return write(run, *given)

    # Would end this process too, where nobody listens any more.
    monkeypatch.setattr(Run, "write_report", signalled)
    died: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: died.append(number))
    try:
        result = tool(*LEARN, "--out", "model.ks", "--report", "report.html")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not died
    assert "Stopped by" not in result.out
    assert "report.html" in result.out
    assert load("model.ks").model.n_seen_ > 0
