"""Streams for the fits of `tests/fingerprints.py`: small, and one for each way through the core."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelstream import (
    make_multidist,
    make_regression_outliers,
)
from kernelstream.streams import make_robot_arm

Stream = dict[str, Any]


def plane(n: int = 300, seed: int = 8) -> Stream:
    X, y = make_multidist(n, random_state=seed)
    return {"X": X, "y": y}


def two_classes(n: int = 300) -> Stream:
    made = plane(n)
    return {**made, "y": made["y"] < 2}


def curve(n: int = 300) -> Stream:
    X, y = make_regression_outliers(n, random_state=0)
    return {"X": X, "y": y}


def wide(n: int = 200, features: int = 24, classes: int = 0) -> Stream:
    """More features than distances are computed from one by one."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, features))
    y = X[:, 0] * X[:, -1] + np.sin(2.0 * X[:, 0])
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    return {"X": X, "y": y}


def sparse(n: int = 200, classes: int = 0, ones: bool = False) -> Stream:
    """Rows with few entries; rows of ones are counted instead of multiplied."""
    made = wide(n, 40, classes)
    X = np.where(np.random.default_rng(1).random((n, 40)) < 0.3, made["X"], 0.0)
    return {**made, "X": csr_array((X != 0.0).astype(float) if ones else X)}


def several(n: int = 200) -> Stream:
    """Three numbers per sample."""
    X, Y = make_robot_arm(n, random_state=0)
    return {"X": X, "y": Y}


def weighted(made: Stream) -> Stream:
    weights = np.random.default_rng(2).integers(0, 3, len(made["y"]))
    return {**made, "sample_weight": weights.astype(float)}


def transitions(n: int = 200) -> Stream:
    generator = np.random.default_rng(0)
    states = np.cumsum(0.1 * generator.normal(size=(n + 1, 2)), axis=0)
    return {
        "states": states[:-1],
        "rewards": np.sin(states[1:, 0]),
        "next_states": states[1:],
        "terminal": generator.random(n) < 0.05,
    }


def rows(n: int = 200) -> Stream:
    return {"X": np.random.default_rng(0).normal(size=(1500, 6))[:n]}


def only_rows(made: Stream) -> Stream:
    return {"X": made["X"]}
