"""The first samples decide ``delta="auto"``: they are held, and learned again when it is known."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream.compression.coverage import FIRST_SAMPLES, suggested_delta
from kernelstream.core.kernel import Rows
from kernelstream.core.state import SMALLEST_CAPACITY, state_bytes
from kernelstream.models._base import KernelEstimator
from kernelstream.models._stream import as_before_on_error
from kernelstream.rows import slice_rows, take_rows


class _DecidingDelta(KernelEstimator):
    """An estimator whose first samples decide the diameter of its cells."""

    _decides_once = True
    _provisional: ClassVar[bool]  # whether the samples that decide delta are learned at once
    _deciding = False  # whether delta may still change

    def _deciding_samples(self, features: int, columns: int) -> int:
        """How many samples decide delta: half of ``max_bytes``, and what the model leaves."""
        if self.max_bytes is None:
            return FIRST_SAMPLES
        left = max(0, self.max_bytes - self._least_bytes(features, columns))
        each = self._sample_bytes(features)
        return int(min(FIRST_SAMPLES, min(self.max_bytes // 2, left) // each))

    def _least_bytes(self, features: int, columns: int) -> int:
        """Of a model that holds one point."""
        return state_bytes(2, features, columns, self._factored) + 8

    def _held_back(self, features: int, columns: int) -> int:
        held = self._deciding_samples(features, columns) if self._deciding else 0
        return super()._held_back(features, columns) + held * self._sample_bytes(features)

    @property
    def _samples_held(self) -> int:
        return 0 if self._pending is None else len(self._pending)

    @property
    def _enough(self) -> int:
        """How many samples decide delta for good."""
        return self._deciding_samples(self._state.points.shape[0], self._columns)

    def _learn(
        self, rows: Rows, targets: NDArray[np.float64], weights: Any, predictions: Any = None
    ) -> None:
        if self._samples_held >= max(1, self._enough):  # new classes or a lower cap: less room
            self._decide(last=True)
        if not self._deciding:
            super()._learn(rows, targets, weights, predictions)
            return
        weights = np.ones(len(targets)) if weights is None else weights
        used = weights != 0.0
        if not used.all():
            rows, targets, weights = take_rows(rows, used), targets[used], weights[used]
        first = 0
        while first < len(targets):
            end = min(first + self._until_decision(), len(targets))
            self._learn_and_hold(
                slice_rows(rows, first, end), targets[first:end], weights[first:end],
                None if predictions is None else predictions[first:end],
            )  # fmt: skip
            first = end

    def _until_decision(self) -> int:
        """How many more samples decide delta, or decide it for the time being."""
        if not self._deciding:
            return np.iinfo(np.int64).max
        held, enough = self._samples_held, self._enough
        if self._provisional:
            enough = min(enough, max(2, 1 << held.bit_length()))
        return max(1, enough - held)

    def _learn_and_hold(self, rows: Rows, targets: Any, weights: Any, predictions: Any) -> None:
        if not self._deciding:
            self._run(rows, targets, weights, predictions)
            return
        decisive, seen = self._until_decision() == len(targets), self.n_seen_
        try:
            if self._provisional:
                self._run(rows, targets, weights, predictions)
        finally:  # also those before one that cannot be learned
            held = self.n_seen_ - seen if self._provisional else len(targets)
            if held:
                self._push(slice_rows(rows, 0, held), targets[:held], weights[:held])
        if decisive:
            self._decide(last=False)

    def _decide(self, last: bool) -> None:
        """Choose delta by the samples held, and learn from them from scratch."""
        assert self._pending is not None
        held = self._pending
        features, random = self._state.points.shape[0], int(self._state.status[0]["random"])
        with as_before_on_error(self):
            if last or len(held) >= self._enough:
                self._pending, self._deciding = None, False
            self.delta_ = suggested_delta(held.rows)
            capacity = min(SMALLEST_CAPACITY, self._capacity_limit(features))
            self._state = self._allocate(features, capacity, random)
        self._forget_plan()
        self._forget_predictions()
        self._run(held.rows, held.targets, held.weights)

    def _flush_whole(self) -> None:
        """Samples held are no batch."""

    def flush(self) -> Self:
        """Let the samples so far decide ``delta="auto"``; nothing else waits."""
        if self._samples_held:
            self._check_parameters()
            self._decide(last=True)
        return self

    @property
    def n_waiting_(self) -> int:
        """Samples that nothing was learned from yet, because they are to decide delta."""
        return 0 if self._provisional else super().n_waiting_

    @property
    def _lean(self) -> bool:
        return super()._lean and not self._deciding
