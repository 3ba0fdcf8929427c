"""Loss values and derivatives for one sample with one or several outputs.

One output: classification targets are -1 or +1, regression targets any number.
Several outputs: the target is the index of the class. Margin losses then act on
m = f_y - f_r, where r is the best other class (the first one in a tie): with the hinge this
is Crammer and Singer's loss, POLK (33). ``log_loss`` becomes the multinomial one, POLK (35).
"""

import math

import numpy as np

from kernelstream.core.exponential import LOG2_E, UNDERFLOW, decay
from kernelstream.core.jit import inner, lean

(
    HINGE,
    SQUARED_HINGE,
    SMOOTH_HINGE,
    LOG_LOSS,
    MARGIN_LOG_LOSS,
    PERCEPTRON,
    SQUARED_ERROR,
    ABSOLUTE_ERROR,
    EPSILON_INSENSITIVE,
    HUBER,
    QUANTILE,
) = range(11)

#: Codes below this one are classification losses.
FIRST_REGRESSION_LOSS = SQUARED_ERROR


@inner
def _margin_value(code, number, m):
    if code == HINGE:
        return max(0.0, 1.0 - m)
    if code == SQUARED_HINGE:
        return max(0.0, 1.0 - m) ** 2
    if code == SMOOTH_HINGE:
        if m >= 1.0:
            return 0.0
        if m <= 1.0 - number:
            return 1.0 - m - 0.5 * number
        return (1.0 - m) ** 2 / (2.0 * number)
    if code == PERCEPTRON:  # its number is a margin: NORMA learns it
        return max(0.0, number - m)
    if m > 0.0:  # log(1 + e^-m) without overflow
        return math.log1p(math.exp(-m))
    return -m + math.log1p(math.exp(m))


@inner
def _margin_slope(code, number, m):
    """Derivative in m. At the kink m = 1 of the hinge it is 0.

    The perceptron's number is the margin that is a mistake: 0, or more if it is to be aggressive.
    """
    if code == HINGE:
        return -1.0 if m < 1.0 else 0.0
    if code == SQUARED_HINGE:
        return -2.0 * (1.0 - m) if m < 1.0 else 0.0
    if code == SMOOTH_HINGE:
        if m >= 1.0:
            return 0.0
        if m <= 1.0 - number:
            return -1.0
        return -(1.0 - m) / number
    if code == PERCEPTRON:
        return -1.0 if m <= number else 0.0
    if m > 0.0:
        e = math.exp(-m)
        return -e / (1.0 + e)
    return -1.0 / (1.0 + math.exp(m))


@inner
def _regression_value(code, number, residual):
    """Loss of f - y = residual."""
    size = abs(residual)
    if code == SQUARED_ERROR:
        return 0.5 * residual * residual
    if code == ABSOLUTE_ERROR:
        return size
    if code == EPSILON_INSENSITIVE:
        return max(0.0, size - number)
    if code == HUBER:
        return 0.5 * size * size if size <= number else number * (size - 0.5 * number)
    return (1.0 - number) * residual if residual > 0.0 else -number * residual


@inner
def _regression_slope(code, number, residual):
    """Derivative in f. Zero at the kinks of the absolute, insensitive and quantile losses."""
    if code == SQUARED_ERROR:
        return residual
    if code == ABSOLUTE_ERROR:
        return 1.0 if residual > 0.0 else (-1.0 if residual < 0.0 else 0.0)
    if code == EPSILON_INSENSITIVE:
        return 1.0 if residual > number else (-1.0 if residual < -number else 0.0)
    if code == HUBER:
        return min(max(residual, -number), number)
    if residual > 0.0:
        return 1.0 - number
    return -number if residual < 0.0 else 0.0


@inner
def _runner_up(f, outputs, label):
    best = -1
    for c in range(outputs):
        if c != label and (best < 0 or f[c] > f[best]):
            best = c
    return best


