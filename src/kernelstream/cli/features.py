"""``kernelstream features``: raw rows become a file of learned features."""

from __future__ import annotations

import contextlib
import datetime
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Optional, Self

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text as Words
from scipy.sparse import csr_array
from sklearn.base import clone

from kernelstream._version import __version__
from kernelstream.cli import options
from kernelstream.cli.data import plain, write_table
from kernelstream.cli.display import size, sparkline
from kernelstream.cli.errors import UserError, check_outputs
from kernelstream.cli.methods import check_value, option, parameter_options, value_of
from kernelstream.cli.options import ROWS, RUN
from kernelstream.cli.rows import OnBad, open_rows
from kernelstream.cli.running import (
    Stop,
    StopWaitingError,
    check_given,
    given_kinds,
    join,
    mostly_numbers,
    resident_bytes,
)
from kernelstream.cli.terminal import Console, print_json
from kernelstream.evaluation import FitTrace
from kernelstream.feature_stream import StreamFeatures
from kernelstream.features import OnlineKernelFeatures
from kernelstream.preparation import Preparation
from kernelstream.storage import ModelFileError
from kernelstream.streams.batch import Batch, Source

#: Rows whose features are taken from the same subspace: the one they were learned into.
BLOCK_ROWS = 100
#: Rows drawn in the report.
_SAMPLE_ROWS = 500
#: Fit errors of a kernel with k(x, x) = 1 beyond which features say little of a row.
_UNKNOWN = 0.8
#: Where nothing else is given: a stream may change at any time.
_DEFAULTS = {"n_components": 10, "step_size": "tracking", "random_state": 0}
_SECONDS = 0.5  # between two drawings

_FEATURES = "The features (in brackets what is taken where nothing is given)"


def features(
    file: options.File,
    out: Annotated[
        str,
        typer.Option(
            help="The features: a .parquet, .csv or .tsv file; - is standard output, as CSV.",
            rich_help_panel=RUN,
        ),
    ],
    align: Annotated[
        bool,
        typer.Option(
            help="Turn the features so that they move as little as the subspace allows.",
            rich_help_panel=_FEATURES,
        ),
    ] = True,
    apply: Annotated[
        Optional[Path],
        typer.Option(
            help="Learn nothing: the features of these rows by what --save wrote.",
            rich_help_panel=RUN,
        ),
    ] = None,
    save: Annotated[
        Optional[Path],
        typer.Option(
            help="Where to write the extractor with its preparation.", rich_help_panel=RUN
        ),
    ] = None,
    report: options.Report = None,
    target: Annotated[
        Optional[str],
        typer.Option(help="A column that is no input, but kept.", rich_help_panel=ROWS),
    ] = None,
    drop: options.Drop = None,
    column: options.Kinds = None,
    on_bad: OnBad = "raise",
    warm_up: Annotated[
        int,
        typer.Option(min=1, help="Rows after which standardising is frozen.", rich_help_panel=ROWS),
    ] = 1000,
    buckets: options.Buckets = 256,
    standardise: options.Standardise = True,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    header: options.Header = True,
    n_features: options.Width = None,
    batch_rows: options.BatchRows = 8192,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    **parameters: Any,
) -> None:
    """Learn features from a stream and write them, row by row, in memory that never grows.

    A row becomes a few numbers whose products approximate a kernel. They are taken from the
    subspace as it is after a hundred rows, this one among them. The fit error written beside
    them is from before: where it rises, the stream has changed.
    """
    if out == "-" and as_json:
        raise UserError("--out - and --json would both write to standard output", "leave one out")
    if out != "-" and not out.endswith((".parquet", ".csv", ".tsv")):
        raise UserError(f"{out} has a suffix that cannot be written", "use .parquet, .csv or .tsv")
    inputs = [name for name in (file, apply) if name is not None]
    place = None if out == "-" else Path(out)
    check_outputs({"--out": place, "--save": save, "--report": report}, *inputs)
    given = {name: text for name, text in parameters.items() if text is not None}
    preparing = {"warm_up": warm_up, "buckets": buckets, "standardise": standardise}
    if apply is not None:
        usual = {"warm_up": 1000, "buckets": 256, "standardise": True}
        learning = [option(name) for name in given]
        learning += [option(name) for name in usual if preparing[name] != usual[name]]
        learning += ["--no-align"] * (not align) + ["--column"] * bool(column)
        learning += ["--save"] * (save is not None)
        if learning:
            raise UserError(
                f"{learning[0]} is for learning, and --apply learns nothing", "leave one out"
            )
    saved = None if apply is None else _load(apply)
    reading: dict[str, Any] = {
        "target": target, "batch_rows": batch_rows, "format": format,
        "delimiter": delimiter, "header": header, "n_features": n_features, "drop": drop or [],
        "schema": given_kinds(column or []),
    }  # fmt: skip
    if saved is not None:
        reading["schema"] = saved.preparation.schema
        reading["n_features"] = n_features or saved.preparation.matrix_width
    for name, value in given.items():
        check_value(OnlineKernelFeatures, name, value)
    console = Console(stderr=True)
    stop = Stop()
    with stop.listening(), contextlib.closing(open_rows(file, on_bad, **reading)) as source:
        check_given(column or [], source, file)
        run = _Run.begin(file, source, saved, target, given, align, preparing)
        with (
            console.status("compiling, once per machine ...")
            if not quiet
            else contextlib.nullcontext()
        ):
            run.compile()
        with _Display(console, run, quiet) as display:
            write_table(out, run.tables(stop, display), "")
        if save is not None:
            run.stream.save(save)
    summary = run.summary(stop)
    if report is not None:
        _write_report(report, run, summary)
    if as_json:
        print_json(
            {**summary, "out": out, "save": _text(save), "report": _text(report)}
        )  # fmt: skip
    else:
        messages = console if out == "-" else Console()
        _print_summary(messages, run, summary, out, save, report)
    if stop.signal is not None:
        raise typer.Exit(128 + stop.signal)


