"""Adaptive filters as their papers print them: explicit inverses, solved from scratch each time.

Each takes kernel values through a function ``k(X, Z)`` and returns the predictions made before
each sample, then the points and the weights.
"""

import numpy as np


def gaussian(X, Z, gamma):
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


def _run(k, X, y, learn):
    """``learn(points, weights, x, target, error)`` returns points and weights after a sample."""
    points, weights, predictions = X[:0], np.zeros(0), []
    for x, target in zip(X, y, strict=True):
        f = float(k(x[None], points)[0] @ weights)
        predictions.append(f)
        points, weights = learn(points, weights, x, target, target - f)
    return np.array(predictions), points, weights


def klms(k, X, y, step, most):
    def learn(points, weights, x, target, error):
        return np.vstack([points, x])[-most:], np.append(weights, step * error)[-most:]

    return _run(k, X, y, learn)


def qklms(k, X, y, step, radius, most):
    def learn(points, weights, x, target, error):
        distances = np.sqrt(((points - x) ** 2).sum(axis=1))
        if len(points) and (distances.min() <= radius or len(points) == most):
            weights = weights + step * error * (np.arange(len(points)) == distances.argmin())
            return points, weights
        return np.vstack([points, x]), np.append(weights, step * error)

    return _run(k, X, y, learn)


def knlms(k, X, y, step, coherence, epsilon, most):
    def learn(points, weights, x, target, error):
        if len(points) < most and (k(x[None], points) <= coherence).all():
            points, weights = np.vstack([points, x]), np.append(weights, 0.0)
        values = k(x[None], points)[0]
        return points, weights + step / (epsilon + values @ values) * error * values

    return _run(k, X, y, learn)


def krls(k, X, y, novelty, most):
    """Least squares of all samples so far, each replaced by its projection on the points."""
    held = {"A": np.zeros((0, 0)), "y": np.zeros(0)}

    def learn(points, weights, x, target, error):
        K, values = k(points, points), k(points, x[None])[:, 0]
        a = np.linalg.solve(K, values)
        A = held["A"]
        if len(points) < most and 1.0 - values @ a > novelty:
            points = np.vstack([points, x])
            A = np.block([[A, np.zeros((len(A), 1))], [np.zeros((1, A.shape[1])), np.ones((1, 1))]])
        else:
            A = np.vstack([A, a])
        held["A"], held["y"] = A, np.append(held["y"], target)
        combined = np.linalg.lstsq(A, held["y"], rcond=None)[0]  # = K weights
        return points, np.linalg.solve(k(points, points), combined)

    return _run(k, X, y, learn)


def sliding_krls(k, X, y, ridge, most):
    held = np.zeros(0)

    def learn(points, weights, x, target, error):
        nonlocal held
        points, held = np.vstack([points, x])[-most:], np.append(held, target)[-most:]
        return points, np.linalg.solve(k(points, points) + ridge * np.eye(len(points)), held)

    return _run(k, X, y, learn)


def fixed_budget_krls(k, X, y, ridge, most):
    held = np.zeros(0)

    def learn(points, weights, x, target, error):
        nonlocal held
        points, held = np.vstack([points, x]), np.append(held, target)
        inverse = np.linalg.inv(k(points, points) + ridge * np.eye(len(points)))
        if len(points) > most:
            kept = np.arange(len(points)) != np.argmin(np.abs(inverse @ held) / np.diag(inverse))
            points, held = points[kept], held[kept]
            inverse = np.linalg.inv(k(points, points) + ridge * np.eye(len(points)))
        return points, inverse @ held

    return _run(k, X, y, learn)
