"""POLK (Algorithm 2) step by step, with the Hilbert error of every step by its definition."""

import math
from typing import NamedTuple

import numpy as np

from tests.naive import kernels, losses
from tests.naive.komp import hilbert_norm, komp


class Model(NamedTuple):
    points: np.ndarray  # (M, p)
    weights: np.ndarray  # (M, outputs)
    averaged: np.ndarray  # (M, outputs), or (M, 0) without averaging
    errors: list  # |f - f~|_H of every step, averaged outputs included
    orders: list  # model order after every step


def step_size(schedule, initial, decay, t):
    if callable(schedule):
        return schedule(t)
    if schedule == "constant":
        return initial
    if schedule == "inverse_time":
        return initial / (1.0 + decay * t)
    return initial / math.sqrt(1.0 + decay * t)


def error_budget(rule, number, eta):
    return {"fixed": number, "three_halves": number * eta**1.5, "square": number * eta**2}[rule]


def polk(
    kernel, X, y, loss, loss_number=0.0, outputs=1, regularisation=0.0, schedule="constant",
    initial_step=0.5, decay=0.0, budget="fixed", budget_number=0.1, most=10**9, batch=1,
    averaging=0.0, horizon=math.inf, sample_weights=None,
):  # fmt: skip
    """Learn from (X, y). Targets of a single-output classifier are -1 or +1."""
    sample_weights = np.ones(len(X)) if sample_weights is None else sample_weights
    columns = 2 * outputs if averaging > 0.0 else outputs
    points, weights = np.empty((0, X.shape[1])), np.zeros((0, columns))
    errors, orders = [], []
    for t, first in enumerate(range(0, len(X), batch)):
        samples = range(first, min(first + batch, len(X)))
        eta = step_size(schedule, initial_step, decay, t)

        # (12)-(18): f~ = (1 - eta lambda) f - eta / B sum_b l'(f(x_b), y_b) k(x_b, .)
        values = kernels.matrix(kernel, X[list(samples)], points) @ weights[:, :outputs]
        weights = weights.copy()
        weights[:, :outputs] *= 1.0 - eta * regularisation
        for i, f in zip(samples, values, strict=True):
            slope = losses.derivative(loss, loss_number, f, y[i])
            new = np.zeros(columns)
            new[:outputs] = -eta / len(samples) * sample_weights[i] * slope
            if not new.any():
                continue
            # A sample that is a point already adds to its weight.
            same = [j for j in range(len(points)) if (points[j] == X[i]).all()]
            if same:
                weights[same[0]] += new
            else:
                points, weights = np.vstack([points, X[i]]), np.vstack([weights, new])
        if averaging > 0.0:  # the average moves towards f~
            share = max(averaging / (t + averaging), 1.0 / horizon)
            weights[:, outputs:] += share * (weights[:, :outputs] - weights[:, outputs:])

        K = kernels.matrix(kernel, points, points)
        allowed = error_budget(budget, budget_number, eta)
        kept, compressed, _ = komp(K, weights, allowed, most)
        errors.append(hilbert_norm(K, weights - compressed))
        orders.append(len(kept))
        points, weights = points[kept], compressed[kept]
    return Model(points, weights[:, :outputs], weights[:, outputs:], errors, orders)