def _load(path: Path) -> StreamFeatures:
    if not path.is_file():
        raise UserError(f"there is no file {path}", "name one written by features --save")
    try:
        return StreamFeatures.load(path)
    except ModelFileError as error:
        raise UserError(str(error), "name a file written by features --save") from None


class _Run:
    """Raw rows on their way into features."""

    def __init__(
        self, file: str, source: Source, first: Batch, stream: StreamFeatures, kept: list[str],
        learning: bool,
    ) -> None:  # fmt: skip
        self.file = file
        self.source = source
        self.stream = stream
        self.kept = kept  # columns that go through
        self.learning = learning
        self.trace = FitTrace()
        self.sample: NDArray[np.float64] | None = None
        self.notes = mostly_numbers(first, source.schema)
        self._first: Batch | None = first
        self._started = time.perf_counter()
        self._block = max(BLOCK_ROWS, stream.extractor.n_components)

    @classmethod
    def begin(
        cls, file: str, source: Source, saved: StreamFeatures | None, target: str | None,
        given: dict[str, str], align: bool, preparing: dict[str, Any],
    ) -> Self:  # fmt: skip
        """The run after a look at the first rows."""
        first = next(source, None)
        if first is None:
            raise UserError(
                f"{file} has no row that fits: {source.bad.count:,} were refused",
                "look at them with --on-bad raise",
            )
        kept = [] if target is None else [target]
        if source.matrix_width and target is None:  # such sources have one, by this name
            kept = [name for name in ("target",) if name in first.columns]
        if saved is not None:
            kept = [name for name in kept if name in first.columns]
            return cls(file, source, first, saved, kept, learning=False)
        try:
            preparation = Preparation(
                source.schema, ignore=kept, matrix_width=source.matrix_width, **preparing
            ).start(first)
        except ValueError as error:
            raise UserError(f"{file}: {error}", "name another --target or fewer --drop") from None
        settings = {**_DEFAULTS, **{name: value_of(text) for name, text in given.items()}}
        settings.setdefault("gamma", preparation.suggested_gamma)
        extractor = OnlineKernelFeatures(**settings, align=align)
        try:
            extractor._check_parameters()
        except (ValueError, TypeError) as error:
            problem = " ".join(str(error).split()).rstrip(".")
            raise UserError(problem, "see kernelstream features --help") from error
        return cls(file, source, first, StreamFeatures(extractor, preparation), kept, True)

    def compile(self) -> None:
        """Load or make the machine code now, so that the times measured are the stream's."""
        extractor = self.stream.extractor
        X = np.zeros((1, 1 if self.learning else extractor.n_features_in_))
        for rows in (X, csr_array(X)):
            if self.learning:
                extractor = clone(extractor).set_params(gamma=1.0, n_components=1, budget=2)
                extractor.partial_fit(np.arange(5.0)[:, None]).partial_fit_errors(rows)
            extractor.transform(rows)
            extractor.inverse_fit_error(rows)
        self._started = time.perf_counter()

    # ---- rows -------------------------------------------------------------------------

    def tables(self, stop: Stop, display: _Display) -> Iterator[dict[str, Any]]:
        """The columns to write, some rows at a time, until there are no more or a signal came."""
        waiting: tuple[Any, ...] | None = None  # prepared rows of an unfinished block
        while (batch := self._next(stop)) is not None:
            rows = self._admit(batch)
            if waiting is not None:
                rows = tuple(map(join, waiting, rows))
            count = len(rows[1])
            whole = count - count % self._block
            if whole:
                yield self._table(rows, 0, whole, display)
            waiting = _cut(rows, whole, count) if whole < count else None
            if stop:
                break
        if waiting is not None:
            yield self._table(waiting, 0, len(waiting[1]), display)

    def _next(self, stop: Stop) -> Batch | None:
        if self._first is not None:
            batch, self._first = self._first, None
            return batch
        if self.file != "-":
            return next(self.source, None)
        try:
            with stop.at_once():  # only a pipe can keep us waiting
                return next(self.source, None)
        except StopWaitingError:
            return None

    def _admit(self, batch: Batch) -> tuple[Any, ...]:
        """Prepared rows, where they came from, and the columns that go through."""
        prepare = self.stream.admit if self.learning else self.stream.preparation.transform
        return prepare(batch), batch.lines, *(plain(batch.columns[name]) for name in self.kept)

    def _table(
        self, rows: tuple[Any, ...], first: int, end: int, display: _Display
    ) -> dict[str, Any]:
        features, errors = [], []
        for start in range(first, end, self._block):
            X = rows[0][start : min(start + self._block, end)]
            fit = self._learn(X)
            features.append(self.stream.extractor.transform(X))
            errors.append(fit)
            display.update()
        Z = np.concatenate(features)
        self.sample = Z[-_SAMPLE_ROWS:]
        lines, *kept = (part[first:end] for part in rows[1:])
        table = {
            "line": lines,
            **{f"z{place}": np.ascontiguousarray(column) for place, column in enumerate(Z.T)},
            "fit_error": np.concatenate(errors),
        }
        names = [f"{name}_" if name in table else name for name in self.kept]
        return table | dict(zip(names, kept, strict=True))

    def _learn(self, X: Any) -> NDArray[np.float64]:
        extractor = self.stream.extractor
        if not self.learning:
            errors = extractor.inverse_fit_error(X)
            self.trace.update(errors)
            return errors
        before = extractor.n_updates_ if self.trace.samples else -extractor.n_components
        errors = extractor.partial_fit_errors(X)
        self.trace.update(errors, updated=min(extractor.n_updates_ - before, len(errors)))
        return errors

    # ---- the end ----------------------------------------------------------------------

    def summary(self, stop: Stop) -> dict[str, Any]:
        """What the run came to."""
        extractor, trace = self.stream.extractor, self.trace
        return {
            "samples": trace.samples,
            "features": int(extractor.factor_.shape[1]),
            "stored": len(extractor.factor_),
            "fit_error": trace.mean,
            "fit_error_recent": trace.recent,
            "censoring_rate": extractor.censoring_rate_,
            "changes": [change._asdict() for change in trace.changes],
            "bytes": extractor.nbytes_,
            "bad_rows": self.source.bad.count,
            "wall_seconds": time.perf_counter() - self._started,
            "stopped_by": None if stop.signal is None else signal.Signals(stop.signal).name,
        }


