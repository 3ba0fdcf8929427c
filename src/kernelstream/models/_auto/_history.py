"""What an automatic model did so far: shares of its experts, and when it was surprised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.surprise import WATCH_STATUS, watch

#: Records kept: when there are more, every second one goes.
MOST_RECORDS = 128
#: Marks kept, the last ones.
MOST_MARKS = 50
#: Numbers of a record: how it describes three groups, then shares.
GROUPS = 3
KINDS = ("linear", "linear with the last target", "last targets", "level")
WIDTH = 3 * GROUPS + len(KINDS)
#: Rows between two records at the beginning.
FIRST = 256


class History:
    """A bounded record of the shares, written at fixed rows, and marks of sudden bad predictions.

    Record i is of row (i + 1) * every: per group its length scale (0 where there is none,
    negative for a full metric), the share of its second-order expert and that of the others, then
    shares of the other kinds of experts.
    """

    def __init__(self) -> None:
        self.every = FIRST
        self.count = 0
        self.records = np.zeros((MOST_RECORDS, WIDTH), np.float32)
        self.status = np.zeros(1, WATCH_STATUS)
        self.marks: NDArray[np.int64] = np.zeros(0, np.int64)
        self.all_marks = 0

    @staticmethod
    def nbytes_for() -> int:
        """The most bytes that it holds."""
        return 4 * MOST_RECORDS * WIDTH + 8 * MOST_MARKS + WATCH_STATUS.itemsize

    @property
    def nbytes(self) -> int:
        return self.records.nbytes + self.status.nbytes + self.marks.nbytes

    def is_due(self, seen: int) -> bool:
        return seen % self.every == 0

    def append(self, record: NDArray[np.float64], seen: int) -> None:
        """Add the record of a row at which one is due."""
        if self.count == MOST_RECORDS:
            self.every *= 2
            self.count = MOST_RECORDS // 2
            self.records[: self.count] = self.records[1::2]  # those at multiples of the new pace
            self.records[self.count :] = 0.0
            if not self.is_due(seen):
                return
        self.records[self.count] = record
        self.count += 1

    def follow(self, errors: NDArray[np.float64], numbers: bool, seen: int) -> None:
        """Watch the errors of rows after ``seen`` others."""
        places = np.empty(len(errors), np.int64)
        count = watch(self.status, numbers, errors, places)
        if count:
            self.marks = np.append(self.marks, seen + 1 + places[:count])[-MOST_MARKS:]
            self.all_marks += count

    def change_units(self, stretch: float) -> None:
        """Errors of numbers are now ``stretch`` times what they were."""
        scale = self.status["scale"] * min(stretch, 1e100) ** 2
        self.status["scale"] = np.where(scale > 0.0, np.clip(scale, 1e-12, 1e8), 0.0)

    # ---- files ------------------------------------------------------------------------

    def to_document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header = {
            "every": self.every,
            "marks": self.all_marks,
            "watch": {name: self.status[0][name].item() for name in WATCH_STATUS.names or ()},
        }
        return header, {"records": self.records[: self.count].copy(), "marks": self.marks.copy()}

    @classmethod
    def from_document(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], seen: int
    ) -> History:
        """What :meth:`to_document` gave; ValueError if it cannot be that."""
        result, every = cls(), header["every"]
        records, marks = arrays["records"], arrays["marks"]
        whole = (every, header["marks"], header["watch"]["seen"], header["watch"]["rows"])
        if not all(type(number) is int and 0 <= number < 2**62 for number in whole):
            raise ValueError("the numbers of the history are out of range")
        if every < FIRST or every % FIRST or (every // FIRST) & (every // FIRST - 1):
            raise ValueError("the pace of the history is none")
        if (
            seen // every > MOST_RECORDS
            or records.shape != (seen // every, WIDTH)
            or (records.dtype != np.float32 or not np.isfinite(records).all())
        ):
            raise ValueError("the records of the history contradict the state")
        if (
            marks.dtype != np.int64
            or marks.shape != (min(header["marks"], MOST_MARKS),)
            or ((np.diff(marks) <= 0).any() or (marks < 1).any() or (marks > seen).any())
        ):
            raise ValueError("the marks of the history contradict the state")
        for name in ("fast", "slow", "variance", "scale"):
            value = header["watch"][name]
            if type(value) is not float or not 0.0 <= value < np.inf:
                raise ValueError(f"{name} is not a number that a history can hold")
            result.status[name] = value
        for name in ("seen", "rows"):
            result.status[name] = header["watch"][name]
        result.every, result.count, result.all_marks = every, len(records), header["marks"]
        result.records[: result.count] = records
        result.marks = marks.copy()
        return result
