"""f before the last step, kept exactly: gradient tracking compares losses under f_t and f_{t-1}.

Compression must not touch f_{t-1}, so its weights are kept apart (``past``, one column per point in
use, zero for points taken in since). The points that the last step removed remain for one step as
ghosts, right behind the points in use: removing makes the very room they need. Together they are
f_{t-1}, exactly, and its values cost no kernel values but those of the ghosts.
"""

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.jit import inner, merged
from kernelstream.core.kernel import kernel_rows
from kernelstream.core.lanes import dot


@merged
def past_values(state, past, program, rows, first, values):
    """(count, outputs): f_{t-1} at the samples ``first`` onwards, given their kernel ``values``.

    ``past`` without rows: it is not wanted.
    """
    count, outputs = values.shape[0], past.shape[0]
    earlier = np.zeros((count, outputs))
    if outputs == 0:
        return earlier
    status = state.status[0]
    n, ghosts = status.order, status.ghosts
    multiply(values, False, past, True, earlier, count, outputs, n, 1.0, 0.0)
    if ghosts > 0:
        end = n + ghosts
        ghost_values = np.empty((count, ghosts))
        kernel_rows(
            program, rows, first, count, state.points[:, n:end].copy(),
            state.square_norms[n:end].copy(), state.absolute_norms[n:end].copy(),
            ghosts, ghost_values, np.empty((count, 2)),
        )  # fmt: skip
        ghost_weights = past[:, n:end].copy()
        for r in range(count):
            for c in range(outputs):
                earlier[r, c] += dot(ghost_values, r, ghost_weights, c, 0, ghosts)
    return earlier


@inner
def _same_column(points, j, before, i):
    for q in range(points.shape[0]):
        if points[q, j] != before[q, i]:
            return False
    return True


@merged
def carry(state, past, before, norms, n):
    """Give f_{t-1}'s weights to where its points are now; those removed become ghosts.

    ``before`` and ``norms`` hold all points before the removal, the first ``n`` of them
    f_{t-1}'s. Removal fills holes from the end, and no two points are equal: a place holds
    its own point still, or one from beyond the new end.
    """
    status = state.status[0]
    kept = status.order
    removed = before.shape[1] - kept
    moved = np.zeros(kept, np.int64)
    for q in range(before.shape[0]):
        for j in range(kept):
            moved[j] |= state.points[q, j] != before[q, j]
    old = past[:, : before.shape[1]].copy()
    gone = np.ones(removed, np.bool_)  # of the places beyond the new end
    ghosts = np.empty(removed, np.int64)
    count = 0
    for j in range(kept):
        if moved[j] == 0:
            continue
        if j < n:
            ghosts[count] = j
            count += 1
        for i in range(removed):
            if gone[i] and _same_column(state.points, j, before, kept + i):
                gone[i] = False
                for c in range(past.shape[0]):
                    past[c, j] = old[c, kept + i]
                break
    for i in range(removed):
        if gone[i] and kept + i < n:
            ghosts[count] = kept + i
            count += 1
    for k in range(count):
        j = ghosts[k]
        place = kept + k
        for q in range(before.shape[0]):
            state.points[q, place] = before[q, j]
        state.square_norms[place] = norms[0, j]
        state.absolute_norms[place] = norms[1, j]
        state.self_kernels[place] = norms[2, j]
        for c in range(state.weights.shape[0]):
            state.weights[c, place] = 0.0
        for c in range(past.shape[0]):
            past[c, place] = old[c, j]
    status.ghosts = count
