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

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.feature_basis import (
    FLOOR,
    apply_inverse,
    inverse_factor,
    kernel_matrix,
    orthonormalise,
    power_of_two,
    refactor,
    refresh,
    trace_of,
)
from kernelstream.core.feature_budget import (
    WINDOW,
    censoring_limit,
    record_error,
    shrink,
    store,
)
from kernelstream.core.feature_state import HISTORY, FeatureState
from kernelstream.core.feature_steps import (
    NONPARAMETRIC,
    PARAMETRIC,
    TRACKING,
    explodes,
    feature_step,
)
from kernelstream.core.jit import allocating, compiled, inner
from kernelstream.core.kernel import STACK, Program, Rows, kernel_row, self_value
from kernelstream.core.lanes import dot, fma
from kernelstream.core.loss import (
    FIRST_REGRESSION_LOSS,
    loss_derivative,
    target_of,
    vector_derivative,
)
from kernelstream.core.passes import (
    DIVERGED,
    DONE,
    FULL,
    LARGEST_SQUARE_NORM,
    LARGEST_WEIGHT,
    UNUSABLE,
)
from kernelstream.core.schedule import step_size

#: A sample closer to the span than this part of k(x, x) opens no new direction.
NOVELTY = 1e-8
#: Changes of A between two computations of M from scratch.
REFRESH_EVERY = 16
#: A sample with a smaller k(x, x) is no direction: steps divide by it, squared.
SMALLEST_SELF_KERNEL = 1e-100
#: The budget of those who have none.
UNLIMITED = np.iinfo(np.int64).max
#: Squared coefficients times the trace of M below this part of k(x, x): the subspace knows nothing
#: of the sample.
NOTHING = 1e-40


@inner
def _project(state, settings, values, k_xx, c, y, q):
    """c = A~' k, q~ and the fit error |phi - L q|^2 of the sample with these kernel values."""
    status = state.status[0]
    rank = status.rank
    for j in range(rank):
        c[j] = 0.0
    for i in range(status.order):
        value = values[0, i]
        for j in range(rank):
            c[j] = fma(value, state.factor[i, j], c[j])
    if settings.orthonormal:  # (11b) with M = I
        for j in range(rank):
            q[j] = c[j] / (1.0 + status.ridge)
        square = dot(q, 0, q, 0, 0, rank)
        return max(k_xx - (1.0 + 2.0 * status.ridge) * square, 0.0), square
    captured = apply_inverse(state.solver, rank, c, y, q)  # (11b)
    square = dot(q, 0, q, 0, 0, rank)
    # M q = c - ridge q turns l = k(x, x) - 2 k'A q + q'M q into the following.
    return max(k_xx - captured - status.ridge * square, 0.0), square


@inner
def _take_over(state, k_xx, q, d):
    """Coefficients for a sample of which the subspace knows nothing: the weakest direction.

    Where the step is 1 / |q| the sample moves into it, however small q is; here q is 0.
    """
    rank = state.status[0].rank
    weakest = 0
    for j in range(1, rank):
        if state.inner[j, j] < state.inner[weakest, weakest]:
            weakest = j
    length = math.sqrt(max(state.inner[weakest, weakest], 0.0) / k_xx)
    for j in range(rank):
        q[j] = length if j == weakest else 0.0
        d[j] = -state.inner[j, weakest] * length
    return length * length


@inner
def _sprout(state, c, k_xx):
    """Give the sample stored last a free column of A~ of its own."""
    status = state.status[0]
    rank, row = status.rank, status.order - 1
    length = power_of_two(-status.exponent)  # A starts as the identity
    if status.updates > 0:
        length = math.sqrt(trace_of(state) / (rank * k_xx))
    state.factor[row, rank] = length
    for j in range(rank):
        state.inner[rank, j] = length * c[j]
        state.inner[j, rank] = length * c[j]
    state.inner[rank, rank] = length * length * k_xx
    status.rank = rank + 1


