"""Policy evaluation (COLK, Example 2): quasi-gradients of the projected Bellman error.

A transition leads from state x to state y with reward r; both come as neighbouring rows. With

    delta = r + gamma V(y) - V(x)

a step is V <- (1 - alpha lambda) V + alpha (a k(x, .) - gamma z k(y, .)):

* ``SCALAR``: z <- (1 - beta) z + beta delta, one number, and a = z. The paper's (19), (24).
* ``GRADIENT``: z is a function; z(x) <- (1 - beta) z(x) + beta delta, and a = z(x).
* ``CORRECTED``: the same z, but a = delta, whose mean at x is what z(x) estimates.

With the function before the last step at hand a number z is tracked by (20): (1 - beta) (z - delta
before) + delta in the place of (1 - beta) z + beta delta. Not a function z: the last step has
changed delta at every state, and z would learn of it at one.

Rows of the weights: V, its average if there is one, and z if that is a function.
"""

import numpy as np

from kernelstream.core.gram import SMALLEST_SELF_KERNEL
from kernelstream.core.jit import merged
from kernelstream.core.passes import LARGEST_WEIGHT
from kernelstream.core.schedule import step_size

#: What stands for the expected temporal difference.
CORRECTED, GRADIENT, SCALAR = range(3)

#: Samples of a transition, and points that it may add.
STATES = 2


@merged
def temporal_difference(
    rule, status, f, earlier, k_xx, reward, discount, direction, tracked_weights
):
    """Set ``direction`` (2, 1) and the weights added to z; the tracker after the step, or NaN.

    ``discount`` is gamma, 0 where y is terminal; ``f`` (2, rows of weights) are the values at x
    and y, ``earlier`` (2, 1) those of V before the last step, or (2, 0): with them a number z is
    tracked by (20), else by (19). ``k_xx`` is k(x, x).
    """
    last = f.shape[1] - 1
    delta = reward + (discount * f[1, 0] - f[0, 0])
    rate = step_size(rule.tracking_schedule, rule.tracking_rate, rule.tracking_decay, status.steps)
    # (19), for a function with the step beta / k(x, x): its value at x then moves by beta.
    if rule.tracking == SCALAR:
        tracked = (1.0 - rate) * status.tracker + rate * delta
        if earlier.shape[1] > 0:  # (20): also the change of delta by the last step
            before = reward + (discount * earlier[1, 0] - earlier[0, 0])
            tracked += (1.0 - rate) * (delta - before)
        tracker = tracked
    else:
        change = rate * (delta - f[0, last]) if k_xx >= SMALLEST_SELF_KERNEL else 0.0
        tracked = f[0, last] + change
        tracked_weights[0, last - 1] = change / max(k_xx, SMALLEST_SELF_KERNEL)
        tracker = status.tracker
    direction[0, 0] = -(delta if rule.tracking == CORRECTED else tracked)  # (24)
    direction[1, 0] = discount * tracked
    finite = abs(tracked) <= LARGEST_WEIGHT and abs(delta) <= LARGEST_WEIGHT
    return tracker if finite else np.nan
