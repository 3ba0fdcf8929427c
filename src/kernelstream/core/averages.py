"""An average of the iterates on the same points, in which recent ones weigh more."""

from kernelstream.core.jit import inner
from kernelstream.core.lanes import fma


@inner
def average(state, rule):
    """Move the averaged rows towards the current function, avg += (f - avg) share; the share."""
    status = state.status[0]
    outputs = rule.outputs
    share = rule.averaging / (status.steps + rule.averaging)
    share = max(share, 1.0 / rule.horizon)
    for c in range(outputs):
        for j in range(status.order):
            mean = state.weights[outputs + c, j]
            gap = fma(state.weights[c, j], status.scale, -mean)
            state.weights[outputs + c, j] = fma(gap, share, mean)
    # |(f, avg)| of a point shrinks by at most sqrt(2) share: a bound saves looking again.
    status.cheapest = status.cheapest * (1.0 - 1.4143 * share) ** 2 if share < 0.7 else 0.0
    return share
