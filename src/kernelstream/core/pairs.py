"""A few samples at once, without storing what greedy pursuit would remove again.

Most samples lie near the points: pursuit removes them first, right after they were stored. That is
found out here from the factor as it is, which saves its extension and its reflections.
"""

import numpy as np

from kernelstream.core.gram import (
    DEPENDENT,
    SMALLEST_SELF_KERNEL,
    append_point,
    coordinates,
)
from kernelstream.core.jit import allocating, inner
from kernelstream.core.kernel import Rows, kernel_rows, self_value
from kernelstream.core.komp import (
    energy,
    find_cheapest,
    goes_first,
    look_again,
    store,
    stored_place,
    take_in,
    take_in_block,
    wear,
)
from kernelstream.core.lanes import dot, fma


@inner
def _length(new, r, outputs, unit):
    """Squared length of a row of weights; averaged and tracked ones are unscaled."""
    return dot(new, r, new, r, 0, outputs) + dot(new, r, new, r, outputs, new.shape[1]) / unit


@allocating
def _take_in_pair(state, program, rows, values, norms, new, outputs, budget):
    """Two dense samples. Returns the squared error made, at scale 1; or -1, with nothing changed,
    where both are to be stored, an old point goes first, or a sample is not independent.
    """
    status = state.status[0]
    n = status.order
    unit = status.scale * status.scale
    if budget <= 0.0:
        return -1.0
    for r in range(2):
        if stored_place(state, rows, r, norms[r, 0]) >= 0:
            return -1.0
    u = np.empty((2, n))
    a = np.empty((2, n))
    own = np.empty(2)
    residuals = np.empty((2, 2))  # inner products of what the points do not span
    width = rows.dense.shape[1]
    other = np.empty((width, 1))
    for q in range(width):
        other[q, 0] = rows.dense[1, q]
    out = np.empty((1, 1))
    kernel_rows(
        program, rows, np.int64(0), np.int64(1), other, norms[1:, 0].copy(), norms[1:, 1].copy(),
        np.int64(1), out, np.empty((1, 2)),
    )  # fmt: skip
    for r in range(2):
        own[r] = self_value(program, norms[r, 0])
        residuals[r, r] = own[r] - coordinates(state.factor, values[r : r + 1], n, u[r], a[r])
    cross = out[0, 0] - dot(u, 0, u, 1, 0, n)
    determinant = residuals[0, 0] * residuals[1, 1] - cross * cross
    for r in range(2):
        if own[r] < SMALLEST_SELF_KERNEL or not residuals[r, r] > DEPENDENT * own[r]:
            return -1.0
        if not determinant > DEPENDENT * own[1 - r] * residuals[r, r]:
            return -1.0

    # The new one that costs less, beside the other and all old points.
    costs = np.empty(2)
    for r in range(2):
        costs[r] = _length(new, r, outputs, unit) * determinant / residuals[1 - r, 1 - r]
    r = 0 if costs[0] <= costs[1] else 1
    s = 1 - r
    if costs[r] > budget:
        return -1.0
    for j in range(n):
        grown = (
            a[0, j] * a[0, j] * residuals[1, 1]
            - 2.0 * a[0, j] * a[1, j] * cross
            + a[1, j] * a[1, j] * residuals[0, 0]
        ) / determinant
        if energy(state, j, outputs) < costs[r] * (state.diagonal[j] + grown):
            return -1.0

    share = cross / residuals[s, s]
    for c in range(new.shape[1]):
        if new[r, c] != 0.0:
            for j in range(n):
                part = fma(-share, a[s, j], a[r, j])
                state.weights[c, j] = fma(part, new[r, c], state.weights[c, j])
            new[s, c] += share * new[r, c]
    error = costs[r]
    last = _length(new, s, outputs, unit) * residuals[s, s]
    skip = error + last <= budget and not goes_first(state, outputs, last, a[s], residuals[s, s])
    if skip:
        for c in range(new.shape[1]):
            if new[s, c] != 0.0:
                for j in range(n):
                    state.weights[c, j] = fma(a[s, j], new[s, c], state.weights[c, j])
        find_cheapest(state, outputs)
        return error + last
    store(state, n, rows, s, norms[s, 0], norms[s, 1], own[s])
    for c in range(new.shape[1]):
        state.weights[c, n] = new[s, c]
    append_point(state.factor, state.diagonal, n, a[s], residuals[s, s])
    status.order = n + 1
    status.changes += wear(residuals[s, s], own[s])
    look_again(state, outputs)
    return error


@allocating
def take_in_samples(state, program, block, values, norms, new, count, outputs, budget):
    """Add ``new[r]`` k(x_r, .) for the ``count`` dense rows of ``block``; the capacity is assumed.

    ``values``, ``norms`` and ``new`` as for :func:`take_in_block`; ``budget`` is the squared error
    that pursuit may make after it, at scale 1, or -1 where it is not greedy. Returns the squared
    error made, at scale 1.
    """
    rows = Rows(block, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)
    error = -1.0
    if count == 1:
        error = take_in(
            state, rows, np.int64(0), norms[0, 0], norms[0, 1], values,
            self_value(program, norms[0, 0]), new[0], outputs, budget,
            np.empty((2, state.status[0].order)),
        )  # fmt: skip
    elif count == 2:
        error = _take_in_pair(state, program, rows, values, norms, new, outputs, budget)
    if error < 0.0:
        error = take_in_block(state, program, block, values, norms, new, count, outputs)
    return error
