"""The compiled pass of online kernel features (OK-FE and OK-FEB, Algorithms 2 to 5).

The subspace is L = Phi_S A: S the stored samples, A one row for each. Held is A~ with
A = 2^exponent A~, so that the paper's iterates are carried exactly (a power of two rounds
nothing) however far A grows. With s = 2^exponent everything below is in these units:

    M = A~' K A~,   q~ = (M + ridge I)^-1 A~' k = s q   with ridge = lambda / s^2      (11b)

and an update with step mu is one of A~ with mu / s^2. A linear learner beside the features
(Section VI) is a function g = L v of the subspace, f(x) = <g, L q> = v' M q: in these
coordinates it needs no basis, and when L moves, g is projected on the new subspace.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.jit import allocating, compiled, inner
from kernelstream.core.kernel import STACK, Program, Rows, kernel_row, kernel_rows, self_value
from kernelstream.core.loss import FIRST_REGRESSION_LOSS, loss_derivative
from kernelstream.core.passes import (
    DIVERGED,
    DONE,
    FULL,
    LARGEST_SQUARE_NORM,
    LARGEST_WEIGHT,
    UNUSABLE,
    target_of,
)
from kernelstream.core.schedule import step_size

PARAMETRIC, NONPARAMETRIC = range(2)
INVERSE, INVERSE_SQUARE, TRACKING, TRACKING_SQUARE = range(4)
GREEDY, EXACT, RECENCY, FIFO = range(4)
NEVER, MOVING_AVERAGE, THRESHOLD, RATE = range(4)

#: Fit errors remembered; the moving average and the rate look at the last ``WINDOW`` of them.
HISTORY, WINDOW = 1000, 100
#: A sample closer to the span than this part of k(x, x) opens no new direction.
NOVELTY = 1e-8
#: Directions of the subspace weaker than this part of the strongest are numerically none ...
DEAD = 1e-12
#: ... or not told from the rounding of M, relative to the sum of its terms.
NOISE = 1e-14
#: A direction of an orthonormal basis of which an update leaves less than this part: M is
#: computed from scratch.
LEFT_OVER = 0.5
#: A stored sample without which less than this is left of a direction holds it alone ...
ALONE = 1e-6
#: ... and this many of them are passed over in the search for one to discard.
MOST_SPARED = 8
#: Least ridge, relative to the trace of M: rounding may make M indefinite by this much.
FLOOR = 1e-14
#: Changes of A between two computations of M from scratch.
REFRESH_EVERY = 16
#: M is scaled when its trace leaves 2^-LARGEST_EXPONENT .. 2^LARGEST_EXPONENT.
LARGEST_EXPONENT = 128
#: A sample with a smaller k(x, x) is no direction: steps divide by it, squared.
SMALLEST_SELF_KERNEL = 1e-100
#: So many stored samples for each feature make a first subspace of their own.
EARLY = 5
#: The budget of those who have none.
UNLIMITED = np.iinfo(np.int64).max
#: Squared coefficients times the trace of M below this part of k(x, x): the subspace knows nothing
#: of the sample.
NOTHING = 1e-40

STATUS = np.dtype(
    (
        np.record,
        [
            ("order", "i8"),  # samples in S
            ("rank", "i8"),  # directions in use: the columns of A~ that are not zero
            ("seen", "i8"),  # samples consumed: n of the paper
            ("steps", "i8"),  # steps of the linear learner
            ("updates", "i8"),  # samples that changed A
            ("candidates", "i8"),  # samples that censoring was asked about ...
            ("censored", "i8"),  # ... and those it kept from changing A
            ("removed", "i8"),  # samples discarded because of the budget
            ("recorded", "i8"),  # fit errors recorded
            ("changes", "i8"),  # changes of M since it was computed from scratch
            ("exponent", "i8"),  # A = 2^exponent A~
            ("ridge", "f8"),  # lambda / 4^exponent, or the floor
            ("gram_square", "f8"),  # squared Frobenius norm of K
            ("error_spent", "f8"),  # sum of |g - projected g|_H over all updates
        ],
    )
)


class FeatureState(NamedTuple):
    """A subspace Phi_S A, and a function in it."""

    points: np.ndarray  # (p, capacity) float64, feature-major: column j is a stored sample
    square_norms: np.ndarray  # (capacity,) float64
    absolute_norms: np.ndarray  # (capacity,) float64
    gram: np.ndarray  # (capacity, capacity) float64, K; (0, 0) where nothing needs it
    factor: np.ndarray  # (capacity, r) float64, A~
    recency: np.ndarray  # (capacity,) float64, eta of (26)
    numbers: np.ndarray  # (capacity,) int64, the number of each stored sample in the stream
    inner: np.ndarray  # (r, r) float64, M = A~' K A~
    solver: np.ndarray  # (r, r) float64, lower triangular with (M + ridge I)^-1 = solver' solver
    root: np.ndarray  # (r, r) float64, the same without ridge, where something needs it
    rotation: np.ndarray  # (r, r) float64, of the aligned basis
    weights: np.ndarray  # (r, outputs) float64, v of the linear learner
    errors: np.ndarray  # (HISTORY,) float64, fit errors, the i-th at i modulo HISTORY ...
    places: np.ndarray  # (HISTORY,) int64, ... and the numbers of their samples
    status: np.ndarray  # (1,) STATUS

    @property
    def capacity(self) -> int:
        """Samples that fit before the arrays must grow."""
        return int(self.recency.shape[0])

    @property
    def order(self) -> int:
        """Samples stored."""
        return int(self.status[0]["order"])

    @property
    def extent(self) -> int:
        """Places in use: as many as there are stored samples."""
        return self.order

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self)


def feature_bytes(capacity: int, features: int, components: int, outputs: int, dense: bool) -> int:
    """Bytes of a state in closed form; ``dense``: with the kernel matrix of the samples."""
    row = features + components + 4 + (capacity if dense else 0)
    square = components * (4 * components + outputs)
    return 8 * (capacity * row + square + 2 * HISTORY) + STATUS.itemsize


def allocate(
    features: int, components: int, outputs: int, capacity: int, dense: bool
) -> FeatureState:
    """A state that has seen nothing."""
    side = capacity if dense else 0
    return FeatureState(
        points=np.zeros((features, capacity)),
        square_norms=np.zeros(capacity),
        absolute_norms=np.zeros(capacity),
        gram=np.zeros((side, side)),
        factor=np.zeros((capacity, components)),
        recency=np.zeros(capacity),
        numbers=np.zeros(capacity, np.int64),
        inner=np.zeros((components, components)),
        solver=np.zeros((components, components)),
        root=np.zeros((components, components)),
        rotation=np.eye(components),
        weights=np.zeros((components, outputs)),
        errors=np.zeros(HISTORY),
        places=np.zeros(HISTORY, np.int64),
        status=np.zeros(1, STATUS),
    )


_PER_SAMPLE = ("square_norms", "absolute_norms", "factor", "recency", "numbers")
_OTHERS = ("inner", "solver", "root", "rotation", "weights", "errors", "places", "status")


def resize(state: FeatureState, capacity: int) -> FeatureState:
    """The same state with another capacity."""
    n = state.order
    features, (components, outputs) = state.points.shape[0], state.weights.shape
    new = allocate(features, components, outputs, capacity, len(state.gram) > 0)
    new.points[:, :n] = state.points[:, :n]
    new.gram[:n, :n] = state.gram[:n, :n]
    for name in _PER_SAMPLE:
        getattr(new, name)[:n] = getattr(state, name)[:n]
    return new._replace(**{name: getattr(state, name) for name in _OTHERS})


def pack(state: FeatureState) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The live part of a state as arrays and plain numbers, for files and hashes."""
    n, recorded = state.order, int(state.status[0]["recorded"])
    arrays = {name: getattr(state, name)[:n].copy() for name in _PER_SAMPLE}
    arrays |= {name: getattr(state, name).copy() for name in _OTHERS if name != "status"}
    arrays["points"] = np.ascontiguousarray(state.points[:, :n])
    arrays["gram"] = np.ascontiguousarray(state.gram[:n, :n])
    for name in ("errors", "places"):
        arrays[name] = arrays[name][:recorded]
    return arrays, {name: state.status[0][name].item() for name in STATUS.names or ()}


