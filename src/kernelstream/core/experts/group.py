"""Kernel experts on one dictionary: the first of second order, the others of first order.

In the coordinates u = T k of the span of the points (orthonormal, T = inverse(L) where K = L L^T) a
function is w.u and its prior covariance is the identity; a point that leaves is a rotation and one
coordinate less. k are the kernel values A exp(-gamma r^2) + 1 with the points, where
r^2 = sum_j scale_j (z_j - z'_j)^2. Of T and of the covariance only the lower triangles are held:
what a step costs is to go through both.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.learning import learn_classes, learn_numbers
from kernelstream.core.experts.steps import softmax, thinned
from kernelstream.core.exponential import LOG2_E, UNDERFLOW, decay
from kernelstream.core.jit import compiled, inner
from kernelstream.core.lanes import add_multiple, dot, fma
from kernelstream.core.rotations import leave_triangle, rotate_rows, rotate_symmetric
from kernelstream.core.splitmix import uniform
from kernelstream.core.triangles import (
    multiply_back,
    multiply_back2,
    multiply_lower,
    multiply_lower4,
    multiply_reduced,
    multiply_symmetric,
    reduce_symmetric,
    row_start,
    square_columns,
)

#: The numbers of a group.
GROUP_STATUS = np.dtype(
    (
        np.record,
        [
            ("points", np.int64),  # held now
            ("most", np.int64),
            ("seen", np.int64),
            ("random", np.uint64),
            ("numbers", np.int64),  # whether targets are numbers, not classes
            ("gamma", np.float64),
            ("amplitude", np.float64),  # A
            ("mean_loss", np.float64),  # of the leading expert
            ("noise", np.float64),
            ("interval", np.int64),  # rows between two looks at the slopes
            ("looks", np.int64),
            ("changes", np.int64),  # points that replaced another
        ],
    )
)

#: A point is taken in where its squared distance to the span of the others is above, per k(x, x).
NOVEL = 1e-3
#: Rows over which experts of a group are compared.
HORIZON = 512.0


class GroupState(NamedTuple):
    """What a group holds: p inputs, room for m points, e experts, o outputs."""

    status: NDArray[np.void]  # (1,) GROUP_STATUS
    points: NDArray[np.float64]  # (p, m)
    norms: NDArray[np.float64]  # (m,) sum_j scale_j z_j^2
    inverse: NDArray[np.float64]  # (t,) T, a triangle: see ``triangles``
    covariance: NDArray[np.float64]  # (t,) of w, second order, likewise
    weights: NDArray[np.float64]  # (e o, m) w
    scales: NDArray[np.float64]  # (p,)
    slopes: NDArray[np.float64]  # (p,) mean squares of the function's slopes, or ...
    metric: NDArray[np.float64]  # (p, p) ... mean products of them; (0, 0): not followed
    rates: NDArray[np.float64]  # (e - 1,) steps of the first-order experts
    losses: NDArray[np.float64]  # (e,) decayed means
    noises: NDArray[np.float64]  # (o,) of several targets; or (0,)


@inner
def kernel_row(group, z, n, k):
    """Kernel values of ``z`` with the first n points into ``k``. Returns sum_j scale_j z_j^2."""
    status = group.status[0]
    square = 0.0
    for i in range(n):
        k[i] = 0.0
    for j in range(len(z)):
        if z[j] != 0.0:
            c = group.scales[j] * z[j]
            square = fma(c, z[j], square)
            add_multiple(c, group.points, j, k, n)
    rate, end = status.gamma * LOG2_E, UNDERFLOW / status.gamma
    for i in range(n):
        r2 = max(0.0, group.norms[i] + square - 2.0 * k[i])
        k[i] = fma(status.amplitude, decay(r2, rate, end), 1.0)
    return square


@inner
def add_point(group, z, square, novelty, u, h, k, work):
    """Take ``z`` in: a new coordinate, in which all functions are 0."""
    status = group.status[0]
    n = status.points
    root, row = math.sqrt(novelty), row_start(n)
    multiply_back(group.inverse, n, u, work)
    for i in range(n):
        group.inverse[row + i] = -work[i] / root
        group.covariance[row + i] = 0.0
    group.inverse[row + n] = 1.0 / root
    group.covariance[row + n] = 1.0
    u[n] = h[n] = root
    k[n] = status.amplitude + 1.0
    group.norms[n] = square
    for j in range(len(z)):
        group.points[j, n] = z[j]
    for row in range(len(group.weights)):
        group.weights[row, n] = 0.0
    status.points = n + 1


@inner
def drop_point(group, j, cosines, sines, carry):
    """Take point j out: what is left is the projection on the span of the others.

    The order of the points stays, and so does the triangle.
    """
    status = group.status[0]
    last = status.points - 1
    leave_triangle(group.inverse, last + 1, j, cosines, sines, carry)
    rotate_rows(group.weights, j, last, cosines, sines)
    rotate_symmetric(group.covariance, j, last, cosines, sines, carry)
    for i in range(j, last):
        group.norms[i] = group.norms[i + 1]
    for q in range(len(group.points)):
        for i in range(j, last):
            group.points[q, i] = group.points[q, i + 1]
    status.points = last
    status.changes += 1


@inner
def weigh_points(group, first, c, outputs, alphas):
    """Function ``first + c`` as a sum over the points' kernels, into ``alphas[c % 2]``.

    The next one too where c is even: a pair shares a trip through the factor.
    """
    n, row = group.status[0].points, first + c
    if c % 2:
        return
    if c + 1 < outputs:
        weights, next_ = group.weights[row], group.weights[row + 1]
        multiply_back2(group.inverse, n, weights, next_, alphas[0], alphas[1])
    else:
        multiply_back(group.inverse, n, group.weights[row], alphas[0])


@inner
def find_cheapest(group, expert, outputs, keep, costs, diagonal, alphas):
    """The point among the first ``keep`` without which the expert's functions change least."""
    n = group.status[0].points
    square_columns(group.inverse, n, diagonal)
    for i in range(n):
        costs[i] = 0.0
    for c in range(outputs):
        weigh_points(group, expert * outputs, c, outputs, alphas)
        alpha = alphas[c % 2]
        for i in range(n):
            costs[i] = fma(alpha[i], alpha[i], costs[i])
    best, cheapest = 0, math.inf
    for i in range(keep):
        cost = costs[i] / diagonal[i]
        if cost < cheapest:
            best, cheapest = i, cost
    return best


