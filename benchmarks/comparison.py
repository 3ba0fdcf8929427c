"""Ours against other programs: the same stream, one process, one thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks import lower_bound, peers
from benchmarks.data import Labelled, whole_stream
from benchmarks.settings import STREAMS
from benchmarks.tables import show
from kernelstream import POLKClassifier

ROWS = 30_000  # of each stream; slower programs see fewer


def main() -> None:
    """Print one table per stream."""
    with threadpool_limits(1):
        for name in ("multidist", "a9a", "cod-rna", "ijcnn1"):
            stream = whole_stream(name, 0)
            if stream is None:
                print(f"\n{name}: data not present")
                continue
            _compare(name, stream)


def _compare(name: str, stream: Labelled) -> None:
    X, y = stream.X[:ROWS], stream.y[:ROWS]
    settings = {"gamma": 1 / 1.2, "eta0": 0.5, "compression_error": 0.3} | STREAMS.get(name, {})

    def rows() -> Iterator[tuple[Any, ...]]:
        sparse = np.count_nonzero(X) < 0.3 * X.size
        for form in ("dense", "CSR") if sparse else ("dense",):
            yield _ours(f"kernelstream POLK, {form}", X if form == "dense" else csr_array(X), y,
                        settings)  # fmt: skip
        for peer in peers.PEERS:
            result = peer.run(
                X, y, stream.X_test, stream.y_test, gamma=settings["gamma"], max_seconds=4
            )
            error = result.error_percent
            yield (
                result.name, result.microseconds, error, result.model_size, result.rows, "",
                result.settings,
            )  # fmt: skip

    show(
        f"{name}: {len(y)} samples, {X.shape[1]} features",
        ["program", "us per sample", "error %", "model size", "rows", "x lower bound", "settings"],
        rows(),
    )


def _ours(label: str, X: Any, y: Any, settings: dict[str, Any]) -> tuple[Any, ...]:
    classes = np.unique(y)
    POLKClassifier(**settings).predict_then_learn(X[:100], y[:100], classes)  # compile
    seconds = np.inf
    for _ in range(2):
        model = POLKClassifier(max_points=None, random_state=0, **settings)
        start = time.perf_counter()
        said = model.predict_then_learn(X, y, classes)
        seconds = min(seconds, time.perf_counter() - start)
    status = model._state.status[0]
    width = X.nnz / X.shape[0] if hasattr(X, "nnz") else X.shape[1]
    bound = lower_bound.microseconds(
        model.model_order_, max(1, round(width)), status["taken"] / len(y),
        status["removed"] / len(y),
    )  # fmt: skip
    each = seconds / len(y) * 1e6
    text = ", ".join(f"{key} {value:.4g}" for key, value in settings.items())
    error = 100.0 * float(np.mean(said != y))
    return label, each, error, f"{model.model_order_} points", len(y), each / bound, text
