"""The factor of a group made again for other kernel values among its points.

The functions keep their values at the points, and so does the second-order one its covariance
there. In between the metric may change.
"""

import math

from kernelstream.core.elimination import eliminate, fill_up, spread_values, square_product
from kernelstream.core.experts.group import fill_gram
from kernelstream.core.jit import compiled
from kernelstream.core.lanes import dot
from kernelstream.core.triangles import pack, unpack


@compiled
def take_values(group, variance, functions, work):
    """What the functions are at the points.

    Parameters
    ----------
    group : GroupState
    variance : float, added to that of every coordinate.
    functions : (e o, n), out: the values.
    work : (3, m, m), m: n up to a multiple of four. Out, in the last one: the lower triangle of its
        first n rows is a root of the second-order values' covariance.

    Returns
    -------
    bool : whether there is such a root. Rounding may have made the covariance indefinite.
    """
    n = group.status[0].points
    values, covariance, spread = work[0], work[1], work[2]
    unpack(group.inverse, values[:n])
    unpack(group.covariance, covariance[:n])
    for i in range(n):
        covariance[i, i] += variance
    fill_up(values, n)
    fill_up(covariance, n)
    spread_values(values, covariance, spread)
    for row in range(len(functions)):
        for i in range(n):
            functions[row, i] = dot(group.weights, row, values, i, 0, i + 1)
    for i in range(n):
        if not math.isfinite(spread[i, i]):
            return False
    return True


@compiled
def set_values(group, least, kept, functions, work):
    """The reverse, with the kernel values that there are now.

    Parameters
    ----------
    group : GroupState
    least : float, the least squared distance of a point to the span of those before it.
    kept : float
        Of the certainty so much stays: the covariance C of the coordinates becomes
        (kept inverse(C) + (1 - kept) I)^-1.
    functions, work : as from ``take_values``

    Returns
    -------
    bool : whether all points are that far apart; if not, neither the group nor what was taken from
        it has changed.
    """
    n = group.status[0].points
    inverse, product, covariance = work[0], work[1], work[2]
    fill_gram(group, inverse[:n])
    fill_up(inverse, n)
    eliminate(inverse, False)
    for i in range(n):
        if not inverse[i, i] * inverse[i, i] * least < 1.0:
            return False
    pack(inverse[:n], group.inverse)
    for row in range(len(functions)):
        for i in range(n):
            group.weights[row, i] = dot(functions, row, inverse, i, 0, i + 1)
    fill_up(covariance, n)
    square_product(inverse, covariance, product)
    if kept < 1.0:
        # (I - kept E^-1) / (1 - kept) with E = kept I + (1 - kept) C, whose condition is good.
        for i in range(n):
            for q in range(i + 1):
                covariance[i, q] *= 1.0 - kept
            covariance[i, i] += kept
        fill_up(covariance, n)
        eliminate(covariance, True)
        for i in range(n):
            for q in range(i + 1):
                covariance[i, q] *= -kept / (1.0 - kept)
            covariance[i, i] += 1.0 / (1.0 - kept)
    pack(covariance[:n], group.covariance)
    return True
