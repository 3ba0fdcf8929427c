"""POLK with steps that diminish: the distance to the optimum over a million samples (Theorem 2).

Samples come from a finite set, so that the optimum f* of the regularised risk is known exactly:
with n points of equal probability it is sum_i a_i k(x_i, .), (K / n + alpha I) a = y / n.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import Parsimony, POLKRegressor, Steps
from kernelstream.kernels import Gaussian

PICTURE = Path("docs/images/polk_rates.png")
SAMPLES = 1_000_000
POINTS, ALPHA, NOISE = 60, 0.01, 0.3
KERNEL = Gaussian(4.0)
#: Name, parameters, line style.
SETTINGS: tuple[tuple[str, dict[str, Any], str], ...] = (
    (
        "1 / (alpha t), eps = eta^2 (Theorem 2)",
        {"learning_rate": "inverse_time", "compression_error": Parsimony(1.0, 2)},
        "-",
    ),
    (
        "1 / (alpha t), eps = 0.1 eta^2",
        {"learning_rate": "inverse_time", "compression_error": Parsimony(0.1, 2)},
        "-",
    ),
    (
        "twice as fast, eta_decay = 2 alpha eta0",
        {
            "learning_rate": "inverse_time", "eta_decay": 2.0 * ALPHA * 0.5,
            "compression_error": Parsimony(1.0, 2),
        },
        "--",
    ),
    (
        "Steps: eta0 / (1 + 0.005 t)^0.75",
        {
            "learning_rate": Steps(lambda t: 0.5 / (1.0 + 0.005 * t) ** 0.75),
            "compression_error": Parsimony(1.0, 2),
        },
        "--",
    ),
    ("constant, eps = 0.02 eta^(3/2)", {"compression_error": Parsimony(0.02)}, ":"),
)  # fmt: skip


def main() -> None:
    """The table, and the picture."""
    samples = int(SAMPLES * share())
    looks = np.unique(np.geomspace(100, samples, 25).astype(int))
    curves: dict[str, list[float]] = {}
    shown = [look for look in (1000, 10_000, 100_000, 1_000_000) if look <= samples]
    with threadpool_limits(1):
        show(
            f"|f_t - f*| in the RKHS, squared error, alpha {ALPHA}, eta0 0.5, mean of two draws",
            ["steps", *(f"{t:,}" for t in shown), "slope of the last two decades", "points"],
            _rows(samples, looks, shown, curves),
        )
    figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for name, _, style in SETTINGS:
        axis.loglog(looks, curves[name], style, label=name)
    first = curves[SETTINGS[0][0]][8]
    axis.loglog(looks[8:], first * np.sqrt(looks[8] / looks[8:]), "k:", label="t^(-1/2)")
    axis.set(xlabel="samples t", ylabel="|f_t - f*|")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)
    print(f"\nPicture: {PICTURE}")


def _rows(
    samples: int, looks: Any, shown: list[int], curves: dict[str, list[float]]
) -> Iterator[tuple[Any, ...]]:
    places = np.linspace(-1.5, 1.5, POINTS)[:, None]
    means = np.sin(3.0 * places[:, 0]) + 0.5 * np.cos(7.0 * places[:, 0])
    K = KERNEL(places)
    best = np.linalg.solve(K / POINTS + ALPHA * np.eye(POINTS), means / POINTS)
    for name, parameters, _ in SETTINGS:
        distances = np.zeros((2, len(looks)))
        for seed in range(2):
            random = np.random.default_rng(seed)
            chosen = random.integers(POINTS, size=samples)
            y = means[chosen] + NOISE * random.normal(size=samples)
            model = POLKRegressor(kernel=KERNEL, alpha=ALPHA, eta0=0.5, **parameters)
            before = 0
            for k, look in enumerate(looks):
                model.partial_fit(places[chosen[before:look]], y[before:look])
                before = look
                distances[seed, k] = _distance(model, places, K, best)
        mean = distances.mean(axis=0)
        curves[name] = mean.tolist()
        late = looks >= samples / 100
        slope = np.polyfit(np.log(looks[late]), np.log(mean[late]), 1)[0]
        values = np.exp(np.interp(np.log(shown), np.log(looks), np.log(mean)))
        yield name, *(f"{value:.3g}" for value in values), f"{slope:.2f}", model.model_order_


def _distance(model: POLKRegressor, places: Any, K: Any, best: Any) -> float:
    """|f - f*|, from both expansions."""
    points, weights = model.dictionary_, model.dual_coef_[0]
    own = weights @ KERNEL(points) @ weights
    both = weights @ KERNEL(points, places) @ best
    return float(np.sqrt(max(own - 2.0 * both + best @ K @ best, 0.0)))
