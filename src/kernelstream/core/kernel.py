"""Kernel values between samples and stored points.

A kernel arrives as a short program in postfix order (``kernels.py`` writes it): numbers
that are branched on once per vector, never once per element, so one compilation serves
every kernel and every sum, product and scaling of kernels.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.counts import count_common, make_table, only_sets
from kernelstream.core.exponential import LARGEST_RATE, LOG2_E, UNDERFLOW, decay
from kernelstream.core.jit import compiled, inline, inner, lean
from kernelstream.core.lanes import fma, lengths
from kernelstream.core.tiles import products

GAUSSIAN, LAPLACIAN, MATERN12, MATERN32, MATERN52, POLYNOMIAL, LINEAR = range(7)
ADD, MULTIPLY, SCALE = range(7, 10)


class Program(NamedTuple):
    """A kernel in postfix order."""

    codes: np.ndarray  # (n,) int64     what each instruction is
    numbers: np.ndarray  # (n, 3) float64  its parameters
    needs_dots: bool  # uses x.d
    needs_squares: bool  # uses |x - d|^2
    needs_l1: bool  # uses |x - d|_1
    depth: int  # values on the stack at most


class Rows(NamedTuple):
    """Samples, dense or CSR. Only one of the two forms is filled."""

    dense: np.ndarray  # (n, p) float64, C order
    data: np.ndarray  # (nnz,) float64
    indices: np.ndarray  # (nnz,) int32
    indptr: np.ndarray  # (n + 1,) int64
    sparse: bool


#: Rows of the work array; from ``STACK`` on a program of some depth keeps its values.
DOTS, SQUARES, L1, STACK = range(4)

#: Squared distances below this fraction of |d|^2 + |x|^2 are taken from the differences.
CANCELLED = 1e-3
#: Up to this many dense features, always.
FEW_FEATURES = 16


@inner
def exponentials(source, s, rate, n, target, t):
    """``target[t, :n]`` = exp(-rate source[s, :n]) where rate > 0 and the source is not negative.

    The relative error is below 1e-15 + 3e-16 rate x, as of NumPy's ``exp(-(rate * x))``.
    """
    binary_rate = min(rate, LARGEST_RATE) * LOG2_E
    end = UNDERFLOW / rate
    for j in range(n):
        target[t, j] = decay(source[s, j], binary_rate, end)


@inner
def evaluate(program, work, n, stack, first):
    """Run the program on the inner products and distances in ``work``, for ``n`` points.

    The values end in ``stack[first, :n]``; rows after it are used where the depth needs them.
    """
    top = first - 1
    for i in range(program.codes.shape[0]):
        code = program.codes[i]
        number = program.numbers[i, 0]
        if code == ADD:
            top -= 1
            for j in range(n):
                stack[top, j] += stack[top + 1, j]
        elif code == MULTIPLY:
            top -= 1
            for j in range(n):
                stack[top, j] *= stack[top + 1, j]
        elif code == SCALE:
            for j in range(n):
                stack[top, j] *= number
        elif code == LINEAR:
            top += 1
            for j in range(n):
                stack[top, j] = work[DOTS, j]
        elif code == POLYNOMIAL:  # (gamma x.d + coef0)^degree by repeated multiplication
            top += 1
            for j in range(n):
                base = number * work[DOTS, j] + program.numbers[i, 1]
                value = base
                for _ in range(int(program.numbers[i, 2]) - 1):
                    value *= base
                stack[top, j] = value
        else:
            top += 1
            if code == GAUSSIAN:
                exponentials(work, SQUARES, number, n, stack, top)
            elif code == LAPLACIAN:
                exponentials(work, L1, number, n, stack, top)
            else:
                # Matern with length scale 1 / sqrt(2 gamma), the Gaussian's with this gamma.
                twice = 2.0 if code == MATERN12 else 6.0 if code == MATERN32 else 10.0
                factor = math.sqrt(twice) * math.sqrt(number)
                third = 0.0 if code == MATERN32 else 1.0 / 3.0
                for j in range(n):
                    stack[top, j] = math.sqrt(work[SQUARES, j])
                exponentials(stack, top, factor, n, stack, top)
                for j in range(0 if code == MATERN12 else n):
                    s = factor * math.sqrt(work[SQUARES, j])
                    # Not 0 * infinity at an astronomical distance.
                    stack[top, j] *= 1.0 + s + s * s * third if stack[top, j] > 0.0 else 0.0


@inner
def _own_value(program, i, square_norm):
    """The value that instruction ``i`` puts on the stack."""
    number = program.numbers[i, 0]
    if program.codes[i] == LINEAR:
        return square_norm
    if program.codes[i] == POLYNOMIAL:
        return (number * square_norm + program.numbers[i, 1]) ** program.numbers[i, 2]
    return 1.0


@compiled
def self_value(program, square_norm):
    """k(x, x) for a sample with the given squared norm."""
    if program.codes.shape[0] == 1:
        return _own_value(program, 0, square_norm)
    stack = np.empty(program.depth)
    top = -1
    for i in range(program.codes.shape[0]):
        code = program.codes[i]
        if code == ADD:
            stack[top - 1] += stack[top]
            top -= 1
        elif code == MULTIPLY:
            stack[top - 1] *= stack[top]
            top -= 1
        elif code == SCALE:
            stack[top] *= program.numbers[i, 0]
        else:
            top += 1
            stack[top] = _own_value(program, i, square_norm)
    return stack[0]


@inline
def row_norms(rows, i):
    """Squared Euclidean norm and l1 norm of sample ``i``."""
    if rows.sparse:
        return lengths(rows.data, 0, rows.indptr[i], rows.indptr[i + 1])
    return lengths(rows.dense, i, 0, rows.dense.shape[1])


@inner
def copy_sample(rows, i, points, place):
    """``points[:, place]`` = sample ``i``."""
    if rows.sparse:
        for q in range(points.shape[0]):
            points[q, place] = 0.0
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            points[rows.indices[q], place] = rows.data[q]
    else:
        for q in range(points.shape[0]):
            points[q, place] = rows.dense[i, q]


@inner
def row_l1(rows, i, points, absolute_norms, n, work):
    """``work[L1, :n]`` = l1 distances of sample ``i`` to the first ``n`` points."""
    if rows.sparse:  # |d|_1, corrected where x is not zero
        for j in range(n):
            work[L1, j] = absolute_norms[j]
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            f = rows.indices[q]
            for j in range(n):
                work[L1, j] += abs(rows.data[q] - points[f, j]) - abs(points[f, j])
        for j in range(n):
            work[L1, j] = max(work[L1, j], 0.0)
        return
    for j in range(n):
        work[L1, j] = 0.0
    for q in range(rows.dense.shape[1]):
        for j in range(n):
            work[L1, j] += abs(rows.dense[i, q] - points[q, j])


@inner
def _exact_square(rows, i, points, j):
    """|x_i - d_j|^2 from the differences."""
    total = 0.0
    if rows.sparse:
        q = 0
        for s in range(rows.indptr[i], rows.indptr[i + 1]):
            while q < rows.indices[s]:
                total += points[q, j] * points[q, j]
                q += 1
            difference = rows.data[s] - points[q, j]
            total += difference * difference
            q += 1
        while q < points.shape[0]:
            total += points[q, j] * points[q, j]
            q += 1
        return total
    for q in range(points.shape[0]):
        difference = rows.dense[i, q] - points[q, j]
        total += difference * difference
    return total


@inline
def squares_from_differences(rows, i, points, n, work):
    """``work[SQUARES, :n]`` = |x_i - d|^2 of a dense sample, feature by feature."""
    for j in range(n):
        work[SQUARES, j] = 0.0
    for q in range(points.shape[0]):
        for j in range(n):
            difference = rows.dense[i, q] - points[q, j]
            work[SQUARES, j] = fma(difference, difference, work[SQUARES, j])


@inline
def squares_from_dots(rows, i, points, square_norms, x_square_norm, dots, r, n, work):
    """``work[SQUARES]`` = |d|^2 - 2 d.x + |x|^2, from the differences where that cancels.

    The inner products d.x are in ``dots[r]``.

    Cancellation would cost the kernel more digits than the Gram factor can do without: a
    stream far from the origin, or a near duplicate.
    """
    cancelled = 0
    for j in range(n):
        total = square_norms[j] + x_square_norm
        square = total - 2.0 * dots[r, j]
        work[SQUARES, j] = square
        cancelled += square < CANCELLED * total
    if cancelled > 0:
        for j in range(n):
            if work[SQUARES, j] < CANCELLED * (square_norms[j] + x_square_norm):
                work[SQUARES, j] = _exact_square(rows, i, points, j)


@inline
def squares_from_counts(square_norms, x_square_norm, counts, n, work):
    """``work[SQUARES]`` = |d|^2 - 2 d.x + |x|^2 of sets: whole numbers, so nothing is lost."""
    for j in range(n):
        work[SQUARES, j] = (square_norms[j] + x_square_norm) - 2.0 * counts[0, j]


@inline
def kernel_row(
    program, rows, i, points, square_norms, absolute_norms, n, multiplied, work, out, r, norms
):
    """Kernel values of sample ``i`` with ``n`` points: ``out[r, :n]``.

    ``norms[r]`` receives its squared norm and l1 norm. ``multiplied``: the inner products with the
    points are in ``out[r]`` already.
    """
    square, absolute = row_norms(rows, i)
    norms[r, 0] = square
    norms[r, 1] = absolute
    differences = not rows.sparse and points.shape[0] <= FEW_FEATURES
    if multiplied:
        for j in range(n):
            work[DOTS, j] = out[r, j]
    elif program.needs_dots or (program.needs_squares and not differences):
        products(rows, i, np.int64(1), points, n, work)
    if program.needs_squares and differences:
        squares_from_differences(rows, i, points, n, work)
    elif program.needs_squares:
        squares_from_dots(rows, i, points, square_norms, square, work, DOTS, n, work)
    if program.needs_l1:
        row_l1(rows, i, points, absolute_norms, n, work)
    if program.depth == 1:  # straight into the result
        evaluate(program, work, n, out, r)
    else:
        evaluate(program, work, n, work, np.int64(STACK))
        for j in range(n):
            out[r, j] = work[STACK, j]


@inner
def between_points(program, state, j, n, point, work):
    """Kernel values of the stored point ``j`` with the first ``n``: ``work[STACK, :n]``.

    From the differences, so that they are symmetric to the bit and do not depend on whether the
    points came dense or sparse. ``point`` is a dense row to work in.
    """
    for q in range(state.points.shape[0]):
        point.dense[0, q] = state.points[q, j]
    zero = np.int64(0)  # a literal would be compiled for separately
    if program.needs_dots:
        products(point, zero, np.int64(1), state.points, n, work)
    if program.needs_squares:
        squares_from_differences(point, zero, state.points, n, work)
    if program.needs_l1:
        row_l1(point, zero, state.points, state.absolute_norms, n, work)
    evaluate(program, work, n, work, np.int64(STACK))


@compiled
def kernel_rows(program, rows, first, count, points, square_norms, absolute_norms, n, out, norms):
    """Kernel values of ``count`` samples with ``n`` points, as of :func:`kernel_row`.

    Many dense features of several samples go through one matrix product; sparse samples that are
    sets are counted.
    """
    width = points.shape[0]
    multiplied = program.needs_dots or (
        program.needs_squares and (rows.sparse or width > FEW_FEATURES)
    )
    product = multiplied and not rows.sparse and count > 1
    if product:
        multiply(rows.dense[first:], False, points, False, out, count, n, width, 1.0, 0.0)
    counted = multiplied and only_sets(rows, first, first + count, points, n)
    table = make_table(counted, points, n, n)
    counts = np.empty((1, table.shape[1]), np.uint8)
    work = np.empty((STACK + program.depth, n))
    for r in range(count):
        if counted:
            count_common(rows, first + r, table, n, counts)
            for j in range(n):
                out[r, j] = counts[0, j]
        kernel_row(
            program, rows, first + r, points, square_norms, absolute_norms, n, product or counted,
            work, out, r, norms,
        )  # fmt: skip


@lean
def first_bad_entry(rows, largest):
    """Row and column of the first entry that is not finite or exceeds ``largest``; or -1, -1."""
    if rows.sparse:
        good = True
        for q in range(rows.data.shape[0]):
            good &= abs(rows.data[q]) <= largest
        i = 0
        while not good and i < rows.indptr.shape[0] - 1:
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                if not abs(rows.data[q]) <= largest:
                    return i, int(rows.indices[q])
            i += 1
        return -1, -1
    for i in range(rows.dense.shape[0]):
        good = True
        for q in range(rows.dense.shape[1]):
            good &= abs(rows.dense[i, q]) <= largest
        if not good:
            for q in range(rows.dense.shape[1]):
                if not abs(rows.dense[i, q]) <= largest:
                    return i, q
    return -1, -1
