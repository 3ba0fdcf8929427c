"""Rows and targets in units that move with the stream."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.kernel import Rows
from kernelstream.core.units import (
    CONSTANT,
    FAR,
    FARTHEST_TARGET,
    ColumnUnits,
    follow_target,
    moving_units,
)
from kernelstream.rows import count_rows

#: Prepared numbers beyond count as this.
_LARGEST = 1e3
#: Experts that fit a function learn from targets within so many units: one far out would spoil it.
_NEAR_TARGET = 30.0
#: By so much the unit of a target changes at once: nothing that was learned outlives that.
_LARGEST_CHANGE = 1e30
#: Features beyond are folded into so many columns, 2^9.
WIDEST = 512


class RowUnits:
    """Rows as the experts take them: dense, in units, of bounded width.

    Stored points stay as they are when units move: expressing them again was worse on streams that
    drift.
    """

    def __init__(self, features: int, moving: bool) -> None:
        self.features, self.moving = features, moving
        self.width = min(features, WIDEST)
        self.columns = ColumnUnits(
            *np.zeros((len(ColumnUnits._fields), self.width if moving else 0))
        )

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.columns)

    def measure(self, rows: Rows, learning: bool) -> NDArray[np.float64]:
        """(n, width) rows; where ``learning`` the units follow each row first."""
        dense = self._dense(rows)
        if not self.moving:
            return np.clip(dense, -_LARGEST, _LARGEST)
        out = np.empty_like(dense)
        moving_units(self.columns, dense, learning, out)
        return out

    def measure_apart(self, rows: Rows) -> NDArray[np.float64]:
        """Rows that are not learned, as :meth:`measure`; in a constant column news are far out.

        There is no unit to measure them in, and where they are learned they are soon usual.
        """
        found = self.measure(rows, learning=False)
        constant = np.flatnonzero((self.columns.values > 0.0) & (self.columns.variance == 0.0))
        if len(constant):
            apart = self._dense(rows)[:, constant] - self.columns.mean[constant]
            found[:, constant] = FAR * np.sign(np.nan_to_num(apart))
        return found

    def _dense(self, rows: Rows) -> NDArray[np.float64]:
        n = count_rows(rows)
        if not rows.sparse and self.features == self.width:
            return rows.dense
        out = np.zeros((n, self.width))
        if rows.sparse:
            held = slice(rows.indptr[0], rows.indptr[-1])
            row = np.repeat(np.arange(n), np.diff(rows.indptr))
            column, values = rows.indices[held], rows.data[held]
        else:
            row, column = np.nonzero(rows.dense)
            values = rows.dense[row, column]
        if self.features > self.width:
            column, sign = _folded(column)
            values = values * sign
        np.add.at(out, (row, column), values)
        return out

    def spread(self, parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """(features,): what columns of measured rows have, divided among their features."""
        if self.features == self.width:
            return parts
        columns, _ = _folded(np.arange(self.features))
        counts = np.bincount(columns, minlength=self.width)
        found = (parts / np.maximum(counts, 1))[columns]
        return found / (found.sum() or 1.0)


def _folded(features: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The columns that many features share, and their random signs."""
    mixed = (features.astype(np.uint64) * np.uint64(0x9E3779B1)) & np.uint64(0xFFFFFFFF)
    sign = np.where(mixed & np.uint64(1 << 22), 1.0, -1.0)
    return (mixed >> np.uint64(23)).astype(np.int64), sign


def near(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Targets of numbers, in units, as functions are fitted to them."""
    return np.clip(targets, -_NEAR_TARGET, _NEAR_TARGET)


class TargetUnits:
    """Mean and deviation of a target of numbers, refitted at rows 1, 2, 4, 8, ..."""

    _NAMES = ("count", "mean", "variance", "center", "scale", "far")

    def __init__(self) -> None:
        self.count = self.mean = self.variance = self.far = 0.0
        self.center = self.scale = 0.0  # in use; scale 0: all targets were the same so far

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the target of a row."""
        return ()

    @property
    def unit(self) -> float:
        """That measured targets are multiplied by."""
        return self.scale or 1.0

    def follow(self, targets: NDArray[np.float64]) -> None:
        """Statistics after more targets."""
        targets = np.ascontiguousarray(targets, dtype=np.float64)
        self.count, self.mean, self.variance, self.far = follow_target(
            self.count, self.mean, self.variance, self.far, targets
        )

    def refit(self) -> tuple[float, float]:
        """Use the statistics so far: shift and stretch of what was measured before."""
        center, scale = self.mean, math.sqrt(self.variance)
        if scale <= CONSTANT * abs(center):
            scale = self.scale  # the same value for long: the unit of before will do
        before, after = self.scale or 1.0, scale or 1.0
        shift, stretch = (self.center - center) / before, before / after
        self.center, self.scale = center, scale
        most = _LARGEST_CHANGE
        return min(most, max(-most, shift)), min(most, max(1.0 / most, stretch))

    def is_off(self) -> bool:
        """Whether the unit in use is far from the targets of late."""
        apart = abs(self.mean - self.center)
        return math.sqrt(self.variance) > 3.0 * self.scale or apart > 3.0 * self.scale

    def measure(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """In units; what is far out counts as much as the farthest that a mixture can take.

        The expert of the last value may have a share as small as a thousandth when it predicts such
        a one again.
        """
        return np.clip((targets - self.center) / self.unit, -FARTHEST_TARGET, FARTHEST_TARGET)

    def restore(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return numbers * self.unit + self.center

    def to_list(self) -> list[float]:
        return [getattr(self, name) for name in self._NAMES]

    @classmethod
    def from_list(cls, numbers: Any) -> TargetUnits:
        result = cls()
        if len(numbers) == len(cls._NAMES) - 1:  # of earlier versions
            numbers = [*numbers, 0.0]
        if len(numbers) != len(cls._NAMES) or not all(type(n) is float for n in numbers):
            raise ValueError("the units of the target are not numbers")
        for name, number in zip(cls._NAMES, numbers, strict=True):
            setattr(result, name, number)
        signless = (result.count, result.variance, result.scale, result.far)
        if not np.isfinite(numbers).all() or min(signless) < 0:
            raise ValueError("the units of the target are out of range")
        return result
