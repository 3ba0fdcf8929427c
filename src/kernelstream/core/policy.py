"""The compiled pass of policy evaluation (COLK, Example 2): quasi-gradient steps and KOMP.

A transition leads from state x to state y with reward r. Both states come as neighbouring rows:
those of transition i are rows 2 i and 2 i + 1. Columns of the weights: the value function, its
average if there is one, and the tracked temporal difference if that is a function.
"""

from typing import NamedTuple

import numpy as np

from kernelstream.core.gram import SMALLEST_SELF_KERNEL
from kernelstream.core.jit import compiled, inner
from kernelstream.core.kernel import Program, Rows, kernel_rows, self_value
from kernelstream.core.komp import GREEDY, prune, renormalise
from kernelstream.core.lanes import dot
from kernelstream.core.pairs import take_in_samples
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
    columns = state_weights.shape[0]
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
        here = dot(values, 0, state_weights, 0, 0, n)
        there = dot(values, 1, state_weights, 0, 0, n)
        tracked = dot(values, 0, state_weights, last, 0, n)
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
        # Beyond a terminal state there is nothing.
        active = np.int64(1 if new[1, 0] == 0.0 else STATES)
        for r in range(active):
            _copy_state(rows, two * i + r, block[r])
        at_once = allowed / (scale * scale) if projection == GREEDY else -1.0
        error = take_in_samples(state, program, block, values, norms, new, active, outputs, at_once)
        record.taken += active
        prune(state, outputs, error * scale * scale, allowed, most, projection)
        record.steps += 1
        record.seen += 1
        if scale < SMALLEST_SCALE:
            renormalise(state, outputs)
    return roomy(state, two), rewards.shape[0]
