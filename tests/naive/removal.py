"""Perceptrons on a budget, written out: a mistake becomes a point, and at the cap one leaves."""

import numpy as np

from tests.naive import losses


def step_of(f, target):
    """The perceptron's coefficients, or None where there is no mistake."""
    slope = losses.derivative("perceptron", 0.0, f, target)
    return -slope if slope.any() else None


def rbp(kernel, X, targets, weights, outputs, most, draw):
    """Random budget perceptron; ``draw(n)`` is a number below n. Points, weights, predictions."""
    points, w, said = np.empty((0, X.shape[1])), np.empty((0, outputs)), []
    for x, target, weight in zip(X, targets, weights, strict=True):
        f = w.T @ np.array([kernel(x, d) for d in points]).reshape(-1)
        said.append(f)
        new = step_of(f, target)
        if new is None:
            continue
        points, w = np.vstack([points, x]), np.vstack([w, weight * new])
        if len(points) > most:
            gone = draw(most)
            points[gone], w[gone] = points[-1], w[-1]  # the newest takes its place
            points, w = points[:-1], w[:-1]
    return points, w, np.array(said)


def largest_phi(square, s, s_mu, left):
    """The largest in (0, 1] with phi^2 square + 2 phi s - 2 phi^2 s mu <= left, by bisection: the
    set of good ones begins at 0 and has no gap."""

    def fits(phi):
        return phi**2 * square + 2.0 * phi * s - 2.0 * phi**2 * s_mu <= left

    low, high = (1.0, 1.0) if fits(1.0) else (0.0, 1.0)
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def forgetron(kernel, X, targets, weights, outputs, most, phi_of=largest_phi):
    """Self-tuned Forgetron. Points from the oldest to the newest, weights, predictions."""
    points, w, said, mistakes, spent = [], np.empty((0, outputs)), [], 0, 0.0
    for x, target, weight in zip(X, targets, weights, strict=True):
        f = w.T @ np.array([kernel(x, d) for d in points]).reshape(-1)
        said.append(f)
        new = step_of(f, target)
        if new is None:
            continue
        mistakes += 1
        points, w = [*points, x], np.vstack([w, weight * new])
        if len(points) > most:
            oldest = points[0]
            s = np.abs(w[0]).max()
            value = w.T @ np.array([kernel(oldest, d) for d in points])
            s_mu, square = w[0] @ value, w[0] @ w[0] * kernel(oldest, oldest)
            phi = phi_of(square, s, s_mu, 15.0 / 32.0 * mistakes - spent)
            spent += phi**2 * square + 2.0 * phi * s - 2.0 * phi**2 * s_mu
            points, w = points[1:], phi * w[1:]
    return np.array(points).reshape(-1, X.shape[1]), w, np.array(said)
