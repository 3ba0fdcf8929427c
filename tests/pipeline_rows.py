"""Streams and models of raw rows for the tests of `StreamModel`."""

import numpy as np
import pytest

from kernelstream import POLKClassifier, POLKRegressor
from kernelstream.pipeline import StreamModel
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch, Text
from tests.test_preparation import cut

N = 160
WARM_UP = 40


def rows(task, *, texts, n=N, gaps=True, seed=0):
    """A stream with a target that the features explain, some targets missing."""
    random = np.random.default_rng(seed)
    x, z = random.normal(3.0, 2.0, n), random.normal(size=n)
    colour = random.integers(0, 3, n).astype(np.int32)
    columns = {"x": x, "z": z}
    signal = (x - 3.0) / 2.0 + (0.5 * (colour - 1) if texts else 0.0)
    if texts:
        columns["colour"] = Text(colour, ["red", "green", "blue"])
    missing = (random.random(n) < 0.2) & gaps
    missing[:3] = gaps  # a stream may begin without targets
    if task == "regression":
        target = 500.0 + 100.0 * np.sin(signal)
        columns["y"] = np.where(missing, np.nan, target)
    else:
        classes = np.where((np.arange(n) > n // 2) & (signal > 1.0), 2, signal > 0.0)  # one late
        codes = np.where(missing, -1, classes).astype(np.int32)
        columns["y"] = Text(codes, ["no", "yes", "late"])
        if not texts:
            columns["y"] = np.where(missing, np.nan, classes.astype(float))
    return Batch(columns, lines=np.arange(n) + 2)


def fresh(task, batch, units="moving", **parameters):
    kinds = {
        name: "text" if isinstance(column, Text) else "number"
        for name, column in batch.columns.items()
    }
    preparation = Preparation(kinds, ignore=["y"], units=units, warm_up=WARM_UP, buckets=8)
    preparation.start(cut(batch, 0, min(10, len(batch))))
    estimator = POLKClassifier if task == "classification" else POLKRegressor
    parameters = {"gamma": preparation.suggested_gamma, "random_state": 0, **parameters}
    return StreamModel(estimator(**parameters), preparation, "y", task)


def equal(a, b):
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f")


tasks = pytest.mark.parametrize("task", ["classification", "regression"])


texts_or_not = pytest.mark.parametrize("texts", [False, True])
