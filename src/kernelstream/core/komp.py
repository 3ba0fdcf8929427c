"""Kernel orthogonal matching pursuit on a state: take points in, remove the cheapest.

Destructive KOMP with pre-fitting (POLK, Algorithm 1): from f~ remove the point whose removal
costs least, all remaining weights projected anew, while the Hilbert distance to f~ stays
within the error budget. Projections are nested, so squared errors add up (Pythagoras), and
removing j costs |w_j|^2 / diag_j (summed over outputs: they share the dictionary).
"""

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.gram import (
    DEPENDENT,
    SMALLEST_SELF_KERNEL,
    append_block,
    append_point,
    coordinates,
    reflect_away,
    reflect_block_away,
)
from kernelstream.core.jit import INTERPRETED, allocating, compiled, inline, inner, lean
from kernelstream.core.kernel import Rows, copy_sample, kernel_rows, self_value
from kernelstream.core.lanes import (
    add4,
    counting4,
    divide4,
    dot,
    fma,
    fma4,
    lane4,
    less4,
    load4,
    multiply4,
    spread4,
    sum4,
    zero4,
)
from kernelstream.core.splitmix import uniform

GREEDY, RANDOM = range(2)

#: Points removed with one block of reflections.
BLOCK = 32
#: From this order on removals are blocked, where at least so many are to be expected.
BLOCKED_FROM = 128
FEWEST_IN_BLOCK = 12


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
def energy(state, j, outputs):
    """|w_j|^2 at scale 1. Averaged weights are held unscaled."""
    status = state.status[0]
    square, averaged = 0.0, 0.0
    for c in range(outputs):
        square = fma(state.weights[c, j], state.weights[c, j], square)
    for c in range(outputs, state.weights.shape[0]):
        averaged = fma(state.weights[c, j], state.weights[c, j], averaged)
    return fma(averaged, 1.0 / (status.scale * status.scale), square)


@inline
def energy4(state, j, outputs):
    """The same of four points."""
    status = state.status[0]
    square = averaged = zero4()
    for c in range(outputs):
        weight = load4(state.weights, c, j)
        square = fma4(weight, weight, square)
    for c in range(outputs, state.weights.shape[0]):
        weight = load4(state.weights, c, j)
        averaged = fma4(weight, weight, averaged)
    return fma4(averaged, spread4(1.0 / (status.scale * status.scale)), square)


@inner
def removal_cost(state, j, outputs):
    """|w_j|^2 / diag_j at scale 1."""
    return energy(state, j, outputs) / state.diagonal[j]


@inner
def find_cheapest(state, outputs):
    """The point that costs least to remove, the first one in a tie; -1 without points.

    Its cost goes to ``status.cheapest``.
    """
    status = state.status[0]
    n = status.order
    best, least = -1, np.inf
    first = 0
    if not INTERPRETED:
        first = n - n % 4
        costs, places, here = spread4(np.inf), zero4(), counting4()
        for j in range(0, first, 4):
            cost = divide4(energy4(state, j, outputs), load4(state.diagonal, 0, j))
            places = less4(cost, costs, here, places)
            costs = less4(cost, costs, cost, costs)
            here = add4(here, spread4(4.0))
        for k in range(4):
            cost, place = lane4(costs, k), int(lane4(places, k))
            if cost < least or (cost == least and place < best):
                best, least = place, cost
    for j in range(first, n):
        cost = removal_cost(state, j, outputs)
        if cost < least:
            best, least = j, cost
    if best < 0 and n > 0:  # all of them are infinite
        best, least = 0, removal_cost(state, 0, outputs)
    status.cheapest = least
    return best


@inner
def goes_first(state, outputs, cost, a, delta):
    """Whether some point costs less to remove than ``cost``, once a new one is appended.

    The new point has projection weights ``a`` and squared distance ``delta``: it makes the
    diagonal grow by a^2 / delta.
    """
    n = state.status[0].order
    share = 1.0 / delta
    first = 0
    if not INTERPRETED:
        first = n - n % 4
        found = zero4()
        for j in range(0, first, 4):
            part = load4(a, 0, j)
            diagonal = fma4(multiply4(part, part), spread4(share), load4(state.diagonal, 0, j))
            bound = multiply4(spread4(cost), diagonal)
            found = less4(energy4(state, j, outputs), bound, spread4(1.0), found)
        if sum4(found) > 0.0:
            return True
    for j in range(first, n):
        if energy(state, j, outputs) < cost * fma(a[j] * a[j], share, state.diagonal[j]):
            return True
    return False


