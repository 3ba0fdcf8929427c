"""The one loop: evaluate f(x), direct, grow, reduce.

    evaluate f(x)  ->  direct: what coefficient(s)?  ->  grow: scale old weights, take in x
                   ->  reduce: make room

``sample_pass`` takes samples one by one, ``block_pass`` several in a step. The parts are chosen by
the codes in ``settings`` (``core/settings.py``). All passes take the same arguments, flat because
that makes the call from Python several times cheaper.
"""

import numpy as np

from kernelstream.core.averages import average
from kernelstream.core.blas import multiply
from kernelstream.core.dictionary import renormalise
from kernelstream.core.direct import (
    ADAPTIVE_MARGIN,
    GRADIENT,
    PULL,
    QUASI_GRADIENT,
    TRANSITION,
)
from kernelstream.core.direct.adaptive_margin import adapt_width, width_of
from kernelstream.core.direct.gradient import gradient_step, gradients, vector_step
from kernelstream.core.direct.passive_aggressive import (
    passive_aggressive_step,
    passive_aggressive_vector,
)
from kernelstream.core.direct.pull import own_samples, pulled
from kernelstream.core.direct.quasi_gradient import quasi_gradients
from kernelstream.core.direct.transition import STATES, temporal_difference
from kernelstream.core.grow import NOVELTY, SPAN
from kernelstream.core.grow.append import append
from kernelstream.core.grow.block import take_in_samples
from kernelstream.core.grow.later import put_off
from kernelstream.core.grow.novelty import store_or_project
from kernelstream.core.grow.span import take_in
from kernelstream.core.jit import compiled, inner, merged
from kernelstream.core.kernel import STACK, Program, Rows, kernel_row, kernel_rows, self_value
from kernelstream.core.lanes import dot
from kernelstream.core.loss import FIRST_REGRESSION_LOSS, HINGE, loss_value, target_of
from kernelstream.core.passes import (
    DIVERGED,
    FULL,
    LARGEST_SQUARE_NORM,
    LARGEST_WEIGHT,
    LATE,
    PROBE,
    PROBE_EVERY,
    SMALLEST_SCALE,
    UNUSABLE,
    roomy,
)
from kernelstream.core.past import carry, past_values
from kernelstream.core.reduce import GROWING, HALVE, KOMP, PROJECT_CHEAPEST, SPANNED, TO_NEIGHBOURS
from kernelstream.core.reduce.at_cap import leave
from kernelstream.core.reduce.halving import halve_and_bound
from kernelstream.core.reduce.komp import GREEDY, prune, prune_block
from kernelstream.core.reduce.projection import make_room
from kernelstream.core.reduce.replacement import UNKNOWN
from kernelstream.core.reduce.smallest import keep_or_grow
from kernelstream.core.schedule import GIVEN, error_budget, step_size
from kernelstream.core.state import State


@inner
def allowed_error(status, rule):
    """The squared error that the present step may make."""
    eta = step_size(rule.schedule, rule.initial_step, rule.decay, status.steps)
    return error_budget(rule.budget, rule.budget_number, eta) ** 2


