"""Points of a state: where one is stored, moved and found again; and the common scale."""

from kernelstream.core.jit import inner, lean
from kernelstream.core.kernel import copy_sample
from kernelstream.core.splitmix import uniform


@lean
def random_below(status, n):
    """A uniform integer in [0, n) from the state's own generator."""
    # 53 bits are plenty for n < 2^31, and the product is exact enough to stay below n.
    return int(uniform(status) * n)


@inner
def renormalise(state, outputs):
    """Fold the common scale into the weights."""
    status = state.status[0]
    for c in range(outputs):
        for j in range(status.order):
            state.weights[c, j] *= status.scale
    status.cheapest *= status.scale * status.scale
    status.scale = 1.0


@inner
def store(state, n, rows, i, square, absolute, k_xx):
    """Sample i becomes point n."""
    copy_sample(rows, i, state.points, n)
    state.square_norms[n] = square
    state.absolute_norms[n] = absolute
    state.self_kernels[n] = k_xx


@inner
def move(state, source, target, n):
    """Overwrite point ``target`` by point ``source``; ``n`` columns of the factor are live."""
    for q in range(state.points.shape[0]):
        state.points[q, target] = state.points[q, source]
    state.square_norms[target] = state.square_norms[source]
    state.absolute_norms[target] = state.absolute_norms[source]
    state.self_kernels[target] = state.self_kernels[source]
    state.diagonal[target] = state.diagonal[source]
    for c in range(state.weights.shape[0]):
        state.weights[c, target] = state.weights[c, source]
    for q in range(n):
        state.factor[target, q] = state.factor[source, q]


@inner
def same_point(state, j, rows, i, square):
    """Whether stored point j equals sample i in every feature."""
    stored = state.square_norms[j]
    if abs(stored - square) > 1e-10 * square:
        return False
    if rows.sparse:
        filled = 0
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            if state.points[rows.indices[q], j] != rows.data[q]:
                return False
            filled += rows.data[q] != 0.0
        for q in range(state.points.shape[0]):
            filled -= state.points[q, j] != 0.0
        return filled == 0
    for q in range(state.points.shape[0]):
        if state.points[q, j] != rows.dense[i, q]:
            return False
    return True


@inner
def stored_place(state, rows, i, square):
    """The stored point identical to sample i, or -1.

    A sample that comes back (a second epoch, a duplicate) must not depend on rounding: its
    projection on the points is the point itself.
    """
    for j in range(state.status[0].order):
        if same_point(state, j, rows, i, square):
            return j
    return -1
