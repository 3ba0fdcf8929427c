"""``kernelstream learn``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kernelstream.cli import options
from kernelstream.cli.display import Display, grid, show_files, show_inputs, show_notes, size
from kernelstream.cli.errors import UserError, check_outputs, checked
from kernelstream.cli.methods import METHODS, as_option, make_estimator, method_options
from kernelstream.cli.options import RUN, of_rows
from kernelstream.cli.predict import load_stream_model
from kernelstream.cli.running import Stop, command_typed, in_words_of_the_tool
from kernelstream.cli.terminal import Console, print_json
from kernelstream.errors import CapWarning
from kernelstream.evaluation import quality
from kernelstream.models._files import stored_bytes
from kernelstream.pipeline import TASKS
from kernelstream.runs import Run
from kernelstream.runs._reading import text_of
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
    task: Annotated[Optional[str], typer.Option(help=options.TASK, rich_help_panel=_STREAM)] = None,
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
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Learn from a stream: every row is predicted first, then learned from."""
    quarantine, like = given.pop("quarantine"), given.pop("like")
    reading, parameters = options.taken(given, "raise", "skip", "quarantine")
    checked("--task", task, list(TASKS))
    checked("--model", method, list(METHODS))
    if reading["on_bad"] == "quarantine" and quarantine is None:
        raise UserError("--on-bad quarantine needs a file for the rows", "add --quarantine FILE")
    if reading["on_bad"] != "quarantine" and quarantine is not None:
        raise UserError("--quarantine FILE is for bad rows", "add --on-bad quarantine")
    outputs = {"--out": out, "--report": report, "--trace": trace, "--quarantine": quarantine}
    check_outputs(outputs, *(name for name in (file, like) if name is not None))
    if resume and checkpoint is None:
        raise UserError("--resume needs a checkpoint", "add --checkpoint FOLDER")
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise UserError(f"--checkpoint {checkpoint} is a file", "name a folder")
    if like is not None and not resume:
        load_stream_model(like)
    console, stop = Console(stderr=True), Stop()
    with stop.listening(), in_words_of_the_tool(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CapWarning)  # a note of the summary says it
        run = Run(
            file, target, method, parameters=parameters, task=task,
            every=every, window=window, lag=lag,
            metrics=None if metrics is None else [name.strip() for name in metrics.split(",")],
            like=like, checkpoint=checkpoint, checkpoint_seconds=checkpoint_seconds, resume=resume,
            report=report, quarantine=quarantine, make=make_estimator, spelling=as_option,
            **reading,
        )  # fmt: skip
        with run:
            stop.watch(run, console, quiet)
            with Display(console, run, quiet) as display:
                for _ in run:
                    display.update()
        if out is not None:
            run.model.save(out)
    if trace is not None and len(run.score.trace):
        replace_file(trace, run.score.trace.frame.to_csv(index=False).encode())
    if report is not None and not run.write_report(report, {"command": command_typed()}):
        report = None
    summary = _summary(run, checkpoint is not None) | {"display_seconds": display.cost}
    if as_json:
        print_json({**summary, "out": text_of(out), "report": text_of(report)})
    else:
        _print_summary(run, summary, out, report)
    stop.exit(run)


def _summary(run: Run, can_go_on: bool) -> dict[str, Any]:
    model, trace = run.model.model, run.score.trace
    again = f"{command_typed('--resume')} --resume"
    return {
        **(trace.summary() if len(trace) else {}),
        "samples": run.samples,
        "task": run.model.task,
        "points": getattr(run.model.estimator, "model_order_", 0),
        "bytes": stored_bytes(model) if hasattr(model, "_state") else 0,
        **model._facts(),
        "unlabelled": run.model.unlabelled_,
        "bad_rows": run.source.bad.count,
        "notes": run.notes,
        "wall_seconds": run.seconds,
        "stopped_by": run.stopped_by,
        "go_on_with": again if run.stopped_by is not None and can_go_on else None,
    }


def _print_summary(
    run: Run, summary: dict[str, Any], out: Path | None, report: Path | None
) -> None:
    console, table, trace = Console(), grid(), run.score.trace
    table.add_row("samples", f"{summary['samples']:,}   [dim]{summary['task']}[/]")
    show_inputs(table, run.model.preparation.inputs)
    if len(trace):
        for name in trace.metrics:
            recent = quality.number(summary[f"{name}_window"])
            recently = f"[dim]last {run.settings['window']}: {recent}[/]"
            table.add_row(name, f"{quality.number(summary[name])}   {recently}")
        rules = quality.in_words(trace.metrics[0], summary, run.model.task)
        table.add_row("baselines", rules)
        each = summary["microseconds_per_sample"]
        rate = f"{1e6 / max(each, 1e-9):,.0f} per second, reading not included"
        table.add_row("speed", f"{each:.2f} us per sample   [dim]{rate}[/]")
    table.add_row("points", f"{summary['points']:,}   [dim]{size(summary['bytes'])}[/]")
    words = run.model.model._facts_in_words()
    for name in run.model.model._facts():
        if name in words:
            table.add_row(name, words[name])
    show_notes(table, summary["notes"])
    show_files(table, {"model": out, "report": report})
    console.print(table, soft_wrap=True)
    if run.stopped_by is not None:
        how = _how_to_go_on(run, summary["go_on_with"])
        console.print(how, soft_wrap=True, markup=False, highlight=False)
    elif out is None:
        console.print("The model was not kept: --out FILE would write it.", soft_wrap=True)


def _how_to_go_on(run: Run, command: str | None) -> str:
    stopped = f"Stopped by {run.stopped_by}."
    if command is None:
        return f"{stopped} With --checkpoint FOLDER the run could have gone on later."
    again = ", given the same input from its start" if run.name == "-" else ""
    return f"{stopped} Go on with{again}: {command}"


options.add_options(
    learn,
    {
        **options.READING,
        "on_bad": of_rows(str, "Rows that do not fit: raise, skip or quarantine.", "raise"),
        "quarantine": of_rows(Optional[Path], "Where --on-bad quarantine puts them."),
        "warm_up": of_rows(
            int,
            "Rows after which standardising is frozen; a target of numbers is learned from then "
            "on, those rows included.",
            1000,
            min=1,
        ),
        "like": of_rows(
            Optional[Path], "Prepare rows as this model does: models to be merged need that."
        ),
    },
    options.of_methods(method_options(), _METHOD),
)
