"""Gradient steps of a linear function on features of a kernel.

* ``FOURIER``: 2 D features cos(w_j.x) / sqrt(D), sin(w_j.x) / sqrt(D) of D frequencies; rows of
  the weights: those of the cosines, then those of the sines.
* ``GATHERING``: a kernel expansion whose samples with a gradient become points, until there are
  as many as there is room for;
* ``NYSTROEM``: the features z = M k(x) of the kernel values k(x) at these points.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelstream.core.jit import compiled, inner
from kernelstream.core.kernel import STACK, Program, Rows, copy_sample, kernel_row, row_norms
from kernelstream.core.lanes import dot, fma
from kernelstream.core.loss import row_derivative
from kernelstream.core.passes import (
    DIVERGED,
    DONE,
    LARGEST_SQUARE_NORM,
    LARGEST_WEIGHT,
    LATE,
    SMALLEST_SCALE,
    UNUSABLE,
)
from kernelstream.core.schedule import step_size

FOURIER, GATHERING, NYSTROEM = range(3)

LINEAR_STATUS = np.dtype(
    (
        np.record,
        [
            ("order", "i8"),  # frequencies, or points in use
            ("seen", "i8"),  # samples consumed
            ("forced", "i8"),  # how often a cap left no choice
            ("features", "i8"),  # of the map; 0 while points are gathered
            ("scale", "f8"),  # the true weights are scale * weights
            ("random", "u8"),  # the seed of the frequencies
        ],
    )
)

LINEAR_SETTINGS = np.dtype(
    (
        np.record,
        [
            ("rule", "i8"),
            ("moved", "i8"),  # points that leave at a time: core/dual_space.py
            ("outputs", "i8"),
            ("loss", "i8"),
            ("loss_number", "f8"),
            ("regularisation", "f8"),  # lambda
            ("schedule", "i8"),
            ("initial_step", "f8"),  # eta
            ("decay", "f8"),
        ],
    )
)


class LinearState(NamedTuple):
    """A linear function and its features."""

    points: np.ndarray  # (p, size) float64: frequencies, or points
    square_norms: np.ndarray  # (size,) float64, of points
    absolute_norms: np.ndarray  # (size,) float64, of points
    weights: np.ndarray  # (rows, size) float64
    projection: np.ndarray  # (size, size) float64, M of Nystroem features; or (0, 0)
    status: np.ndarray  # (1,) LINEAR_STATUS

    @property
    def order(self) -> int:
        """Points or frequencies in use."""
        return int(self.status[0]["order"])


@inner
def fourier_features(rows, i, frequencies, cosines, sines):
    """The features of sample ``i``: products with the frequencies feature by feature."""
    n = frequencies.shape[1]
    for j in range(n):
        cosines[0, j] = 0.0
    if rows.sparse:
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            x, place = rows.data[q], rows.indices[q]
            for j in range(n):
                cosines[0, j] = fma(x, frequencies[place, j], cosines[0, j])
    else:
        for q in range(frequencies.shape[0]):
            x = rows.dense[i, q]
            for j in range(n):
                cosines[0, j] = fma(x, frequencies[q, j], cosines[0, j])
    unit = 1.0 / math.sqrt(n)
    for j in range(n):
        phase = cosines[0, j]
        cosines[0, j] = unit * math.cos(phase)
        sines[0, j] = unit * math.sin(phase)


@inner
def become_point(state, outputs, rows, i, norms, new):
    """Sample ``i`` becomes a point."""
    status = state.status[0]
    n = status.order
    copy_sample(rows, i, state.points, n)
    state.square_norms[n] = norms[0, 0]
    state.absolute_norms[n] = norms[0, 1]
    for c in range(outputs):
        state.weights[c, n] = new[c]
    status.order = n + 1


@inner
def shrink_and_step(rule, record, outputs, weight, active, slope, new):
    """Shrink the function, and the coefficients of the step; False where they would overflow."""
    eta = step_size(rule.schedule, rule.initial_step, rule.decay, record.seen)
    # The function is zero before the first step, which need not shrink it: 1 - eta lambda may be 0
    # there.
    scale = record.scale * (1.0 - eta * rule.regularisation if record.seen > 0 else 1.0)
    for c in range(outputs):
        new[c] = -eta * weight * slope[c] / scale if active else 0.0
        if not abs(new[c]) <= LARGEST_WEIGHT:
            return False
    record.scale = scale
    return True


@compiled
def linear_pass(
    points, square_norms, absolute_norms, weights, projection, status, settings,
    codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    targets, sample_weights, first, predictions,
):  # fmt: skip
    """Learn from the samples ``first`` onwards; ``LATE``: enough points for a map are there.

    ``targets`` is (n, 1), or has several numbers per sample.

    f~ = (1 - eta lambda) f - eta l'(f(x), y) z(x).
    """
    state = LinearState(points, square_norms, absolute_norms, weights, projection, status)
    rule = settings[0]
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    record = status[0]
    kind, outputs, size = rule.rule, rule.outputs, points.shape[1]
    work = np.empty((STACK + depth, size))
    values = np.empty((1, size))
    z = np.empty((1, size))
    norms = np.empty((1, 2))
    f = np.empty(outputs)
    slope = np.empty(outputs)
    new = np.empty(outputs)
    zero = np.int64(0)  # a literal would be compiled for separately
    for i in range(first, targets.shape[0]):
        n = record.order
        if kind == GATHERING and n == size:
            return LATE, i
        # evaluate
        count = n
        if kind == FOURIER:
            norms[0, 0], norms[0, 1] = row_norms(rows, i)
        else:
            kernel_row(
                program, rows, i, points, square_norms, absolute_norms, n, False, work, values,
                zero, norms,
            )  # fmt: skip
        if not norms[0, 0] <= LARGEST_SQUARE_NORM:
            return UNUSABLE, i
        if kind == FOURIER:
            fourier_features(rows, i, points, values, z)
        elif kind == NYSTROEM:
            count = record.features
            for r in range(count):
                z[0, r] = dot(projection, r, values, 0, 0, n)
            for r in range(count):
                values[0, r] = z[0, r]
        for c in range(outputs):
            f[c] = dot(values, 0, weights, c, 0, count)
            if kind == FOURIER:
                f[c] += dot(z, 0, weights, outputs + c, 0, count)
            f[c] *= record.scale
            if predictions.shape[0] > 0:
                predictions[i, c] = f[c]
        # direct
        active = row_derivative(rule.loss, rule.loss_number, f, outputs, targets, i, slope)
        if not shrink_and_step(rule, record, outputs, sample_weights[i], active, slope, new):
            return DIVERGED, i
        # step
        if active and kind == GATHERING:
            become_point(state, outputs, rows, i, norms, new)
        elif active:
            for c in range(outputs):
                for j in range(count):
                    weights[c, j] = fma(new[c], values[0, j], weights[c, j])
                if kind == FOURIER:
                    for j in range(count):
                        weights[outputs + c, j] = fma(new[c], z[0, j], weights[outputs + c, j])
        if record.scale < SMALLEST_SCALE:
            for c in range(weights.shape[0]):
                for j in range(size):
                    weights[c, j] *= record.scale
            record.scale = 1.0
        record.seen += 1
    return DONE, targets.shape[0]
