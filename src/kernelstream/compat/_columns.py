"""Features by name, which may appear and vanish, as columns that stay where they are."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.categories import HashedTexts
from kernelstream.errors import callers_level

#: Columns that features share when there are too many.
SHARED = 64
#: Values of texts that came once and are remembered: the oldest ones are forgotten.
ONCE = 1024
#: The first values of a text have columns at once, and others where at most this part of its rows
#: had new ones.
AT_ONCE, NEW = 16, 0.75


class Columns:
    """The columns of the features met so far: as they came, those of one sample sorted by name.

    So the order of a dict does not matter, not even in the last bit.

    A number is a column, and so is every value of a text: 1 where a row has it, else 0. Where the
    values of a text hardly ever come again, a new one waits until it does: identifiers are only
    noise. A number that a row lacks, or that is None or NaN, counts as the mean of those so far.

    There are never more than ``most`` columns, unless the first sample alone has more: the last 64
    are shared, by hash, by all features that come when the others are taken, and by the values of
    a text that has taken half of these. What finds no column at all is left out.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.room = most - SHARED  # of features with a column of their own
        self._hashed = HashedTexts(SHARED)
        self._shared: dict[int, int] = {}  # columns by hash
        self._values: dict[Hashable, int] = {}  # with columns of their own, of each text
        self._rows: dict[Hashable, tuple[int, int]] = {}  # of each text, and those with new values
        self._once: dict[Hashable, None] = {}  # values that wait, the oldest first
        self._told = False
        self._places: dict[Hashable, int] = {}
        self._counts: list[int] = []  # of numbers; 0 for values of texts
        self._means: list[float] = []  # of numbers; 0 for values of texts

    def __len__(self) -> int:
        return len(self._means)

    @property
    def nbytes(self) -> int:
        """What a column holds: a place, a count and a mean; of values that wait and texts less."""
        return 24 * len(self) + 8 * len(self._once) + 16 * len(self._rows)

    def learn(self, x: Mapping[Hashable, Any]) -> NDArray[np.float64]:
        """The row of the next sample; new features get columns."""
        found = _numbers(x)
        first = not len(self)
        texts = {(name, value) for name, value in x.items() if isinstance(value, str)}
        for name, _ in texts:
            rows, new = self._rows.get(name, (0, 0))
            self._rows[name] = rows + 1, new
        for key in sorted((key for key in found if key not in self._places), key=repr):
            has_room = first or self._has_room(key)
            if has_room and key in texts and self._waits(key):
                continue
            if has_room:
                self._places[key] = self._new_column()
                if isinstance(key, tuple):
                    self._values[key[0]] = self._values.get(key[0], 0) + 1
            else:
                self._share(key)
        if not len(self):  # a first sample of which nothing is known
            self._new_column()
        for key, value in found.items():
            place = self._places.get(key)
            if place is not None and not isinstance(key, tuple):
                self._counts[place] += 1
                self._means[place] += (value - self._means[place]) / self._counts[place]
        return self._row(found)

    def _waits(self, key: Any) -> bool:
        """Whether a value of a text, which has no column, must come again to have one."""
        if key in self._once:
            del self._once[key]
            return False
        waits, (rows, new) = self._names_rows(key[0]), self._rows[key[0]]
        self._rows[key[0]] = rows, new + 1
        if not waits:
            return False
        if len(self._once) == ONCE:
            del self._once[next(iter(self._once))]
        self._once[key] = None
        return True

    def _names_rows(self, text: Hashable) -> bool:
        """Whether hardly any value of a text comes again."""
        rows, new = self._rows.get(text, (0, 0))
        return new >= max(AT_ONCE, NEW * rows)

    def _new_column(self) -> int:
        self._counts.append(0)
        self._means.append(0.0)
        return len(self._means) - 1

    def _has_room(self, key: Hashable) -> bool:
        if isinstance(key, tuple) and self._values.get(key[0], 0) >= self.room // 2:
            return False
        return len(self._places) < self.room

    def _share(self, key: Hashable) -> None:
        bucket = self._bucket(key)
        if bucket not in self._shared and len(self) < self.most:
            self._shared[bucket] = self._new_column()
        if not self._told:
            self._told = True
            warnings.warn(self._advice(key), stacklevel=callers_level())

    def _bucket(self, key: Hashable) -> int:
        name, *value = key if isinstance(key, tuple) else (key,)
        return self._hashed.bucket("=".join(map(str, (name, *value))))

    def _advice(self, key: Hashable) -> str:
        what = f"feature {key!r}"
        if isinstance(key, tuple) and len(key) == 2:
            what = f"value {key[1]!r:.40} of the text {key[0]!r}"
        now = f"from here on new ones share {SHARED} columns"
        if not self._shared:
            now = "the first sample had so many, new ones are left out"
        return (
            f"there are too many features for a column each ({what} has none; this model takes "
            f"{self.most}): {now}. Leave out texts that say nothing, such as identifiers, and turn "
            "dates into numbers"
        )

    def row(self, x: Mapping[Hashable, Any]) -> NDArray[np.float64]:
        """The row of a sample to predict; features that are not known are left out."""
        return self._row(_numbers(x))

    def _row(self, found: Mapping[Hashable, float]) -> NDArray[np.float64]:
        row = np.array(self._means, dtype=np.float64)
        for key, value in found.items():
            if key in self._places:
                row[self._places[key]] = value
            elif self._shared and not (isinstance(key, tuple) and self._names_rows(key[0])):
                place = self._shared.get(self._bucket(key))
                if place is not None:
                    row[place] += value
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
