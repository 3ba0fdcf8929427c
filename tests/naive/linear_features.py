"""Gradient descent on features of a kernel, sample by sample."""

import numpy as np

from tests.naive.losses import derivative


def descend(features, y, outputs, loss, number, step, regularisation=0.0):
    """Values before each step, and the weights after all; ``features`` are rows (n, m)."""
    weights, predictions = np.zeros((outputs, features.shape[1])), []
    for t, (z, target) in enumerate(zip(features, y, strict=True)):
        f = weights @ z
        predictions.append(f)
        eta = step(t)
        shrunk = (1.0 - eta * regularisation) * weights if t else weights
        weights = shrunk - eta * np.outer(derivative(loss, number, f, target), z)
    return np.array(predictions), weights


def fourier(X, frequencies):
    phases = X @ frequencies
    return np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(frequencies.shape[1])


def nogd(k, X, y, outputs, loss, number, eta, most, rank):
    """Points while there is room, then features of the kernel matrix's largest eigenvalues."""
    points, alpha, predictions = X[:0], np.zeros((outputs, 0)), []
    z, w = None, None
    for x, target in zip(X, y, strict=True):
        if z is None and len(points) == most:
            values, vectors = np.linalg.eigh(k(points, points))
            largest = np.argsort(values)[::-1][: max(1, round(rank * most))]
            largest = largest[values[largest] > 1e-8 * values.max()]
            D, V = values[largest], vectors[:, largest]
            kept = points
            z = lambda x, D=D, V=V, kept=kept: D**-0.5 * (V.T @ k(kept, x[None])[:, 0])  # noqa: E731
            w = alpha @ V * np.sqrt(D)
        f = alpha @ k(points, x[None])[:, 0] if z is None else w @ z(x)
        predictions.append(f)
        slope = derivative(loss, number, f, target)
        if z is not None:
            w = w - eta * np.outer(slope, z(x))
        elif slope.any():
            points = np.vstack([points, x])
            alpha = np.hstack([alpha, -eta * slope[:, None]])
    return np.array(predictions), points


def dualsgd(k, X, y, outputs, loss, number, alpha, most, moved, frequencies):
    """Points of a kernel; the smallest go to the features ``moved`` at a time."""
    points, w, predictions = X[:0], np.zeros((outputs, 0)), []
    v, Z = np.zeros((outputs, 2 * frequencies.shape[1])), fourier(X, frequencies)
    for t, (x, z, target) in enumerate(zip(X, Z, y, strict=True), 1):
        f = w @ k(points, x[None])[:, 0] + v @ z
        predictions.append(f)
        slope = derivative(loss, number, f, target)
        w, v = (t - 1) / t * w, (t - 1) / t * v
        if not slope.any():
            continue
        if len(points) == most:
            sizes, leaves = (w**2).sum(axis=0), []
            for _ in range(min(moved, most)):  # of those that tie the oldest
                leaves.append(np.flatnonzero(sizes <= sizes.min() * (1.0 + 1e-6))[0])
                sizes[leaves[-1]] = np.inf
            v = v + w[:, leaves] @ fourier(points[leaves], frequencies)
            points, w = np.delete(points, leaves, axis=0), np.delete(w, leaves, axis=1)
        points = np.vstack([points, x])
        w = np.hstack([w, -slope[:, None] / (alpha * t)])
    return np.array(predictions), points, w, v
