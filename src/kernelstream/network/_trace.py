"""The course of a network's rounds, in a table of bounded length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.network._messages import Name, RoundRecord

#: Rows kept: at twice as many, neighbouring rows become one.
MOST_ROWS = 1000

#: Means over the rounds of a row; every other column says how things were at the row's end.
_MEANS = ("loss", "error", "disagreement", "violation")


class NetworkTrace:
    """What the agents recorded of their rounds; a row per round, later per 2, 4, 8 ... rounds."""

    def __init__(
        self, rows: Sequence[dict[str, float]] = (), every: int = 1, open: int = 0
    ) -> None:
        complete = len(rows) - open  # the last ``open`` are of single rounds
        self.rows = list(rows[:complete])
        self.every = every
        self._open = list(rows[complete:])

    def add(self, records: Mapping[Name, RoundRecord], totals: Mapping[str, float]) -> None:
        """One round of all agents; ``totals`` are sums over all rounds so far."""
        given = list(records.values())
        if not given:
            return
        differences = [value for record in given for value in record.differences.values()]
        violations = [value for record in given for value in record.violations.values()]
        multipliers = {
            f"multiplier {record.agent!r} {neighbour!r}": value
            for record in given
            for neighbour, value in record.multipliers.items()
        }
        row: dict[str, float] = {
            "round": given[0].round,
            **totals,
            "loss": _mean([record.loss for record in given if record.loss is not None]),
            "error": _mean([record.error for record in given if record.error is not None]),
            "disagreement": _mean(differences),
            "violation": _mean([max(0.0, value) for value in violations or differences]),
            "points": _mean([record.order for record in given]),
            **{f"points {record.agent!r}": record.order for record in given},
            "largest_multiplier": max(multipliers.values(), default=0.0),
            **multipliers,
        }
        self._open.append(row)
        if len(self._open) < self.every:
            return
        self.rows.append(_together(self._open))
        self._open = []
        if len(self.rows) >= 2 * MOST_ROWS:
            pairs = zip(self.rows[::2], self.rows[1::2], strict=True)
            self.rows = [_together(list(pair)) for pair in pairs]
            self.every *= 2

    def to_columns(self) -> dict[str, NDArray[np.float64]]:
        """The table as arrays; a row that is not complete yet is its last."""
        return _columns([*self.rows, *([_together(self._open)] if self._open else [])])

    def state(self) -> dict[str, NDArray[np.float64]]:
        """All that it holds: the complete rows, then the rounds of the one that is not."""
        return _columns([*self.rows, *self._open])

    @property
    def open(self) -> int:
        """Rounds of the row that is not complete yet."""
        return len(self._open)

    def frame(self) -> Any:
        """The table as a pandas data frame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "trace_ needs pandas: pip install 'kernelstream[cli]'; trace_columns() gives "
                "plain arrays"
            ) from error
        return pd.DataFrame(self.to_columns())


def _columns(rows: list[dict[str, float]]) -> dict[str, NDArray[np.float64]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {  # NaN: an agent of which the engine no longer hears
        name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in names
    }


def _mean(values: list[Any]) -> float:
    return float(sum(values) / len(values)) if values else float("nan")


def _together(rows: list[dict[str, float]]) -> dict[str, float]:
    row = dict(rows[-1])
    for name in _MEANS:
        row[name] = _mean([old[name] for old in rows if not np.isnan(old[name])])
    return row
