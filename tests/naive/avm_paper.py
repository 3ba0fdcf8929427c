"""AVM as its algorithm boxes print it, and nothing else: the iterates themselves, all of them.

``tests/naive/avm.py`` is the twin of the compiled pass, with caps, weights and blocks of averages;
here is the paper. ``kernel(X, Z)`` is the matrix of kernel values; an iterate is a pair of points
and coefficients.
"""

import math

import numpy as np


def hypersphere(core, x, delta):
    """Algorithm 3, steps 5 to 11: the number of the cell of x, which may be a new one."""
    distances = [np.linalg.norm(x - c) for c in core]
    i = int(np.argmin(distances)) if core else -1
    if not core or distances[i] >= delta / 2.0:
        core.append(x)
        i = len(core) - 1
    return i


def hyperrectangle(core, x, delta):
    """Algorithm 4, steps 6 to 18."""
    a = delta / math.sqrt(len(x))
    for i, c in enumerate(core):
        if np.abs(x - c).max() < a:
            return i
    core.append(x)
    return len(core) - 1


def algorithm_2(kernel, X, y, slope, regularisation, delta, cells, approximated, ball=None):
    """Binary classification (y = -1, +1) and regression: iterates w_1 = 0 to w_(T+1).

    ``slope`` is alpha_t as a function of w_t(x_t) and y_t (Section 7), ``approximated`` Z_t as a
    function of t and y_t w_t(x_t), ``ball`` y_max where step 13 projects. A sample without
    derivative opens no cell: alpha_t Phi(c) is 0 then, whatever c is.
    """
    core, points, w = [], X[:0], np.zeros(0)
    iterates = [(points, w)]
    for t, (x, target) in enumerate(zip(X, y, strict=True), 1):
        f = kernel(x[None], points)[0] @ w
        alpha, eta = slope(f, target), 1.0 / (regularisation * t)
        w = w - eta * regularisation * w
        if alpha != 0.0:
            chosen = x
            if approximated(t, target * f):  # steps 8 and 9
                chosen = core[cells(core, x, delta)]
            points, w = np.vstack([points, chosen]), np.append(w, -eta * alpha)  # step 16
        if ball is not None and regularisation <= 1.0 and len(w):  # step 13
            norm = math.sqrt(max(w @ kernel(points, points) @ w, 0.0))
            radius = ball / math.sqrt(regularisation)
            w = w * min(1.0, radius / norm) if norm > 0.0 else w
        iterates.append((points, w))
    return iterates


def algorithm_5(kernel, X, y, n_classes, slope, regularisation, delta, cells):
    """Several classes, y = 0, 1, ...; ``slope`` is l'(a), of the margin a. Z_t = 1."""
    core, points, W = [], X[:0], np.zeros((0, n_classes))
    iterates = [(points, W)]
    for t, (x, label) in enumerate(zip(X, y.astype(int), strict=True), 1):
        f = kernel(x[None], points)[0] @ W
        rivals = np.where(np.arange(n_classes) == label, -np.inf, f)
        z = int(np.argmax(rivals))
        a = f[label] - f[z]  # step 4
        W = (t - 1.0) / t * W
        if slope(a) != 0.0:
            change = np.zeros(n_classes)
            eta = 1.0 / (regularisation * t)
            change[label], change[z] = -eta * slope(a), eta * slope(a)  # steps 9 and 10
            points = np.vstack([points, core[cells(core, x, delta)]])
            W = np.vstack([W, change])
        iterates.append((points, W))
    return iterates


def value(kernel, iterate, X):
    """w(x) for every row."""
    points, w = iterate
    return kernel(X, points) @ w


def average(kernel, iterates, X, suffix=1.0):
    """(1/T) sum of w_1 to w_T, or the alpha-suffix average of Section 6.2.1, for every row."""
    used = iterates[:-1]
    first = math.ceil((1.0 - suffix) * len(used))
    return sum(value(kernel, iterate, X) for iterate in used[first:]) / (len(used) - first)
