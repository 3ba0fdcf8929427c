"""The loop of ``core/loop.py`` in steps of several samples, always with KOMP.

It is compiled once for every family of rules that give coefficients.
"""

from typing import Any

import numpy as np

from kernelstream.core.averages import average
from kernelstream.core.blas import multiply
from kernelstream.core.dictionary import renormalise
from kernelstream.core.direct import GRADIENT, PULL, QUASI_GRADIENT, TRANSITION
from kernelstream.core.direct.gradient import gradients
from kernelstream.core.direct.pull import own_samples, pulled
from kernelstream.core.direct.quasi_gradient import quasi_gradients
from kernelstream.core.direct.transition import STATES, temporal_difference
from kernelstream.core.grow.block import take_in_samples
from kernelstream.core.jit import inner, merged, named
from kernelstream.core.kernel import Program, Rows, kernel_rows, self_value
from kernelstream.core.passes import (
    DIVERGED,
    FULL,
    LARGEST_WEIGHT,
    PROBE,
    PROBE_EVERY,
    SMALLEST_SCALE,
    roomy,
)
from kernelstream.core.past import carry, past_values
from kernelstream.core.reduce.komp import GREEDY, prune_block
from kernelstream.core.schedule import GIVEN, error_budget, step_size
from kernelstream.core.state import State
from kernelstream.core.tables import copy_row


@inner
def allowed_error(status, rule):
    """The squared error that the present step may make."""
    eta = step_size(rule.schedule, rule.initial_step, rule.decay, status.steps)
    return error_budget(rule.budget, rule.budget_number, eta) ** 2


@merged
def grow_block(state, rule, program, rows, first, values, norms, direction, tracked, divisor):
    """f~ = (1 - eta lambda) f - (eta / divisor) sum_r direction_r k(x_r, .), not compressed yet.

    ``direction`` (count, outputs) belongs to the samples ``first`` onwards, ``tracked`` is added to
    the other rows of weights. ``values`` and ``norms`` are those of :func:`evaluate_block`, and are
    used up. A capacity for all samples is assumed.

    Returns
    -------
    active : int
        Samples with a direction; -1, with nothing changed, if one is not finite.
    error : float
        Squared error made by merging dependent samples, in true units.
    """
    status = state.status[0]
    count, outputs = direction.shape
    columns = state.weights.shape[0]
    eta = step_size(rule.schedule, rule.initial_step, rule.decay, status.steps)
    scale = status.scale * (1.0 - eta * rule.regularisation)

    # Samples with a direction, moved to the front.
    new = np.zeros((count, columns))
    block = np.zeros((count, state.points.shape[0]))
    active = 0
    for r in range(count):
        i = first + r
        some = False
        for c in range(columns):
            if c < outputs:
                some |= direction[r, c] != 0.0
                new[active, c] = -eta / divisor * direction[r, c] / scale
            else:
                some |= tracked[r, c - outputs] != 0.0
                new[active, c] = tracked[r, c - outputs]
            if not abs(new[active, c]) <= LARGEST_WEIGHT:
                return -1, 0.0
        if not some:
            continue
        if rows.sparse:
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                block[active, rows.indices[q]] = rows.data[q]
        else:
            copy_row(rows.dense, i, block, active)
        if active != r:
            copy_row(values, r, values, active)
            copy_row(norms, r, norms, active)
        active += 1

    status.scale = scale
    if rule.averaging > 0.0:
        share = average(state, rule)
        for r in range(active):
            for c in range(outputs):
                new[r, outputs + c] = new[r, c] * scale * share
    status.taken += active
    if active == 0:
        return active, 0.0
    unit = scale * scale
    at_once = allowed_error(status, rule) / unit if rule.projection == GREEDY else -1.0
    error = take_in_samples(state, program, block, values, norms, new, active, outputs, at_once)
    return active, error * unit


@merged
def evaluate_block(state, past, rule, program, rows, first, count):
    """Kernel values of the samples, their norms, and the values of f and of f before the last step.

    Values of f come first, then those of the other rows of weights. ``past`` without rows: f
    before the last step is not wanted.
    """
    status = state.status[0]
    n = status.order
    columns = state.weights.shape[0]
    values = np.empty((count, n))
    norms = np.empty((count, 2))
    kernel_rows(
        program, rows, first, count, state.points, state.square_norms, state.absolute_norms,
        n, values, norms,
    )  # fmt: skip
    f = np.zeros((count, columns))
    multiply(values, False, state.weights, True, f, count, columns, n, 1.0, 0.0)
    for r in range(count):
        for c in range(rule.outputs):
            f[r, c] *= status.scale
    return values, norms, f, past_values(state, past, program, rows, first, values)


@inner
def true_weights(state, current):
    """The first rows of weights at scale 1."""
    status = state.status[0]
    for c in range(current.shape[0]):
        for j in range(status.order):
            current[c, j] = state.weights[c, j] * status.scale


