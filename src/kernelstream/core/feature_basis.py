"""The inner products M = A~' K A~ of a basis of features, and what is derived from them."""

import math

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.jit import allocating, inner
from kernelstream.core.kernel import Rows, kernel_rows
from kernelstream.core.lanes import dot, fma

#: Directions of the subspace weaker than this part of the strongest are numerically none ...
DEAD = 1e-12
#: ... or not distinguished from the rounding of M, relative to the sum of its terms.
NOISE = 1e-14
#: A direction of an orthonormal basis of which an update leaves less than this part: M is
#: computed from scratch.
LEFT_OVER = 0.5
#: M is scaled when its trace leaves 2^-LARGEST_EXPONENT .. 2^LARGEST_EXPONENT.
LARGEST_EXPONENT = 128
#: Least ridge, relative to the trace of M: rounding may make M indefinite by this much.
FLOOR = 1e-14


@inner
def inverse_factor(matrix, n, ridge, out):
    """Set ``out[:n, :n]`` to the inverse of the Cholesky factor of matrix + ridge I.

    Returns the least squared pivot.
    """
    least = math.inf
    for j in range(n):
        total = matrix[j, j] + ridge - dot(out, j, out, j, 0, j)
        least = min(least, total)
        pivot = math.sqrt(max(total, ridge))
        out[j, j] = pivot
        for i in range(j + 1, n):
            out[i, j] = (matrix[i, j] - dot(out, i, out, j, 0, j)) / pivot
    for j in range(n):  # the inverse in place, column by column
        out[j, j] = 1.0 / out[j, j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total = fma(out[i, k], out[k, j], total)
            out[i, j] = -total / out[i, i]
    return least


@inner
def apply_inverse(triangle, n, b, y, out):
    """``y[:n]`` = triangle b and ``out[:n]`` = triangle' y; returns |y|^2 = b'(..)^-1 b."""
    for i in range(n):
        y[i] = dot(triangle, i, b, 0, 0, i + 1)
    for j in range(n):
        out[j] = 0.0
    for i in range(n):
        for j in range(i + 1):
            out[j] = fma(triangle[i, j], y[i], out[j])
    return dot(y, 0, y, 0, 0, n)


@inner
def power_of_two(exponent):
    """2^exponent, within what a number can hold."""
    return math.ldexp(1.0, int(max(min(exponent, 1000), -1000)))


@inner
def _scale(state, shift):
    """A~ becomes 2^-shift A~: exact, and nothing else changes."""
    status = state.status[0]
    factor = power_of_two(-shift)
    for i in range(status.order):
        for j in range(status.rank):
            state.factor[i, j] *= factor
    for i in range(status.rank):
        for j in range(status.rank):
            state.inner[i, j] = state.inner[i, j] * factor * factor
        for c in range(state.weights.shape[0]):
            state.weights[c, i] /= factor
    status.exponent += shift


@inner
def trace_of(state):
    total = 0.0
    for j in range(state.status[0].rank):
        total += state.inner[j, j]
    return total


@inner
def refactor(state, settings):
    """What is derived from M, after M has changed; returns whether M has lost digits."""
    status = state.status[0]
    rank = status.rank
    _, exponent = math.frexp(trace_of(state))
    if abs(exponent) > LARGEST_EXPONENT and not settings.orthonormal:
        _scale(state, exponent // 2)
    trace = trace_of(state)
    floor = max(FLOOR * trace, 1e-250)
    ridge = settings.regularisation * power_of_two(-2 * status.exponent)
    status.ridge = min(max(ridge, floor), 1e200)
    least = math.inf
    if not settings.orthonormal:
        least = inverse_factor(state.inner, rank, status.ridge, state.solver)
    if settings.orthonormal or rank < state.factor.shape[1] or settings.align or settings.outputs:
        least = inverse_factor(state.inner, rank, floor, state.root)
        # M was I before the update: what is left of a direction after a removal is a difference.
        return least <= (LEFT_OVER if settings.orthonormal else 100.0 * DEAD * trace)
    return least <= 0.0  # indefinite, as only rounding makes it: what was large has left


@inner
def orthonormalise(state, settings, y):
    """A~ <- A~ root', which is orthonormal in the RKHS: the same subspace, M = I.

    As printed, A may grow while q shrinks, or on a budget sink below lambda; then the steps of
    (16) and (19), and lambda, lose their meaning. Any orthonormal basis gives the same
    features, fit errors and lengths of rows.
    """
    status = state.status[0]
    rank = status.rank
    for i in range(status.order):
        for j in range(rank - 1, -1, -1):
            state.factor[i, j] = dot(state.root, j, state.factor, i, 0, j + 1)
    for c in range(state.weights.shape[0]):  # the same function: root' v_new = v_old
        for j in range(rank - 1, -1, -1):
            total = state.weights[c, j]
            for k in range(j + 1, rank):
                total -= state.root[k, j] * y[k]
            y[j] = total / state.root[j, j]
        for j in range(rank):
            state.weights[c, j] = y[j]
    status.ridge = max(settings.regularisation, FLOOR * rank)
    for i in range(rank):
        for j in range(rank):
            state.inner[i, j] = state.root[i, j] = 1.0 if i == j else 0.0
            state.solver[i, j] = 1.0 / math.sqrt(1.0 + status.ridge) if i == j else 0.0


@allocating
def _keep_aligned(state, values, vectors, live):
    """The features of the live directions stay where they are when the columns are turned.

    The orthonormal basis L root' becomes L V D^(-1/2) = L root' T with T = root V D^(1/2), for the
    live directions only. The dead ones leave free what is orthogonal to that.
    """
    rank, r = state.status[0].rank, state.factor.shape[1]
    T = np.zeros((rank, live))
    for i in range(rank):
        for j in range(live):
            for k in range(i + 1):
                T[i, j] += state.root[i, k] * vectors[k, rank - 1 - j]
            T[i, j] *= math.sqrt(values[rank - 1 - j])
    u, _, vt = np.linalg.svd(T, True)
    for j in range(live):  # u = [T made orthogonal, the rest]
        for i in range(rank):
            T[i, j] = 0.0
            for k in range(live):
                T[i, j] += u[i, k] * vt[k, j]
    u[:, :live] = T
    old = state.rotation.copy()
    for i in range(r):
        for j in range(rank):
            state.rotation[i, j] = 0.0
            for k in range(rank):
                state.rotation[i, j] += old[i, k] * u[k, j]


@allocating
def kernel_matrix(state, program, wanted):
    """K of the stored samples: the one held; else, if it is wanted, a new one; else of no size."""
    if state.gram.shape[0] > 0 or not wanted:
        return state.gram
    n = state.status[0].order
    K = np.empty((n, n))
    samples = np.ascontiguousarray(state.points[:, :n].T)
    rows = Rows(samples, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)
    kernel_rows(
        program, rows, np.int64(0), n, state.points, state.square_norms, state.absolute_norms,
        n, K, np.empty((n, 2)),
    )  # fmt: skip
    return K


@allocating
def refresh(state, settings, K):
    """M from scratch, and directions that have died out given free again.

    Without a kernel matrix ``K`` M stays as it is.
    """
    status = state.status[0]
    status.changes = 0
    n, rank, r = status.order, status.rank, state.factor.shape[1]
    noise = 0.0  # what rounding leaves of rows that cancel
    if K.shape[0] > 0:
        product = np.empty((n, r))
        multiply(K, False, state.factor, False, product, n, r, n, 1.0, 0.0)
        multiply(state.factor, True, product, False, state.inner, r, r, n, 1.0, 0.0)
        for i in range(r):
            for j in range(i):
                state.inner[i, j] = state.inner[j, i]
        status.gram_square = 0.0
        for i in range(n):
            status.gram_square += dot(K, i, K, i, 0, n)
            noise += K[i, i] * dot(state.factor, i, state.factor, i, 0, rank)
        noise *= NOISE * n
    values, vectors = np.linalg.eigh(state.inner[:rank, :rank].copy())
    dead = 0
    while dead < rank - 1 and values[dead] <= max(DEAD * values[rank - 1], noise):
        dead += 1
    if dead == 0:
        return
    # Turn the columns so that the dead directions come last: (11b), (16) and (19) do not
    # depend on the basis of the columns, nor do the lengths of the rows.
    live = rank - dead
    turned = np.zeros((max(n, rank), rank))
    for i in range(n):
        for j in range(live):
            for k in range(rank):
                turned[i, j] += state.factor[i, k] * vectors[k, rank - 1 - j]
    state.factor[:n, :rank] = turned[:n]
    for c in range(state.weights.shape[0]):
        for j in range(live):
            turned[j, 0] = 0.0
            for k in range(rank):
                turned[j, 0] += state.weights[c, k] * vectors[k, rank - 1 - j]
        for j in range(rank):
            state.weights[c, j] = turned[j, 0] if j < live else 0.0
    if settings.align:
        _keep_aligned(state, values, vectors, live)
    state.inner[:] = 0.0
    state.solver[:] = 0.0
    state.root[:] = 0.0
    for j in range(live):
        state.inner[j, j] = values[rank - 1 - j]
    status.rank = live
