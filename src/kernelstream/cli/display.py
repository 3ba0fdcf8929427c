"""The live view of a run: one panel, redrawn a few times a second."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.console import Group
from rich.filesize import pick_unit_and_suffix
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kernelstream.cli.terminal import Console
from kernelstream.evaluation.metrics import METRICS
from kernelstream.runs import ComparisonRun, FeatureRun, Run, TuningRun
from kernelstream.streams.bad_rows import counted

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 40  # values in the sparkline
_SECONDS = 0.5  # between two drawings


def grid(**second: Any) -> Table:
    """A table of names and what there is to say about them; ``second`` is about that column."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right")
    table.add_column(**second)
    return table


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


class _Display:
    """Shows where a run stands; draws nothing when ``console`` is not a terminal."""

    def __init__(self, console: Console, run: Any, quiet: bool) -> None:
        self.run = run
        self.enabled = console.is_terminal and not quiet
        self.cost = 0.0  # seconds spent here
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._started = self._drawn = time.perf_counter()

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
        table = grid()
        for name, text in self._view(max(start - self._started, 1e-9)).items():
            table.add_row(name, text)
        table.add_row("memory", f"{size(resident_bytes())} [dim]of this process[/]")
        if refused := self.run.source.bad.count:
            table.add_row("refused", Text(counted(refused), style="yellow"))
        panel = Group(table, Text("Ctrl-C finishes the batch and stops", style="dim"))
        self._live.update(panel, refresh=True)
        self.cost += time.perf_counter() - start

    def _view(self, seconds: float) -> dict[str, str]:
        """What there is to see after so many seconds."""
        raise NotImplementedError


class Display(_Display):
    """Of a model that learns."""

    run: Run

    def __init__(self, console: Console, run: Run, quiet: bool) -> None:
        super().__init__(console, run, quiet)
        self.history: deque[float] = deque(maxlen=_WIDTH)
        self._seen = 0
        self._from = run.samples

    def _view(self, seconds: float) -> dict[str, str]:
        trace, samples = self.run.score.trace, self.run.samples
        metric, overall, recent = trace.metrics[0], np.nan, np.nan
        if len(trace):
            numbers = trace.summary()
            overall, recent = numbers[metric], numbers[f"{metric}_window"]
        if len(trace) > self._seen:
            self._seen = len(trace)
            self.history.append(recent)
        better = "lower is better" if METRICS[metric].lower_is_better else "higher is better"
        view = {
            "samples": f"{samples:,}   [dim]{(samples - self._from) / seconds:,.0f} per second[/]",
            f"{metric}, last {self.run.settings['window']}": f"[bold]{recent:.4f}[/]  "
            f"{sparkline(self.history)}  [dim]all {overall:.4f}, {better}[/]",
        }
        if hasattr(self.run.model.estimator, "model_order_"):
            view["points"] = f"{self.run.model.estimator.model_order_:,}"
        return view


class FeatureDisplay(_Display):
    """Of features that are learned."""

    run: FeatureRun

    def _view(self, seconds: float) -> dict[str, str]:
        trace, extractor = self.run.trace, self.run.stream.extractor
        history = sparkline(trace.to_columns()["fit_error"][-_WIDTH:])
        view = {
            "rows": f"{trace.samples:,}   [dim]{trace.samples / seconds:,.0f} per second[/]",
            "fit error": f"[bold]{trace.recent:.4f}[/]  {history}  [dim]all {trace.mean:.4f}[/]",
            "stored": f"{len(extractor.factor_):,} samples   [dim]{size(extractor.nbytes_)}, "
            f"{100.0 * extractor.censoring_rate_:.0f} % of the rows censored[/]",
        }
        if trace.changes:
            last = trace.changes[-1].sample
            view["changes"] = f"[yellow]{len(trace.changes):,}[/], the last at row {last:,}"
        return view


class ComparisonDisplay(_Display):
    """Of programs that are compared."""

    run: ComparisonRun

    def _view(self, seconds: float) -> dict[str, str]:
        samples, metric = self.run.samples, self.run.metrics[0]
        most = "" if self.run.rows is None else f" of at most {self.run.rows:,}"
        view = {"rows": f"{samples:,}{most}   [dim]{samples / seconds:,.0f} per second[/]"}
        for seat in self.run.seats:
            trace = seat.trace
            text = f"[yellow]{escape(seat.problem)}[/]" if seat.problem else "[dim]...[/]"
            if len(trace) and not seat.problem and metric in trace.metrics:
                numbers, history = trace.summary(), trace.to_columns()[f"{metric}_window"]
                text = f"[bold]{numbers[metric]:.4f}[/]  {sparkline(history[-_WIDTH:])}"
                text += f"  [dim]{numbers['microseconds_per_sample']:,.0f} us per row[/]"
            view[escape(seat.entry.name)] = text
        return view


class TuningDisplay(_Display):
    """Of candidates for parameters."""

    run: TuningRun

    def _view(self, seconds: float) -> dict[str, str]:
        samples, left = self.run.samples, self.run.left
        view = {
            "rows": f"{samples:,} of at most {self.run.settings['rows']:,}",
            "candidates": f"{len(left)} of {len(self.run.trials)} are left",
        }
        if samples and left:
            best = self.run.result().best
            chosen = ", ".join(f"{name}={value}" for name, value in best.parameters.items())
            view[f"best {self.run.metric}"] = f"[bold]{best.value:.4f}[/]  {escape(chosen)}"
        return view


def show_inputs(table: Table, inputs: dict[str, str]) -> None:
    """A row with the columns that are looked at, and their kinds."""
    listed = ", ".join(f"{name} ({kind})" for name, kind in inputs.items())
    table.add_row("inputs", escape(listed or "none: it learns from earlier targets alone"))


def show_notes(table: Table, notes: list[str]) -> None:
    """A row for each note."""
    for note in notes:
        table.add_row("note", f"[yellow]{escape(note)}[/]")


def show_files(table: Table, files: dict[str, Path | None]) -> None:
    """A row for each file that was written."""
    for name, path in files.items():
        if path is not None:
            table.add_row(name, escape(str(path)))


def in_percent(parts: Mapping[str, float], most: int = 8) -> str:
    """The largest parts of a whole, but for those that are nothing.

    >>> in_percent({"price": 0.75, "demand": 0.25, "day": 0.001})
    'price 75 %, demand 25 %'
    """
    shown = [f"{name} {100.0 * part:.0f} %" for name, part in parts.items() if part >= 0.005]
    return ", ".join([*shown[:most], *(["..."] if len(shown) > most else [])])


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
    unit, name = pick_unit_and_suffix(int(count), ["B", "KiB", "MiB", "GiB"], 1024)
    return f"{count:.0f} B" if unit == 1 else f"{count / unit:.1f} {name}"


def resident_bytes() -> int:
    """Memory of this process, where the system reports it (Linux); else 0."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
