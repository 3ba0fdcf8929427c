"""The latest rows: new experts learn from them, and similar ones among them predict the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.neighbours import (
    SIZE,
    NeighbourState,
    first_counts,
    measure_points,
    neighbour_pass,
)
from kernelstream.parts import Arrays

Rows = NDArray[np.float64]
#: Arrays of a state that do not depend on how many rows it holds.
_NUMBERS = ("scales", "right", "steps")


class Latest:
    """At most ``kept`` rows, in units, with their targets.

    Parameters
    ----------
    features, targets, kept : int
    numbers : bool
        Whether targets are numbers.
    predicts : bool
        Whether similar rows predict; otherwise rows are only kept.
    """

    def __init__(
        self, features: int, targets: int, numbers: bool, kept: int, predicts: bool
    ) -> None:
        self.numbers, self.predicts = numbers, predicts
        self.state = NeighbourState(
            np.zeros(1, np.int64), np.zeros((features, kept)), np.zeros(kept),
            np.zeros((kept, targets)), np.ones(features), first_counts(),
            np.zeros(2),
        )  # fmt: skip

    @staticmethod
    def nbytes_for(features: int, targets: int, kept: int) -> int:
        """The bytes that it holds."""
        return 8 * (kept * (features + 1 + targets) + features + 5)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.state)

    def __len__(self) -> int:
        return int(min(self.state.written[0], len(self.state.norms)))

    def run(self, rows: Any, targets: Any, outputs: int) -> tuple[Rows, Rows]:
        """(n, experts, outputs): what similar rows say, each from before its row was kept.

        And (n,): 1 where a row is unlike the last one.
        """
        out = np.empty((len(rows), SIZE, outputs) if self.predicts else (0, SIZE, outputs))
        unlike = np.empty(len(rows))
        neighbour_pass(self.state, self.numbers, rows, targets, out, unlike)
        return out, unlike

    def last(self, count: int) -> tuple[Rows, Rows]:
        """Copies of the last so many rows and targets, in their order."""
        state, count = self.state, min(count, len(self))
        order = np.arange(state.written[0] - count, state.written[0]) % len(state.norms)
        rows = np.ascontiguousarray(state.points[:, order].T)
        targets = state.targets[order]
        return rows, targets[:, 0].copy() if targets.shape[1] == 1 else targets

    def follow_scales(self, scales: Rows) -> None:
        """Distances are measured with these scales of columns from now on."""
        self.state.scales[:] = scales
        measure_points(self.state)

    def change_units(self, shift: Any, stretch: Any) -> None:
        """Targets are now (y + shift) * stretch of what they were; of several, arrays."""
        self.state.targets[:] = (self.state.targets + shift) * stretch

    def add_class(self, place: int) -> None:
        self.state.targets[self.state.targets >= place] += 1.0

    def resize(self, kept: int) -> Latest:
        """The same with room for so many rows."""
        features, targets = len(self.state.points), self.state.targets.shape[1]
        result = Latest(features, targets, self.numbers, kept, self.predicts)
        result._keep(*self.last(kept), self.state)
        return result

    def widened(self, more: int) -> Latest:
        """The same with so many more columns, which were zero so far."""
        features, (kept, targets) = len(self.state.points), self.state.targets.shape
        result = Latest(features + more, targets, self.numbers, kept, self.predicts)
        rows, own = self.last(kept)
        scales = np.pad(self.state.scales, (0, more), constant_values=1.0)
        state = self.state._replace(scales=scales)
        result._keep(np.pad(rows, ((0, 0), (0, more))), own, state)
        return result

    def _keep(self, rows: Rows, targets: Rows, other: NeighbourState) -> None:
        """Take over rows, and the numbers of another state."""
        state, n = self.state, len(rows)
        for name in _NUMBERS:
            getattr(state, name)[:] = getattr(other, name)
        state.points[:, :n], state.targets[:n] = rows.T, targets.reshape(n, state.targets.shape[1])
        state.written[0] = n
        measure_points(state)

    # ---- files ------------------------------------------------------------------------

    def to_arrays(self) -> Arrays:
        rows, targets = self.last(len(self))
        state = self.state
        numbers = {name: getattr(state, name).copy() for name in _NUMBERS}
        return {"rows": rows, "targets": targets, **numbers}

    def fill(self, arrays: Mapping[str, Any], classes: int) -> None:
        """Take over what :meth:`to_arrays` gave; ValueError if it cannot be that."""
        state = self.state
        rows, targets = arrays["rows"], arrays["targets"]
        # Earlier files kept rows alone.
        found = {name: arrays.get(name, getattr(state, name)) for name in _NUMBERS}
        n, (kept, each) = len(rows), state.targets.shape
        shapes = (n, len(state.points)), (n,) if each == 1 else (n, each)
        if (rows.shape, targets.shape) != shapes or n > kept:
            raise ValueError("the remembered rows contradict the state")
        if any(found[name].shape != getattr(state, name).shape for name in _NUMBERS):
            raise ValueError("the remembered rows contradict the state")
        parts = rows, targets, *found.values()
        if not all(part.dtype == np.float64 and np.isfinite(part).all() for part in parts):
            raise ValueError("the remembered rows are not finite")
        if not self.numbers and not np.isin(targets, np.arange(classes)).all():
            raise ValueError("the remembered rows have unknown classes")
        right, signless = found["right"], (found["scales"], found["steps"])
        if any((part < 0.0).any() for part in signless) or not 0.0 < right[0] <= right[1]:
            raise ValueError("how similar rows predict is out of range")
        self._keep(rows, targets, state._replace(**found))
