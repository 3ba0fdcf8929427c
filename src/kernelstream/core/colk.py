"""The compiled pass of COLK (Algorithm 1): quasi-gradient steps on pairs of samples, and KOMP.

A step consumes pairs of independent samples. In (47) one of the two bears the loss, the other
one feeds the tracker; here both take both roles, and the two directions are averaged: the same
mean and never more variance, and without a risk the step is POLK's with the pair as its batch.

Gradient tracking (20) compares the new samples' losses under f_t and under f_{t-1}. Compression
must not touch f_{t-1}, so its weights are kept apart (``past``, one row per point in use, zero
for points taken in since). The points that the last step removed remain for one step as ghosts,
right behind the points in use: removing makes the very room they need. Together they are
f_{t-1}, exactly, and its values cost no kernel values but those of the ghosts.
"""

from typing import NamedTuple

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.jit import allocating, compiled, inner, lean
from kernelstream.core.kernel import Program, Rows, kernel_rows
from kernelstream.core.lanes import dot
from kernelstream.core.loss import loss_derivative, loss_value
from kernelstream.core.passes import (
    DIVERGED,
    DONE,
    FULL,
    PROBE,
    ROOMY,
    target_of,
)
from kernelstream.core.polk import PROBE_EVERY, Settings, allowed_error, grow, settle
from kernelstream.core.state import SMALLEST_CAPACITY, State

DISPERSION, SEMIDEVIATION, CVAR = range(3)
AVERAGE, MOMENTUM = range(2)

#: Unit of the quantile's steps where the quantile itself is smaller.
SMALLEST_THRESHOLD = 1e-3


class Risk(NamedTuple):
    """What is added to the mean loss, and how the mean is tracked."""

    kind: int
    weight: float  # eta in the paper
    order: int  # P: moments 2 .. P of the loss
    level: float  # of CVaR
    cut: float  # deviations from the tracker are cut at +- this
    tracking: int
    rate: float  # beta


@lean
def tracking_rate(rate, steps):
    """beta, after a plain average over the first steps: no starting value is needed."""
    return max(rate, 1.0 / (steps + 1.0))


@lean
def partner(r, count):
    """The other sample of the pair; a sample without one is its own."""
    other = r + 1 if r % 2 == 0 else r - 1
    return other if other < count else r


