"""The compiled pass of AVM (Algorithms 2 and 5): gradient steps on the core points of a coverage.

w <- (t-1)/t w - 1/(lambda t) l'(w; x_t) k(c, .), where c is the core point of the cell that
holds x_t, or x_t itself. The true weights are ``scale`` times those stored, so that shrinking is
one multiplication. Averages are exact and cost nothing per step: with stored weights v and scales
s_t the sum of the iterates is (sum_t s_t) v - u, where u gathers what v did not hold from the
beginning on.

A pass of its own: it takes distances of many samples to the same points in one product, or counts
common entries of sets, and needs no factor.
"""

import numpy as np

from kernelstream.core.counts import count_common, enter, make_table, only_sets
from kernelstream.core.coverage import (
    add_point,
    find_cell,
    kernel_values,
    make_core_point,
    nearest,
    values_of,
)
from kernelstream.core.jit import compiled, inline, inner
from kernelstream.core.kernel import (
    FEW_FEATURES,
    SQUARES,
    Program,
    Rows,
    row_norms,
    squares_from_counts,
    squares_from_differences,
    squares_from_dots,
)
from kernelstream.core.lanes import dot
from kernelstream.core.loss import (
    FIRST_REGRESSION_LOSS,
    SQUARED_ERROR,
    loss_derivative,
    margin_of,
    target_of,
    vector_derivative,
)
from kernelstream.core.passes import (
    DIVERGED,
    DONE,
    FULL,
    LARGEST_SQUARE_NORM,
    LARGEST_WEIGHT,
    UNUSABLE,
)
from kernelstream.core.splitmix import uniform
from kernelstream.core.state import State
from kernelstream.core.tiles import BLOCK, SPARSE_BLOCK, products

#: Below it the scale is folded into the weights; often enough for the sums to keep their digits.
SMALLEST_SCALE = 1e-3

#: Every so many samples the last iterate is compared with the average: evaluating that, too, for
#: each one would be half of the time of a step.
COMPARE_EVERY = 4


@inner
def _settle(state, outputs):
    """Fold the scale into the weights, and the sum of the iterates into ``u``."""
    status = state.status[0]
    averaging = state.weights.shape[0] > outputs
    for c in range(outputs):
        for j in range(status.order):
            if averaging:
                state.weights[outputs + c, j] -= status.summed * state.weights[c, j]
            state.weights[c, j] *= status.scale
    status.summed = 0.0
    status.scale = 1.0


@inner
def _close_block(state, outputs):
    """The block being averaged becomes the block before."""
    status = state.status[0]
    for c in range(outputs):
        for j in range(status.order):
            total = status.summed * state.weights[c, j] - state.weights[outputs + c, j]
            state.weights[2 * outputs + c, j] = total
            state.weights[outputs + c, j] = 0.0
    status.before = status.averaged
    status.summed = 0.0
    status.averaged = 0


@inner
def _begin_average(state, outputs):
    """Nothing has been averaged yet."""
    status = state.status[0]
    for c in range(outputs, state.weights.shape[0]):
        for j in range(status.order):
            state.weights[c, j] = 0.0
    status.summed = 0.0
    status.averaged = status.before = 0


@inline
def _choose(state, rule, rows, i, square, absolute, work, margin):
    """The point that gets the weight of sample ``i``, and whether it equals the sample.

    At the cap a sample outside all cells goes to the nearest core point.
    """
    status = state.status[0]
    n = status.order
    exact = margin < rule.exact_margin  # Z_t = 0: no approximation
    if rule.exact > 0.0:
        t = status.steps + 1
        exact = uniform(status) < rule.exact / t**rule.exact_decay or exact
    if exact:
        j = nearest(work, n)
        if j >= 0 and work[SQUARES, j] == 0.0:
            return j, True
        if n < rule.most:
            return add_point(state, rows, i, square, absolute), True
        status.forced += 1
    j = find_cell(rule.cell_shape, rule.delta, rows, i, state.points, work, status.cells)
    if j >= 0:
        return j, work[SQUARES, j] == 0.0
    if status.cells < n:
        j = nearest(work, n)
        if work[SQUARES, j] == 0.0:  # kept exactly before, now with a cell
            return make_core_point(state, j), True
    if n < rule.most:
        return make_core_point(state, add_point(state, rows, i, square, absolute)), True
    status.forced += not exact
    return nearest(work, status.cells if status.cells > 0 else n), False


