"""How wide intervals around predicted numbers must be to contain the targets as often as asked.

The half width is deviation * scale * q * exp(correction): ``deviation`` is the model's own idea
of the row, ``scale`` the mean size of its latest errors in such deviations, q a quantile of the
latest errors in units of both, and the correction widens after each miss and narrows otherwise
(adaptive conformal inference: Gibbs and Candes 2021, here on the logarithm of the width).

All that follows the stream from row to row. Rows that are predicted without learning, by a saved
model perhaps, have nothing to follow: for them a quantile of the latest errors as they were.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.jit import compiled, inner

#: Rows over which the scale of the errors is a mean.
SHORT = 32.0
#: The coverage at which the correction is learned, and its step.
LEVEL = 0.9
STEP = 0.02
#: What an error counts at most, in units.
LARGEST = 1e6
#: The correction's range.
WIDEST = 2.0


class IntervalState(NamedTuple):
    """Latest errors of m predictors; room for r of them."""

    rows: NDArray[np.int64]  # (1,) whose errors were seen
    held: NDArray[np.int64]  # (1,) errors that were ever put in, those of the beginning included
    scale: NDArray[np.float64]  # (m,)
    correction: NDArray[np.float64]  # (m,)
    latest: NDArray[np.float64]  # (m, r) errors in units: number i at i modulo r
    ordered: NDArray[np.float64]  # (m, r) the same, sorted
    errors: NDArray[np.float64]  # (m, r) the same as they were, in deviations


@inner
def quantile(state, m, level):
    """The error in units that a part ``level`` of the next ones should not exceed."""
    count = min(state.held[0], state.latest.shape[1])
    place = min(max(level * (count + 1.0) - 1.0, 0.0), count - 1.0)
    low = np.int64(place)
    high = min(low + 1, count - 1)
    below = state.ordered[m, low]
    return below + (place - low) * (state.ordered[m, high] - below)


@inner
def replace(state, m, score):
    """Put an error in; the oldest one leaves where there is no room."""
    room = state.latest.shape[1]
    count = min(state.held[0], room)
    slot = state.held[0] % room
    if count == room:
        old = state.latest[m, slot]
        place = np.searchsorted(state.ordered[m, :count], old)
        for i in range(place, count - 1):
            state.ordered[m, i] = state.ordered[m, i + 1]
        count -= 1
    state.latest[m, slot] = score
    place = np.searchsorted(state.ordered[m, :count], score)
    for i in range(count, place, -1):
        state.ordered[m, i] = state.ordered[m, i - 1]
    state.ordered[m, place] = score


@compiled
def half_width(state, m, level):
    """Half of an interval, in deviations; infinite before anything is known."""
    if state.rows[0] == 0:
        return math.inf
    return state.scale[m] * quantile(state, m, level) * math.exp(state.correction[m])


@compiled
def interval_pass(state, errors, deviations, level, out):
    """Half widths of each row's intervals from just before its errors, which are learned then.

    Parameters
    ----------
    state : IntervalState
    errors : (n, m) absolute
    deviations : (n,)
    level : float
    out : (n, m)
    """
    for t in range(len(errors)):
        rate = max(1.0 / (state.rows[0] + 1.0), 1.0 / SHORT)
        for m in range(errors.shape[1]):
            out[t, m] = deviations[t] * half_width(state, m, level)
            error = errors[t, m] / deviations[t]
            if state.rows[0] > 0:
                score = LARGEST
                if error < LARGEST * state.scale[m]:
                    score = error / state.scale[m]
                elif error == 0.0:
                    score = 0.0
                reach = quantile(state, m, LEVEL) * math.exp(state.correction[m])
                step = STEP * (LEVEL if score > reach else LEVEL - 1.0)
                state.correction[m] = min(WIDEST, max(-WIDEST, state.correction[m] + step))
                replace(state, m, score)
                state.errors[m, state.held[0] % state.errors.shape[1]] = error
            state.scale[m] += rate * (error - state.scale[m])
        state.held[0] += state.rows[0] > 0
        state.rows[0] += 1
