"""The compiled pass of policy evaluation (COLK, Example 2): quasi-gradient steps and KOMP.

A transition leads from state x to state y with reward r. Both states come as neighbouring rows:
those of transition i are rows 2 i and 2 i + 1. Columns of the weights: the value function, its
average if there is one, and the tracked temporal difference if that is a function.
"""

from typing import NamedTuple

import numpy as np

from kernelstream.core.gram import (
    DEPENDENT,
    SMALLEST_SELF_KERNEL,
    append_point,
    coordinates,
)
from kernelstream.core.jit import compiled, inner
from kernelstream.core.kernel import Program, Rows, kernel_rows, self_value
from kernelstream.core.komp import (
    GREEDY,
    _wear,
    find_cheapest,
    look_again,
    prune,
    removal_cost,
    renormalise,
    store,
    stored_place,
    take_in,
    take_in_block,
)
from kernelstream.core.passes import DIVERGED, FULL, LARGEST_WEIGHT, PROBE
from kernelstream.core.polk import PROBE_EVERY, SMALLEST_SCALE, average, roomy
from kernelstream.core.schedule import error_budget, step_size
from kernelstream.core.state import State

#: What stands for the expected temporal difference, see :func:`transition_pass`.
CORRECTED, GRADIENT, SCALAR = range(3)

#: Points that a transition may add.
STATES = 2


class Settings(NamedTuple):
    """What to do with each transition."""

    method: int
    tracking: float  # beta
    regularisation: float  # lambda
    schedule: int
    initial_step: float  # alpha in the paper
    decay: float
    budget: int
    budget_number: float
    most: int  # cap on the number of points
    averaging: float  # as for POLK
    horizon: float
    projection: int
    outputs: int  # 1


@inner
def _copy_state(rows, i, out):
    """Sample i as a dense row."""
    if rows.sparse:
        for q in range(out.shape[0]):
            out[q] = 0.0
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            out[rows.indices[q]] = rows.data[q]
    else:
        for q in range(out.shape[0]):
            out[q] = rows.dense[i, q]


@inner
def _energy(new, first, second, outputs, unit):
    """Inner product of two rows of weights; those of averaged and tracked columns are unscaled."""
    total, unscaled = 0.0, 0.0
    for c in range(outputs):
        total += new[first, c] * new[second, c]
    for c in range(outputs, new.shape[1]):
        unscaled += new[first, c] * new[second, c]
    return total + unscaled / unit


@inner
def _take_in_pair(state, program, rows, i, block, values, norms, new, outputs, budget):
    """Add ``new[r]`` k(x_r, .) for samples i and i + 1, without storing what pursuit would remove.

    Two states of a transition are close: in most steps greedy pursuit removes both again, or one.
    Here this is found out from the factor as it is. Returns the squared error made, at scale 1;
    or -1, with nothing changed, where both are to be stored, an old point goes first, or
    a sample is not independent.
    """
    status = state.status[0]
    n = status.order
    unit = status.scale * status.scale
    for r in range(STATES):
        if stored_place(state, rows, i + r, norms[r, 0]) >= 0:
            return -1.0
    u = np.empty((STATES, n))
    a = np.empty((STATES, n))
    own = np.empty(STATES)
    residuals = np.empty((STATES, STATES))  # inner products of what the points do not span
    width = block.shape[1]
    other = np.empty((width, 1))
    for q in range(width):
        other[q, 0] = block[1, q]
    out = np.empty((1, 1))
    kernel_rows(
        program, rows, i, np.int64(1), other, norms[1:, 0].copy(), norms[1:, 1].copy(),
        np.int64(1), out, np.empty((1, 2)),
    )  # fmt: skip
    for r in range(STATES):
        own[r] = self_value(program, norms[r, 0])
        residuals[r, r] = own[r] - coordinates(state.factor, values[r : r + 1], n, u[r], a[r])
    cross = out[0, 0]
    for j in range(n):
        cross -= u[0, j] * u[1, j]
    determinant = residuals[0, 0] * residuals[1, 1] - cross * cross
    for r in range(STATES):
        if own[r] < SMALLEST_SELF_KERNEL or not residuals[r, r] > DEPENDENT * own[r]:
            return -1.0
        if not determinant > DEPENDENT * own[1 - r] * residuals[r, r]:
            return -1.0

    # The new one that costs less, beside the other and all old points.
    costs = np.empty(STATES)
    for r in range(STATES):
        costs[r] = _energy(new, r, r, outputs, unit) * determinant / residuals[1 - r, 1 - r]
    r = 0 if costs[0] <= costs[1] else 1
    s = 1 - r
    if costs[r] > budget:
        return -1.0
    for j in range(n):
        grown = (
            a[0, j] * a[0, j] * residuals[1, 1]
            - 2.0 * a[0, j] * a[1, j] * cross
            + a[1, j] * a[1, j] * residuals[0, 0]
        ) / determinant
        energy = removal_cost(state, j, outputs) * state.diagonal[j]
        if energy < costs[r] * (state.diagonal[j] + grown):
            return -1.0

    share = cross / residuals[s, s]
    for c in range(new.shape[1]):
        if new[r, c] != 0.0:
            for j in range(n):
                state.weights[j, c] += (a[r, j] - share * a[s, j]) * new[r, c]
            new[s, c] += share * new[r, c]
    error = costs[r]
    last = _energy(new, s, s, outputs, unit) * residuals[s, s]
    skip = error + last <= budget
    for j in range(n):
        energy = removal_cost(state, j, outputs) * state.diagonal[j]
        if energy < last * (state.diagonal[j] + a[s, j] * a[s, j] / residuals[s, s]):
            skip = False
    if skip:
        for c in range(new.shape[1]):
            if new[s, c] != 0.0:
                for j in range(n):
                    state.weights[j, c] += a[s, j] * new[s, c]
        find_cheapest(state, outputs)
        return error + last
    store(state, n, rows, i + s, norms[s, 0], norms[s, 1], own[s])
    for c in range(new.shape[1]):
        state.weights[n, c] = new[s, c]
    append_point(state.factor, state.diagonal, n, a[s], residuals[s, s])
    status.order = n + 1
    status.changes += _wear(residuals[s, s], own[s])
    look_again(state, outputs)
    return error


