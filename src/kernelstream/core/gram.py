"""The square-root factor of the inverse Gram matrix: inverse(K) = S S^T.

An explicit inverse with rank-one updates loses all its digits within a few thousand steps
and gives no sign of it. S is only ever extended (append) or rotated (remove: orthogonal
reflections), so its errors do not grow. S is not triangular and need not be.

With u = S^T k and a = S u for the kernel values k of a new point x:
    delta = k(x, x) - u.u      squared distance of k(x, .) to the span of the points
    S <- [[S, -a / sqrt(delta)], [0, 1 / sqrt(delta)]]
Removing point j costs |w_j|^2 / diag_j in squared Hilbert norm, where diag = diag(S S^T).
"""

import math

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.jit import compiled, lean
from kernelstream.core.lanes import dot, fma
from kernelstream.core.tables import copy_row

#: A point is dependent when delta <= DEPENDENT * k(x, x), and the same bound is kept for the
#: stored points, delta_j = 1 / diag_j. The residual max |S S^T K - I| then stays below about
#: 1e-4 on any stream (with 1e-10: 0.05); the error of a merged point is at most 1e-4 |w|.
DEPENDENT = 1e-8
#: Where k(x, x) is smaller, k(x, .) counts as the zero function.
SMALLEST_SELF_KERNEL = 1e-100


@lean
def coordinates(factor, values, n, u, a):
    """With k = ``values[0]``: u = S^T k and a = S u, the weights of k(x, .) projected on the
    points. Returns u.u."""
    for j in range(n):
        u[j] = 0.0
    for i in range(0, n - 3, 4):  # four rows at a time: fewer trips through u
        ka, kb, kc, kd = values[0, i], values[0, i + 1], values[0, i + 2], values[0, i + 3]
        for j in range(n):
            near = fma(kb, factor[i + 1, j], fma(ka, factor[i, j], u[j]))
            u[j] = fma(kd, factor[i + 3, j], fma(kc, factor[i + 2, j], near))
    for i in range(n - n % 4, n):
        for j in range(n):
            u[j] = fma(values[0, i], factor[i, j], u[j])
    for i in range(n):
        a[i] = dot(factor, i, u, 0, 0, n)
    return dot(u, 0, u, 0, 0, n)


@lean
def append_point(factor, diagonal, n, a, delta):
    """Extend S by a point with projection weights ``a`` and squared distance ``delta``."""
    root = 1.0 / math.sqrt(delta)
    for i in range(n):
        factor[i, n] = -a[i] * root
        diagonal[i] = fma(factor[i, n], factor[i, n], diagonal[i])
        factor[n, i] = 0.0
    factor[n, n] = root
    diagonal[n] = root * root


@lean
def reflect_away(factor, diagonal, n, j, v, column):
    """Rotate S so that row j is a multiple of the last unit vector; drop the last column.

    ``column`` receives the dropped column: the remaining weights change by
    -column_i / column_j * w_j. Row j itself is left for the caller to overwrite.
    """
    last = n - 1
    for q in range(n):
        v[q] = factor[j, q]
    norm = math.sqrt(dot(v, 0, v, 0, 0, n))
    sigma = -norm if v[last] >= 0.0 else norm  # the sign that does not cancel
    v[last] -= sigma
    beta = 1.0 / (norm * abs(v[last]))  # 2 / v.v
    for i in range(n):
        product = -beta * dot(factor, i, v, 0, 0, n)
        column[i] = fma(product, v[last], factor[i, last])
        for q in range(last):
            factor[i, q] = fma(product, v[q], factor[i, q])
        diagonal[i] = dot(factor, i, factor, i, 0, last)
    column[j] = sigma


@compiled
def complement(factor, n, kernels, gram):
    """Several new points against the old ones.

    ``kernels`` (q, >= n) are the kernel values of the new points with the old ones; ``gram``
    (q, q), those among the new points, becomes the Schur complement. Returns (q, n): the weights
    of each new point projected on the old ones.
    """
    q = gram.shape[0]
    u = np.empty((q, n))
    a = np.empty((q, n))
    multiply(kernels, False, factor, False, u, q, n, n, 1.0, 0.0)
    multiply(u, False, factor, True, a, q, n, n, 1.0, 0.0)
    multiply(u, False, u, True, gram, q, q, n, -1.0, 1.0)
    return a


