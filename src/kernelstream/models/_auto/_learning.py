"""A stream in units: what the automatic model and the tracker have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.kernel import Rows
from kernelstream.core.threads import one_thread
from kernelstream.models._auto._intervals import Intervals
from kernelstream.models._auto._several import units_for
from kernelstream.models._auto._units import RowUnits
from kernelstream.rows import count_rows, slice_rows

_NOTHING = np.empty(0)


#: Rows between two looks at whether the units of the target still fit.
LOOK = 64


class UnitState:
    """Units of rows and targets, the experts that learn in them, and how far they are off.

    ``experts`` is a committee, or anything with the same methods. Of its predictors the first
    predicts the next row of the stream, the last any row.
    """

    def __init__(
        self, features: int, numbers: bool, moving: bool, experts: Any, predictors: int
    ) -> None:
        self.rows = RowUnits(features, moving)
        self.targets: Any = units_for(experts.outputs) if numbers else None
        self.intervals = Intervals(predictors * experts.outputs) if numbers else None
        self.experts = experts

    @property
    def nbytes(self) -> int:
        intervals = 0 if self.intervals is None else self.intervals.nbytes
        return self.rows.nbytes + int(self.experts.nbytes) + intervals

    @property
    def order(self) -> int:
        """Points held."""
        return int(self.experts.order)

    @property
    def seen(self) -> int:
        """Rows learned from."""
        return int(self.experts.seen)

    def _run(self, rows: Any, targets: Any, weights: Any) -> tuple[Any, Any]:
        """(n, predictors, outputs) from the experts, and (n,) deviations as they expect them.

        Of several targets (n, outputs).
        """
        raise NotImplementedError

    def _change_units(self, shift: Any, stretch: Any) -> None:
        self.experts.change_units(shift, stretch)

    # ---- rows -------------------------------------------------------------------------

    @one_thread()
    def learn(
        self, rows: Rows, targets: Any, weights: Any, predictions: Any = None,
        halves: Any = None, coverage: float = 0.9,
    ) -> None:  # fmt: skip
        """Learn in order.

        ``predictions`` (n, outputs) receives those from just before each row, ``halves`` (n,) half
        the width of the interval around each; of several targets (n, outputs).
        """
        first, n = 0, count_rows(rows)
        while first < n:
            end = min(n, first + self.experts.room())
            if self.targets is not None and self.targets.scale == 0.0:
                end = first + 1
            elif self.targets is not None:
                end = first + self._follow(targets[first:end])
            part = self.rows.measure(slice_rows(rows, first, end), learning=True)
            made, half = self._step(part, targets[first:end], weights[first:end], coverage)
            if predictions is not None:
                predictions[first:end] = made
            if halves is not None:
                halves[first:end] = half
            first = end

    def _follow(self, targets: Any) -> int:
        """Let the units of the target follow until they are off. Returns after how many rows."""
        end = 0
        while end < len(targets):
            begin, end = end, min(len(targets), end + LOOK - (self.seen + end) % LOOK)
            self.targets.follow(targets[begin:end])
            if (self.seen + end) % LOOK == 0 and self.targets.is_off():
                break
        return end

    def _step(self, rows: Any, targets: Any, weights: Any, coverage: float) -> tuple[Any, Any]:
        units, intervals = self.targets, self.intervals
        if units is None or intervals is None:
            return self._run(rows, targets, weights)[0][:, 0], np.nan
        if units.scale == 0.0:  # units must know the target before it can be learned
            made = units.restore(self._run(rows, _NOTHING, weights)[0][:, 0])
            new = units.count == 0.0
            units.follow(targets)
            shift, stretch = units.refit()
            if not new:  # there was no unit before: nothing but the center changes
                self._change_units(shift * stretch, 1.0)
            self._run(rows, units.measure(targets), weights)
            return made, np.inf
        measured = units.measure(targets)
        found, deviations = self._run(rows, measured, weights)
        halves = self._learn_intervals(measured, found, deviations, coverage)
        made, half = units.restore(found[:, 0]), units.unit * halves
        power_of_two = self.seen & (self.seen - 1) == 0
        if power_of_two or (self.seen % LOOK == 0 and units.is_off()):
            self._change_units(*units.refit())
        return made, half

    def _learn_intervals(
        self, measured: Any, found: Any, deviations: Any, coverage: float
    ) -> NDArray[np.float64]:
        """Half the width of the interval around each row's prediction, in units of the target."""
        assert self.intervals is not None
        if measured.ndim == 1:
            errors = measured[:, None] - found[:, :, 0]
            return self.intervals.learn(errors, deviations, coverage)[:, 0]
        errors = (measured[:, None] - found) / deviations[:, None]
        flat, same = errors.reshape(len(errors), -1), np.ones(len(errors))
        halves = self.intervals.learn(flat, same, coverage).reshape(errors.shape)
        return deviations * halves[:, 0]  # type: ignore[no-any-return]

    @one_thread()
    def predict(
        self, rows: Rows, following: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of any rows, or of the next of the stream: probabilities, or numbers; and deviations.

        Returns (n, outputs) and (n,), the latter as the experts expect them, in the target's units;
        of several targets (n, outputs).
        """
        n, outputs = count_rows(rows), self.experts.outputs
        each = () if self.targets is None else self.targets.shape
        out, deviations = np.empty((n, outputs)), np.empty((n, *each))
        block = max(1, 2**18 // (self.experts.experts * outputs))
        for first in range(0, n, block):
            end = min(n, first + block)
            part = self.rows.measure(slice_rows(rows, first, end), learning=False)
            made, deviations[first:end] = self._run(part, _NOTHING, np.ones(end - first))
            out[first:end] = made[:, 0 if following else -1]
        if self.targets is not None:
            out = self.targets.restore(out)
            deviations *= self.targets.unit
        return out, deviations

    def predict_first(self, row: Rows) -> NDArray[np.float64]:
        """(1, outputs): of the next row, in units that have followed it, as when it is learned."""
        before = self.rows.columns
        self.rows.columns = type(before)(*(part.copy() for part in before))
        try:
            self.rows.measure(row, learning=True)
            return self.predict(row, following=True)[0]
        finally:
            self.rows.columns = before

    def half_width(self, coverage: float, following: bool = False) -> Any:
        """Half of an interval around a prediction, in deviations; infinite before it is known.

        Of several targets (outputs,).
        """
        if self.intervals is None or not self.intervals.state.rows[0]:
            return np.inf
        outputs, held = self.experts.outputs, self.intervals
        if following:
            halves = [held.half_width(c, coverage) for c in range(outputs)]
        else:
            last = range(len(held.state.scale))[-outputs:]
            halves = [held.half_width_apart(c, coverage) for c in last]
        return halves[0] if outputs == 1 else np.array(halves)

    def add_class(self, place: int) -> None:
        """Room for one more class at ``place``."""
        self.experts.add_output(place)
