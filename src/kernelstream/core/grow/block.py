"""Several samples become points at once: the same as in ``grow/span.py``, with matrix products.

Most samples lie near the points: pursuit removes them first, right after they were stored. Of one
or two samples that is found out from the factor as it is, which saves its extension and its
reflections.
"""

import numpy as np

from kernelstream.core.costs import (
    energy,
    find_cheapest,
    find_crowded,
    goes_first,
    look_again,
    removal_cost,
)
from kernelstream.core.dictionary import store, stored_place
from kernelstream.core.gram import (
    DEPENDENT,
    SMALLEST_SELF_KERNEL,
    append_block,
    append_point,
    complement,
    coordinates,
)
from kernelstream.core.grow.span import take_in, wear
from kernelstream.core.jit import allocating, compiled, inner, merged
from kernelstream.core.kernel import Rows, kernel_rows, self_value
from kernelstream.core.lanes import dot, fma
from kernelstream.core.reduce.komp import BLOCK, remove_point
from kernelstream.core.tables import copy_row, same_row


@compiled
def enter(state, rows, norms, new, self_values, a, gram, wanted, outputs):
    """Append the ``wanted`` samples that are independent, and project the others on all points.

    ``a`` and ``gram`` are those of :func:`kernelstream.core.gram.complement`. Returns the squared
    error made, at scale 1.
    """
    status = state.status[0]
    n, count, columns = status.order, gram.shape[0], state.weights.shape[0]
    order = np.empty(count, np.int64)
    z = np.empty((count, n + count))
    accepted = append_block(state.factor, state.diagonal, n, a, gram, self_values, wanted, order, z)
    for i in range(accepted):
        r = order[i]
        store(state, n + i, rows, r, norms[r, 0], norms[r, 1], self_values[r])
        for c in range(columns):
            state.weights[c, n + i] = new[r, c]
    status.order = n + accepted
    for i in range(accepted):
        status.changes += wear(gram[i, i] * gram[i, i], self_values[order[i]])

    error = 0.0
    for i in range(accepted, count):
        for c in range(columns):
            weight = new[order[i], c]
            if weight != 0.0:
                for j in range(n + accepted):
                    state.weights[c, j] = fma(z[i, j], weight, state.weights[c, j])
            cross = 0.0
            for k in range(accepted, count):
                cross = fma(gram[i, k], new[order[k], c], cross)
            part = weight * cross
            error += part if c < outputs else part / (status.scale * status.scale)
    return max(error, 0.0)


@compiled
def take_in_block(state, program, block, values, norms, new, q, outputs):
    """Add ``new[r]`` k(x_r, .) for the ``q`` dense rows of ``block``; the capacity is assumed.

    ``values[r, :order]`` are their kernel values with the points, ``norms`` their norms.
    Returns the squared error made, at scale 1.
    """
    status = state.status[0]
    columns = state.weights.shape[0]
    rows = Rows(block, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)

    # Samples that are stored already, or that appear twice in the block.
    fresh = 0
    self_values = np.empty(q)
    for r in range(q):
        k_xx = self_value(program, norms[r, 0])
        place = stored_place(state, rows, r, norms[r, 0])
        if place >= 0:
            status.dependent += 1
            for c in range(columns):
                state.weights[c, place] += new[r, c]
            continue
        twin = -1
        for k in range(fresh):
            if norms[k, 0] == norms[r, 0] and norms[k, 1] == norms[r, 1]:
                twin = k if same_row(block, k, r) else twin
        if twin >= 0:
            status.dependent += 1
            for c in range(columns):
                new[twin, c] += new[r, c]
            continue
        if fresh != r:
            copy_row(block, r, block, fresh)
            copy_row(values, r, values, fresh)
            copy_row(norms, r, norms, fresh)
            copy_row(new, r, new, fresh)
        self_values[fresh] = k_xx
        fresh += 1
    if fresh == 0:
        find_cheapest(state, outputs)
        return 0.0

    n = status.order
    transposed = np.empty((block.shape[1], fresh))
    for r in range(fresh):
        for f in range(block.shape[1]):
            transposed[f, r] = block[r, f]
    gram = np.empty((fresh, fresh))
    unused = np.empty((fresh, 2))
    zero, count = np.int64(0), np.int64(fresh)  # literals would be compiled for separately
    kernel_rows(
        program, rows, zero, count, transposed, norms[:fresh, 0].copy(), norms[:fresh, 1].copy(),
        count, gram, unused,
    )  # fmt: skip
    for r in range(fresh):
        gram[r, r] = self_values[r]
    a = complement(state.factor, n, values, gram)
    wanted = np.ones(fresh, np.bool_)
    status.dependent += fresh
    error = enter(state, rows, norms, new, self_values[:fresh], a, gram, wanted, outputs)
    status.dependent -= status.order - n
    look_again(state, outputs)
    return error


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
    k_xx = np.empty(2)
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
        k_xx[r] = self_value(program, norms[r, 0])
        residuals[r, r] = k_xx[r] - coordinates(state.factor, values[r : r + 1], n, u[r], a[r])
    cross = out[0, 0] - dot(u, 0, u, 1, 0, n)
    determinant = residuals[0, 0] * residuals[1, 1] - cross * cross
    for r in range(2):
        if k_xx[r] < SMALLEST_SELF_KERNEL or not residuals[r, r] > DEPENDENT * k_xx[r]:
            return -1.0
        if not determinant > DEPENDENT * k_xx[1 - r] * residuals[r, r]:
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
    store(state, n, rows, s, norms[s, 0], norms[s, 1], k_xx[s])
    for c in range(new.shape[1]):
        state.weights[c, n] = new[s, c]
    append_point(state.factor, state.diagonal, n, a[s], residuals[s, s])
    status.order = n + 1
    status.changes += wear(residuals[s, s], k_xx[s])
    look_again(state, outputs)
    return error


@merged
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
        # Merged into the caller, a count that begins as 0 would have a type and a copy of its own.
        error = take_in_block(state, program, block, values, norms, new, np.int64(count), outputs)
    return error


@compiled
def rebuild(state, program, outputs):
    """Factorise the Gram matrix of the stored points from scratch.

    Points that turn out to be dependent are merged into the others. Returns the squared
    error of that, at scale 1.
    """
    status = state.status[0]
    n = status.order
    width = state.points.shape[0]
    points = np.empty((n, width))
    for j in range(n):
        for q in range(width):
            points[j, q] = state.points[q, j]
    weights = np.empty((n, state.weights.shape[0]))
    for j in range(n):
        for c in range(state.weights.shape[0]):
            weights[j, c] = state.weights[c, j]
    rows = Rows(points, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)
    status.order = 0
    status.rebuilds += 1
    error = 0.0
    for first in range(0, n, BLOCK):
        q = min(BLOCK, n - first)
        values = np.empty((q, status.order))
        norms = np.empty((q, 2))
        kernel_rows(
            program, rows, first, q, state.points, state.square_norms, state.absolute_norms,
            status.order, values, norms,
        )  # fmt: skip
        error += take_in_block(
            state, program, points[first : first + q].copy(), values, norms,
            weights[first : first + q].copy(), q, outputs,
        )  # fmt: skip
        j = find_crowded(state)
        while j >= 0:
            status.dependent += 1
            error += removal_cost(state, j, outputs)
            remove_point(state, j, np.empty(status.order), np.empty(status.order))
            j = find_crowded(state)
    find_cheapest(state, outputs)
    status.changes = 0
    return error
