"""How well features fit a stream over time, and where the stream changes."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Records kept; when there are more, two and two become one.
_MOST_RECORDS = 2000


class Change(NamedTuple):
    """A rise of the fit error."""

    sample: int  # at which it was noticed, counted from 1
    before: float  # mean of the errors it is compared with
    after: float  # mean of the latest errors


class RiseDetector:
    """Notices when fit errors rise: the stream has left the subspace that was learned.

    The mean of the last ``short`` errors is compared with the mean of up to ``long`` errors
    before them, at least ``short`` of them. A change is noticed when it is higher by
    ``deviations`` standard deviations of a single one of those errors. Then all errors so far
    are forgotten: the next change is one from the new state of things.

    Parameters
    ----------
    short, long : int, default=100 and 1000
        Errors compared, and errors they are compared with.
    deviations : float, default=0.5
        How much higher. For independent errors this is five deviations of the mean of 100; the
        errors of a real stream are not independent.

    Attributes
    ----------
    changes : list of Change
    seen : int

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.evaluation import RiseDetector
    >>> random = np.random.default_rng(0)
    >>> errors = np.concatenate([random.uniform(0.1, 0.3, 2000), random.uniform(0.4, 0.6, 500)])
    >>> detector = RiseDetector()
    >>> [change.sample for change in detector.update(errors)]
    [2013]
    """

    def __init__(self, short: int = 100, long: int = 1000, deviations: float = 0.5) -> None:
        if not 2 <= short <= long <= 1_000_000:
            raise ValueError(
                f"short and long must be from 2 to 1,000,000, and long not below short, got "
                f"{short!r} and {long!r}"
            )
        if not 0.0 < deviations < math.inf:
            raise ValueError(f"deviations must be a number > 0, got {deviations!r}")
        self.short = int(short)
        self.long = int(long)
        self.deviations = float(deviations)
        self.changes: list[Change] = []
        self.seen = 0
        self._latest = np.empty(0)  # since the last change, at most short + long

    def update(self, errors: Any) -> list[Change]:
        """Take in the errors of the next samples; returns the changes among them.

        NaN stands for a sample without an error, and is passed over.
        """
        errors = np.asarray(errors, dtype=np.float64)
        found = []
        while len(errors):
            place = self._first_rise(errors)
            if place is None:
                self._remember(errors)
                break
            self._remember(errors[: place + 1])
            recent = self._latest[-self.short :]
            earlier = self._latest[: -self.short]
            found.append(Change(self.seen, float(earlier.mean()), float(recent.mean())))
            self._latest = np.empty(0)
            errors = errors[place + 1 :]
        self.changes.extend(found)
        return found

    def _remember(self, errors: NDArray[np.float64]) -> None:
        self.seen += len(errors)
        known = errors[np.isfinite(errors)]
        self._latest = np.concatenate([self._latest, known])[-(self.short + self.long) :]

    def _first_rise(self, errors: NDArray[np.float64]) -> int | None:
        """The first of the errors after which the rule holds."""
        known = np.flatnonzero(np.isfinite(errors))
        values = np.concatenate([self._latest, errors[known]])
        ends = np.arange(len(self._latest), len(values)) + 1  # errors there are after each new one
        middle = ends - self.short  # where the recent ones begin
        enough = middle >= self.short
        known, ends, middle = known[enough], ends[enough], middle[enough]
        if not len(ends):
            return None
        start = np.maximum(middle - self.long, 0)
        centre = values.mean()  # sums of squares of differences do not cancel
        sums = np.concatenate([[0.0], np.cumsum(values - centre)])
        squares = np.concatenate([[0.0], np.cumsum((values - centre) ** 2)])
        recent = (sums[ends] - sums[middle]) / self.short
        earlier = (sums[middle] - sums[start]) / (middle - start)
        spread = np.maximum((squares[middle] - squares[start]) / (middle - start) - earlier**2, 0.0)
        # Errors that are all the same have no deviation: a rise of a hundredth is none.
        least = 0.01 * np.abs(earlier + centre) + 1e-12
        risen = recent > earlier + self.deviations * np.maximum(np.sqrt(spread), least)
        return int(known[np.argmax(risen)]) if risen.any() else None


class FitTrace:
    """The record of learning features from a stream: fit errors, changes, updates, time.

    Whatever the length of the stream it holds at most 2,000 records: when there are more, two
    and two become one, and from then on a record covers twice as many samples.

    Parameters
    ----------
    every : int, default=100
        Samples of the first records.
    detector : RiseDetector, optional
        What looks for changes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.evaluation import FitTrace
    >>> trace = FitTrace(every=2)
    >>> trace.update(np.array([0.5, 0.3, 0.2, 0.2]), updated=3)
    []
    >>> trace.to_columns()["fit_error"]
    array([0.4, 0.2])
    """

    def __init__(self, every: int = 100, detector: RiseDetector | None = None) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every!r}")
        self.every = int(every)
        self.detector = RiseDetector() if detector is None else detector
        self._records: list[list[float]] = []  # sum of errors, errors, samples, updates, seconds
        self._open = [0.0] * 5
        self._total, self._count = 0.0, 0
        self._started = time.perf_counter()

    @property
    def changes(self) -> list[Change]:
        """The changes noticed."""
        return self.detector.changes

    @property
    def samples(self) -> int:
        """Samples taken in."""
        return self.detector.seen

    @property
    def mean(self) -> float:
        """The mean of all fit errors; NaN if there is none."""
        return self._total / self._count if self._count else math.nan

    @property
    def recent(self) -> float:
        """The mean of the latest fit errors: those of the last complete record and since."""
        last = [*self._records[-1:], self._open]
        count = sum(record[1] for record in last)
        return sum(record[0] for record in last) / count if count else math.nan

    def update(self, errors: Any, updated: float = 0.0) -> list[Change]:
        """Take in the errors of the next samples, of which so many were learned from.

        Returns the changes noticed among them.
        """
        errors = np.asarray(errors, dtype=np.float64)
        share = updated / max(len(errors), 1)
        first = 0
        while first < len(errors):
            end = min(len(errors), first + self.every - int(self._open[2]))
            part = errors[first:end]
            known = part[np.isfinite(part)]
            total = float(known.sum())
            for place, value in enumerate((total, len(known), end - first, share * (end - first))):
                self._open[place] += value
            self._total, self._count = self._total + total, self._count + len(known)
            if self._open[2] == self.every:
                self._close()
            first = end
        return self.detector.update(errors)

    def _close(self) -> None:
        self._open[4] = time.perf_counter() - self._started
        self._records.append(self._open)
        self._open = [0.0] * 5
        if len(self._records) > _MOST_RECORDS:
            pairs = zip(self._records[0::2], self._records[1::2], strict=False)
            odd = self._records[-1] if len(self._records) % 2 else None
            self._records = [
                [*(a + b for a, b in zip(one[:4], two[:4], strict=True)), two[4]]
                for one, two in pairs
            ]
            self._open = self._open if odd is None else odd
            self.every *= 2

    def to_columns(self) -> dict[str, NDArray[np.float64]]:
        """``samples`` so far, ``seconds``, ``fit_error`` of each stretch, ``mean_fit_error`` over
        all samples so far, and the share of samples ``censored`` in each stretch."""
        records = [*self._records, self._open] if self._open[2] else self._records
        table = np.array(records, dtype=np.float64).reshape(len(records), 5)
        totals, counts, samples, updates, seconds = table.T.copy()
        if len(records) > len(self._records):
            seconds[-1] = time.perf_counter() - self._started
        with np.errstate(invalid="ignore"):
            return {
                "samples": np.cumsum(samples),
                "seconds": seconds,
                "fit_error": totals / counts,
                "mean_fit_error": np.cumsum(totals) / np.cumsum(counts),
                "censored": 1.0 - updates / samples,
            }
