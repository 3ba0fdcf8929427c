"""An agent of a network: derivatives at its own samples, and the pull of its neighbours.

(17) and (19) of the survey: the direction at a sample is l' + pull f(x) - centre, where
pull = sum_j c_j and centre = sum_j c_j f_j(x) over the neighbours j. Samples of neighbours have no
target (NaN): only the pull acts there.
"""

import math

from kernelstream.core.jit import lean, merged
from kernelstream.core.loss import loss_derivative, target_of


@lean
def own_samples(targets, first, count):
    """How many samples have a target: they come first."""
    own = 0
    while own < count and not math.isnan(targets[first + own]):
        own += 1
    return own


@merged
def pulled(rule, f, targets, pulls, first, direction):
    """Set ``direction``; the number of own samples. ``pulls`` (n, 1 + outputs): pull and centre.

    Where there is a risk, ``direction`` holds the quasi-gradients at the own samples already.
    """
    outputs = rule.outputs
    own = 0
    for r in range(direction.shape[0]):
        i = first + r
        some = False
        if not math.isnan(targets[i]):
            own += 1
            target = target_of(rule.loss, outputs, targets[i])
            some = rule.risk_weight > 0.0 or loss_derivative(
                rule.loss, rule.loss_number, f[r], outputs, target, direction[r]
            )
        for c in range(outputs):
            direction[r, c] = direction[r, c] if some else 0.0
            if pulls[i, 0] > 0.0 or pulls[i, 1 + c] != 0.0:
                direction[r, c] += pulls[i, 0] * f[r, c] - pulls[i, 1 + c]
    return own
