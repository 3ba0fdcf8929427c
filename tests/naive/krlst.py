"""KRLS-T written out: values mu at the points, their covariance Sigma, the kernel matrix K.

The steps are those of Algorithm 1 of Van Vaerenbergh, Lazaro-Gredilla and Santamaria (2012), with
their names, in their order: forget, predict, include, prune.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax

NOVEL = 1e-3


def kernel(X, Z, gamma, amplitude):
    squares = np.square(X[:, None] - Z[None]).sum(axis=2)
    return amplitude * np.exp(-gamma * squares) + 1.0


def implicit_step(values, label, reach):
    """How far each class moves, and the curvature where the step ends."""
    if len(values) == 1:
        return np.zeros(1), 0.0
    wrong = np.arange(len(values)) != label
    r = np.where(wrong, softmax(np.where(wrong, values, -np.inf)), 0.0)
    margin = values[label] - logsumexp(values[wrong])
    a = (1.0 + r @ r) * reach
    s = brentq(lambda s: s - expit(-margin - a * s), 0.0, 1.0, xtol=1e-15)
    step = np.where(wrong, -s * r, s)
    p = softmax(values + reach * step)
    return step, (2.0 * p * (1.0 - p)).max()


def krlst(X, targets, weights, outputs, numbers, gamma, amplitude, forget, noise, most):
    """Predictions and deviations of each row from just before it; then points, mu and Sigma."""
    points, mu, Sigma = X[:0], np.zeros((0, outputs)), np.zeros((0, 0))
    learned, k_xx = (noise == 0.0), amplitude + 1.0
    noises = np.full(outputs if numbers else 1, 1.0 if learned else noise)
    predictions, deviations = [], []
    for t, (x, target, weight) in enumerate(zip(X, targets, weights, strict=True)):
        K = kernel(points, points, gamma, amplitude)
        if t:  # forget
            Sigma, mu = forget * Sigma + (1.0 - forget) * K, np.sqrt(forget) * mu
        # predict
        k = kernel(points, x[None], gamma, amplitude)[:, 0]
        q = np.linalg.solve(K, k)
        novelty = max(0.0, k_xx - k @ q)  # gamma^2
        h = Sigma @ q
        variance = novelty + q @ h  # sigma_f^2
        mean = q @ mu
        if numbers:
            predictions.append(mean)
            deviations.append(np.sqrt(variance + noises))
        else:
            predictions.append(softmax(mean / np.sqrt(1.0 + np.pi * variance / 8.0)))
            deviations.append(np.sqrt([variance]))
        # include
        if novelty > NOVEL * k_xx:
            points, mu = np.vstack([points, x]), np.vstack([mu, mean])
            Sigma = np.block([[Sigma, h[:, None]], [h[None], np.array([[variance]])]])
            h = np.append(h, variance)
        if numbers:
            error = target - mean
            gain = 1.0 / (noises.mean() / weight + variance)  # one Sigma: one noise
            mu = mu + np.outer(h, gain * error)
            if learned:
                share = 1.0 - 0.5 * variance / (noises + variance)
                rate = max(3.0 / (t + 10.0), 1e-3)
                noises = noises + rate * (np.minimum(9.0 * noises, error**2) * share - noises)
                noises = np.maximum(noises, 1e-8)
        else:
            step, curvature = implicit_step(mean, int(target), variance * weight)
            mu = mu + np.outer(h, weight * step)
            gain = weight * curvature / (1.0 + weight * curvature * variance)
        Sigma = Sigma - gain * np.outer(h, h)
        # prune
        if len(points) > most:
            Q = np.linalg.inv(kernel(points, points, gamma, amplitude))
            j = np.argmin(np.square(Q @ mu).sum(axis=1) / np.diag(Q))
            order = np.delete(np.arange(len(points)), j)
            points, mu, Sigma = points[order], mu[order], Sigma[np.ix_(order, order)]
    deviations = np.array(deviations)
    if deviations.shape[1] == 1:
        deviations = deviations[:, 0]
    return np.array(predictions), deviations, points, mu, Sigma