@lean
def loss_value(code, number, f, outputs, target):
    """The loss of the prediction ``f[:outputs]``."""
    if code >= FIRST_REGRESSION_LOSS:
        return _regression_value(code, number, f[0] - target)
    if outputs == 1:
        return _margin_value(code, number, target * f[0])
    label = int(target)
    if code == LOG_LOSS:
        top = f[0]
        for c in range(1, outputs):
            top = max(top, f[c])
        total = 0.0
        for c in range(outputs):
            total += decay(top - f[c], LOG2_E, UNDERFLOW)
        return math.log(total) + top - f[label]
    return _margin_value(code, number, f[label] - f[_runner_up(f, outputs, label)])


@lean
def loss_derivative(code, number, f, outputs, target, out):
    """Set ``out[:outputs]`` to the derivative in f; return whether any of it is not zero.

    That of the softmax counts as zero where the probability of the right class rounds to 1, though
    the others keep what is left: no sample becomes a point for a weight below 1e-16.
    """
    if code >= FIRST_REGRESSION_LOSS:
        out[0] = _regression_slope(code, number, f[0] - target)
        return out[0] != 0.0
    if outputs == 1:
        out[0] = target * _margin_slope(code, number, target * f[0])
        return out[0] != 0.0
    label = int(target)
    if code == LOG_LOSS:  # softmax minus one-hot; erratum: POLK (21) prints sigmoid's derivative
        top = f[0]
        for c in range(1, outputs):
            top = max(top, f[c])
        total = 0.0
        for c in range(outputs):
            out[c] = decay(top - f[c], LOG2_E, UNDERFLOW)
        for c in range(outputs):
            total += out[c] + 0.0 * f[c]  # not a number where f is infinite or none
        for c in range(outputs):
            out[c] /= total
        out[label] -= 1.0
        return out[label] != 0.0
    rival = _runner_up(f, outputs, label)
    slope = _margin_slope(code, number, f[label] - f[rival])
    for c in range(outputs):
        out[c] = 0.0
    out[label] = slope
    out[rival] = -slope
    return slope != 0.0


@inner
def vector_value(code, number, f, outputs, targets, i):
    """:func:`loss_value` of several numbers, row ``i`` of targets: the sum of their losses."""
    total = 0.0
    for c in range(outputs):
        total += _regression_value(code, number, f[c] - targets[i, c])
    return total


@inner
def vector_derivative(code, number, f, outputs, targets, i, out):
    """:func:`loss_derivative` of the sum of the losses of several numbers, row ``i`` of targets."""
    some = False
    for c in range(outputs):
        out[c] = _regression_slope(code, number, f[c] - targets[i, c])
        some |= out[c] != 0.0
    return some


@inner
def margin_of(code, f, outputs, target):
    """By how much the right class is ahead of the others; of numbers infinite."""
    if code >= FIRST_REGRESSION_LOSS:
        return np.inf
    if outputs == 1:
        return target * f[0]
    label = int(target)
    return f[label] - f[_runner_up(f, outputs, label)]


@inner
def target_of(loss, outputs, label):
    """Class 0 or 1 of a single-output classifier is -1 or +1 in the loss."""
    if outputs == 1 and loss < FIRST_REGRESSION_LOSS:
        return 2.0 * label - 1.0
    return label


@inner
def row_derivative(code, number, f, outputs, targets, i, out):
    """:func:`loss_derivative` for row ``i`` of a table: a label or number, or several numbers."""
    if outputs > 1 and code >= FIRST_REGRESSION_LOSS:
        return vector_derivative(code, number, f, outputs, targets, i, out)
    return loss_derivative(code, number, f, outputs, target_of(code, outputs, targets[i, 0]), out)


@lean
def loss_values(code, number, f, labels, out):
    """Set ``out`` to the loss of each prediction ``f`` (n, outputs); classes count from 0."""
    outputs = f.shape[1]
    for r in range(f.shape[0]):
        out[r] = loss_value(code, number, f[r], outputs, target_of(code, outputs, labels[r]))
