"""Features by name, which may appear and vanish, as columns that stay where they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Columns:
    """The columns of the features met so far: as they came, those of one sample sorted by name.

    So the order of a dict does not matter, not even in the last bit.

    A number is a column, and so is every value of a text: 1 where a row has it, else 0. A number
    that a row lacks, or that is None or NaN, counts as the mean of those so far.
    """

    def __init__(self) -> None:
        self._places: dict[Hashable, int] = {}
        self._counts: list[int] = []  # of numbers; 0 for values of texts
        self._means: list[float] = []  # of numbers; 0 for values of texts

    def __len__(self) -> int:
        return len(self._places)

    @property
    def nbytes(self) -> int:
        """What a column holds: a place, a count and a mean."""
        return 24 * len(self._places)

    def learn(self, x: Mapping[Hashable, Any]) -> NDArray[np.float64]:
        """The row of the next sample; new features get columns."""
        found = _numbers(x)
        for key in sorted((key for key in found if key not in self._places), key=repr):
            self._places[key] = len(self._places)
            self._counts.append(0)
            self._means.append(0.0)
        for key, value in found.items():
            place = self._places[key]
            if not isinstance(key, tuple):
                self._counts[place] += 1
                self._means[place] += (value - self._means[place]) / self._counts[place]
        return self._row(found)

    def row(self, x: Mapping[Hashable, Any]) -> NDArray[np.float64]:
        """The row of a sample to predict; features that are not known are left out."""
        return self._row(_numbers(x))

    def _row(self, found: Mapping[Hashable, float]) -> NDArray[np.float64]:
        row = np.array(self._means, dtype=np.float64)
        for key, value in found.items():
            if key in self._places:
                row[self._places[key]] = value
        return row


def _numbers(x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
    """Values by key: the name of a number, or (name, text)."""
    found: dict[Hashable, float] = {}
    for name, value in x.items():
        if isinstance(value, str):
            found[name, value] = 1.0
        elif isinstance(value, Real | np.bool_):
            if value == value:  # not NaN
                found[name] = float(value)
        elif value is not None:
            raise TypeError(
                f"feature {name!r} is a {type(value).__name__}: numbers, truth values and texts "
                "are taken; transform it, or leave it out"
            )
    return found