@inner
def find_crowded(state):
    """A point that those taken in after it have come to span, or -1.

    The distance of an old point to the span of the others, 1 / diag, falls as points are added.
    It is bounded below like that of a new one, or the factor would lose its digits.
    """
    worst, largest = -1, 1.0 / DEPENDENT
    for j in range(state.status[0].order):
        if state.diagonal[j] * state.self_kernels[j] > largest:
            worst, largest = j, state.diagonal[j] * state.self_kernels[j]
    return worst


@inner
def look_again(state, outputs):
    """Note the least cost, or one below all budgets when a point must go in any case."""
    if find_crowded(state) >= 0:
        state.status[0].cheapest = -np.inf
    else:
        find_cheapest(state, outputs)


@inner
def _move(state, source, target, n):
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
def remove_point(state, j, v, column):
    """Project on the other points and drop point j."""
    status = state.status[0]
    n = status.order
    reflect_away(state.factor, state.diagonal, n, j, v, column)
    sigma = column[j]
    for c in range(state.weights.shape[0]):
        share = -state.weights[c, j] / sigma
        if share != 0.0:
            for i in range(n):
                state.weights[c, i] = fma(column[i], share, state.weights[c, i])
    if j != n - 1:
        _move(state, n - 1, j, n - 1)
    status.order = n - 1
    status.removed += 1
    status.changes += 1


@compiled
def remove_block(state, removed, r, outputs):
    """Project on the other points and drop the points ``removed[:r]``.

    Returns the squared error at scale 1.
    """
    status = state.status[0]
    n = status.order
    columns = state.weights.shape[0]
    dropped = np.empty((n, r))
    reflect_block_away(state.factor, state.diagonal, n, removed, r, dropped)
    # Row i of the block lives in dropped[., :i + 1]: solve for the part that is lost.
    lost = np.empty((columns, r))
    error = 0.0
    for c in range(columns):
        for i in range(r):
            rest = state.weights[c, removed[i]] - dot(dropped, removed[i], lost, c, 0, i)
            lost[c, i] = rest / dropped[removed[i], i]
        part = dot(lost, c, lost, c, 0, r)
        error += part if c < outputs else part / (status.scale * status.scale)
    multiply(lost, False, dropped, True, state.weights, columns, n, r, -1.0, 1.0)
    # Fill the holes from the end.
    gone = np.zeros(n, np.bool_)
    for i in range(r):
        gone[removed[i]] = True
    source = n - 1
    kept = n - r
    for target in range(kept):
        if gone[target]:
            while gone[source]:
                source -= 1
            _move(state, source, target, kept)
            source -= 1
    status.order = kept
    status.removed += r
    status.changes += r
    return error


@compiled
def _prune_blocked(state, outputs, error, budget, most, expected):
    """The same greedy choice, with matrix products.

    The columns of inverse(K) that the choice needs come from one product for the likeliest
    candidates, corrected for what was chosen before them; the factor itself is then changed
    by one block of reflections, which also gives the exact error.
    """
    status = state.status[0]
    columns = state.weights.shape[0]
    while True:
        n = status.order
        find_cheapest(state, outputs)
        if n == 0 or (n <= most and error + status.cheapest > budget):
            return error
        costs = np.empty(n)
        for j in range(n):
            costs[j] = removal_cost(state, j, outputs)
        candidates = np.argsort(costs)[: min(expected, n)]
        rows = np.empty((candidates.shape[0], n))
        place = np.full(n, -1)
        for i in range(candidates.shape[0]):
            rows[i] = state.factor[candidates[i], :n]
            place[candidates[i]] = i
        base = np.empty((candidates.shape[0], n))
        multiply(rows, False, state.factor, True, base, rows.shape[0], n, n, 1.0, 0.0)

        weights = state.weights[:, :n].copy()
        diagonal = state.diagonal[:n].copy()
        removed = np.empty(BLOCK, np.int64)
        chosen = np.empty((BLOCK, n))  # columns of inverse(K), each over the root of its diagonal
        r = 0
        planned = error
        while r < BLOCK and r < n:
            j = int(np.argmin(costs))
            within = planned + costs[j] <= budget
            if not within and n - r <= most:
                break
            if not within:
                status.forced += 1
            planned += costs[j]
            column = chosen[r]
            if place[j] >= 0:
                column[:] = base[place[j]]
            else:
                for i in range(n):
                    column[i] = dot(state.factor, i, state.factor, j, 0, n)
            for k in range(r):
                share = -chosen[k, j]
                for i in range(n):
                    column[i] = fma(chosen[k, i], share, column[i])
            pivot = column[j]
            for c in range(columns):
                share = -weights[c, j] / pivot
                if share != 0.0:
                    for i in range(n):
                        weights[c, i] = fma(column[i], share, weights[c, i])
            root = 1.0 / np.sqrt(pivot)
            for i in range(n):
                column[i] *= root
                diagonal[i] = fma(-column[i], column[i], diagonal[i])
            removed[r] = j
            r += 1
            square = np.zeros(n)
            for c in range(columns):
                unit = 1.0 if c < outputs else 1.0 / (status.scale * status.scale)
                for i in range(n):
                    square[i] = fma(unit * weights[c, i], weights[c, i], square[i])
            costs[j] = np.inf
            for i in range(n):
                costs[i] = square[i] / diagonal[i] if costs[i] < np.inf else np.inf
        if r == 0:
            return error
        error += remove_block(state, removed, r, outputs)


