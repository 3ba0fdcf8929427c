"""An older copy of a run's model, to measure what the saved one does when it no longer learns."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
from scipy.sparse import issparse

from kernelstream.core.threads import one_thread
from kernelstream.evaluation.labels import Labels
from kernelstream.evaluation.learner import Learner
from kernelstream.evaluation.metrics import make_metrics
from kernelstream.pipeline import StreamModel
from kernelstream.runs._reading import join
from kernelstream.streams.batch import Batch, Text

#: Rows that say something about a copy; fewer if the window is smaller.
FEWEST_ROWS = 20
#: Of the intervals whose coverage is measured.
COVERAGE = 0.9
#: Bytes of a copy, and of the rows since, beyond which none are kept.
MOST_BYTES = 50_000_000


class Kept:
    """Copies of the model from the beginning of the last two windows, and the rows since.

    Copies are made when the number of rows with a target is a multiple of ``window``, whatever the
    batches are, units of the columns included. A run that goes on from a checkpoint begins without:
    what it does not know it does not measure.

    Parameters
    ----------
    model : StreamModel
    rows : int
        With a target, that it was given so far.
    window : int
    """

    def __init__(self, model: StreamModel, rows: int, window: int) -> None:
        self._model, self._window, self._rows = model, window, rows
        self._copies: list[tuple[int, StreamModel]] = []  # rows given before, and the copy
        self._since: list[tuple[Batch, int]] = []  # of the older copy, and rows with a target
        self._measured: tuple[int, dict[str, float] | None] = (-1, None)
        if rows and rows % window == 0:
            self._copy()

    def parts(self, batch: Batch) -> list[Batch]:
        """A batch cut where copies are made; each part is to be followed."""
        _, known = self._model.targets_of(batch)
        counted = self._rows + np.cumsum(known)
        edges = np.flatnonzero(known & (counted % self._window == 0)) + 1
        places = [0, *edges.tolist()]
        if places[-1] < len(batch):
            places.append(len(batch))
        return [batch.part(*some) for some in itertools.pairwise(places)] or [batch]

    def follow(self, part: Batch, rows: int) -> None:
        """A part was predicted and learned from; so many of its rows have a target."""
        self._rows += rows
        if self._copies:
            self._since.append((part, rows))
        if rows and self._rows % self._window == 0:
            self._copy()

    def _copy(self) -> None:
        model = self._model
        held = sum(_nbytes(part) for part, _ in self._since)
        if not hasattr(model.model, "_state") or (
            max(held, getattr(model.estimator, "nbytes_", 0)) > MOST_BYTES
        ):
            self._copies, self._since = [], []
            return
        self._copies.append((self._rows, copy.deepcopy(model)))
        if len(self._copies) > 2:
            over = self._copies[1][0] - self._copies.pop(0)[0]
            while over > 0:  # no part of the rows goes beyond a copy
                over -= self._since.pop(0)[1]

    def measured(self, metrics: Any) -> dict[str, float] | None:
        """Metrics of the older copy on the rows since, and their number; None if unknown."""
        if self._measured[0] != self._rows:
            self._measured = self._rows, self._measure(metrics)
        return self._measured[1]

    def _measure(self, metrics: Any) -> dict[str, float] | None:
        if not self._copies or not self._since:
            return None
        first, saved = self._copies[0]
        rows = self._rows - first
        if rows < self._window < first:  # an older copy is missing: the run was gone on with here
            return None
        if rows < min(FEWEST_ROWS, self._window):
            return None
        X: Any = None
        y: Any = None
        for part, _ in self._since:
            targets, known = saved.targets_of(part)
            rows_of, targets = saved.preparation.transform(part)[known], targets[known]
            X, y = (rows_of, targets) if X is None else (join(X, rows_of), join(y, targets))
        learner = Learner(saved.estimator, metrics, None, False)
        with one_thread():
            made = learner.predict(X, y, 0)
        labels = Labels() if learner.classification else None
        score = make_metrics(metrics, labels, window=rows)
        if labels is None:
            score.update(y, made.predicted)
        else:
            extras = {name: getattr(made, name) for name in learner.needs}
            score.update_codes(labels.encode(y), labels.encode(made.predicted), **extras)
        values = score.values()
        found = {"rows": rows, **{name: values[f"{name}_window"] for name in metrics}}
        if hasattr(saved.estimator, "predict_interval") and y.ndim == 1:
            low, high = saved.estimator.predict_interval(X, COVERAGE).T
            found["interval_coverage"] = float(np.mean((low <= y) & (y <= high)))
        return found


def _nbytes(part: Batch) -> int:
    columns = (column.codes if isinstance(column, Text) else column
               for column in part.columns.values())  # fmt: skip
    matrix = part.matrix
    if matrix is not None:
        matrix = matrix.data if issparse(matrix) else matrix
    return sum(column.nbytes for column in columns) + (0 if matrix is None else matrix.nbytes)
