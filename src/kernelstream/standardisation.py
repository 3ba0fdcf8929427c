"""Mean and deviation of a stream's numbers so far, and numbers in such units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.units import ColumnUnits, moving_means, moving_units
from kernelstream.limits import LARGEST_ENTRY

#: Standardised values beyond are cut off. Far enough that a stream may drift for ever without
#: being flattened, near enough that k(x, x) of a polynomial kernel stays in range.
FARTHEST = 1e6

LARGEST_WARM_UP = 1_000_000


class Running:
    """Mean and variance of some columns over the rows so far (Welford); NaN is skipped.

    Never changed in place: :meth:`follow` returns the statistics after more rows.
    """

    def __init__(self, width: int) -> None:
        self.rows = 0
        self.count = np.zeros(width)  # (width,) entries that were not missing
        self.mean = np.zeros(width)
        self.squares = np.zeros(width)  # sums of squared differences from the mean

    @property
    def deviation(self) -> NDArray[np.float64]:
        """(width,) standard deviation; 0 where all values were the same, or none came."""
        return _deviation(self.count, self.squares)

    def follow(
        self, table: NDArray[np.float64]
    ) -> tuple[Running, NDArray[np.float64], NDArray[np.float64]]:
        """Statistics after the rows of a (width, n) table, and on the way.

        Returns
        -------
        after : Running
        means, deviations : (width, n) arrays
            After each row.
        """
        width, n = table.shape
        count, mean, squares = self.count.copy(), self.mean.copy(), self.squares.copy()
        counts, means, sums = np.empty((3, n, width))
        for row, values in enumerate(np.ascontiguousarray(table.T)):
            present = values == values
            count += present
            change = np.where(present, values - mean, 0.0)
            mean += change / np.maximum(count, 1.0)
            squares += change * np.where(present, values - mean, 0.0)
            counts[row], means[row], sums[row] = count, mean, squares
        after = Running(width)
        after.rows, after.count, after.mean, after.squares = self.rows + n, count, mean, squares
        return after, means.T, _deviation(counts, sums).T

    def to_arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """What a file holds of it."""
        return {
            f"{prefix}rows": np.array(self.rows),
            f"{prefix}count": self.count,
            f"{prefix}mean": self.mean,
            f"{prefix}squares": self.squares,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], prefix: str, width: int) -> Self:
        """Read it back; ValueError if it cannot be what was written."""
        try:
            rows, count, mean, squares = (
                arrays[f"{prefix}{name}"] for name in ("rows", "count", "mean", "squares")
            )
        except KeyError as missing:
            raise ValueError(f"the running statistics lack {missing}") from None
        if rows.shape != () or rows.dtype != np.int64 or not 0 <= rows <= LARGEST_WARM_UP:
            raise ValueError("the running statistics have no valid number of rows")
        for part, most in ((count, rows), (mean, LARGEST_ENTRY), (squares, np.inf)):
            if part.shape != (width,) or part.dtype != np.float64 or not np.isfinite(part).all():
                raise ValueError("the running statistics contradict the columns")
            if (np.abs(part) > most).any():
                raise ValueError("the running statistics are out of range")
        if (count < 0.0).any() or (count % 1.0).any() or (squares < 0.0).any():
            raise ValueError("the running statistics are out of range")
        result = cls(width)
        result.rows, result.count, result.mean, result.squares = int(rows), count, mean, squares
        return result


def _deviation(count: Any, squares: Any) -> Any:
    return np.sqrt(squares / np.maximum(count, 1.0))


def standardise(
    table: NDArray[np.float64], mean: NDArray[np.float64], deviation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(x - mean) / deviation, at most ``FARTHEST`` from 0; NaN stays.

    Without deviation there is no unit to measure in: any other value is then -1 or 1.
    """
    constant = deviation == 0.0
    result = table - mean
    with np.errstate(over="ignore"):  # cut off at once
        result /= np.where(constant, np.nextafter(0.0, 1.0), deviation)
    farthest = np.where(constant, 1.0, FARTHEST)
    np.minimum(result, farthest, out=result)
    return np.maximum(result, -farthest, out=result)