@compiled
def sample_pass(
    points, square_norms, absolute_norms, self_kernels, weights, factor, diagonal, status,
    settings, codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    targets, sample_weights, extra, first, predictions,
):  # fmt: skip
    """Learn from the samples ``first`` onwards, one at a time.

    ``predictions``, (n, outputs) or with no rows, receives the prediction for each sample
    before it is learned from. ``extra`` is a table of the rule that makes room, or has the targets
    of each sample, where they are several numbers, and in its last column step sizes that are
    given.

    Returns
    -------
    reason, next : int
        Why it stopped (``core/passes.py``), and the first sample that was not consumed.
    """
    state = State(
        points, square_norms, absolute_norms, self_kernels, weights, factor, diagonal, status
    )
    rule = settings[0]
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    point = Rows(np.empty((1, points.shape[0])), data[:0], indices[:0], indptr[:0], False)
    record = status[0]
    # Read once: what the loop writes could be anywhere, for all the compiler knows.
    direct, grow, reduce, outputs = rule.direct, rule.grow, rule.reduce, rule.outputs
    loss, loss_number, regularisation = rule.loss, rule.loss_number, rule.regularisation
    schedule, initial_step, decay = rule.schedule, rule.initial_step, rule.decay
    vector = outputs > 1 and loss >= FIRST_REGRESSION_LOSS
    budget, budget_number, projection = rule.budget, rule.budget_number, rule.projection
    most, slack, averaged, columns = rule.most, rule.slack, rule.averaging > 0.0, weights.shape[0]
    rest = 2 if reduce == TO_NEIGHBOURS else 0
    work = np.empty((STACK + depth + rest, diagonal.shape[0]))
    table = work[STACK + depth :]  # of nearest neighbours
    for r in range(rest):
        table[r, 0] = UNKNOWN
    values = np.empty((1, diagonal.shape[0]))
    norms = np.empty((1, 2))
    f = np.empty(outputs)
    slope = np.empty(outputs)
    new = np.zeros(columns)
    zero = np.int64(0)  # a literal would be compiled for separately
    for i in range(first, targets.shape[0]):
        n = record.order
        if record.pending > 0 and record.pending >= slack:
            return LATE, i
        if n + 1 > diagonal.shape[0]:
            return FULL, i
        if record.changes >= PROBE_EVERY and record.pending == 0:
            return PROBE, i

        # evaluate
        kernel_row(
            program, rows, i, points, square_norms, absolute_norms, n, False, work, values, zero,
            norms,
        )  # fmt: skip
        square, absolute = norms[0, 0], norms[0, 1]
        if not square <= LARGEST_SQUARE_NORM:
            return UNUSABLE, i
        for c in range(outputs):
            f[c] = record.scale * dot(values, 0, weights, c, 0, n)
        if predictions.shape[0] > 0:
            for c in range(outputs):
                predictions[i, c] = f[c]
                if averaged:
                    predictions[i, c] = dot(values, 0, weights, outputs + c, 0, n)

        # direct
        target = target_of(loss, outputs, targets[i])
        if schedule == GIVEN:
            initial_step = extra[i, extra.shape[1] - 1]
        eta = step_size(schedule, initial_step, decay, record.steps)
        kept, k_xx = 1.0 - eta * regularisation, 0.0
        if n == 0 and kept < SMALLEST_SCALE:  # steps 1 / (lambda t) begin: nothing to shrink yet
            kept = 1.0
        if direct == ADAPTIVE_MARGIN:
            loss_number = width_of(record, loss)
        if vector and (direct == GRADIENT or direct == ADAPTIVE_MARGIN):
            active = vector_step(
                loss, loss_number, outputs, f, extra, i, eta, sample_weights[i], slope, new
            )
        elif vector:
            k_xx = self_value(program, square)
            active = passive_aggressive_vector(
                rule, f, extra, i, sample_weights[i], k_xx, slope, new
            )
        elif direct == GRADIENT or direct == ADAPTIVE_MARGIN:
            active = gradient_step(
                loss, loss_number, outputs, f, target, eta, sample_weights[i], slope, new
            )
        else:
            k_xx = self_value(program, square)
            active = passive_aggressive_step(rule, f, target, sample_weights[i], k_xx, slope, new)
        allowed = error_budget(budget, budget_number, eta) ** 2
        scale = record.scale * kept
        for c in range(outputs):
            new[c] /= scale
            if not abs(new[c]) <= LARGEST_WEIGHT:
                return DIVERGED, i
        record.scale = scale
        if direct == ADAPTIVE_MARGIN:
            adapt_width(rule, record, active, eta, sample_weights[i])
        if averaged:
            share = average(state, rule)
            for c in range(outputs):
                new[outputs + c] = new[c] * scale * share

        # grow
        error = 0.0
        late = record.pending > 0 or (slack > 0 and active and n >= most)
        if active:
            record.taken += 1
            if k_xx == 0.0:
                k_xx = self_value(program, square)
            if late:
                put_off(state, rows, i, square, absolute, k_xx, new)
            elif grow == SPAN:
                greedy = reduce == KOMP and projection == GREEDY
                error = take_in(
                    state, rows, i, square, absolute, values, k_xx, new, outputs,
                    allowed / (scale * scale) if greedy else -1.0, work,
                ) * (scale * scale)  # fmt: skip
            elif grow == NOVELTY:
                value = 1.0 if loss != HINGE else loss_value(loss, 0.0, f, outputs, target)
                error = store_or_project(
                    state, rows, i, square, absolute, values, k_xx, new, rule, value, work
                ) * (scale * scale)
            else:
                append(state, rows, i, square, absolute, k_xx, new)

        # reduce
        if late:
            record.owed += allowed
        elif reduce == KOMP:
            prune(state, outputs, error, allowed, most, projection)
        elif SPANNED <= reduce <= PROJECT_CHEAPEST:
            make_room(state, rule, error)
        elif reduce == HALVE:
            if active:
                halve_and_bound(state, rule, program, values, f, point, work)
        elif reduce == GROWING:
            keep_or_grow(state, rule)
        elif record.order > most:
            leave(state, rule, eta, program, point, work, values, norms, table, extra)
        record.steps += 1
        record.seen += 1
        if record.scale < SMALLEST_SCALE:
            renormalise(state, outputs)
    return roomy(state, rule.batch + slack), targets.shape[0]


