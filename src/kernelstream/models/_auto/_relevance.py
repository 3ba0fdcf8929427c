"""Which columns the target depends on, each looked at by itself.

A function that has not been found yet says nothing about the scales of columns. The target does:
where a column matters, the mean of the target, or at least its spread, differs from one part of the
column to another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.relevance import between_parts

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
    responses, freedom = _responses(targets.T, numbers)
    if freedom == 0:
        return None
    sets, m, _ = responses.shape
    used, statistics = np.empty(features), np.empty((sets * m, features))
    each = np.ascontiguousarray(responses.reshape(-1, n).T)
    between_parts(columns, edges, each, used, statistics)
    expected = freedom * (used - 1.0)
    above = statistics.reshape(sets, m, features).sum(axis=1) - expected
    clear = (used > 1.0) & (above > _CLEAR * np.sqrt(2.0 * expected))
    found = np.where(clear, above / n, 0.0).sum(axis=0)
    return found if found.any() else None


def _responses(targets: Any, numbers: bool) -> tuple[NDArray[np.float64], int]:
    """What may depend on a column, (sets, m, n), and the degrees of freedom of each set."""
    if numbers:
        ranks = np.stack([_ranks(each) for each in targets])
        apart = np.abs(ranks)
        apart -= apart.mean(axis=1, keepdims=True)
        both = np.stack([ranks, apart])
        return both / np.maximum(both.std(axis=2, keepdims=True), 1e-9), len(targets)
    is_class = np.unique(targets)[:, None] == targets
    is_class = is_class[is_class.sum(axis=1) >= _FEWEST]
    shares = is_class.mean(axis=1, keepdims=True)
    return ((is_class - shares) / np.sqrt(shares))[None], max(0, len(shares) - 1)


def _ranks(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """From the middle; equal numbers have the same."""
    ordered = np.sort(numbers)
    below = np.searchsorted(ordered, numbers) - 0.5 * len(numbers)
    above = np.searchsorted(ordered, numbers, "right") - 0.5 * len(numbers)
    return np.asarray(below + above)
