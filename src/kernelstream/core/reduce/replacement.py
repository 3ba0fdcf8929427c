"""The newest point takes the place of an old one, and as much of its function as it can (BPA).

Point r leaves; what it contributed, w_r k(d_r, .), is projected on the newest point x alone
(``TO_NEWEST``) or on x and on the nearest neighbour of r among the old points (``TO_NEIGHBOURS``).
What the projection misses is orthogonal to k(x, .): it changes neither f(x) nor the loss, so the
passive-aggressive objective is least where |w_r|^2 e_r is, e_r the squared distance of k(d_r, .)
to the span of the points that take over.

Wang, Vucetic, "Online passive-aggressive algorithms on a budget", AISTATS 2010.
"""

import math

import numpy as np

from kernelstream.core.costs import energy
from kernelstream.core.gram import DEPENDENT, SMALLEST_SELF_KERNEL
from kernelstream.core.jit import inner
from kernelstream.core.kernel import STACK, between_points
from kernelstream.core.lanes import fma
from kernelstream.core.reduce.removal import drop

#: What is missed is nothing where it is this small a part: rounding must not choose.
NOTHING_MISSED = 1e-12
#: The table has not been made; a point without a neighbour; a neighbour that has left.
UNKNOWN, ALONE, GONE = -3.0, -1.0, -2.0


@inner
def _take_over(state, values, r, neighbour, near):
    """Weights of k(d_r, .) on the newest point and on ``neighbour``, and what they miss.

    ``near`` is the kernel value of the two. ``values[0]`` are those of the newest point.
    """
    last = state.status[0].order - 1
    k_rr, k_tt, k_rt = state.self_kernels[r], state.self_kernels[last], values[0, r]
    if not k_tt >= SMALLEST_SELF_KERNEL:
        return 0.0, 0.0, k_rr
    b_t, b_n = k_rt / k_tt, 0.0
    if neighbour >= 0:
        k_nn, k_tn = state.self_kernels[neighbour], values[0, neighbour]
        determinant = k_tt * k_nn - k_tn * k_tn
        if determinant > DEPENDENT * k_tt * k_nn:
            b_t = (k_rt * k_nn - near * k_tn) / determinant
            b_n = (near * k_tt - k_rt * k_tn) / determinant
    missed = k_rr - b_t * k_rt - b_n * near
    return b_t, b_n, missed if missed > NOTHING_MISSED * k_rr else 0.0


@inner
def _best_alone(state, outputs, values):
    """The old point that the newest one alone replaces best, its weight there, and the cost.

    The arithmetic of ``_take_over`` without calls, which take longer than it does.
    """
    last = state.status[0].order - 1
    k_tt = state.self_kernels[last]
    usable = k_tt >= SMALLEST_SELF_KERNEL
    best, least, newest = 0, np.inf, 0.0
    for r in range(last):
        k_rr, k_rt = state.self_kernels[r], values[0, r]
        b_t = k_rt / k_tt if usable else 0.0
        missed = k_rr - b_t * k_rt
        missed = missed if missed > NOTHING_MISSED * k_rr else 0.0
        square = 0.0
        for c in range(outputs):
            square = fma(state.weights[c, r], state.weights[c, r], square)
        if square * missed < least:
            best, least, newest = r, square * missed, b_t
    return best, least, newest


@inner
def replace_one(state, outputs, values, table):
    """Let the newest point take the place of the old one that costs least; which place that is.

    ``table`` (2, capacity) has the nearest neighbours of the old points and their kernel values,
    or no rows: then there are none.
    """
    status = state.status[0]
    last = status.order - 1
    best, least, cell, newest, beside = 0, np.inf, -1, 0.0, 0.0
    if table.shape[0] == 0:
        best, least, newest = _best_alone(state, outputs, values)
    for r in range(last if table.shape[0] > 0 else 0):
        neighbour, near = int(table[0, r]), table[1, r]
        b_t, b_n, missed = _take_over(state, values, r, neighbour, near)
        cost = energy(state, r, outputs) * missed
        if cost < least:
            best, least, cell, newest, beside = r, cost, neighbour, b_t, b_n
    for c in range(outputs):
        weight = state.weights[c, best]
        state.weights[c, last] = fma(newest, weight, state.weights[c, last])
        if cell >= 0:
            state.weights[c, cell] = fma(beside, weight, state.weights[c, cell])
    status.error_spent += status.scale * math.sqrt(least)
    drop(state, best)
    return best


@inner
def _find_nearest(state, program, point, work, table, j, n):
    """Note the point nearest to point ``j`` in the RKHS, the first one in a tie."""
    between_points(program, state, j, n, point, work)
    best, least = -1, np.inf
    for i in range(n):
        if i != j:
            square = (state.self_kernels[i] + state.self_kernels[j]) - 2.0 * work[STACK, i]
            if square < least:
                best, least = i, square
    table[0, j] = best if best >= 0 else ALONE
    table[1, j] = work[STACK, best] if best >= 0 else 0.0


@inner
def find_neighbours(state, program, point, work, table):
    """Fill the table where it has not been made: a function of the old points alone."""
    n = state.status[0].order - 1
    if table[0, 0] == UNKNOWN:
        for j in range(n):
            _find_nearest(state, program, point, work, table, j, n)


@inner
def note_replaced(state, program, point, work, table, place):
    """Another point is at ``place`` now: bring the table up to date.

    The same bits as of a new table, since kernel values between points are symmetric to the bit.
    """
    n = state.status[0].order
    _find_nearest(state, program, point, work, table, place, n)
    for j in range(n):
        if j == place:
            continue
        other = int(table[0, j])
        k_jj = state.self_kernels[j]
        near = (state.self_kernels[place] + k_jj) - 2.0 * work[STACK, j]
        if other == place:
            table[0, j] = GONE
        elif other < 0:
            continue
        else:
            best = (state.self_kernels[other] + k_jj) - 2.0 * table[1, j]
            if near < best or (near == best and place < other):
                table[0, j], table[1, j] = place, work[STACK, j]
    for j in range(n):
        if table[0, j] == GONE:
            _find_nearest(state, program, point, work, table, j, n)
