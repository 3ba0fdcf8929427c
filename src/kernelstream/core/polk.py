"""The compiled pass of POLK (Algorithm 2): functional stochastic gradient steps and KOMP."""

from typing import NamedTuple

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.jit import allocating, compiled, inner
from kernelstream.core.kernel import STACK, Program, Rows, kernel_row, kernel_rows, self_value
from kernelstream.core.komp import (
    GREEDY,
    prune,
    prune_block,
    renormalise,
    take_in,
)
from kernelstream.core.lanes import dot, fma
from kernelstream.core.loss import loss_derivative
from kernelstream.core.pairs import take_in_samples
from kernelstream.core.passes import (
    DIVERGED,
    DONE,
    FULL,
    LARGEST_SQUARE_NORM,
    LARGEST_WEIGHT,
    PROBE,
    ROOMY,
    UNUSABLE,
    target_of,
)
from kernelstream.core.schedule import error_budget, step_size
from kernelstream.core.state import SMALLEST_CAPACITY, State

#: Changes of the factor between two probes of its residual.
PROBE_EVERY = 512
#: Folded into the weights before it underflows.
SMALLEST_SCALE = 1e-9


class Settings(NamedTuple):
    """What to do with each sample."""

    loss: int
    loss_number: float  # the loss's own parameter
    regularisation: float  # lambda
    schedule: int
    initial_step: float
    decay: float
    budget: int
    budget_number: float
    most: int  # cap on the number of points
    batch: int  # samples per step
    averaging: float  # 0: none; s >= 1: average with weights growing like t^(s - 1) ...
    horizon: float  # ... until that means fewer steps than these, then fading
    projection: int
    outputs: int


@inner
def roomy(state, batch):
    """``ROOMY`` when the order has fallen so far that the state should give memory back."""
    needed = max(SMALLEST_CAPACITY, state.status[0].order) + batch
    return ROOMY if state.diagonal.shape[0] > 4 * needed else DONE


@inner
def average(state, settings):
    """Move the averaged columns towards the current function: avg += (f - avg) share."""
    status = state.status[0]
    outputs = settings.outputs
    share = settings.averaging / (status.steps + settings.averaging)
    share = max(share, 1.0 / settings.horizon)
    for c in range(outputs):
        for j in range(status.order):
            mean = state.weights[outputs + c, j]
            gap = fma(state.weights[c, j], status.scale, -mean)
            state.weights[outputs + c, j] = fma(gap, share, mean)
    # |(f, avg)| of a point shrinks by at most sqrt(2) share: a bound saves looking again.
    status.cheapest = status.cheapest * (1.0 - 1.4143 * share) ** 2 if share < 0.7 else 0.0
    return share


@inner
def allowed_error(state, settings):
    """The squared error that the present step may make."""
    steps = state.status[0].steps
    eta = step_size(settings.schedule, settings.initial_step, settings.decay, steps)
    return error_budget(settings.budget, settings.budget_number, eta) ** 2


@allocating
def grow(state, settings, program, rows, first, values, norms, direction, divisor):
    """f~ = (1 - eta lambda) f - (eta / divisor) sum_r direction_r k(x_r, .), not compressed yet.

    ``direction`` (count, outputs) belongs to the samples ``first`` onwards: for POLK the loss's
    derivatives. ``values`` and ``norms`` are those of :func:`kernel_rows`, and are used up. A
    capacity for all samples is assumed.

    Returns
    -------
    active : int
        Samples with a direction; -1, with nothing changed, if one is not finite.
    error : float
        Squared error made by merging dependent samples, in true units.
    """
    status = state.status[0]
    count, outputs = direction.shape
    eta = step_size(settings.schedule, settings.initial_step, settings.decay, status.steps)
    scale = status.scale * (1.0 - eta * settings.regularisation)

    # Samples with a direction, moved to the front.
    new = np.zeros((count, state.weights.shape[0]))
    block = np.zeros((count, state.points.shape[0]))
    active = 0
    for r in range(count):
        i = first + r
        some = False
        for c in range(outputs):
            new[active, c] = -eta / divisor * direction[r, c] / scale
            some |= direction[r, c] != 0.0
            if not abs(new[active, c]) <= LARGEST_WEIGHT:
                return -1, 0.0
        if not some:
            continue
        if rows.sparse:
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                block[active, rows.indices[q]] = rows.data[q]
        else:
            block[active] = rows.dense[i]
        if active != r:
            values[active] = values[r]
            norms[active] = norms[r]
        active += 1

    status.scale = scale
    if settings.averaging > 0.0:
        share = average(state, settings)
        for r in range(active):
            for c in range(outputs):
                new[r, outputs + c] = new[r, c] * scale * share
    status.taken += active
    if active == 0:
        return active, 0.0
    unit = scale * scale
    at_once = allowed_error(state, settings) / unit if settings.projection == GREEDY else -1.0
    error = take_in_samples(state, program, block, values, norms, new, active, outputs, at_once)
    return active, error * unit


@inner
def settle(state, settings, active, error, consumed):
    """Compress what :func:`grow` made, and count the step."""
    status = state.status[0]
    prune_block(
        state, settings.outputs, error, allowed_error(state, settings), settings.most,
        settings.projection, active + 4,
    )  # fmt: skip
    status.steps += 1
    status.seen += consumed
    if status.scale < SMALLEST_SCALE:
        renormalise(state, settings.outputs)


