"""NORMA's margin, or tube, whose width is learned along.

Classes: a step is taken where the margin is at most rho; there rho <- rho - eta (1 - nu), elsewhere
rho <- rho + eta nu. Numbers: a step where |y - f(x)| > epsilon; there epsilon <- epsilon + eta (1 -
nu), elsewhere epsilon <- epsilon - eta nu. In the long run a share nu of the samples makes a step.
Kivinen, Smola, Williamson, "Online learning with kernels", IEEE Trans. Signal Processing 52 (2004),
Section III.
"""

from kernelstream.core.jit import inline
from kernelstream.core.loss import FIRST_REGRESSION_LOSS

#: Place of rho or epsilon among the state's own numbers.
WIDTH = 0


@inline
def width_of(status, loss):
    """The number of the loss at this step: rho, or epsilon, which below 0 counts as 0."""
    width = status.own[WIDTH]
    return width if loss < FIRST_REGRESSION_LOSS else max(width, 0.0)


@inline
def adapt_width(rule, status, active, eta, sample_weight):
    """The width after the step."""
    step = eta * sample_weight * (rule.nu - 1.0 if active else rule.nu)
    status.own[WIDTH] += step if rule.loss < FIRST_REGRESSION_LOSS else -step