@inline
def _evaluate(weights, n, outputs, values, first, f):
    """``f`` = sum_j values_j weights_j, of the ``outputs`` rows of weights from ``first`` on."""
    for c in range(outputs):
        f[c] = dot(values, 0, weights, first + c, 0, n)


@inner
def _average(weights, status, outputs, values, f, out, scratch):
    """The average of the iterates, from the current function ``f`` at scale 1; or that function."""
    n, columns = status.order, weights.shape[0]
    if columns == outputs:
        for c in range(outputs):
            out[c] = f[c] * status.scale
        return
    count = max(1, status.averaged + status.before)
    _evaluate(weights, n, outputs, values, outputs, scratch)
    for c in range(outputs):
        out[c] = (status.summed * f[c] - scratch[c]) / count
    if columns > 2 * outputs:
        _evaluate(weights, n, outputs, values, 2 * outputs, scratch)
        for c in range(outputs):
            out[c] += scratch[c] / count


@inner
def _mistake(loss, outputs, f, target):
    """1 for a wrong class and 0 for the right one; the absolute error of a number."""
    if loss >= FIRST_REGRESSION_LOSS:
        return abs(f[0] - target)
    if outputs == 1:
        return 1.0 if (f[0] > 0.0) != (target > 0.0) else 0.0
    best = 0
    for c in range(1, outputs):
        best = c if f[c] > f[best] else best
    return 1.0 if best != target else 0.0


@inner
def _distance(f, targets, i, outputs):
    """The mean absolute error of several numbers."""
    total = 0.0
    for c in range(outputs):
        total += abs(f[c] - targets[i, c])
    return total / outputs


@inner
def _project(state, rule, kept, new, f):
    """Note |w|^2 and project onto the ball of radius sqrt(2 l(0) / lambda) (step 13).

    The step left ``kept`` times the old function and added ``new`` (true weights) at a point
    where the function now has the values ``f``:
    |w'|^2 = kept^2 |w|^2 + sum_c new_c (2 f_c - new_c).
    """
    status = state.status[0]
    square = kept * kept * status.square_norm
    for c in range(rule.outputs):
        square += new[c] * (2.0 * f[c] - new[c])
    square = max(square, 0.0)
    radius = status.largest / rule.regularisation
    if square > radius:
        status.scale *= np.sqrt(radius / square)
        square = radius
    status.square_norm = square


