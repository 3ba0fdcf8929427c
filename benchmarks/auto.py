"""The automatic model against other programs: nothing is tuned, every row is predicted first.

Long with all programs. What is measured is kept in ``build/``, so that a run goes on where an
earlier one was stopped; ``auto-tables`` prints what there is so far.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.auto_programs import PEER_ROWS, Program, programs
from benchmarks.auto_streams import ROWS, Stream, all_streams, read, stored
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import AutoClassifier

#: Probabilities below count as this in the log loss: some programs say 0.
LEAST = 1e-6
BINS = 15  # of the expected calibration error
WHOLE = ("ijcnn1", "cod-rna", "a9a")
Cell = dict[str, Any]
Cells = dict[tuple[str, str], Cell]  # (stream, program)


def main() -> None:
    """Measure what is missing, then print the tables."""
    cells = _stored()
    with threadpool_limits(1):
        for program in programs():
            for name, (numbers, _) in all_streams().items():
                if (name, program.name) in cells or program.runner(numbers) is None:
                    continue
                stream = read(name)
                rows = len(stream.y) if program.rows is None else min(program.rows, len(stream.y))
                stream = stream.first(max(200, int(share() * rows)))
                cell = measure(program, stream)
                print(name, program.name, cell, flush=True)
                _keep(name, program.name, cell)
    tables()


def measure(program: Program, stream: Stream) -> Cell:
    """One program on one stream, its code compiled before."""
    run = program.runner(stream.numbers)
    assert run is not None
    if program.rows is None or program.name.startswith("automatic"):
        run(stream.first(5000))  # some code is first used after a few thousand rows
    start = time.process_time()  # of the processor, all threads: others may use the machine, too
    made = np.asarray(run(stream))
    seconds = time.process_time() - start
    cell: Cell = {"rows": len(stream.y), "us": 1e6 * seconds / len(stream.y)}
    scored = ~np.isnan(made if made.ndim == 1 else made[:, 0])
    made, y = made[scored], stream.y[scored]
    if stream.numbers:
        return cell | {"error": float(np.sqrt(np.mean((made - y) ** 2)) / stream.y.std())}
    if made.ndim == 1:
        return cell | {"error": 100.0 * float(np.mean(made != y))}
    return cell | quality(made, y)


def quality(made: Any, y: Any) -> Cell:
    """Error in %, log loss in nats and expected calibration error in % of (n, C) votes."""
    sums = made.sum(axis=1, keepdims=True)
    p = np.where(sums > 0, made / np.where(sums > 0, sums, 1.0), 1.0 / made.shape[1])
    label, confidence = p.argmax(axis=1), p.max(axis=1)
    right = label == y
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=BINS)
    return {
        "error": 100.0 * float(np.mean(~right)),
        "log_loss": float(-np.mean(np.log(np.maximum(p[np.arange(len(y)), y], LEAST)))),
        "ece": 100.0 * float(np.abs(gaps).sum() / len(y)),
    }


def whole() -> None:
    """Mistakes on whole sets, in the order of their files and in random ones."""
    orders = ["of its files", *(f"random, seed {seed}" for seed in range(4))]
    with threadpool_limits(1):
        show(
            "mistakes in %, whole sets, training and test part together",
            ["set", "rows", *orders, "mean of the random ones"],
            (row for name in WHOLE if (row := _whole(name)) is not None),
        )


def _whole(name: str) -> list[str] | None:
    found = stored(name)
    if found is None:
        return None
    X, y = found
    rows, errors = max(200, int(share() * len(y))), []
    for seed in (None, *range(4)):
        chosen = np.arange(len(y))
        if seed is not None:
            chosen = np.random.default_rng(seed).permutation(len(y))
        X_now, y_now = X[chosen[:rows]], y[chosen[:rows]]
        made = AutoClassifier(random_state=0).predict_then_learn(X_now, y_now, classes=np.unique(y))
        errors.append(100.0 * float(np.mean(made != y_now)))
    return [name, f"{rows:,}", *(f"{e:.2f}" for e in (*errors, np.mean(errors[1:])))]


def _file() -> Path:
    return Path("build") / f"auto-{share():g}.jsonl"


def _stored() -> Cells:
    if not _file().exists():
        return {}
    lines = [json.loads(line) for line in _file().read_text().splitlines()]
    return {(line["stream"], line["program"]): line["cell"] for line in lines}


def _keep(stream: str, program: str, cell: Cell) -> None:
    _file().parent.mkdir(exist_ok=True)
    with open(_file(), "a") as file:
        file.write(json.dumps({"stream": stream, "program": program, "cell": cell}) + "\n")


# ---- tables -----------------------------------------------------------------------------------


def tables() -> None:
    """Print what has been measured so far."""
    cells = _stored()
    names = list(dict.fromkeys(program for _, program in cells))
    short = [name for name in names if name.startswith(("River", "CapyMOA"))]
    long = [name for name in names if name not in short and not name.startswith("automatic")]
    _tables(cells, f"up to {ROWS:,} rows (elec2 all)", ["automatic", *long])
    _tables(cells, f"the first {PEER_ROWS:,} rows", ["automatic, the same rows", *short])


def _tables(cells: Cells, rows: str, names: list[str]) -> None:
    """Of streams that the first program and another one have seen."""
    for numbers in (False, True):
        streams = [
            name for name, (kind, _) in all_streams().items()
            if kind == numbers and (name, names[0]) in cells
            and any((name, other) in cells for other in names[1:])
        ]  # fmt: skip
        if not streams:
            continue
        shown = [name for name in names if any((stream, name) in cells for stream in streams)]
        what = "RMSE in standard deviations" if numbers else "mistakes in %"
        show(f"{what}, {rows}", ["stream", *shown], _errors(cells, streams, shown))
        if not numbers:
            likely = [n for n in shown if any("log_loss" in cells.get((s, n), {}) for s in streams)]
            show(
                f"log loss / expected calibration error in %, {rows}",
                ["stream", *likely],
                _lines(cells, streams, likely, lambda c: f"{c['log_loss']:.3f} / {c['ece']:.1f}"),
            )
        show(
            f"microseconds of the processor a row, {rows}",
            ["stream", *shown],
            _lines(cells, streams, shown, lambda c: f"{c['us']:.0f}"),
        )


def _lines(cells: Cells, streams: list[str], names: list[str], text: Any) -> Iterator[list[str]]:
    for stream in streams:
        found = [cells.get((stream, name)) for name in names]
        yield [stream, *("" if cell is None else text(cell) for cell in found)]


def _errors(cells: Cells, streams: list[str], names: list[str]) -> Iterator[list[str]]:
    """The errors, and below them how many times the first program's they are."""
    yield from _lines(cells, streams, names, lambda c: f"{c['error']:.3g}")
    ratios = []
    for name in names:
        logs = [
            np.log(cells[stream, name]["error"] / cells[stream, names[0]]["error"])
            for stream in streams
            if (stream, name) in cells and cells[stream, names[0]]["error"] > 0
            and cells[stream, name]["error"] > 0
        ]  # fmt: skip
        ratios.append(f"{np.exp(np.mean(logs)):.2f}" if logs else "")
    yield ["times the first, geometric mean", *ratios]
