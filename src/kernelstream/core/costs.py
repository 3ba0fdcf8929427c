"""What removing a point costs: |w_j|^2 / diag_j, the weights of the others projected again.

Summed over outputs, which share the points. Averaged weights are held unscaled.
"""

import numpy as np

from kernelstream.core.gram import DEPENDENT
from kernelstream.core.jit import INTERPRETED, inline, inner
from kernelstream.core.lanes import (
    add4,
    counting4,
    divide4,
    fma,
    fma4,
    lane4,
    less4,
    load4,
    multiply4,
    spread4,
    sum4,
    zero4,
)


@inner
def energy(state, j, outputs):
    """|w_j|^2 at scale 1. Averaged weights are held unscaled."""
    status = state.status[0]
    square, averaged = 0.0, 0.0
    for c in range(outputs):
        square = fma(state.weights[c, j], state.weights[c, j], square)
    for c in range(outputs, state.weights.shape[0]):
        averaged = fma(state.weights[c, j], state.weights[c, j], averaged)
    return fma(averaged, 1.0 / (status.scale * status.scale), square)


@inline
def energy4(state, j, outputs):
    """The same of four points."""
    status = state.status[0]
    square = averaged = zero4()
    for c in range(outputs):
        weight = load4(state.weights, c, j)
        square = fma4(weight, weight, square)
    for c in range(outputs, state.weights.shape[0]):
        weight = load4(state.weights, c, j)
        averaged = fma4(weight, weight, averaged)
    return fma4(averaged, spread4(1.0 / (status.scale * status.scale)), square)


@inner
def removal_cost(state, j, outputs):
    """|w_j|^2 / diag_j at scale 1."""
    return energy(state, j, outputs) / state.diagonal[j]


@inner
def find_cheapest(state, outputs):
    """The point that costs least to remove, the first one in a tie; -1 without points.

    Its cost goes to ``status.cheapest``.
    """
    status = state.status[0]
    n = status.order
    best, least = -1, np.inf
    first = 0
    if not INTERPRETED:
        first = n - n % 4
        costs, places, here = spread4(np.inf), zero4(), counting4()
        for j in range(0, first, 4):
            cost = divide4(energy4(state, j, outputs), load4(state.diagonal, 0, j))
            places = less4(cost, costs, here, places)
            costs = less4(cost, costs, cost, costs)
            here = add4(here, spread4(4.0))
        for k in range(4):
            cost, place = lane4(costs, k), int(lane4(places, k))
            if cost < least or (cost == least and place < best):
                best, least = place, cost
    for j in range(first, n):
        cost = removal_cost(state, j, outputs)
        if cost < least:
            best, least = j, cost
    if best < 0 and n > 0:  # all of them are infinite
        best, least = 0, removal_cost(state, 0, outputs)
    status.cheapest = least
    return best


@inner
def goes_first(state, outputs, cost, a, delta):
    """Whether some point costs less to remove than ``cost``, once a new one is appended.

    The new point has projection weights ``a`` and squared distance ``delta``: it makes the
    diagonal grow by a^2 / delta.
    """
    n = state.status[0].order
    share = 1.0 / delta
    first = 0
    if not INTERPRETED:
        first = n - n % 4
        found = zero4()
        for j in range(0, first, 4):
            part = load4(a, 0, j)
            diagonal = fma4(multiply4(part, part), spread4(share), load4(state.diagonal, 0, j))
            bound = multiply4(spread4(cost), diagonal)
            found = less4(energy4(state, j, outputs), bound, spread4(1.0), found)
        if sum4(found) > 0.0:
            return True
    for j in range(first, n):
        if energy(state, j, outputs) < cost * fma(a[j] * a[j], share, state.diagonal[j]):
            return True
    return False


@inner
def find_crowded(state):
    """A point that those taken in after it have come to span, or -1.

    The distance of an old point to the span of the others, 1 / diag, falls as points are added.
    It is bounded below like that of a new one, or the factor would lose its digits.
    """
    worst, largest = -1, 1.0 / DEPENDENT
    for j in range(state.status[0].order):
        if state.diagonal[j] * state.self_kernels[j] > largest:
            worst, largest = j, state.diagonal[j] * state.self_kernels[j]
    return worst


@inner
def look_again(state, outputs):
    """Note the least cost, or one below all budgets when a point must go in any case."""
    if find_crowded(state) >= 0:
        state.status[0].cheapest = -np.inf
    else:
        find_cheapest(state, outputs)
