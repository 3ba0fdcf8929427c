"""Several targets: one dictionary for all against a model for each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import AutoRegressor, AVMRegressor, KRLSTRegressor, POLKRegressor
from kernelstream.streams import make_robot_arm

SAMPLES, TEST = 20_000, 2000


def main() -> None:
    """A robot arm with three coordinates of its hand."""
    with threadpool_limits(1):
        show(
            "make_robot_arm, coordinates in deviations: RMSE on 2,000 others, one pass",
            ["method", "models", "RMSE", "points", "weights", "us per sample"],
            _rows(),
        )
        show(
            "Three targets that share nothing, automatic model: RMSE in deviations as it goes",
            ["models", "product", "linear", "random walk", "points", "us per sample"],
            _unrelated(),
        )


def _unrelated() -> Iterator[tuple[Any, ...]]:
    """A product of two columns, a linear function of four, and a walk of its own."""
    count, random = int(SAMPLES * share()), np.random.default_rng(1)
    X = random.normal(size=(count, 5))
    product = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * random.normal(size=count)
    linear = X @ [1.0, 2.0, -1.0, 0.5, 0.0] + 0.3 * random.normal(size=count)
    Y = np.column_stack([product, linear, np.cumsum(random.normal(size=count))])
    for words, columns in (("one", [slice(None)]), ("three", [0, 1, 2])):
        models = [AutoRegressor(random_state=0) for _ in columns]
        start = time.process_time()
        parts = [
            model.predict_then_learn(X, Y[:, own])
            for model, own in zip(models, columns, strict=True)
        ]
        seconds = time.process_time() - start
        errors = ((np.column_stack(parts) - Y) / Y.std(axis=0))[count // 10 :]
        found = [f"{error:.3f}" for error in np.sqrt(np.square(errors).mean(axis=0))]
        points = " + ".join(str(model.model_order_) for model in models)
        yield words, *found, points, f"{seconds / count * 1e6:.0f}"


def _rows() -> Iterator[tuple[Any, ...]]:
    count = int(SAMPLES * share())
    X, Y = make_robot_arm(count + TEST, random_state=0)
    X, Y = (X - X[:500].mean(axis=0)) / X[:500].std(axis=0), Y / Y[:500].std(axis=0)
    train, test = slice(count), slice(count, None)
    for name, model in {
        "POLK": POLKRegressor(gamma=0.25, eta0=0.5, compression_error=0.03, max_points=1000),
        "AVM": AVMRegressor(gamma=0.25, alpha=1e-3, delta=0.8, max_points=2000),
        "KRLS-T": KRLSTRegressor(gamma=0.25, forget=1.0, max_points=128, random_state=0),
        "automatic": AutoRegressor(random_state=0),
    }.items():
        clone(model).partial_fit(X[:500], Y[:500])  # compile, or load
        clone(model).partial_fit(X[:500], Y[:500, 0])
        together = [(clone(model), slice(None))]
        apart = [(clone(model), column) for column in range(3)]
        for words, models in (("one", together), ("three", apart)):
            start = time.process_time()
            for each, columns in models:
                each.partial_fit(X[train], Y[train, columns])
            seconds = time.process_time() - start
            said = np.column_stack([each.predict(X[test]) for each, _ in models])
            error = np.sqrt(np.mean((said - Y[test]) ** 2))
            orders = [each.model_order_ for each, _ in models]
            weights = 3 * orders[0] if words == "one" else sum(orders)
            points = " + ".join(map(str, orders))
            yield name, words, f"{error:.3f}", points, weights, f"{seconds / count * 1e6:.0f}"
