"""Which scaling gives the AVM paper's number of core points, and what a constant guess reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.data import folder
from benchmarks.tables import show
from kernelstream import Coverage
from kernelstream.streams import load_dataset

ROWS = 100_000
_SCALINGS = {
    "as it is": FunctionTransformer(),
    "[0, 1]": MinMaxScaler(),
    "[-1, 1]": MinMaxScaler((-1, 1)),
    "standardised": StandardScaler(),
}
#: Data set, the paper's core points (Tables 4 and 5), and the scalings and diameters tried.
_TRIED: tuple[tuple[str, int, tuple[tuple[str, float], ...]], ...] = (
    ("a9a", 142, (("as it is", 7.0), ("as it is", 14.0))),
    ("w8a", 131, (("as it is", 13.0),)),
    ("cod-rna", 436, (("[0, 1]", 1.0), ("[-1, 1]", 1.0), ("standardised", 1.0))),
    ("ijcnn1", 500, (("as it is", 1.0), ("as it is", 2.0))),
    ("covtype", 59, (("[0, 1]", 2.5), ("[0, 1]", 3.0), ("[0, 1]", 3.5))),
    ("kddcup99_10pct", 115, (("[0, 1]", 3.0), ("standardised", 3.0))),
    ("poker_partial", 393, (("as it is", 11.0), ("as it is", 12.0), ("as it is", 13.0))),
    ("casp", 166, (("[0, 1]", 4.0), ("[-1, 1]", 4.0), ("standardised", 4.0))),
)


def main() -> None:
    """Both tables, one thread."""
    with threadpool_limits(1):
        show(
            f"Cells of the first {ROWS} samples in a random order",
            ["data", "features", "delta", "cells", "paper, all samples"],
            _cells(),
        )
        show(
            "Always the most frequent class",
            ["data", "mistakes on all, %", "accuracy on the test part, %"],
            _constant_guess(),
        )


def _load(name: str) -> Any:
    place = folder()
    present = place is not None and (place / f"{name}.npz").exists()
    return load_dataset(name, place) if present else None


def _cells() -> Iterator[tuple[Any, ...]]:
    for name, paper, tried in _TRIED:
        data = _load(name)
        if data is None:
            yield name, "data not present", "", "", ""
            continue
        X = data.X_train if data.X_test is None else np.concatenate([data.X_train, data.X_test])
        X = X[np.random.default_rng(0).permutation(len(X))].astype(np.float64)
        for scaling, delta in tried:
            scaled = _SCALINGS[scaling].fit_transform(X)[:ROWS]
            cells = len(Coverage(delta=delta).fit(scaled).core_points_)
            yield name, scaling, delta, cells, paper


def _constant_guess() -> Iterator[tuple[Any, ...]]:
    for name, _, _ in _TRIED:
        data = _load(name)
        if data is None or name == "casp":
            continue
        train, test = data.y_train.tolist(), [] if data.y_test is None else data.y_test.tolist()
        (guess, _), *_ = Counter(train).most_common(1)
        (_, hits), *_ = Counter(train + test).most_common(1)
        mistakes = 100.0 * (1.0 - hits / len(train + test))
        accuracy = 100.0 * test.count(guess) / len(test) if test else "no such part"
        yield name, mistakes, accuracy
