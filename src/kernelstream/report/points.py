"""The stored points that count most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_ENTRIES = 5


@dataclass(frozen=True)
class Point:
    """A stored point: what it votes for, how strongly, and its largest entries."""

    vote: Any  # a label, "higher" or "lower": where the kernel is positive
    weight: float  # for that
    size: float  # the norm of its weights, with one output their absolute value
    share: float  # of the sum of all sizes, in percent
    entries: list[tuple[str, float]]
    more: int  # entries that are not zero and not shown


def influential_points(model: Any, names: Sequence[str], most: int = 15) -> list[Point]:
    """The stored points with the largest weights, largest first.

    >>> from kernelstream import POLKRegressor
    >>> model = POLKRegressor().partial_fit([[0.0, 3.0]], [1.0])
    >>> influential_points(model, ["height", "width"])[0].entries
    [('width', 3.0)]
    """
    weights = np.asarray(model.dual_coef_)  # (outputs, M)
    sizes = np.linalg.norm(weights, axis=0)
    total = float(sizes.sum()) or 1.0
    points = []
    for number in np.argsort(-sizes, kind="stable")[:most].tolist():
        size, point = float(sizes[number]), model.dictionary_[number]
        used = int(np.count_nonzero(point))
        largest = np.argsort(-np.abs(point), kind="stable")[: min(MOST_ENTRIES, used)].tolist()
        entries = [(str(names[place]), float(point[place])) for place in largest]
        vote, weight = _vote(model, weights[:, number])
        points.append(Point(vote, weight, size, 100.0 * size / total, entries, used - len(entries)))
    return points


def _vote(model: Any, weights: Any) -> tuple[Any, float]:
    """What a point speaks for where the kernel is positive, and with which weight."""
    first = float(weights[0])
    if not hasattr(model, "classes_") and len(weights) > 1:  # several targets
        words = ["higher" if weight > 0.0 else "lower" for weight in weights.tolist()]
        return ", ".join(words), float(np.linalg.norm(weights))
    if not hasattr(model, "classes_"):
        return ("higher" if first > 0.0 else "lower"), first
    labels = model.classes_.tolist()
    if len(labels) == 1:
        return labels[0], first
    if len(weights) == 1:
        return labels[int(first > 0.0)], abs(first)
    strongest = int(np.argmax(weights))
    return labels[strongest], float(weights[strongest])
