"""Intervals around predicted numbers, as a part of a state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from kernelstream.core.experts.intervals import (
    LARGEST,
    WIDEST,
    IntervalState,
    half_width,
    interval_pass,
)
from kernelstream.parts import Arrays

#: Errors that are remembered.
ROOM = 256
#: Errors at the beginning: quantiles of a normal distribution whose mean size is one.
_FIRST = 16
#: Deviation of normal errors whose mean size is one.
NORMAL = math.sqrt(0.5 * math.pi)


class Intervals:
    """Latest errors of some predictors of one stream."""

    def __init__(self, predictors: int) -> None:
        first = NORMAL * special.ndtri(0.5 + (np.arange(_FIRST) + 0.5) / (2 * _FIRST))
        latest = np.zeros((predictors, ROOM))
        latest[:, :_FIRST] = first
        self.state = IntervalState(
            np.zeros(1, np.int64), np.array([_FIRST]), np.zeros(predictors), np.zeros(predictors),
            latest, latest.copy(), np.zeros((predictors, ROOM)),
        )  # fmt: skip

    @staticmethod
    def nbytes_for(predictors: int) -> int:
        """Bytes, in closed form."""
        return 16 + 8 * predictors * (2 + 3 * ROOM)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.state)

    def learn(self, errors: Any, deviations: Any, coverage: float) -> NDArray[np.float64]:
        """(n, predictors): half widths from just before each row's errors were learned."""
        out = np.empty_like(errors)
        interval_pass(self.state, np.abs(errors), deviations, coverage, out)
        return out

    def half_width(self, predictor: int, coverage: float) -> float:
        """Half of the next interval, in deviations."""
        return half_width(self.state, predictor, coverage)  # type: ignore[no-any-return]

    def half_width_apart(self, predictor: int, coverage: float) -> float:
        """Half of an interval around a row that is not the next to be learned, in deviations."""
        if self.state.held[0] < _FIRST + ROOM:
            return self.half_width(predictor, coverage)
        return float(np.quantile(self.state.errors[predictor], coverage, method="weibull"))

    def deviation(self, predictor: int) -> float:
        """Of the latest errors, in deviations, as if they were normal; infinite if unknown."""
        return NORMAL * float(self.state.scale[predictor]) if self.state.rows[0] else math.inf

    def change_units(self, stretch: Any) -> None:
        """Errors are now measured in other units; of several targets, an array."""
        stretches = np.resize(np.minimum(stretch, 1e100), len(self.state.scale))
        self.state.scale[:] *= stretches
        self.state.errors[:] = np.minimum(self.state.errors * stretches[:, None], 1e150)

    def to_arrays(self) -> Arrays:
        """What a file holds of it."""
        return {name: part.copy() for name, part in self.state._asdict().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], predictors: int) -> Intervals:
        """What :meth:`to_arrays` gave; ValueError if it cannot be that."""
        result = cls(predictors)
        if "errors" not in arrays:  # files of before: intervals are as wide as they were
            width = arrays["scale"] * np.exp(arrays["correction"])
            arrays = {**arrays, "errors": arrays["latest"] * width[:, None]}
        for name, part in result.state._asdict().items():
            array = arrays[name]
            if array.shape != part.shape or array.dtype != part.dtype:
                raise ValueError(f"the intervals' {name} contradict the other parts of the state")
            if not np.isfinite(array).all():
                raise ValueError(f"the intervals' {name} are not finite")
            part[...] = array
        state, rows = result.state, int(result.state.rows[0])
        held = min(int(state.held[0]), ROOM)
        scores = np.sort(state.latest[:, :held], axis=1)
        if not 0 <= rows < 2**62 or state.held[0] != _FIRST + max(0, rows - 1):
            raise ValueError("the intervals' counts are out of range")
        sizes = min(scores.min(), state.scale.min(), state.errors.min())
        if sizes < 0.0 or (scores > LARGEST).any():
            raise ValueError("the intervals' errors are out of range")
        if not np.array_equal(scores, state.ordered[:, :held]):
            raise ValueError("the intervals' errors are not in order")
        if (np.abs(state.correction) > WIDEST).any():
            raise ValueError("the intervals' correction is out of range")
        return result
