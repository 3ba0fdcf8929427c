"""Policy evaluation (COLK, Example 2) transition by transition, functions as lists of points."""

import numpy as np

from tests.naive import kernels
from tests.naive.komp import hilbert_norm, komp
from tests.naive.polk import error_budget, step_size


class Evaluation:
    """V, its average and the tracked temporal difference z; z is a number with ``scalar``."""

    def __init__(
        self, kernel, width, method="corrected", beta=0.1, regularisation=0.0,
        schedule="constant", initial_step=0.5, decay=0.0, budget="fixed", budget_number=0.1,
        most=10**9, averaging=0.0, horizon=np.inf, tracking="average",
    ):  # fmt: skip
        self.kernel, self.method, self.beta = kernel, method, beta
        self.regularisation, self.schedule = regularisation, schedule
        self.initial_step, self.decay = initial_step, decay
        self.budget, self.budget_number, self.most = budget, budget_number, most
        self.averaging, self.horizon, self.tracking = averaging, horizon, tracking
        self.earlier = np.empty((0, width)), np.empty(0)  # V before the last step
        self.points = np.empty((0, width))
        self.value, self.average, self.tracked = np.empty(0), np.empty(0), np.empty(0)
        self.scalar = 0.0
        self.errors, self.orders = [], []

    def at(self, weights, x, points=None):
        points = self.points if points is None else points
        return float(sum(w * self.kernel(d, x) for d, w in zip(points, weights, strict=True)))

    def tracked_by(self, z, delta, x, reward, y, discount):
        """z after this transition, by (19) or (20)."""
        if self.tracking == "average":
            return (1.0 - self.beta) * z + self.beta * delta
        points, weights = self.earlier
        before = reward + discount * self.at(weights, y, points) - self.at(weights, x, points)
        return (1.0 - self.beta) * (z - before) + delta

    def add(self, x, value=0.0, average=0.0, tracked=0.0):
        """Add these multiples of k(x, .) to the three functions."""
        same = [j for j in range(len(self.points)) if (self.points[j] == x).all()]
        j = same[0] if same else len(self.points)
        if not same:
            self.points = np.vstack([self.points, x])
            self.value = np.append(self.value, 0.0)
            self.average = np.append(self.average, 0.0)
            self.tracked = np.append(self.tracked, 0.0)
        self.value[j] += value
        self.average[j] += average
        self.tracked[j] += tracked

    def learn(self, x, reward, y, discount):
        t = len(self.errors)
        delta = reward + discount * self.at(self.value, y) - self.at(self.value, x)
        change = 0.0
        if self.method == "scalar":
            self.scalar = z = self.tracked_by(self.scalar, delta, x, reward, y, discount)
        else:
            z = (1.0 - self.beta) * self.at(self.tracked, x) + self.beta * delta
            change = (z - self.at(self.tracked, x)) / self.kernel(x, x)
        eta = step_size(self.schedule, self.initial_step, self.decay, t)
        share = 0.0
        self.earlier = self.points, self.value
        self.value = self.value * (1.0 - eta * self.regularisation)
        if self.averaging > 0.0:
            share = max(self.averaging / (t + self.averaging), 1.0 / self.horizon)
            self.average = self.average + share * (self.value - self.average)
        here = eta * (delta if self.method == "corrected" else z)
        there = -eta * discount * z  # (24)
        self.add(x, here, share * here, change)
        if there != 0.0:
            self.add(y, there, share * there)
        self.compress(error_budget(self.budget, self.budget_number, eta))

    def compress(self, allowed):
        K = kernels.matrix(self.kernel, self.points, self.points)
        weights = np.column_stack([self.value, self.average, self.tracked])
        kept, compressed, _ = komp(K, weights, allowed, self.most)
        self.errors.append(hilbert_norm(K, weights - compressed))
        self.orders.append(len(kept))
        self.points = self.points[kept]
        self.value, self.average, self.tracked = compressed[kept].T
