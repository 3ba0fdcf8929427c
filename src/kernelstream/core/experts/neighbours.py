"""Predictions from the most similar of the latest rows.

They follow at once what comes back or moves, where functions have to learn it anew: the last value
of the same key, a cluster that wanders. Of equally similar rows the latest are nearer.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.jit import compiled, inner
from kernelstream.core.lanes import add_multiple, fma

#: The experts: the nearest row alone, and so many together.
SIZE, NEAREST = 2, 5
#: Squared distances that differ by no more, per squared length of the row, are equal.
EQUAL = 1e-9
#: Added to squared distances, per that of the farthest of the rows: the nearest is not everything.
SOFT = 0.1
#: What the rows together have for classes that none of them is.
OTHERS = 0.5
#: A row is unlike the last one if its squared distance is so many times the mean one of the latest
#: rows, once there were some.
UNLIKE, LATEST_STEPS, SETTLED = 4.0, 500.0, 5.0
#: What is kept, in each row, of how often the nearest row had the right class.
DECAY = 0.999


class NeighbourState(NamedTuple):
    """The latest rows, at most ``kept`` of them: the row after the one at i is at i + 1, or 0."""

    written: NDArray[np.int64]  # (1,) rows so far; the next one is at this modulo ``kept``
    points: NDArray[np.float64]  # (p, kept)
    norms: NDArray[np.float64]  # (kept,) sum_j scale_j z_j^2
    targets: NDArray[np.float64]  # (kept, q)
    scales: NDArray[np.float64]  # (p,) of columns, in distances
    right: NDArray[np.float64]  # (2,) of classes: how often the nearest was right, of how often
    steps: NDArray[np.float64]  # (2,) rows after another; the squared distance, on average


def first_counts() -> NDArray[np.float64]:
    """Of the nearest row, before there was one."""
    return np.array([0.5, 1.0])


@inner
def square_length(scales, z):
    """Write sum_j scale_j z_j^2."""
    square = 0.0
    for j in range(len(z)):
        square = fma(scales[j] * z[j], z[j], square)
    return square


@compiled
def measure_points(state):
    """Lengths of the points after the scales have changed."""
    for i in range(min(state.written[0], len(state.norms))):
        state.norms[i] = square_length(state.scales, state.points[:, i])


@inner
def find_nearest(state, z, products, places, distances):
    """The nearest rows into ``places``, with squared distances. Returns how many there are."""
    kept = len(state.norms)
    written = state.written[0]
    n, count = min(written, kept), 0
    for i in range(n):
        products[i] = 0.0
    for j in range(len(z)):
        if z[j] != 0.0:
            add_multiple(state.scales[j] * z[j], state.points, j, products, n)
    square = square_length(state.scales, z)
    equal, farthest = EQUAL * (1.0 + square), math.inf
    for back in range(n):
        i = (written - 1 - back) % kept
        distance = state.norms[i] + square - 2.0 * products[i]
        if not distance < farthest:
            continue
        place = min(count, NEAREST - 1)
        while place > 0 and distance < distances[place - 1] - equal:
            distances[place], places[place] = distances[place - 1], places[place - 1]
            place -= 1
        distances[place], places[place] = distance, i
        count = min(count + 1, NEAREST)
        if count == NEAREST:
            farthest = distances[NEAREST - 1] - equal
    for k in range(count):
        distances[k] = max(0.0, distances[k])
    return count


@inner
def weigh_rows(count, distances, weights):
    """Weights of the nearest rows; of the nearest one 1."""
    if count:
        soft = SOFT * distances[count - 1] + 1e-9
        for k in range(count):
            weights[k] = (distances[0] + soft) / (distances[k] + soft)


@inner
def predict_numbers(state, count, places, weights, out, t):
    for c in range(out.shape[2]):
        total, of_all = 0.0, 0.0
        for k in range(count):
            total += weights[k]
            of_all += weights[k] * state.targets[places[k], c]
        out[t, 0, c] = state.targets[places[0], c] if count else 0.0
        out[t, 1, c] = of_all / total if count else 0.0


@inner
def predict_classes(state, count, places, weights, out, t):
    classes, total = out.shape[2], OTHERS
    right = state.right[0] / state.right[1] if count else 1.0 / classes
    for c in range(classes):
        out[t, 0, c] = (1.0 - right) / max(1, classes - 1)
        out[t, 1, c] = OTHERS / classes
    for k in range(count):
        out[t, 1, np.int64(state.targets[places[k], 0])] += weights[k]
        total += weights[k]
    if classes == 1:
        right = 1.0
    out[t, 0, np.int64(state.targets[places[0], 0]) if count else 0] = right
    for c in range(classes):
        out[t, 1, c] /= total


@inner
def step_to(state, z):
    """The squared distance from the last row."""
    last, square = (state.written[0] - 1) % len(state.norms), 0.0
    for j in range(len(z)):
        apart = z[j] - state.points[j, last]
        square = fma(state.scales[j] * apart, apart, square)
    return square


@inner
def keep_row(state, z, targets, t):
    i = state.written[0] % len(state.norms)
    for j in range(len(z)):
        state.points[j, i] = z[j]
    state.norms[i] = square_length(state.scales, z)
    for c in range(targets.shape[1]):
        state.targets[i, c] = targets[t, c]
    state.written[0] += 1


@compiled
def neighbour_pass(state, numbers, rows, targets, out, unlike):
    """Predict each row, then keep it; without targets, predict alone.

    Parameters
    ----------
    state : NeighbourState
    numbers : bool
    rows : (n, p)
    targets : (n, q) numbers, or (n, 1) classes by number; (0, 1)
    out : (n, SIZE, outputs): probabilities, or numbers; (0, ...): only keep the rows.
    unlike : (n,), out: 1 where a row is unlike the last one, 0 elsewhere
    """
    products, weights = np.empty(len(state.norms)), np.empty(NEAREST)
    places, distances = np.empty(NEAREST, np.int64), np.empty(NEAREST)
    for t in range(len(rows)):
        unlike[t] = 0.0
        if len(out) and state.written[0]:
            step = step_to(state, rows[t])
            if state.steps[0] > SETTLED and step > UNLIKE * state.steps[1]:
                unlike[t] = 1.0
            if len(targets):
                state.steps[0] += 1.0
                rate = max(1.0 / state.steps[0], 1.0 / LATEST_STEPS)
                state.steps[1] += rate * (step - state.steps[1])
        if len(out):
            count = find_nearest(state, rows[t], products, places, distances)
            weigh_rows(count, distances, weights)
            if numbers:
                predict_numbers(state, count, places, weights, out, t)
            else:
                predict_classes(state, count, places, weights, out, t)
                if len(targets) and count:
                    right = state.targets[places[0], 0] == targets[t, 0]
                    state.right[0] = DECAY * (state.right[0] + (1.0 if right else 0.0))
                    state.right[1] = DECAY * (state.right[1] + 1.0)
        if len(targets):
            keep_row(state, rows[t], targets, t)