class FrozenUnits:
    """Columns in deviations from their mean over the first ``warm_up`` rows, frozen then.

    Never changed in place, like :class:`Running`.
    """

    def __init__(self, width: int, warm_up: int, standardise: bool) -> None:
        self.running = Running(width)
        self.warm_up, self.standardise = warm_up, standardise

    @property
    def rows(self) -> int:
        """Rows that the units were taken from."""
        return self.running.rows

    @property
    def frozen(self) -> bool:
        """Whether the warm-up is over."""
        return self.rows >= self.warm_up

    def measure(
        self, table: NDArray[np.float64], learn: bool
    ) -> tuple[NDArray[np.float64], FrozenUnits]:
        """A (width, n) table in units, missing values filled in, and the units after it."""
        running, numbers = self.running, np.empty_like(table)
        warm = min(table.shape[1], self.warm_up - self.rows) if learn else 0
        if warm > 0:
            running, means, deviations = running.follow(table[:, :warm])
            numbers[:, :warm] = self._scaled(table[:, :warm], means, deviations)
        if warm < table.shape[1]:
            mean, deviation = running.mean[:, None], running.deviation[:, None]
            numbers[:, warm:] = self._scaled(table[:, warm:], mean, deviation)
        after = FrozenUnits(0, self.warm_up, self.standardise)
        after.running = running
        return numbers, after

    def _scaled(self, table: Any, mean: Any, deviation: Any) -> NDArray[np.float64]:
        if self.standardise:
            result = standardise(table, mean, deviation)
            return np.nan_to_num(result, copy=False, nan=0.0)
        return np.where(np.isnan(table), mean, table)

    def held(self) -> FrozenUnits:
        """The same, frozen as they are."""
        result = FrozenUnits(0, self.rows, self.standardise)
        result.running = self.running
        return result

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds of them."""
        return self.running.to_arrays("")

    def restore(self, arrays: Mapping[str, NDArray[Any]], width: int) -> Self:
        """Read them back; ValueError if they cannot be what was written."""
        self.running = Running.from_arrays(arrays, "", width)
        if self.rows > self.warm_up:
            raise ValueError("the warm-up is longer than it may be")
        return self


class MovingUnits:
    """Columns in units that follow the stream, unless they are ``frozen``.

    Never changed in place.
    """

    def __init__(self, width: int, standardise: bool, frozen: bool = False) -> None:
        self.columns = ColumnUnits(*np.zeros((len(ColumnUnits._fields), width)))
        self.rows = 0
        self.standardise, self.frozen = standardise, frozen

    def measure(
        self, table: NDArray[np.float64], learn: bool
    ) -> tuple[NDArray[np.float64], MovingUnits]:
        """A (width, n) table in units, missing values filled in, and the units after it."""
        rows = np.ascontiguousarray(table.T)
        numbers = np.empty_like(rows)
        after = self.held(frozen=self.frozen)
        learn = learn and not self.frozen
        if learn:
            after.rows += len(rows)
        (moving_units if self.standardise else moving_means)(after.columns, rows, learn, numbers)
        return numbers.T, after

    def held(self, frozen: bool = True) -> MovingUnits:
        """The same, frozen as they are."""
        result = MovingUnits(0, self.standardise, frozen)
        result.columns = ColumnUnits(*(part.copy() for part in self.columns))
        result.rows = self.rows
        return result

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds of them."""
        return {"rows": np.array(self.rows), **self.columns._asdict()}

    def restore(self, arrays: Mapping[str, NDArray[Any]], width: int) -> Self:
        """Read them back; ValueError if they cannot be what was written."""
        try:
            rows, *parts = (arrays[name] for name in ("rows", *ColumnUnits._fields))
        except KeyError as missing:
            raise ValueError(f"the running statistics lack {missing}") from None
        if rows.shape != () or rows.dtype != np.int64 or not 0 <= rows < 2**53:
            raise ValueError("the running statistics have no valid number of rows")
        mean, squares = 2.0 * LARGEST_ENTRY, 9.0 * LARGEST_ENTRY**2  # with room for rounding
        most = (rows, mean, squares, 1.0, squares, LARGEST_ENTRY, LARGEST_ENTRY, 1e3, 1e3)
        for part, largest in zip(parts, most, strict=True):
            if part.shape != (width,) or part.dtype != np.float64 or not np.isfinite(part).all():
                raise ValueError("the running statistics contradict the columns")
            if (np.abs(part) > largest).any():
                raise ValueError("the running statistics are out of range")
        values, _, variance, filled, power, *_ = parts
        if min(part.min(initial=0.0) for part in (values, variance, filled, power)) < 0.0:
            raise ValueError("the running statistics are out of range")
        if (values % 1.0).any():
            raise ValueError("the running statistics are out of range")
        self.columns, self.rows = ColumnUnits(*(part.copy() for part in parts)), int(rows)
        return self
