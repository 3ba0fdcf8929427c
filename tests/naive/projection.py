"""Projectron, budgeted passive-aggressive learning and Ahpatron, every projection from scratch."""

import numpy as np

from tests.naive import kernels, losses

#: Where less than this part of k(x, .) is new, it counts as spanned.
DEPENDENT = 1e-8
#: Where less than this part of a point is missed, nothing is.
NOTHING_MISSED = 1e-12


def steps(kernel, X, targets, weights, outputs, loss, learn, number=0.0):
    """Predict each sample; ``learn(points, w, x, slope, f, loss, weight)`` gives points and w."""
    points, w, said = np.empty((0, X.shape[1])), np.empty((0, outputs)), []
    for x, target, weight in zip(X, targets, weights, strict=True):
        f = w.T @ np.array([kernel(x, d) for d in points]).reshape(-1)
        said.append(f)
        slope = losses.derivative(loss, number, f, target)
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
