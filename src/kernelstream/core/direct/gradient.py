"""The derivative of the loss: f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .)."""

from kernelstream.core.jit import inline, merged
from kernelstream.core.loss import loss_derivative, target_of


@inline
def gradient_step(loss, number, outputs, f, target, eta, sample_weight, slope, new):
    """Set ``new`` to the sample's coefficients; whether there are any."""
    active = loss_derivative(loss, number, f, outputs, target, slope)
    for c in range(outputs):
        new[c] = -eta * sample_weight * slope[c] if active else 0.0
    return active


@merged
def gradients(rule, f, targets, sample_weights, first, direction):
    """Set ``direction`` to the derivatives at the samples ``first`` onwards."""
    outputs = rule.outputs
    for r in range(direction.shape[0]):
        target = target_of(rule.loss, outputs, targets[first + r])
        some = loss_derivative(rule.loss, rule.loss_number, f[r], outputs, target, direction[r])
        for c in range(outputs):
            direction[r, c] *= sample_weights[first + r] if some else 0.0
