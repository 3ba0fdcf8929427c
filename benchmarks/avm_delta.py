"""AVM: the diameter that ``delta="auto"`` takes, and the range of the paper's Section 9.2."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import folder
from benchmarks.tables import show
from kernelstream import AVMClassifier, AVMRegressor, CapWarning
from kernelstream.compression.coverage import FIRST_SAMPLES, distance_statistics
from kernelstream.rows import dense_rows
from kernelstream.streams import load_dataset, make_multidist

ROWS = 20_000
_STREAMS = ("multidist", "a9a", "ijcnn1", "cod-rna", "elec2", "casp", "kin8nm")


def main() -> None:
    """Mistakes (RMSE for numbers) and points for four diameters."""
    warnings.simplefilter("ignore", CapWarning)
    with threadpool_limits(1):
        show(
            f"AVM on {ROWS} standardised samples, defaults otherwise: mistakes, % (RMSE) / points",
            ["stream", "mean - std (auto)", "2 mean - 2 std", "2 mean", "2 mean + 2 std"],
            _rows(),
        )


def _rows() -> Iterator[tuple[Any, ...]]:
    for name in _STREAMS:
        data = _load(name)
        if data is None:
            yield name, "data not present", "", "", ""
            continue
        X, y = data
        mean, std = distance_statistics(dense_rows(X[:FIRST_SAMPLES]))
        deltas = (mean - std, 2.0 * (mean - std), 2.0 * mean, 2.0 * (mean + std))
        yield name, *(_run(X, y, delta) for delta in deltas)


def _load(name: str) -> tuple[Any, Any] | None:
    if name == "multidist":
        return make_multidist(ROWS, random_state=6)
    place = folder()
    if place is None or not (place / f"{name}.npz").exists():
        return None
    data = load_dataset(name, place)
    order = np.random.default_rng(0).permutation(len(data.X_train))[:ROWS]
    X = np.asarray(data.X_train[order], np.float64)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), data.y_train[order]


def _run(X: Any, y: Any, delta: float) -> str:
    if y.dtype.kind == "f" and len(np.unique(y)) > 20:
        y = (y - y.mean()) / y.std()
        model: Any = AVMRegressor(delta=delta)
        said = model.predict_then_learn(X, y)
        return f"{np.sqrt(np.mean((said - y) ** 2)):.3f} / {model.model_order_}"
    model = AVMClassifier(delta=delta)
    wrong = model.predict_then_learn(X, y, classes=np.unique(y)) != y
    return f"{100.0 * wrong.mean():.2f} / {model.model_order_}"
