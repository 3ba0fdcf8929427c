"""Which columns the target depends on, each looked at by itself.

A function that has not been found yet says nothing about the scales of columns. The target does:
where a column matters, the mean of the target, or at least its spread, differs from one part of the
column to another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Parts of a column, with as many rows in each.
_PARTS = 6
#: A column counts if its statistic is so many deviations above what chance gives.
_CLEAR = 4.0
#: Classes with fewer rows are left out.
_FEWEST = 8
#: With more columns nothing is looked at.
_MOST_COLUMNS = 512


def relevance_of(rows: Any, targets: Any, numbers: bool) -> NDArray[np.float64] | None:
    """(p,): the part of the target's variance that each column explains; 0 where it may be chance.

    None where all of them may. Of numbers, (n, q), ranks are looked at, and how far these are from
    the middle; of classes, (n, 1), how often they come.
    """
    n, features = rows.shape
    if features > _MOST_COLUMNS or n < 2 * _PARTS:
        return None
    columns = np.ascontiguousarray(rows.T)
    edges = np.sort(columns)[:, [n * k // _PARTS for k in range(1, _PARTS)]]
    cells = np.repeat(_PARTS * np.arange(features)[:, None], n, axis=1)
    top = columns.max(axis=1, keepdims=True)
    for edge in edges.T[:, :, None]:
        cells += (columns > edge) | ((columns == top) & (edge == top))
    cells = cells.ravel()
    counts = np.bincount(cells, minlength=_PARTS * features)
    used = np.count_nonzero(counts.reshape(-1, _PARTS), axis=1) - 1.0
    found = np.zeros(features)
    for responses, freedom in _responses(targets.T, numbers):
        statistic = np.zeros(features)
        for response in responses:
            sums = np.bincount(cells, np.tile(response, features), _PARTS * features)
            squares = np.square(sums) / np.maximum(counts, 1)
            statistic += squares.reshape(-1, _PARTS).sum(axis=1)
        above = statistic - freedom * used
        clear = (used > 0.0) & (above > _CLEAR * np.sqrt(2.0 * freedom * used))
        found += np.where(clear, above / n, 0.0)
    return found if found.any() else None


def _responses(targets: Any, numbers: bool) -> list[tuple[NDArray[np.float64], int]]:
    """What may depend on a column, (m, n), and the degrees of freedom of each statistic."""
    if numbers:
        ranks = np.stack([_ranks(each) for each in targets])
        apart = np.abs(ranks)
        apart -= apart.mean(axis=1, keepdims=True)
        return [
            (each / np.maximum(each.std(axis=1, keepdims=True), 1e-9), len(each))
            for each in (ranks, apart)
        ]
    is_class = np.unique(targets)[:, None] == targets
    is_class = is_class[is_class.sum(axis=1) >= _FEWEST]
    shares = is_class.mean(axis=1, keepdims=True)
    return [((is_class - shares) / np.sqrt(shares), len(shares) - 1)] if len(shares) > 1 else []


def _ranks(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """From the middle; equal numbers have the same."""
    ordered = np.sort(numbers)
    below = np.searchsorted(ordered, numbers) - 0.5 * len(numbers)
    above = np.searchsorted(ordered, numbers, "right") - 0.5 * len(numbers)
    return np.asarray(below + above)
