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
LOOK, HELD = 256, 256
#: Predictions that looks may take on average, and one look at most: what a look leaves is saved, up
#: to so many, for looks at which predictions became worse.
EACH, MOST, SAVED = 56, 320, 2048
#: Rows predicted as they are, and rows in which a column is shuffled, at least.
_PLAIN, _FEWEST = 12, 2
#: What is left of a look's weight after another one, usually and while much is spent; and of all
#: looks before when that begins.
FORGET, FORGET_UNSETTLED, FORGET_ALL = 0.85, 0.6, 0.2
#: Looks at which more is spent, once losses are so many of their deviations above the usual ones.
_UNSETTLED, _FAR = 7, 3.0
#: How fast the usual losses follow.
_USUAL = 0.1
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
    has there. The mean of what that adds to the loss follows the stream. Looks take 56 predictions
    on average: few while nothing changes, and what is saved then when losses have become larger,
    as after a change, where much has to be learned again. With many columns each has its turn.

    Losses are, of numbers, the absolute error; of classes 1 / (1 + exp(m)), where m is the margin
    by which the true one leads: bounded, so that few rows tell enough.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.weights: dict[str, float] = {}  # by column: rows in which it was shuffled lately
        self.means: dict[str, float] = {}  # of what shuffling adds to the loss
        self._turn = 0  # looks so far
        self._saved = 0  # predictions that earlier looks left
        self._unsettled = 0  # looks at which they may be used
        self._usual = (0.0, 0.0)  # loss of a row as it is, and the variance
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
        count, spent = self._rows_for(len(names), n)
        chosen = random.permutation(n)[: max(count, min(_PLAIN, n))]
        matrix = self._held.matrix
        dense = matrix.toarray() if issparse(matrix) else matrix
        rows = np.concatenate([chosen, np.tile(chosen[:count], len(names))])
        table = dense[rows]
        first = len(chosen)
        for name in names:
            others = random.integers(0, n, count)
            table[first : first + count, columns[name]] = dense[others[:, None], columns[name]]
            first += count
        losses = losses_of(estimator, table, self._targets[rows])
        if losses is None:
            return
        self._saved = min(self._saved + EACH - spent, SAVED)
        self._note_losses(losses[: len(chosen)])
        added = losses[len(chosen) :].reshape(len(names), count) - losses[:count]
        forget = FORGET_UNSETTLED if self._unsettled else FORGET
        forget *= FORGET_ALL if self._unsettled == _UNSETTLED else 1.0
        weights, means = dict(self.weights), dict(self.means)
        for name, mean in zip(names, added.mean(axis=1).tolist(), strict=True):
            weights[name] = forget * weights.get(name, 0.0) + count
            means[name] = means.get(name, 0.0)
            means[name] += count / weights[name] * (mean - means[name])
        # New ones: an error later must leave these as they were.
        self.weights, self.means = weights, means

    def _rows_for(self, columns: int, n: int) -> tuple[int, int]:
        """Rows in which each column is shuffled, and the predictions that a look takes then."""
        fewest = _PLAIN + _FEWEST * columns
        spent = fewest
        if self._unsettled:
            spent = max(fewest, min(self._saved + EACH, MOST))
        count = max(_FEWEST, min((spent - _PLAIN) // columns, spent // (columns + 1)))
        count = min(max(count, _FEWEST), n)
        return count, max(count, _PLAIN) + count * columns

    def _note_losses(self, losses: NDArray[np.float64]) -> None:
        """Losses of rows as they are: far above the usual ones, much is spent for a while."""
        mean, (usual, variance) = float(losses.mean()), self._usual
        far = mean - usual > _FAR * np.sqrt(variance / len(losses))
        self._unsettled = _UNSETTLED if self._turn > 1 and far else max(0, self._unsettled - 1)
        rate = max(1.0 / self._turn, _USUAL)
        apart = float(np.square(losses - usual).mean()) if self._turn > 1 else float(losses.var())
        self._usual = usual + rate * (mean - usual), variance + rate * (apart - variance)

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
            "saved": self._saved, "unsettled": self._unsettled, "usual": list(self._usual),
            "targets": self._targets.tolist(), "dtype": self._targets.dtype.str,
            "sparse": self._held is not None and bool(self._held.rows.sparse),
        }  # fmt: skip
        return header, {} if self._held is None else self._held.to_arrays()

    @classmethod
    def from_document(cls, header: Any, arrays: Arrays, width: int) -> Self:
        """What :meth:`to_document` described; ValueError if it cannot be."""
        result = cls()
        if "squares" in header:  # of an earlier version, whose looks all weighed about the same
            looks = dict.fromkeys(header["means"], float(_FEWEST))
            header = {**header, "weights": looks, "saved": 0, "unsettled": 0, "usual": [0.0, 0.0]}
        for name, most in (("rows", 2**53), ("turn", 2**53), ("saved", SAVED + 1),
                           ("unsettled", _UNSETTLED + 1)):  # fmt: skip
            if type(header[name]) is not int or not 0 <= header[name] < most:
                raise ValueError("the importances' counts are out of range")
        weights, means, usual = header["weights"], header["means"], header["usual"]
        if set(weights) != set(means) or len(usual) != 2:
            raise ValueError("the importances are not those of columns")
        sizes = [*means.values(), *weights.values(), *usual]
        if not all(type(size) is float and np.isfinite(size) for size in sizes):
            raise ValueError("the importances are not finite")
        if min([*weights.values(), *usual]) < 0.0:
            raise ValueError("the importances are out of range")
        result.rows, result._turn = header["rows"], header["turn"]
        result.weights, result.means = weights, means
        result._saved, result._unsettled = header["saved"], header["unsettled"]
        result._usual = (usual[0], usual[1])
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
    if not hasattr(estimator, "decision_function"):
        wrong = np.abs(estimator.predict(X) - y)
        if y.ndim == 1:
            return wrong
        spread = y.std(axis=0)  # several numbers count alike, whatever their units
        return (wrong / np.where(spread > 0.0, spread, 1.0)).mean(axis=1)  # type: ignore[no-any-return]
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