@compiled
def transition_pass(
    points, square_norms, absolute_norms, self_kernels, state_weights, factor, diagonal, status,
    method, tracking, regularisation, schedule, initial_step, decay, budget, budget_number,
    most, averaging, horizon, projection, outputs,
    codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    rewards, discounts, first,
):  # fmt: skip
    """Learn from the transitions ``first`` onwards.

    ``discounts`` holds gamma for each of them, 0 where y is terminal. With

        delta = r + gamma V(y) - V(x)

    a step is V <- (1 - alpha lambda) V + alpha (a k(x, .) - gamma z k(y, .)), then KOMP:

    * ``SCALAR``: z <- (1 - beta) z + beta delta, one number, and a = z. The paper's (19), (24).
    * ``GRADIENT``: z is a function; z(x) <- (1 - beta) z(x) + beta delta, and a = z(x).
    * ``CORRECTED``: the same z, but a = delta, whose mean at x is what z(x) estimates.

    Returns
    -------
    reason, next : int
        Why it stopped, and the first transition that was not consumed; see POLK's.
    """
    state = State(
        points, square_norms, absolute_norms, self_kernels, state_weights, factor, diagonal, status
    )
    settings = Settings(
        method, tracking, regularisation, schedule, initial_step, decay, budget, budget_number,
        most, averaging, horizon, projection, outputs,
    )  # fmt: skip
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    record = status[0]
    columns = state_weights.shape[1]
    last = columns - 1  # of the tracked function
    values = np.empty((STATES, diagonal.shape[0]))
    norms = np.empty((STATES, 2))
    block = np.empty((STATES, points.shape[0]))
    new = np.empty((STATES, columns))
    two = np.int64(STATES)  # a literal would be compiled for separately
    for i in range(first, rewards.shape[0]):
        n = record.order
        if n + STATES > diagonal.shape[0]:
            return FULL, i
        if record.changes >= PROBE_EVERY:
            return PROBE, i
        kernel_rows(
            program, rows, two * i, two, points, square_norms, absolute_norms, n, values, norms
        )
        here, there, tracked = 0.0, 0.0, 0.0
        for j in range(n):
            here += values[0, j] * state_weights[j, 0]
            there += values[1, j] * state_weights[j, 0]
            tracked += values[0, j] * state_weights[j, last]
        delta = rewards[i] + record.scale * (discounts[i] * there - here)

        # (19), for a function with the step beta / k(x, x): its value at x then moves by beta.
        for c in range(columns):
            new[0, c] = new[1, c] = 0.0
        if method == SCALAR:
            tracked = (1.0 - tracking) * record.tracker + tracking * delta
        else:
            own = self_value(program, norms[0, 0])
            change = tracking * (delta - tracked) if own >= SMALLEST_SELF_KERNEL else 0.0
            tracked += change
            new[0, last] = change / max(own, SMALLEST_SELF_KERNEL)

        # (24)
        eta = step_size(schedule, initial_step, decay, record.steps)
        allowed = error_budget(budget, budget_number, eta) ** 2
        scale = record.scale * (1.0 - eta * regularisation)
        new[0, 0] = eta * (delta if method == CORRECTED else tracked) / scale
        new[1, 0] = -eta * discounts[i] * tracked / scale
        largest = max(abs(new[0, 0]), abs(new[1, 0]), abs(new[0, last]), abs(tracked))
        if not (largest <= LARGEST_WEIGHT and abs(delta) <= LARGEST_WEIGHT):
            return DIVERGED, i
        if method == SCALAR:
            record.tracker = tracked
        record.scale = scale
        if averaging > 0.0:
            share = average(state, settings)
            for r in range(STATES):
                new[r, 1] = new[r, 0] * scale * share
        active = 1 if new[1, 0] == 0.0 else 2  # beyond a terminal state there is nothing
        at_once = allowed / (scale * scale) if projection == GREEDY else -1.0
        if active == 1:
            error = take_in(
                state, rows, two * i, norms[0, 0], norms[0, 1], values,
                self_value(program, norms[0, 0]), new[0], outputs, at_once,
            )  # fmt: skip
        else:
            for r in range(STATES):
                _copy_state(rows, two * i + r, block[r])
            error = _take_in_pair(
                state, program, rows, two * i, block, values, norms, new, outputs, at_once
            )
            if error < 0.0:
                error = take_in_block(state, program, block, values, norms, new, two, outputs)
        record.taken += active
        prune(state, outputs, error * scale * scale, allowed, most, projection)
        record.steps += 1
        record.seen += 1
        if scale < SMALLEST_SCALE:
            renormalise(state, outputs)
    return roomy(state, two), rewards.shape[0]
