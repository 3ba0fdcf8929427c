"""The one loop: evaluate f(x), direct, grow, reduce.

    evaluate f(x)  ->  direct: what coefficient(s)?  ->  grow: scale old weights, take in x
                   ->  reduce: make room

Here samples are taken one by one, in ``core/blocks.py`` several in a step. The parts are chosen by
the codes in ``settings`` (``core/settings.py``). All passes take the same arguments, flat because
that makes the call from Python several times cheaper.

The loop is compiled once for every family of rules that make room, with the rules of that family
only: else the first use of any method would wait for the compilation of all.
"""

from typing import Any

import numpy as np

from kernelstream.core.averages import average
from kernelstream.core.dictionary import renormalise
from kernelstream.core.direct import ADAPTIVE_MARGIN, GRADIENT
from kernelstream.core.direct.adaptive_margin import adapt_width, width_of
from kernelstream.core.direct.gradient import gradient_step, vector_step
from kernelstream.core.direct.passive_aggressive import (
    passive_aggressive_step,
    passive_aggressive_vector,
)
from kernelstream.core.grow import NOVELTY
from kernelstream.core.grow.append import append
from kernelstream.core.grow.later import put_off
from kernelstream.core.grow.novelty import store_or_project
from kernelstream.core.grow.span import take_in
from kernelstream.core.jit import named
from kernelstream.core.kernel import STACK, Program, Rows, kernel_row, self_value
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
from kernelstream.core.reduce import (
    FORGET,
    GROWING,
    HALVE,
    KOMP,
    MERGE,
    NOTHING,
    PROJECT_CHEAPEST,
    PROJECT_SMALLEST,
    RANDOM,
    SMALLEST,
    SPANNED,
    TO_NEIGHBOURS,
    TO_NEWEST,
    UNIFORM,
    WEIGHTED,
    WINDOW,
)
from kernelstream.core.reduce.at_cap import remove_one, replace
from kernelstream.core.reduce.halving import halve_and_bound
from kernelstream.core.reduce.komp import GREEDY, prune
from kernelstream.core.reduce.projection import make_room
from kernelstream.core.reduce.replacement import UNKNOWN
from kernelstream.core.reduce.smallest import keep_or_grow
from kernelstream.core.schedule import GIVEN, error_budget, step_size
from kernelstream.core.state import State

#: Codes of the rules that are compiled together.
PURSUIT = (KOMP,)
PROJECTION = (SPANNED, PROJECT_SMALLEST, PROJECT_CHEAPEST)
REMOVAL = (NOTHING, RANDOM, WINDOW, FORGET, UNIFORM, WEIGHTED, SMALLEST, GROWING)
REPLACEMENT = (TO_NEWEST, TO_NEIGHBOURS, HALVE, MERGE)