@compiled
def append_block(factor, diagonal, n, a, gram, self_values, wanted, order, z):
    """Extend S by several points at once, as far as they are wanted and independent.

    Parameters
    ----------
    a, gram : those of :func:`complement`; gram is overwritten.
    self_values : (q,) k(x, x) of the new points.
    wanted : (q,) bool, the new points that may be appended.
    order : (q,) int64, out: the new points, accepted ones first, in the order appended.
    z : (q, n + q) float64, out: row i holds the weights of new point ``order[i]`` on the old
        and the accepted new points, for every other point i >= accepted.

    Returns
    -------
    accepted : int
        How many were appended. ``gram[accepted:, accepted:]`` (in the new order) then holds
        the inner products of the other points' residuals.
    """
    q = gram.shape[0]
    for i in range(q):
        order[i] = i

    # Cholesky with diagonal pivoting; gram becomes L below and the residual Gram beyond.
    accepted = 0
    while accepted < q:
        pivot, best = accepted, -1.0
        for i in range(accepted, q):
            k_xx = self_values[order[i]]
            relative = gram[i, i] / k_xx if k_xx >= SMALLEST_SELF_KERNEL else 0.0
            if wanted[order[i]] and relative > best:
                pivot, best = i, relative
        if not best > DEPENDENT:
            break
        if pivot != accepted:
            order[pivot], order[accepted] = order[accepted], order[pivot]
            for c in range(q):
                gram[pivot, c], gram[accepted, c] = gram[accepted, c], gram[pivot, c]
            for c in range(q):
                gram[c, pivot], gram[c, accepted] = gram[c, accepted], gram[c, pivot]
        root = math.sqrt(gram[accepted, accepted])
        gram[accepted, accepted] = root
        for i in range(accepted + 1, q):
            gram[i, accepted] /= root
        for i in range(accepted + 1, q):
            for c in range(accepted + 1, q):
                gram[i, c] = fma(-gram[i, accepted], gram[c, accepted], gram[i, c])
        accepted += 1

    # The inverse of the triangle L of the accepted points.
    inverse = np.zeros((accepted, accepted))
    for c in range(accepted):
        inverse[c, c] = 1.0 / gram[c, c]
        for i in range(c + 1, accepted):
            total = 0.0
            for k in range(c, i):
                total += gram[i, k] * inverse[k, c]
            inverse[i, c] = -total / gram[i, i]

    # The others: project on the accepted ones, z = L^-T L^-1 c, then on the old ones.
    sorted_a = np.empty((q, n))
    for i in range(q):
        copy_row(a, order[i], sorted_a, i)
    for i in range(accepted, q):
        for c in range(accepted):
            total = 0.0
            for k in range(c, accepted):
                total += inverse[k, c] * gram[i, k]
            z[i, n + c] = total
        for j in range(n):
            z[i, j] = sorted_a[i, j]
    dependent = q - accepted
    if dependent > 0 and accepted > 0:
        multiply(
            z[accepted:, n:], False, sorted_a, False, z[accepted:], dependent, n, accepted,
            -1.0, 1.0,
        )  # fmt: skip

    # S <- [[S, -a L^-T], [0, L^-T]]
    multiply(sorted_a, True, inverse, True, factor[:, n:], n, accepted, accepted, -1.0, 0.0)
    for i in range(n):
        diagonal[i] += dot(factor, i, factor, i, n, n + accepted)
    for i in range(accepted):
        for c in range(n):
            factor[n + i, c] = 0.0
        for c in range(accepted):
            factor[n + i, n + c] = inverse[c, i]
        diagonal[n + i] = dot(factor, n + i, factor, n + i, n, n + accepted)
    return accepted


@compiled
def reflect_block_away(factor, diagonal, n, removed, r, dropped):
    """Rotate S so that the rows ``removed[:r]`` live in the last r columns alone.

    One block of Householder reflections I - V^T T V, applied with matrix products. Row i of
    the block is sent to column n - 1 - i. ``dropped`` (n, r) receives those last columns in
    the order of ``removed``; the caller drops them and the rows.
    """
    panel = np.empty((r, n))
    for i in range(r):
        for c in range(n):
            panel[i, c] = factor[removed[i], c]
    v = np.zeros((r, n))
    t = np.zeros((r, r))
    for i in range(r):
        width = n - i
        last = width - 1
        for c in range(width):
            v[i, c] = panel[i, c]
        norm = math.sqrt(dot(v, i, v, i, 0, width))
        v[i, last] -= -norm if v[i, last] >= 0.0 else norm
        beta = 1.0 / (norm * abs(v[i, last]))
        for k in range(i + 1, r):
            product = -beta * dot(panel, k, v, i, 0, width)
            for c in range(width):
                panel[k, c] = fma(product, v[i, c], panel[k, c])
        # T of the product of reflections: T[:i, i] = -beta T[:i, :i] V[:i] v_i
        for k in range(i):
            panel[i, k] = dot(v, k, v, i, 0, width)  # row i of the panel is no longer needed
        for k in range(i):
            t[k, i] = -beta * dot(t, k, panel, i, k, i)
        t[i, i] = beta
    sv = np.empty((n, r))
    svt = np.empty((n, r))
    multiply(factor, False, v, True, sv, n, r, n, 1.0, 0.0)
    multiply(sv, False, t, False, svt, n, r, r, 1.0, 0.0)
    multiply(svt, False, v, False, factor, n, n, r, -1.0, 1.0)
    for i in range(n):
        for c in range(r):
            dropped[i, c] = factor[i, n - 1 - c]
        lost = dot(dropped, i, dropped, i, 0, r)
        if lost < 0.5 * diagonal[i]:
            diagonal[i] -= lost
        else:  # the difference would cancel
            diagonal[i] = dot(factor, i, factor, i, 0, n - r)
