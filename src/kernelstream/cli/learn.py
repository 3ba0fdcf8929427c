"""``kernelstream learn``."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any, Optional

from rich.markup import escape

from kernelstream.cli import options
from kernelstream.cli.display import Display, grid, show_files, show_inputs, show_notes, size
from kernelstream.cli.errors import UserError, check_outputs, checked
from kernelstream.cli.methods import METHODS, make_estimator, method_options
from kernelstream.cli.options import of_rows, of_run
from kernelstream.cli.predict import load_stream_model
from kernelstream.cli.running import Stop, command_typed, in_words_of_the_tool
from kernelstream.cli.spelling import as_option
from kernelstream.cli.terminal import Console, print_json
from kernelstream.errors import CapWarning
from kernelstream.evaluation import quality
from kernelstream.importances import LOOK
from kernelstream.models._files import stored_bytes
from kernelstream.pipeline import TASKS
from kernelstream.registry import DEFAULT
from kernelstream.runs import Run
from kernelstream.runs._page import by_target, of_each_target
from kernelstream.runs._reading import text_of
from kernelstream.storage import replace_file

#: Columns whose importance is shown.
_SHOWN = 5
_METHOD = "Method options (each method's own default where not given)"


def learn(
    file: options.File, as_json: options.AsJson = False, quiet: options.Quiet = False, **given: Any
) -> None:
    """Learn from a stream: every row is predicted first, then learned from."""
    settings = {name: given.pop(name) for name in (*_OWN, "quarantine", "like")}
    reading, parameters = options.taken(given, "raise", "skip", "quarantine")
    out, trace = settings.pop("out"), settings.pop("trace")
    quarantine, checkpoint = settings["quarantine"], settings["checkpoint"]
    checked("--task", settings["task"], list(TASKS))
    checked("--model", settings["model"], list(METHODS))
    if reading["on_bad"] == "quarantine" and quarantine is None:
        raise UserError("--on-bad quarantine needs a file for the rows", "add --quarantine FILE")
    if reading["on_bad"] != "quarantine" and quarantine is not None:
        raise UserError("--quarantine FILE is for bad rows", "add --on-bad quarantine")
    report, like, resume = (settings[name] for name in ("report", "like", "resume"))
    outputs = {"--out": out, "--report": report, "--trace": trace, "--quarantine": quarantine}
    check_outputs(outputs, *(name for name in (file, like) if name is not None))
    if resume and checkpoint is None:
        raise UserError("--resume needs a checkpoint", "add --checkpoint FOLDER")
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise UserError(f"--checkpoint {checkpoint} is a file", "name a folder")
    if like is not None and not resume:
        load_stream_model(like)
    settings["target"] = settings["target"] or "target"
    if settings["metrics"] is not None:
        settings["metrics"] = [name.strip() for name in settings["metrics"].split(",")]
    console, stop = Console(stderr=True), Stop()
    with stop.listening():
        with in_words_of_the_tool(), warnings.catch_warnings():
            warnings.simplefilter("ignore", CapWarning)  # a note of the summary says it
            made: dict[str, Any] = {"make": make_estimator, "spelling": as_option}
            run = Run(file, parameters=parameters, **settings, **reading, **made)
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
    fitted = hasattr(model, "_state")
    return {
        **(trace.summary() if len(trace) else {}),
        "samples": run.samples,
        "task": run.model.task,
        **({"by_target": each} if (each := by_target(run)) else {}),
        "points": getattr(run.model.estimator, "model_order_", 0),
        "bytes": stored_bytes(model) if fitted else 0,
        "frozen": run.frozen,
        "what_it_did": run.model.what_it_did() or None,
        "importances": run.model.column_importances_ if fitted else {},
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
        window = run.settings["window"]
        for name in trace.metrics:
            recent = quality.number(summary[f"{name}_window"])
            recently = (
                f"   [dim]last {window:,}: {recent}[/]" if summary["samples"] > window else ""
            )
            table.add_row(name, f"{quality.number(summary[name])}{recently}")
        for name, words in of_each_target(run).items():
            table.add_row(f"of {escape(name)}", words)
        rules = quality.in_words(trace.metrics[0], summary, run.model.task)
        table.add_row("baselines", rules)
        if run.frozen is not None:
            values = [f"{name} {quality.number(run.frozen[name])}" for name in trace.metrics]
            rows = f"on the last {run.frozen['rows']:,} rows, not learned from them"
            table.add_row("saved model", f"{', '.join(values)}   [dim]{rows}[/]")
        each = summary["microseconds_per_sample"]
        rate = f"{1e6 / max(each, 1e-9):,.0f} per second, without reading and compiling"
        table.add_row("speed", f"{each:.2f} us per sample   [dim]{rate}[/]")
    table.add_row("points", f"{summary['points']:,}   [dim]{size(summary['bytes'])}[/]")
    if summary["what_it_did"]:
        table.add_row("in words", escape(summary["what_it_did"]))
    else:
        words = run.model.model._facts_in_words()
        for name in run.model.model._facts():
            if name in words:
                table.add_row(name, words[name])
    if run.settings.get("importances"):
        table.add_row("importances", _importances(run, summary["importances"]))
    show_notes(table, summary["notes"])
    show_files(table, {"model": out, "report": report})
    console.print(table, soft_wrap=True)
    if run.stopped_by is not None:
        how = _how_to_go_on(run, summary["go_on_with"])
        console.print(how, soft_wrap=True, markup=False, highlight=False)
    elif out is None:
        console.print("The model was not kept: --out FILE would write it.", soft_wrap=True)


def _importances(run: Run, found: dict[str, float]) -> str:
    followed = run.model.importances
    if not run.model.preparation.inputs:
        return "[dim]none: there are no columns[/]"
    if followed is None or not followed.means:
        return f"[dim]none yet: columns are shuffled every {LOOK} rows[/]"
    shown = [f"{escape(name)} {100.0 * part:.0f} %" for name, part in found.items()]
    more = ", ..." if len(shown) > _SHOWN else ""
    return f"{', '.join(shown[:_SHOWN])}{more}   [dim]by shuffling each column[/]"


def _how_to_go_on(run: Run, command: str | None) -> str:
    stopped = f"Stopped by {run.stopped_by}."
    if command is None:
        return f"{stopped} With --checkpoint FOLDER the run could have gone on later."
    again = ", given the same input from its start" if run.name == "-" else ""
    return f"{stopped} Go on with{again}: {command}"


_of_what = partial(options.added, "What is learned")

#: How a run is set up, as ``Run`` names it, and what is written.
_OWN = {
    "target": _of_what(
        Optional[list[str]],
        "The column to predict, by default target; of numbers several, if it is repeated.",
    ),
    "model": _of_what(str, f"The method: {', '.join(METHODS)}.", DEFAULT),
    "task": _of_what(Optional[str], options.TASK),
    "out": of_run(Optional[Path], "Where to write the model."),
    "report": options.REPORT,
    "trace": of_run(Optional[Path], "Where to write the metrics over time, as CSV."),
    "checkpoint": of_run(Optional[Path], "A folder for checkpoints: the run can go on."),
    "checkpoint_seconds": of_run(float, "Seconds between two checkpoints.", 30.0, min=0.0),
    "resume": of_run(bool, "Go on from the checkpoint, if there is one.", False, "--resume"),
    "metrics": of_run(
        Optional[str],
        "Metrics, comma-separated. Of classes: accuracy, kappa (these two by default), error, "
        "balanced_accuracy, kappa_temporal, f1, log_loss, auc (two classes; over the window only); "
        "of numbers: mae, rmse (these two), r2.",
    ),
    "every": of_run(int, "Samples between two records.", 1000, min=1),
    "window": of_run(int, "Samples of the windowed metrics.", 1000, min=1),
    "importances": of_run(
        bool,
        "Learn along which columns matter, by shuffling each; the automatic model knows it from "
        "its slopes, too.",
        False,
        "--importances",
    ),
    "anomalies": of_run(
        bool,
        "Learn along which rows are usual: predict --novelty then shows it.",
        False,
        "--anomalies",
    ),
    "lag": of_run(
        int,
        "Labels come this many samples late: each row is learned that much after it was predicted.",
        0,
        min=0,
    ),
}
_ROWS = {
    **options.READING,
    "on_bad": of_rows(str, "Rows that do not fit: raise, skip or quarantine.", "raise"),
    "quarantine": of_rows(Optional[Path], "Where --on-bad quarantine puts them."),
    "warm_up": of_rows(
        int,
        "Rows after which --units frozen are; a target of numbers is learned from then on, "
        "those rows included.",
        1000,
        min=1,
    ),
    "like": of_rows(
        Optional[Path], "Prepare rows as this model does: models to be merged need that."
    ),
}
options.add_options(learn, _OWN, _ROWS, options.of_methods(method_options(), _METHOD))
