"""A sample becomes a point, unless the points span it: the factor is extended along.

A sample that pursuit would remove again at once is projected on the points without being stored.
"""

from kernelstream.core.costs import find_cheapest, goes_first, look_again
from kernelstream.core.dictionary import store, stored_place
from kernelstream.core.gram import DEPENDENT, SMALLEST_SELF_KERNEL, append_point, coordinates
from kernelstream.core.jit import inner
from kernelstream.core.lanes import fma


@inner
def wear(delta, k_xx):
    """How many ordinary changes an append counts for: the closer to the span, the more the
    factor's errors are amplified, and the sooner it is probed."""
    return 1 + int(min(1e3, 1e-5 * k_xx / delta))


@inner
def extend(state, rows, i, square, absolute, k_xx, new, a, delta):
    """Sample i becomes a point with the weights ``new``; the factor is extended along."""
    status = state.status[0]
    n = status.order
    store(state, n, rows, i, square, absolute, k_xx)
    for c in range(state.weights.shape[0]):
        state.weights[c, n] = new[c]
    append_point(state.factor, state.diagonal, n, a, delta)
    status.order = n + 1
    status.changes += wear(delta, k_xx)


@inner
def spread_out(state, new, a):
    """The weights ``new`` of a sample go to the points, to each the share ``a``."""
    for c in range(state.weights.shape[0]):
        if new[c] != 0.0:
            for j in range(state.status[0].order):
                state.weights[c, j] = fma(a[j], new[c], state.weights[c, j])


@inner
def take_in(state, rows, i, square, absolute, values, k_xx, new, outputs, budget, work):
    """Add ``new`` k(x_i, .) to the function; a capacity for one more point is assumed.

    ``values[0, :order]`` are the kernel values of the sample, ``new`` its weights in stored
    units, ``work`` two rows to work in. A sample that would be removed again at once is projected
    without being stored. Returns the squared error made, at scale 1.
    """
    status = state.status[0]
    n = status.order
    columns = state.weights.shape[0]
    place = stored_place(state, rows, i, square)
    if place >= 0:
        status.dependent += 1
        for c in range(columns):
            state.weights[c, place] += new[c]
        find_cheapest(state, outputs)
        return 0.0

    u, a = work[0], work[1]
    delta = k_xx - coordinates(state.factor, values, n, u, a)
    length = 0.0
    for c in range(columns):
        part = new[c] * new[c]
        length += part if c < outputs else part / (status.scale * status.scale)
    dependent = not delta > DEPENDENT * k_xx or k_xx < SMALLEST_SELF_KERNEL
    error = length * max(delta, 0.0)
    skip = dependent
    if not dependent and error <= budget:
        # Would the new point be the cheapest of all? Then greedy pursuit removes it first.
        skip = not goes_first(state, outputs, error, a, delta)
    if skip:
        status.dependent += dependent
        spread_out(state, new, a)
        find_cheapest(state, outputs)
        return error

    extend(state, rows, i, square, absolute, k_xx, new, a, delta)
    look_again(state, outputs)
    return 0.0
