"""Experts of classes mixed: by shares, and by pools of their probabilities.

A pool is a geometric mean whose powers are learned. There are two: one that hardly forgets, for
streams that stay as they are, and a quick one. The mixture of all ways is calibrated in the end.
"""

import math

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.mixture import (
    Pool,
    follow_shares,
    move_powers,
    share_ways,
    spread_powers,
)
from kernelstream.core.experts.steps import logistic, solve_logistic
from kernelstream.core.jit import compiled, inner

#: The pools.
CLASS_POOLS = (Pool(0.02, 5e4), Pool(0.2, 2e3))
#: What every class has at least, together.
FLOOR = 0.02
#: What a pool gives the right class, or the others, at least: for logarithms.
LEAST = 1e-12
#: How uncertain the numbers of the calibration are at first (variance), and their largest size.
UNCALIBRATED, STEEPEST = (1.0, 0.05, 0.25), 8.0
#: The largest probability: of another class it is never 0, whatever weights samples have.
SUREST = 1.0 - 1e-9
#: Rows over which the calibration forgets.
LONG = 1e4


def uncalibrated() -> NDArray[np.float64]:
    """(9,) of `MixtureState.calibration`: probabilities as they are."""
    a, b, c = UNCALIBRATED
    return np.array([1.0, 1.0, 0.0, a, 0.0, b, 0.0, 0.0, c])


@inner
def calibrate(calibration, m, out, t):
    """Turn out[t, m], which sums to 1, into probabilities that come true as often as they say.

    The probability p of the likeliest class becomes 1 / (1 + exp(-(a log p - b log(1 - p) + c))),
    which can also level off where labels are noisy; the others keep their proportions, and the
    likeliest class stays so. Returns it, log p and -log(1 - p).
    """
    classes = out.shape[2]
    best, other = 0, 0.0
    for c in range(1, classes):
        if out[t, m, c] > out[t, m, best]:
            best = c
    p = min(out[t, m, best], 1.0 - 1e-6)
    low, high = math.log(p), -math.log(1.0 - p)
    if classes == 1:
        return best, low, high
    for c in range(classes):
        if c != best:
            other = max(other, out[t, m, c])
    a, b, c = calibration[m, 0], calibration[m, 1], calibration[m, 2]
    confidence = logistic(a * low + b * high + c)
    rest = 1.0 - out[t, m, best]
    if rest > 0.0:
        least = other / (rest + other)  # where the likeliest and the next are alike
        shown = min(max(confidence, least + 1e-9), SUREST)
        for c in range(classes):
            if c != best:
                out[t, m, c] *= (1.0 - shown) / rest
        out[t, m, best] = shown
    return best, low, high


@inner
def follow_confidence(calibration, m, importance, low, high, right):
    """A step of the numbers of `calibrate` on the log loss of being right.

    Of second order, as the numbers act alike: first-order steps took tens of thousands of rows
    where labels are noisy. The covariance is held as a triangle, row by row.
    """
    now = calibration[m]
    h0 = now[3] * low + now[4] * high + now[6]
    h1 = now[4] * low + now[5] * high + now[7]
    h2 = now[6] * low + now[7] * high + now[8]
    variance = h0 * low + h1 * high + h2
    margin = now[0] * low + now[1] * high + now[2]
    s = solve_logistic(margin if right else -margin, importance * variance)
    move = importance * (s if right else -s)
    now[0] = min(STEEPEST, max(0.0, now[0] + move * h0))
    now[1] = min(STEEPEST, max(0.0, now[1] + move * h1))
    now[2] = min(STEEPEST, max(-STEEPEST, now[2] + move * h2))
    bend = importance * s * (1.0 - s)
    gain = bend / (1.0 + bend * variance)
    kept = 1.0 - 1.0 / LONG
    now[3] = kept * (now[3] - gain * h0 * h0) + UNCALIBRATED[0] / LONG
    now[4] = kept * (now[4] - gain * h1 * h0)
    now[5] = kept * (now[5] - gain * h1 * h1) + UNCALIBRATED[1] / LONG
    now[6] = kept * (now[6] - gain * h2 * h0)
    now[7] = kept * (now[7] - gain * h2 * h1)
    now[8] = kept * (now[8] - gain * h2 * h2) + UNCALIBRATED[2] / LONG


@inner
def fit_powers(mixture, m, k, pool, logs, made, y, importance, x, h):
    """An implicit step of second order on the log loss of a pool that ``made`` probabilities.

    Along the direction that the wrong classes have now, as in ``implicit_step``.
    """
    right = max(made[y], LEAST)
    wrong = max(1.0 - right, LEAST)
    for e in range(len(x)):
        x[e] = 0.0
        if mixture.used[m, e]:
            mean = 0.0
            for c in range(len(made)):
                if c != y:
                    mean += made[c] * logs[e, c]
            x[e] = logs[e, y] - mean / wrong
    variance = spread_powers(mixture, m, k, x, h)
    s = solve_logistic(math.log(right / wrong), importance * variance)
    bend = importance * s * (1.0 - s)
    move_powers(mixture, m, k, pool, h, importance * s, bend / (1.0 + bend * variance))


@compiled
def mix_classes(mixture, probabilities, targets, sample_weights, out):
    """probabilities (n, experts, classes) to out (n, mixtures, classes), then learn the weights."""
    experts, classes = probabilities.shape[1], probabilities.shape[2]
    logs, likelihood = np.empty((experts, classes)), np.empty(experts)
    ways = mixture.ways.shape[1]
    made, of_ways = np.empty((ways, classes)), np.empty(ways)
    x, h = np.empty((2, experts))
    floor = FLOOR / classes
    for t in range(len(probabilities)):
        for e in range(experts):
            for c in range(classes):
                logs[e, c] = math.log((1.0 - FLOOR) * probabilities[t, e, c] + floor)
        if len(targets):
            mixture.seen[0] += 1.0
        for m in range(len(mixture.shares)):
            for c in range(classes):
                out[t, m, c] = 0.0
                for k in range(ways):
                    made[k, c] = 0.0
            for e in range(experts):
                if mixture.used[m, e]:
                    for c in range(classes):
                        p = (1.0 - FLOOR) * probabilities[t, e, c] + floor
                        made[0, c] += mixture.shares[m, e] * p
                        for k in range(1, ways):
                            made[k, c] += mixture.powers[m, k - 1, e] * logs[e, c]
            for k in range(ways):
                if k:
                    top, total = -math.inf, 0.0
                    for c in range(classes):
                        top = max(top, made[k, c])
                    for c in range(classes):
                        made[k, c] = math.exp(made[k, c] - top)
                        total += made[k, c]
                    for c in range(classes):
                        made[k, c] /= total
                for c in range(classes):
                    out[t, m, c] += mixture.ways[m, k] * made[k, c]
            best, low, high = calibrate(mixture.calibration, m, out, t)
            if len(targets) == 0:
                continue
            y, importance = np.int64(targets[t, 0]), sample_weights[t]
            follow_confidence(mixture.calibration, m, importance, low, high, y == best)
            for k in range(ways):
                of_ways[k] = math.log((1.0 - FLOOR) * made[k, y] + floor)
                if k:
                    pool = CLASS_POOLS[k - 1]
                    fit_powers(mixture, m, k - 1, pool, logs, made[k], y, importance, x, h)
            for e in range(experts):
                likelihood[e] = logs[e, y]
            follow_shares(mixture, m, importance, likelihood)
            share_ways(mixture.ways[m], importance, of_ways)
