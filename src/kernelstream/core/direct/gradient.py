"""The derivative of the loss: f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .)."""

from kernelstream.core.jit import inline, merged
from kernelstream.core.loss import (
    FIRST_REGRESSION_LOSS,
    loss_derivative,
    target_of,
    vector_derivative,
)


@inline
def gradient_step(loss, number, outputs, f, target, eta, sample_weight, slope, new):
    """Set ``new`` to the sample's coefficients; whether there are any."""
    active = loss_derivative(loss, number, f, outputs, target, slope)
    for c in range(outputs):
        new[c] = -eta * sample_weight * slope[c] if active else 0.0
    return active


@inline
def vector_step(loss, number, outputs, f, targets, i, eta, sample_weight, slope, new):
    """The same for several numbers, row ``i`` of targets."""
    active = vector_derivative(loss, number, f, outputs, targets, i, slope)
    for c in range(outputs):
        new[c] = -eta * sample_weight * slope[c] if active else 0.0
    return active


@merged
def gradients(rule, f, targets, extra, sample_weights, first, direction):
    """Set ``direction`` to the derivatives at the samples ``first`` onwards.

    Several numbers of a sample lie in ``extra``.
    """
    outputs = rule.outputs
    for r in range(direction.shape[0]):
        i = first + r
        if outputs > 1 and rule.loss >= FIRST_REGRESSION_LOSS:
            some = vector_derivative(
                rule.loss, rule.loss_number, f[r], outputs, extra, i, direction[r]
            )
        else:
            target = target_of(rule.loss, outputs, targets[i])
            some = loss_derivative(rule.loss, rule.loss_number, f[r], outputs, target, direction[r])
        for c in range(outputs):
            direction[r, c] *= sample_weights[first + r] if some else 0.0
