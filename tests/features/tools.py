"""Streams and estimators that several tests share."""

import numpy as np
from scipy.sparse import csr_array

from kernelstream.core.feature_state import HISTORY, STATUS
from kernelstream.features import (
    OnlineKernelFeatureClassifier,
    OnlineKernelFeatureRegressor,
    OnlineKernelFeatures,
)

ESTIMATORS = [OnlineKernelFeatures, OnlineKernelFeatureClassifier, OnlineKernelFeatureRegressor]
FORMS = {"dense": np.asarray, "csr": csr_array}

#: Parameters whose branches differ, for small streams.
VARIANTS = {
    "no budget": {"max_points": None, "solver": "parametric"},
    "no budget, nonparametric": {"max_points": None, "solver": "nonparametric"},
    "parametric": {"solver": "parametric"},
    "nonparametric": {"solver": "nonparametric"},
    "printed": {"basis": "printed", "step_size": "tracking"},
    "printed, full steps": {"basis": "printed", "step_size": "tracking_square", "alpha": 0.0},
    "as the paper has it": {
        "solver": "nonparametric",
        "basis": "printed",
        "steps": "printed",
        "step_size": "tracking",
        "removal": "recency",
        "forgetting": 0.9,
    },
    "averaged censoring": {"censoring": "auto"},
    "censoring at a rate": {"censoring": "rate:0.6", "solver": "parametric"},
    "recency": {"removal": "recency", "forgetting": 0.9, "step_size": "tracking"},
    "first in, first out": {"removal": "fifo", "step_size": "tracking", "censoring": 0.1},
    "polynomial": {"kernel": "poly", "degree": 2, "removal": "exact", "gamma": 0.1},
}


def stream(estimator_class, n=200, features=3, classes=2, seed=0):
    """Samples that a kernel model can learn, with some entries zero for sparse input."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    X[random.random(X.shape) < 0.3] = 0.0
    signal = X[:, 0] * X[:, -1] + np.sin(2.0 * X[:, 0])
    if estimator_class is OnlineKernelFeatureRegressor:
        return X, signal + 0.1 * random.normal(size=n)
    edges = np.quantile(signal, np.arange(1, classes) / classes)
    return X, np.digitize(signal, edges)


def small(estimator_class, **parameters):
    """An estimator that reaches its budget on a short stream."""
    return estimator_class(**{"n_components": 5, "max_points": 11, **parameters})


def in_pieces(model, X, y, size):
    for first in range(0, len(y), size):
        model.partial_fit(X[first : first + size], y[first : first + size])
    return model


def look(model, X):
    """What a model says of samples."""
    return model.transform(X) if isinstance(model, OnlineKernelFeatures) else model._evaluate(X)


def feature_bytes(capacity, features, components, outputs, dense):
    """Bytes of a state in closed form; ``dense``: with the kernel matrix of the samples."""
    row = features + components + 4 + (capacity if dense else 0)
    square = components * (4 * components + outputs)
    return 8 * (capacity * row + square + 2 * HISTORY) + STATUS.itemsize
