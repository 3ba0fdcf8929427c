"""Columns in units that move with the stream."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.jit import compiled, inner

#: The least weight of a row in means and deviations: they follow a stream that drifts.
SLOWEST = 1.0 / 4000.0
#: Values after which others count for at most so many deviations.
SETTLED, FARTHEST = 20.0, 10.0
#: Deviations beyond which values are compressed.
FAR = 3.0
#: Deviations of a value that linear experts see as it is.
FARTHEST_INPUT = 100.0
#: Stands for what overflows: a number far from a column of tiny ones.
LARGEST = 1e5
#: Deviations of a target that are not above this part of its mean are rounding.
CONSTANT = 1e-12
#: Deviations beyond which a target is cut off, and how many of those in a row let its unit grow.
FARTHEST_TARGET, MANY_FAR = 1e4, 8.0
#: A column whose values have kept so far above their mean for long, or below it, runs on.
RUNS_ON = 0.1


class ColumnUnits(NamedTuple):
    """Running statistics of p columns."""

    values: NDArray[np.float64]  # (p,) values so far, without missing ones
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    filled: NDArray[np.float64]  # how many are not zero, as a fraction
    power: NDArray[np.float64]  # mean square
    low: NDArray[np.float64]  # the two values of a column that has only two;
    high: NDArray[np.float64]  # low > high where there are more
    least: NDArray[np.float64]  # the range of values in units lately:
    most: NDArray[np.float64]  # rows that are not learned stay near it


@inner
def unit_of(units, j):
    """What is 0 in a column, and what is 1.

    Rare values of a column that is mostly zero, or has two values, are not far out: its unit is at
    least half of what they are on average. Zeros of the former stay zeros.
    """
    center, deviation = units.mean[j], math.sqrt(units.variance[j])
    if units.filled[j] < 0.5 and units.filled[j] > 0.0:
        center = 0.0
        deviation = max(deviation, 0.5 * math.sqrt(units.power[j] / units.filled[j]))
    elif units.low[j] < units.high[j]:
        deviation = max(deviation, 0.5 * (units.high[j] - units.low[j]))
    return center, deviation


@inner
def follow_column(units, j, x):
    """Statistics of a column after one more value."""
    units.values[j] += 1.0
    low, high = units.low[j], units.high[j]
    if units.values[j] == 1.0:
        units.low[j] = units.high[j] = x
    elif low <= high and x != low and x != high:
        units.low[j] = min(low, x) if low == high else 1.0
        units.high[j] = max(high, x) if low == high else 0.0
    rate = max(1.0 / units.values[j], SLOWEST)
    if units.values[j] > SETTLED:  # a single value far out must not set the unit
        center, unit = unit_of(units, j)
        x = min(center + FARTHEST * unit, max(center - FARTHEST * unit, x)) if unit > 0.0 else x
    apart = x - units.mean[j]
    units.mean[j] += rate * apart
    units.variance[j] = (1.0 - rate) * (units.variance[j] + rate * apart * apart)
    units.filled[j] += rate * ((1.0 if x != 0.0 else 0.0) - units.filled[j])
    units.power[j] += rate * (x * x - units.power[j])


@inner
def in_units(units, j, x):
    """The value in deviations, compressed where it is far out."""
    center, deviation = unit_of(units, j)
    if not deviation > 1e-14 * abs(center):
        return 0.0
    z = (x - center) / deviation
    if z > FAR:
        z = FAR + math.log(min(z, LARGEST) - (FAR - 1.0))
    elif z < -FAR:
        z = -FAR - math.log(min(-z, LARGEST) - (FAR - 1.0))
    return z


@inner
def as_it_was(z):
    """A value in deviations before it was compressed, up to ``FARTHEST_INPUT`` of them."""
    apart = abs(z)
    if apart <= FAR:
        return z
    far = min(FARTHEST_INPUT, FAR - 1.0 + math.exp(min(apart, FARTHEST_INPUT) - FAR))
    return far if z > 0.0 else -far


@inner
def reach(units, j):
    """From where to where values are that are not learned, in units: near those that were.

    A counter, or a date, is always above its moving mean, by about as much: what it does by itself
    is not known. In units that stand still it would leave the rows that were learned, so it stays.
    """
    least, most = units.least[j], units.most[j]
    if units.values[j] > SETTLED and (least > RUNS_ON or most < -RUNS_ON):
        return least, most
    least, most = min(least, 0.0), max(most, 0.0)
    room = 0.5 * (most - least)
    return least - room, most + room


@compiled
def follow_target(count, mean, variance, far, targets):
    """Number, mean and variance of targets of numbers (n,), after these.

    ``far`` is how many in a row were cut off: now and then one must not set the unit, but after a
    long time without a change it is so small that none fits.
    """
    for t in range(len(targets)):
        count += 1.0
        rate, apart = max(1.0 / count, SLOWEST), targets[t] - mean
        unit = math.sqrt(variance)
        if count > SETTLED and unit > CONSTANT * abs(mean):
            far = far + 1.0 if abs(apart) > FARTHEST_TARGET * unit else 0.0
            farthest = (FARTHEST if far < MANY_FAR else math.sqrt(3.0 / rate)) * unit
            apart = min(farthest, max(-farthest, apart))
        mean += rate * apart
        variance = (1.0 - rate) * (variance + rate * apart * apart)
    return count, mean, variance, far


@compiled
def moving_units(units, rows, learning, out):
    """Rows in units, which follow each row first where ``learning``; a missing value is 0."""
    for t in range(len(rows)):
        for j in range(rows.shape[1]):
            x = rows[t, j]
            if np.isnan(x):
                out[t, j] = 0.0
                continue
            if learning:
                follow_column(units, j, x)
            z = in_units(units, j, x)
            if learning:
                least, most = units.least[j], units.most[j]
                if units.values[j] == 2.0:  # the first was its own mean
                    least = most = z
                units.least[j] = min(z, least + SLOWEST * (z - least))
                units.most[j] = max(z, most + SLOWEST * (z - most))
            else:
                least, most = reach(units, j)
                z = min(most, max(least, z))
            out[t, j] = z


@compiled
def moving_means(units, rows, learning, out):
    """Rows as they are, a missing value replaced by the mean, which moves where ``learning``."""
    for t in range(len(rows)):
        for j in range(rows.shape[1]):
            x = rows[t, j]
            if np.isnan(x):
                out[t, j] = units.mean[j]
                continue
            if learning:
                follow_column(units, j, x)
            out[t, j] = x
