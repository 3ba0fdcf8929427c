"""``kernelstream diameter``: which delta suits a stream."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import typer
from rich.table import Table
from sklearn.base import is_classifier

from kernelstream.cli import options
from kernelstream.cli.errors import UserError, checked
from kernelstream.cli.methods import make_estimator, method_options
from kernelstream.cli.running import in_words_of_the_tool, warn_of_bad_rows
from kernelstream.cli.spelling import as_option
from kernelstream.cli.terminal import Console, print_json, say
from kernelstream.evaluation import diameter_curve
from kernelstream.pipeline import TASKS
from kernelstream.runs import Run
from kernelstream.runs._reading import join

#: Rows read at a time.
_BATCH = 4096
#: Rows at the beginning of a regression that do not count; ``learn`` says the mean there.
_SKIP = 1000


def diameter(
    file: options.File,
    target: Annotated[str, typer.Option(help="The column to predict.")] = "target",
    task: Annotated[Optional[str], typer.Option(help=options.TASK)] = None,
    deltas: Annotated[
        Optional[str],
        typer.Option(
            help="Diameters to try, such as 0.5,1,2; by default nine, of which the first is what "
            "learn takes with --delta auto."
        ),
    ] = None,
    rows: Annotated[int, typer.Option(help="How many of the first rows to try.", min=2)] = 20_000,
    out: Annotated[Optional[Path], typer.Option(help="Where to save the picture.")] = None,
    as_json: options.AsJson = False,
    **given: Any,
) -> None:
    """Error and size of AVM for cells of several diameters: what to give as --delta.

    Give the options that learn will be given: the best delta is not the same for every model.
    The error of a regression is in standard deviations of the target, and its first 1,000 rows
    (half of fewer) are learned but not counted. "no room": samples outside all cells when as many
    points were held as --max-points allows.
    """
    checked("--task", task, list(TASKS))
    chosen = None if deltas is None else _numbers(deltas)
    reading, parameters = options.taken(given, "raise", "skip")
    with in_words_of_the_tool():
        run = _Run(
            file, target, "avm", parameters=parameters, task=task, batch_rows=_BATCH,
            make=make_estimator, spelling=as_option, **reading,
        )  # fmt: skip
    X, y = _first_rows(run, rows)
    estimator = run.model.model
    skip = 0 if is_classifier(estimator) else min(_SKIP, len(y) // 2)
    curve = diameter_curve(estimator, X, y, chosen, skip=skip)
    if out is not None:
        curve.plot(out)
    columns = curve.to_columns()
    if as_json:
        print_json({name: values.tolist() for name, values in columns.items()})
        return
    table = Table(*columns, title=f"AVM on the first {len(y):,} rows", title_justify="left")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(f"{value:.4g}" for value in row))
    Console().print(table)
    if out is not None:
        say(f"Picture: {out}")


class _Run(Run):
    """Rows as ``learn --model avm`` would begin with them."""

    bad_rows_cure = "--on-bad skip"


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0.0 < number < np.inf for number in numbers):
        raise UserError(f"--deltas {text} are no diameters", "write numbers above 0: 0.5,1,2")
    return numbers


def _first_rows(run: Run, rows: int) -> tuple[Any, Any]:
    """Features and targets as ``learn`` prepares them."""
    parts: list[tuple[Any, Any]] = []
    with run:
        while sum(len(y) for _, y in parts) < rows and (batch := run.read()) is not None:
            parts.append(run.model.admit(batch))
        warn_of_bad_rows(run.source)
    X, y = (functools.reduce(join, part) for part in zip(*parts, strict=True))
    if len(y) < 2:
        raise UserError(f"{run.name} has fewer than two rows with a target", "give a longer stream")
    targets = y[:rows]
    if run.model.task == "regression":  # alpha is in units of the target
        targets = (targets - targets.mean()) / (targets.std() or 1.0)
    return X[:rows], targets


_OWN = ("warm_up", "batch_rows")  # of learn: here rows are few

options.add_options(
    diameter,
    {name: added for name, added in options.READING.items() if name not in _OWN},
    options.of_methods(
        {name: text for name, text in method_options("avm").items() if name != "delta"},
        "Options of AVM, as learn has them",
    ),
)
