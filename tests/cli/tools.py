"""The command line, run in this process or in one that can be killed."""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from kernelstream.cli import main
from tests.cli import child

#: Seconds after which something will never happen: a busy machine may compile first.
PATIENCE = 300.0


#: A run on the fixture `rows`.
LEARN = ("learn", "rows.csv", "--target", "label", "--model", "polk")


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Tool:
    """``tool("learn", "rows.csv")``: runs here, which saves a second of imports each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: Any, code: int = 0) -> Result:
        self._monkeypatch.setattr(sys, "argv", ["kernelstream", *map(str, words)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        result = Result(ended.value.code or 0, out, err)
        assert result.code == code, result
        return result


def as_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Let the tool that runs in this process read these bytes from its standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


class Child(NamedTuple):
    """The tool in a process of its own."""

    process: BaseProcess
    log: Path

    def wait(self) -> Result:
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, "it does not end"
        text = self.log.with_suffix(".out").read_text()
        return Result(self.process.exitcode, text, self.log.with_suffix(".err").read_text())

    def kill(self, number: int) -> Result:
        os.kill(self.process.pid, number)
        return self.wait()


# A server that has imported everything is forked: a start takes a moment instead of seconds.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.cli.server"])


def start(folder: Path, *words: Any, stdin: Path | None = None) -> Child:
    """Start the tool in a folder; its output goes to files."""
    log = folder / f"log-{time.monotonic_ns()}"
    arguments = (str(folder), [str(word) for word in words], str(log), stdin and str(stdin))
    process = _PROCESSES.Process(target=child.run, args=arguments)
    process.start()
    return Child(process, log)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.002)


def write_rows(path: Path, rows: int, *, seed: int = 0, numbers: bool = False) -> Path:
    """A CSV file of the usual mixture: numbers with gaps, a category, a constant, a target."""
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(2, rows))
    city = np.array(["Ulm", "Bonn", "Köln"])[random.integers(3, size=rows)]
    label = np.where(x * y + (city == "Ulm") > 0.3, "yes", "no")
    height = 100.0 + 20.0 * np.sin(2.0 * x) + random.normal(size=rows)
    gaps = random.uniform(size=rows) < 0.05
    lines = ["x,y,city,one," + ("height" if numbers else "label")]
    for i in range(rows):
        target = f"{height[i]:.17g}" if numbers else label[i]
        number = "" if gaps[i] else f"{x[i]:.17g}"
        lines.append(f"{number},{y[i]:.17g},{city[i]},1,{target}")
    path.write_text("\n".join(lines) + "\n")
    return path