@merged
def reduce_block(state, past, rule, current, active, error, consumed):
    """The end of a step that made ``active`` samples points: KOMP.

    ``current``: the weights before it, ``error`` what it has made already.
    """
    status = state.status[0]
    n = current.shape[1]
    allowed = allowed_error(status, rule)
    held = 0  # points kept to find f before the step again
    if past.shape[0] > 0:
        for c in range(past.shape[0]):
            copy_row(current, c, past, c)
            for j in range(n, n + active):
                past[c, j] = 0.0
        status.ghosts = 0
        # ``cheapest`` bounds the cost of any removal from below: most steps need no copy.
        if status.order > rule.most or status.cheapest * status.scale * status.scale <= allowed:
            held = status.order
    before = np.empty((state.points.shape[0], held))
    norms_before = np.empty((3, held))
    for q in range(state.points.shape[0]):
        for j in range(held):
            before[q, j] = state.points[q, j]
    for j in range(held):
        norms_before[0, j] = state.square_norms[j]
        norms_before[1, j] = state.absolute_norms[j]
        norms_before[2, j] = state.self_kernels[j]
    prune_block(state, rule.outputs, error, allowed, rule.most, rule.projection, active + 4)
    status.steps += 1
    status.seen += consumed
    if status.scale < SMALLEST_SCALE:
        renormalise(state, rule.outputs)
    if status.order < held:
        carry(state, past, before, norms_before, n)


def _block_pass(name: str, direct: int) -> Any:
    # The compiler drops what these say is never reached.
    quasi, transition, pull = direct == QUASI_GRADIENT, direct == TRANSITION, direct == PULL

    @named(name)
    def learn_blocks(
        points, square_norms, absolute_norms, self_kernels, weights, factor, diagonal, status,
        settings, codes, numbers, needs_dots, needs_squares, needs_l1, depth,
        dense, data, indices, indptr, sparse,
        targets, sample_weights, extra, first, predictions,
    ):  # fmt: skip
        """Learn from the samples ``first`` onwards, ``batch`` in a step; the last may be smaller.

        Arguments and results as of ``core/loop.py``. ``extra``, (n, numbers), is what some rules
        know of each sample beside its target; step sizes that are given are its last column. A
        transition has two rows: its states.
        """
        rule = settings[0]
        program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
        rows = Rows(dense, data, indices, indptr, sparse)
        past = weights[rule.compressed :]
        state = State(
            points, square_norms, absolute_norms, self_kernels, weights[: rule.compressed], factor,
            diagonal, status,
        )  # fmt: skip
        record = status[0]
        outputs, rest = rule.outputs, rule.compressed - rule.outputs
        width = np.int64(STATES if transition else 1)
        i = first
        while i < targets.shape[0]:
            steps = min(rule.batch, targets.shape[0] - i)
            count = steps * width
            if record.order + count > diagonal.shape[0]:
                return FULL, i
            if record.changes >= PROBE_EVERY:
                return PROBE, i
            if rule.schedule == GIVEN:
                rule.initial_step = extra[i, extra.shape[1] - 1]
            start = i * width
            values, norms, f, earlier = evaluate_block(
                state, past, rule, program, rows, start, count
            )
            if predictions.shape[0] > 0:
                shown = outputs if rule.averaging > 0.0 and not pull else 0
                for r in range(count):
                    for c in range(outputs):
                        predictions[i + r, c] = f[r, shown + c]
            direction = np.empty((count, outputs))
            tracked = np.zeros((count, rest))
            tracker, threshold, divisor = record.tracker, record.threshold, steps
            if quasi:
                tracker, threshold = quasi_gradients(
                    rule, record, f, earlier, targets, extra, sample_weights, i, direction
                )
            elif transition:
                tracker = temporal_difference(
                    rule, record, f, earlier, self_value(program, norms[0, 0]), targets[i],
                    extra[i, 0], direction, tracked,
                )  # fmt: skip
            elif pull:
                if rule.risk_weight > 0.0:  # an agent that minds a risk: COLK at its own samples
                    own = own_samples(targets, i, count)
                    tracker, threshold = quasi_gradients(
                        rule, record, f[:own], earlier[:own], targets, extra, sample_weights, i,
                        direction[:own],
                    )  # fmt: skip
                divisor = pulled(rule, f, targets, extra, i, direction)
            else:
                gradients(rule, f, targets, extra, sample_weights, i, direction)
            if not np.isfinite(tracker):
                return DIVERGED, i
            # One after the other: what is merged into something merged is copied twice as often.
            current = np.empty((past.shape[0], record.order))
            true_weights(state, current)
            active, error = grow_block(
                state, rule, program, rows, start, values, norms, direction, tracked, divisor
            )
            if active < 0:
                return DIVERGED, i
            reduce_block(state, past, rule, current, active, error, steps if not pull else divisor)
            record.tracker = tracker
            record.threshold = threshold
            i += steps
        return roomy(state, rule.batch * width), i

    return learn_blocks


gradient_pass = _block_pass("gradient_pass", GRADIENT)
quasi_gradient_pass = _block_pass("quasi_gradient_pass", QUASI_GRADIENT)
transition_pass = _block_pass("transition_pass", TRANSITION)
pull_pass = _block_pass("pull_pass", PULL)


def block_pass(direct: int) -> Any:
    """The pass in which a rule of ``core/direct`` gives coefficients."""
    passes = {QUASI_GRADIENT: quasi_gradient_pass, TRANSITION: transition_pass, PULL: pull_pass}
    return passes.get(direct, gradient_pass)
