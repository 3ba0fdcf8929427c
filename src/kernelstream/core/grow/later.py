"""Samples beyond the cap become points at once, but are projected together, some time later.

Until then they have no rows in the factor: ``status.pending`` points at the end. The errors that
their steps may make are saved up (``status.owed``, squared), and spent by one block pursuit:
matrix products in place of products of a matrix with a vector.
"""

import numpy as np

from kernelstream.core.dictionary import store, stored_place
from kernelstream.core.grow.block import take_in_block
from kernelstream.core.jit import compiled, inner
from kernelstream.core.kernel import Rows, kernel_rows
from kernelstream.core.reduce.komp import prune_block


@inner
def put_off(state, rows, i, square, absolute, self_kernel, new):
    """Add ``new`` k(x_i, .) to the function, without a row in the factor."""
    status = state.status[0]
    place = stored_place(state, rows, i, square)
    if place >= 0:
        status.dependent += 1
        for c in range(state.weights.shape[0]):
            state.weights[c, place] += new[c]
        return
    n = status.order
    store(state, n, rows, i, square, absolute, self_kernel)
    for c in range(state.weights.shape[0]):
        state.weights[c, n] = new[c]
    status.order = n + 1
    status.pending += 1


@compiled
def catch_up(state, program, outputs, most, projection):
    """Give the pending points their rows in the factor, then compress."""
    status = state.status[0]
    q = status.pending
    if q == 0:
        return
    n = status.order - q
    columns = state.weights.shape[0]
    block = state.points[:, n : n + q].T.copy()
    new = state.weights[:, n : n + q].T.copy()
    rows = Rows(block, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)
    values, norms = np.empty((q, n)), np.empty((q, 2))
    kernel_rows(
        program, rows, 0, q, state.points, state.square_norms, state.absolute_norms, n, values,
        norms,
    )  # fmt: skip
    for c in range(columns):
        for j in range(n, n + q):
            state.weights[c, j] = 0.0
    status.order = n
    status.pending = 0
    unit = status.scale * status.scale
    error = unit * take_in_block(state, program, block, values, norms, new, q, outputs)
    prune_block(state, outputs, error, status.owed, most, projection, q + 4)
    status.owed = 0.0
