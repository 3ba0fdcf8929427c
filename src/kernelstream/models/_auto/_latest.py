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
        )  # fmt: skip

    @staticmethod
    def nbytes_for(features: int, targets: int, kept: int) -> int:
        """The bytes that it holds."""
        return 8 * (kept * (features + 1 + targets) + features + 3)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.state)

    def __len__(self) -> int:
        return int(min(self.state.written[0], len(self.state.norms)))

    def run(self, rows: Any, targets: Any, outputs: int) -> Rows:
        """(n, experts, outputs): what similar rows say, each from before its row was kept."""
        out = np.empty((len(rows), SIZE, outputs) if self.predicts else (0, SIZE, outputs))
        neighbour_pass(self.state, self.numbers, rows, targets, out)
        return out

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
        result._keep(*self.last(kept), self.state.scales, self.state.right)
        return result

    def widened(self, more: int) -> Latest:
        """The same with so many more columns, which were zero so far."""
        features, (kept, targets) = len(self.state.points), self.state.targets.shape
        result = Latest(features + more, targets, self.numbers, kept, self.predicts)
        rows, own = self.last(kept)
        scales = np.pad(self.state.scales, (0, more), constant_values=1.0)
        result._keep(np.pad(rows, ((0, 0), (0, more))), own, scales, self.state.right)
        return result

    def _keep(self, rows: Rows, targets: Rows, scales: Rows, right: Rows) -> None:
        state, n = self.state, len(rows)
        state.points[:, :n], state.targets[:n] = rows.T, targets.reshape(n, -1)
        state.scales[:], state.right[:], state.written[0] = scales, right, n
        measure_points(state)

    # ---- files ------------------------------------------------------------------------

    def to_arrays(self) -> Arrays:
        rows, targets = self.last(len(self))
        state = self.state
        return {
            "rows": rows, "targets": targets, "scales": state.scales.copy(),
            "right": state.right.copy(),
        }  # fmt: skip

    def fill(self, arrays: Mapping[str, Any], classes: int) -> None:
        """Take over what :meth:`to_arrays` gave; ValueError if it cannot be that."""
        state = self.state
        rows, targets = arrays["rows"], arrays["targets"]
        scales = arrays.get("scales", state.scales)  # earlier files kept rows alone
        right = arrays.get("right", state.right)
        n, (kept, each) = len(rows), state.targets.shape
        shapes = (n, len(state.points)), (n,) if each == 1 else (n, each)
        if (rows.shape, targets.shape) != shapes or n > kept:
            raise ValueError("the remembered rows contradict the state")
        if scales.shape != state.scales.shape or right.shape != state.right.shape:
            raise ValueError("the remembered rows contradict the state")
        parts = rows, targets, scales, right
        if not all(part.dtype == np.float64 and np.isfinite(part).all() for part in parts):
            raise ValueError("the remembered rows are not finite")
        if not self.numbers and not np.isin(targets, np.arange(classes)).all():
            raise ValueError("the remembered rows have unknown classes")
        if (scales < 0.0).any() or not 0.0 < right[0] <= right[1]:
            raise ValueError("how similar rows predict is out of range")
        self._keep(rows, targets, scales, right)
