"""A point leaves, and what it contributed is projected on all others.

Points that others span leave at once, or the factor would lose its digits. Where there are more
than the cap, one leaves: with ``PROJECT_SMALLEST`` the one that contributes least, |w_j|^2 k(d_j,
d_j) (BSGD); with ``PROJECT_CHEAPEST`` the one whose loss changes the function least, |w_j|^2 /
diag_j, but not the newest (BPA-P).
"""

import numpy as np

from kernelstream.core.costs import energy, removal_cost
from kernelstream.core.jit import allocating, inline
from kernelstream.core.reduce import PROJECT_CHEAPEST
from kernelstream.core.reduce.komp import GREEDY, _prune, remove_point
from kernelstream.core.reduce.smallest import TIE

#: A budget that no removal keeps to, and a cap that is never reached.
NO_BUDGET, NO_CAP = -1.0, 2**62


@allocating
def _make_room(state, rule, error):
    """See `make_room`. Returns the squared error made, in true units."""
    status = state.status[0]
    newest = status.order - 1
    if status.cheapest < 0.0:  # some point is spanned by others
        # As numbers: constants would be types of their own, and compiled once more.
        greedy, no_cap = np.int64(GREEDY), np.int64(NO_CAP)
        error = _prune(state, rule.outputs, error, NO_BUDGET, no_cap, greedy)
    if status.order <= rule.most:
        return error
    best, least = 0, np.inf
    for j in range(status.order):
        if rule.reduce == PROJECT_CHEAPEST:
            cost = removal_cost(state, j, rule.outputs) if j != newest else np.inf
        else:
            cost = energy(state, j, rule.outputs) * state.self_kernels[j]
        if cost < least * (1.0 - TIE):  # the first of those that tie but for rounding
            best, least = j, cost
    status.forced += 1
    error += removal_cost(state, best, rule.outputs) * status.scale * status.scale
    remove_point(state, best, np.empty(status.order), np.empty(status.order))
    return error


@inline
def make_room(state, rule, error):
    """Drop spanned points, and one more where there are too many.

    ``error`` is the squared error already made in this step, in true units. Books the root of the
    total.
    """
    status = state.status[0]
    if status.order > rule.most or status.cheapest < 0.0:
        error = _make_room(state, rule, error)
    status.error_spent += np.sqrt(error)
