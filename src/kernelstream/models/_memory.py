"""Memory is a contract: how many points an estimator may hold, and what it gives up."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import numpy as np

from kernelstream.core.state import allocate, largest_capacity, resize, state_bytes
from kernelstream.core.threads import one_thread


class BoundedMemory:
    """A state that grows up to what the caps allow."""

    # Supplied by the estimator.
    _state: Any
    _pending: Any
    _factored: ClassVar[bool]
    _fitted: Any
    _outputs: Any
    _parts: Any
    _columns: Any
    slack: ClassVar[int] = 0  # points beyond the cap that may wait to be projected together
    batch_size: Any
    max_points: Any
    max_bytes: Any

    def _drop_points(self, most: int) -> None:
        """Keep at most this many points: a cap was lowered."""
        raise NotImplementedError

    def _points_needed(self, samples: int) -> int:
        """Points that a step may add where this many samples are left."""
        return min(self.batch_size, samples)

    def _allocate(self, features: int, capacity: int, seed: int) -> Any:
        """A state that has learned nothing."""
        return allocate(features, self._columns, capacity, seed, self._factored)

    def _resize(self, capacity: int) -> None:
        self._state = resize(self._state, capacity)

    def _capacity_limit(self, features: int, outputs: int | None = None) -> int:
        """Points that may ever be held, those of an unfinished step included."""
        batch = self.batch_size
        outputs = self._outputs if outputs is None else outputs
        columns = outputs * self._parts
        beyond = batch + self.slack  # points that may be held beyond the cap
        limit = np.iinfo(np.int32).max if self.max_points is None else self.max_points + beyond
        if self.max_bytes is not None:
            waiting = self._held_back(features, columns)
            most = min(self.max_bytes, sys.maxsize)  # beyond, a float says too little
            fits = largest_capacity(most - waiting, features, columns, self._factored)
            if fits < beyond + 1:
                least = state_bytes(beyond + 1, features, columns, self._factored) + waiting
                together = f" and batches of {batch}" if batch > 1 else ""
                together += f" and a slack of {self.slack}" if self.slack else ""
                raise ValueError(
                    f"max_bytes={self.max_bytes} does not hold a single point: for {features} "
                    f"features, {outputs} outputs{together} it must be {least} at least"
                )
            limit = min(limit, fits)
        return int(limit)

    def _held_back(self, features: int, columns: int) -> int:
        """Bytes that samples may need beside a state with so many columns of weights."""
        return (self.batch_size - 1) * self._sample_bytes(features) + 8

    @property
    def _numbers_each(self) -> int:
        """Targets of a sample."""
        return 1

    def _sample_bytes(self, features: int) -> int:
        """Of one that is kept with its targets and its weight: dense, or sparse without zeros."""
        return 12 * features + 16 + 8 * self._numbers_each

    def _most(self, limit: int) -> int:
        """The cap on points, where so many may be held in a step."""
        return limit - self.batch_size - self.slack

    def _catch_up(self, limit: int) -> None:
        """Project the points beyond the cap that were put off."""

    def _shrink(self, limit: int) -> None:
        """Give up what a cap no longer allows: it was lowered, or new outputs need room."""
        most = self._most(limit)
        if self._state.order > most + self.slack:
            self._catch_up(limit)
            with one_thread():
                self._drop_points(most)
        if self._state.capacity > limit:
            self._resize(limit)

    @property
    def nbytes_(self) -> int:
        """Bytes held by the model, spare capacity and unfinished batch included."""
        waiting = 0 if self._pending is None else self._pending.nbytes
        return self._fitted().nbytes + waiting

    @property
    def n_forced_(self) -> int:
        """How often ``max_points`` or ``max_bytes`` left no choice."""
        return int(self._fitted().status[0]["forced"])
