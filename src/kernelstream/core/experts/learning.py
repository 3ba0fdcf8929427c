"""The steps that the experts of a group take after a row."""

import math

from kernelstream.core.experts.steps import curvature, follow_noise, follow_noises, implicit_step
from kernelstream.core.jit import inner
from kernelstream.core.lanes import fma

#: What a row leaves of the first-order functions. Where all of it stays they grow for ever, and
#: unlearn ever more slowly: 1 % of errors on moving squares became 11 % after 250,000 rows.
KEPT = 1.0 - 3e-5


@inner
def learn_numbers(group, variance, reach, importance, values, targets, u, h, errors):
    """The step of each expert. Returns the gain of the covariance, which all targets share."""
    status = group.status[0]
    n, outputs = status.points, values.shape[1]
    gain = importance / (status.noise + variance * importance)
    for c in range(outputs):
        errors[c] = targets[c] - values[0, c]
        for i in range(n):
            group.weights[c, i] = fma(h[i], gain * errors[c], group.weights[c, i])
    for e in range(1, len(values)):
        step = group.rates[e - 1] * importance
        for c in range(outputs):
            move = step * (targets[c] - values[e, c]) / (1.0 + step * reach)
            row = e * outputs + c
            for i in range(n):
                group.weights[row, i] = fma(u[i], move, KEPT * group.weights[row, i])
    if outputs == 1:
        follow_noise(status, errors[0], variance)
        return gain
    # One covariance for all targets wants one gain, and so one noise. With the mean of theirs a
    # target that can hardly be predicted made the others slow.
    follow_noises(status, group.noises, errors, variance)
    total = 0.0
    for c in range(outputs):
        total += math.log(group.noises[c])
    status.noise = math.exp(total / outputs)
    return gain


@inner
def learn_classes(group, variance, reach, importance, values, label, gradient, u, h):
    """The step of each expert. Returns the gain of the covariance."""
    n = group.status[0].points
    outputs = values.shape[1]
    implicit_step(values, 0, label, variance * importance, gradient)
    for c in range(outputs):
        move = importance * gradient[c]
        for i in range(n):
            group.weights[c, i] = fma(h[i], move, group.weights[c, i])
    bend = importance * curvature(values, 0, variance * importance, gradient)
    for e in range(1, len(values)):
        step = group.rates[e - 1] * importance
        implicit_step(values, e, label, step * reach, gradient)
        for c in range(outputs):
            move = step * gradient[c]
            row = e * outputs + c
            for i in range(n):
                group.weights[row, i] = fma(u[i], move, KEPT * group.weights[row, i])
    return bend / (1.0 + bend * variance)
