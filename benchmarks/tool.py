"""The command line on a long stream: throughput, memory, and what the live display costs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks.tables import show
from kernelstream import POLKClassifier, Preparation, StreamModel, make_multidist
from kernelstream.evaluation import Prequential
from kernelstream.streams import open_stream

ROWS = int(os.environ.get("KERNELSTREAM_BENCH_ROWS", 10_000_000))
_BLOCK = 500_000
_SETTINGS = {"gamma": 0.8333, "eta0": 0.5, "compression_error": 0.3, "alpha": 1e-4}
_OPTIONS = [word for name, value in _SETTINGS.items() for word in (f"--{name}", str(value))]


def tool() -> None:
    """Ten million generated rows through standard input."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stream.csv"
        blocks = _write(file)
        show(
            f"{ROWS:,} rows of multidist, CSV through standard input, one after the other",
            ["what", "seconds", "us per row"],
            _rows(file, blocks),
        )


def _rows(file: Path, blocks: list[Any]) -> Iterator[tuple[Any, ...]]:
    parsing = _timed(lambda: _parse(file))
    yield "parsing alone (pyarrow.csv, as the tool reads)", parsing, parsing / ROWS * 1e6
    learning = _timed(lambda: _in_memory(blocks))
    yield "the same model, evaluation included, from arrays", learning, learning / ROWS * 1e6
    total = parsing + learning
    yield "sum of the two", total, total / ROWS * 1e6
    seconds, slope, peak, summary = _run(file, display=False)
    running = summary["wall_seconds"]
    yield "kernelstream learn -, start of the process included", seconds, seconds / ROWS * 1e6
    yield "kernelstream learn -, from the first row on", running, running / ROWS * 1e6
    yield "  against the sum (at most 1.25)", running / total, ""
    yield "  resident memory, MiB per million rows (below 1)", slope, ""
    yield "  resident memory, peak MiB", peak, ""
    seconds, _, _, summary = _run(file, display=True)
    share = summary["display_seconds"] / summary["wall_seconds"]
    yield "kernelstream learn - on a terminal", seconds, seconds / ROWS * 1e6
    yield "  share of the live display, % (below 2)", 100.0 * share, ""


def _write(file: Path) -> list[Any]:
    blocks = []
    with file.open("wb") as out:
        for number, first in enumerate(range(0, ROWS, _BLOCK)):
            X, y = make_multidist(min(_BLOCK, ROWS - first), random_state=0)
            order = np.random.default_rng(number).permutation(len(y))
            table = pa.table({"x": X[order, 0], "y": X[order, 1], "label": y[order]})
            header = pyarrow.csv.WriteOptions(include_header=number == 0)
            pyarrow.csv.write_csv(table, out, header)
            blocks.append((X[order], y[order].astype(np.float64)))
    return blocks


def _timed(function: Any) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _parse(file: Path) -> None:
    reader = pyarrow.csv.open_csv(file, pyarrow.csv.ReadOptions(block_size=4 << 20))
    for _ in reader:
        pass


def _in_memory(blocks: list[Any]) -> None:
    """The preparation, the model and its evaluation, without a file."""
    model = run = None
    for X, y in blocks:
        for batch in open_stream((X, y), target="target"):
            if model is None:
                preparation = Preparation(
                    {"target": "number"}, ignore=["target"], matrix_width=2
                ).start(batch)
                estimator = POLKClassifier(random_state=0, **_SETTINGS)
                model = StreamModel(estimator, preparation, "target", "classification")
                run = Prequential(model.estimator)
            assert run is not None
            run.update(*model.admit(batch))


def _run(file: Path, display: bool) -> tuple[float, float, float, dict[str, Any]]:
    """Seconds, MiB per million rows, peak MiB and the summary of one run of the tool."""
    command = [sys.executable, "-m", "kernelstream", "learn", "-", "--target", "label", *_OPTIONS,
               "--json"]  # fmt: skip
    terminal, other = pty.openpty() if display else (None, subprocess.DEVNULL)
    start = time.perf_counter()
    with file.open("rb") as rows:
        cat = subprocess.Popen(["cat"], stdin=rows, stdout=subprocess.PIPE)
        process = subprocess.Popen(
            command, stdin=cat.stdout, stdout=subprocess.PIPE, stderr=other, text=True
        )
        if terminal is not None:
            threading.Thread(target=_drain, args=(terminal,), daemon=True).start()
        memory = []
        while process.poll() is None:
            memory.append(_resident(process.pid))
            time.sleep(0.1)
        assert process.stdout is not None
        summary = json.loads(process.stdout.read())
    seconds = time.perf_counter() - start
    used = np.array([value for value in memory if value])
    later = used[len(used) // 4 :]  # after warming up
    million = ROWS / 1e6 * len(later) / len(used)
    slope = float(np.polyfit(np.linspace(0.0, million, len(later)), later, 1)[0])
    return seconds, slope, float(used.max()), summary


def _drain(terminal: int) -> None:
    while os.read(terminal, 65536):
        pass


def _resident(process: int) -> float:
    """MiB, where the system tells."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
