"""Only a mistake that is new enough becomes a point; others are projected on the points.

With k the kernel values of x and d = inverse(K) k the projection of k(x, .) on the points has the
weights d and the squared norm kappa = k.d; delta^2 = k(x, x) - kappa is what it misses.

* A mistake is stored where |w| delta exceeds the threshold eta and there is room, w its weight for
  an output; else its weights go to the points, each times d.
* A sample on the right side whose hinge loss H is not zero (Projectron++) is projected where
  H > delta / eta, and tau times of it: tau = min(1, H / kappa, 2 (H - delta / eta) / kappa).
  For several classes the step is made for two of them, and kappa counts twice.

Orabona, Keshet, Caputo, "Bounded kernel-based online learning", JMLR 10 (2009), Figures 1 and 2.
"""

import math

import numpy as np

from kernelstream.core.costs import find_crowded
from kernelstream.core.dictionary import stored_place
from kernelstream.core.gram import DEPENDENT, SMALLEST_SELF_KERNEL, coordinates
from kernelstream.core.grow.span import extend, spread_out
from kernelstream.core.jit import inner


@inner
def store_or_project(state, rows, i, square, absolute, values, k_xx, new, rule, loss, work):
    """Add ``new`` k(x_i, .) to the function; a capacity for one more point is assumed.

    ``loss`` is the hinge loss of a sample on the right side, and 1 at least of a mistake; the
    others as of `take_in`. ``new`` is used up. Returns the squared error made, at scale 1.
    """
    status = state.status[0]
    n = status.order
    u, a = work[0], work[1]
    place = stored_place(state, rows, i, square)
    if place >= 0:  # its projection is the point itself, whatever rounding says
        for j in range(n):
            a[j] = 0.0
        a[place] = 1.0
        kappa = k_xx
    else:
        kappa = coordinates(state.factor, values, n, u, a)
    delta = max(k_xx - kappa, 0.0)
    if loss < 1.0:
        size = kappa * min(rule.outputs, 2)
        left = loss - math.sqrt(delta) / rule.novelty
        if not left > 0.0 or not size > 0.0:
            return 0.0
        tau = min(1.0, loss / size, 2.0 * left / size)
        for c in range(rule.outputs):
            new[c] *= tau
    largest, length = 0.0, 0.0
    for c in range(rule.outputs):
        largest = max(largest, abs(new[c]))
        length += new[c] * new[c]
    dependent = not delta > DEPENDENT * k_xx or k_xx < SMALLEST_SELF_KERNEL
    if loss >= 1.0 and not dependent and largest * math.sqrt(delta) > rule.novelty:
        if n < rule.most:
            extend(state, rows, i, square, absolute, k_xx, new, a, delta)
            if find_crowded(state) >= 0:
                status.cheapest = -np.inf
            return 0.0
        status.forced += 1
    status.dependent += dependent
    spread_out(state, new, a)
    return length * delta
