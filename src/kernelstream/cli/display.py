"""The live view of a run: one panel, redrawn a few times a second."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Self

import numpy as np
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kernelstream.cli.running import Run, headline, resident_bytes
from kernelstream.cli.terminal import Console
from kernelstream.evaluation.metrics import METRICS

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 40  # values in the sparkline
_SECONDS = 0.5  # between two drawings


def sparkline(values: Any) -> str:
    """Numbers as a row of small bars; a space for NaN.

    >>> sparkline([0.0, 1.0, 2.0, float("nan"), 7.0])
    '▁▂▃ █'
    """
    numbers = np.asarray(list(values), dtype=float)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return " " * len(numbers)
    low, high = finite.min(), finite.max()
    steps = (numbers - low) / (high - low) * 7.0 if high > low else np.full(len(numbers), 3.0)
    return "".join(_BLOCKS[round(step)] if np.isfinite(step) else " " for step in steps)


class Display:
    """Shows where a run stands; draws nothing when ``console`` is not a terminal."""

    def __init__(self, console: Console, run: Run, quiet: bool) -> None:
        self.console = console
        self.run = run
        self.enabled = console.is_terminal and not quiet
        self.history: deque[float] = deque(maxlen=_WIDTH)
        self.cost = 0.0  # seconds spent here
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._seen = 0
        self._started = self._drawn = time.perf_counter()
        self._from = run.score.samples

    def __enter__(self) -> Self:
        if self.enabled:
            self._live.__enter__()
        return self

    def __exit__(self, *reason: Any) -> None:
        if self.enabled:
            self._live.__exit__(*reason)

    def update(self) -> None:
        """Draw, if it is time to."""
        if not self.enabled:
            return
        start = time.perf_counter()
        if start - self._drawn < _SECONDS:
            return
        self._drawn = start
        self._live.update(self._view(start), refresh=True)
        self.cost += time.perf_counter() - start

    def _view(self, now: float) -> Group:
        run, score = self.run, self.run.score
        name, overall, recent = headline(score)
        if len(score.trace) > self._seen:
            self._seen = len(score.trace)
            self.history.append(recent)
        rate = (score.samples - self._from) / max(now - self._started, 1e-9)
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", justify="right")
        table.add_column()
        table.add_row("samples", f"{score.samples:,}   [dim]{rate:,.0f} per second[/]")
        better = "lower is better" if METRICS[name].lower_is_better else "higher is better"
        table.add_row(
            f"{name}, last {run.plan.window}",
            f"[bold]{recent:.4f}[/]  {sparkline(self.history)}  "
            f"[dim]all {overall:.4f}, {better}[/]",
        )
        estimator = run.model.estimator
        if hasattr(estimator, "model_order_"):
            table.add_row("points", f"{estimator.model_order_:,}")
        table.add_row("memory", f"{size(resident_bytes())} [dim]of this process[/]")
        if run.source.bad.count:
            table.add_row("refused", Text(f"{run.source.bad.count:,} rows", style="yellow"))
        return Group(table, Text("Ctrl-C finishes the batch and stops", style="dim"))


def rounded(number: float) -> str:
    """A number with four digits, large ones whole.

    >>> rounded(31422.861336372334), rounded(0.123456)
    ('31,423', '0.1235')
    """
    return f"{number:,.0f}" if abs(number) >= 1000.0 else f"{number:.4g}"


def size(count: float) -> str:
    """Bytes for people.

    >>> size(1536)
    '1.5 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024.0 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024.0
    raise AssertionError
