"""Two points become one between them (BSGD), for the Gaussian kernel.

The point m of least weight is merged with the point n for which that costs least, of those whose
weights point to the same side. With the lengths a >= b of the two weights (over all outputs) and
kappa = k(x_m, x_n) the new point is z = h x_a + (1 - h) x_b, where h maximises a kappa^((1 - h)^2)
+ b kappa^(h^2); its weights are w_a k(x_a, z) + w_b k(x_b, z). h is found by golden section search
to 1e-4, or in a table over b / a and kappa (Glasmachers, Qaadan, "Speeding up budgeted stochastic
gradient descent SVM training with precomputed golden section search", 2018).

Wang, Crammer, Vucetic, "Breaking the curse of kernelization: budgeted stochastic gradient descent
for large-scale SVM training", JMLR 13 (2012), Section 4.
"""

import math

import numpy as np

from kernelstream.core.costs import energy
from kernelstream.core.dictionary import store
from kernelstream.core.jit import inner, lean
from kernelstream.core.kernel import DOTS, L1, SQUARES, between_points, row_norms
from kernelstream.core.lanes import fma
from kernelstream.core.reduce.removal import drop, remove
from kernelstream.core.reduce.smallest import TIE

GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
TOLERANCE = 1e-4
#: Merging costs nothing where it costs less than this part of the smaller point: rounding must
#: not choose.
NOTHING_LOST = 1e-12
#: Larger exponents are zero kernel values in any case.
LARGEST_EXPONENT = 1e300


@lean
def _overlap(ratio, exponent, h):
    """kappa^((1 - h)^2) + ratio kappa^(h^2), where kappa = exp(-exponent)."""
    return math.exp(-exponent * ((1.0 - h) * (1.0 - h))) + ratio * math.exp(-exponent * (h * h))


@lean
def best_place(ratio, exponent):
    """h, between 0.5 and 1 (the heavier point itself), of weights 1 and ``ratio`` <= 1."""
    low, high = 0.0, 1.0
    p, q = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_p, at_q = _overlap(ratio, exponent, p), _overlap(ratio, exponent, q)
    while high - low >= 2.0 * TOLERANCE:
        if at_p > at_q:
            high, q, at_q = q, p, at_p
            p = high - GOLDEN * (high - low)
            at_p = _overlap(ratio, exponent, p)
        else:
            low, p, at_p = p, q, at_q
            q = low + GOLDEN * (high - low)
            at_q = _overlap(ratio, exponent, q)
    h = max(0.5 * (low + high), 0.5)
    # Far points: between them there is nothing.
    return h if _overlap(ratio, exponent, h) > _overlap(ratio, exponent, 1.0) else 1.0


@inner
def _look_up(table, ratio, kappa):
    """The same from a table (ratios, kernel values) of it, both from 0 to 1: bilinear."""
    u, v = ratio * (table.shape[0] - 1), kappa * (table.shape[1] - 1)
    i, j = min(int(u), table.shape[0] - 2), min(int(v), table.shape[1] - 2)
    u, v = u - i, v - j
    here = fma(v, table[i, j + 1] - table[i, j], table[i, j])
    there = fma(v, table[i + 1, j + 1] - table[i + 1, j], table[i + 1, j])
    return fma(u, there - here, here)


@lean
def fill_table(table):
    """Make the table for :func:`_look_up`."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            kappa = j / (table.shape[1] - 1)
            exponent = -math.log(kappa) if j > 0 else LARGEST_EXPONENT
            table[i, j] = best_place(i / (table.shape[0] - 1), exponent)


@inner
def _first_smallest(state, outputs):
    """The point of least weight; of those that tie but for rounding the first."""
    least = np.inf
    for j in range(state.status[0].order):
        least = min(least, energy(state, j, outputs))
    j = 0
    while energy(state, j, outputs) > least * (1.0 + TIE):
        j += 1
    return j


@inner
def merge_two(state, rule, program, point, work, table):
    """Make room for one point.

    ``point`` is a dense row to work in; ``table``, if it has rows, saves the search.
    """
    status = state.status[0]
    n, outputs = status.order, rule.outputs
    m = _first_smallest(state, outputs)
    between_points(program, state, m, n, point, work)
    square = energy(state, m, outputs)
    costs, places, least = work[DOTS], work[L1], np.inf
    for j in range(n):
        other, product = energy(state, j, outputs), 0.0
        for c in range(outputs):
            product = fma(state.weights[c, m], state.weights[c, j], product)
        costs[j] = np.inf
        if j == m or not product > 0.0:
            continue
        exponent = min(program.numbers[0, 0] * work[SQUARES, j], LARGEST_EXPONENT)
        kappa = math.exp(-exponent)
        ratio = math.sqrt(square / other) if square < other * (1.0 - TIE) else 1.0
        looked_up = table.shape[0] > 0
        h = _look_up(table, ratio, kappa) if looked_up else best_place(ratio, exponent)
        heavy, light = math.exp(-exponent * (1.0 - h) ** 2), math.exp(-exponent * h**2)
        kept = other * heavy**2 + 2.0 * product * heavy * light + square * light**2
        cost = other + 2.0 * product * kappa + square - kept
        costs[j] = cost if cost > NOTHING_LOST * square else 0.0
        places[j] = h
        least = min(least, costs[j])
    if not least < np.inf:  # all others point to the other side
        remove(state, m)
        return
    partner = 0
    while costs[partner] > least * (1.0 + TIE):
        partner += 1
    h = places[partner]
    exponent = min(program.numbers[0, 0] * work[SQUARES, partner], LARGEST_EXPONENT)
    heavy, light = math.exp(-exponent * (1.0 - h) ** 2), math.exp(-exponent * h**2)
    status.error_spent += status.scale * math.sqrt(costs[partner])
    if exponent > 0.0 and h < 1.0:
        for q in range(state.points.shape[0]):
            there, here = state.points[q, partner], state.points[q, m]
            point.dense[0, q] = fma(h, there, (1.0 - h) * here)
        zero = np.int64(0)  # a literal would be compiled for separately
        norm, absolute = row_norms(point, zero)
        store(state, partner, point, zero, norm, absolute, state.self_kernels[partner])
    for c in range(outputs):
        there, here = state.weights[c, partner], state.weights[c, m]
        state.weights[c, partner] = fma(heavy, there, light * here)
    drop(state, m)
