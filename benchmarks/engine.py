"""The engine against what its arithmetic must take: many outputs, delayed projection, first use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import folder
from benchmarks.share import share
from benchmarks.tables import show
from benchmarks.timing import best
from kernelstream import AVMClassifier, POLKClassifier, POLKRegressor
from kernelstream.streams import load_dataset

_FIRST_USE = """
import time; start = time.perf_counter()
import kernelstream, numpy as np
X = np.random.default_rng(0).normal(size=(200, 3)); y = (X[:, 0] > 0).astype(int)
kernelstream.{}(random_state=0).partial_fit(X, y).predict(X)
print(time.perf_counter() - start)
"""


def outputs() -> None:
    """A step with many outputs, in units of a step with one, and of what its flops would say."""
    points, features, n = 100, 10, int(20_000 * share())
    rng = np.random.default_rng(0)
    X = rng.normal(size=(max(n, 500), features))

    def model(kind: Any, classes: int) -> Any:
        options = (
            {"alpha": 1e-3, "delta": 0.1} if kind is AVMClassifier else {"compression_error": 0.0}
        )
        made = kind("hinge", max_points=points, gamma=0.1, random_state=0, **options)
        return made.partial_fit(X[:500], np.arange(500) % classes)

    def rows() -> Iterator[tuple[Any, ...]]:
        for kind in (AVMClassifier, POLKClassifier):
            single = 0.0
            for classes in (2, 3, 5, 10, 23):
                y = rng.integers(classes, size=len(X))
                made = model(kind, classes)
                each = best(lambda m=made, y=y: m.decision_function(X), 5) / len(X) * 1e6
                step = best(lambda m=made, y=y: m.partial_fit(X, y), 3) / len(X) * 1e6
                single = single or step
                count = 1 if classes == 2 else classes
                # Distances and kernel values once (about 2 features + 20 operations), then a
                # multiplication and an addition for each output.
                flops = 2 * features + 20
                expected = (flops + 2 * count) / (flops + 2)
                yield (
                    kind.__name__, made.model_order_, classes, step, step / single, expected, each
                )  # fmt: skip

    with threadpool_limits(1):
        show(
            "Many outputs, one thread",
            ["estimator", "points", "classes", "us per step", "over two classes",
             "the same of the flops", "us per prediction"],
            rows(),
        )  # fmt: skip


def slack() -> None:
    """Steps at a cap of 1000 points: projected one by one, and together."""
    if folder() is None:
        print("cadata is not here: see docs/benchmarks.md")
        return
    data = load_dataset("cadata", folder())
    order = np.random.default_rng(0).permutation(len(data.y_train))
    X, y = data.X_train[order].astype(float), data.y_train[order].astype(float)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    n, first = int(20_000 * share()), 1500
    if share() < 1.0:
        n, first = 1200, 1100
    a, b = np.random.default_rng(0).normal(size=(1000, 1000)), np.ones((64, 1000))

    def rows() -> Iterator[tuple[Any, ...]]:
        # Two products of each new point's kernel values with the factor are the least there is.
        least = 2.0 * best(lambda: b @ a, 20) / len(b) * 1e6
        yield "two matrix products with the factor, no more", "", least, "", 1.0
        single = 0.0
        for size in (0, 16, 32, 64, 128):
            model = POLKRegressor(
                gamma=1.0, compression_error=0.0, max_points=1000, slack=size, random_state=0
            ).partial_fit(X[:first], y[:first])
            start = time.perf_counter()
            predictions = model.predict_then_learn(X[first:n], y[first:n])
            each = (time.perf_counter() - start) / (n - first) * 1e6
            single = single or each
            error = float(np.sqrt(np.mean((predictions - y[first:n]) ** 2)))
            yield f"slack={size}", error, each, single / each, each / least

    with threadpool_limits(1):
        show(
            f"cadata, rows {first:,} to {n:,}, 1000 points, one thread",
            ["", "RMSE before learning", "us per sample", "times faster", "over the least"],
            rows(),
        )  # fmt: skip


def first() -> None:
    """The first model of a process, with an empty cache and with a warm one."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for name in ("POLKClassifier", "AVMClassifier", "COLKClassifier"):
            with tempfile.TemporaryDirectory() as cache:
                seconds = []
                for _ in range(2):
                    done = subprocess.run(
                        [sys.executable, "-c", _FIRST_USE.format(name)],
                        env={**os.environ, "NUMBA_CACHE_DIR": cache},
                        capture_output=True, text=True, check=True,
                    )  # fmt: skip
                    seconds.append(float(done.stdout))
                yield name, *seconds

    show("First use, import included", ["", "empty cache, s", "warm cache, s"], rows())
