"""``kernelstream compare``: programs side by side on one stream."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any, Optional

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kernelstream.cli import options
from kernelstream.cli.display import ComparisonDisplay, grid, show_files, show_notes, size
from kernelstream.cli.errors import check_outputs, checked
from kernelstream.cli.options import of_rows, of_run
from kernelstream.cli.running import Stop, command_typed, in_words_of_the_tool
from kernelstream.cli.spelling import as_option
from kernelstream.cli.terminal import Console, print_json
from kernelstream.errors import CapWarning
from kernelstream.evaluation import Comparison, quality
from kernelstream.pipeline import TASKS
from kernelstream.runs import ComparisonRun
from kernelstream.runs._reading import text_of


def compare(
    file: options.File, as_json: options.AsJson = False, quiet: options.Quiet = False, **given: Any
) -> None:
    """Programs side by side: one pass, each predicts every row first, then learns it.

    Programs are methods of this package (polk), of River (river:forest.ARFClassifier), of CapyMOA
    (capymoa:SAMkNN), of scikit-learn (sklearn:SGDClassifier), or any class with partial_fit
    (python:package.module.Class); parameters stand in parentheses, and steps of a pipeline of
    River between bars, in quotes: "river:preprocessing.StandardScaler|linear_model.Perceptron". All
    get the same prepared numbers. Two rules that know no columns are always among them.
    """
    settings = {name: given.pop(name) for name in _OWN}
    reading, _ = options.taken(given, "raise", "skip")
    report, plot = settings.pop("report"), settings.pop("plot")
    checked("--task", settings["task"], list(TASKS))
    check_outputs({"--report": report, "--plot": plot}, file)
    if settings["metrics"] is not None:
        settings["metrics"] = [name.strip() for name in settings["metrics"].split(",")]
    console, stop = Console(stderr=True), Stop()
    with stop.listening():
        with in_words_of_the_tool(), warnings.catch_warnings():
            warnings.simplefilter("ignore", CapWarning)
            with _Run(file, **settings, **reading, spelling=as_option) as run:
                stop.watch(run, console, quiet)
                with ComparisonDisplay(console, run, quiet) as display:
                    for _ in run:
                        display.update()
            result = run.result()
        if report is not None:
            run.write_report(report, result, {"command": command_typed()})
        if plot is not None:
            result.plot(plot)
        if as_json:
            print_json(_summary(result) | {"report": text_of(report), "plot": text_of(plot)})
        else:
            _print_table(result, {"report": report, "picture": plot})
    stop.exit(run)


class _Run(ComparisonRun):
    bad_rows_cure = "--on-bad skip"


def _summary(result: Comparison) -> dict[str, Any]:
    return {
        "task": result.task,
        "samples": result.samples,
        "metrics": list(result.metrics),
        "programs": [
            {
                "name": each.name,
                "package": each.package,
                "rows": each.rows,
                **each.values,
                "microseconds_per_row": each.microseconds,
                "bytes": each.nbytes,
                "problem": each.problem or None,
            }
            for each in result.contestants
        ],
        "notes": list(result.notes),
        "stopped_by": result.stopped_by,
    }


def _print_table(result: Comparison, files: dict[str, Path | None]) -> None:
    console = Console()
    title = f"{result.samples:,} rows, {result.task}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0)
    longest = max(len(each.name) for each in result.contestants)
    table.add_column("program", overflow="fold", min_width=min(longest, 26))
    fewer = any(each.rows != result.samples for each in result.contestants)
    columns = [name.replace("_", "\n") for name in result.metrics]
    for name in [*columns, "us\nper row", "memory", *(["rows"] if fewer else [])]:
        table.add_column(Text(name), justify="right")
    for each in result.contestants:
        values = [quality.number(each.values.get(name)) for name in result.metrics]
        held = "-" if np.isnan(each.nbytes) or each.rule else size(each.nbytes)
        taken = "-" if each.rule or np.isnan(each.microseconds) else f"{each.microseconds:,.1f}"
        cells = [*values, taken, held, *([f"{each.rows:,}"] if fewer else [])]
        table.add_row(escape(each.name), *cells, style="dim" if each.rule else None)
    console.print(table)
    about = grid()
    show_notes(about, list(result.notes))
    show_files(about, files)
    if about.row_count:
        console.print(about, soft_wrap=True)
    if result.stopped_by is not None:
        console.print(f"Stopped by {result.stopped_by}.")


_of_what = partial(options.added, "What is compared")

_OWN = {
    "target": _of_what(str, "The column to predict.", "target"),
    "models": _of_what(
        Optional[str],
        "Programs, comma-separated; by default auto, polk, avm, krlst and a linear model of "
        "scikit-learn.",
    ),
    "task": _of_what(Optional[str], options.TASK),
    "metrics": of_run(
        Optional[str],
        "Metrics, comma-separated, as learn has them; the first decides the order. By default "
        "accuracy, kappa, kappa_temporal, log_loss; of numbers mae, rmse, r2.",
    ),
    "rows": of_run(Optional[int], "Compare on so many rows at most.", min=1),
    "seconds": of_run(
        Optional[float], "A program that has used more is out, measured on fewer rows.", min=0.0
    ),
    "report": options.REPORT,
    "plot": of_run(Optional[Path], "Where to save the picture, such as compare.png."),
    "every": of_run(int, "Rows between two records.", 1000, min=1),
    "window": of_run(int, "Rows of the windowed metrics.", 1000, min=1),
}
_ROWS = {
    **options.READING,
    "warm_up": of_rows(
        int,
        "Rows after which --units frozen are; our methods learn a target of numbers from then on, "
        "those rows included.",
        1000,
        min=1,
    ),
}
options.add_options(compare, _OWN, _ROWS)