@compiled
def cell_pass(
    points, square_norms, absolute_norms, self_kernels, weights, factor, diagonal, status,
    settings, codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    targets, sample_weights, extra, first, predictions,
):  # fmt: skip
    """Learn from the samples ``first`` onwards, one at a time.

    Arguments and results as of ``core/loop.py: sample_pass``; ``extra`` has the targets of each
    sample where they are several numbers.
    """
    state = State(
        points, square_norms, absolute_norms, self_kernels, weights, factor, diagonal, status
    )
    rule = settings[0]
    loss, loss_number, outputs = rule.loss, rule.loss_number, rule.outputs
    regularisation, most, exact = rule.regularisation, rule.most, rule.exact
    suffix, memory, projected = rule.suffix, rule.memory, rule.ball > 0
    vector = outputs > 1 and loss >= FIRST_REGRESSION_LOSS
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    point = Rows(np.empty((1, points.shape[0])), data[:0], indices[:0], indptr[:0], False)
    record = status[0]
    capacity = diagonal.shape[0]
    work = np.empty((3, capacity))
    values = np.empty((max(1, depth), capacity))
    f = np.empty(outputs)
    slope = np.empty(outputs)
    new = np.empty(outputs)
    mean = np.empty(outputs)
    scratch = np.empty(outputs)
    zero = np.int64(0)  # a literal would be compiled for separately
    multiplied = sparse or points.shape[0] > FEW_FEATURES
    longest = SPARSE_BLOCK if sparse else BLOCK
    dots = np.empty((longest, capacity if multiplied else 0))
    counted = exact == 0.0 and rule.by_margin == 0
    counted = counted and record.cells == record.order  # points that stay where they are
    counted = counted and only_sets(rows, first, targets.shape[0], points, record.order)
    table = make_table(counted, points, record.order, capacity)
    counts = np.empty((1, table.shape[1]), np.uint8)
    begin, end, size = first, first, 1  # samples whose products are known,
    known, cells = 0, np.int64(0)  # with the points there were
    for i in range(first, targets.shape[0]):
        n = record.order
        if n == capacity and n < most:
            return FULL, i
        if counted:
            square = absolute = float(indptr[i + 1] - indptr[i])
        else:
            square, absolute = row_norms(rows, i)
        if not square <= LARGEST_SQUARE_NORM:
            return UNUSABLE, i
        if counted:
            count_common(rows, i, table, n, counts)
            squares_from_counts(square_norms, square, counts, n, work)
        elif multiplied:
            if i == end or n != known or record.cells != cells:
                size = min(2 * size, longest) if i == end else 1
                count = size if i + size <= targets.shape[0] and (sparse or size == BLOCK) else 1
                begin, end, known, cells = i, i + count, n, record.cells
                products(rows, begin, count, points, n, dots)
            squares_from_dots(rows, i, points, square_norms, square, dots, i - begin, n, work)
        else:
            squares_from_differences(rows, i, points, n, work)
        values_of(program, rows, i, points, absolute_norms, n, work, values)
        _evaluate(weights, n, outputs, values, zero, f)
        compared = memory > 0.0 and record.steps % COMPARE_EVERY == 0
        latest = memory > 0.0 and record.tracker < 0.0
        if compared or (predictions.shape[0] > 0 and not latest):
            _average(weights, record, outputs, values, f, mean, scratch)
        for c in range(outputs):
            f[c] *= record.scale
        if predictions.shape[0] > 0:
            for c in range(outputs):
                predictions[i, c] = f[c] if latest else mean[c]
        target = target_of(loss, outputs, targets[i])
        if vector:
            active = vector_derivative(loss, loss_number, f, outputs, extra, i, slope)
        else:
            active = loss_derivative(loss, loss_number, f, outputs, target, slope)

        t = record.steps + 1
        kept = (t - 1.0) / t
        scale = record.scale * kept if t > 1 else 1.0
        for c in range(outputs):  # -eta_t l', eta_t = 1 / (lambda t); true weights
            new[c] = 0.0
            if active and slope[c] != 0.0:  # of many outputs most losses move two
                new[c] = -sample_weights[i] * slope[c] / (regularisation * t)
                if not abs(new[c] / scale) <= LARGEST_WEIGHT:
                    return DIVERGED, i
        if compared:
            if vector:
                gap = _distance(f, extra, i, outputs) - _distance(mean, extra, i, outputs)
            else:
                gap = _mistake(loss, outputs, f, target) - _mistake(loss, outputs, mean, target)
            record.tracker += (gap - record.tracker) / memory
        started = t - 1 - record.averaged  # the step before the block being averaged
        if 0.0 < suffix < 1.0 and record.averaged > 0 and started <= (1.0 - suffix) * (t - 1):
            _close_block(state, outputs)
        if rule.average_from == t - 1 and t > 1:
            _begin_average(state, outputs)
        if rule.lagging > 0:
            record.summed += record.scale
            record.averaged += 1
        record.scale = scale
        if projected:
            zero_loss = target * target if loss == SQUARED_ERROR else 2.0
            if vector:
                zero_loss = dot(extra, i, extra, i, 0, outputs)
            record.largest = max(record.largest, sample_weights[i] * zero_loss)
        if active:
            record.taken += 1
            margin = margin_of(loss, f, outputs, target) if rule.by_margin > 0 else np.inf
            j, same = _choose(state, rule, rows, i, square, absolute, work, margin)
            if counted and record.order > n:
                enter(rows, i, n, table)
            total = 0.0
            for c in range(outputs):
                if new[c] != 0.0:
                    weights[c, j] += new[c] / scale
                    total += new[c] * new[c]
                    if suffix > 0.0:
                        weights[outputs + c, j] += record.summed * (new[c] / scale)
            if not same:  # |k(x, .) - k(c, .)|^2 = 2 - 2 k(x, c)
                record.error_spent += np.sqrt(total * max(0.0, 2.0 - 2.0 * values[0, j]))
            if projected:
                if same:
                    for c in range(outputs):
                        f[c] = kept * f[c] + new[c]
                else:  # the function at the core point is another evaluation
                    for q in range(points.shape[0]):
                        point.dense[0, q] = points[q, j]
                    kernel_values(
                        program, point, zero, points, square_norms, absolute_norms,
                        square_norms[j], n, work, values,
                    )  # fmt: skip
                    _evaluate(weights, n, outputs, values, zero, f)
                    for c in range(outputs):
                        f[c] *= scale
        if projected:
            _project(state, rule, kept, new, f)
        if rule.lagging == 0:
            record.summed += record.scale
            record.averaged += 1
        record.steps += 1
        record.seen += 1
        if record.scale < SMALLEST_SCALE:
            _settle(state, outputs)
    return DONE, targets.shape[0]
