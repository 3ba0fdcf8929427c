"""Eight shards of ijcnn1 under a cap of 600 points, against one model that sees everything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import folder
from benchmarks.settings import STREAMS
from benchmarks.tables import show
from benchmarks.timing import best
from kernelstream import POLKClassifier, fit_sharded, merge
from kernelstream.streams import load_dataset

SHARDS = 8
CAP = 600
ORDERS = 3
THREADS = (1, 2, 4, 8)
STEP, ERROR = STREAMS["ijcnn1"]["eta0"], STREAMS["ijcnn1"]["compression_error"]
#: Label, parameters, how often the data is seen, after how many samples per shard models are merged
#: (None: once, at the end), and whether there are shards.
RUNS: list[tuple[str, dict[str, float], int, int | None, bool]] = [
    ("one model", {}, 1, None, False),
    (
        "one model, smaller error: all points used",
        {"compression_error": ERROR / 2},
        1, None, False,
    ),
    ("the same, data seen three times", {"compression_error": ERROR / 2}, 3, None, False),
    ("8 shards, the same settings", {}, 1, None, True),
    ("8 times the step", {"eta0": 8 * STEP, "compression_error": 4 * ERROR}, 1, None, True),
    (
        "the same, smaller error, shards' models of up to 1000 points",
        {"eta0": 8 * STEP, "compression_error": 3 * ERROR, "max_points": 1000},
        1, None, True,
    ),
    (
        "8 times the step, merged every 400",
        {"eta0": 8 * STEP, "compression_error": ERROR},
        1, 400, True,
    ),
    (
        "8 times the step, data seen twice",
        {"eta0": 8 * STEP, "compression_error": 4 * ERROR},
        2, None, True,
    ),
    (
        "4 times the step, data seen three times",
        {"eta0": 4 * STEP, "compression_error": 2 * ERROR},
        3, None, True,
    ),
]  # fmt: skip


def main() -> None:
    """Test errors for three orders of the stream, and times with one thread and with more."""
    if folder() is None:
        print("\nsharding: data not present")
        return
    with threadpool_limits(1):
        show(
            f"ijcnn1, at most {CAP} points, hinge, {ORDERS} random orders",
            ["run", "eta0", "compression_error", "test error % (each order)", "mean", "points",
             "gap to one model", "to the better one"],
            _rows(),
        )  # fmt: skip
        show(
            "8 shards, the same settings, first order: what merging costs",
            ["merged", "points", "test error %"],
            _merges(),
        )
        show(
            "Seconds of fit_sharded, 8 shards, 8 times the step",
            ["threads", "s", "the same model"],
            _times(),
        )


def _data(order: int) -> tuple[Any, Any, Any, Any]:
    data = load_dataset("ijcnn1", folder())
    drawn = np.random.default_rng(order).permutation(len(data.y_train))
    X, X_test = data.X_train.astype(np.float64), data.X_test.astype(np.float64)
    return X[drawn], data.y_train[drawn], X_test, data.y_test


def _model(chosen: dict[str, float]) -> POLKClassifier:
    return POLKClassifier(**{**STREAMS["ijcnn1"], "max_points": CAP, **chosen}, random_state=0)


def _rows() -> Iterator[tuple[Any, ...]]:
    whole: list[float] = []
    streams = [_data(order) for order in range(ORDERS)]
    for label, chosen, passes, merge_every, sharded in RUNS:
        errors, points = [], []
        for X, y, X_test, y_test in streams:
            model = _model(chosen)
            if sharded:
                model = fit_sharded(
                    model, _shards(X, y, passes), classes=np.unique(y), max_points=CAP,
                    merge_every=merge_every,
                )  # fmt: skip
            else:
                for _ in range(passes):
                    model.partial_fit(X, y)
            errors.append(100.0 * (1.0 - model.score(X_test, y_test)))
            points.append(model.model_order_)
        mean = float(np.mean(errors))
        whole += [] if sharded or passes > 1 else [mean]
        gaps = [mean - whole[0], mean - min(whole)]
        text = ", ".join(f"{error:.2f}" for error in errors)
        used = {**STREAMS["ijcnn1"], **chosen}
        yield label, used["eta0"], used["compression_error"], text, mean, max(points), *gaps


def _shards(X: Any, y: Any, passes: int) -> list[list[tuple[Any, Any]]]:
    size = len(y) // SHARDS
    cuts = [slice(i * size, (i + 1) * size) for i in range(SHARDS)]
    return [[(X[cut], y[cut])] * passes for cut in cuts]


def _merges() -> Iterator[tuple[Any, ...]]:
    X, y, X_test, y_test = _data(0)
    shards = [shard[0] for shard in _shards(X, y, 1)]
    classes = np.unique(y)
    parts = [_model({}).partial_fit(*shard, classes=classes) for shard in shards]
    uncapped = _model({"max_points": sum(part.model_order_ for part in parts)})
    for label, model in (
        ("as a tree", fit_sharded(_model({}), shards, classes=classes)),
        ("at once", merge(parts)),
        ("as a tree, without a cap", fit_sharded(uncapped, shards, classes=classes)),
    ):
        yield label, model.model_order_, 100.0 * (1.0 - model.score(X_test, y_test))


def _times() -> Iterator[tuple[Any, ...]]:
    X, y, _, _ = _data(0)
    model = _model({"eta0": 8 * STEP, "compression_error": 4 * ERROR})
    prints: list[str] = []

    def run(threads: int) -> None:
        found = fit_sharded(model, _shards(X, y, 1), classes=np.unique(y), workers=threads)
        prints.append(found.fingerprint())

    for threads in (n for n in THREADS if n <= (os.cpu_count() or 1)):
        seconds = best(lambda threads=threads: run(threads))  # type: ignore[misc]
        yield threads, seconds, prints[-1] == prints[0]
