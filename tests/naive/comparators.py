"""Online methods that keep samples as points, written out: one step, and who leaves at the cap.

Everywhere ``w`` has a row of weights per point, and points are in the order in which they were
stored: where one leaves, ``take_place`` puts the newest there.
"""

import numpy as np

from tests.naive import losses


def learn(kernel, X, targets, weights, outputs, step, room):
    """Points, weights, predictions.

    ``step(t, f, target, weight, k_xx)`` is what is left of f, and the sample's coefficients or
    None; ``room(points, w, t)`` the same points and weights with room made.
    """
    points, w, said = [], np.empty((0, outputs)), []
    for t, (x, target, weight) in enumerate(zip(X, targets, weights, strict=True), start=1):
        f = w.T @ np.array([kernel(x, d) for d in points]).reshape(-1)
        said.append(f)
        left, new = step(t, f, target, weight, kernel(x, x))
        w = left * w
        if new is not None:
            points, w = room([*points, x], np.vstack([w, new]), t)
    return np.array(points).reshape(-1, X.shape[1]), w, np.array(said)


# ---- steps ----------------------------------------------------------------------------------


def gradient(loss, number, eta, alpha):
    """f <- (1 - eta alpha) f - eta l' k(x, .)."""

    def step(t, f, target, weight, k_xx):
        slope = losses.derivative(loss, number, f, target)
        return 1.0 - eta * alpha, -eta * weight * slope if slope.any() else None

    return step


def pegasos(loss, number, alpha):
    """Steps 1 / (alpha t)."""

    def step(t, f, target, weight, k_xx):
        slope = losses.derivative(loss, number, f, target)
        return 1.0 - 1.0 / t, -weight * slope / (alpha * t) if slope.any() else None

    return step


def passive_aggressive(loss, number, C, variant):
    def step(t, f, target, weight, k_xx):
        slope = losses.derivative(loss, number, f, target)
        if not slope.any():
            return 1.0, None
        value, square = losses.value(loss, number, f, target), slope @ slope * k_xx
        tau = min(C * weight, value / square)
        if variant == 2:
            tau = value / (square + 1.0 / (2.0 * C * weight))
        return 1.0, -tau * slope

    return step


class Norma:
    """A margin rho, or a tube epsilon, learned along."""

    def __init__(self, eta, alpha, nu, numbers=False):
        self.eta, self.alpha, self.nu, self.numbers, self.width = eta, alpha, nu, numbers, 0.0

    def __call__(self, t, f, target, weight, k_xx):
        if self.numbers:
            residual = target - f[0]
            active = abs(residual) > max(self.width, 0.0)
            new = np.sign([residual])
        else:
            best = [c for c in range(len(f)) if c != target]
            if len(f) == 1:
                margin, new = target * f[0], np.array([target])
            else:
                rival = best[int(np.argmax(f[best]))]
                margin, new = f[int(target)] - f[rival], np.zeros(len(f))
                new[int(target)], new[rival] = 1.0, -1.0
            active = margin <= self.width
        change = -(1.0 - self.nu) if active else self.nu
        self.width += self.eta * weight * (-change if self.numbers else change)
        return 1.0 - self.eta * self.alpha, self.eta * weight * new if active else None


# ---- room -----------------------------------------------------------------------------------


def take_place(points, w, gone):
    """The newest point takes the place of the one that leaves."""
    w = w.copy()
    points[gone], w[gone] = points[-1], w[-1]
    return points[:-1], w[:-1]


def unbounded(points, w, t):
    return points, w


def window(most):
    return lambda points, w, t: (points[-most:], w[-most:])


def sizes(kernel, points, w):
    """|w_j|^2 k(x_j, x_j)"""
    return (w**2).sum(axis=1) * np.array([kernel(x, x) for x in points])


class Smallest:
    """The point of least norm; of those that tie the first after the one that left last."""

    def __init__(self, kernel, most):
        self.kernel, self.most, self.hand = kernel, most, 0

    def __call__(self, points, w, t):
        return self.leave(points, w) if len(points) > self.most else (points, w)

    def leave(self, points, w):
        size, old = sizes(self.kernel, points, w), len(points) - 1
        if old == 0 or size[:old].min() > size[old] * (1.0 + 1e-6):
            return points[:-1], w[:-1]
        hand = self.hand if self.hand < old else 0
        around = [*range(hand, old), *range(hand)]
        least = min(size[:old].min(), size[old])
        gone = next(j for j in around if size[j] <= least * (1.0 + 1e-6))
        self.hand = gone + 1 if gone + 1 < old else 0
        return take_place(points, w, gone)


class Growing(Smallest):
    """NPBSGD: by chance the budget grows instead; ``draw()`` is a number in [0, 1)."""

    def __init__(self, kernel, most, start, delay, draw):
        super().__init__(kernel, most)
        self.budget, self.delay, self.draw = start, delay, draw

    def __call__(self, points, w, t):
        if len(points) <= min(self.budget, self.most):
            return points, w
        if len(points) > self.most or self.draw() < self.delay / t:
            return self.leave(points, w)
        self.budget = len(points)
        return points, w


class Unbiased:
    """BOGD: one of the old points leaves by chance, the others grow and are cut."""

    def __init__(self, kernel, most, sampling, largest, draw):
        self.kernel, self.most, self.sampling = kernel, most, sampling
        self.largest, self.draw = largest, draw

    def __call__(self, points, w, t):
        B = self.most
        if len(points) <= B:
            return points, w
        p = np.full(B, 1.0 / B)
        if self.sampling == "weighted":
            size = np.sqrt(sizes(self.kernel, points[:B], w[:B]))
            p = np.maximum(0.0, 1.0 - (B - 1) * size / size.sum())
            p /= p.sum()
            gone = min(int(np.searchsorted(np.cumsum(p), self.draw(), side="right")), B - 1)
        else:
            gone = int(self.draw() * B)
        grown = w.copy()
        grown[:B] /= np.maximum(1.0 - p, 1e-12)[:, None]
        grown[:B] = np.clip(grown[:B], -self.largest, self.largest)
        return take_place(points, grown, gone)
