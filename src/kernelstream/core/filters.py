"""Adaptive filters: one output, squared error, a dictionary of fixed capacity.

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
    weights: np.ndarray  # (1, capacity) float64
    labels: np.ndarray  # (1, capacity) float64, targets of the points; or (1, 0)
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
        state.labels[0, j] = state.labels[0, last]
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
    state.weights[0, place] = change


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
        state.weights[0, n] = change
        status.order += 1
    else:
        status.forced += far
        state.weights[0, nearest] += change


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
    gain = change / (rule.ridge + total)
    if not abs(gain) * math.sqrt(total) <= LARGEST_ERROR:
        return False
    if grows:
        store(state, n, rows, i, square, absolute, k_xx)
        state.weights[0, n] = 0.0
        values[0, n] = k_xx
        status.order = n = n + 1
    else:
        status.forced += novel
    for j in range(n):
        state.weights[0, j] = fma(gain, values[0, j], state.weights[0, j])
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
        new = error / delta
        if not abs(new) <= LARGEST_ERROR:
            return False
        store(state, n, rows, i, square, absolute, k_xx)
        append_point(state.factor, state.diagonal, n, a, delta)
        for j in range(n):
            state.weights[0, j] = fma(-a[j], new, state.weights[0, j])
            G[j, n] = 0.0
            G[n, j] = 0.0
        state.weights[0, n] = new
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
    step = error / beta
    largest = 0.0
    for j in range(n):
        largest = max(largest, abs(a[j]))
    if not abs(step) * largest <= LARGEST_ERROR:
        return False
    for j in range(n):
        state.weights[0, j] = fma(step, a[j], state.weights[0, j])
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
    coordinates(state.factor, state.labels, n, u, a)
    for j in range(n):
        state.weights[0, j] = a[j]


@inner
def _select(state, rule, rows, i, square, absolute, k_xx, values, target, weight, u, a, v, column):
    """SW-KRLS and FB-KRLS: the sample comes in, one goes out, the weights are solved for."""
    status = state.status[0]
    n = status.order
    own = k_xx + rule.ridge / weight
    # The ridge keeps delta away from 0, unless k(x, x) is so large that it is lost in rounding.
    delta = max(own - coordinates(state.factor, values, n, u, a), DEPENDENT * own)
    store(state, n, rows, i, square, absolute, k_xx)
    append_point(state.factor, state.diagonal, n, a, delta)
    state.labels[0, n] = target
    state.weights[0, n] = 0.0
    status.order = n + 1
    if status.order > rule.most:
        status.forced += 1
        j = status.oldest
        if rule.rule == WINDOW:
            status.oldest = j + 1 if j + 1 < rule.most else 0
        else:  # the least a posteriori error without it, |alpha_j| / inverse(K + c I)_jj
            _solve(state, u, a)
            j = 0
            for q in range(1, n + 1):
                if abs(a[q]) * state.diagonal[j] < abs(a[j]) * state.diagonal[q]:
                    j = q
        _remove(state, j, v, column)
    _solve(state, u, a)


@compiled
def filter_pass(
    points, square_norms, absolute_norms, self_kernels, weights, labels, factor, diagonal, spread,
    status, settings, codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    targets, sample_weights, first, predictions,
):  # fmt: skip
    """Learn from the samples ``first`` onwards; see ``sample_pass`` in ``core/loop.py``."""
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
        f = dot(values, 0, weights, 0, 0, n)
        if predictions.shape[0] > 0:
            predictions[i, 0] = f
        error = targets[i] - f
        weight = sample_weights[i]
        change = rule.step * weight * error
        if not abs(error) <= LARGEST_ERROR or not abs(change) <= LARGEST_ERROR:
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
                state, rule, rows, i, square, absolute, k_xx, values, targets[i], weight, u, a, v,
                column,
            )  # fmt: skip
        if not fits:
            return DIVERGED, i
        record.seen += 1
    return DONE, targets.shape[0]