@allocating
def _prune(state, outputs, error, budget, most, projection):
    """Remove points; see `prune`. Returns the squared error made."""
    status = state.status[0]
    unit = status.scale * status.scale
    v = np.empty(status.order)
    column = np.empty(status.order)
    while True:
        j = find_crowded(state)
        if j >= 0:
            status.dependent += 1
            error += removal_cost(state, j, outputs) * unit
            remove_point(state, j, v, column)
            continue
        j = find_cheapest(state, outputs)
        over = status.order > most
        # Nothing fits the budget: also the random rule stops here.
        if j < 0 or (not over and error + status.cheapest * unit > budget):
            return error
        cost = status.cheapest * unit
        if projection == RANDOM:
            j = random_below(status, status.order)
            cost = removal_cost(state, j, outputs) * unit
            if not over and error + cost > budget:
                return error
        status.forced += error + cost > budget
        error += cost
        remove_point(state, j, v, column)


@inline
def prune(state, outputs, error, budget, most, projection):
    """Compress within the budget and to at most ``most`` points.

    ``error`` is the squared error already made in this step (dependent points), ``budget``
    the squared error allowed, both in true units. Books the root of the total.
    """
    status = state.status[0]
    unit = status.scale * status.scale
    if status.order > most or error + status.cheapest * unit <= budget:
        error = _prune(state, outputs, error, budget, most, projection)
    status.error_spent += np.sqrt(error)


@compiled
def prune_block(state, outputs, error, budget, most, projection, expected):
    """The same, where about ``expected`` removals are to be made."""
    status = state.status[0]
    few = status.order < BLOCKED_FROM or expected < FEWEST_IN_BLOCK
    if projection != GREEDY or few or status.cheapest < 0.0:
        prune(state, outputs, error, budget, most, projection)
        return
    unit = status.scale * status.scale
    if status.order > most or error + status.cheapest * unit <= budget:
        error = unit * _prune_blocked(state, outputs, error / unit, budget / unit, most, expected)
    status.error_spent += np.sqrt(error)


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


@inner
def store(state, n, rows, i, square, absolute, self_kernel):
    """Sample i becomes point n."""
    copy_sample(rows, i, state.points, n)
    state.square_norms[n] = square
    state.absolute_norms[n] = absolute
    state.self_kernels[n] = self_kernel


@inner
def wear(delta, self_kernel):
    """How many ordinary changes an append counts for: the closer to the span, the more the
    factor's errors are amplified, and the sooner it is probed."""
    return 1 + int(min(1e3, 1e-5 * self_kernel / delta))


@inner
def take_in(state, rows, i, square, absolute, values, self_kernel, new, outputs, budget, work):
    """Add ``new`` k(x_i, .) to the function; a capacity for one more point is assumed.

    ``values[0, :order]`` are the kernel values of the sample, ``new`` its weights in stored
    units, ``work`` two rows to work in. A sample that would be removed again at once is projected
    without being stored. Returns the squared error made, at scale 1.
    """
    status = state.status[0]
    n = status.order
    columns = state.weights.shape[0]
    place = stored_place(state, rows, i, square)
    if place >= 0:
        status.dependent += 1
        for c in range(columns):
            state.weights[c, place] += new[c]
        find_cheapest(state, outputs)
        return 0.0

    u, a = work[0], work[1]
    delta = self_kernel - coordinates(state.factor, values, n, u, a)
    length = 0.0
    for c in range(columns):
        part = new[c] * new[c]
        length += part if c < outputs else part / (status.scale * status.scale)
    dependent = not delta > DEPENDENT * self_kernel or self_kernel < SMALLEST_SELF_KERNEL
    error = length * max(delta, 0.0)
    skip = dependent
    if not dependent and error <= budget:
        # Would the new point be the cheapest of all? Then greedy pursuit removes it first.
        skip = not goes_first(state, outputs, error, a, delta)
    if skip:
        status.dependent += dependent
        for c in range(columns):
            if new[c] != 0.0:
                for j in range(n):
                    state.weights[c, j] = fma(a[j], new[c], state.weights[c, j])
        find_cheapest(state, outputs)
        return error

    store(state, n, rows, i, square, absolute, self_kernel)
    for c in range(columns):
        state.weights[c, n] = new[c]
    append_point(state.factor, state.diagonal, n, a, delta)
    status.order = n + 1
    status.changes += wear(delta, self_kernel)
    look_again(state, outputs)
    return 0.0