def unpack(arrays: dict[str, np.ndarray], status: dict[str, Any]) -> FeatureState:
    """The state behind :func:`pack`; ``ValueError`` if the parts do not belong together."""
    points, factor, weights = arrays["points"], arrays["factor"], arrays["weights"]
    if set(status) != set(STATUS.names or ()):
        raise ValueError("it was written by another version of kernelstream: learn anew")
    if points.ndim != 2 or factor.ndim != 2 or weights.ndim != 2 or arrays["gram"].ndim != 2:
        raise ValueError("the state's arrays are not those of kernel features")
    for name in STATUS.names or ():
        whole, value = STATUS[name].kind == "i", status[name]
        lowest = -(2**62) if name == "exponent" else 0
        good = type(value) is int or (type(value) is float and not whole)
        if not good or not lowest <= value < (2**62 if whole else np.inf):
            raise ValueError(f"{name} is not a number that a state can hold")
    (features, n), (r, outputs) = points.shape, weights.shape
    dense = len(arrays["gram"]) > 0
    state = allocate(features, r, outputs, max(n, 1), dense)
    recorded = min(status["recorded"], HISTORY)
    for name in FeatureState._fields[:-1]:
        array, full = arrays[name], getattr(state, name)
        shape = {
            "points": (features, n), "gram": (n, n) if dense else (0, 0),
            "errors": (recorded,), "places": (recorded,), "factor": (n, r),
        }.get(name, (n,) if name in _PER_SAMPLE else full.shape)  # fmt: skip
        if array.shape != shape or array.dtype != full.dtype or not np.isfinite(array).all():
            raise ValueError(f"the array {name!r} is not finite {full.dtype} of shape {shape}")
        full[tuple(slice(length) for length in shape)] = array
    for name, value in status.items():
        state.status[0][name] = value
    with np.errstate(over="ignore"):
        agree = np.allclose(arrays["square_norms"], (points**2).sum(axis=0), 1e-6, 0.0)
        agree &= np.allclose(arrays["absolute_norms"], np.abs(points).sum(axis=0), 1e-6, 0.0)
    rank, live = status["rank"], np.abs(factor).max(axis=0, initial=0.0) > 0.0
    dead = slice(min(rank, r), None)
    agree &= not live[dead].any() and not weights[dead].any()
    agree &= status["order"] == n and rank <= min(r, n) and status["seen"] >= n
    agree &= bool(np.array_equal(np.triu(state.solver, 1), np.zeros((r, r))))
    if not agree or status["updates"] + status["censored"] > status["seen"]:
        raise ValueError("the state's parts contradict one another")
    return state


