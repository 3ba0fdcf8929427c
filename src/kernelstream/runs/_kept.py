"""An older copy of a run's model, to measure what the saved one does when it no longer learns."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

from kernelstream.core.threads import one_thread
from kernelstream.evaluation.labels import Labels
from kernelstream.evaluation.learner import Learner
from kernelstream.evaluation.metrics import make_metrics
from kernelstream.pipeline import StreamModel
from kernelstream.runs._reading import join

#: Bytes of a copy, and of the rows since, beyond which none are kept.
MOST_BYTES = 50_000_000


class Kept:
    """Copies of the model from the beginning of the last two windows, and the rows since.

    Copies are made when the number of rows is a multiple of ``window``, whatever the batches are. A
    run that goes on from a checkpoint begins without: what it does not know it does not measure.

    Parameters
    ----------
    model : StreamModel
        Whose estimator is copied.
    rows : int
        That it was given so far.
    window : int
    """

    def __init__(self, model: StreamModel, rows: int, window: int) -> None:
        self._model, self._window, self._rows = model, window, rows
        self._copies: list[tuple[int, Any]] = []  # rows given before, and the copy
        self._since: list[tuple[Any, Any]] = []  # of the older copy
        self._measured: tuple[int, dict[str, float] | None] = (-1, None)
        if rows and rows % window == 0:
            self._copy()

    def parts(self, X: Any, y: Any) -> Iterator[tuple[Any, Any]]:
        """The next rows, cut where copies are made; each part is to be followed."""
        first = 0
        while first < len(y):
            end = first + self._window - self._rows % self._window
            yield X[first:end], y[first:end]
            first = end

    def follow(self, X: Any, y: Any) -> None:
        """A part of the rows was predicted and learned from."""
        self._rows += len(y)
        if self._copies:
            self._since.append((X, y))
        if self._rows % self._window == 0:
            self._copy()

    def _copy(self) -> None:
        estimator = self._model.estimator
        held = sum(_nbytes(X) for X, _ in self._since)
        if not hasattr(self._model.model, "_state") or (
            max(held, getattr(estimator, "nbytes_", 0)) > MOST_BYTES
        ):
            self._copies, self._since = [], []
            return
        self._copies.append((self._rows, copy.deepcopy(estimator)))
        if len(self._copies) > 2:
            over = self._copies[1][0] - self._copies.pop(0)[0]
            while over > 0:  # no part of the rows goes beyond a copy
                over -= len(self._since.pop(0)[1])

    def measured(self, metrics: Any) -> dict[str, float] | None:
        """Metrics of the older copy on the rows since, and their number; None if unknown."""
        if self._measured[0] != self._rows:
            self._measured = self._rows, self._measure(metrics)
        return self._measured[1]

    def _measure(self, metrics: Any) -> dict[str, float] | None:
        if not self._copies or not self._since:
            return None
        first, estimator = self._copies[0]
        rows = self._rows - first
        if rows < self._window < first:  # an older copy is missing: the run was gone on with here
            return None
        X, y = self._since[0]
        for more in self._since[1:]:
            X, y = join(X, more[0]), join(y, more[1])
        learner = Learner(estimator, metrics, None, False)
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
        return {"rows": rows, **{name: values[f"{name}_window"] for name in metrics}}


def _nbytes(X: Any) -> int:
    return X.data.nbytes + X.indices.nbytes if issparse(X) else np.asarray(X).nbytes
