"""Destructive KOMP with pre-fitting (POLK, Algorithm 1), every projection from scratch."""

import numpy as np


def hilbert_norm(K, weights):
    """Root of the sum over outputs of |sum_i w_i k(d_i, .)|_H^2 = w^T K w."""
    return np.sqrt(max(0.0, float(np.sum(weights * (K @ weights)))))


def project(K, weights, kept):
    """Weights, zero outside ``kept``, of the projection on the points ``kept``."""
    projected = np.zeros_like(weights)
    if len(kept):
        projected[kept] = np.linalg.solve(K[np.ix_(kept, kept)], K[kept] @ weights)
    return projected


def komp(K, weights, budget, most):
    """Remove the cheapest point while |f - f~|_H <= budget, or while there are too many.

    Returns the places of the points kept, the weights (zero elsewhere) and the error.
    """
    kept = list(range(len(K)))
    current, error = weights, 0.0
    while kept:
        trials = []
        for j in kept:
            trial = project(K, weights, [i for i in kept if i != j])
            trials.append((hilbert_norm(K, weights - trial), j, trial))
        cheapest, j, trial = min(trials, key=lambda item: item[0])
        if cheapest > budget and len(kept) <= most:
            break
        kept.remove(j)
        current, error = trial, cheapest
    return kept, current, error
