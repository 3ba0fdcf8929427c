"""Budgets by projection and by merging, every projection from scratch: Projectron, BPA, Ahpatron,
BSGD."""

import math

import numpy as np

from tests.naive import kernels, losses

#: Where less than this part of k(x, .) is new, it counts as spanned.
DEPENDENT = 1e-8
#: Where less than this part of a point is missed, nothing is.
NOTHING_MISSED = 1e-12


#: Costs that differ by less, relatively, tie: the first one is taken.
TIE = 1e-6


def steps(kernel, X, targets, weights, outputs, loss, learn, number=0.0, alpha=None):
    """Predict each sample; ``learn(points, w, x, slope, f, loss, weight)`` gives points and w.

    With ``alpha`` steps are Pegasos', 1 / (alpha t).
    """
    points, w, said = np.empty((0, X.shape[1])), np.empty((0, outputs)), []
    for t, (x, target, weight) in enumerate(zip(X, targets, weights, strict=True), 1):
        f = w.T @ np.array([kernel(x, d) for d in points]).reshape(-1)
        said.append(f)
        slope = losses.derivative(loss, number, f, target)
        if alpha is not None:
            w, weight = w * (1.0 - 1.0 / t), weight / (alpha * t)
        if slope.any():
            value = losses.value(loss, number, f, target)
            points, w = learn(points, w, x, -slope, f, value, weight)
    return points, w, np.array(said)


def on_span(kernel, points, x):
    """Weights of k(x, .) projected on the points, and the squared norm of the projection."""
    same = [j for j in range(len(points)) if (points[j] == x).all()]
    if same:
        return np.eye(len(points))[same[0]], kernel(x, x)
    k = np.array([kernel(x, d) for d in points]).reshape(-1)
    d = np.linalg.solve(kernels.matrix(kernel, points, points), k) if len(points) else k
    return d, k @ d


def projectron(kernel, X, targets, weights, outputs, most, eta, plus):
    def learn(points, w, x, new, f, loss, weight):
        d, kappa = on_span(kernel, points, x)
        square = max(kernel(x, x) - kappa, 0.0)
        delta = np.sqrt(square)
        new = weight * new
        if plus and loss < 1.0:
            size = kappa * min(outputs, 2)
            if not (loss > delta / eta and size > 0.0):
                return points, w
            tau = min(loss / size, 2.0 * (loss - delta / eta) / size, 1.0)
            return points, w + tau * np.outer(d, new)
        new_enough = np.abs(new).max() * delta > eta and square > DEPENDENT * kernel(x, x)
        if new_enough and len(points) < most:
            return np.vstack([points, x]), np.vstack([w, new])
        return points, w + np.outer(d, new)

    loss = "hinge" if plus else "perceptron"
    return steps(kernel, X, targets, weights, outputs, loss, learn)


def aggressive(kernel, x, new, loss, weight, C):
    """The passive-aggressive weights of a sample (PA-I)."""
    return min(C * weight, loss / (new @ new * kernel(x, x))) * new


def bpa(kernel, X, targets, weights, outputs, most, C, near):
    """BPA-S, or with ``near`` BPA-NN."""

    def learn(points, w, x, new, f, loss, weight):
        new = aggressive(kernel, x, new, loss, weight, C)
        if len(points) < most:
            return np.vstack([points, x]), np.vstack([w, new])
        K = kernels.matrix(kernel, points, points)
        trials = []
        for r in range(most):
            squares = [K[r, r] + K[i, i] - 2.0 * K[r, i] if i != r else np.inf for i in range(most)]
            heirs = []
            if near and most > 1:
                n = int(np.argmin(squares))
                k_tn, size = kernel(x, points[n]), kernel(x, x) * K[n, n]
                heirs = [n] if size - k_tn**2 > DEPENDENT * size else []
            basis = np.vstack([points[heirs], x])
            k = np.array([kernel(points[r], b) for b in basis])
            beta = np.linalg.solve(kernels.matrix(kernel, basis, basis), k)
            missed = K[r, r] - beta @ k
            missed = missed if missed > NOTHING_MISSED * K[r, r] else 0.0
            trials.append((w[r] @ w[r] * missed, r, heirs, beta))
        _, r, heirs, beta = min(trials, key=lambda trial: trial[:2])
        w = w.copy()
        for j, share in zip(heirs, beta, strict=False):
            w[j] += share * w[r]
        points = points.copy()
        points[r], w[r] = x, new + beta[-1] * w[r]
        return points, w

    return steps(kernel, X, targets, weights, outputs, "hinge", learn)


def drop(K, w, r):
    """Weights without point r, which is projected on the others; the last one takes its place."""
    rest = [i for i in range(len(K)) if i != r]
    w = w[rest] + np.outer(np.linalg.solve(K[np.ix_(rest, rest)], K[rest, r]), w[r])
    order = list(range(len(rest)))
    if r < len(rest):
        order[r:] = [len(rest) - 1, *range(r, len(rest) - 1)]
    return [rest[i] for i in order], w[order]