def _cut(rows: tuple[Any, ...], first: int, end: int) -> tuple[Any, ...]:
    return tuple(part[first:end] for part in rows)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


class _Display:
    """Shows where the run stands; draws nothing when ``console`` is not a terminal."""

    def __init__(self, console: Console, run: _Run, quiet: bool) -> None:
        self.run = run
        self.enabled = console.is_terminal and not quiet
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
        now = time.perf_counter()
        if self.enabled and now - self._drawn >= _SECONDS:
            self._drawn = now
            self._live.update(self._view(now), refresh=True)

    def _view(self, now: float) -> Group:
        trace, extractor = self.run.trace, self.run.stream.extractor
        rate = trace.samples / max(now - self._started, 1e-9)
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", justify="right")
        table.add_column()
        table.add_row("rows", f"{trace.samples:,}   [dim]{rate:,.0f} per second[/]")
        history = sparkline(trace.to_columns()["fit_error"][-40:])
        table.add_row(
            "fit error", f"[bold]{trace.recent:.4f}[/]  {history}  [dim]all {trace.mean:.4f}[/]"
        )
        table.add_row(
            "stored",
            f"{len(extractor.factor_):,} samples   [dim]{size(extractor.nbytes_)}, "
            f"{100.0 * extractor.censoring_rate_:.0f} % of the rows censored[/]",
        )
        if trace.changes:
            last = trace.changes[-1]
            table.add_row(
                "changes", f"[yellow]{len(trace.changes):,}[/], the last at row {last.sample:,}"
            )
        table.add_row("memory", f"{size(resident_bytes())} [dim]of this process[/]")
        if self.run.source.bad.count:
            table.add_row("refused", Words(f"{self.run.source.bad.count:,} rows", style="yellow"))
        return Group(table, Words("Ctrl-C finishes the batch and stops", style="dim"))