@inner
def look_at_slopes(group, outputs, z, k, alphas, slope):
    """Follow the mean products of the second-order functions' slopes along the inputs."""
    status = group.status[0]
    n, width = status.points, len(z)
    status.looks += 1
    rate = max(1.0 / status.looks, status.interval / 2000.0)
    near = alphas[2]
    for i in range(n):
        near[i] = k[i] - 1.0
    for c in range(outputs):
        weigh_points(group, 0, c, outputs, alphas)
        alpha = alphas[c % 2]
        total = dot(alpha, 0, near, 0, 0, n)
        for i in range(n):
            alpha[i] *= near[i]
        for j in range(width):
            slope[c, j] = 2.0 * status.gamma * group.scales[j]
            slope[c, j] *= z[j] * total - dot(group.points, j, alpha, 0, 0, n)
    if len(group.metric):
        for j in range(width):
            for q in range(width):
                product = 0.0
                for c in range(outputs):
                    product = fma(slope[c, j], slope[c, q], product)
                group.metric[j, q] += rate * (product - group.metric[j, q])
        return
    for j in range(width):
        square = 0.0
        for c in range(outputs):
            square = fma(slope[c, j], slope[c, j], square)
        group.slopes[j] += rate * (square - group.slopes[j])


@inner
def judge(group, values, targets, out, t, first):
    """Follow the losses of all experts. Returns the leading one and its loss on this row."""
    status = group.status[0]
    experts, outputs = values.shape
    rate = max(1.0 / (status.seen + 1.0), 1.0 / HORIZON)
    best, own = 0, 0.0
    for e in range(experts):
        if status.numbers:
            loss = 0.0
            for c in range(outputs):
                error = targets[c] - values[e, c]
                noise = group.noises[c] if len(group.noises) else status.noise
                loss += min(error * error, 36.0 * noise)
            loss /= outputs
        else:
            p = out[t, first + e, np.int64(targets[0])]
            loss = -math.log(0.98 * p + 0.02 / outputs)
        group.losses[e] += rate * (loss - group.losses[e])
        if e == 0 or group.losses[e] < group.losses[best]:
            best, own = e, loss
    return best, own


@inner
def is_wanted(status, novelty, best, own, draw):
    """Whether a row becomes a point; in a full dictionary only a few of the hard ones do."""
    wanted = novelty > NOVEL * (status.amplitude + 1.0)
    if wanted and status.points >= status.most:
        # A leader of first order means that the stream changes.
        share = 0.3 if best > 0 else max(0.03, 3.0 * status.most / (status.seen + 1.0))
        wanted = own > status.mean_loss and draw < share
    status.mean_loss += max(1.0 / (status.seen + 1.0), 1e-3) * (own - status.mean_loss)
    return wanted


@inner
def coordinates(group, rows, t, calm, k, u, squares):
    """Kernel values and coordinates of row t, and of the next three where points are rarely new.

    Into ``k`` and ``u`` (4, m) and ``squares`` (4,), with the same bits in any case. Returns how
    many rows.
    """
    n = group.status[0].points
    if calm < 2 or t + 4 > len(rows):
        squares[0] = kernel_row(group, rows[t], n, k[0])
        multiply_lower(group.inverse, n, k[0], u[0])
        return 1
    for r in range(4):
        squares[r] = kernel_row(group, rows[t + r], n, k[r])
    multiply_lower4(group.inverse, n, k, u)
    return 4


