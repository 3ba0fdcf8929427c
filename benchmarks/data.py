"""Streams for the benchmarks: real ones from the folder named by KERNELSTREAM_DATA."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from kernelstream.streams import load_dataset, make_multidist


class Labelled(NamedTuple):
    """A stream in random order, and a test set where there is one."""

    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None


def folder() -> Path | None:
    """Where the data sets are, or None."""
    for place in (os.environ.get("KERNELSTREAM_DATA"), Path("../shared/data")):
        if place and Path(place).is_dir():
            return Path(place)
    return None


def whole_stream(name: str, seed: int) -> Labelled | None:
    """Training and test part of a data set as one stream; None where the data is not present."""
    if name == "multidist":
        return Labelled(*make_multidist(20_000, 2500, random_state=seed))
    if folder() is None or not (folder() / f"{name}.npz").exists():  # type: ignore[operator]
        return None
    data = load_dataset(name, folder())
    X, y = data.X_train, data.y_train
    if data.X_test is not None:
        X, y = np.concatenate([X, data.X_test]), np.concatenate([y, data.y_test])
    X = X.reshape(len(X), -1).astype(np.float64)
    if name in ("cod-rna", "covtype"):
        X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(seed).permutation(len(y))
    return Labelled(X[order], np.unique(y, return_inverse=True)[1][order])
