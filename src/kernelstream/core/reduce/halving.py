"""Ahpatron's budget: half of the points are projected on the others, and f stays in a ball.

Where the points are too many the half with the larger weights stays. What the others contribute is
projected on it, w_1 += (K_11 + ridge)^-1 K_12 w_2, and the result gets the norm that the function
had. One solution lasts for as many steps as points left. After every step the function is
projected on the ball of the given radius.

Liao, Li, Liao, Hu, Dang, "Ahpatron: a new budgeted online kernel learning machine with tighter
mistake bound", AAAI 2024; where the ridge and the norm are concerned, the authors' program.
"""

import math

import numpy as np

from kernelstream.core.costs import energy
from kernelstream.core.dictionary import move
from kernelstream.core.jit import allocating, inner
from kernelstream.core.kernel import STACK, between_points
from kernelstream.core.lanes import dot, fma

#: Added to the diagonal of the kernel matrix, times k(d, d).
RIDGE = 5e-4


@allocating
def _larger_half(state, outputs, n, kept, order):
    """Set ``order`` to the first ``kept`` of the ``n`` old points by weight, then the others.

    Each part in the order in which the points are stored; in a tie the first one stays.
    """
    stays = np.zeros(n, np.bool_)
    for _ in range(kept):
        best, largest = -1, -1.0
        for j in range(n):
            square = energy(state, j, outputs)
            if not stays[j] and square > largest:
                best, largest = j, square
        stays[best] = True
    place = 0
    for wanted in (True, False):
        for j in range(n):
            if stays[j] == wanted:
                order[place] = j
                place += 1


@inner
def _solve(factor, right):
    """Solve A x = right in place, with the rows of A in ``factor``, which becomes its triangle."""
    m = factor.shape[0]
    for i in range(m):
        for j in range(i):
            factor[i, j] = (factor[i, j] - dot(factor, i, factor, j, 0, j)) / factor[j, j]
        least = RIDGE * RIDGE * factor[i, i]  # rounding must not make it negative
        pivot = math.sqrt(max(factor[i, i] - dot(factor, i, factor, i, 0, i), least))
        factor[i, i] = pivot if pivot > 0.0 else 1.0  # of a point of no length, all are 0
    for c in range(right.shape[0]):
        for i in range(m):
            right[c, i] = (right[c, i] - dot(factor, i, right, c, 0, i)) / factor[i, i]
        for i in range(m - 1, -1, -1):
            total = right[c, i]
            for j in range(i + 1, m):
                total = fma(-factor[j, i], right[c, j], total)
            right[c, i] = total / factor[i, i]


@allocating
def _halve(state, rule, program, values, point, work):
    """Project the smaller half of all but the newest point on the larger one."""
    status = state.status[0]
    outputs, n, kept = rule.outputs, status.order - 1, rule.most // 2
    order = np.empty(n, np.int64)
    _larger_half(state, outputs, n, kept, order)
    gram = np.empty((kept, n))  # in the order in which points stay and go
    for i in range(kept):
        between_points(program, state, order[i], n, point, work)
        for j in range(n):
            gram[i, j] = work[STACK, order[j]]
    weights = np.empty((outputs, n))
    for c in range(outputs):
        for j in range(n):
            weights[c, j] = status.scale * state.weights[c, order[j]]

    factor = gram[:, :kept].copy()
    right = np.empty((outputs, kept))
    for i in range(kept):
        factor[i, i] *= 1.0 + RIDGE
        for c in range(outputs):
            right[c, i] = dot(gram, i, weights, c, kept, n)
    _solve(factor, right)
    square, product = 0.0, 0.0
    for c in range(outputs):
        for i in range(kept):
            right[c, i] += weights[c, i]
        for i in range(kept):
            square = fma(right[c, i], dot(gram, i, right, c, 0, kept), square)
            product = fma(right[c, i], dot(gram, i, weights, c, 0, n), product)
    grown = math.sqrt(status.square_norm / square) if square > 0.0 else 0.0
    after = status.square_norm if square > 0.0 else 0.0
    status.error_spent += math.sqrt(max(status.square_norm + after - 2.0 * grown * product, 0.0))
    status.square_norm = after

    for i in range(kept):
        if order[i] != i:  # never before it, so nothing that stays is lost
            move(state, order[i], i, 0)
            values[0, i] = values[0, order[i]]
        for c in range(outputs):
            state.weights[c, i] = right[c, i] * grown / status.scale
    move(state, n, kept, 0)
    status.order = kept + 1
    status.removed += n - kept
    status.forced += 1


@inner
def halve_and_bound(state, rule, program, values, f, point, work):
    """Make room where there is none, and keep the function within its ball.

    The newest point has just been appended; ``values[0]`` are its kernel values with the others,
    ``f`` the values of the function without it.
    """
    status = state.status[0]
    if status.order > rule.most:
        _halve(state, rule, program, values, point, work)
        for c in range(rule.outputs):
            f[c] = status.scale * dot(values, 0, state.weights, c, 0, status.order - 1)
    last = status.order - 1
    change = 0.0
    for c in range(rule.outputs):
        weight = status.scale * state.weights[c, last]
        change = fma(weight, 2.0 * f[c] + weight * state.self_kernels[last], change)
    status.square_norm = max(status.square_norm + change, 0.0)
    if status.square_norm > rule.radius * rule.radius:
        status.scale *= rule.radius / math.sqrt(status.square_norm)
        status.square_norm = rule.radius * rule.radius