def _notes(run: _Run) -> list[str]:
    notes = list(run.notes)
    bad = run.source.bad
    if bad.count:
        line, reason = bad.first[0]
        notes.append(f"{bad.count:,} rows refused (skip), the first on line {line}: {reason}")
    isotropic = run.stream.extractor.kernel_.isotropic
    if not run.learning and isotropic and run.trace.mean > _UNKNOWN:
        notes.append(
            f"of the usual row only {100.0 * max(0.0, 1.0 - run.trace.mean):.0f} % lies in the "
            "features: the stream is not what they were learned from; learn them anew from it"
        )
    return notes


def _print_summary(
    console: Console, run: _Run, summary: dict[str, Any], out: str, save: Path | None,
    report: Path | None,
) -> None:  # fmt: skip
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right")
    table.add_column()
    kinds = run.stream.preparation.inputs
    rate = summary["samples"] / max(summary["wall_seconds"], 1e-9)
    table.add_row("rows", f"{summary['samples']:,}   [dim]{rate:,.0f} per second[/]")
    table.add_row("inputs", escape(", ".join(f"{name} ({kind})" for name, kind in kinds.items())))
    table.add_row(
        "fit error",
        f"{summary['fit_error']:.4f}   [dim]lately {summary['fit_error_recent']:.4f}[/]",
    )
    table.add_row(
        "stored", f"{summary['stored']:,} samples   [dim]{size(summary['bytes'])}[/]"
    )  # fmt: skip
    table.add_row("censored", f"{100.0 * summary['censoring_rate']:.1f} % of the rows")
    for change in run.trace.changes[:10]:
        table.add_row(
            "change",
            f"[yellow]at row {change.sample:,} the fit error had risen from {change.before:.4f} "
            f"to {change.after:.4f}[/]",
        )
    if len(run.trace.changes) > 10:
        table.add_row("change", f"[yellow]and {len(run.trace.changes) - 10:,} more[/]")
    for note in _notes(run):
        table.add_row("note", f"[yellow]{escape(note)}[/]")
    where = "standard output" if out == "-" else out
    table.add_row("features", escape(f"{where} ({summary['features']} for each row)"))
    if save is not None:
        table.add_row("extractor", escape(str(save)))
    if report is not None:
        table.add_row("report", escape(str(report)))
    console.print(table, soft_wrap=True)
    if summary["stopped_by"] is not None:
        console.print(f"Stopped by {summary['stopped_by']}: the rows until then are written.")


def _write_report(path: Path, run: _Run, summary: dict[str, Any]) -> None:
    from kernelstream.report import write_features_report

    extractor = run.stream.extractor
    data = "standard input" if run.file == "-" else Path(run.file).name
    parameters = {name: str(value) for name, value in extractor.get_params().items()}
    facts = {
        "command": "kernelstream " + shlex.join(sys.argv[1:]),
        "data": data if run.file == "-" else run.file,
        "parameters": parameters,
        "kernel": repr(extractor.kernel_),
        "samples": f"{summary['samples']:,}",
        "wall time": f"{summary['wall_seconds']:.1f} s",
        "version": __version__,
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    if summary["stopped_by"] is not None:
        facts["stopped by"] = summary["stopped_by"]
    write_features_report(
        path,
        title=f"Features of {data}",
        facts=facts,
        trace=run.trace,
        model=extractor,
        sample=run.sample,
        notes=_notes(run),
    )


options.add_method_options(
    features, parameter_options(OnlineKernelFeatures, _DEFAULTS, without=("align",)), _FEATURES
)
