"""Which raw columns matter: by what a model predicts when one of them is shuffled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from kernelstream.buffer import Buffer
from kernelstream.parts import Arrays

#: Rows between two looks, and rows that are held for them.
LOOK = HELD = 256
#: Predictions that a look may take: what may be spent for 256 rows that are learned.
EACH = 112
#: What is left of a look's weight after another one.
FORGET = 0.6
#: Columns looked at at once, so that each is in at least some rows; then it is the others' turn.
_MOST_COLUMNS = 15
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
    has there. The mean of what that adds to the loss follows the stream. With many columns each
    has its turn.

    Losses are, of numbers, the absolute error; of classes the squared error of the probabilities:
    both tell more with few rows than the part of wrong predictions.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.weights: dict[str, float] = {}  # by column: rows in which it was shuffled lately
        self.means: dict[str, float] = {}  # of what shuffling adds to the loss
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
        count = min(EACH // (len(names) + 1), n)
        chosen = random.permutation(n)[:count]
        matrix = self._held.matrix
        dense = matrix.toarray() if issparse(matrix) else matrix
        rows = np.tile(chosen, len(names) + 1)
        table = dense[rows]
        others = random.integers(0, n, (len(names), count, 1))
        for block, name in enumerate(names):
            part = slice((block + 1) * count, (block + 2) * count)
            table[part, columns[name]] = dense[others[block], columns[name]]
        losses = losses_of(estimator, table, self._targets[rows])
        if losses is None:
            return
        losses = losses.reshape(len(names) + 1, count)
        weights, means = dict(self.weights), dict(self.means)
        for name, mean in zip(names, (losses[1:] - losses[0]).mean(axis=1).tolist(), strict=True):
            weights[name] = FORGET * weights.get(name, 0.0) + count
            means[name] = means.get(name, 0.0)
            means[name] += count / weights[name] * (mean - means[name])
        # New ones: an error later must leave these as they were.
        self.weights, self.means = weights, means

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
            "rows": self.rows, "turn": self._turn, "weights": self.weights, "means": self.means,
            "targets": self._targets.tolist(), "dtype": self._targets.dtype.str,
            "sparse": self._held is not None and bool(self._held.rows.sparse),
        }  # fmt: skip
        return header, {} if self._held is None else self._held.to_arrays()

    @classmethod
    def from_document(cls, header: Any, arrays: Arrays, width: int) -> Self:
        """What :meth:`to_document` described; ValueError if it cannot be."""
        result = cls()
        means = header["means"]
        # An earlier format has none: its looks all weighed about the same.
        weights = header.get("weights", dict.fromkeys(means, 1.0))
        for name in ("rows", "turn"):
            if type(header[name]) is not int or not 0 <= header[name] < 2**53:
                raise ValueError("the importances' counts are out of range")
        if set(weights) != set(means):
            raise ValueError("the importances are not those of columns")
        sizes = [*means.values(), *weights.values()]
        if not all(type(size) is float and np.isfinite(size) for size in sizes):
            raise ValueError("the importances are not finite")
        if min(weights.values(), default=0.0) < 0.0:
            raise ValueError("the importances are out of range")
        result.rows, result._turn = header["rows"], header["turn"]
        result.weights, result.means = weights, means
        if arrays:
            result._held = Buffer.from_arrays(arrays, header["sparse"] is True, width)
            if np.dtype(header["dtype"]).kind not in "fiubU":
                raise ValueError("the importances' targets are neither labels nor numbers")
            result._targets = np.array(header["targets"], dtype=header["dtype"])
            if (
                len(result._targets) != len(result._held)
                or len(result._held) > HELD
                or result._targets.ndim > 2
            ):
                raise ValueError("the importances' rows contradict their targets")
        return result


def losses_of(estimator: Any, X: Any, y: NDArray[Any]) -> NDArray[np.float64] | None:
    """(n,) losses; None where there is nothing to lose yet."""
    if not hasattr(estimator, "predict_proba"):
        wrong = np.abs(estimator.predict(X) - y)
        if y.ndim == 1:
            return wrong
        spread = y.std(axis=0)  # several numbers count alike, whatever their units
        return (wrong / np.where(spread > 0.0, spread, 1.0)).mean(axis=1)  # type: ignore[no-any-return]
    classes = estimator.classes_
    if len(classes) < 2:
        return None
    wrong = estimator.predict_proba(X)
    wrong[np.arange(len(y)), np.searchsorted(classes, y)] -= 1.0
    return np.square(wrong).sum(axis=1)  # type: ignore[no-any-return]