@compiled
def take_in_block(state, program, block, values, norms, new, q, outputs):
    """Add ``new[r]`` k(x_r, .) for the ``q`` dense rows of ``block``; the capacity is assumed.

    ``values[r, :order]`` are their kernel values with the points, ``norms`` their norms.
    Returns the squared error made, at scale 1.
    """
    status = state.status[0]
    columns = state.weights.shape[0]
    rows = Rows(block, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)

    # Samples that are stored already, or that appear twice in the block.
    fresh = 0
    self_values = np.empty(q)
    for r in range(q):
        self_kernel = self_value(program, norms[r, 0])
        place = stored_place(state, rows, r, norms[r, 0])
        if place >= 0:
            status.dependent += 1
            for c in range(columns):
                state.weights[c, place] += new[r, c]
            continue
        twin = -1
        for k in range(fresh):
            if norms[k, 0] == norms[r, 0] and norms[k, 1] == norms[r, 1]:
                twin = k if (block[k] == block[r]).all() else twin
        if twin >= 0:
            status.dependent += 1
            for c in range(columns):
                new[twin, c] += new[r, c]
            continue
        if fresh != r:
            block[fresh] = block[r]
            values[fresh] = values[r]
            norms[fresh] = norms[r]
            new[fresh] = new[r]
        self_values[fresh] = self_kernel
        fresh += 1
    if fresh == 0:
        find_cheapest(state, outputs)
        return 0.0

    n = status.order
    transposed = np.empty((block.shape[1], fresh))
    for r in range(fresh):
        for f in range(block.shape[1]):
            transposed[f, r] = block[r, f]
    gram = np.empty((fresh, fresh))
    unused = np.empty((fresh, 2))
    kernel_rows(
        program, rows, 0, fresh, transposed, norms[:fresh, 0].copy(), norms[:fresh, 1].copy(),
        fresh, gram, unused,
    )  # fmt: skip
    for r in range(fresh):
        gram[r, r] = self_values[r]
    order = np.empty(fresh, np.int64)
    z = np.empty((fresh, n + fresh))
    accepted = append_block(
        state.factor, state.diagonal, n, values, gram, self_values[:fresh], order, z
    )
    for i in range(accepted):
        r = order[i]
        store(state, n + i, rows, r, norms[r, 0], norms[r, 1], self_values[r])
        for c in range(columns):
            state.weights[c, n + i] = new[r, c]
    status.order = n + accepted
    for i in range(accepted):
        status.changes += wear(gram[i, i] * gram[i, i], self_values[order[i]])

    error = 0.0
    status.dependent += fresh - accepted
    for i in range(accepted, fresh):
        for c in range(columns):
            weight = new[order[i], c]
            if weight != 0.0:
                for j in range(n + accepted):
                    state.weights[c, j] = fma(z[i, j], weight, state.weights[c, j])
            cross = 0.0
            for k in range(accepted, fresh):
                cross = fma(gram[i, k], new[order[k], c], cross)
            part = weight * cross
            error += part if c < outputs else part / (status.scale * status.scale)
    look_again(state, outputs)
    return max(error, 0.0)


@compiled
def rebuild(state, program, outputs):
    """Factorise the Gram matrix of the stored points from scratch.

    Points that turn out to be dependent are merged into the others. Returns the squared
    error of that, at scale 1.
    """
    status = state.status[0]
    n = status.order
    width = state.points.shape[0]
    points = np.empty((n, width))
    for j in range(n):
        for q in range(width):
            points[j, q] = state.points[q, j]
    weights = np.empty((n, state.weights.shape[0]))
    for j in range(n):
        for c in range(state.weights.shape[0]):
            weights[j, c] = state.weights[c, j]
    rows = Rows(points, np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64), False)
    status.order = 0
    status.rebuilds += 1
    error = 0.0
    for first in range(0, n, BLOCK):
        q = min(BLOCK, n - first)
        values = np.empty((q, status.order))
        norms = np.empty((q, 2))
        kernel_rows(
            program, rows, first, q, state.points, state.square_norms, state.absolute_norms,
            status.order, values, norms,
        )  # fmt: skip
        error += take_in_block(
            state, program, points[first : first + q].copy(), values, norms,
            weights[first : first + q].copy(), q, outputs,
        )  # fmt: skip
        j = find_crowded(state)
        while j >= 0:
            status.dependent += 1
            error += removal_cost(state, j, outputs)
            remove_point(state, j, np.empty(status.order), np.empty(status.order))
            j = find_crowded(state)
    find_cheapest(state, outputs)
    status.changes = 0
    return error