@compiled
def group_pass(group, outputs, rows, targets, sample_weights, out, first, variances):
    """Predict each row, then learn it; without targets, predict alone.

    Parameters
    ----------
    group : GroupState
    rows : (n, p)
    targets : (n, outputs) numbers, or (n, 1) classes by number; (0, 1)
    sample_weights : (n,)
    out : (n, experts, outputs), from expert ``first`` on: probabilities, or numbers.
    variances : (n,), out: of the second-order functions.
    """
    status = group.status[0]
    capacity = len(group.norms)
    experts = len(group.rates) + 1
    width = (capacity + 3) // 4 * 4  # rows begin where vectors do
    h, last, v, work = np.empty((4, width))
    alphas = np.empty((3, width))
    k_rows, u_rows, squares = np.empty((4, width)), np.empty((4, width)), np.empty(4)
    begin, end, calm = 0, 0, 2  # rows in these arrays, rows since the points have changed
    values, gradient = np.empty((experts, outputs)), np.empty(outputs)
    slope = np.empty((outputs, rows.shape[1]))
    k_xx = status.amplitude + 1.0
    gain = 0.0  # with which the covariance has yet to be reduced along ``last``
    for t in range(len(rows)):
        z = rows[t]
        n = status.points
        if t >= end:
            begin, end = t, t + coordinates(group, rows, t, calm, k_rows, u_rows, squares)
        k, u, square = k_rows[t - begin], u_rows[t - begin], squares[t - begin]
        reach = min(dot(u, 0, u, 0, 0, n), k_xx)
        novelty = k_xx - reach
        if gain > 0.0:
            multiply_reduced(group.covariance, n, gain, last, u, h)
        else:
            multiply_symmetric(group.covariance, n, u, h)
        variance = max(0.0, dot(h, 0, u, 0, 0, n)) + novelty
        variances[t] = variance
        for e in range(experts):
            for c in range(outputs):
                values[e, c] = dot(group.weights, e * outputs + c, u, 0, 0, n)
            if status.numbers:
                for c in range(outputs):
                    out[t, first + e, c] = values[e, c]
            else:
                shrink = 1.0 / math.sqrt(1.0 + 0.125 * math.pi * variance) if e == 0 else 1.0
                softmax(values, e, shrink, out, t, first + e)
        if len(targets) == 0:
            continue

        importance = sample_weights[t]
        best, own = judge(group, values, targets[t], out, t, first)
        if is_wanted(status, novelty, best, own, uniform(status)):
            add_point(group, z, square, novelty, u, h, k, work)
            reach, end, calm = k_xx, t, -1
        calm += 1
        if status.numbers:
            gain = learn_numbers(
                group, variance, reach, importance, values, targets[t], u, h, gradient
            )
        else:
            label = np.int64(targets[t, 0])
            gain = learn_classes(group, variance, reach, importance, values, label, gradient, u, h)
        n = status.points
        gain = thinned(gain, variance, uniform(status))
        h, last = last, h
        status.seen += 1
        if status.interval > 0 and status.seen % status.interval == 0:
            look_at_slopes(group, outputs, z, k, alphas, slope)
        if n > status.most:
            if gain > 0.0:
                reduce_symmetric(group.covariance, n, gain, last)
                gain = 0.0
            j = find_cheapest(group, best, outputs, n - 1, v, work, alphas)
            drop_point(group, j, v, work, alphas[0])
    if gain > 0.0:
        reduce_symmetric(group.covariance, status.points, gain, last)


@compiled
def shrink_group(group, outputs, most):
    """Drop points until there are ``most``, those first that the second order needs least."""
    (v, work), alphas = np.empty((2, len(group.norms))), np.empty((2, len(group.norms)))
    while group.status[0].points > most:
        j = find_cheapest(group, 0, outputs, group.status[0].points, v, work, alphas)
        drop_point(group, j, v, work, alphas[0])


@compiled
def fill_gram(group, out):
    """Kernel values among the points into the lower triangle of ``out`` (n, n)."""
    z = np.empty(len(group.points))
    for i in range(len(out)):
        for j in range(len(z)):
            z[j] = group.points[j, i]
        kernel_row(group, z, i, out[i])
        out[i, i] = group.status[0].amplitude + 1.0


@compiled
def independent_points(gram, threshold):
    """The points that are further than ``threshold`` from the span of those before, squared."""
    n = len(gram)
    triangle, row = np.zeros((n, n)), np.empty(n)
    kept = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        distance = gram[i, i]
        for a in range(count):
            row[a] = (gram[i, kept[a]] - dot(triangle, a, row, 0, 0, a)) / triangle[a, a]
            distance = fma(-row[a], row[a], distance)
        if distance > threshold:
            triangle[count, :count] = row[:count]
            triangle[count, count] = math.sqrt(distance)
            kept[count] = i
            count += 1
    return kept[:count]


@compiled
def project_rows(rows, matrix, out):
    """out = rows matrix^T, each number by itself: the same bits for any number of rows."""
    for t in range(len(rows)):
        for j in range(len(matrix)):
            out[t, j] = dot(matrix, j, rows, t, 0, rows.shape[1])
