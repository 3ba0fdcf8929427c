"""Destructive kernel orthogonal matching pursuit with pre-fitting (POLK, Algorithm 1).

Remove the point whose removal costs least, all remaining weights projected again, while the
Hilbert distance to the function before stays within the error budget. Projections are nested, so
squared errors add up (Pythagoras).
"""

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.costs import find_cheapest, find_crowded, removal_cost
from kernelstream.core.dictionary import move, random_below
from kernelstream.core.gram import reflect_away, reflect_block_away
from kernelstream.core.jit import allocating, compiled, inline, inner, merged
from kernelstream.core.lanes import dot, fma

GREEDY, RANDOM = range(2)

#: Points removed with one block of reflections.
BLOCK = 32
#: From this order on removals are blocked, where at least so many are to be expected.
BLOCKED_FROM = 128
FEWEST_IN_BLOCK = 12


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
        move(state, n - 1, j, n - 1)
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
            move(state, source, target, kept)
            source -= 1
    status.order = kept
    status.removed += r
    status.changes += r
    return error


@merged
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
        candidates = min(expected, n)
        rows = np.empty((candidates, n))
        place = np.full(n, -1)
        for i in range(candidates):
            best = -1
            for j in range(n):
                if place[j] < 0 and (best < 0 or costs[j] < costs[best]):
                    best = j
            for k in range(n):
                rows[i, k] = state.factor[best, k]
            place[best] = i
        base = np.empty((candidates, n))
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
                for i in range(n):
                    column[i] = base[place[j], i]
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
