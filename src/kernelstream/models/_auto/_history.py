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
#: A mark is told if the means were so many times as far apart as usually: others are answered only.
#: Chosen by ``python -m benchmarks drifts``.
TOLD = 6.0
#: Numbers of a record: how it describes three groups, then shares.
GROUPS = 3
KINDS = ("linear", "linear with the last target", "trees", "similar rows", "last targets", "level")
#: Where those are that earlier files do not have.
_NEW = [3 * GROUPS + KINDS.index("trees")] * 2
WIDTH = 3 * GROUPS + len(KINDS)
#: Rows between two records at the beginning.
FIRST = 256
#: Numbers of the watch in a file.
_WATCHED = ("seen", "rows", "fast", "slow", "variance", "scale", "settled", "wiggle")


def in_other_units(scales: NDArray[np.float64], stretch: Any) -> NDArray[np.float64]:
    """Squared errors (..., targets), each ``stretch`` times as large; 0 stays unknown."""
    scales = scales * np.minimum(stretch, 1e100) ** 2
    return np.where(scales > 0.0, np.clip(scales, 1e-12, 1e8), 0.0)


def one_or_list(scales: NDArray[np.float64]) -> Any:
    """As files hold it: a number for one target."""
    return scales[0].item() if len(scales) == 1 else scales.tolist()


def read_scales(found: Any, targets: int) -> NDArray[np.float64]:
    """What :func:`one_or_list` gave; ValueError if it cannot be that."""
    numbers = [found] if targets == 1 else found
    if type(numbers) is not list or len(numbers) != targets:
        raise ValueError("the scales of the errors contradict the number of targets")
    if not all(type(number) is float and 0.0 <= number < np.inf for number in numbers):
        raise ValueError("the scales of the errors are out of range")
    return np.array(numbers)


class History:
    """A bounded record of the shares, written at fixed rows, and marks of sudden bad predictions.

    Record i is of row (i + 1) * every: per group its length scale (0 where there is none,
    negative for a full metric), the share of its second-order expert and that of the others, then
    shares of the other kinds of experts.
    """

    def __init__(self, targets: int = 1) -> None:
        self.every = FIRST
        self.count = 0
        self.records = np.zeros((MOST_RECORDS, WIDTH), np.float32)
        self.status = np.zeros(1, WATCH_STATUS)
        self.scales = np.zeros(targets)  # squared errors of numbers
        self.marks: NDArray[np.int64] = np.zeros(0, np.int64)
        self.strengths: NDArray[np.float64] = np.zeros(0)  # of those
        self.all_marks = 0
        self.all_told = 0

    @staticmethod
    def nbytes_for(targets: int = 1) -> int:
        """The most bytes that it holds."""
        held = 4 * MOST_RECORDS * WIDTH + 16 * MOST_MARKS + 8 * targets
        return held + WATCH_STATUS.itemsize

    @property
    def nbytes(self) -> int:
        marks = self.marks.nbytes + self.strengths.nbytes
        return self.records.nbytes + self.status.nbytes + self.scales.nbytes + marks

    @property
    def told(self) -> NDArray[np.int64]:
        """The marks that are worth a word."""
        return self.marks[self.strengths >= TOLD]

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
        """Watch the errors (n, targets) of rows after ``seen`` others."""
        places, strengths = np.empty(len(errors), np.int64), np.empty(len(errors))
        count = watch(self.status, self.scales, numbers, errors, places, strengths)
        if count:
            self.strengths = np.append(self.strengths, strengths[:count])[-MOST_MARKS:]
            self.all_told += int(np.count_nonzero(strengths[:count] >= TOLD))
            self.marks = np.append(self.marks, seen + 1 + places[:count])[-MOST_MARKS:]
            self.all_marks += count

    def change_units(self, stretch: Any) -> None:
        """Errors of numbers are now ``stretch`` times what they were; of several, an array."""
        self.scales[:] = in_other_units(self.scales, stretch)

    # ---- files ------------------------------------------------------------------------

    def to_document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header = {
            "every": self.every,
            "marks": self.all_marks,
            "told": self.all_told,
            "watch": {
                name: one_or_list(self.scales) if name == "scale" else self.status[0][name].item()
                for name in _WATCHED
            },
        }
        arrays: dict[str, NDArray[Any]] = {
            "records": self.records[: self.count],
            "marks": self.marks,
            "strengths": self.strengths,
        }
        return header, {name: array.copy() for name, array in arrays.items()}

    @classmethod
    def from_document(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], seen: int,
        targets: int = 1,
    ) -> History:  # fmt: skip
        """What :meth:`to_document` gave; ValueError if it cannot be that."""
        result, every = cls(targets), header["every"]
        records, marks = arrays["records"], arrays["marks"]
        if records.ndim == 2 and records.shape[1] == WIDTH - len(_NEW):
            records = np.insert(records, _NEW, 0.0, axis=1)
        # Files of before had no strengths: all of their marks are told.
        strengths = arrays.get("strengths", np.full(len(marks), TOLD))
        status = {"settled": 0, "wiggle": 0.0, **header["watch"]}
        counts = ("seen", "rows", "settled")
        told = header.get("told", header["marks"])
        whole = (every, header["marks"], told, *(status[name] for name in counts))
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
        if (
            strengths.dtype != np.float64
            or strengths.shape != marks.shape
            or not (strengths >= 0.0).all()
            or not np.count_nonzero(strengths >= TOLD) <= told <= header["marks"]
        ):
            raise ValueError("the strengths of the marks contradict the state")
        result.scales[:] = read_scales(status["scale"], targets)
        for name in ("fast", "slow", "variance", "wiggle"):
            value = status[name]
            if type(value) is not float or not 0.0 <= value < np.inf:
                raise ValueError(f"{name} is not a number that a history can hold")
            result.status[name] = value
        for name in counts:
            result.status[name] = status[name]
        result.every, result.count, result.all_marks = every, len(records), header["marks"]
        result.records[: result.count] = records
        result.marks, result.strengths, result.all_told = marks.copy(), strengths.copy(), told
        return result