@inner
def _move(state, settings, values, k_xx, c, q, d, square, product, cross):
    """Update A~ with the sample stored last, (16) or (19); M and L_new' L_old follow.

    ``d`` is c - M q: ridge q, unless q was chosen otherwise.
    """
    status = state.status[0]
    n, rank = status.order, status.rank
    if settings.solver == PARAMETRIC:
        mu, fade = feature_step(state, settings, square, 1.0, status.seen + 1)
        kept = 1.0 - fade
        for i in range(n - 1):  # (16)
            along = -mu * dot(state.factor, i, q, 0, 0, rank)
            for j in range(rank):
                state.factor[i, j] = fma(along, q[j], kept * state.factor[i, j])
        for j in range(rank):
            state.factor[n - 1, j] = mu * q[j]
        # L_new = kept L + mu (phi - L q) q' gives both products without touching K.
        error = max(k_xx - dot(q, 0, c, 0, 0, rank) - dot(q, 0, d, 0, 0, rank), 0.0)
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
    norm = max(math.sqrt(status.gram_square), k_xx, SMALLEST_SELF_KERNEL)
    mu, fade = feature_step(state, settings, square, norm, status.seen + 1)
    multiply(state.gram, False, state.factor, False, product, n, rank, n - 1, 1.0, 0.0)
    for i in range(n):  # (19)
        along = (k_xx if i == n - 1 else values[0, i]) - dot(product, i, q, 0, 0, rank)
        along *= mu
        for j in range(rank):
            faded = fma(-fade, product[i, j], state.factor[i, j])
            state.factor[i, j] = fma(along, q[j], faded)
    multiply(state.factor, True, product, False, cross, rank, rank, n, 1.0, 0.0)
    moved = product[n:]
    multiply(state.gram, False, state.factor, False, moved, n, rank, n, 1.0, 0.0)
    multiply(state.factor, True, moved, False, state.inner, rank, rank, n, 1.0, 0.0)
    for i in range(rank):
        for j in range(i):
            state.inner[i, j] = state.inner[j, i]


@inner
def _carry(state, cross, old_inner, b, y, out, lengths):
    """Project the learner's function on the subspace that has moved.

    ``lengths`` receives its squared length before, for each output.
    """
    status = state.status[0]
    rank = status.rank
    for o in range(state.weights.shape[0]):
        before = 0.0
        for i in range(rank):
            b[i] = dot(cross, i, state.weights, o, 0, rank)
            before += dot(old_inner, i, state.weights, o, 0, rank) * state.weights[o, i]
        lengths[o] = before
        after = apply_inverse(state.root, rank, b, y, out)
        for i in range(rank):
            state.weights[o, i] = out[i]
        if not math.isfinite(after):  # all is lost, see `_bound`
            after = 0.0
        status.error_spent += math.sqrt(max(before - after, 0.0))


