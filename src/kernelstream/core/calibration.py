"""Probabilities for functions whose loss has none: a logistic curve for every class, kept online.

For a sample of which class c has the largest value, with a margin m to the next one,

    P(c is right) = 1 / (1 + exp(-(a_c + b_c min(m / u, 4))))

where u is the mean margin of about the last 200 samples: steps that shrink along the stream change
the size of all values. a_c and b_c are moved by every sample that c was predicted for, before it is
learned from: a Newton step on the logistic loss with the curvature of about the last 1000.
"""

import math

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.jit import compiled, inner

#: Columns of a class: the curve, and the curvature of its loss, three numbers of a 2 x 2 matrix.
OFFSET, SLOPE, CURVATURE = 0, 1, 2
COLUMNS = 5
#: The first row is that of the stream: the mean margin, and how many samples it is of.
MEAN, COUNT = 0, 1

#: Samples that the mean margin, and a curve, are made of.
MARGINS = 200.0
SAMPLES = 1000.0
#: Curvature before anything is known, towards which it is forgotten.
PRIOR = 1.0
#: Margins beyond so many mean ones say nothing more; nor do weights of samples.
FARTHEST = 4.0
LARGEST_WEIGHT = 1e6
#: What they can come to, with room to spare.
LARGEST_CURVATURE = 1e12
#: Larger ones are not looked at: sums of them could overflow.
LARGEST_MARGIN = 1e150
#: Bounds of both numbers of a curve: probabilities stay between 0 and 1, whatever comes.
STEEPEST = 30.0
#: The class that is predicted is the most probable one, by this much at least.
AHEAD = 1.0 + 1e-9


def new_table(classes: int) -> NDArray[np.float64]:
    """Nothing is known: the larger the margin, the surer."""
    table = np.zeros((classes + 1, COLUMNS))
    table[1:] = new_row()
    return table


def new_row() -> NDArray[np.float64]:
    """A class that was never predicted."""
    return np.array([0.0, 1.0, PRIOR, 0.0, PRIOR])


def is_possible(table: NDArray[np.float64]) -> bool:
    """Whether these can be numbers of such a table: what a file holds may be anything."""
    curves = table[1:]
    determinants = curves[:, CURVATURE] * curves[:, CURVATURE + 2] - curves[:, CURVATURE + 1] ** 2
    return bool(
        np.isfinite(table).all()
        and (table >= 0.0)[0].all()
        and (np.abs(curves[:, :CURVATURE]) <= STEEPEST).all()
        and (curves[:, SLOPE] >= 0.0).all()
        and (np.abs(curves[:, CURVATURE:]) <= LARGEST_CURVATURE).all()
        and (determinants > 0.0).all()
        and table[0, MEAN] <= LARGEST_MARGIN
        and table[0, COUNT] <= MARGINS
    )


@inner
def _largest(values, i):
    """Class of the largest value, and how far it is ahead of the next."""
    outputs = values.shape[1]
    if outputs == 1:
        return np.int64(1 if values[i, 0] > 0.0 else 0), abs(values[i, 0])
    first, most, second = 0, values[i, 0], -np.inf
    for c in range(1, outputs):
        if values[i, c] > most:
            first, most, second = c, values[i, c], most
        elif values[i, c] > second:
            second = values[i, c]
    return np.int64(first), most - second


@inner
def _in_units(table, margin):
    unit = table[0, MEAN]
    if not margin < FARTHEST * unit:
        return FARTHEST if margin > 0.0 else 0.0
    return margin / unit


@inner
def _right(table, first, distance):
    """The probability that the class of the largest value is right."""
    score = table[first + 1, OFFSET] + table[first + 1, SLOPE] * distance
    return 1.0 / (1.0 + math.exp(-score))


@inner
def _fill(table, values, i, probabilities):
    """The probabilities of all classes: what is left for the others falls with their distance."""
    classes = probabilities.shape[1]
    if classes == 1:
        probabilities[i, 0] = 1.0
        return
    first, margin = _largest(values, i)
    slope, total, largest = table[first + 1, SLOPE], 0.0, 0.0
    for c in range(classes):
        if c != first:
            distance = margin if classes == 2 else values[i, first] - values[i, c]
            share = math.exp(-slope * _in_units(table, distance))
            probabilities[i, c] = share
            total += share
            largest = max(largest, share)
    largest /= total
    least = AHEAD * largest / (1.0 + largest)
    right = max(_right(table, first, _in_units(table, margin)), least)
    for c in range(classes):
        if c != first:
            probabilities[i, c] *= (1.0 - right) / total
    probabilities[i, first] = right


@compiled
def fill_probabilities(table, values, probabilities):
    """(n, classes): what the table says of values of the function."""
    for i in range(values.shape[0]):
        _fill(table, values, i, probabilities)


@compiled
def calibrate(table, values, targets, weights, batch, probabilities):
    """Follow the stream: values of the function for samples before they were learned from.

    ``probabilities``, (n, classes) or with no rows, receives what the table said before the
    sample's batch.
    """
    n = values.shape[0]
    for start in range(0, n, batch):
        end = min(start + batch, n)
        if probabilities.shape[0] > 0:
            for i in range(start, end):
                _fill(table, values, i, probabilities)
        if table.shape[0] == 2:  # a single class is no question
            continue
        for i in range(start, end):
            first, margin = _largest(values, i)
            if not margin < LARGEST_MARGIN:
                continue
            table[0, COUNT] = min(table[0, COUNT] + 1.0, MARGINS)
            table[0, MEAN] += (margin - table[0, MEAN]) / table[0, COUNT]
            _step(
                table[first + 1], _in_units(table, margin), targets[i] == first,
                min(weights[i], LARGEST_WEIGHT),
            )  # fmt: skip


@inner
def _step(curve, distance, right, weight):
    """A Newton step of one curve."""
    score = curve[OFFSET] + curve[SLOPE] * distance
    expected = 1.0 / (1.0 + math.exp(-score))
    bent, kept = weight * expected * (1.0 - expected), 1.0 - 1.0 / SAMPLES
    added = (1.0 - kept) * PRIOR
    a = kept * curve[CURVATURE] + added + bent
    b = kept * curve[CURVATURE + 1] + bent * distance
    c = kept * curve[CURVATURE + 2] + added + bent * distance * distance
    surprise = weight * ((1.0 if right else 0.0) - expected)
    divisor = a * c - b * b
    offset = curve[OFFSET] + surprise * (c - b * distance) / divisor
    slope = curve[SLOPE] + surprise * (a * distance - b) / divisor
    curve[OFFSET] = min(max(offset, -STEEPEST), STEEPEST)
    curve[SLOPE] = min(max(slope, 0.0), STEEPEST)
    curve[CURVATURE], curve[CURVATURE + 1], curve[CURVATURE + 2] = a, b, c