@compiled
def evaluate_batch(state, past, program, rows, first, count):
    """Kernel values of the samples, their norms, and the values of f_t and f_{t-1}.

    ``past`` without rows: f_{t-1} is not wanted.
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
    multiply(values, False, state.weights, True, f, count, columns, n, status.scale, 0.0)
    outputs = past.shape[0]
    earlier = np.zeros((count, outputs))
    if outputs > 0:
        multiply(values, False, past, True, earlier, count, outputs, n, 1.0, 0.0)
        ghosts = status.ghosts
        if ghosts > 0:
            end = n + ghosts
            ghost_values = np.empty((count, ghosts))
            kernel_rows(
                program, rows, first, count, state.points[:, n:end].copy(),
                state.square_norms[n:end].copy(), state.absolute_norms[n:end].copy(),
                ghosts, ghost_values, norms,
            )  # fmt: skip
            ghost_weights = past[:, n:end].copy()
            for r in range(count):
                for c in range(outputs):
                    earlier[r, c] += dot(ghost_values, r, ghost_weights, c, 0, ghosts)
    return values, norms, f, earlier


@inner
def _same_column(points, j, before, i):
    for q in range(points.shape[0]):
        if points[q, j] != before[q, i]:
            return False
    return True


@allocating
def _carry(state, past, before, norms, n):
    """Give f_{t-1}'s weights to where its points are now; those removed become ghosts.

    ``before`` and ``norms`` hold all points before the removal, the first ``n`` of them
    f_{t-1}'s. Removal fills holes from the end, and no two points are equal: a place holds
    its own point still, or one from beyond the new end.
    """
    status = state.status[0]
    kept = status.order
    removed = before.shape[1] - kept
    moved = np.zeros(kept, np.int64)
    for q in range(before.shape[0]):
        for j in range(kept):
            moved[j] |= state.points[q, j] != before[q, j]
    old = past[:, : before.shape[1]].copy()
    gone = np.ones(removed, np.bool_)  # of the places beyond the new end
    ghosts = np.empty(removed, np.int64)
    count = 0
    for j in range(kept):
        if moved[j] == 0:
            continue
        if j < n:
            ghosts[count] = j
            count += 1
        for i in range(removed):
            if gone[i] and _same_column(state.points, j, before, kept + i):
                gone[i] = False
                past[:, j] = old[:, kept + i]
                break
    for i in range(removed):
        if gone[i] and kept + i < n:
            ghosts[count] = kept + i
            count += 1
    for k in range(count):
        j = ghosts[k]
        place = kept + k
        for q in range(before.shape[0]):
            state.points[q, place] = before[q, j]
        state.square_norms[place] = norms[0, j]
        state.absolute_norms[place] = norms[1, j]
        state.self_kernels[place] = norms[2, j]
        state.weights[:, place] = 0.0
        past[:, place] = old[:, j]
    status.ghosts = count


@compiled
def advance(state, past, settings, program, rows, first, count, values, norms, direction):
    """f~ = (1 - eta lambda) f - (eta / B) sum_b direction_b k(x_b, .), then KOMP: (27).

    ``direction`` (count, outputs) holds what the loss derivative is for POLK. Returns False,
    with nothing changed, when a coefficient is not finite.
    """
    status = state.status[0]
    n = status.order
    current = state.weights[: past.shape[0], :n] * status.scale
    active, error = grow(state, settings, program, rows, first, values, norms, direction, count)
    if active < 0:
        return False
    tracked = past.shape[0] > 0
    if tracked:
        past[:, :n] = current
        past[:, n : n + active] = 0.0
        status.ghosts = 0
    # ``cheapest`` bounds the cost of any removal from below: most steps need no copy.
    held = status.order if tracked else 0
    cheapest = status.cheapest * status.scale * status.scale
    if status.order <= settings.most and cheapest > allowed_error(state, settings):
        held = 0
    before = state.points[:, :held].copy()
    norms_before = np.empty((3, held))
    norms_before[0] = state.square_norms[:held]
    norms_before[1] = state.absolute_norms[:held]
    norms_before[2] = state.self_kernels[:held]
    settle(state, settings, active, error, count)
    if status.order < held:
        _carry(state, past, before, norms_before, n)
    return True


@lean
def spacious(state, batch):
    """``ROOMY`` where the capacity is far larger than needed, ghosts included; else ``DONE``."""
    record = state.status[0]
    needed = max(SMALLEST_CAPACITY, record.order + record.ghosts) + batch
    return ROOMY if state.diagonal.shape[0] > 4 * needed else DONE


@inner
def _pressure(risk, deviation):
    """eta sum_p p (l - g)^(p - 1) of (47), the deviation l - g cut: the multiple of the loss's
    gradient that the risk adds. Semideviations count only what is above the tracker: the
    square of the positive part is smooth as it is."""
    if risk.weight == 0.0:  # not 0 times infinity
        return 0.0
    d = min(max(deviation, -risk.cut), risk.cut)
    if risk.kind == SEMIDEVIATION:
        d = max(d, 0.0)
    power, total = 1.0, 0.0
    for p in range(2, risk.order + 1):
        power *= d
        total += p * power
    return risk.weight * total


@allocating
def _direct(status, settings, risk, f, earlier, labels, sample_weights, first, direction):
    """The quasi-gradient at each sample, and the tracker and threshold after the step."""
    count = f.shape[0]
    outputs = settings.outputs
    rate = tracking_rate(risk.rate, status.steps)
    losses = np.empty(count)
    trackers = np.empty(count)  # the tracker after this sample alone
    sloped = np.empty(count, np.bool_)  # where the derivative is not zero, as POLK tells it
    exceeding = 0.0
    smallest = np.inf
    for r in range(count):
        target = target_of(settings.loss, outputs, labels[first + r])
        losses[r] = loss_value(settings.loss, settings.loss_number, f[r], outputs, target)
        ceiling = status.tracker + risk.cut
        now = min(losses[r], ceiling)
        if risk.tracking == MOMENTUM:  # (20)
            then = loss_value(settings.loss, settings.loss_number, earlier[r], outputs, target)
            trackers[r] = (1.0 - rate) * (status.tracker - min(then, ceiling)) + now
        else:  # (19)
            trackers[r] = (1.0 - rate) * status.tracker + rate * now
        exceeding += losses[r] > status.threshold
        smallest = min(smallest, losses[r])
        sloped[r] = loss_derivative(
            settings.loss, settings.loss_number, f[r], outputs, target, direction[r]
        )
    tracker = 0.0
    for r in range(count):
        other = partner(r, count)
        if risk.kind == CVAR:  # Rockafellar and Uryasev: u + E max(l - u, 0) / (1 - level)
            tail = losses[r] > status.threshold
            multiple = 1.0 + risk.weight / (1.0 - risk.level) if tail else 1.0
        else:  # (47), averaged over both roles of the pair
            multiple = 1.0 + (
                _pressure(risk, losses[r] - trackers[other])
                - _pressure(risk, losses[other] - trackers[r])
            )
        for c in range(outputs):
            direction[r, c] *= multiple * sample_weights[first + r] if sloped[r] else 0.0
        tracker += trackers[r] / count
    # The subgradient in u, in units of u itself: no outlier moves it far.
    threshold = status.threshold
    if status.steps == 0:
        threshold = smallest
    else:
        unit = rate * (threshold + SMALLEST_THRESHOLD)
        threshold += unit * (exceeding / count - (1.0 - risk.level))
    return tracker, max(threshold, 0.0)


@compiled
def pair_pass(
    points, square_norms, absolute_norms, self_kernels, state_weights, factor, diagonal, status,
    loss, loss_number, regularisation, schedule, initial_step, decay, budget, budget_number,
    most, batch, averaging, horizon, projection, outputs,
    kind, weight, order, level, cut, tracking, rate,
    codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    labels, sample_weights, first, predictions,
):  # fmt: skip
    """Learn from the samples ``first`` onwards in steps of ``batch``, pair by pair.

    ``predictions``, (n, outputs) or with no rows, receives what the model said of each sample
    before its step. Returns the reason for coming back and the next sample, as POLK's passes.
    """
    settings = Settings(
        loss, loss_number, regularisation, schedule, initial_step, decay, budget, budget_number,
        most, batch, averaging, horizon, projection, outputs,
    )  # fmt: skip
    risk = Risk(kind, weight, order, level, cut, tracking, rate)
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    compressed = 2 * outputs if averaging > 0.0 else outputs
    current, past = state_weights[:compressed], state_weights[compressed:]  # f_t, f_{t-1}
    state = State(
        points, square_norms, absolute_norms, self_kernels, current, factor, diagonal, status
    )
    record = status[0]
    i = first
    reason = DONE
    while i < labels.shape[0] and reason == DONE:
        count = min(batch, labels.shape[0] - i)
        if record.order + count > diagonal.shape[0]:
            reason = FULL
            break
        if record.changes >= PROBE_EVERY:
            reason = PROBE
            break
        values, norms, f, earlier = evaluate_batch(state, past, program, rows, i, count)
        if predictions.shape[0] > 0:
            for r in range(count):
                for c in range(outputs):
                    predictions[i + r, c] = f[r, c]
                    if averaging > 0.0:  # averaged weights are held unscaled
                        predictions[i + r, c] = f[r, outputs + c] / record.scale
        direction = np.empty((count, outputs))
        tracker, threshold = _direct(
            record, settings, risk, f, earlier, labels, sample_weights, i, direction
        )
        if not np.isfinite(tracker) or not advance(
            state, past, settings, program, rows, i, count, values, norms, direction
        ):
            reason = DIVERGED
            break
        record.tracker = tracker
        record.threshold = threshold
        i += count
    return spacious(state, batch) if reason == DONE else reason, i