def _sample_pass(name: str, family: tuple[int, ...]) -> Any:
    # The compiler drops what these say is never reached.
    pursuit, projection = family == PURSUIT, family == PROJECTION
    removal, replacement = family == REMOVAL, family == REPLACEMENT

    @named(name)
    def learn_samples(
        points, square_norms, absolute_norms, self_kernels, weights, factor, diagonal, status,
        settings, codes, numbers, needs_dots, needs_squares, needs_l1, depth,
        dense, data, indices, indptr, sparse,
        targets, sample_weights, extra, first, predictions,
    ):  # fmt: skip
        """Learn from the samples ``first`` onwards, one at a time.

        ``predictions``, (n, outputs) or with no rows, receives the prediction for each sample
        before it is learned from. ``extra`` is a table of the rule that makes room, or has the
        targets of each sample, where they are several numbers, and in its last column step sizes
        that are given.

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
        budget, budget_number = rule.budget, rule.budget_number
        most, slack, averaged = rule.most, rule.slack, rule.averaging > 0.0
        rest = 2 if reduce == TO_NEIGHBOURS else 0
        work = np.empty((STACK + depth + rest, diagonal.shape[0]))
        table = work[STACK + depth :]  # of nearest neighbours
        for r in range(rest):
            table[r, 0] = UNKNOWN
        values = np.empty((1, diagonal.shape[0]))
        norms = np.empty((1, 2))
        f = np.empty(outputs)
        slope = np.empty(outputs)
        new = np.zeros(weights.shape[0])
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
                program, rows, i, points, square_norms, absolute_norms, n, False, work, values,
                zero, norms,
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
            if (
                n == 0 and kept < SMALLEST_SCALE
            ):  # steps 1 / (lambda t) begin: nothing to shrink yet
                kept = 1.0
            if removal and direct == ADAPTIVE_MARGIN:
                loss_number = width_of(record, loss)
            if vector and (pursuit or direct == GRADIENT or direct == ADAPTIVE_MARGIN):
                active = vector_step(
                    loss, loss_number, outputs, f, extra, i, eta, sample_weights[i], slope, new
                )
            elif removal and vector:
                k_xx = self_value(program, square)
                active = passive_aggressive_vector(
                    rule, f, extra, i, sample_weights[i], k_xx, slope, new
                )
            elif pursuit or direct == GRADIENT or direct == ADAPTIVE_MARGIN:
                active = gradient_step(
                    loss, loss_number, outputs, f, target, eta, sample_weights[i], slope, new
                )
            else:
                k_xx = self_value(program, square)
                active = passive_aggressive_step(
                    rule, f, target, sample_weights[i], k_xx, slope, new
                )
            allowed = error_budget(budget, budget_number, eta) ** 2
            scale = record.scale * kept
            for c in range(outputs):
                new[c] /= scale
                if not abs(new[c]) <= LARGEST_WEIGHT:
                    return DIVERGED, i
            record.scale = scale
            if removal and direct == ADAPTIVE_MARGIN:
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
                if pursuit and late:
                    put_off(state, rows, i, square, absolute, k_xx, new)
                elif removal or replacement:
                    append(state, rows, i, square, absolute, k_xx, new)
                elif projection and grow == NOVELTY:
                    value = 1.0 if loss != HINGE else loss_value(loss, 0.0, f, outputs, target)
                    error = store_or_project(
                        state, rows, i, square, absolute, values, k_xx, new, rule, value, work
                    ) * (scale * scale)
                else:
                    greedy = pursuit and rule.projection == GREEDY
                    error = take_in(
                        state, rows, i, square, absolute, values, k_xx, new, outputs,
                        allowed / (scale * scale) if greedy else -1.0, work,
                    ) * (scale * scale)  # fmt: skip

            # reduce
            if late:
                record.owed += allowed
            elif pursuit:
                prune(state, outputs, error, allowed, most, rule.projection)
            elif projection:
                make_room(state, rule, error)
            elif replacement:
                if reduce == HALVE:
                    if active:
                        halve_and_bound(state, rule, program, values, f, point, work)
                elif record.order > most:
                    replace(state, rule, program, point, work, values, table, extra)
            elif reduce == GROWING:
                keep_or_grow(state, rule)
            elif record.order > most:
                remove_one(state, rule, eta, program, point, work, values, norms)
            record.steps += 1
            record.seen += 1
            if record.scale < SMALLEST_SCALE:
                renormalise(state, outputs)
        return roomy(state, rule.batch + slack), targets.shape[0]

    return learn_samples


pursuit_pass = _sample_pass("pursuit_pass", PURSUIT)
projection_pass = _sample_pass("projection_pass", PROJECTION)
removal_pass = _sample_pass("removal_pass", REMOVAL)
replacement_pass = _sample_pass("replacement_pass", REPLACEMENT)


def sample_pass(reduce: int) -> Any:
    """The pass in which a rule of ``core/reduce`` makes room."""
    if reduce in PURSUIT:
        return pursuit_pass
    if reduce in PROJECTION:
        return projection_pass
    return removal_pass if reduce in REMOVAL else replacement_pass
