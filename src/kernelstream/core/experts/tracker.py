"""Kernel recursive least squares that forgets, on a fixed number of points (KRLS-T).

Van Vaerenbergh, Lazaro-Gredilla and Santamaria, "Kernel recursive least-squares tracker for
time-varying regression", 2012, Algorithm 1, in the coordinates of ``group``: mu = L w and
Sigma = L covariance L^T, so that the prior covariance is the identity. Classes, which the paper
does not have, are learned by implicit steps of the softmax loss.
"""

import math

import numpy as np

from kernelstream.core.experts.group import (
    NOVEL,
    add_point,
    drop_point,
    find_cheapest,
    kernel_row,
    look_at_slopes,
)
from kernelstream.core.experts.learning import learn_classes
from kernelstream.core.experts.steps import follow_noises, softmax
from kernelstream.core.jit import compiled, inner
from kernelstream.core.lanes import dot, fma
from kernelstream.core.triangles import multiply_lower, multiply_symmetric, row_start


@inner
def return_to_prior(group, kept, gain, h):
    """Take what was learned off the covariance, then a step back to the prior.

    Sigma <- kept (Sigma - gain h h^T) + (1 - kept) K, mu <- sqrt(kept) mu.
    """
    n = group.status[0].points
    for i in range(n):
        c, row = -gain * h[i], row_start(i)
        for q in range(i + 1):
            group.covariance[row + q] = kept * fma(c, h[q], group.covariance[row + q])
        group.covariance[row + i] += 1.0 - kept
    if kept < 1.0:
        root = math.sqrt(kept)
        for row in range(len(group.weights)):
            for i in range(n):
                group.weights[row, i] *= root


@inner
def learn_errors(group, errors, variance, importance, noises, h):
    """A step of each output, and how much noise each has. Returns the gain of the covariance.

    One covariance for all outputs wants one gain, and so one noise: the mean of theirs.
    """
    status = group.status[0]
    gain = importance / (status.noise + variance * importance)
    for c in range(len(errors)):
        for i in range(status.points):
            group.weights[c, i] = fma(h[i], gain * errors[c], group.weights[c, i])
    follow_noises(status, noises, errors, variance)
    total = 0.0
    for c in range(len(noises)):
        total += noises[c]
    status.noise = total / len(noises)
    return gain


@compiled
def tracker_pass(
    group, kept, noise, noises, outputs, rows, targets, sample_weights, out, deviations
):
    """Predict each row, then learn it; without targets, predict alone.

    Parameters
    ----------
    group : GroupState
        Of one expert, that of second order.
    kept : float
        What is left of the past after a row (lambda); 1: everything.
    noise : float
        The variance of the noise of numbers; 0: learned along.
    noises : (outputs,) for numbers, what was learned of it; (1,) for classes, not used.
    rows : (n, p)
    targets : (n, outputs) numbers, or (n, 1) classes by number; (0, 1)
    sample_weights : (n,)
    out : (n, 1, outputs), probabilities, or numbers.
    deviations : (n, outputs), out: of targets around their predictions (numbers); or (n, 1), of
        the functions.
    """
    status = group.status[0]
    k, u, h, v, work = np.empty((5, len(group.norms)))
    alphas = np.empty((3, len(group.norms)))
    values, gradient, errors = np.empty((1, outputs)), np.empty(outputs), np.empty(outputs)
    slope = np.empty((outputs, rows.shape[1]))
    k_xx = status.amplitude + 1.0
    for t in range(len(rows)):
        z = rows[t]
        n = status.points
        if noise > 0.0:
            status.noise = noise
            for c in range(len(noises)):
                noises[c] = noise
        square = kernel_row(group, z, n, k)
        multiply_lower(group.inverse, n, k, u)
        reach = min(dot(u, 0, u, 0, 0, n), k_xx)
        novelty = k_xx - reach
        multiply_symmetric(group.covariance, n, u, h)
        variance = max(0.0, dot(h, 0, u, 0, 0, n)) + novelty
        for c in range(outputs):
            values[0, c] = dot(group.weights, c, u, 0, 0, n)
        if status.numbers:
            for c in range(outputs):
                out[t, 0, c] = values[0, c]
                deviations[t, c] = math.sqrt(variance + noises[c])
        else:
            softmax(values, 0, 1.0 / math.sqrt(1.0 + 0.125 * math.pi * variance), out, t, 0)
            deviations[t, 0] = math.sqrt(variance)
        if len(targets) == 0:
            continue

        importance = sample_weights[t]
        if novelty > NOVEL * k_xx:
            add_point(group, z, square, novelty, u, h, k, work)
            reach = k_xx
        if status.numbers:
            for c in range(outputs):
                errors[c] = targets[t, c] - values[0, c]
            gain = learn_errors(group, errors, variance, importance, noises, h)
        else:
            label = np.int64(targets[t, 0])
            gain = learn_classes(group, variance, reach, importance, values, label, gradient, u, h)
        return_to_prior(group, kept, gain, h)
        status.seen += 1
        if status.interval > 0 and status.seen % status.interval == 0:
            look_at_slopes(group, outputs, z, k, alphas, slope)
        if status.points > status.most:  # the newcomer may be the one to leave
            j = find_cheapest(group, 0, outputs, status.points, v, work, alphas)
            drop_point(group, j, v, work, alphas[0])
