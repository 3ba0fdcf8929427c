"""Gradient steps of a function in two spaces: points of a kernel, and random Fourier features.

f(x) = sum_j w_j k(d_j, x) + v.z(x). Samples with a gradient become points; where there is no room
the points of the smallest weights leave, and what they contributed goes to v. With steps 1 /
(lambda t) and the hinge loss all weights are of the same size, but for rounding: the oldest leave
then.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelstream.core.jit import compiled, inner
from kernelstream.core.kernel import STACK, Program, Rows, kernel_row
from kernelstream.core.lanes import dot, fma
from kernelstream.core.linear_features import become_point, fourier_features, shrink_and_step
from kernelstream.core.loss import row_derivative
from kernelstream.core.passes import DIVERGED, DONE, LARGEST_SQUARE_NORM, SMALLEST_SCALE, UNUSABLE

#: Squared weights that differ by less, relatively, tie.
TIE = 1e-6


class DualState(NamedTuple):
    """A function on points and on random features; the status is that of linear functions."""

    points: np.ndarray  # (p, size) float64
    square_norms: np.ndarray  # (size,) float64
    absolute_norms: np.ndarray  # (size,) float64
    weights: np.ndarray  # (outputs, size) float64, of the points
    frequencies: np.ndarray  # (p, D) float64
    feature_weights: np.ndarray  # (2 outputs, D) float64: of the cosines, then of the sines
    status: np.ndarray  # (1,) LINEAR_STATUS

    @property
    def order(self) -> int:
        """Points in use."""
        return int(self.status[0]["order"])


@inner
def _to_features(state, outputs, j, cosines):
    """What point ``j`` contributes goes to the features."""
    D = state.frequencies.shape[1]
    for r in range(D):
        cosines[r] = 0.0
    for q in range(state.points.shape[0]):
        x = state.points[q, j]
        for r in range(D):
            cosines[r] = fma(x, state.frequencies[q, r], cosines[r])
    unit = 1.0 / math.sqrt(D)
    for r in range(D):
        cosine, sine = unit * math.cos(cosines[r]), unit * math.sin(cosines[r])
        for c in range(outputs):
            w = state.weights[c, j]
            state.feature_weights[c, r] = fma(w, cosine, state.feature_weights[c, r])
            state.feature_weights[outputs + c, r] = fma(
                w, sine, state.feature_weights[outputs + c, r]
            )


@compiled
def move_smallest(
    points, square_norms, absolute_norms, weights, frequencies, feature_weights, status, count
):  # fmt: skip
    """The ``count`` points of the smallest weights leave; of equal ones the oldest."""
    state = DualState(
        points, square_norms, absolute_norms, weights, frequencies, feature_weights, status
    )  # fmt: skip
    record = status[0]
    n, outputs = record.order, weights.shape[0]
    phases = np.empty(frequencies.shape[1])
    sizes = np.zeros(n)
    for c in range(outputs):
        for j in range(n):
            sizes[j] = fma(weights[c, j], weights[c, j], sizes[j])
    leaves = np.zeros(n, np.bool_)
    for _ in range(min(count, n)):
        least, found = np.inf, -1
        for j in range(n):
            if not leaves[j]:
                least = min(least, sizes[j])
        for j in range(n):
            if found < 0 and not leaves[j] and sizes[j] <= least * (1.0 + TIE):
                found = j
        leaves[found] = True
        _to_features(state, outputs, found, phases)
    kept = 0
    for j in range(n):
        if leaves[j]:
            continue
        if kept < j:
            for q in range(points.shape[0]):
                points[q, kept] = points[q, j]
            for c in range(outputs):
                weights[c, kept] = weights[c, j]
            square_norms[kept] = square_norms[j]
            absolute_norms[kept] = absolute_norms[j]
        kept += 1
    record.order = kept
    record.forced += 1


@compiled
def dual_pass(
    points, square_norms, absolute_norms, weights, frequencies, feature_weights, status, settings,
    codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    targets, sample_weights, first, predictions,
):  # fmt: skip
    """Learn from the samples ``first`` onwards.

    f~ = (1 - eta lambda) f - eta l'(f(x), y) k(x, .); before that, where there is no room, points
    leave.
    """
    state = DualState(
        points, square_norms, absolute_norms, weights, frequencies, feature_weights, status
    )
    rule, record = settings[0], status[0]
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    outputs, size, D = rule.outputs, points.shape[1], frequencies.shape[1]
    work = np.empty((STACK + depth, size))
    values = np.empty((1, size))
    cosines = np.empty((1, D))
    sines = np.empty((1, D))
    norms = np.empty((1, 2))
    f = np.empty(outputs)
    slope = np.empty(outputs)
    new = np.empty(outputs)
    zero = np.int64(0)  # a literal would be compiled for separately
    for i in range(first, targets.shape[0]):
        n = record.order
        kernel_row(
            program, rows, i, points, square_norms, absolute_norms, n, False, work, values, zero,
            norms,
        )  # fmt: skip
        if not norms[0, 0] <= LARGEST_SQUARE_NORM:
            return UNUSABLE, i
        for c in range(outputs):
            f[c] = dot(values, 0, weights, c, 0, n)
        if record.forced > 0:  # else nothing has gone to the features
            fourier_features(rows, i, frequencies, cosines, sines)
            for c in range(outputs):
                f[c] += dot(cosines, 0, feature_weights, c, 0, D)
                f[c] += dot(sines, 0, feature_weights, outputs + c, 0, D)
        for c in range(outputs):
            f[c] *= record.scale
            if predictions.shape[0] > 0:
                predictions[i, c] = f[c]
        active = row_derivative(rule.loss, rule.loss_number, f, outputs, targets, i, slope)
        if not shrink_and_step(rule, record, outputs, sample_weights[i], active, slope, new):
            return DIVERGED, i
        if active:
            if n == size:
                move_smallest(
                    points, square_norms, absolute_norms, weights, frequencies, feature_weights,
                    status, rule.moved,
                )  # fmt: skip
            become_point(state, outputs, rows, i, norms, new)
        if record.scale < SMALLEST_SCALE:
            for c in range(outputs):
                for j in range(size):
                    weights[c, j] *= record.scale
            for c in range(2 * outputs):
                for j in range(D):
                    feature_weights[c, j] *= record.scale
            record.scale = 1.0
        record.seen += 1
    return DONE, targets.shape[0]
