"""``kernelstream learn``."""

from __future__ import annotations

import contextlib
import datetime
import shlex
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.markup import escape
from rich.table import Table

from kernelstream._version import __version__
from kernelstream.cli import options, quality
from kernelstream.cli.display import Display, size
from kernelstream.cli.errors import UserError, check_outputs, checked
from kernelstream.cli.methods import METHODS, method_options, option
from kernelstream.cli.options import ROWS, RUN
from kernelstream.cli.running import (
    Plan,
    Run,
    Stop,
    checkpoint_file,
    neutral_method,
    quality_notes,
)
from kernelstream.cli.terminal import Console, print_json
from kernelstream.errors import CapWarning
from kernelstream.models._files import stored_bytes
from kernelstream.models._words import cap_note
from kernelstream.pipeline import TASKS
from kernelstream.storage import replace_file

_STREAM = "What is learned"
_METHOD = "Method options (each method's own default where not given)"


def learn(
    file: options.File,
    target: Annotated[
        str, typer.Option(help="The column to predict.", rich_help_panel=_STREAM)
    ] = "target",
    method: Annotated[
        str,
        typer.Option("--model", help=f"The method: {', '.join(METHODS)}.", rich_help_panel=_STREAM),
    ] = "polk",
    task: Annotated[
        Optional[str],
        typer.Option(
            help=options.TASK,
            rich_help_panel=_STREAM,
        ),
    ] = None,
    drop: Annotated[
        Optional[list[str]], typer.Option(help=options.DROP, rich_help_panel=_STREAM)
    ] = None,
    column: Annotated[
        Optional[list[str]],
        typer.Option(help=options.COLUMN, rich_help_panel=_STREAM, metavar="NAME=KIND"),
    ] = None,
    out: Annotated[
        Optional[Path], typer.Option(help="Where to write the model.", rich_help_panel=RUN)
    ] = None,
    report: options.Report = None,
    trace: Annotated[
        Optional[Path],
        typer.Option(help="Where to write the metrics over time, as CSV.", rich_help_panel=RUN),
    ] = None,
    checkpoint: Annotated[
        Optional[Path],
        typer.Option(help="A folder for checkpoints: the run can go on.", rich_help_panel=RUN),
    ] = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0.0, help="Seconds between two checkpoints.", rich_help_panel=RUN)
    ] = 30.0,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on from the checkpoint, if there is one.", rich_help_panel=RUN
        ),
    ] = False,
    metrics: Annotated[
        Optional[str],
        typer.Option(
            help="Metrics, comma-separated. Of classes: accuracy, kappa (these two by default), "
            "error, balanced_accuracy, f1, log_loss, auc (two classes; over the window only); of "
            "numbers: mae, rmse (these two), r2.",
            rich_help_panel=RUN,
        ),
    ] = None,
    every: Annotated[
        int, typer.Option(min=1, help="Samples between two records.", rich_help_panel=RUN)
    ] = 1000,
    window: Annotated[
        int, typer.Option(min=1, help="Samples of the windowed metrics.", rich_help_panel=RUN)
    ] = 1000,
    lag: Annotated[
        int, typer.Option(min=0, help="Labels come this many samples late.", rich_help_panel=RUN)
    ] = 0,
    on_bad: Annotated[
        str,
        typer.Option(help="Rows that do not fit: raise, skip or quarantine.", rich_help_panel=ROWS),
    ] = "raise",
    quarantine: Annotated[
        Optional[Path],
        typer.Option(help="Where --on-bad quarantine puts them.", rich_help_panel=ROWS),
    ] = None,
    warm_up: Annotated[
        int,
        typer.Option(
            min=1,
            help="Rows after which standardising is frozen; a target of numbers is learned from "
            "then on, those rows included.",
            rich_help_panel=ROWS,
        ),
    ] = 1000,
    buckets: options.Buckets = 256,
    standardise: options.Standardise = True,
    like: Annotated[
        Optional[Path],
        typer.Option(
            help="Prepare rows as this model does: models to be merged need that.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    header: options.Header = True,
    n_features: options.Width = None,
    batch_rows: options.BatchRows = 8192,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    **parameters: Any,
) -> None:
    """Learn from a stream: every row is predicted first, then learned from."""
    plan = Plan(
        file=file,
        target=target,
        method=method,
        task=checked("--task", task, list(TASKS)),
        parameters=parameters,
        metrics=None if metrics is None else [name.strip() for name in metrics.split(",")],
        every=every,
        window=window,
        lag=lag,
        drop=drop or [],
        columns=column or [],
        warm_up=warm_up,
        buckets=buckets,
        standardise=standardise,
        batch_rows=batch_rows,
        on_bad=checked("--on-bad", on_bad, ["raise", "skip", "quarantine"]),
        quarantine=None if quarantine is None else str(quarantine),
        format=format,
        delimiter=delimiter,
        header=header,
        n_features=n_features,
        like=None if like is None else str(like),
        against_neutral=True if report is not None and neutral_method(method) else None,
    )
    if plan.on_bad == "quarantine" and quarantine is None:
        raise UserError("--on-bad quarantine needs a file for the rows", "add --quarantine FILE")
    if plan.on_bad != "quarantine" and quarantine is not None:
        raise UserError("--quarantine FILE is for bad rows", "add --on-bad quarantine")
    outputs = {"--out": out, "--report": report, "--trace": trace, "--quarantine": quarantine}
    check_outputs(outputs, *(name for name in (file, like) if name is not None))
    if resume and checkpoint is None:
        raise UserError("--resume needs a checkpoint", "add --checkpoint FOLDER")
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise UserError(f"--checkpoint {checkpoint} is a file", "name a folder")
    console = Console(stderr=True)
    outcome = _learn(plan, out, checkpoint, checkpoint_seconds, resume, console, quiet)
    run = outcome.run
    if report is not None and not (len(run.score.trace) and hasattr(run.model.model, "_state")):
        run.notes.append("stopped too early for a report: there is nothing to show yet")
        report = None
    summary = _summary(outcome)
    if trace is not None and len(run.score.trace):
        replace_file(trace, run.score.trace.frame.to_csv(index=False).encode())
    if report is not None:
        _write_report(report, outcome, summary)
    if as_json:
        print_json({**summary, "out": _text(out), "report": _text(report)})
    else:
        _print_summary(outcome, summary, out, report)
    if outcome.stopped is not None:
        raise typer.Exit(128 + outcome.stopped)


class _Outcome:
    """How a run ended."""

    def __init__(
        self, run: Run, folder: Path | None, stopped: int | None, seconds: float, display: float
    ) -> None:
        self.run = run
        self.folder = folder  # of the checkpoint
        self.stopped = stopped  # the signal, if one ended it
        self.seconds = seconds
        self.display = display  # seconds spent on the live display


def _learn(
    plan: Plan,
    out: Path | None,
    folder: Path | None,
    pause: float,
    resume: bool,
    console: Console,
    quiet: bool,
) -> _Outcome:
    path = None if folder is None else checkpoint_file(folder)
    stop = Stop()
    with stop.listening(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CapWarning)  # a note of the summary says it
        first = None
        if path is not None and path.exists():
            if not resume:
                raise UserError(
                    f"{folder} holds a checkpoint already", "go on with --resume, or delete it"
                )
            run = Run.resume(plan, path)
        else:
            run, first = Run.begin(plan)
        with (
            console.status("compiling, once per machine ...")
            if not quiet
            else contextlib.nullcontext()
        ):
            run.compile()
        start = saved = time.perf_counter()
        with contextlib.closing(run.source), Display(console, run, quiet) as display:
            if first is not None:
                run.advance(first, display.update)
            while not stop:
                batch = run.next_batch(stop)
                if batch is None:
                    break
                run.advance(batch, display.update)
                if path is not None and time.perf_counter() - saved >= pause:
                    run.save_checkpoint(path)
                    saved = time.perf_counter()
            if path is not None:
                run.save_checkpoint(path)  # before finishing: a longer file could go on here
        stopped = stop.signal
        if stopped is None:
            run.finish()
            if not run.score.samples:
                raise UserError(
                    f"no row of {plan.file} has a value of {plan.target!r}",
                    "name another --target",
                )
        if out is not None:
            run.model.save(out)
    return _Outcome(run, folder, stopped, time.perf_counter() - start, display.cost)


def _summary(outcome: _Outcome) -> dict[str, Any]:
    run = outcome.run
    estimator, model = run.model.estimator, run.model.model
    numbers: dict[str, Any] = {}
    if len(run.score.trace):
        numbers = run.score.trace.summary()
    return {
        **numbers,
        "samples": run.score.samples,
        "task": run.model.task,
        "points": getattr(estimator, "model_order_", 0),
        "bytes": stored_bytes(model) if hasattr(model, "_state") else 0,
        **model._facts(),
        "unlabelled": run.model.unlabelled_,
        "bad_rows": run.source.bad.count,
        "notes": _notes(run),
        "wall_seconds": outcome.seconds,
        "display_seconds": outcome.display,
        "stopped_by": None if outcome.stopped is None else signal.Signals(outcome.stopped).name,
        "go_on_with": None if outcome.stopped is None else _command_to_go_on(outcome),
    }


def _print_summary(
    outcome: _Outcome, summary: dict[str, Any], out: Path | None, report: Path | None
) -> None:
    console = Console()
    run = outcome.run
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right")
    table.add_column()
    table.add_row("samples", f"{summary['samples']:,}   [dim]{summary['task']}[/]")
    kinds = run.model.preparation.inputs
    table.add_row("inputs", escape(", ".join(f"{name} ({kind})" for name, kind in kinds.items())))
    for name in run.score.trace.metrics if len(run.score.trace) else ():
        overall, recent = summary[name], summary[f"{name}_window"]
        recently = f"last {run.plan.window}: {quality.number(recent)}"
        table.add_row(name, f"{quality.number(overall)}   [dim]{recently}[/]")
    if len(run.score.trace):
        metric = run.score.trace.metrics[0]
        table.add_row("baselines", quality.in_words(metric, summary, run.model.task))
        each = summary["microseconds_per_sample"]
        rate = f"{1e6 / max(each, 1e-9):,.0f} per second, reading not included"
        table.add_row("speed", f"{each:.2f} us per sample   [dim]{rate}[/]")
    table.add_row("points", f"{summary['points']:,}   [dim]{size(summary['bytes'])}[/]")
    words = run.model.model._facts_in_words()
    for name in run.model.model._facts():
        if name in words:
            table.add_row(name, words[name])
    for note in _notes(run):
        table.add_row("note", f"[yellow]{escape(note)}[/]")
    if out is not None:
        table.add_row("model", escape(str(out)))
    if report is not None:
        table.add_row("report", escape(str(report)))
    console.print(table, soft_wrap=True)
    if outcome.stopped is not None:
        console.print(_how_to_go_on(outcome), soft_wrap=True, markup=False, highlight=False)
    elif out is None:
        console.print("The model was not kept: --out FILE would write it.", soft_wrap=True)


def _how_to_go_on(outcome: _Outcome) -> str:
    stopped = f"Stopped by {signal.Signals(outcome.stopped or 0).name}."
    command = _command_to_go_on(outcome)
    if command is None:
        return f"{stopped} With --checkpoint FOLDER the run could have gone on later."
    again = ", given the same input from its start" if outcome.run.plan.file == "-" else ""
    return f"{stopped} Go on with{again}: {command}"


def _command_to_go_on(outcome: _Outcome) -> str | None:
    if outcome.folder is None:
        return None
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return f"kernelstream {shlex.join(words)} --resume"


def _notes(run: Run) -> list[str]:
    notes = _row_notes(run)
    if hasattr(run.model.model, "_state") and (note := cap_note(run.model.model, _as_option)):
        notes.append(note)
    return notes


def _as_option(name: str, value: int) -> str:
    return f"{option(name)} {value}"


def _row_notes(run: Run) -> list[str]:
    notes = run.notes + quality_notes(run)
    if run.model.task == "regression":
        rows = min(run.plan.warm_up, run.score.samples)
        notes.append(
            f"the first {rows:,} rows only set the units of the target: until then its mean was "
            "predicted (--warm-up)"
        )
    classes = len(getattr(run.model.model, "classes_", ()))
    if "auc" in (run.plan.metrics or ()) and classes > 2:
        notes.append(f"auc is for two classes, and there are {classes}: try balanced_accuracy")
    if run.model.unlabelled_:
        notes.append(f"{run.model.unlabelled_:,} rows had no target: not learned")
    bad = run.source.bad
    if bad.count:
        line, reason = bad.first[0]
        refused = f"{bad.count:,} rows refused ({run.plan.on_bad})"
        notes.append(f"{refused}, the first on line {line}: {reason}")
    return notes


def _write_report(path: Path, outcome: _Outcome, summary: dict[str, Any]) -> None:
    from kernelstream.report import write_report

    run = outcome.run
    parameters = {k: v for k, v in run.plan.parameters.items() if v is not None}
    data = "standard input" if run.plan.file == "-" else Path(run.plan.file).name
    facts = {
        "command": "kernelstream " + shlex.join(sys.argv[1:]),
        "data": data if run.plan.file == "-" else run.plan.file,
        "target": run.plan.target,
        "task": run.model.task,
        "method": run.plan.method,
        "parameters": ", ".join(f"{k}={v}" for k, v in parameters.items()) or "defaults",
        "kernel": repr(getattr(run.model.model, "kernel_", "")),
        **run.model.model._facts_in_words(),
        "samples": f"{summary['samples']:,}",
        "wall time": f"{outcome.seconds:.1f} s",
        "version": __version__,
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    if outcome.stopped is not None:
        facts["stopped by"] = summary["stopped_by"]
    write_report(
        path,
        title=f"{run.plan.target} from {data}",
        facts={name: value for name, value in facts.items() if value},
        trace=run.score.trace,
        model=run.model.model,
        feature_names=run.model.preparation.feature_names_out,
        target=run.plan.target,
        sample=run.sample,
        notes=_row_notes(run),  # the report tells of the cap by itself
        losses=_losses(run),
    )


def _losses(run: Run) -> dict[str, Any]:
    """Loss distributions to show, the model's first."""
    if run.score.losses is None:
        return {}
    losses = {run.plan.method: run.score.losses}
    if run.neutral is not None and run.neutral.score.losses is not None:
        name = f"the same without risk ({neutral_method(run.plan.method)})"
        losses[name] = run.neutral.score.losses
    return losses


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


options.add_method_options(learn, method_options(), _METHOD)
