"""The factor of a group made again for other kernel values among its points.

The functions keep their values at the points, and so does the second-order one its covariance
there. In between the metric may change.
"""

import math

import numpy as np

from kernelstream.core.elimination import eliminate, spread_values, square_product
from kernelstream.core.experts.group import fill_gram
from kernelstream.core.jit import compiled
from kernelstream.core.lanes import dot
from kernelstream.core.triangles import pack, unpack


@compiled
def take_values(group, variance, functions, spread):
    """What the functions are at the points.

    Parameters
    ----------
    group : GroupState
    variance : float, added to that of every coordinate.
    functions : (e o, n), out: the values.
    spread : (n, n), out: its lower triangle is a root of the second-order values' covariance.

    Returns
    -------
    bool : whether there is such a root. Rounding may have made the covariance indefinite.
    """
    n = group.status[0].points
    inverse, covariance, values = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    unpack(group.inverse, inverse)
    unpack(group.covariance, covariance)
    for i in range(n):
        covariance[i, i] += variance
    spread_values(inverse, covariance, values, spread)
    for row in range(len(functions)):
        for i in range(n):
            functions[row, i] = dot(group.weights, row, values, i, 0, i + 1)
    for i in range(n):
        if not math.isfinite(spread[i, i]):
            return False
    return True


@compiled
def set_values(group, least, kept, functions, spread):
    """The reverse, with the kernel values that there are now.

    Parameters
    ----------
    group : GroupState
    least : float, the least squared distance of a point to the span of those before it.
    kept : float
        Of the certainty so much stays: the covariance C of the coordinates becomes
        (kept inverse(C) + (1 - kept) I)^-1.
    functions, spread : as from ``take_values``

    Returns
    -------
    bool : whether all points are that far apart; if not, nothing has changed.
    """
    n = group.status[0].points
    gram, inverse, covariance = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    fill_gram(group, gram)
    eliminate(gram, False, inverse)
    for i in range(n):
        if not inverse[i, i] * inverse[i, i] * least < 1.0:
            return False
    pack(inverse, group.inverse)
    for row in range(len(functions)):
        for i in range(n):
            group.weights[row, i] = dot(functions, row, inverse, i, 0, i + 1)
    square_product(inverse, spread, covariance)
    if kept < 1.0:
        # (I - kept E^-1) / (1 - kept) with E = kept I + (1 - kept) C, whose condition is good.
        for i in range(n):
            for q in range(i + 1):
                covariance[i, q] *= 1.0 - kept
            covariance[i, i] += kept
        eliminate(covariance, True, inverse)
        for i in range(n):
            for q in range(i + 1):
                covariance[i, q] = inverse[i, q] * (-kept / (1.0 - kept))
            covariance[i, i] += 1.0 / (1.0 - kept)
    pack(covariance, group.covariance)
    return True
