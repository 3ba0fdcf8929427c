"""The Forgetron's shrinking (self-tuned): all weights times phi, then the oldest point goes.

With s the weight of the oldest point, mu its margin and M the mistakes so far, phi is the largest
number in (0, 1] with Psi(phi s, phi mu) + Q <= 15/32 M, where Psi(a, b) = a^2 + 2 a - 2 a b, and Q
gathers Psi. For several classes s is the weight of the true class, whose rival has -s, and
a^2 counts for both. Dekel, Shalev-Shwartz, Singer, "The Forgetron: a kernel-based perceptron on a
budget", SIAM J. Comput. 37 (2008), Section 5.
"""

import math

import numpy as np

from kernelstream.core.dictionary import renormalise
from kernelstream.core.jit import inner
from kernelstream.core.kernel import kernel_row
from kernelstream.core.lanes import dot
from kernelstream.core.passes import SMALLEST_SCALE
from kernelstream.core.reduce.removal import remove_oldest

#: Place of Q among the state's own numbers.
SPENT = 0


@inner
def shrink_and_forget(state, rule, program, point, work, values, norms):
    """Make room for one point. ``point`` is a dense row to work in, the others as of a pass."""
    status = state.status[0]
    n, j = status.order, status.oldest
    for q in range(state.points.shape[0]):
        point.dense[0, q] = state.points[q, j]
    zero = np.int64(0)  # a literal would be compiled for separately
    kernel_row(
        program, point, zero, state.points, state.square_norms, state.absolute_norms, n, False,
        work, values, zero, norms,
    )  # fmt: skip
    s, square, product = 0.0, 0.0, 0.0
    for c in range(rule.outputs):
        weight = status.scale * state.weights[c, j]
        s = max(s, abs(weight))
        square += weight * weight
        product += weight * status.scale * dot(values, 0, state.weights, c, 0, n)
    square *= state.self_kernels[j]
    # Psi(phi s, phi mu) = a phi^2 + b phi, with s mu = product
    a, b = square - 2.0 * product, 2.0 * s
    left = 15.0 / 32.0 * status.taken - status.own[SPENT]
    phi = 1.0
    if a + b > left:
        phi = 2.0 * left / (b + math.sqrt(max(0.0, b * b + 4.0 * a * left)))
    status.own[SPENT] += phi * (a * phi + b)
    status.scale *= phi
    remove_oldest(state)
    if status.scale < SMALLEST_SCALE:
        renormalise(state, rule.outputs)
