"""Adaptive filters: squared error, a dictionary of fixed capacity.

Six rules for a sample x with target y, kernel values k with the points, error e = y - f(x):

* ``GROWING`` (KLMS): x becomes a point of weight eta e; at the cap the oldest point leaves.
* ``QUANTISED`` (QKLMS): the nearest point within a radius gets eta e, else x becomes a point.
* ``NORMALISED`` (KNLMS): x becomes a point if it coheres with none; all weights move along k.
* ``DEPENDENCE`` (KRLS-ALD): x becomes a point if the points do not span it; least squares over all
  samples projected on the points.
* ``WINDOW`` (SW-KRLS): regularised least squares over the last samples.
* ``IMPORTANCE`` (FB-KRLS): the same over a set from which the sample leaves that the others
  predict best.

Inverse matrices are held as square roots: of K, or K + c I, as in ``core/gram.py``; the spread of
least squares, P = inverse(A'A), as G with P = G G', changed by Potter's update.

A sample may have several numbers as its target: errors and weights are then vectors, one row of
weights for each number, and points, factor and spread, which no target enters, serve all of them.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelstream.core.dictionary import move, store
from kernelstream.core.gram import (
    DEPENDENT,
    SMALLEST_SELF_KERNEL,
    append_point,
    coordinates,
    reflect_away,
)
from kernelstream.core.jit import compiled, inner
from kernelstream.core.kernel import SQUARES, STACK, Program, Rows, kernel_row, self_value
from kernelstream.core.lanes import dot, fma
from kernelstream.core.passes import DIVERGED, DONE, LARGEST_SQUARE_NORM, UNUSABLE

GROWING, QUANTISED, NORMALISED, DEPENDENCE, WINDOW, IMPORTANCE = range(6)

#: Larger errors count as divergence: what follows from them must stay finite.
LARGEST_ERROR = 1e60

FILTER_STATUS = np.dtype(
    (
        np.record,
        [
            ("order", "i8"),  # points in use
            ("seen", "i8"),  # samples consumed
            ("forced", "i8"),  # how often the cap left no choice
            ("oldest", "i8"),  # where points in the order of their arrival begin, as a ring
        ],
    )
)

FILTER_SETTINGS = np.dtype(
    (
        np.record,
        [
            ("rule", "i8"),
            ("most", "i8"),  # points at most
            ("step", "f8"),  # eta
            ("threshold", "f8"),  # squared radius, coherence or novelty
            ("ridge", "f8"),  # c, or what is added to |k|^2
        ],
    )
)


class FilterState(NamedTuple):
    """A filter; the capacity is one more than the points it may hold."""

    points: np.ndarray  # (p, capacity) float64
    square_norms: np.ndarray  # (capacity,) float64
    absolute_norms: np.ndarray  # (capacity,) float64
    self_kernels: np.ndarray  # (capacity,) float64, k(d, d)
    weights: np.ndarray  # (q, capacity) float64
    labels: np.ndarray  # (q, capacity) float64, targets of the points; or (q, 0)
    factor: np.ndarray  # (capacity, capacity) float64, S of K or of K + c I; or (0, 0)
    diagonal: np.ndarray  # (capacity,) float64, squared row norms of S
    spread: np.ndarray  # (capacity, capacity) float64, G; or (0, 0)
    status: np.ndarray  # (1,) FILTER_STATUS

    @property
    def order(self) -> int:
        """Points in use."""
        return int(self.status[0]["order"])


@inner
def _remove(state, j, v, column):
    """Drop point ``j`` of a factored state; the last one takes its place."""
    status = state.status[0]
    last = status.order - 1
    reflect_away(state.factor, state.diagonal, status.order, j, v, column)
    if j != last:
        move(state, last, j, last)
        for c in range(len(state.labels)):
            state.labels[c, j] = state.labels[c, last]
    status.order = last


@inner
def _grow(state, rule, rows, i, square, absolute, k_xx, change):
    """KLMS: the sample becomes a point; where there is no room, in the place of the oldest."""
    status = state.status[0]
    place = status.order
    if place < rule.most:
        status.order += 1
    else:
        place = status.oldest
        status.oldest = place + 1 if place + 1 < rule.most else 0
        status.forced += 1
    store(state, place, rows, i, square, absolute, k_xx)
    for c in range(len(change)):
        state.weights[c, place] = change[c]


@inner
def _quantise(state, rule, rows, i, square, absolute, k_xx, change, work):
    """QKLMS: to the nearest point, if it is near or there is no room for another."""
    status = state.status[0]
    n = status.order
    nearest = -1
    for j in range(n):
        if nearest < 0 or work[SQUARES, j] < work[SQUARES, nearest]:
            nearest = j
    far = nearest < 0 or work[SQUARES, nearest] > rule.threshold
    if far and n < rule.most:
        store(state, n, rows, i, square, absolute, k_xx)
        for c in range(len(change)):
            state.weights[c, n] = change[c]
        status.order += 1
    else:
        status.forced += far
        for c in range(len(change)):
            state.weights[c, nearest] += change[c]


@inner
def _coheres(state, rule, values, k_xx):
    """Whether some point is as good as x: |k_j| / sqrt(k_xx k_jj) > mu."""
    if k_xx < SMALLEST_SELF_KERNEL:
        return True
    for j in range(state.status[0].order):
        if abs(values[0, j]) > rule.threshold * math.sqrt(k_xx * state.self_kernels[j]):
            return True
    return False


@inner
def _normalise(state, rule, rows, i, square, absolute, k_xx, values, change):
    """KNLMS: f(x) moves by a share of the error. False, with nothing changed, if it overflows."""
    status = state.status[0]
    n = status.order
    novel = not _coheres(state, rule, values, k_xx)
    total = dot(values, 0, values, 0, 0, n)
    grows = novel and n < rule.most
    if grows:
        total = fma(k_xx, k_xx, total)
    for c in range(len(change)):
        change[c] /= rule.ridge + total
        if not abs(change[c]) * math.sqrt(total) <= LARGEST_ERROR:
            return False
    if grows:
        store(state, n, rows, i, square, absolute, k_xx)
        for c in range(len(change)):
            state.weights[c, n] = 0.0
        values[0, n] = k_xx
        status.order = n = n + 1
    else:
        status.forced += novel
    for c in range(len(change)):
        for j in range(n):
            state.weights[c, j] = fma(change[c], values[0, j], state.weights[c, j])
    return True


@inner
def _least_squares(state, rule, rows, i, square, absolute, k_xx, values, error, weight, u, a, v, g):
    """KRLS-ALD: Engel, Mannor and Meir (2004), Table I. False if it would overflow."""
    status = state.status[0]
    n = status.order
    G = state.spread
    delta = k_xx - coordinates(state.factor, values, n, u, a)
    novel = delta > max(rule.threshold, DEPENDENT * k_xx)
    if novel and n < rule.most:
        for c in range(len(error)):
            if not abs(error[c] / delta) <= LARGEST_ERROR:
                return False
        store(state, n, rows, i, square, absolute, k_xx)
        append_point(state.factor, state.diagonal, n, a, delta)
        for c in range(len(error)):
            new = error[c] / delta
            for j in range(n):
                state.weights[c, j] = fma(-a[j], new, state.weights[c, j])
            state.weights[c, n] = new
        for j in range(n):
            G[j, n] = 0.0
            G[n, j] = 0.0
        G[n, n] = 1.0 / math.sqrt(weight)
        status.order = n + 1
        return True
    status.forced += novel
    # v = G'a; P a = G v; with beta = 1 / weight + v.v the gain is q = P a / beta
    for q in range(n):
        v[q] = 0.0
    for j in range(n):
        for q in range(n):
            v[q] = fma(a[j], G[j, q], v[q])
    total = dot(v, 0, v, 0, 0, n)
    beta = 1.0 / weight + total
    for j in range(n):
        g[0, j] = dot(G, j, v, 0, 0, n)
    coordinates(state.factor, g, n, u, a)  # a = inverse(K) P a
    largest = 0.0
    for j in range(n):
        largest = max(largest, abs(a[j]))
    for c in range(len(error)):
        if not abs(error[c] / beta) * largest <= LARGEST_ERROR:
            return False
    for c in range(len(error)):
        step = error[c] / beta
        for j in range(n):
            state.weights[c, j] = fma(step, a[j], state.weights[c, j])
    # Potter: G <- G - G v v' / (beta + sqrt(beta / weight))
    share = 1.0 / (beta + math.sqrt(beta / weight))
    for j in range(n):
        product = -share * g[0, j]
        for q in range(n):
            G[j, q] = fma(product, v[q], G[j, q])
    return True


@inner
def _solve(state, u, a):
    """The weights inverse(K + c I) y."""
    n = state.status[0].order
    for c in range(len(state.labels)):
        coordinates(state.factor, state.labels[c : c + 1], n, u, a)
        for j in range(n):
            state.weights[c, j] = a[j]


@inner
def _length(weights, j):
    """|w_j|, over the outputs."""
    if len(weights) == 1:
        return abs(weights[0, j])
    total = 0.0
    for c in range(len(weights)):
        total = fma(weights[c, j], weights[c, j], total)
    return math.sqrt(total)


@inner
def _select(state, rule, rows, i, square, absolute, k_xx, values, targets, weight, u, a, v, column):
    """SW-KRLS and FB-KRLS: the sample comes in, one goes out, the weights are solved for."""
    status = state.status[0]
    n = status.order
    own = k_xx + rule.ridge / weight
    # The ridge keeps delta away from 0, unless k(x, x) is so large that it is lost in rounding.
    delta = max(own - coordinates(state.factor, values, n, u, a), DEPENDENT * own)
    store(state, n, rows, i, square, absolute, k_xx)
    append_point(state.factor, state.diagonal, n, a, delta)
    for c in range(len(state.labels)):
        state.labels[c, n] = targets[i, c]
        state.weights[c, n] = 0.0
    status.order = n + 1
    if status.order > rule.most:
        status.forced += 1
        j = status.oldest
        if rule.rule == WINDOW:
            status.oldest = j + 1 if j + 1 < rule.most else 0
        else:  # the least a posteriori error without it, |alpha_j| / inverse(K + c I)_jj
            _solve(state, u, a)
            j, least = 0, _length(state.weights, 0)
            for q in range(1, n + 1):
                size = _length(state.weights, q)
                if size * state.diagonal[j] < least * state.diagonal[q]:
                    j, least = q, size
        _remove(state, j, v, column)
    _solve(state, u, a)


@compiled
def filter_pass(
    points, square_norms, absolute_norms, self_kernels, weights, labels, factor, diagonal, spread,
    status, settings, codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    targets, sample_weights, first, predictions,
):  # fmt: skip
    """Learn from the samples ``first`` onwards; see ``sample_pass`` in ``core/loop.py``.

    ``targets`` is (n, q), a column for each output.
    """
    state = FilterState(
        points, square_norms, absolute_norms, self_kernels, weights, labels, factor, diagonal,
        spread, status,
    )  # fmt: skip
    rule = settings[0]
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    record = status[0]
    capacity = diagonal.shape[0]
    work = np.empty((STACK + depth, capacity))
    values = np.empty((1, capacity))
    scratch = np.empty((1, capacity))
    norms = np.empty((1, 2))
    error, change = np.empty(len(weights)), np.empty(len(weights))
    u, a, v, column = np.empty(capacity), np.empty(capacity), np.empty(capacity), np.empty(capacity)
    zero = np.int64(0)  # a literal would be compiled for separately
    for i in range(first, targets.shape[0]):
        n = record.order
        kernel_row(
            program, rows, i, points, square_norms, absolute_norms, n, False, work, values, zero,
            norms,
        )  # fmt: skip
        square, absolute = norms[0, 0], norms[0, 1]
        if not square <= LARGEST_SQUARE_NORM:
            return UNUSABLE, i
        weight = sample_weights[i]
        for c in range(len(weights)):
            f = dot(values, 0, weights, c, 0, n)
            if predictions.shape[0] > 0:
                predictions[i, c] = f
            error[c] = targets[i, c] - f
            change[c] = rule.step * weight * error[c]
            if not abs(error[c]) <= LARGEST_ERROR or not abs(change[c]) <= LARGEST_ERROR:
                return DIVERGED, i
        k_xx = self_value(program, square)
        fits = True
        if rule.rule == GROWING:
            _grow(state, rule, rows, i, square, absolute, k_xx, change)
        elif rule.rule == QUANTISED:
            _quantise(state, rule, rows, i, square, absolute, k_xx, change, work)
        elif rule.rule == NORMALISED:
            fits = _normalise(state, rule, rows, i, square, absolute, k_xx, values, change)
        elif rule.rule == DEPENDENCE:
            fits = _least_squares(
                state, rule, rows, i, square, absolute, k_xx, values, error, weight, u, a, v,
                scratch,
            )  # fmt: skip
        else:
            _select(
                state, rule, rows, i, square, absolute, k_xx, values, targets, weight, u, a, v,
                column,
            )  # fmt: skip
        if not fits:
            return DIVERGED, i
        record.seen += 1
    return DONE, targets.shape[0]
