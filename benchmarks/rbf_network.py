"""The baseline of COLK's paper: a fixed basis, trained by stochastic compositional gradient."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from kernelstream.models.colk import largest_deviation


class RBFNetwork:
    """f(x) = sum_j w_j exp(-|x - c_j|^2 / r^2) on fixed centres, minimising mean loss plus moments.

    The loss is (f - y)^2 / 2, the risk the sum of its central moments 2 to ``order``. A pair of
    samples makes a step (47); the mean loss is tracked by averaging (19), as in the stochastic
    compositional gradient of Wang, Fang and Liu. Deviations are cut as COLK cuts them.
    """

    def __init__(
        self, n_centers: int = 50, radius: float = 0.06, eta0: float = 0.04,
        risk_weight: float = 0.1, order: int = 4, beta: float = 0.01, clip: float | None = 4.0,
    ) -> None:  # fmt: skip
        self.centers = np.linspace(0.0, 1.0, n_centers)  # over the feature space, as in the paper
        self.radius, self.eta0, self.beta = radius, eta0, beta
        self.risk_weight, self.order = risk_weight, order
        self.largest = largest_deviation(risk_weight, order, clip)
        self.weights = np.zeros(n_centers)
        self.tracker = 0.0

    @property
    def model_order_(self) -> int:
        """Basis functions."""
        return len(self.centers)

    def _features(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(-(((X - self.centers) / self.radius) ** 2))

    def partial_fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Self:
        """Samples 1 and 2, 3 and 4, ... are the pairs."""
        features = self._features(X)
        for i in range(0, len(y) - 1, 2):
            pair = features[i : i + 2]
            residuals = pair @ self.weights - y[i : i + 2]
            loss, other = 0.5 * residuals**2
            self.tracker += self.beta * (other - self.tracker)
            deviation = np.clip(loss - self.tracker, -self.largest, self.largest)
            slope = sum(p * deviation ** (p - 1) for p in range(2, self.order + 1))
            here, there = residuals[:, None] * pair
            self.weights -= self.eta0 * (here + self.risk_weight * slope * (here - there))
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """f(x) of each sample."""
        return self._features(X) @ self.weights
