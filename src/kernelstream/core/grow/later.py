"""Samples beyond the cap become points at once, but are projected together, some time later.

Until then they have no rows in the factor: ``status.pending`` points at the end. The errors that
their steps may make are saved up (``status.owed``, squared), and spent by one block pursuit:
matrix products in place of products of a matrix with a vector.
"""

import math

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.costs import look_again
from kernelstream.core.dictionary import store, stored_place
from kernelstream.core.gram import DEPENDENT, complement
from kernelstream.core.grow.block import enter
from kernelstream.core.jit import compiled, inner
from kernelstream.core.kernel import Rows, kernel_rows
from kernelstream.core.lanes import dot, fma
from kernelstream.core.reduce.komp import GREEDY, prune_block, remove_block


@inner
def put_off(state, rows, i, square, absolute, k_xx, new):
    """Add ``new`` k(x_i, .) to the function, without a row in the factor."""
    status = state.status[0]
    place = stored_place(state, rows, i, square)
    if place >= 0:
        status.dependent += 1
        for c in range(state.weights.shape[0]):
            state.weights[c, place] += new[c]
        return
    n = status.order
    store(state, n, rows, i, square, absolute, k_xx)
    for c in range(state.weights.shape[0]):
        state.weights[c, n] = new[c]
    status.order = n + 1
    status.pending += 1


