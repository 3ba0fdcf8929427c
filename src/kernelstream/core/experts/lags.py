"""Numbers by those before: what the next one adds to the last, from earlier differences.

A linear model of second order on the level and on differences between successive targets: the
latest ones, and those of a day, a week or a year ago where rows come every few minutes, every hour
or every day. It begins as the last value, and is measured in how large differences usually are.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.linear import shrink_covariance, spread_inputs
from kernelstream.core.jit import compiled, inner
from kernelstream.core.lanes import dot, fma

#: The latest differences: a month of days, a day of hours, two years of months.
NEAR = 31
#: Rows of a day: every half hour, 15, 10 or 5 minutes; of a week: every hour or half hour. The
#: differences next to these are inputs, too.
SEASONS = (48, 96, 144, 168, 288, 336)
#: Weeks, and days, of a year.
YEARS = (52, 365)
#: Which differences are inputs: 1 is the latest.
LAGS = np.array(
    [*range(1, NEAR + 1), *sorted([*YEARS, *(p + k for p in SEASONS for k in (-1, 0, 1))])]
)
#: Inputs: 1, the level, the differences.
WIDTH = 2 + len(LAGS)
#: Targets that are kept.
KEPT = int(LAGS.max()) + 1
#: Variances of the weights before any row: of the constant, the level, the latest difference
#: (those before it have less, by how long ago they are) and of differences of long ago.
_CONSTANT, _LEVEL, _LATEST, _FAR = 0.01, 0.1, 0.3, 0.03
#: Inputs and targets beyond so many usual differences, and levels beyond so many units, count as
#: this much.
MOST = 10.0
#: Rows over which the size of differences is averaged.
_LONG = 2000.0


class LagState(NamedTuple):
    """What the expert holds, for each of q targets."""

    seen: NDArray[np.float64]  # (1,)
    past: NDArray[np.float64]  # (q, KEPT) targets, the last one at the end
    squares: NDArray[np.float64]  # (q,) of differences, as they usually are; 0 before there was one
    covariance: NDArray[np.float64]  # (q, WIDTH, WIDTH)
    weights: NDArray[np.float64]  # (q, 1, WIDTH)


def new_lags(targets: int) -> LagState:
    """Before any row."""
    variances = np.where(LAGS > NEAR, _FAR, _LATEST / LAGS)
    prior = np.diag(np.concatenate([[_CONSTANT, _LEVEL], variances]))
    return LagState(
        np.zeros(1), np.zeros((targets, KEPT)), np.zeros(targets),
        np.tile(prior, (targets, 1, 1)), np.zeros((targets, 1, WIDTH)),
    )  # fmt: skip


@inner
def bounded(number):
    return min(MOST, max(-MOST, number))


@inner
def write_lags(series, at, known, root, x):
    """The inputs (WIDTH,) of the row ``at`` of a series of which ``known`` before it are known."""
    x[0], x[1] = 1.0, bounded(series[at - 1])
    for i in range(len(LAGS)):
        k = LAGS[i]
        x[2 + i] = 0.0
        if k < known:
            x[2 + i] = bounded((series[at - k] - series[at - k - 1]) / root)


@inner
def follow_square(square, difference, known):
    """How large squared differences usually are, one step further."""
    new = difference * difference
    if square > 0.0:
        new = min(new, MOST * MOST * square)
    return square + max(1.0 / known, 1.0 / _LONG) * (new - square)


@compiled
def lag_pass(lags, targets, sample_weights, out, place):
    """Predict each row, then learn it; without targets, predict the next one alone.

    Parameters
    ----------
    lags : LagState
    targets : (n, q), or (0, q)
    sample_weights : (n,)
    out : (n, all experts, q), at expert ``place``
    """
    x, h = np.zeros(WIDTH), np.empty(WIDTH)
    kept = lags.past.shape[1]
    series = np.empty(kept + len(targets))
    for c in range(len(lags.past)):
        for i in range(kept):
            series[i] = lags.past[c, i]
        for t in range(len(targets)):
            series[kept + t] = targets[t, c]
        square, weights = lags.squares[c], lags.weights[c]
        for t in range(len(out)):
            at = kept + t if len(targets) else kept
            known = min(lags.seen[0] + at - kept, float(kept))
            last, root, step = series[at - 1], math.sqrt(square), 0.0
            if square > 0.0:
                write_lags(series, at, known, root, x)
                step = dot(weights, 0, x, 0, 0, WIDTH)
            out[t, place, c] = last + root * bounded(step)
            if len(targets) == 0 or known < 1.0:
                continue
            difference = series[at] - last
            if square > 0.0:
                error = bounded(difference / root) - step
                spread_inputs(lags.covariance[c], x, h)
                importance = sample_weights[t]
                variance = max(1e-12, dot(h, 0, x, 0, 0, WIDTH))
                gain = importance / (1.0 + variance * importance)
                for i in range(WIDTH):
                    weights[0, i] = fma(h[i], gain * error, weights[0, i])
                shrink_covariance(lags.covariance[c], h, gain)
            square = follow_square(square, difference, lags.seen[0] + t)
        lags.squares[c] = square
        for i in range(kept):
            lags.past[c, i] = series[len(targets) + i]
    lags.seen[0] += len(targets)
