"""COLK's Lemma 1: how far the tracked mean loss is from the true one, by (20) and by (19)."""

from collections.abc import Iterator

import numpy as np

from benchmarks.tables import show
from kernelstream import COLKRegressor

SEEDS = 5
BETAS = (0.01, 0.05, 0.2)
STEPS = (0.05, 0.2)
#: Samples in all; the target changes its sign after half of them.
SAMPLES = 4000
#: Parts of the run, in quarters of it.
PHASES = ("approaching", "settled", "target changed", "settled again")


def errors(tracking: str, beta: float, eta0: float, seed: int) -> np.ndarray:
    """Mean squared error of the tracker in each quarter of a run without risk.

    The tracker after a step estimates the mean loss of the function before it; the true mean
    is taken over held-out samples. Without risk the function does not depend on the tracker.
    """
    random = np.random.default_rng(seed)
    X, held_out = random.uniform(-1.0, 1.0, (SAMPLES, 1)), random.uniform(-1.0, 1.0, (2000, 1))
    noise, held_out_noise = 0.3 * random.normal(size=SAMPLES), 0.3 * random.normal(size=2000)
    model = COLKRegressor(
        risk_weight=0.0, gamma=5.0, eta0=eta0, tracking_rate=beta, tracking=tracking, random_state=0
    )
    found: list[list[float]] = [[] for _ in PHASES]
    for t in range(0, SAMPLES, 2):
        sign = 2.0 if t < SAMPLES // 2 else -2.0
        looked_at = t > 0 and t % 10 == 0
        if looked_at:
            targets = sign * np.sin(3.0 * held_out[:, 0]) + held_out_noise
            mean = np.mean((model.predict(held_out) - targets) ** 2) / 2.0
        model.partial_fit(X[t : t + 2], sign * np.sin(3.0 * X[t : t + 2, 0]) + noise[t : t + 2])
        if looked_at:
            found[t * len(PHASES) // SAMPLES].append((model.tracker_ - mean) ** 2)
    return np.array([np.mean(part) for part in found])


def rows() -> Iterator[tuple[object, ...]]:
    """Error of (19), error of (20), by step size, beta and part of the run."""
    for eta0 in STEPS:
        for beta in BETAS:
            average, momentum = (
                np.mean([errors(tracking, beta, eta0, seed) for seed in range(SEEDS)], axis=0)
                for tracking in ("average", "momentum")
            )
            cells = [f"{b:.1e} / {a:.1e}" for a, b in zip(average, momentum, strict=True)]
            yield eta0, beta, *cells


def main() -> None:
    """Print the table."""
    show(
        f"Mean squared error of the tracker, (20) / (19), {SEEDS} seeds",
        ("eta0", "tracking_rate", *PHASES),
        rows(),
    )
