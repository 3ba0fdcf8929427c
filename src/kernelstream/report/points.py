"""The stored points that count most, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelstream.report.charts import three_digits

MOST_POINTS = 15
MOST_ENTRIES = 5


@dataclass(frozen=True)
class Point:
    """A stored point: what it votes for, how strongly, and its largest entries."""

    vote: str
    weight: str
    share: float  # of the sum of all weights' sizes, in percent
    entries: list[tuple[str, str]]
    more: int  # entries that are not zero and not shown


def influential_points(model: Any, names: Sequence[str]) -> list[Point]:
    """The stored points with the largest weights, at most 15, largest first.

    The size of a point's weight is its absolute value, or with several outputs the norm of its
    weights.

    Examples
    --------
    >>> from kernelstream import POLKRegressor
    >>> from kernelstream.report.points import influential_points
    >>> model = POLKRegressor().partial_fit([[0.0, 3.0]], [1.0])
    >>> influential_points(model, ["height", "width"])[0].entries
    [('width', '3.00')]
    """
    weights = np.asarray(model.dual_coef_)
    sizes = np.linalg.norm(weights, axis=0)
    total = sizes.sum() or 1.0
    points = model.dictionary_
    chosen = np.argsort(-sizes, kind="stable")[:MOST_POINTS]
    return [
        Point(
            *_vote(model, weights[:, number]),
            100.0 * float(sizes[number] / total),
            *_largest_entries(points[number], names),
        )
        for number in chosen.tolist()
    ]


def _vote(model: Any, weights: Any) -> tuple[str, str]:
    """What a point speaks for where the kernel is positive, and with which weight."""
    if not hasattr(model, "classes_"):
        return ("higher" if weights[0] > 0.0 else "lower"), three_digits(float(weights[0]))
    labels = model.classes_
    if len(labels) == 1:
        return str(labels[0]), three_digits(float(weights[0]))
    if len(weights) == 1:
        return str(labels[int(weights[0] > 0.0)]), three_digits(abs(float(weights[0])))
    strongest = int(np.argmax(weights))
    return str(labels[strongest]), three_digits(float(weights[strongest]))


def _largest_entries(point: Any, names: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    sizes = np.abs(point)
    used = int(np.count_nonzero(sizes))
    largest = np.argsort(-sizes, kind="stable")[: min(MOST_ENTRIES, used)]
    entries = [(names[number], three_digits(float(point[number]))) for number in largest.tolist()]
    return entries, used - len(entries)
