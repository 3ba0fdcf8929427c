"""``kernelstream diameter``: which delta suits a stream."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import typer
from rich.table import Table
from scipy.sparse import issparse, vstack
from sklearn.base import is_classifier

from kernelstream.cli import options
from kernelstream.cli.errors import UserError, checked
from kernelstream.cli.methods import make_estimator, method_options
from kernelstream.cli.rows import OnBad, open_rows, warn_of_bad_rows
from kernelstream.cli.running import check_given, given_kinds, task_of
from kernelstream.cli.terminal import Console, print_json, say
from kernelstream.evaluation import diameter_curve
from kernelstream.pipeline import TASKS, StreamModel
from kernelstream.preparation import Preparation
from kernelstream.streams import Batch, Source

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
    drop: options.Drop = None,
    column: options.Kinds = None,
    on_bad: OnBad = "raise",
    buckets: options.Buckets = 256,
    standardise: options.Standardise = True,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    header: options.Header = True,
    n_features: options.Width = None,
    as_json: options.AsJson = False,
    **parameters: Any,
) -> None:
    """Error and size of AVM for cells of several diameters: what to give as --delta.

    Give the options that learn will be given: the best delta is not the same for every model.
    The error of a regression is in standard deviations of the target, and its first 1,000 rows
    (half of fewer) are learned but not counted. "no room": samples outside all cells when as many
    points were held as --max-points allows.
    """
    checked("--task", task, list(TASKS))
    chosen = None if deltas is None else _numbers(deltas)
    stream = open_rows(
        file, on_bad, target=target, drop=drop or [], batch_rows=_BATCH, format=format,
        delimiter=delimiter, header=header, n_features=n_features, schema=given_kinds(column or []),
    )  # fmt: skip

    def begin(batch: Batch) -> StreamModel:
        """The model that ``learn --model avm`` would begin with."""
        check_given(column or [], stream, file)
        preparation = Preparation(
            stream.schema, ignore=[target], matrix_width=stream.matrix_width, buckets=buckets,
            standardise=standardise,
        ).start(batch)  # fmt: skip
        asked = task or task_of(batch, target, file)
        gamma = preparation.suggested_gamma
        estimator = make_estimator("avm", asked, parameters, gamma=gamma)
        return StreamModel(estimator, preparation, target, asked)

    X, y, estimator = _first_rows(file, stream, begin, rows)
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


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0.0 < number < np.inf for number in numbers):
        raise UserError(f"--deltas {text} are no diameters", "write numbers above 0: 0.5,1,2")
    return numbers


def _first_rows(
    file: str, stream: Source, begin: Callable[[Batch], StreamModel], rows: int
) -> tuple[Any, Any, Any]:
    """Features and targets as ``learn`` prepares them, and an AVM that suits them."""
    model: StreamModel | None = None
    parts: list[tuple[Any, Any]] = []
    with contextlib.closing(stream) as source:
        for batch in source:
            model = model or begin(batch)
            parts.append(model.admit(batch))
            if sum(len(y) for _, y in parts) >= rows:
                break
        warn_of_bad_rows(source)
    if model is None or sum(len(y) for _, y in parts) < 2:
        raise UserError(f"{file} has fewer than two rows with a target", "give a longer stream")
    X, y = zip(*parts, strict=True)
    features = vstack(X).tocsr() if issparse(X[0]) else np.concatenate(X)
    targets = np.concatenate(y)[:rows]
    if model.task == "regression":  # alpha is in units of the target
        targets = (targets - targets.mean()) / (targets.std() or 1.0)
    return features[:rows], targets, model.model


options.add_method_options(
    diameter,
    {name: text for name, text in method_options("avm").items() if name != "delta"},
    "Options of AVM, as learn has them",
)
