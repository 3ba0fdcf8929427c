"""A linear expert of second order on 1, the inputs and, if wanted, the last target."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.steps import (
    curvature,
    implicit_step,
    softmax,
    thinned,
)
from kernelstream.core.jit import compiled, inner
from kernelstream.core.lanes import add_multiple, dot, fma
from kernelstream.core.splitmix import uniform
from kernelstream.core.units import as_it_was

#: The numbers of a linear expert.
LINEAR_STATUS = np.dtype(
    (
        np.record,
        [
            ("seen", np.int64),
            ("random", np.uint64),
            ("numbers", np.int64),
            ("lagged", np.int64),  # whether the last target is an input
            ("far", np.int64),  # whether inputs beyond three deviations count as they are
            ("last", np.float64),  # target; of several the first one
            ("forget", np.float64),
        ],
    )
)

#: Variance of the noise of numbers, in the target's units: all rows must count alike.
NOISE = 0.1
#: Rows between two steps of forgetting.
EVERY = 8
#: Variance of the weights of p inputs, together, in an expert that expects small ones: each has a
#: p-th part of it, 1 at most. With 1 for each, what a hundred of them say is all but unknown. Of
#: numbers, of numbers with the last target, and of classes.
TOGETHER_NUMBERS, TOGETHER_LAGGED, TOGETHER_CLASSES = 1.0, 5.0, 5.0


class LinearState(NamedTuple):
    """What a linear expert holds: w inputs, o outputs."""

    status: NDArray[np.void]  # (1,) LINEAR_STATUS
    covariance: NDArray[np.float64]  # (w, w), or (1, w): its diagonal alone
    weights: NDArray[np.float64]  # (o, w)


def first_covariance(
    inputs: int, width: int, together: float, diagonal: bool
) -> NDArray[np.float64]:
    """Of the weights before any row: the constant, ``inputs``, and last targets up to ``width``.

    Those of the inputs have the variance ``together``, and 1 each at most.
    """
    variances = np.ones((1, width))
    variances[0, 1 : 1 + inputs] = min(1.0, together / inputs)
    return variances if diagonal else np.diag(variances[0])


@inner
def write_inputs(status, last, z, outputs, x):
    x[0] = 1.0
    for j in range(len(z)):
        x[1 + j] = as_it_was(z[j]) if status.far else z[j]
    if status.lagged and len(x) > 1 + len(z):
        if status.numbers:
            for c in range(outputs):
                x[1 + len(z) + c] = last[c]
        else:
            for c in range(outputs):
                x[1 + len(z) + c] = 1.0 if c == np.int64(status.last) else 0.0


@inner
def spread_inputs(covariance, x, h):
    """h = covariance x."""
    width = len(x)
    if len(covariance) == 1:
        for i in range(width):
            h[i] = covariance[0, i] * x[i]
        return
    for i in range(width):
        h[i] = 0.0
    for j in range(width):
        if x[j] != 0.0:
            add_multiple(x[j], covariance, j, h, width)


@inner
def shrink_covariance(covariance, h, gain):
    width = len(h)
    if len(covariance) == 1:
        for i in range(width):
            reduced = covariance[0, i] - gain * h[i] * h[i]
            covariance[0, i] = max(reduced, 1e-3 * covariance[0, i])
        return
    for i in range(width):
        if h[i] != 0.0:
            add_multiple(-gain * h[i], h, 0, covariance[i], width)


@inner
def forget(covariance, kept):
    """Some way back to the identity, the covariance before any row of those that forget."""
    for i in range(len(covariance)):
        for q in range(covariance.shape[1]):
            covariance[i, q] *= kept
            if i == q or len(covariance) == 1:
                covariance[i, q] += 1.0 - kept


@compiled
def linear_pass(linear, last, rows, targets, sample_weights, out, place):
    """Predict each row, then learn it; without targets, predict alone.

    Parameters
    ----------
    linear : LinearState
    last : (outputs,) the numbers before these rows; not used for classes.
    rows : (n, p)
    targets : (n, outputs) numbers, or (n, 1) classes by number; (0, 1)
    sample_weights : (n,)
    out : (n, experts, outputs), at expert ``place``: probabilities, or numbers.
    """
    status = linear.status[0]
    outputs, width = linear.weights.shape
    x, h = np.empty(width), np.empty(width)
    values, gradient = np.empty((1, outputs)), np.empty(outputs)
    for t in range(len(rows)):
        write_inputs(status, targets[t - 1] if t and len(targets) else last, rows[t], outputs, x)
        spread_inputs(linear.covariance, x, h)
        variance = max(1e-12, dot(h, 0, x, 0, 0, width))
        for c in range(outputs):
            values[0, c] = dot(linear.weights, c, x, 0, 0, width)
        if status.numbers:
            for c in range(outputs):
                out[t, place, c] = values[0, c]
        else:
            shrink = 1.0 / math.sqrt(1.0 + 0.125 * math.pi * variance)
            softmax(values, 0, shrink, out, t, place)
        if len(targets) == 0:
            continue
        importance = sample_weights[t]
        if status.numbers:
            gain = importance / (NOISE + variance * importance)
            for c in range(outputs):
                error = targets[t, c] - values[0, c]
                for i in range(width):
                    linear.weights[c, i] = fma(h[i], gain * error, linear.weights[c, i])
        else:
            implicit_step(values, 0, np.int64(targets[t, 0]), variance * importance, gradient)
            for c in range(outputs):
                move = importance * gradient[c]
                for i in range(width):
                    linear.weights[c, i] = fma(h[i], move, linear.weights[c, i])
            bend = importance * curvature(values, 0, variance * importance, gradient)
            gain = bend / (1.0 + bend * variance)
        gain = thinned(gain, variance, uniform(status))
        if gain > 0.0:
            shrink_covariance(linear.covariance, h, gain)
        status.seen += 1
        if status.forget < 1.0 and status.seen % EVERY == 0:
            forget(linear.covariance, status.forget**EVERY)
        status.last = targets[t, 0]
