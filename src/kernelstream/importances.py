"""Which raw columns matter: by what a model predicts when one of them is shuffled."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from kernelstream.buffer import Buffer
from kernelstream.parts import Arrays

#: Rows between two looks, rows that are held for them, and predictions that a look may take.
LOOK, HELD, PREDICTIONS = 256, 256, 80
#: What a look weighs at least: the mean follows a stream that changes.
SLOWEST = 0.4
#: Columns looked at at once, so that each is in at least some rows; then it is the others' turn.
_MOST_COLUMNS = 15
#: Rows in which each of them is shuffled at least.
_FEWEST = 2
#: Features beyond are too many to be shuffled.
WIDEST = 4096


def raw_column(feature: str, inputs: Mapping[str, str]) -> str:
    """The raw column that a feature is made of; texts that share features are named together.

    >>> raw_column("day cos week", {"day": "date"}), raw_column("city=Bonn", {"city": "text"})
    ('day', 'city')
    """
    if feature in inputs:
        return feature
    texts = [name for name, kind in inputs.items() if kind == "text"]
    if re.fullmatch(r"(text|other texts )\[\d+\]", feature) and texts:
        return " or ".join(texts)
    own = [name for name in inputs if feature.startswith((f"{name} ", f"{name}="))]
    return max(own, key=len) if own else feature


def features_by_column(preparation: Any) -> dict[str, list[int]]:
    """The places of the features of each raw column."""
    found: dict[str, list[int]] = {}
    for place, name in enumerate(preparation.feature_names_out):
        if not name.endswith("] (free)"):
            found.setdefault(raw_column(name, preparation.inputs), []).append(place)
    return found


class ColumnImportances:
    """How much worse predictions of the latest rows are when a column is shuffled among them.

    A look comes after every 256 rows, whatever batches they came in: some of the latest rows are
    predicted as they are, and once more for each column, with the value that another of the rows
    has there. The mean of what that adds to the loss follows the stream. A look takes 80
    predictions, most of them of columns that change losses most; with many columns each has its
    turn.

    Losses are, of numbers, the absolute error; of classes 1 / (1 + exp(m)), where m is the margin
    by which the true one leads: bounded, so that few rows tell enough.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.looks: dict[str, int] = {}  # by column
        self.means: dict[str, float] = {}  # of what shuffling adds to the loss
        self.squares: dict[str, float] = {}  # of its squares
        self._turn = 0  # looks so far
        self._held: Buffer | None = None
        self._targets: NDArray[Any] = np.empty(0)

    def until_look(self) -> int:
        """Rows until the next look."""
        return LOOK - self.rows % LOOK

    def follow(self, X: Any, targets: NDArray[Any], preparation: Any, estimator: Any) -> None:
        """Rows that were just learned from, at most ``until_look()``."""
        if not len(targets) or X.shape[1] > WIDEST:
            return
        new = Buffer.of(X, np.zeros(len(targets)))
        held = new if self._held is None else self._held.followed_by(new)
        self._targets = np.concatenate([self._targets, targets]) if self.rows else targets
        self._held = held.since(max(0, len(held) - HELD)).copy()
        self._targets = self._targets[-HELD:].copy()
        self.rows += len(targets)
        if self.rows % LOOK == 0:
            self._look(features_by_column(preparation), estimator)

    def _look(self, columns: Mapping[str, Sequence[int]], estimator: Any) -> None:
        assert self._held is not None
        names = list(columns)
        first = self._turn * _MOST_COLUMNS % len(names) if len(names) > _MOST_COLUMNS else 0
        names = (names[first:] + names[:first])[:_MOST_COLUMNS]
        random = np.random.default_rng([7, self._turn])
        self._turn += 1
        n = len(self._targets)
        counts = self._rows_for(names, n)
        chosen = random.permutation(n)[: counts.max()]
        matrix = self._held.matrix
        dense = matrix.toarray() if issparse(matrix) else matrix
        rows = np.concatenate([chosen, *(chosen[:count] for count in counts)])
        table = dense[rows]
        edges = len(chosen) + np.concatenate([[0], np.cumsum(counts)])
        for name, (first, end) in zip(names, itertools.pairwise(edges.tolist()), strict=True):
            others = random.integers(0, n, end - first)
            table[first:end, columns[name]] = dense[others[:, None], columns[name]]
        losses = losses_of(estimator, table, self._targets[rows])
        if losses is None:
            return
        looks, means, squares = dict(self.looks), dict(self.means), dict(self.squares)
        for name, (first, end) in zip(names, itertools.pairwise(edges.tolist()), strict=True):
            added = losses[first:end] - losses[: end - first]
            looks[name] = looks.get(name, 0) + 1
            rate = max(1.0 / looks[name], SLOWEST)
            for kept, new in ((means, added.mean()), (squares, np.square(added).mean())):
                kept[name] = kept.get(name, 0.0) + rate * (float(new) - kept.get(name, 0.0))
        # New ones: an error later must leave these as they were.
        self.looks, self.means, self.squares = looks, means, squares

    def _rows_for(self, names: Sequence[str], n: int) -> NDArray[np.int64]:
        """(columns,) rows in which each is shuffled: more where that changes losses more."""
        sizes = np.sqrt([self.squares.get(name, 0.0) for name in names])
        sizes += 0.1 * sizes.mean() + 1e-12
        most = PREDICTIONS - len(names) * _FEWEST
        # As many again as the largest count are predicted as they are.
        counts = _FEWEST + (most * sizes / (sizes.sum() + sizes.max())).astype(np.int64)
        return np.minimum(counts, n)

    def shares(self) -> dict[str, float]:
        """By column, as parts of 1, largest first; what does no harm has nothing."""
        positive = {name: max(0.0, mean) for name, mean in self.means.items()}
        total = sum(positive.values()) or 1.0
        ranked = sorted(positive.items(), key=lambda item: -item[1])
        return {name: mean / total for name, mean in ranked}

    # ---- files ------------------------------------------------------------------------

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """All of it."""
        header: dict[str, Any] = {
            "rows": self.rows, "turn": self._turn, "looks": self.looks, "means": self.means,
            "squares": self.squares,
            "targets": self._targets.tolist(), "dtype": self._targets.dtype.str,
            "sparse": self._held is not None and bool(self._held.rows.sparse),
        }  # fmt: skip
        return header, {} if self._held is None else self._held.to_arrays()

    @classmethod
    def from_document(cls, header: Any, arrays: Arrays, width: int) -> Self:
        """What :meth:`to_document` described; ValueError if it cannot be."""
        result = cls()
        for name in ("rows", "turn"):
            if type(header[name]) is not int or not 0 <= header[name] < 2**53:
                raise ValueError("the importances' counts are out of range")
        looks, means, squares = header["looks"], header["means"], header["squares"]
        if not set(looks) == set(means) == set(squares) or not all(
            type(n) is int and n > 0 for n in looks.values()
        ):
            raise ValueError("the importances are not those of columns")
        sizes = [*means.values(), *squares.values()]
        if not all(type(size) is float and np.isfinite(size) for size in sizes):
            raise ValueError("the importances are not finite")
        if min(squares.values(), default=0.0) < 0.0:
            raise ValueError("the importances are out of range")
        result.rows, result._turn = header["rows"], header["turn"]
        result.looks, result.means, result.squares = looks, means, squares
        if arrays:
            result._held = Buffer.from_arrays(arrays, header["sparse"] is True, width)
            if np.dtype(header["dtype"]).kind not in "fiubU":
                raise ValueError("the importances' targets are neither labels nor numbers")
            result._targets = np.array(header["targets"], dtype=header["dtype"])
            if len(result._targets) != len(result._held) or len(result._held) > HELD:
                raise ValueError("the importances' rows contradict their targets")
        return result


def losses_of(estimator: Any, X: Any, y: NDArray[Any]) -> NDArray[np.float64] | None:
    """(n,) losses; None where there is nothing to lose yet."""
    if not hasattr(estimator, "decision_function"):
        return np.abs(estimator.predict(X) - y)
    classes = estimator.classes_
    if len(classes) < 2:
        return None
    values = estimator.decision_function(X)
    if values.ndim == 1:
        margins = np.where(y == classes[1], values, -values)
    else:
        rows, place = np.arange(len(y)), np.searchsorted(classes, y)
        true = values[rows, place]
        values[rows, place] = -np.inf
        margins = true - values.max(axis=1)
    return np.exp(-np.logaddexp(0.0, margins))  # type: ignore[no-any-return]
