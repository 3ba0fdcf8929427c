"""Kill the tool again and again: does it end in the model of a run that was never disturbed?"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kernelstream
from benchmarks.share import share
from benchmarks.tables import show
from tests.cli import child

#: Of each of the commands below.
KILLS = 25
ROWS = 6_000
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: Seconds after which a run hangs.
LIMIT = 120.0
#: Of one command, before it is given up.
MOST_FAILURES = 3
#: `features` learns blocks of rows: the rows of one that a signal cut short have other features.
BLOCK_ROWS = 100

#: What a file is called while it is being written.
_UNFINISHED = ".kernelstream-*.tmp"

METHODS = {
    "auto": "",
    "polk": "--eta0 0.5 --compression-error 0.1 --max-points 60",
    "avm": "--max-points 60",
    "colk": "--eta0 0.5 --compression-error 0.1 --max-points 60",
    "krlst": "--max-points 40",
    "nogd": "--max-points 60",
    "npbsgd": "--max-points 60",
}

# A server that has imported everything is forked: what is killed is at work, not being imported.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.cli.server"])


class Command(NamedTuple):
    """A command of the tool that is to be killed."""

    name: str
    words: list[str]
    rows_from: str
    checkpoint: str | None
    beside: str  # the file that it leaves beside model.ks


def commands() -> Iterator[Command]:
    """From a file they learn classes, from a pipe numbers."""
    for rows_from, source, target, other in (
        ("file", "rows.csv", "label", "height"), ("pipe", "-", "height", "label"),
    ):  # fmt: skip
        rows = f"{source} --target {target} --drop {other} --batch-rows 100 --quiet --out"
        for method, settings in METHODS.items():
            words = (
                f"learn {rows} model.ks --model {method} {settings} "
                "--on-bad quarantine --quarantine aside.csv "
                "--checkpoint place --checkpoint-seconds 0 --resume"
            )
            yield Command(f"learn --model {method}", words.split(), rows_from,
                          "place/checkpoint.ks", "aside.csv")  # fmt: skip
        words = f"features {rows} table.csv --save model.ks --on-bad skip"
        yield Command("features", words.split(), rows_from, None, "table.csv")


def main() -> None:
    """Print one row for each command, and below the table what went wrong."""
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        write_stream(Path(folder) / "rows.csv", ROWS)
        show(
            "Killed at random moments, by SIGKILL, SIGTERM and SIGINT in turn",
            ("command", "rows from a", "kills", "before the first checkpoint",
             "while a file was being written", "SIGTERM and SIGINT obeyed", "runs finished",
             "models identical", "quarantine or features identical"),
            (_torment(seed, command, Path(folder), problems)
             for seed, command in enumerate(commands())),
        )  # fmt: skip
    print("", *(problems or ["No failures."]), sep="\n")


def _torment(seed: int, command: Command, folder: Path, problems: list[str]) -> tuple[Any, ...]:
    """Kill the command many times, and start it again each time."""
    most, random = max(1, round(KILLS * share())), np.random.default_rng(seed)
    kills = early = torn = asked = obeyed = finished = same_model = same_beside = failures = 0
    place = folder / "place"
    try:
        right, life, at_work = _undisturbed(command, folder)
        while (kills < most or not finished) and failures < MOST_FAILURES:
            place.mkdir(exist_ok=True)
            kill = SIGNALS[kills % len(SIGNALS)] if kills < most else None
            anywhere = random.random() < 0.5  # in its life, or else while it works on rows
            pause = random.uniform(0.0, life if anywhere else at_work)
            before = _trace(command, place)
            code, killed = _run(command, folder, place, kill, pause, anywhere)
            after = _trace(command, place)
            torn += _sweep(place)
            problem = ""
            if killed and code in (-kill, 128 + kill):
                kills += 1
                early += not after
                asked += kill != signal.SIGKILL
                obeyed += code == 128 + kill
                problem = _look(command, place, right)
                if kill != signal.SIGKILL and code < 0 and after != before:
                    problem = f"it did not stop by itself, but died of {kill.name}"
            elif code == 0:
                finished += 1
                model, beside = _outcome(command, place)
                same_model += model == right[0]
                same_beside += beside == right[1]
                if (model, beside) != right:
                    problem = "it finished with other results"
                shutil.rmtree(place)
            else:
                message = (place / "log.err").read_text().strip()
                print(message, file=sys.stderr)
                problem = f"exit code {code} (none: it hangs): {message.splitlines()[-1:]}"
            if problem:
                failures += 1
                problems.append(f"* {command.name}, {command.rows_from}, kill {kills}: {problem}")
                shutil.rmtree(place, ignore_errors=True)
            print(f"{command.name}, {command.rows_from}: {kills} kills, {finished} finished",
                  file=sys.stderr, flush=True)  # fmt: skip
    except Exception as error:  # the other commands are killed nevertheless
        problems.append(f"* {command.name}, {command.rows_from}: {error!r}")
    shutil.rmtree(place, ignore_errors=True)
    return (
        command.name, command.rows_from, kills, early if command.checkpoint else "", torn,
        f"{obeyed} of {asked}", finished, f"{same_model} of {finished}",
        f"{same_beside} of {finished}",
    )  # fmt: skip


def _run(
    command: Command, folder: Path, place: Path, kill: int | None, pause: float, anywhere: bool
) -> tuple[int | None, bool]:
    """The exit code of a run, and whether it was killed."""
    with _started(command, folder, place) as process:
        killed = False
        if kill is not None:
            if not anywhere:
                before = _trace(command, place)
                while _trace(command, place) == before and process.is_alive():
                    time.sleep(0.002)
            process.join(pause)
            if process.is_alive():
                os.kill(process.pid, kill)
                killed = True
        process.join(LIMIT)
        return process.exitcode, killed


@contextmanager
def _started(command: Command, folder: Path, place: Path) -> Iterator[BaseProcess]:
    """The command as a process, and what fills its pipe."""
    rows, pipe = folder / "rows.csv", place / "pipe"
    words, feeder = [str(rows) if word == "rows.csv" else word for word in command.words], None
    (place / "log.err").unlink(missing_ok=True)
    if command.rows_from == "pipe":
        if not pipe.exists():
            os.mkfifo(pipe)
        feeder = subprocess.Popen(["sh", "-c", 'exec cat "$0" > "$1"', rows, pipe],
                                  stderr=subprocess.DEVNULL)  # fmt: skip
    arguments = (str(place), words, str(place / "log"), feeder and str(pipe))
    process = _PROCESSES.Process(target=child.run, args=arguments)
    process.start()
    try:
        yield process
    finally:
        if process.is_alive():
            process.kill()
        if feeder is not None:
            feeder.kill()  # nobody reads any more
            feeder.wait()


def _undisturbed(command: Command, folder: Path) -> tuple[tuple[str, bytes], float, float]:
    """What it should come to, its seconds in all, and those that it works on rows."""
    for _ in range(2):  # the first compiles
        place = folder / "undisturbed"
        place.mkdir()
        start = time.perf_counter()
        with _started(command, folder, place) as process:
            before = _trace(command, place)
            while _trace(command, place) == before and process.is_alive():
                time.sleep(0.002)
            begun = time.perf_counter()
            process.join(LIMIT)
        life, at_work = time.perf_counter() - start, time.perf_counter() - begun
        if process.exitcode != 0:
            raise RuntimeError(f"exit code {process.exitcode}: {(place / 'log.err').read_text()}")
        right = _outcome(command, place)
        shutil.rmtree(place)
    return right, life, at_work


def _trace(command: Command, place: Path) -> Any:
    """Changes when rows are worked on: a new checkpoint, or the table that is being written."""
    if command.checkpoint is None:
        return list(place.glob(_UNFINISHED))
    checkpoint = place / command.checkpoint
    return checkpoint.stat().st_mtime_ns if checkpoint.exists() else None


def _outcome(command: Command, place: Path) -> tuple[str, bytes]:
    return kernelstream.load(place / "model.ks").fingerprint(), (
        place / command.beside
    ).read_bytes()


def _look(command: Command, place: Path, right: tuple[str, bytes]) -> str:
    """What is wrong with the files that a killed process left, if anything."""
    if (place / "model.ks").exists():
        kernelstream.load(place / "model.ks")
    if command.checkpoint is None and (place / command.beside).exists():
        kept = (place / command.beside).read_bytes().splitlines()[:-BLOCK_ROWS]
        if kept != right[1].splitlines()[: len(kept)]:
            return f"{command.beside} does not begin as it should"
    return ""


def _sweep(place: Path) -> int:
    """Remove half-written files, which nothing else looks at; how many there were."""
    left = list(place.rglob(_UNFINISHED))
    for file in left:
        file.unlink()
    return len(left)


def write_stream(path: Path, rows: int) -> None:
    """Numbers with gaps, a category, two targets, and now and then a row that does not fit."""
    random = np.random.default_rng(1)
    x, y, noise = random.normal(size=(3, rows))
    city = np.array(["Ulm", "Bonn", "Berlin"])[random.integers(3, size=rows)]
    label = np.where(x * y + (city == "Ulm") > 0.3, "yes", "no")
    height = 100.0 + 20.0 * np.sin(2.0 * x) + noise
    with path.open("w") as file:
        file.write("x,y,city,label,height\n")
        for i in range(rows):
            number = "oops" if i % 101 == 100 else "" if i % 19 == 0 else f"{x[i]:.17g}"
            file.write(f"{number},{y[i]:.17g},{city[i]},{label[i]},{height[i]:.17g}\n")
