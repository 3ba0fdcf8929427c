"""The least time a step could take: its bytes streamed once through BLAS calls of its shapes."""

from __future__ import annotations

import time

import numba
import numpy as np


@numba.njit
def _products(points, factor, x, k, u, repeats, per_sample, per_taken, per_removed):  # type: ignore[no-untyped-def]
    """Matrix-vector products: one with the points per sample, two with the factor per sample
    taken in, two (a product and a rank-one update) per point removed."""
    taken = removed = 0.0
    for _ in range(repeats):
        for _ in range(per_sample):
            np.dot(points, x, k)
        taken += per_taken
        while taken >= 1.0:
            np.dot(factor.T, k, u)
            np.dot(factor, u, k)
            taken -= 1.0
        removed += per_removed
        while removed >= 1.0:
            np.dot(factor, u, k)
            np.dot(factor, k, u)
            removed -= 1.0


def microseconds(order: int, features: int, taken: float, removed: float) -> float:
    """Per sample, at a given model order, with these shares of samples taken in and points
    removed per sample."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(order, features))
    factor = rng.normal(size=(order, order)) / order
    x, k, u = rng.normal(size=features), np.empty(order), np.empty(order)
    repeats = max(200, int(2e7 / (order * features + order * order * (taken + removed))))
    _products(points, factor, x, k, u, 2, 1, taken, removed)
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        _products(points, factor, x, k, u, repeats, 1, taken, removed)
        best = min(best, time.perf_counter() - start)
    return best / repeats * 1e6
