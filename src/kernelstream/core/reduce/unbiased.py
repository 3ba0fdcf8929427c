"""BOGD: one of the old points leaves by chance, and the others grow so that the mean stays.

Point i leaves with probability p_i; those that stay are divided by 1 - p_i and cut at gamma eta.
Uniform: p_i = 1 / B. Weighted: p_i = 1 - s |w_i| sqrt(k(x_i, x_i)) with s such that they sum to 1;
negative ones count as 0 and the others are scaled: the paper does not say what to do with them.
Zhao, Wang, Wu, Jin, Hoi, "Fast bounded online gradient descent algorithms for scalable kernel-based
online learning", ICML 2012.
"""

import math

from kernelstream.core.dictionary import random_below
from kernelstream.core.jit import inner
from kernelstream.core.reduce import WEIGHTED
from kernelstream.core.reduce.removal import remove, square_length
from kernelstream.core.splitmix import uniform

#: The least 1 - p_i.
SMALLEST_SHARE = 1e-12


@inner
def remove_unbiased(state, rule, eta, work):
    """Drop any but the newest point. ``work`` (.., capacity) is overwritten."""
    status = state.status[0]
    n = status.order - 1
    total, mass = 0.0, 0.0
    if rule.reduce == WEIGHTED:
        for j in range(n):
            work[0, j] = math.sqrt(square_length(state, j))
            total += work[0, j]
    if total > 0.0:
        for j in range(n):
            work[0, j] = max(0.0, 1.0 - (n - 1.0) * work[0, j] / total)
            mass += work[0, j]
        left, gone = uniform(status) * mass, 0
        while gone < n - 1 and left >= work[0, gone]:
            left -= work[0, gone]
            gone += 1
    else:
        gone, mass = random_below(status, n), 1.0
        for j in range(n):
            work[0, j] = 1.0 / n
    largest = rule.largest * eta / status.scale
    for j in range(n):
        kept = max(1.0 - work[0, j] / mass, SMALLEST_SHARE)
        if j != gone:
            square = 0.0
            for c in range(rule.outputs):
                before = state.weights[c, j]
                size = min(abs(before) / kept, largest)
                state.weights[c, j] = size if before > 0.0 else -size
                square += (state.weights[c, j] - before) ** 2
            status.error_spent += status.scale * math.sqrt(square * state.self_kernels[j])
    remove(state, gone)
