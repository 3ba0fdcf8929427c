"""The derivative of the loss: f <- (1 - eta lambda) f - eta l'(f(x), y) k(x, .)."""

from kernelstream.core.jit import merged
from kernelstream.core.loss import loss_derivative, target_of
from kernelstream.core.schedule import step_size


@merged
def gradient_step(rule, status, f, target, sample_weight, slope, new):
    """Set ``new`` to the sample's coefficients; whether there are any, and what f is kept by."""
    active = loss_derivative(rule.loss, rule.loss_number, f, rule.outputs, target, slope)
    eta = step_size(rule.schedule, rule.initial_step, rule.decay, status.steps)
    for c in range(rule.outputs):
        new[c] = -eta * sample_weight * slope[c] if active else 0.0
    return active, 1.0 - eta * rule.regularisation


@merged
def gradients(rule, f, targets, sample_weights, first, direction):
    """Set ``direction`` to the derivatives at the samples ``first`` onwards."""
    outputs = rule.outputs
    for r in range(direction.shape[0]):
        target = target_of(rule.loss, outputs, targets[first + r])
        some = loss_derivative(rule.loss, rule.loss_number, f[r], outputs, target, direction[r])
        for c in range(outputs):
            direction[r, c] *= sample_weights[first + r] if some else 0.0