@inner
def _bound(state, lengths):
    """A projection lengthens no function; rounding does, where a direction is all but lost."""
    rank = state.status[0].rank
    for o in range(state.weights.shape[0]):
        lost = False
        for i in range(rank):
            lost |= not abs(state.weights[o, i]) <= LARGEST_WEIGHT
        for i in range(rank):
            state.weights[o, i] = 0.0 if lost else state.weights[o, i]
        square = 0.0
        for i in range(rank):
            square += dot(state.inner, i, state.weights, o, 0, rank) * state.weights[o, i]
        if square > lengths[o]:
            shorter = math.sqrt(lengths[o] / square)
            for i in range(rank):
                state.weights[o, i] *= shorter


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
    K = kernel_matrix(state, program, True)[:n, :n].copy()
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
    given,
    codes, program_numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    targets, sample_weights, extra, first, predictions,
):  # fmt: skip
    """Learn from the samples ``first`` onwards.

    ``predictions``, (n, outputs + 1) or with no rows, receives the linear learner's prediction for
    each sample before it is learned from, and in the last column the sample's fit error.

    Returns why it stopped, ``DONE``, ``FULL``, ``UNUSABLE`` or ``DIVERGED``, and the first sample
    that was not consumed.
    """
    state = FeatureState(
        points, square_norms, absolute_norms, gram, factor, recency, numbers, inner_products,
        solver, root, rotation, learner_weights, errors, places, status,
    )  # fmt: skip
    settings = given[0]
    outputs, most, step = settings.outputs, settings.most, settings.step
    loss, loss_number, align = settings.loss, settings.loss_number, settings.align > 0
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
    product = np.empty((2 * capacity if settings.solver == NONPARAMETRIC else 0, r))
    f, slope = np.zeros(max(outputs, 1)), np.zeros(max(outputs, 1))
    lengths = np.zeros(outputs)
    ordered = np.zeros(WINDOW + 1)
    window = min(record.recorded, WINDOW)
    for j in range(window):
        ordered[j] = errors[(record.recorded - 1 - j) % HISTORY]
    ordered[:window].sort()
    zero = np.int64(0)  # a literal would be compiled for separately
    for i in range(first, targets.shape[0]):
        n = record.order
        if n + 1 > capacity:
            return FULL, i
        kernel_row(
            program, rows, i, points, square_norms, absolute_norms, n, False, work, values, zero,
            norms,
        )  # fmt: skip
        if not norms[0, 0] <= LARGEST_SQUARE_NORM:
            return UNUSABLE, i
        k_xx = self_value(program, norms[0, 0])
        error, square = _project(state, settings, values, k_xx, c, y, q)
        rank = record.rank
        known = rank == r and square * trace_of(state) >= NOTHING * k_xx > 0.0
        if known and explodes(state, settings, values, k_xx, square):
            return DIVERGED, i

        if outputs > 0:  # Section VI: predict, then one step of Pegasos or LMS
            for j in range(rank):
                b[j] = c[j] - record.ridge * q[j]  # M q
            length = dot(b, 0, q, 0, 0, rank)  # |z|^2 = q' M q
            for o in range(outputs):
                f[o] = dot(learner_weights, o, b, 0, 0, rank)
            if outputs > 1 and loss >= FIRST_REGRESSION_LOSS:  # several numbers, in ``extra``
                active = vector_derivative(loss, loss_number, f, outputs, extra, i, slope)
            else:
                target = target_of(loss, outputs, targets[i])
                active = loss_derivative(loss, loss_number, f, outputs, target, slope)
            eta = step_size(settings.schedule, settings.initial_step, settings.decay, record.steps)
            kept = max(1.0 - eta * settings.shrinkage, 0.0)
            eta *= sample_weights[i]
            if loss >= FIRST_REGRESSION_LOSS and eta * length > 1.0:
                eta = 1.0 / length  # a longer step would overshoot the sample
            for o in range(outputs):
                if not abs(eta * slope[o]) <= LARGEST_WEIGHT:
                    return DIVERGED, i
            for o in range(outputs):
                change = -eta * slope[o] if active else 0.0
                for j in range(rank):
                    learner_weights[o, j] = fma(change, q[j], kept * learner_weights[o, j])
            record.steps += 1
        if predictions.shape[0] > 0:
            for o in range(outputs):
                predictions[i, o] = f[o]
            predictions[i, outputs] = error

        opens = False
        if rank < r and k_xx > SMALLEST_SELF_KERNEL:
            distance = k_xx if rank == 0 else k_xx - apply_inverse(root, rank, c, y, a)
            opens = distance > NOVELTY * k_xx
        starting = opens and record.updates == 0
        if not starting:  # the samples that S starts with are not measured
            limit = -math.inf
            if n >= most or most == UNLIMITED:
                limit = censoring_limit(state, settings, ordered)
            record_error(state, error, ordered)
            record.candidates += 1
        for j in range(rank):
            d[j] = record.ridge * q[j]
        if not opens:
            if step >= TRACKING and not known and rank == r and k_xx > SMALLEST_SELF_KERNEL:
                square = _take_over(state, k_xx, q, d)
                known = square > 0.0
            if error < limit or not known:
                record.censored += 1
                record.seen += 1
                continue

        store(state, rows, i, norms[0, 0], norms[0, 1], values, k_xx)
        if opens:
            _sprout(state, c, k_xx)
        rank = record.rank
        if remembering:
            before[: n + 1] = factor[: n + 1]
            old_inner[:rank, :rank] = inner_products[:rank, :rank]
            old_root[:rank, :rank] = root[:rank, :rank]
        if opens:
            cross[:rank, :rank] = inner_products[:rank, :rank]
            inverse_factor(inner_products, rank, FLOOR * inner_products[0, 0], old_root)
        elif not (record.order == settings.early and _settle(state, program, cross)):
            _move(state, settings, values, k_xx, c, q, d, square, product, cross)
        record.updates += 0 if starting else 1
        discarding = record.order > most
        if discarding:
            shrink(state, settings, before, cross, spared, trial, a, b)
        exponent = record.exponent
        # A new direction is what a sample has beyond the others: a difference, too.
        worn = refactor(state, settings) or opens
        for o in range(outputs):
            lengths[o] = math.inf
        if remembering and (discarding or not opens):
            # L_new is in new units, L_old and the weights are not.
            unit = power_of_two(exponent - record.exponent)
            cross *= unit
            learner_weights *= unit
            _carry(state, cross, old_inner, b, y, a, lengths)
            if align:
                _turn(state, cross, old_root)
        record.seen += 1
        record.changes += 1
        if worn or record.changes >= REFRESH_EVERY:
            refresh(state, settings, kernel_matrix(state, program, worn))
            worn = refactor(state, settings)
        if settings.orthonormal:
            orthonormalise(state, settings, y)
            if worn:  # a weak direction has few digits in M; once it is long it has all of them
                refresh(state, settings, kernel_matrix(state, program, True))
                refactor(state, settings)
                orthonormalise(state, settings, y)
        if outputs > 0:
            _bound(state, lengths)
    return DONE, targets.shape[0]
