"""Which raw columns matter: by what a model predicts when one of them is shuffled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from kernelstream.buffer import Buffer
from kernelstream.parts import Arrays

#: Rows between two looks.
LOOK = 256
#: Predictions that a look may take: what may be spent for 256 rows that are learned.
EACH = 104
#: So many times as many for a model with a factor of its Gram matrix, whose steps cost as much as
#: tens of predictions; and the entries of the rows that are predicted at once, at most.
_FACTORED, _ENTRIES = 6, 65_536
#: The same for a model that predicts faster without its deviations, and of how many looks it has
#: one: its steps are so short that what a look costs besides its predictions counts.
_QUICK, _APART = 6, 2
#: What is left of a look's weight 256 rows later.
FORGET = 0.5
#: Columns looked at at once, so that each is in at least some rows; then it is the others' turn.
_MOST_COLUMNS = 15
#: Texts that share features and are named, and the number of the others.
_MOST_SHARING = 2
#: Features beyond are too many to be shuffled.
WIDEST = 4096


def raw_column(feature: str, inputs: Mapping[str, str], naming: Sequence[str] = ()) -> str:
    """The raw column that a feature is made of; texts that share features are named together.

    Columns that only name their rows (``naming``) share none: "" where there are no others.

    >>> raw_column("day cos week", {"day": "date"}), raw_column("city=Bonn", {"city": "text"})
    ('day', 'city')
    >>> raw_column("other texts [3]", dict.fromkeys(["city", "id", "zone"], "text"), ["id"])
    'city or zone'
    """
    if feature in inputs:
        return feature
    texts = [name for name, kind in inputs.items() if kind == "text"]
    if re.fullmatch(r"(text|other texts )\[\d+\]", feature) and texts:
        sharing = [name for name in texts if name not in naming]
        more = len(sharing) - _MOST_SHARING
        if more > 1:
            sharing[_MOST_SHARING:] = [f"{more} other texts"]
        return " or ".join(sharing)
    own = [name for name in inputs if feature.startswith((f"{name} ", f"{name}="))]
    return max(own, key=len) if own else feature


def features_by_column(preparation: Any) -> dict[str, list[int]]:
    """The places of the features of each raw column."""
    found: dict[str, list[int]] = {}
    inputs, naming = preparation.inputs, preparation.naming_columns
    for place, name in enumerate(preparation.feature_names_out):
        column = "" if name.endswith("] (free)") else raw_column(name, inputs, naming)
        if column:
            found.setdefault(column, []).append(place)
    return found


class ColumnImportances:
    """How much worse predictions of the latest rows are when a column is shuffled among them.

    A look comes after every 256 rows, whatever batches they came in: some of them are predicted as
    they are, and once more for each column, with the value that another of the rows has there. The
    mean of what that adds to the loss follows the stream. With many columns each has its turn.

    Losses are, of numbers, the absolute error; of classes the squared error of the probabilities:
    both tell more with few rows than the part of wrong predictions. Of KRLS-T only the functions
    are evaluated, not how certain they are, on more rows but in every other look.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.weights: dict[str, float] = {}  # by column: rows in which it was shuffled lately
        self.means: dict[str, float] = {}  # of what shuffling adds to the loss
        self._turn = 0  # looks so far
        self._latest: tuple[tuple[Any, NDArray[Any]], ...] = ()  # since the last look: X, y

    def until_look(self) -> int:
        """Rows until the next look."""
        return LOOK - self.rows % LOOK

    def follow(self, X: Any, targets: NDArray[Any], preparation: Any, estimator: Any) -> None:
        """Rows that were just learned from, at most ``until_look()``."""
        if not len(targets) or X.shape[1] > WIDEST:
            return
        self._latest = (*self._latest, (X.copy(), targets.copy()))
        self.rows += len(targets)
        if self.rows % LOOK == 0:
            apart = _APART if _is_quick(estimator) else 1
            if self.rows // LOOK % apart == 1 % apart:  # the first, and so on
                columns = features_by_column(preparation)
                self._look(*self._rows(), columns, estimator, FORGET**apart)
            self._latest = ()

    def _rows(self) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Those since the last look."""
        X = [part.toarray() if issparse(part) else part for part, _ in self._latest]
        return np.concatenate(X), np.concatenate([targets for _, targets in self._latest])

    def _look(
        self,
        X: NDArray[np.float64],
        targets: NDArray[Any],
        columns: Mapping[str, Sequence[int]],
        estimator: Any,
        kept: float,
    ) -> None:
        names = list(columns)
        first = self._turn * _MOST_COLUMNS % len(names) if len(names) > _MOST_COLUMNS else 0
        names = (names[first:] + names[:first])[:_MOST_COLUMNS]
        random = np.random.default_rng([7, self._turn])
        self._turn += 1
        # To shuffle what is constant changes nothing.
        varying = set(np.flatnonzero((X[0] != X).any(axis=0)).tolist())
        blocks = [columns[name] for name in names if not varying.isdisjoint(columns[name])]
        if not blocks:
            return
        n, width = X.shape
        count = min(_affordable(estimator, width) // (len(blocks) + 1), n)
        rows = random.permutation(n)[:count]
        others = random.integers(0, n, (len(blocks), count))
        table = np.repeat(X[None, rows], len(blocks) + 1, axis=0)
        block = np.repeat(np.arange(len(blocks)), [len(places) for places in blocks])[:, None]
        place = np.array([place for places in blocks for place in places], np.intp)[:, None]
        table[block + 1, np.arange(count), place] = X[others[block[:, 0]], place]
        table = table.reshape(-1, width)
        losses = losses_of(estimator, table, targets[np.tile(rows, len(blocks) + 1)])
        if losses is None:
            return
        losses = losses.reshape(len(blocks) + 1, count)
        added = iter((losses[1:] - losses[0]).mean(axis=1).tolist())
        # Texts share features with others than before where one is found to name its rows.
        weights, means = (
            {name: number for name, number in held.items() if name in columns}
            for held in (self.weights, self.means)
        )
        for name in names:
            mean = 0.0 if varying.isdisjoint(columns[name]) else next(added)
            weights[name] = kept * weights.get(name, 0.0) + count
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
        parts = [X for X, _ in self._latest]
        sparse = any(map(issparse, parts))
        targets = np.concatenate([np.empty(0), *(y for _, y in self._latest)][bool(parts) :])
        header: dict[str, Any] = {
            "rows": self.rows, "turn": self._turn, "weights": self.weights, "means": self.means,
            "targets": targets.tolist(), "dtype": targets.dtype.str, "sparse": sparse,
        }  # fmt: skip
        if not parts:
            return header, {}
        X = vstack(parts, format="csr") if sparse else np.concatenate(parts)
        return header, Buffer.of(X, np.zeros(len(targets))).to_arrays()

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
            held = Buffer.from_arrays(arrays, header["sparse"] is True, width)
            if np.dtype(header["dtype"]).kind not in "fiubU":
                raise ValueError("the importances' targets are neither labels nor numbers")
            targets = np.array(header["targets"], dtype=header["dtype"])
            if len(targets) != len(held) or len(held) > LOOK or targets.ndim > 2:
                raise ValueError("the importances' rows contradict their targets")
            # An earlier format has the rows before the last look as well.
            first = max(0, len(held) - result.rows % LOOK)
            if first < len(held):
                result._latest = ((held.since(first).matrix, targets[first:]),)
        return result


def _affordable(estimator: Any, width: int) -> int:
    """Predictions of a look: with all else, a fifth of what the steps since the last one cost."""
    model = getattr(estimator, "regressor", estimator)  # where it learns in units
    more = _FACTORED if getattr(model, "_factored", False) else 1
    more = _QUICK if _is_quick(model) else more
    return max(EACH, min(more * EACH, _ENTRIES // width))


def _is_quick(estimator: Any) -> bool:
    """Whether it predicts without deviations, in a fraction of the time."""
    return hasattr(estimator, "_predict_means")


def losses_of(estimator: Any, X: Any, y: NDArray[Any]) -> NDArray[np.float64] | None:
    """(n,) losses; None where there is nothing to lose yet."""
    means = getattr(estimator, "_predict_means", None)
    if not hasattr(estimator, "predict_proba"):
        wrong = np.abs((means or estimator.predict)(X) - y)
        if y.ndim == 1:
            return wrong
        spread = y.std(axis=0)  # several numbers count alike, whatever their units
        return (wrong / np.where(spread > 0.0, spread, 1.0)).mean(axis=1)  # type: ignore[no-any-return]
    classes = estimator.classes_
    if len(classes) < 2:
        return None
    wrong = (means or estimator.predict_proba)(X)
    wrong[np.arange(len(y)), np.searchsorted(classes, y)] -= 1.0
    return np.square(wrong).sum(axis=1)  # type: ignore[no-any-return]
