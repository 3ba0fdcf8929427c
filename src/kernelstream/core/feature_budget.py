"""Which samples online kernel features keep: those not censored, until the budget is used up."""

import math

from kernelstream.core.feature_basis import FLOOR, inverse_factor, trace_of
from kernelstream.core.feature_state import HISTORY
from kernelstream.core.jit import inner
from kernelstream.core.kernel import copy_sample
from kernelstream.core.lanes import dot, fma

GREEDY, EXACT, RECENCY, FIFO = range(4)
NEVER, MOVING_AVERAGE, THRESHOLD, RATE = range(4)

#: Of the fit errors remembered the moving average and the rate look at so many.
WINDOW = 100

#: A stored sample without which less than this is left of a direction holds it alone ...
ALONE = 1e-6
#: ... and this many of them are passed over in the search for one to discard.
MOST_SPARED = 8


@inner
def censoring_limit(state, settings, ordered):
    """Below this fit error a sample is censored."""
    status = state.status[0]
    count = min(status.recorded, WINDOW)
    if settings.censoring == THRESHOLD:
        return settings.censoring_number
    if settings.censoring == NEVER or count == 0:
        return -math.inf
    if settings.censoring == MOVING_AVERAGE:
        total = 0.0
        for i in range(count):
            total += state.errors[(status.recorded - 1 - i) % HISTORY]
        return total / count
    # The quantile of the window, between two of its errors.
    place = settings.censoring_number * (count - 1)
    lower = min(int(place), count - 1)
    upper = min(lower + 1, count - 1)
    return ordered[lower] + (place - lower) * (ordered[upper] - ordered[lower])


@inner
def record_error(state, error, ordered):
    """Remember a fit error; ``ordered`` holds the window sorted."""
    status = state.status[0]
    count = min(status.recorded, WINDOW)
    if count == WINDOW:  # the oldest of the window goes
        oldest = state.errors[(status.recorded - WINDOW) % HISTORY]
        place = 0
        while ordered[place] < oldest:
            place += 1
        count -= 1
        for j in range(place, count):
            ordered[j] = ordered[j + 1]
    while count > 0 and ordered[count - 1] > error:
        ordered[count] = ordered[count - 1]
        count -= 1
    ordered[count] = error
    state.errors[status.recorded % HISTORY] = error
    state.places[status.recorded % HISTORY] = status.seen
    status.recorded += 1


@inner
def store(state, rows, i, square, absolute, values, k_xx):
    """Put sample ``i`` behind the stored ones, with a row of zeros in A~."""
    status = state.status[0]
    n = status.order
    copy_sample(rows, i, state.points, n)
    state.square_norms[n] = square
    state.absolute_norms[n] = absolute
    if state.gram.shape[0] > 0:
        for j in range(n):
            state.gram[n, j] = values[0, j]
            state.gram[j, n] = values[0, j]
        state.gram[n, n] = k_xx
        status.gram_square += 2.0 * dot(values, 0, values, 0, 0, n) + k_xx * k_xx
    for j in range(state.factor.shape[1]):
        state.factor[n, j] = 0.0
    state.recency[n] = 1.0
    state.numbers[n] = status.seen
    status.order = n + 1


@inner
def _least(state, settings, spared):
    """Which stored sample to discard, none of the spared ones; of equal ones the oldest."""
    status = state.status[0]
    best, lowest = -1, 0.0
    for i in range(status.order):
        if spared[i]:
            continue
        cost = 0.0
        if settings.removal != FIFO:
            cost = dot(state.factor, i, state.factor, i, 0, status.rank)
            if settings.removal == RECENCY:  # (26)
                cost *= state.recency[i] * state.recency[i]
            elif settings.removal == EXACT:
                # (24): Phi A minus Phi A without row i is phi_i a_i', of norm k_ii |a_i|^2. The
                # paper counts O(B^3) for it.
                cost *= state.gram[i, i]
        older = best >= 0 and state.numbers[i] < state.numbers[best]
        if best < 0 or cost < lowest or (cost == lowest and older):
            best, lowest = i, cost
    return best


@inner
def _discard(state, i):
    """Forget stored sample ``i``; the last one takes its place."""
    status = state.status[0]
    last = status.order - 1
    square = state.gram[i, i] * state.gram[i, i]
    square -= 2.0 * dot(state.gram, i, state.gram, i, 0, last + 1)
    status.gram_square = max(status.gram_square + square, 0.0)
    for f in range(state.points.shape[0]):
        state.points[f, i] = state.points[f, last]
    state.square_norms[i] = state.square_norms[last]
    state.absolute_norms[i] = state.absolute_norms[last]
    for j in range(last):
        state.gram[i, j] = state.gram[last, j]
        state.gram[j, i] = state.gram[j, last]
    state.gram[i, i] = state.gram[last, last]
    for j in range(state.factor.shape[1]):
        state.factor[i, j] = state.factor[last, j]
    state.recency[i] = state.recency[last]
    state.numbers[i] = state.numbers[last]
    status.order = last
    status.removed += 1


@inner
def shrink(state, settings, before, cross, spared, trial, a, b):
    """Algorithm 5: discard one sample; M and L_new' L_old lose its row.

    A sample that alone holds a direction of the subspace is spared, except from first in, first
    out: the paper's rules look at the length of a row, and the direction would be lost.
    ``before`` is A~ as it was before the update, or has no rows.
    """
    status = state.status[0]
    rank, n = status.rank, status.order
    for i in range(n):
        state.recency[i] *= settings.forgetting
        spared[i] = False
    attempts = 0
    while True:
        i = _least(state, settings, spared)
        for j in range(rank):
            a[j] = state.factor[i, j]
            b[j] = 0.0
        for k in range(n):
            value = state.gram[i, k]
            for j in range(rank):
                b[j] = fma(value, state.factor[k, j], b[j])
        k_xx = state.gram[i, i]
        for j in range(rank):
            for k in range(rank):
                part = fma(k_xx * a[j] - b[j], a[k], state.inner[j, k])
                trial[j, k] = fma(-a[j], b[k], part)
        attempts += 1
        if not settings.orthonormal or settings.removal == FIFO or attempts > MOST_SPARED:
            break
        trace = trace_of(state)
        if inverse_factor(trial, rank, FLOOR * trace, state.root) > ALONE / rank * trace:
            break
        spared[i] = True
    for j in range(rank):
        for k in range(rank):
            state.inner[j, k] = trial[j, k]
    if before.shape[0] > 0:  # L_old' phi_i
        for j in range(rank):
            b[j] = 0.0
        for k in range(n):
            value = state.gram[i, k]
            for j in range(rank):
                b[j] = fma(value, before[k, j], b[j])
        for j in range(rank):
            for k in range(rank):
                cross[j, k] = fma(-a[j], b[k], cross[j, k])
    _discard(state, i)
