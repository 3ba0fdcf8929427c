"""Kill the tool again and again: does it end in the model of a run that was never disturbed?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import show

KILLS = 50
ROWS = 60_000
#: Target and settings of the two runs.
TASKS = {
    "classification": ("label", "--eta0 1 --epsilon 0.2 --max-points 60"),
    "regression": ("height", "--eta0 0.5 --epsilon 0.05 --max-points 60"),
}


def main() -> None:
    """Print one row for each task."""
    show(
        f"kill -9 at {KILLS} random moments, checkpoints all the time, bad rows in quarantine",
        ("task", "kills", "before the first checkpoint", "while a file was being written",
         "runs finished", "models identical", "quarantine identical"),
        _rows(),
    )  # fmt: skip


def _rows() -> Iterator[tuple[Any, ...]]:
    for task in TASKS:
        with tempfile.TemporaryDirectory() as folder:
            yield (task, *_torment(task, Path(folder), np.random.default_rng(0)))


def _torment(task: str, folder: Path, random: np.random.Generator) -> tuple[Any, ...]:
    write_stream(folder / "rows.csv", ROWS)
    undisturbed, wait = _undisturbed(task, folder)
    files = folder / "killed"
    kills = early = torn = 0
    finished = same_model = same_rows = 0
    while kills < KILLS or finished == 0:
        files.mkdir(exist_ok=True)
        child = _start(task, folder, files)
        if kills < KILLS:
            try:
                child.wait(random.uniform(0.9 * wait, 1.5 * wait))
            except subprocess.TimeoutExpired:
                child.kill()
                kills += 1
        if child.wait() > 0:
            raise RuntimeError((child.stderr and child.stderr.read()) or "it failed in silence")
        torn += _sweep(files)
        if child.returncode < 0:
            early += not (files / "place" / "checkpoint.ks").exists()
            continue
        finished += 1
        model, rows = _outcome(files)
        same_model += model == undisturbed[0]
        same_rows += rows == undisturbed[1]
        files.rename(folder / f"finished-{finished}")
    return (kills, early, torn, finished, f"{same_model} of {finished}",
            f"{same_rows} of {finished}")  # fmt: skip


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
            number = "oops" if i % 997 == 996 else "" if i % 19 == 0 else f"{x[i]:.17g}"
            file.write(f"{number},{y[i]:.17g},{city[i]},{label[i]},{height[i]:.17g}\n")


def _start(task: str, folder: Path, place: Path) -> subprocess.Popen[str]:
    target, settings = TASKS[task]
    other = next(name for name, _ in TASKS.values() if name != target)
    words = (
        f"learn {folder / 'rows.csv'} --target {target} --drop {other} {settings} "
        "--batch-rows 200 --checkpoint place --checkpoint-seconds 0 --resume "
        "--on-bad quarantine --quarantine aside.csv --out model.ks"
    ).split()
    return subprocess.Popen(
        [sys.executable, "-m", "kernelstream", *words],
        cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _undisturbed(task: str, folder: Path) -> tuple[tuple[str, str], float]:
    """What it should come to, and the seconds until the first checkpoint."""
    place = folder / "undisturbed"
    place.mkdir()
    for _ in range(2):  # the first compiles
        for file in place.rglob("*.*"):
            file.unlink()
        start = time.perf_counter()
        child = _start(task, folder, place)
        while not (place / "place" / "checkpoint.ks").exists() and child.poll() is None:
            time.sleep(0.01)
        wait = time.perf_counter() - start
        child.wait()
    return _outcome(place), wait


def _outcome(place: Path) -> tuple[str, str]:
    import kernelstream

    model = kernelstream.load(place / "model.ks").fingerprint()
    return model, (place / "aside.csv").read_text()


def _sweep(place: Path) -> int:
    """Remove half-written files, which nothing else looks at; how many there were."""
    left = list(place.rglob(".kernelstream-*.tmp"))
    for file in left:
        file.unlink()
    return len(left)
