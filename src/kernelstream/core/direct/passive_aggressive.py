"""Passive-aggressive steps: the smallest that makes the sample's loss zero, or less.

With the loss l, its derivative g (one entry per output) and q = |g|^2 k(x, x) the step is
f <- f - tau g k(x, .), where tau = min(C, l / q) (PA-I) or l / (q + 1 / (2 C)) (PA-II).
Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, "Online passive-aggressive algorithms", JMLR 7
(2006), (9) and (10).

Several numbers of a sample take a step each: the constraints, and so the smallest step that meets
them all, are one for each number.
"""

from kernelstream.core.direct import PASSIVE_AGGRESSIVE
from kernelstream.core.jit import inline
from kernelstream.core.loss import loss_derivative, loss_value, vector_derivative


@inline
def _length(rule, value, square, sample_weight):
    """tau of a loss whose derivative, as a function, has the squared length ``square``."""
    most = rule.aggressiveness * sample_weight
    if rule.direct == PASSIVE_AGGRESSIVE:
        return min(most, value / square) if square > 0.0 else most
    return value / (square + 0.5 / most)


@inline
def passive_aggressive_step(rule, f, target, sample_weight, k_xx, slope, new):
    """Set ``new`` to the sample's coefficients; whether there are any."""
    active = loss_derivative(rule.loss, rule.loss_number, f, rule.outputs, target, slope)
    if not active:
        for c in range(rule.outputs):
            new[c] = 0.0
        return False
    square = 0.0
    for c in range(rule.outputs):
        square += slope[c] * slope[c]
    square *= k_xx
    value = loss_value(rule.loss, rule.loss_number, f, rule.outputs, target)
    step = _length(rule, value, square, sample_weight)
    for c in range(rule.outputs):
        new[c] = -step * slope[c]
    return True


@inline
def passive_aggressive_vector(rule, f, targets, i, sample_weight, k_xx, slope, new):
    """The same for several numbers, row ``i`` of targets."""
    active = vector_derivative(rule.loss, rule.loss_number, f, rule.outputs, targets, i, slope)
    for c in range(rule.outputs):
        value = loss_value(rule.loss, rule.loss_number, f[c : c + 1], 1, targets[i, c])
        step = _length(rule, value, slope[c] * slope[c] * k_xx, sample_weight)
        new[c] = -step * slope[c] if slope[c] != 0.0 else 0.0
    return active