@allocating
def _step_batch(state, settings, program, rows, first, count, labels, weights):
    """One mini-batch. Returns False, with nothing changed, when a derivative is not finite."""
    status = state.status[0]
    n = status.order
    outputs = settings.outputs
    columns = state.weights.shape[0]
    values = np.empty((count, n))
    norms = np.empty((count, 2))
    kernel_rows(
        program, rows, first, count, state.points, state.square_norms, state.absolute_norms,
        n, values, norms,
    )  # fmt: skip
    f = np.zeros((count, columns))
    multiply(values, False, state.weights, True, f, count, columns, n, status.scale, 0.0)
    direction = np.zeros((count, outputs))
    for r in range(count):
        target = target_of(settings.loss, outputs, labels[first + r])
        some = loss_derivative(
            settings.loss, settings.loss_number, f[r], outputs, target, direction[r]
        )
        for c in range(outputs):
            direction[r, c] *= weights[first + r] if some else 0.0
    active, error = grow(state, settings, program, rows, first, values, norms, direction, count)
    if active < 0:
        return False
    settle(state, settings, active, error, count)
    return True


@compiled
def single_pass(
    points, square_norms, absolute_norms, self_kernels, state_weights, factor, diagonal, status,
    loss, loss_number, regularisation, schedule, initial_step, decay, budget, budget_number,
    most, batch, averaging, horizon, projection, outputs,
    codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    labels, sample_weights, first, predictions,
):  # fmt: skip
    """Learn from the samples ``first`` onwards, one at a time.

    Arguments come flat because that makes the call from Python several times cheaper.
    ``predictions``, (n, outputs) or with no rows, receives what the model said of each sample
    before it learned from it.

    Returns
    -------
    reason, next : int
        Why it stopped, and the first sample that was not consumed. ``FULL``: give the state
        a larger capacity and call again. ``PROBE``: check the factor's residual and call again.
        ``ROOMY``: done, but the capacity is far larger than needed.
    """
    state = State(
        points, square_norms, absolute_norms, self_kernels, state_weights, factor, diagonal, status
    )
    settings = Settings(
        loss, loss_number, regularisation, schedule, initial_step, decay, budget, budget_number,
        most, batch, averaging, horizon, projection, outputs,
    )  # fmt: skip
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    record = status[0]
    columns = state_weights.shape[0]
    work = np.empty((STACK + depth, diagonal.shape[0]))
    values = np.empty((1, diagonal.shape[0]))
    norms = np.empty((1, 2))
    f = np.empty(outputs)
    slope = np.empty(outputs)
    new = np.empty(columns)
    zero = np.int64(0)  # a literal would be compiled for separately
    for i in range(first, labels.shape[0]):
        n = record.order
        if n + 1 > diagonal.shape[0]:
            return FULL, i
        if record.changes >= PROBE_EVERY:
            return PROBE, i
        kernel_row(
            program, rows, i, points, square_norms, absolute_norms, n, False, work, values, zero,
            norms,
        )  # fmt: skip
        if not norms[0, 0] <= LARGEST_SQUARE_NORM:
            return UNUSABLE, i
        for c in range(outputs):
            f[c] = record.scale * dot(values, 0, state_weights, c, 0, n)
        if predictions.shape[0] > 0:
            for c in range(outputs):
                predictions[i, c] = f[c]
                if averaging > 0.0:
                    predictions[i, c] = dot(values, 0, state_weights, outputs + c, 0, n)
        target = target_of(loss, outputs, labels[i])
        active = loss_derivative(loss, loss_number, f, outputs, target, slope)
        eta = step_size(schedule, initial_step, decay, record.steps)
        allowed = error_budget(budget, budget_number, eta) ** 2
        scale = record.scale * (1.0 - eta * regularisation)
        for c in range(columns):
            new[c] = -eta * sample_weights[i] * slope[c] / scale if active and c < outputs else 0.0
            if not abs(new[c]) <= LARGEST_WEIGHT:
                return DIVERGED, i
        record.scale = scale
        if averaging > 0.0:
            share = average(state, settings)
            for c in range(outputs):
                new[outputs + c] = new[c] * scale * share
        error = 0.0
        if active:
            record.taken += 1
            error = take_in(
                state, rows, i, norms[0, 0], norms[0, 1], values, self_value(program, norms[0, 0]),
                new, outputs, allowed / (scale * scale) if projection == GREEDY else -1.0, work,
            ) * (scale * scale)  # fmt: skip
        prune(state, outputs, error, allowed, most, projection)
        record.steps += 1
        record.seen += 1
        if scale < SMALLEST_SCALE:
            renormalise(state, outputs)
    return roomy(state, batch), labels.shape[0]


@compiled
def batch_pass(
    points, square_norms, absolute_norms, self_kernels, state_weights, factor, diagonal, status,
    loss, loss_number, regularisation, schedule, initial_step, decay, budget, budget_number,
    most, batch, averaging, horizon, projection, outputs,
    codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    labels, sample_weights, first,
):  # fmt: skip
    """The same as :func:`single_pass` in steps of ``batch`` samples; the last may be smaller."""
    state = State(
        points, square_norms, absolute_norms, self_kernels, state_weights, factor, diagonal, status
    )
    settings = Settings(
        loss, loss_number, regularisation, schedule, initial_step, decay, budget, budget_number,
        most, batch, averaging, horizon, projection, outputs,
    )  # fmt: skip
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    i = first
    while i < labels.shape[0]:
        count = min(batch, labels.shape[0] - i)
        if status[0].order + count > diagonal.shape[0]:
            return FULL, i
        if status[0].changes >= PROBE_EVERY:
            return PROBE, i
        if not _step_batch(state, settings, program, rows, i, count, labels, sample_weights):
            return DIVERGED, i
        i += count
    return roomy(state, batch), i
