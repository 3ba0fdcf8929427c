"""COLK (Algorithm 1 with the update (47)) step by step, with a whole copy of f before the step."""

import math
from typing import NamedTuple

import numpy as np

from tests.naive import kernels, losses
from tests.naive.komp import hilbert_norm, komp
from tests.naive.polk import error_budget, step_size


class Model(NamedTuple):
    points: np.ndarray  # (M, p)
    weights: np.ndarray  # (M, outputs)
    averaged: np.ndarray  # (M, outputs), or (M, 0) without averaging
    errors: list  # |f - f~|_H of every step, averaged outputs included
    earlier: tuple  # points and weights of f before the last step
    trackers: list  # g after every step
    thresholds: list  # u after every step


def pressure(risk, weight, order, cut, deviation):
    """eta m(p, g) of (47), summed over p."""
    deviation = float(np.clip(deviation, -cut, cut))
    if risk in ("semivariance", "semideviations"):
        deviation = max(0.0, deviation)
    powers = range(2, (order if risk in ("moments", "semideviations") else 2) + 1)
    return weight * sum(p * deviation ** (p - 1) for p in powers)


def colk(
    kernel, X, y, loss, loss_number=0.0, outputs=1, regularisation=0.0, schedule="constant",
    initial_step=0.5, decay=0.0, budget="fixed", budget_number=0.1, most=10**9, batch=2,
    averaging=0.0, horizon=math.inf, sample_weights=None, risk="variance", risk_weight=0.1,
    order=4, level=0.9, tracking="momentum", beta=0.05, cut=math.inf,
):  # fmt: skip
    """Learn from (X, y). Targets of a single-output classifier are -1 or +1."""
    sample_weights = np.ones(len(X)) if sample_weights is None else sample_weights
    columns = 2 * outputs if averaging > 0.0 else outputs
    points, weights = np.empty((0, X.shape[1])), np.zeros((0, columns))
    earlier = points, weights[:, :outputs]
    g = u = 0.0
    errors, trackers, thresholds = [], [], []

    def value(i, points, weights):
        f = (kernels.matrix(kernel, X[i : i + 1], points) @ weights[:, :outputs])[0]
        return losses.value(loss, loss_number, f, y[i]), f

    def tracked(i, rate):
        """(20) or (19) with sample i."""
        now = min(value(i, points, weights)[0], g + cut)
        if tracking == "average":
            return (1.0 - rate) * g + rate * now
        then = min(value(i, *earlier)[0], g + cut)
        return (1.0 - rate) * (g - then) + now

    def role(i, k, rate):
        """(47): what i, which bears the loss, and k, which feeds the tracker, are multiplied by."""
        l_i = value(i, points, weights)[0]
        if risk == "cvar":
            return 1.0 + risk_weight * (l_i > u) / (1.0 - level), 0.0
        m = pressure(risk, risk_weight, order, cut, l_i - tracked(k, rate))
        return 1.0 + m, -m

    for t, first in enumerate(range(0, len(X), batch)):
        samples = list(range(first, min(first + batch, len(X))))
        eta, rate = step_size(schedule, initial_step, decay, t), max(beta, 1.0 / (t + 1.0))
        multiple = dict.fromkeys(samples, 0.0)
        for i in samples[::2]:
            k = i + 1 if i + 1 in samples else i
            for one, other in {(i, k), (k, i)}:  # both roles; a sample left over is its own partner
                own, others = role(one, other, rate)
                multiple[one] += own
                multiple[other] += others
        slopes = {
            i: losses.derivative(loss, loss_number, value(i, points, weights)[1], y[i])
            for i in samples
        }
        all_losses = [value(i, points, weights)[0] for i in samples]
        g = float(np.mean([tracked(i, rate) for i in samples]))
        if t == 0:
            u = min(all_losses)
        else:
            excess = np.mean(np.array(all_losses) > u) - (1.0 - level)
            u = max(0.0, u + rate * (u + 1e-3) * excess)
        trackers.append(g)
        thresholds.append(u)

        earlier = points, weights[:, :outputs]
        weights = weights.copy()
        weights[:, :outputs] *= 1.0 - eta * regularisation
        for i in samples:
            new = np.zeros(columns)
            new[:outputs] = -eta / len(samples) * sample_weights[i] * multiple[i] * slopes[i]
            if not new.any():
                continue
            same = [j for j in range(len(points)) if (points[j] == X[i]).all()]
            if same:
                weights[same[0]] += new
            else:
                points, weights = np.vstack([points, X[i]]), np.vstack([weights, new])
        if averaging > 0.0:
            share = max(averaging / (t + averaging), 1.0 / horizon)
            weights[:, outputs:] += share * (weights[:, :outputs] - weights[:, outputs:])
        K = kernels.matrix(kernel, points, points)
        kept, compressed, _ = komp(K, weights, error_budget(budget, budget_number, eta), most)
        errors.append(hilbert_norm(K, weights - compressed))
        points, weights = points[kept], compressed[kept]
    return Model(
        points, weights[:, :outputs], weights[:, outputs:], errors, earlier, trackers, thresholds
    )
