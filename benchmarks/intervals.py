"""How often intervals of 90 % contain the target, in predict-then-learn order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.data import folder
from benchmarks.tables import show
from kernelstream import AutoRegressor, KRLSTRegressor

COVERAGE = 0.9
#: Rows of a stream at most: a few minutes in all.
MOST = 12_000
#: Rows over which coverage is measured on the way.
WINDOW = 500
#: Values before one to predict it from.
LAGS = 10

TABLES = ("casp", "cadata", "kin8nm", "abalone", "concrete")
SERIES = {"laser": "santafe_laser", "mg30": "mackey_glass_t30", "sunspots": "sunspots_monthly"}


def jump(n: int = 6000) -> tuple[Any, Any]:
    """A function that is another one, with ten times the noise, from the middle on."""
    random = np.random.default_rng(0)
    X, noise = random.normal(size=(n, 5)), random.normal(size=n)
    before = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * noise
    after = 10.0 - 4.0 * X[:, 1] * X[:, 2] + noise
    return X, np.where(np.arange(n) < n // 2, before, after)


def streams() -> Iterator[tuple[str, Any, Any]]:
    """Names, rows and targets, in the order of their files."""
    yield "generated, with a jump", *jump()
    place = folder()
    if place is None:
        return
    for name in TABLES:
        with np.load(place / f"{name}.npz") as data:
            yield name, data["X"][:MOST].astype(float), data["y"][:MOST].astype(float)
    with np.load(place / "timeseries.npz") as data:
        for name, key in SERIES.items():
            values = data[key][: MOST + LAGS].astype(float)
            windows = np.lib.stride_tricks.sliding_window_view(values, LAGS)[:-1]
            yield name, np.ascontiguousarray(windows), values[LAGS:]


def measured(model: Any, X: Any, y: Any) -> list[Any]:
    """Coverage in all, in the worst and the best window; width and error in deviations of y."""
    low, high = model.predict_interval_then_learn(X, y, coverage=COVERAGE).T
    inside = (low <= y) & (y <= high)
    sums = np.convolve(inside, np.ones(WINDOW), "valid") / WINDOW
    known = np.isfinite(low)  # not before two targets differed
    error = np.sqrt(np.mean(np.square(0.5 * (low[known] + high[known]) - y[known])))
    width = np.median(high[known] - low[known])
    percent = [f"{100 * part:.1f}" for part in (inside.mean(), sums.min(), sums.max())]
    return [*percent, width / y.std(), error / y.std()]


def main() -> None:
    """Both regressors with intervals, with their defaults."""
    columns = ["stream", "rows", "coverage %", f"worst {WINDOW} rows", f"best {WINDOW} rows",
               "median width", "RMSE"]  # fmt: skip
    for kind in (AutoRegressor, KRLSTRegressor):
        show(
            f"{kind.__name__}: intervals of {100 * COVERAGE:.0f} %, width and error in standard "
            "deviations of the target",
            columns,
            (
                [name, len(y), *measured(kind(random_state=0), X, y)]
                for name, X, y in streams()
            ),
        )  # fmt: skip