def budgeted(kernel, points, w, x, new, most, choose):
    """Take in ``x``, project points that others span, and one more where there are too many."""
    d, kappa = on_span(kernel, points, x)
    if kernel(x, x) - kappa <= DEPENDENT * kernel(x, x):
        return points, w + np.outer(d, new)
    points, w = np.vstack([points, x]), np.vstack([w, new])
    K = kernels.matrix(kernel, points, points)
    inverse = np.diag(np.linalg.inv(K))
    if (inverse * np.diag(K)).max() > 1.0 / DEPENDENT:
        r = int(np.argmax(inverse * np.diag(K)))
    elif len(points) > most:
        r = choose(K, w, inverse)
    else:
        return points, w
    kept, w = drop(K, w, r)
    return points[kept], w


def bpa_p(kernel, X, targets, weights, outputs, most, C):
    def choose(K, w, inverse):
        return int(np.argmin((np.sum(w * w, axis=1) / inverse)[:-1]))

    def learn(points, w, x, new, f, loss, weight):
        new = aggressive(kernel, x, new, loss, weight, C)
        return budgeted(kernel, points, w, x, new, most, choose)

    return steps(kernel, X, targets, weights, outputs, "hinge", learn)


def ahpatron(kernel, X, targets, weights, outputs, most, eta, margin, radius, ridge):
    norm = 0.0

    def learn(points, w, x, new, f, loss, weight):
        nonlocal norm
        if len(points) == most:
            K = kernels.matrix(kernel, points, points)
            sizes = np.linalg.norm(w, axis=1)
            stay = sorted(sorted(range(most), key=lambda j: (-sizes[j], j))[: most // 2])
            go = [j for j in range(most) if j not in stay]
            K11 = K[np.ix_(stay, stay)]
            ridged = K11 + ridge * np.diag(np.diag(K11))
            points, w = points[stay], w[stay] + np.linalg.solve(ridged, K[np.ix_(stay, go)] @ w[go])
            now = np.sqrt(np.sum(w * (K11 @ w)))
            w, norm = (w * norm / now, norm) if now > 0.0 else (w, 0.0)
            f = w.T @ np.array([kernel(x, d) for d in points]).reshape(-1)
        new = eta * weight * new
        norm = np.sqrt(max(norm**2 + 2.0 * new @ f + new @ new * kernel(x, x), 0.0))
        points, w = np.vstack([points, x]), np.vstack([w, new])
        if norm > radius:
            w, norm = w * radius / norm, radius
        return points, w

    return steps(kernel, X, targets, weights, outputs, "perceptron", learn, margin)


def first_least(costs):
    best, least = 0, math.inf
    for j, cost in enumerate(costs):
        if cost < least * (1.0 - TIE):
            best, least = j, cost
    return best


def bsgd_projection(kernel, X, targets, weights, outputs, most, alpha):
    def choose(K, w, inverse):
        return first_least(np.sum(w * w, axis=1) * np.diag(K))

    def learn(points, w, x, new, f, loss, weight):
        return budgeted(kernel, points, w, x, weight * new, most, choose)

    return steps(kernel, X, targets, weights, outputs, "hinge", learn, alpha=alpha)


def golden_section(function):
    """The place of the maximum of a function on [0, 1], to 1e-4."""
    low, high, golden = 0.0, 1.0, (math.sqrt(5.0) - 1.0) / 2.0
    p, q = high - golden * (high - low), low + golden * (high - low)
    while high - low >= 2e-4:
        if function(p) > function(q):
            high, q = q, p
            p = high - golden * (high - low)
        else:
            low, p = p, q
            q = low + golden * (high - low)
    return (low + high) / 2.0


def merged(gamma, x, v, z, w):
    """x of weights v and z of weights w, |v| <= |w|, as one point: it, its weights, the cost."""
    square = min(gamma * float(np.sum((x - z) ** 2)), 1e300)
    size, other = v @ v, w @ w
    ratio = math.sqrt(size / other) if size < other * (1.0 - TIE) else 1.0

    def overlap(h):
        return math.exp(-square * (1.0 - h) ** 2) + ratio * math.exp(-square * h**2)

    h = max(golden_section(overlap), 0.5)
    h = h if overlap(h) > overlap(1.0) else 1.0
    both = w * math.exp(-square * (1.0 - h) ** 2) + v * math.exp(-square * h**2)
    cost = size + other + 2.0 * v @ w * math.exp(-square) - both @ both
    place = z if square == 0.0 or h == 1.0 else h * z + (1.0 - h) * x
    return place, both, cost if cost > NOTHING_MISSED * size else 0.0


def bsgd_merging(gamma, kernel, X, targets, weights, outputs, most, alpha):
    def learn(points, w, x, new, f, loss, weight):
        points, w = np.vstack([points, x]), np.vstack([w, weight * new])
        if len(points) <= most:
            return points, w
        squares = np.sum(w * w, axis=1)
        m = int(np.flatnonzero(squares <= squares.min() * (1.0 + TIE))[0])
        trials = {
            j: merged(gamma, points[m], w[m], points[j], w[j])
            for j in range(len(points)) if j != m and w[m] @ w[j] > 0.0
        }  # fmt: skip
        if trials:
            least = min(cost for _, _, cost in trials.values())
            n = next(j for j, trial in trials.items() if trial[2] <= least * (1.0 + TIE))
            points[n], w[n] = trials[n][:2]
        points[m], w[m] = points[-1], w[-1]
        return points[:-1], w[:-1]

    return steps(kernel, X, targets, weights, outputs, "hinge", learn, alpha=alpha)
