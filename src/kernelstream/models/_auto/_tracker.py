"""What a tracker has learned: units, and one group of points with one expert of second order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.tracker import tracker_pass
from kernelstream.core.kernel import Rows
from kernelstream.core.threads import one_thread
from kernelstream.models._auto._files import fill, group_arrays, group_header, read_group
from kernelstream.models._auto._group import Group, as_columns
from kernelstream.models._auto._intervals import Intervals
from kernelstream.models._auto._learning import UnitState
from kernelstream.models._auto._several import read_units
from kernelstream.models._auto._units import RowUnits, near
from kernelstream.parts import Arrays, part_of, prefixed

#: Kernel values computed at once when functions are evaluated: they stay in cache.
_BLOCK = 1 << 15


class Tracker:
    """One expert of second order on a bounded dictionary.

    Parameters
    ----------
    group : Group
        Without experts of first order.
    forget : float
        What is left of the past after a row.
    noise : float
        Variance of the noise; 0: learned along.
    learn_scales : bool
    """

    experts = 1

    def __init__(self, group: Group, forget: float, noise: float, learn_scales: bool) -> None:
        self.group = group
        self.follow(forget, noise)
        self.learn_scales = learn_scales
        self._set_interval()

    def follow(self, forget: float, noise: float) -> None:
        """Parameters from now on."""
        self.forget, self.noise = forget, noise

    def _set_interval(self) -> None:
        if not self.learn_scales:
            self.group.state.status["interval"] = 0

    @property
    def outputs(self) -> int:
        return self.group.outputs

    @property
    def nbytes(self) -> int:
        return self.group.nbytes

    @property
    def order(self) -> int:
        return self.group.order

    @property
    def seen(self) -> int:
        return self.group.age

    def room(self) -> int:
        """Rows until something happens between passes."""
        return min((1 << self.seen.bit_length()) - self.seen, max(1, 2**18 // self.outputs))

    def run(self, rows: Any, targets: Any, weights: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predictions (n, 1, outputs) and deviations (n,), of several targets (n, outputs).

        Learns where there are targets.
        """
        state = self.group.state
        several = len(state.noises) > 0
        noises = state.noises if several else state.status["noise"].copy()
        out = np.empty((len(rows), 1, self.outputs))
        deviations = np.empty((len(rows), len(noises)))
        tracker_pass(
            state, self.forget, self.noise, noises, self.outputs, rows, as_columns(targets),
            weights, out, deviations,
        )  # fmt: skip
        if len(targets) and self.seen & (self.seen - 1) == 0:
            self.group.renew(kept=1.0)  # forgetting is all that makes it less certain
        return out, deviations if several else deviations[:, 0]

    def change_units(self, shift: Any, stretch: Any) -> None:
        """Targets are now (y + shift) * stretch of what they were; of several, arrays."""
        self.group.change_units(shift, stretch)
        noises = self.group.state.noises
        if len(noises):
            self.group.state.status["noise"] = noises.mean()

    def add_output(self, place: int) -> None:
        """Room for one more class, at ``place``."""
        self.group.add_output(place)
        self._set_interval()


class TrackerState(UnitState):
    """Units of rows and targets, and the tracker that learns in them."""

    experts: Tracker

    def __init__(self, features: int, numbers: bool, moving: bool, tracker: Tracker) -> None:
        super().__init__(features, numbers, moving, tracker, 1)

    @staticmethod
    def nbytes_for(features: int, outputs: int, numbers: bool, most: int) -> int:
        """The most bytes that a state ever holds, in closed form."""
        errors = Intervals.nbytes_for(outputs) if numbers else 0
        group = Group.nbytes_for(features, outputs, numbers, most, False, 0)
        return group + 72 * features + errors

    def _run(self, rows: Any, targets: Any, weights: Any) -> tuple[Any, Any]:
        return self.experts.run(rows, targets if self.targets is None else near(targets), weights)

    @one_thread()
    def means(self, rows: Rows) -> NDArray[np.float64]:
        """(n, outputs): the functions alone, as sums over the points' kernels.

        Their deviations take most of the time of :meth:`predict`. Of numbers these are the
        predictions, but for rounding.
        """
        group = self.experts.group
        state, n, width = group.state, group.order, self.rows.width
        gamma, amplitude = float(state.status[0]["gamma"]), float(state.status[0]["amplitude"])
        functions = group.coefficients().T
        measured = self.rows.measure(rows, learning=False)
        # -gamma |z - z'|^2 as one product: 2 gamma z.z' - gamma |z|^2 - gamma |z'|^2.
        left, right = np.ones((len(measured), width + 2)), np.ones((width + 2, n))
        np.multiply(measured, 2.0 * gamma * state.scales, out=left[:, :width])
        left[:, width] = -gamma * (np.square(measured) @ state.scales)
        right[:width] = state.points[:, :n]
        right[-1] = -gamma * state.norms[:n]
        values = np.empty((len(left), group.outputs))
        block = max(1, _BLOCK // max(1, n))
        for first in range(0, len(left), block):
            exponents = np.minimum(left[first : first + block] @ right, 0.0)
            values[first : first + block] = np.exp(exponents, out=exponents) @ functions
        values *= amplitude
        values += functions.sum(axis=0)
        return values if self.targets is None else self.targets.restore(values)  # type: ignore[no-any-return]

    # ---- files ------------------------------------------------------------------------

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The state as plain numbers and arrays."""
        header = {
            "moving": self.rows.moving,
            "target": None if self.targets is None else self.targets.to_list(),
            "outputs": self.experts.outputs,
            "group": group_header(self.experts.group),
        }
        arrays = prefixed("units_", {k: v.copy() for k, v in self.rows.columns._asdict().items()})
        arrays |= prefixed("group_", group_arrays(self.experts.group))
        if self.intervals is not None:
            arrays |= prefixed("intervals_", self.intervals.to_arrays())
        return header, arrays

    @classmethod
    def from_document(
        cls, header: Mapping[str, Any], arrays: Mapping[str, Any], features: int, forget: float,
        noise: float, learn_scales: bool,
    ) -> TrackerState:  # fmt: skip
        """The state behind :meth:`to_document`; ValueError if it cannot be one."""
        numbers, outputs = header["target"] is not None, header["outputs"]
        own, note = part_of("group_", dict(arrays)), header["group"]
        if "noises" in arrays:  # files of before
            own["noises"] = arrays["noises"]
        width, most = RowUnits(min(features, 2**24), False).width, note["status"]["most"]
        if type(header["moving"]) is not bool:
            raise ValueError("the state's settings are out of range")
        # Before anything of that size is made.
        weights = own["weights"]
        if type(outputs) is not int or weights.ndim != 2 or len(weights) != outputs:
            raise ValueError("the number of outputs contradicts the state")
        if own["points"].ndim != 2 or len(own["points"]) != width:
            raise ValueError("the number of features contradicts the state")
        if type(most) is not int or not 1 <= most <= 10_000:
            raise ValueError("the size of the state is out of range")
        group = read_group(width, outputs, numbers, (most,), (), note, own)
        result = cls(
            features, numbers, header["moving"], Tracker(group, forget, noise, learn_scales)
        )
        fill(result.rows.columns._asdict(), part_of("units_", dict(arrays)))
        if numbers:
            result.targets = read_units(header["target"], outputs)
            result.intervals = Intervals.from_arrays(part_of("intervals_", dict(arrays)), outputs)
        return result