class FeatureSettings(NamedTuple):
    """What to do with each sample."""

    orthonormal: bool  # whether the basis is made orthonormal after every update
    regularisation: float  # lambda
    most: int  # budget B
    solver: int
    step: int
    pace: float  # the constant of the steps that fall with n
    removal: int
    forgetting: float  # beta
    censoring: int
    censoring_number: float
    align: bool
    loss: int
    loss_number: float
    shrinkage: float  # lambda of the linear learner
    schedule: int
    initial_step: float
    decay: float
    outputs: int


# ---- small matrices ------------------------------------------------------------------------


@inner
def inverse_factor(matrix, n, ridge, out):
    """Set ``out[:n, :n]`` to the inverse of the Cholesky factor of matrix + ridge I.

    Returns the least squared pivot.
    """
    least = math.inf
    for j in range(n):
        total = matrix[j, j] + ridge
        for k in range(j):
            total -= out[j, k] * out[j, k]
        least = min(least, total)
        pivot = math.sqrt(max(total, ridge))
        out[j, j] = pivot
        for i in range(j + 1, n):
            total = matrix[i, j]
            for k in range(j):
                total -= out[i, k] * out[j, k]
            out[i, j] = total / pivot
    for j in range(n):  # the inverse in place, column by column
        out[j, j] = 1.0 / out[j, j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total += out[i, k] * out[k, j]
            out[i, j] = -total / out[i, i]
    return least


@inner
def apply_inverse(triangle, n, b, y, out):
    """``y[:n]`` = triangle b and ``out[:n]`` = triangle' y; returns |y|^2 = b'(..)^-1 b."""
    square = 0.0
    for i in range(n):
        total = 0.0
        for j in range(i + 1):
            total += triangle[i, j] * b[j]
        y[i] = total
        square += total * total
    for j in range(n):
        out[j] = 0.0
    for i in range(n):
        for j in range(i + 1):
            out[j] += triangle[i, j] * y[i]
    return square


@inner
def power_of_two(exponent):
    """2^exponent, within what a number can hold."""
    return math.ldexp(1.0, int(max(min(exponent, 1000), -1000)))


# ---- the state between two samples ---------------------------------------------------------


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
        for c in range(state.weights.shape[1]):
            state.weights[i, c] /= factor
    status.exponent += shift


@inner
def _trace(state):
    total = 0.0
    for j in range(state.status[0].rank):
        total += state.inner[j, j]
    return total


@inner
def _refactor(state, settings):
    """What is derived from M, after M has changed; returns whether M has lost digits."""
    status = state.status[0]
    rank = status.rank
    _, exponent = math.frexp(_trace(state))
    if abs(exponent) > LARGEST_EXPONENT and not settings.orthonormal:
        _scale(state, exponent // 2)
    trace = _trace(state)
    floor = max(FLOOR * trace, 1e-250)
    ridge = settings.regularisation * power_of_two(-2 * status.exponent)
    status.ridge = min(max(ridge, floor), 1e200)
    if not settings.orthonormal:
        inverse_factor(state.inner, rank, status.ridge, state.solver)
    if settings.orthonormal or rank < state.factor.shape[1] or settings.align or settings.outputs:
        least = inverse_factor(state.inner, rank, floor, state.root)
        # M was I before the update: what is left of a direction after a removal is a difference.
        return least <= (LEFT_OVER if settings.orthonormal else 100.0 * DEAD * trace)
    return False


@inner
def _orthonormalise(state, settings, y):
    """A~ <- A~ root', which is orthonormal in the RKHS: the same subspace, M = I.

    As printed, A may grow while q shrinks, or on a budget sink below lambda; then the steps of
    (16) and (19), and lambda, lose their meaning. Any orthonormal basis gives the same
    features, fit errors and lengths of rows.
    """
    status = state.status[0]
    rank = status.rank
    for i in range(status.order):
        for j in range(rank - 1, -1, -1):
            total = 0.0
            for k in range(j + 1):
                total += state.root[j, k] * state.factor[i, k]
            state.factor[i, j] = total
    for c in range(state.weights.shape[1]):  # the same function: root' v_new = v_old
        for j in range(rank - 1, -1, -1):
            total = state.weights[j, c]
            for k in range(j + 1, rank):
                total -= state.root[k, j] * y[k]
            y[j] = total / state.root[j, j]
        for j in range(rank):
            state.weights[j, c] = y[j]
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
def _refresh(state, settings):
    """M from scratch, and directions that have died out given free again."""
    status = state.status[0]
    status.changes = 0
    n, rank, r = status.order, status.rank, state.factor.shape[1]
    noise = 0.0  # what rounding leaves of rows that cancel
    if state.gram.shape[0] > 0:
        product = np.empty((n, r))
        multiply(state.gram, False, state.factor, False, product, n, r, n, 1.0, 0.0)
        multiply(state.factor, True, product, False, state.inner, r, r, n, 1.0, 0.0)
        for i in range(r):
            for j in range(i):
                state.inner[i, j] = state.inner[j, i]
        status.gram_square = 0.0
        for i in range(n):
            for j in range(n):
                status.gram_square += state.gram[i, j] * state.gram[i, j]
            for j in range(rank):
                noise += state.gram[i, i] * state.factor[i, j] * state.factor[i, j]
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
    for c in range(state.weights.shape[1]):
        for j in range(live):
            turned[j, 0] = 0.0
            for k in range(rank):
                turned[j, 0] += state.weights[k, c] * vectors[k, rank - 1 - j]
        for j in range(rank):
            state.weights[j, c] = turned[j, 0] if j < live else 0.0
    if settings.align:
        _keep_aligned(state, values, vectors, live)
    state.inner[:] = 0.0
    state.solver[:] = 0.0
    state.root[:] = 0.0
    for j in range(live):
        state.inner[j, j] = values[rank - 1 - j]
    status.rank = live


@inner
def _store(state, rows, i, square, absolute, values, own):
    """Put sample ``i`` behind the stored ones, with a row of zeros in A~."""
    status = state.status[0]
    n = status.order
    if rows.sparse:
        for f in range(state.points.shape[0]):
            state.points[f, n] = 0.0
        for position in range(rows.indptr[i], rows.indptr[i + 1]):
            state.points[rows.indices[position], n] = rows.data[position]
    else:
        for f in range(state.points.shape[0]):
            state.points[f, n] = rows.dense[i, f]
    state.square_norms[n] = square
    state.absolute_norms[n] = absolute
    if state.gram.shape[0] > 0:
        for j in range(n):
            state.gram[n, j] = values[0, j]
            state.gram[j, n] = values[0, j]
            status.gram_square += 2.0 * values[0, j] * values[0, j]
        state.gram[n, n] = own
        status.gram_square += own * own
    for j in range(state.factor.shape[1]):
        state.factor[n, j] = 0.0
    state.recency[n] = 1.0
    state.numbers[n] = status.seen
    status.order = n + 1


@inner
def _least(state, settings, spared):
    """Which stored sample to discard, none of the spared ones; of equal ones the oldest."""
    status = state.status[0]
    best, lowest = -1, 0.0
    for i in range(status.order):
        if spared[i]:
            continue
        cost = 0.0
        if settings.removal != FIFO:
            for j in range(status.rank):
                cost += state.factor[i, j] * state.factor[i, j]
            if settings.removal == RECENCY:  # (26)
                cost *= state.recency[i] * state.recency[i]
            elif settings.removal == EXACT:
                # (24): Phi A minus Phi A without row i is phi_i a_i', of norm k_ii |a_i|^2. The
                # paper counts O(B^3) for it.
                cost *= state.gram[i, i]
        older = best >= 0 and state.numbers[i] < state.numbers[best]
        if best < 0 or cost < lowest or (cost == lowest and older):
            best, lowest = i, cost
    return best


@inner
def _discard(state, i):
    """Forget stored sample ``i``; the last one takes its place."""
    status = state.status[0]
    last = status.order - 1
    square = state.gram[i, i] * state.gram[i, i]
    for j in range(last + 1):
        square -= 2.0 * state.gram[i, j] * state.gram[i, j]
    status.gram_square = max(status.gram_square + square, 0.0)
    for f in range(state.points.shape[0]):
        state.points[f, i] = state.points[f, last]
    state.square_norms[i] = state.square_norms[last]
    state.absolute_norms[i] = state.absolute_norms[last]
    for j in range(last):
        state.gram[i, j] = state.gram[last, j]
        state.gram[j, i] = state.gram[j, last]
    state.gram[i, i] = state.gram[last, last]
    for j in range(state.factor.shape[1]):
        state.factor[i, j] = state.factor[last, j]
    state.recency[i] = state.recency[last]
    state.numbers[i] = state.numbers[last]
    status.order = last
    status.removed += 1


# ---- one sample ----------------------------------------------------------------------------


@inner
def _project(state, settings, values, own, c, y, q):
    """c = A~' k, q~ and the fit error |phi - L q|^2 of the sample with these kernel values."""
    status = state.status[0]
    rank = status.rank
    for j in range(rank):
        c[j] = 0.0
    for i in range(status.order):
        value = values[0, i]
        for j in range(rank):
            c[j] += value * state.factor[i, j]
    square = 0.0
    if settings.orthonormal:  # (11b) with M = I
        for j in range(rank):
            q[j] = c[j] / (1.0 + status.ridge)
            square += q[j] * q[j]
        return max(own - (1.0 + 2.0 * status.ridge) * square, 0.0), square
    captured = apply_inverse(state.solver, rank, c, y, q)  # (11b)
    for j in range(rank):
        square += q[j] * q[j]
    # M q = c - ridge q turns l = k(x, x) - 2 k'A q + q'M q into the following.
    return max(own - captured - status.ridge * square, 0.0), square


@inner
def _threshold(state, settings, ordered):
    """Below this fit error a sample is censored."""
    status = state.status[0]
    count = min(status.recorded, WINDOW)
    if settings.censoring == THRESHOLD:
        return settings.censoring_number
    if settings.censoring == NEVER or count == 0:
        return -math.inf
    if settings.censoring == MOVING_AVERAGE:
        total = 0.0
        for i in range(count):
            total += state.errors[(status.recorded - 1 - i) % HISTORY]
        return total / count
    # The quantile of the window, between two of its errors.
    place = settings.censoring_number * (count - 1)
    lower = min(int(place), count - 1)
    upper = min(lower + 1, count - 1)
    return ordered[lower] + (place - lower) * (ordered[upper] - ordered[lower])


@inner
def _record(state, error, ordered):
    """Remember a fit error; ``ordered`` holds the window sorted."""
    status = state.status[0]
    count = min(status.recorded, WINDOW)
    if count == WINDOW:  # the oldest of the window goes
        oldest = state.errors[(status.recorded - WINDOW) % HISTORY]
        place = 0
        while ordered[place] < oldest:
            place += 1
        count -= 1
        for j in range(place, count):
            ordered[j] = ordered[j + 1]
    while count > 0 and ordered[count - 1] > error:
        ordered[count] = ordered[count - 1]
        count -= 1
    ordered[count] = error
    state.errors[status.recorded % HISTORY] = error
    state.places[status.recorded % HISTORY] = status.seen
    status.recorded += 1


@inner
def _step(state, settings, square, norm, n):
    """mu / s^2, and mu lambda / n.

    At most 1 / (norm (|q|^2 + lambda / n)), ``norm`` that of the matrix step size D_n of (20):
    the steps of Propositions 2 and 3, beyond which an update overshoots its sample.
    """
    exponent = state.status[0].exponent
    fade = settings.regularisation / n * power_of_two(2 * exponent)
    if settings.step == TRACKING:
        mu = power_of_two(-exponent) / math.sqrt(square)
    elif settings.step == TRACKING_SQUARE:
        mu = 1.0 / square
    else:
        mu = settings.pace / n * power_of_two(-2 * exponent)
        if settings.step == INVERSE_SQUARE:
            mu /= n
    if settings.solver == NONPARAMETRIC and settings.step != INVERSE_SQUARE:
        mu /= norm
    mu = min(mu, 1.0 / (norm * (square + fade)))
    return mu, mu * fade


@inner
def _take_over(state, own, q, d):
    """Coefficients for a sample of which the subspace knows nothing: the weakest direction.

    Where the step is 1 / |q| the sample moves into it, however small q is; here q is 0.
    """
    rank = state.status[0].rank
    weakest = 0
    for j in range(1, rank):
        if state.inner[j, j] < state.inner[weakest, weakest]:
            weakest = j
    length = math.sqrt(max(state.inner[weakest, weakest], 0.0) / own)
    for j in range(rank):
        q[j] = length if j == weakest else 0.0
        d[j] = -state.inner[j, weakest] * length
    return length * length


@inner
def _sprout(state, c, own):
    """Give the sample stored last a free column of A~ of its own."""
    status = state.status[0]
    rank, row = status.rank, status.order - 1
    length = power_of_two(-status.exponent)  # A starts as the identity
    if status.updates > 0:
        length = math.sqrt(_trace(state) / (rank * own))
    state.factor[row, rank] = length
    for j in range(rank):
        state.inner[rank, j] = length * c[j]
        state.inner[j, rank] = length * c[j]
    state.inner[rank, rank] = length * length * own
    status.rank = rank + 1


@inner
def _move(state, settings, values, own, c, q, d, square, product, cross):
    """Update A~ with the sample stored last, (16) or (19); M and L_new' L_old follow.

    ``d`` is c - M q: ridge q, unless q was chosen otherwise.
    """
    status = state.status[0]
    n, rank = status.order, status.rank
    if settings.solver == PARAMETRIC:
        mu, fade = _step(state, settings, square, 1.0, status.seen + 1)
        kept = 1.0 - fade
        for i in range(n - 1):  # (16)
            along = 0.0
            for j in range(rank):
                along += state.factor[i, j] * q[j]
            along *= mu
            for j in range(rank):
                state.factor[i, j] = kept * state.factor[i, j] - along * q[j]
        for j in range(rank):
            state.factor[n - 1, j] = mu * q[j]
        # L_new = kept L + mu (phi - L q) q' gives both products without touching K.
        error = own
        for j in range(rank):
            error -= q[j] * (c[j] + d[j])
        error = max(error, 0.0)
        for i in range(rank):
            for j in range(rank):
                cross[i, j] = kept * state.inner[i, j] + mu * q[i] * d[j]
                state.inner[i, j] = (
                    kept * kept * state.inner[i, j]
                    + kept * mu * (q[i] * d[j] + d[i] * q[j])
                    + (mu * q[i]) * (mu * q[j]) * error  # mu^2 may overflow
                )
        return
    # The Frobenius norm of K is at least its spectral norm and at most the paper's trace.
    norm = max(math.sqrt(status.gram_square), own, SMALLEST_SELF_KERNEL)
    mu, fade = _step(state, settings, square, norm, status.seen + 1)
    multiply(state.gram, False, state.factor, False, product, n, rank, n - 1, 1.0, 0.0)
    for i in range(n):  # (19)
        along = -own if i == n - 1 else -values[0, i]
        for j in range(rank):
            along += product[i, j] * q[j]
        along *= mu
        for j in range(rank):
            state.factor[i, j] -= along * q[j] + fade * product[i, j]
    multiply(state.factor, True, product, False, cross, rank, rank, n, 1.0, 0.0)
    moved = product[n:]
    multiply(state.gram, False, state.factor, False, moved, n, rank, n, 1.0, 0.0)
    multiply(state.factor, True, moved, False, state.inner, rank, rank, n, 1.0, 0.0)
    for i in range(rank):
        for j in range(i):
            state.inner[i, j] = state.inner[j, i]


@inner
def _shrink(state, settings, before, cross, spared, trial, a, b):
    """Algorithm 5: discard one sample; M and L_new' L_old lose its row.

    A sample that alone holds a direction of the subspace is spared, except from first in, first
    out: the paper's rules look at the length of a row, and the direction would be lost for ever.
    ``before`` is A~ as it was before the update, or has no rows.
    """
    status = state.status[0]
    rank, n = status.rank, status.order
    for i in range(n):
        state.recency[i] *= settings.forgetting
        spared[i] = False
    attempts = 0
    while True:
        i = _least(state, settings, spared)
        for j in range(rank):
            a[j] = state.factor[i, j]
            b[j] = 0.0
        for k in range(n):
            value = state.gram[i, k]
            for j in range(rank):
                b[j] += value * state.factor[k, j]
        own = state.gram[i, i]
        for j in range(rank):
            for k in range(rank):
                trial[j, k] = state.inner[j, k] + own * a[j] * a[k] - a[j] * b[k] - b[j] * a[k]
        attempts += 1
        if not settings.orthonormal or settings.removal == FIFO or attempts > MOST_SPARED:
            break
        trace = _trace(state)
        if inverse_factor(trial, rank, FLOOR * trace, state.root) > ALONE / rank * trace:
            break
        spared[i] = True
    for j in range(rank):
        for k in range(rank):
            state.inner[j, k] = trial[j, k]
    if before.shape[0] > 0:  # L_old' phi_i
        for j in range(rank):
            b[j] = 0.0
        for k in range(n):
            value = state.gram[i, k]
            for j in range(rank):
                b[j] += value * before[k, j]
        for j in range(rank):
            for k in range(rank):
                cross[j, k] -= a[j] * b[k]
    _discard(state, i)


@inner
def _carry(state, cross, old_inner, b, y, out):
    """Project the learner's function on the subspace that has moved."""
    status = state.status[0]
    rank = status.rank
    for output in range(state.weights.shape[1]):
        before, after = 0.0, 0.0
        for i in range(rank):
            b[i] = 0.0
            along = 0.0
            for j in range(rank):
                b[i] += cross[i, j] * state.weights[j, output]
                along += old_inner[i, j] * state.weights[j, output]
            before += along * state.weights[i, output]
        after = apply_inverse(state.root, rank, b, y, out)
        for i in range(rank):
            state.weights[i, output] = out[i]
        status.error_spent += math.sqrt(max(before - after, 0.0))


@allocating
def _turn(state, cross, old_root):
    """The rotation that moves the orthonormal basis of the subspace least (Procrustes).

    The basis is E = L root' R' with R the columns of the rotation for the directions in use;
    E_new' E_old = R X with X = root cross old_root' R_old', and its trace is largest for R = V U'
    of X = U S V'. The columns not in use stay orthogonal to R, since V spans what R_old does.
    """
    rank, r = state.status[0].rank, state.factor.shape[1]
    left, right = np.empty((rank, rank)), np.empty((rank, rank))
    multiply(state.root, False, cross, False, left, rank, rank, rank, 1.0, 0.0)
    multiply(left, False, old_root, True, right, rank, rank, rank, 1.0, 0.0)
    turned = np.empty((rank, r))
    multiply(right, False, state.rotation, True, turned, rank, r, rank, 1.0, 0.0)
    u, _, vt = np.linalg.svd(turned, False)
    for i in range(r):
        for j in range(rank):
            total = 0.0
            for k in range(rank):
                total += vt[k, i] * u[j, k]
            state.rotation[i, j] = total


@allocating
def _settle(state, program, cross):
    """Make the best subspace of the stored samples, their kernel PCA; M and L_new' L_old follow.

    The first samples are far from the best directions, and short steps do not get there: those of
    (19) are scaled by the eigenvalues of K. Returns whether there was a better one.
    """
    status = state.status[0]
    n, rank = status.order, status.rank
    K = np.empty((n, n))
    if state.gram.shape[0] > 0:
        K[:] = state.gram[:n, :n]
    else:
        samples = np.ascontiguousarray(state.points[:, :n].T)
        rows = Rows(samples, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)
        kernel_rows(
            program, rows, np.int64(0), n, state.points, state.square_norms, state.absolute_norms,
            n, K, np.empty((n, 2)),
        )  # fmt: skip
    values, vectors = np.linalg.eigh(K)
    if not values[n - rank] > NOVELTY * values[n - 1]:
        return False  # the samples span no more than the subspace does
    best, product = np.empty((n, rank)), np.empty((n, rank))
    for j in range(rank):
        for i in range(n):
            best[i, j] = vectors[i, n - 1 - j] / math.sqrt(values[n - 1 - j])
    multiply(K, False, state.factor, False, product, n, rank, n, 1.0, 0.0)
    multiply(best, True, product, False, cross, rank, rank, n, 1.0, 0.0)
    state.factor[:n, :rank] = best
    for i in range(rank):
        for j in range(rank):
            state.inner[i, j] = 1.0 if i == j else 0.0
    return True


@compiled
def feature_pass(
    points, square_norms, absolute_norms, gram, factor, recency, numbers, inner_products, solver,
    root, rotation, learner_weights, errors, places, status,
    orthonormal, regularisation, most, solver_code, step, pace, removal, forgetting, censoring,
    censoring_number, align, loss, loss_number, shrinkage, schedule, initial_step, decay, outputs,
    codes, program_numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    labels, sample_weights, first, foretold,
):  # fmt: skip
    """Learn from the samples ``first`` onwards.

    ``foretold``, (n, outputs + 1) or with no rows, receives what the linear learner said of each
    sample before it learned from it, and in the last column the sample's fit error.

    Returns why it stopped, ``DONE``, ``FULL``, ``UNUSABLE`` or ``DIVERGED``, and the first sample
    that was not consumed.
    """
    state = FeatureState(
        points, square_norms, absolute_norms, gram, factor, recency, numbers, inner_products,
        solver, root, rotation, learner_weights, errors, places, status,
    )  # fmt: skip
    settings = FeatureSettings(
        orthonormal, regularisation, most, solver_code, step, pace, removal, forgetting, censoring,
        censoring_number, align, loss, loss_number, shrinkage, schedule, initial_step, decay,
        outputs,
    )  # fmt: skip
    program = Program(codes, program_numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    record = status[0]
    capacity, r = factor.shape
    work = np.empty((STACK + depth, capacity))
    values = np.empty((1, capacity))
    norms = np.empty((1, 2))
    c, y, q, d = np.zeros(r), np.zeros(r), np.zeros(r), np.zeros(r)
    a, b = np.zeros(r), np.zeros(r)
    cross, old_inner, old_root = np.zeros((r, r)), np.zeros((r, r)), np.zeros((r, r))
    spared, trial = np.zeros(capacity, np.bool_), np.zeros((r, r))
    remembering = outputs > 0 or align
    before = np.empty((capacity if remembering else 0, r))
    product = np.empty((2 * capacity if solver_code == NONPARAMETRIC else 0, r))
    f, slope = np.zeros(max(outputs, 1)), np.zeros(max(outputs, 1))
    ordered = np.zeros(WINDOW + 1)
    window = min(record.recorded, WINDOW)
    for j in range(window):
        ordered[j] = errors[(record.recorded - 1 - j) % HISTORY]
    ordered[:window].sort()
    zero = np.int64(0)  # a literal would be compiled for separately
    for i in range(first, labels.shape[0]):
        n = record.order
        if n + 1 > capacity:
            return FULL, i
        kernel_row(
            program, rows, i, points, square_norms, absolute_norms, n, False, work, values, zero,
            norms,
        )  # fmt: skip
        if not norms[0, 0] <= LARGEST_SQUARE_NORM:
            return UNUSABLE, i
        own = self_value(program, norms[0, 0])
        error, square = _project(state, settings, values, own, c, y, q)
        rank = record.rank

        if outputs > 0:  # Section VI: foretell, then one step of Pegasos or LMS
            length = 0.0  # |z|^2 = q' M q
            for j in range(rank):
                b[j] = c[j] - record.ridge * q[j]  # M q
                length += b[j] * q[j]
            for o in range(outputs):
                f[o] = 0.0
                for j in range(rank):
                    f[o] += learner_weights[j, o] * b[j]
            target = target_of(loss, outputs, labels[i])
            active = loss_derivative(loss, loss_number, f, outputs, target, slope)
            eta = step_size(schedule, initial_step, decay, record.steps)
            kept = max(1.0 - eta * shrinkage, 0.0)
            eta *= sample_weights[i]
            if loss >= FIRST_REGRESSION_LOSS and eta * length > 1.0:
                eta = 1.0 / length  # a longer step would overshoot the sample
            for o in range(outputs):
                if not abs(eta * slope[o]) <= LARGEST_WEIGHT:
                    return DIVERGED, i
            for o in range(outputs):
                for j in range(rank):
                    learner_weights[j, o] *= kept
                    if active:
                        learner_weights[j, o] -= eta * slope[o] * q[j]
            record.steps += 1
        if foretold.shape[0] > 0:
            for o in range(outputs):
                foretold[i, o] = f[o]
            foretold[i, outputs] = error

        opens = False
        if rank < r and own > SMALLEST_SELF_KERNEL:
            distance = own if rank == 0 else own - apply_inverse(root, rank, c, y, a)
            opens = distance > NOVELTY * own
        starting = opens and record.updates == 0
        if not starting:  # the samples that S starts with are not measured
            limit = -math.inf
            if n >= most or most == UNLIMITED:
                limit = _threshold(state, settings, ordered)
            _record(state, error, ordered)
            record.candidates += 1
        for j in range(rank):
            d[j] = record.ridge * q[j]
        if not opens:
            known = rank == r and square * _trace(state) >= NOTHING * own > 0.0
            if step >= TRACKING and not known and rank == r and own > SMALLEST_SELF_KERNEL:
                square = _take_over(state, own, q, d)
                known = square > 0.0
            if error < limit or not known:
                record.censored += 1
                record.seen += 1
                continue

        _store(state, rows, i, norms[0, 0], norms[0, 1], values, own)
        if opens:
            _sprout(state, c, own)
        rank = record.rank
        if remembering:
            before[: n + 1] = factor[: n + 1]
            old_inner[:rank, :rank] = inner_products[:rank, :rank]
            old_root[:rank, :rank] = root[:rank, :rank]
        if opens:
            cross[:rank, :rank] = inner_products[:rank, :rank]
            inverse_factor(inner_products, rank, FLOOR * inner_products[0, 0], old_root)
        elif not (
            orthonormal and record.order == min(EARLY * r, most) and _settle(state, program, cross)
        ):
            _move(state, settings, values, own, c, q, d, square, product, cross)
        record.updates += 0 if starting else 1
        discarding = record.order > most
        if discarding:
            _shrink(state, settings, before, cross, spared, trial, a, b)
        exponent = record.exponent
        worn = _refactor(state, settings)
        if remembering and (discarding or not opens):
            # L_new is in new units, L_old and the weights are not.
            unit = power_of_two(exponent - record.exponent)
            cross *= unit
            learner_weights *= unit
            _carry(state, cross, old_inner, b, y, a)
            if align:
                _turn(state, cross, old_root)
        record.seen += 1
        record.changes += 1
        if worn or record.changes >= REFRESH_EVERY:
            _refresh(state, settings)
            worn = _refactor(state, settings)
        if orthonormal:
            _orthonormalise(state, settings, y)
            if worn:  # a weak direction has few digits in M; once it is long it has all of them
                _refresh(state, settings)
                _refactor(state, settings)
                _orthonormalise(state, settings, y)
    return DONE, labels.shape[0]