@compiled
def plan(state, outputs, a, gram, new, self_values, budget, most, wanted, removed):
    """Which points greedy pursuit would remove if all new ones were appended first.

    ``a`` and ``gram`` are those of :func:`kernelstream.core.gram.complement`. With P the inverse of
    gram and B = P a the inverse of the whole Gram matrix is

        [[S S^T + a^T B, -B^T], [-B, P]],

    and only its columns for the points that go are needed. Sets ``wanted`` to the new points that
    stay and ``removed`` to the old ones that go. Returns the number of the latter, or -1 where new
    points depend on one another; and the squared error that is planned, at scale 1.
    """
    status = state.status[0]
    n, q, columns = status.order, gram.shape[0], state.weights.shape[0]
    lower = np.zeros((q, q))  # gram's Cholesky factor, and below its inverse, transposed
    for i in range(q):
        for c in range(i):
            lower[i, c] = (gram[i, c] - dot(lower, i, lower, c, 0, c)) / lower[c, c]
        rest = gram[i, i] - dot(lower, i, lower, i, 0, i)
        if not rest > DEPENDENT * self_values[i]:
            return -1, 0.0
        lower[i, i] = math.sqrt(rest)
    inverse = np.zeros((q, q))
    for c in range(q):
        inverse[c, c] = 1.0 / lower[c, c]
        for i in range(c + 1, q):
            inverse[c, i] = -dot(lower, i, inverse, c, c, i) / lower[i, i]
    p = np.empty((q, q))
    b = np.empty((q, n))
    multiply(inverse, False, inverse, True, p, q, q, q, 1.0, 0.0)
    multiply(p, False, a, False, b, q, n, q, 1.0, 0.0)

    # Diagonal of the inverse, weights and costs: old points, then new ones.
    diagonal = np.empty(n + q)
    weights = np.empty((columns, n + q))
    diagonal[:n] = state.diagonal[:n]
    for r in range(q):
        diagonal[n + r] = p[r, r]
        for j in range(n):
            diagonal[j] = fma(a[r, j], b[r, j], diagonal[j])
    for c in range(columns):
        weights[c, :n] = state.weights[c, :n]
        weights[c, n:] = new[:, c]
    square, costs = np.empty(n + q), np.zeros(n + q)
    _price(weights, diagonal, outputs, status.scale, square, costs)

    # Old points that are likely to go: their columns from one product.
    likely = min(n, q // 2)
    place = np.full(n, -1)
    rows = np.empty((likely, n))
    for i in range(likely):
        best = -1
        for j in range(n):
            if place[j] < 0 and (best < 0 or costs[j] < costs[best]):
                best = j
        place[best] = i
        rows[i] = state.factor[best, :n]
    base = np.empty((likely, n))
    multiply(rows, False, state.factor, True, base, likely, n, n, 1.0, 0.0)

    chosen = np.empty((q, n + q))  # columns of the inverse, each over the root of its diagonal
    count, old, error = 0, 0, 0.0
    while count < q:
        j = int(np.argmin(costs))
        within = error + costs[j] <= budget
        if not within and n + q - count <= most:
            break
        status.forced += not within
        error += costs[j]
        column = chosen[count]
        if j >= n:
            wanted[j - n] = False
            for i in range(n):
                column[i] = -b[j - n, i]
            for r in range(q):
                column[n + r] = p[j - n, r]
        else:
            removed[old] = j
            old += 1
            if place[j] >= 0:
                column[:n] = base[place[j]]
            else:
                for i in range(n):
                    column[i] = dot(state.factor, i, state.factor, j, 0, n)
            for r in range(q):
                column[n + r] = -b[r, j]
                for i in range(n):
                    column[i] = fma(a[r, j], b[r, i], column[i])
        for k in range(count):
            share = -chosen[k, j]
            for i in range(n + q):
                column[i] = fma(chosen[k, i], share, column[i])
        pivot = column[j]
        for c in range(columns):
            share = -weights[c, j] / pivot
            if share != 0.0:
                for i in range(n + q):
                    weights[c, i] = fma(column[i], share, weights[c, i])
        root = 1.0 / math.sqrt(pivot)
        for i in range(n + q):
            column[i] *= root
            diagonal[i] = fma(-column[i], column[i], diagonal[i])
        costs[j] = np.inf
        _price(weights, diagonal, outputs, status.scale, square, costs)
        count += 1
    return old, error


@inner
def _price(weights, diagonal, outputs, scale, square, costs):
    """What removing each point costs, where that is not infinite; averaged weights are unscaled."""
    for i in range(costs.shape[0]):
        square[i] = 0.0
    for c in range(weights.shape[0]):
        unit = 1.0 if c < outputs else 1.0 / (scale * scale)
        for i in range(costs.shape[0]):
            square[i] = fma(unit * weights[c, i], weights[c, i], square[i])
    for i in range(costs.shape[0]):
        if costs[i] < np.inf:
            costs[i] = square[i] / diagonal[i]


@compiled
def catch_up(state, program, outputs, most, projection):
    """Give the pending points their rows in the factor, and compress.

    Points that pursuit would remove again are never appended: most new ones are among them.
    """
    status = state.status[0]
    q = status.pending
    if q == 0:
        return
    n = status.order - q
    block = state.points[:, n : n + q].T.copy()
    new = state.weights[:, n : n + q].T.copy()
    self_values = state.self_kernels[n : n + q].copy()
    transposed = state.points[:, n : n + q].copy()
    rows = Rows(block, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)
    values, norms = np.empty((q, n)), np.empty((q, 2))
    zero = np.int64(0)  # a literal would be compiled for separately
    kernel_rows(
        program, rows, zero, q, state.points, state.square_norms, state.absolute_norms, n, values,
        norms,
    )  # fmt: skip
    gram = np.empty((q, q))
    kernel_rows(
        program, rows, zero, q, transposed, norms[:, 0].copy(), norms[:, 1].copy(), q, gram,
        np.empty((q, 2)),
    )  # fmt: skip
    for r in range(q):
        gram[r, r] = self_values[r]
    status.order = n
    status.pending = 0
    unit = status.scale * status.scale
    wanted = np.ones(q, np.bool_)
    removed = np.empty(q, np.int64)
    a = complement(state.factor, n, values, gram)
    count = -1
    if projection == GREEDY:
        count, _ = plan(
            state, outputs, a, gram, new, self_values, status.owed / unit, most, wanted, removed
        )
    error = enter(state, rows, norms, new, self_values, a, gram, wanted, outputs)
    status.dependent += q - (status.order - n) if count < 0 else 0
    if count > 0:
        error += remove_block(state, removed, count, outputs)
    look_again(state, outputs)
    prune_block(state, outputs, error * unit, status.owed, most, projection, q)
    status.owed = 0.0
