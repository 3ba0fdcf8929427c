"""``kernelstream diameter``: which delta suits a stream."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from scipy.sparse import issparse, vstack
from sklearn.base import is_classifier

from kernelstream.cli.errors import UserError
from kernelstream.cli.methods import make_estimator
from kernelstream.cli.options import (
    DROP,
    AsJson,
    File,
    PlainDelimiter,
    PlainFormat,
    PlainHeader,
    PlainWidth,
)
from kernelstream.cli.rows import PlainOnBad, open_rows, warn_of_bad_rows
from kernelstream.evaluation import diameter_curve
from kernelstream.pipeline import StreamModel, guess_task
from kernelstream.preparation import Preparation
from kernelstream.streams import Source

#: Rows read at a time.
_BATCH = 4096
#: Rows at the beginning of a regression that do not count; ``learn`` says the mean there.
_SKIP = 1000


def diameter(
    file: File,
    target: Annotated[str, typer.Option(help="The column to predict.")] = "target",
    drop: Annotated[Optional[list[str]], typer.Option(help=DROP)] = None,
    deltas: Annotated[
        Optional[str],
        typer.Option(
            help="Diameters to try, such as 0.5,1,2; else nine from that of --delta auto upwards."
        ),
    ] = None,
    rows: Annotated[int, typer.Option(help="How many of the first rows to try.", min=2)] = 20_000,
    format: PlainFormat = None,
    delimiter: PlainDelimiter = None,
    header: PlainHeader = True,
    n_features: PlainWidth = None,
    on_bad: PlainOnBad = "raise",
    out: Annotated[Optional[Path], typer.Option(help="Where to save the picture.")] = None,
    as_json: AsJson = False,
) -> None:
    """Error and size of AVM for cells of several diameters: what to give as --delta.

    The error of a regression is in standard deviations of the target, and its first 1,000 rows
    (half of fewer) are learned but not counted. "no room": samples outside all cells when as many
    points were held as learn allows.
    """
    stream = open_rows(
        file, on_bad, target=target, drop=drop or [], batch_rows=_BATCH, format=format,
        delimiter=delimiter, header=header, n_features=n_features,
    )  # fmt: skip
    X, y, estimator = _first_rows(file, stream, target, rows)
    skip = 0 if is_classifier(estimator) else min(_SKIP, len(y) // 2)
    chosen = None if deltas is None else _numbers(deltas)
    curve = diameter_curve(estimator, X, y, chosen, skip=skip)
    if out is not None:
        curve.plot(out)
    columns = curve.to_columns()
    if as_json:
        print(json.dumps({name: values.tolist() for name, values in columns.items()}))
        return
    table = Table(*columns, title=f"AVM on the first {len(y):,} rows", title_justify="left")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(f"{value:.4g}" for value in row))
    Console().print(table)
    if out is not None:
        print(f"Picture: {out}")


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0.0 < number < np.inf for number in numbers):
        raise UserError(f"--deltas {text} are no diameters", "write numbers above 0: 0.5,1,2")
    return numbers


def _first_rows(file: str, stream: Source, target: str, rows: int) -> tuple[Any, Any, Any]:
    """Features and targets as ``learn`` prepares them, and an AVM that suits them."""
    model: StreamModel | None = None
    parts: list[tuple[Any, Any]] = []
    with contextlib.closing(stream) as source:
        for batch in source:
            if model is None:
                task = guess_task(batch.columns[target])
                preparation = Preparation(
                    source.schema, ignore=[target], matrix_width=source.matrix_width
                ).start(batch)
                gamma = preparation.suggested_gamma
                estimator = make_estimator("avm", task, {}, gamma=gamma, random_state=0)
                model = StreamModel(estimator, preparation, target, task)
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
