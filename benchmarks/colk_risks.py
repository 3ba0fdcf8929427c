"""COLK: what each risk does to the distribution of the losses, and what a step costs."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.tables import show
from benchmarks.timing import best
from kernelstream import COLKRegressor, POLKRegressor

SEEDS = 5
SAMPLES = 20_000
#: (risk, weights)
RISKS = (
    ("variance", (0.1, 0.3, 1.0)),
    ("semivariance", (0.1, 0.3, 1.0)),
    ("moments", (0.01, 0.1)),
    ("cvar", (0.3, 1.0)),
)


def samples(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Skewed noise of mean zero, eight times larger on the right half."""
    X = random.uniform(-1.0, 1.0, (SAMPLES, 1))
    spread = np.where(X[:, 0] > 0.0, 0.8, 0.1)
    return X, np.sin(3.0 * X[:, 0]) + spread * (random.exponential(size=SAMPLES) - 1.0)


def measures(losses: np.ndarray) -> dict[str, float]:
    """The risks of a sample of losses, by their definitions."""
    mean = losses.mean()
    return {
        "mean loss": mean,
        "variance": losses.var(),
        "semivariance": np.mean(np.maximum(losses - mean, 0.0) ** 2),
        "moments": sum(np.mean((losses - mean) ** p) for p in (2, 3, 4)),
        "cvar": losses[losses >= np.quantile(losses, 0.9)].mean(),
    }


def run(**parameters: Any) -> list[dict[str, float]]:
    """The measures on fresh samples, seed by seed."""
    found = []
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        X, y = samples(random)
        model = COLKRegressor(gamma=5.0, eta0=0.05, average=True, random_state=0, **parameters)
        X_test, y_test = samples(random)
        found.append(measures((model.partial_fit(X, y).predict(X_test) - y_test) ** 2 / 2.0))
    return found


def risk_rows() -> Iterator[tuple[object, ...]]:
    """Means over the seeds; for the risk aimed at, in how many seeds it fell."""
    neutral = run(risk_weight=0.0)
    yield "none", "0", *_means(neutral), ""
    for risk, weights in RISKS:
        for weight in weights:
            found = run(risk=risk, risk_weight=weight)
            lower = sum(a[risk] < b[risk] for a, b in zip(found, neutral, strict=True))
            yield risk, str(weight), *_means(found), f"{lower} of {SEEDS}"


def _means(found: list[dict[str, float]]) -> list[str]:
    """Of each measure over the seeds, with three digits."""
    return [f"{np.mean([one[name] for one in found]):.3g}" for name in found[0]]


def risks() -> None:
    """Print what each risk does."""
    names = list(measures(np.ones(2)))
    show(
        f"Losses of fresh samples, {SEEDS} seeds, skewed heteroscedastic noise",
        ("risk", "weight", *names, "its own risk lower in"),
        risk_rows(),
    )


def speed_rows() -> Iterator[tuple[object, ...]]:
    """Microseconds per sample at the same number of points, every step compressing."""
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, (6000, 4))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2] * X[:, 3] + 0.1 * random.normal(size=6000)
    for points in (25, 50, 100, 200, 400):
        shared: dict[str, Any] = {"gamma": 1.0, "max_points": points, "compression_error": 1e-3}
        models = {
            "POLK": POLKRegressor(**shared),
            "POLK, batches of 2": POLKRegressor(batch_size=2, **shared),
            "COLK (20)": COLKRegressor(risk="moments", **shared),
            "COLK (19)": COLKRegressor(risk="moments", tracking="average", **shared),
        }
        times = {}
        for name, model in models.items():
            model.partial_fit(X[:2000], y[:2000])
            learn = partial(model.partial_fit, X[2000:], y[2000:])
            times[name] = best(learn, clock=time.process_time) / 4000 * 1e6
        orders = {model.model_order_ for model in models.values()}
        ratio = times["COLK (20)"] / times["POLK"]
        yield "/".join(map(str, sorted(orders))), *times.values(), ratio


def speed() -> None:
    """Print the time per sample beside POLK's."""
    names = ("POLK", "POLK, batches of 2", "COLK (20)", "COLK (19)")
    columns = ("points", *(f"{name}, us" for name in names), "COLK (20) / POLK")
    show("Processor time per sample, one thread, 4 features", columns, speed_rows())
