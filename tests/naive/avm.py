"""AVM (Algorithms 2 to 5) step by step: one sample at a time, NumPy over the stored points."""

import math
from typing import NamedTuple

import numpy as np

from tests.naive import losses


class Model(NamedTuple):
    points: np.ndarray  # (S, p)
    weights: np.ndarray  # (S, outputs)
    averaged: np.ndarray  # (S, outputs): the mean of all iterates, or of the last ones
    core: list  # which of the points are core points, in the order in which they became it
    decisions: list  # for every sample the point that got its weight, or None without derivative
    norms: list  # |w|_H after every step, where there is a projection
    errors: float  # sum over all steps of |step - the same step taken at the sample itself|_H
    forced: int  # samples beyond all cells when no point could be added


def gaussian(gamma):
    return lambda squares: np.exp(-gamma * squares)


def matern32(gamma):
    def kernel(squares):
        s = np.sqrt(6.0 * gamma * squares)
        return (1.0 + s) * np.exp(-s)

    return kernel


def uniform_numbers(seed):
    """Splitmix64, as the state draws its numbers."""
    mask, state = 2**64 - 1, seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield ((z ^ (z >> 31)) >> 11) / 2.0**53


def suffix_start(suffix, t):
    """Where the average after step t begins: blocks end at b, b / (1 - suffix), ...; the last
    complete one and the one being filled count."""
    starts = [0]
    for step in range(1, t):
        if starts[-1] <= (1.0 - suffix) * step:
            starts.append(step)
    return starts[-2] if len(starts) > 1 else 0


def avm(
    kernel, X, y, loss, loss_number=0.0, outputs=1, regularisation=0.1, shape="hypersphere",
    delta=1.0, beta=0.0, rho=1.0, most=10**9, suffix=0.0, projected=None, seed=1,
    sample_weights=None, core_points=None,
):  # fmt: skip
    """Learn from (X, y); ``kernel`` maps squared distances to values.

    Targets of a single-output classifier are -1 or +1. ``projected`` False leaves out the
    projection that the squared losses need. The iterates averaged are those after each step.
    """
    if projected is None:
        projected = loss in ("squared_error", "squared_hinge") and regularisation <= 1.0
    points = np.empty((0, X.shape[1])) if core_points is None else np.array(core_points)
    weights, core = np.zeros((len(points), outputs)), list(range(len(points)))
    lengths = (points**2).sum(axis=1)
    draws = uniform_numbers(seed)
    radius, half = delta / 2.0, delta / math.sqrt(X.shape[1])
    iterates, decisions, norms, errors, forced, largest = [], [], [], 0.0, 0, 0.0
    for t, x in enumerate(X, 1):
        n, weight = len(points), 1.0 if sample_weights is None else sample_weights[t - 1]
        # |c|^2 - 2 c.x + |x|^2: the matrix product is the fastest way in NumPy
        squares = np.maximum(lengths - 2.0 * (points @ x) + x @ x, 0.0)
        values = kernel(squares)
        slope = losses.derivative(loss, loss_number, values @ weights, y[t - 1])
        step = -weight * slope / (regularisation * t)  # -eta_t alpha_t, eta_t = 1 / (lambda t)
        weights *= (t - 1.0) / t
        place = None
        if slope.any():
            place = -1
            exact = beta > 0.0 and next(draws) < beta / t**rho  # Z_t = 0
            same = np.flatnonzero((points == x).all(axis=1)) if beta > 0.0 else []
            if exact:
                place = same[0] if len(same) else n if n < most else -1
                forced += place < 0
            if place < 0 and core and shape == "hypersphere":  # Algorithm 3
                nearest = (squares if beta == 0.0 else squares[core]).argmin()
                if squares[core[nearest]] < radius**2:
                    place = core[nearest]
            elif place < 0 and core:  # Algorithm 4
                inside = (np.abs(points[core] - x) < half).all(axis=1)
                place = core[inside.argmax()] if inside.any() else -1
            if place < 0 and len(same):  # kept as it was before: now with a cell
                place = same[0]
                core.append(place)
            elif place < 0 and n == most:  # the nearest core point has to do
                place = core[squares[core].argmin()] if core else squares.argmin()
                forced += not exact
            elif place < 0:
                place = n
                core.append(n)
            if place == n:
                points, lengths = np.vstack([points, x]), np.append(lengths, x @ x)
                weights = np.vstack([weights, 0.0 * step])
            else:
                errors += np.linalg.norm(step) * math.sqrt(max(0.0, 2.0 - 2.0 * values[place]))
            weights[place] += step
        decisions.append(None if place is None else int(place))
        if projected:  # step 13; lambda |w*|^2 <= 2 l(0) for both losses
            largest = max(
                largest, weight * (np.sum(y[t - 1] ** 2) if loss == "squared_error" else 2.0)
            )
            gram = kernel(((points[:, None] - points[None]) ** 2).sum(axis=2))
            norm = math.sqrt(max(0.0, float(np.sum(weights * (gram @ weights)))))
            if norm > math.sqrt(largest / regularisation):
                weights *= math.sqrt(largest / regularisation) / norm
            norms.append(min(norm, math.sqrt(largest / regularisation)))
        if suffix > 0.0:
            iterates.append(weights.copy())
    averaged = np.zeros_like(weights)
    if iterates:
        used = iterates[suffix_start(suffix, len(X)) if suffix < 1.0 else 0 :]
        for iterate in used:
            averaged[: len(iterate)] += iterate / len(used)
    return Model(points, weights, averaged, core, decisions, norms, errors, forced)
