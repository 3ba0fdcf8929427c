"""Several targets of numbers, each in a unit of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.models._auto._units import TargetUnits


class SeveralUnits:
    """:class:`TargetUnits` of each column, with the same methods: arrays where it has numbers.

    A column whose targets were all the same so far counts as it is, as soon as another one differs.
    """

    def __init__(self, targets: int) -> None:
        self.columns = [TargetUnits() for _ in range(targets)]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the targets of a row."""
        return (len(self.columns),)

    @property
    def count(self) -> float:
        return self.columns[0].count

    @property
    def scale(self) -> float:
        """0: no column has had two targets that differ."""
        return max(column.scale for column in self.columns)

    @property
    def unit(self) -> NDArray[np.float64]:
        """(q,) that measured targets are multiplied by."""
        return np.array([column.unit for column in self.columns])

    @property
    def center(self) -> NDArray[np.float64]:
        """(q,) that is added then."""
        return np.array([column.center for column in self.columns])

    def follow(self, targets: NDArray[np.float64]) -> None:
        """Statistics after more targets."""
        for column, numbers in zip(self.columns, targets.T, strict=True):
            column.follow(numbers)

    def refit(self) -> tuple[Any, Any]:
        """Use the statistics so far: shifts and stretches of what was measured before."""
        shifts, stretches = zip(*(column.refit() for column in self.columns), strict=True)
        return np.array(shifts), np.array(stretches)

    def is_off(self) -> bool:
        """Whether the unit of a column is far from its targets of late."""
        return any(column.is_off() for column in self.columns)

    def measure(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """In units."""
        parts = zip(self.columns, targets.T, strict=True)
        return np.column_stack([column.measure(numbers) for column, numbers in parts])

    def restore(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        parts = zip(self.columns, numbers.T, strict=True)
        return np.column_stack([column.restore(each) for column, each in parts])

    def to_list(self) -> list[list[float]]:
        return [column.to_list() for column in self.columns]

    @classmethod
    def from_list(cls, lists: Any, targets: int) -> SeveralUnits:
        """What :meth:`to_list` gave; ValueError if it cannot be that."""
        if not isinstance(lists, list) or len(lists) != targets:
            raise ValueError("the units are not those of all targets")
        result = cls(0)
        result.columns = [TargetUnits.from_list(numbers) for numbers in lists]
        return result


def units_for(targets: int) -> TargetUnits | SeveralUnits:
    """Of one target of numbers, or of several."""
    return TargetUnits() if targets == 1 else SeveralUnits(targets)


def read_units(numbers: Any, targets: int) -> TargetUnits | SeveralUnits:
    """What ``to_list`` of such units gave; ValueError if it cannot be that."""
    if targets == 1:
        return TargetUnits.from_list(numbers)
    return SeveralUnits.from_list(numbers, targets)
