"""A regressor for targets in any units."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone

from kernelstream.buffer import Buffer
from kernelstream.models import _validation as check
from kernelstream.models._stream import as_before_on_error
from kernelstream.parts import part_of, prefixed
from kernelstream.standardisation import FARTHEST, Running


class InUnits(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Learns a target in units of its standard deviation over the first ``warm_up`` samples.

    Until this unit is known the samples are kept waiting; then they are learned, in order, and
    the unit is fixed. Meanwhile the prediction is the mean of the targets so far. A stream that
    ends earlier needs :meth:`flush`. Any chunking gives the same bits.

    Parameters
    ----------
    regressor : regressor of this package
        Taught in place.
    warm_up : int
    targets : int, default=1
        Numbers of a sample: each is measured by itself.
    """

    def __init__(self, regressor: Any, warm_up: int, targets: int = 1) -> None:
        self.regressor = regressor
        self.warm_up = warm_up
        self.targets = targets
        self._unit = Running(targets)
        self._settled = False
        self._waiting: Buffer | None = None

    def __sklearn_is_fitted__(self) -> bool:
        return self._unit.rows > 0 and (not self._settled or self._taught)

    @property
    def _taught(self) -> bool:
        return hasattr(self.regressor, "_state")

    def take_units(self, other: InUnits) -> Self:
        """Measure the target as another does; nothing is left to wait for."""
        self._unit, self._settled = copy.copy(other._unit), True
        return self

    def same_units(self, other: InUnits) -> bool:
        """Whether both measure the target alike."""
        return all(map(np.array_equal, self._mean_and_unit(), other._mean_and_unit()))

    # ---- what a prequential run and a display look at ------------------------------------

    @property
    def _several(self) -> bool:
        """Whether samples have several numbers."""
        return self.targets > 1

    @property
    def batch_size(self) -> int:
        """Of the regressor."""
        return int(self.regressor.batch_size)

    @property
    def model_order_(self) -> int:
        """Number of stored points."""
        return self.regressor.model_order_ if self._taught else 0

    @property
    def error_spent_(self) -> float:
        """Of the regressor, in its units."""
        return self.regressor.error_spent_ if self._taught else 0.0

    @property
    def n_forced_(self) -> int:
        """Of the regressor."""
        return self.regressor.n_forced_ if self._taught else 0

    @property
    def nbytes_(self) -> int:
        """Bytes held, those of waiting samples included."""
        held = self.regressor.nbytes_ if self._taught else 0
        return int(held) + (0 if self._waiting is None else self._waiting.nbytes)

    # ---- learning ------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from scratch, in one pass."""
        self.__init__(clone(self.regressor), self.warm_up, self.targets)  # type: ignore[misc]
        return self.partial_fit(X, y).flush()

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from the next samples."""
        self._consume(X, y, None)
        return self

    def predict_then_learn(self, X: Any, y: Any) -> NDArray[np.float64]:
        """Predict each sample, then learn from it."""
        predicted: list[NDArray[np.float64]] = []
        self._consume(X, y, predicted)
        return np.concatenate(predicted) if predicted else self._flat(np.empty((0, self.targets)))

    def learn_one(self, x: NDArray[np.float64], y: Any) -> None:
        """Learn from one sample."""
        self.partial_fit(np.asarray(x)[None], np.array([y], dtype=np.float64))

    def flush(self) -> Self:
        """Learn now from the samples kept waiting: the stream is over."""
        with self._as_before_on_error():
            if self._waiting is not None:
                self._settle()
        self.regressor.flush()
        return self

    @contextmanager
    def _as_before_on_error(self) -> Iterator[None]:
        """Until the unit is known the regressor is new: an error leaves it so."""
        new = None if self._settled else vars(self.regressor).copy()
        try:
            with as_before_on_error(self):
                yield
        except Exception:
            if new is not None:
                vars(self.regressor).clear()
                vars(self.regressor).update(new)
            raise

    def _consume(self, X: Any, y: Any, predicted: list[NDArray[np.float64]] | None) -> None:
        targets = check.check_numbers(y, X.shape[0], self._several)
        if self._several and targets.shape[1:] != (self.targets,):
            raise ValueError(f"y has the shape {targets.shape}, expected {self.targets} columns")
        with self._as_before_on_error():
            start = self._wait(X, targets, predicted)
            if start == len(targets):
                return
            scaled = self._in_units(targets[start:])
            if predicted is not None and not self._taught:  # with units taken over
                predicted.append(self._flat(self._unit.mean[None]))
                self.regressor.partial_fit(X[start : start + 1], scaled[:1])
                start, scaled = start + 1, scaled[1:]
            if predicted is None:
                self.regressor.partial_fit(X[start:], scaled)
            else:
                values = self.regressor.predict_then_learn(X[start:], scaled)
                predicted.append(self._out_of_units(values))

    def _wait(
        self, X: Any, targets: NDArray[np.float64], predicted: list[NDArray[np.float64]] | None
    ) -> int:
        """Keep samples until the unit is known; returns the first that need not wait."""
        if self._settled:
            return 0
        end = min(self.warm_up - self._unit.rows, len(targets))
        before = self._unit.mean
        self._unit, means, _ = self._unit.follow(targets[:end].reshape(end, -1).T)
        if predicted is not None:  # the mean of the targets before
            predicted.append(self._flat(np.vstack([before, means.T])[:end]))
        if end:
            new = Buffer.of(X[:end], targets[:end])
            self._waiting = new if self._waiting is None else self._waiting.followed_by(new)
        if self._unit.rows == self.warm_up:
            self._settle()
        return end

    def _settle(self) -> None:
        waiting, self._waiting = self._waiting, None
        assert waiting is not None
        self._settled = True
        self.regressor.partial_fit(waiting.matrix, self._in_units(waiting.targets))

    # ---- predicting ----------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Numbers in the target's own units."""
        if not (self._settled and self._taught):
            return self._flat(np.tile(self._unit.mean, (X.shape[0], 1)))
        return self._out_of_units(self.regressor.predict(X))

    def _in_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        mean, unit = self._mean_and_unit()
        with np.errstate(over="ignore"):
            return np.clip((values - mean) / unit, -FARTHEST, FARTHEST)

    def _out_of_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        mean, unit = self._mean_and_unit()
        return values * unit + mean

    def _mean_and_unit(self) -> tuple[Any, Any]:
        """Numbers; of several targets arrays of them."""
        if self._several:
            deviation = self._unit.deviation
            return self._unit.mean, np.where(deviation > 0.0, deviation, 1.0)
        return float(self._unit.mean[0]), float(self._unit.deviation[0]) or 1.0

    def _flat(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) for one number per sample."""
        return values if self._several else values[:, 0]

    # ---- files ---------------------------------------------------------------------------

    def to_document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All but the regressor."""
        header: dict[str, Any] = {"settled": self._settled, "waiting": None}
        arrays = self._unit.to_arrays("target_")
        if self._waiting is not None:
            header["waiting"] = "sparse" if self._waiting.rows.sparse else "dense"
            arrays |= prefixed("waiting_", self._waiting.to_arrays())
        return header, arrays

    def restore(
        self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], width: int
    ) -> Self:
        """What :meth:`to_document` described, around the regressor as it was then."""
        self._unit = Running.from_arrays(arrays, "target_", self.targets)
        self._settled = header["settled"] is True
        if header["waiting"] is not None:
            held = part_of("waiting_", arrays)
            self._waiting = Buffer.from_arrays(
                held, header["waiting"] == "sparse", width, each=self.targets
            )
        waiting = 0 if self._waiting is None else len(self._waiting)
        if self._settled:
            possible = not waiting and self._unit.rows > 0
        else:
            possible = not self._taught and waiting == self._unit.rows < self.warm_up
        if not possible:
            raise ValueError("the rows kept waiting contradict the rest")
        return self
