"""COLK's page, claim by claim: which steps are stable, what is left of the tracker's past in a
pair, and what is minimised when deviations are cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from benchmarks.tables import show
from kernelstream import COLKRegressor, DivergenceError

SEEDS = 5
CLIP = 4.0
NOISE = 0.75


def main() -> None:
    """All three."""
    show(
        f"Stability with clip = {CLIP:g}, risk_weight 1, squared error, k(x, x) = 1: 4000 samples "
        f"of a curve with noise {NOISE:g}, {SEEDS} seeds",
        ["risk", "eta0", "eta0 (1 + clip) / 2", "eta0 (1 + 2 clip) / 2",
         "multiples of the gradient, smallest to largest", "mean loss of 2000 others, median",
         "largest"],
        stability(),
    )  # fmt: skip
    show(
        "The step of the next pair after trackers that have seen other losses, variance: |change "
        "of the step| / |step|",
        ["tracking", "clip", "another g alone", "another function before the last step"],
        past(),
    )
    show(
        f"A single number f learned from targets of which a fiftieth is 7, the others -1/7, 50,000 "
        f"samples, {SEEDS} seeds: distance to the minimiser of the objective",
        ["risk", "weight", "clip", "minimiser", "learned", "distance", "minimiser of the mean"],
        minimisers(),
    )


# ---- stability ------------------------------------------------------------------------


def _curve(n: int, random: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    X = random.uniform(-1.0, 1.0, (n, 1))
    return X, np.sin(3.0 * X[:, 0]) + NOISE * random.normal(size=n)


def stability() -> Iterator[tuple[Any, ...]]:
    """Steps around both bounds: which multiples act, and whether the model stays good."""
    for risk in ("variance", "moments", "semivariance"):
        for eta0 in (0.2, 0.4, 0.75):
            found, losses = [], []
            for seed in range(SEEDS):
                random = np.random.default_rng(seed)
                model = COLKRegressor(
                    risk=risk, risk_weight=1.0, clip=CLIP, gamma=5.0, eta0=eta0, random_state=0
                )
                loss, some = _run(model, random)
                losses.append(loss)
                found += some
            yield (
                risk, eta0, f"{eta0 * (1.0 + CLIP) / 2.0:.2f}",
                f"{eta0 * (1.0 + 2.0 * CLIP) / 2.0:.2f}",
                f"{min(found):.1f} to {max(found):.1f}", f"{np.median(losses):.3g}",
                f"{max(losses):.3g}",
            )  # fmt: skip


def _run(model: Any, random: np.random.Generator) -> tuple[float, list[float]]:
    """The mean test loss after 4000 samples; the multiples of every tenth pair."""
    X, y = _curve(4000, random)
    found: list[float] = []
    try:
        for first in range(0, 4000, 20):
            model.partial_fit(X[first : first + 18], y[first : first + 18])
            found += multiples(model, X[first + 18 : first + 20], y[first + 18 : first + 20])
    except DivergenceError:
        return np.inf, found
    X_test, y_test = _curve(2000, random)
    return float(np.mean((model.predict(X_test) - y_test) ** 2) / 2.0), found


def multiples(model: Any, X: NDArray[Any], y: NDArray[Any]) -> list[float]:
    """Learn a pair; by which multiples of their own gradients its samples were moved.

    From the change of f at the two samples, without compression; none where the samples are so
    close that their parts cannot be told apart.
    """
    kept = model.compression_error
    model.set_params(compression_error=0.0)
    before = model.predict(X)
    after = model.partial_fit(X, y).predict(X)
    model.set_params(compression_error=kept)
    K = np.exp(-model.gamma * (X - X.T) ** 2)
    if np.linalg.cond(K) > 100.0:
        return []
    # alpha shrinks f by 2e-7 of itself: nothing here
    coefficients = np.linalg.solve(K, after - before)
    return list(coefficients / (-model.eta0 / 2.0 * (before - y)))


# ---- the tracker's past ---------------------------------------------------------------


def past() -> Iterator[tuple[Any, ...]]:
    """The same next pair after a g, or a function before the last step, that was changed."""
    random = np.random.default_rng(0)
    X, y = _curve(402, random)
    for tracking in ("average", "momentum"):
        for clip in (None, 0.1):
            steps = {}
            for change in ("none", "g", "function"):
                model = COLKRegressor(
                    risk="variance", risk_weight=1.0, clip=clip, gamma=5.0, eta0=0.1,
                    tracking=tracking, compression_error=0.0, random_state=0,
                ).partial_fit(X[:400], y[:400])  # fmt: skip
                state = model._state
                if change == "g":
                    state.status[0]["tracker"] += 0.2
                if change == "function" and tracking == "momentum":
                    state.weights[-1, : state.order] *= 0.5
                before = model.predict(X[400:])
                steps[change] = model.partial_fit(X[400:], y[400:]).predict(X[400:]) - before
            size = np.linalg.norm(steps["none"])
            yield (
                tracking, "none" if clip is None else clip,
                *(f"{np.linalg.norm(steps[name] - steps['none']) / size:.1e}"
                  for name in ("g", "function")),
            )  # fmt: skip


# ---- what is minimised ----------------------------------------------------------------


def _skewed(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    return np.where(random.random(n) < 0.02, 7.0, -1.0 / 7.0)


def objective(losses: NDArray[np.float64], risk: str, weight: float) -> float:
    """Of the page's table."""
    mean = losses.mean()
    away = losses - mean
    if risk == "semivariance":
        away = np.maximum(away, 0.0)
    powers = (2, 3, 4) if risk == "moments" else (2,)
    return float(mean + weight * sum(np.mean(away**p) for p in powers))


def minimisers() -> Iterator[tuple[Any, ...]]:
    """A kernel that is 1 everywhere makes f a number, whose best value is found by search."""
    many = _skewed(1_000_000, np.random.default_rng(99))
    for risk, weight in (("variance", 0.1), ("semivariance", 0.1), ("moments", 0.1),
                         ("moments", 0.01)):  # fmt: skip
        best = minimize_scalar(
            lambda f, risk=risk, weight=weight: objective((f - many) ** 2 / 2.0, risk, weight),
            bounds=(-1.0, 20.0), method="bounded",
        ).x  # fmt: skip
        for clip in (CLIP, 100.0 * CLIP):
            learned = []
            for seed in range(SEEDS):
                random = np.random.default_rng(seed)
                y = _skewed(50_000, random)
                model = COLKRegressor(
                    risk=risk, risk_weight=weight, clip=clip, gamma=1e-9, eta0=0.005, alpha=0.0,
                    average=True, random_state=0,
                )  # fmt: skip
                try:
                    model.partial_fit(np.zeros((len(y), 1)), y)
                    learned.append(float(model.predict(np.zeros((1, 1)))[0]))
                except DivergenceError:
                    learned.append(np.nan)
            middle, spread = np.mean(learned), np.std(learned)
            yield (
                risk, weight, clip, f"{best:.3f}", f"{middle:.3f} ± {spread:.3f}",
                f"{abs(middle - best):.3f}", f"{many.mean():.3f}",
            )  # fmt: skip