@merged
def _grow_block(state, rule, program, rows, first, values, norms, direction, tracked, divisor):
    """f~ = (1 - eta lambda) f - (eta / divisor) sum_r direction_r k(x_r, .), not compressed yet.

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
            block[active] = rows.dense[i]
        if active != r:
            values[active] = values[r]
            norms[active] = norms[r]
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


@merged
def advance(
    state, past, rule, program, rows, first, values, norms, direction, tracked, divisor, consumed
):
    """One step: f~ = (1 - eta lambda) f - (eta / divisor) sum_r direction_r k(x_r, .), then KOMP.

    ``direction`` (count, outputs) belongs to the samples ``first`` onwards, ``tracked`` is added to
    the other rows of weights. ``values`` and ``norms`` are those of :func:`evaluate_block`, and are
    used up. A capacity for all samples is assumed. Returns False, with nothing changed, when a
    coefficient is not finite.
    """
    status = state.status[0]
    n = status.order
    current = state.weights[: past.shape[0], :n] * status.scale
    active, error = _grow_block(
        state, rule, program, rows, first, values, norms, direction, tracked, divisor
    )
    if active < 0:
        return False
    allowed = allowed_error(status, rule)
    held = 0  # points kept to find f before the step again
    if past.shape[0] > 0:
        past[:, :n] = current
        past[:, n : n + active] = 0.0
        status.ghosts = 0
        # ``cheapest`` bounds the cost of any removal from below: most steps need no copy.
        if status.order > rule.most or status.cheapest * status.scale * status.scale <= allowed:
            held = status.order
    before = state.points[:, :held].copy()
    norms_before = np.empty((3, held))
    norms_before[0] = state.square_norms[:held]
    norms_before[1] = state.absolute_norms[:held]
    norms_before[2] = state.self_kernels[:held]
    prune_block(state, rule.outputs, error, allowed, rule.most, rule.projection, active + 4)
    status.steps += 1
    status.seen += consumed
    if status.scale < SMALLEST_SCALE:
        renormalise(state, rule.outputs)
    if status.order < held:
        carry(state, past, before, norms_before, n)
    return True


@compiled
def block_pass(
    points, square_norms, absolute_norms, self_kernels, weights, factor, diagonal, status,
    settings, codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    targets, sample_weights, extra, first, predictions,
):  # fmt: skip
    """The same as :func:`sample_pass` in steps of ``batch`` samples; the last may be smaller.

    ``extra``, (n, numbers), is what some rules know of each sample beside its target; step sizes
    that are given are its last column. A transition has two rows: its states.
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
    width = np.int64(STATES if rule.direct == TRANSITION else 1)
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
        values, norms, f, earlier = evaluate_block(state, past, rule, program, rows, start, count)
        if predictions.shape[0] > 0:
            shown = outputs if rule.averaging > 0.0 and rule.direct != PULL else 0
            for r in range(count):
                for c in range(outputs):
                    predictions[i + r, c] = f[r, shown + c]
        direction = np.empty((count, outputs))
        tracked = np.zeros((count, rest))
        tracker, threshold, divisor = record.tracker, record.threshold, steps
        if rule.direct == QUASI_GRADIENT:
            tracker, threshold = quasi_gradients(
                rule, record, f, earlier, targets, extra, sample_weights, i, direction
            )
        elif rule.direct == TRANSITION:
            tracker = temporal_difference(
                rule, record, f, earlier, self_value(program, norms[0, 0]), targets[i],
                extra[i, 0], direction, tracked,
            )  # fmt: skip
        elif rule.direct == PULL:
            if rule.risk_weight > 0.0:  # an agent that minds a risk: COLK at its own samples
                own = own_samples(targets, i, count)
                tracker, threshold = quasi_gradients(
                    rule, record, f[:own], earlier[:own], targets, extra, sample_weights, i,
                    direction[:own],
                )  # fmt: skip
            divisor = pulled(rule, f, targets, extra, i, direction)
        else:
            gradients(rule, f, targets, extra, sample_weights, i, direction)
        if not np.isfinite(tracker) or not advance(
            state, past, rule, program, rows, start, values, norms, direction, tracked, divisor,
            steps if rule.direct != PULL else divisor,
        ):  # fmt: skip
            return DIVERGED, i
        record.tracker = tracker
        record.threshold = threshold
        i += steps
    return roomy(state, rule.batch * width), i
