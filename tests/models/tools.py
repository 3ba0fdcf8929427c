"""Streams and estimators that several tests share."""

import numpy as np
from scipy.sparse import csr_array

from kernelstream import (
    AVMClassifier,
    AVMRegressor,
    COLKClassifier,
    COLKRegressor,
    POLKClassifier,
    POLKRegressor,
)

POLK = [POLKClassifier, POLKRegressor]
AVM = [AVMClassifier, AVMRegressor]
COLK = [COLKClassifier, COLKRegressor]
KOMP = POLK + COLK
ESTIMATORS = POLK + AVM + COLK
CLASSIFIERS = [POLKClassifier, AVMClassifier, COLKClassifier]
REGRESSORS = [POLKRegressor, AVMRegressor, COLKRegressor]


def waiting(estimator_class, batch_size):
    """Parameters with which some samples of a short stream wait: for their batch, or for delta."""
    if estimator_class in POLK:
        return {"batch_size": batch_size}
    if estimator_class in COLK:
        return {"batch_size": batch_size + batch_size % 2}
    return {} if batch_size > 1 else {"delta": 0.8}


def at_once(estimator_class):
    """Parameters with which every sample is learned at once."""
    return {} if estimator_class in KOMP else {"delta": 0.8}


def stream(estimator_class, n=200, features=3, classes=2, seed=0):
    """Samples that a kernel model can learn, with every other entry zero for sparse input."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    X[random.random(X.shape) < 0.3] = 0.0
    signal = X[:, 0] * X[:, -1] + np.sin(2.0 * X[:, 0])
    if issubclass(estimator_class, tuple(REGRESSORS)):
        return X, signal + 0.1 * random.normal(size=n)
    edges = np.quantile(signal, np.arange(1, classes) / classes)
    return X, np.digitize(signal, edges)


def in_pieces(model, X, y, size, sample_weight=None):
    """Feed the stream by ``size`` samples a call."""
    for first in range(0, len(y), size):
        part = slice(first, first + size)
        weight = None if sample_weight is None else sample_weight[part]
        model.partial_fit(X[part], y[part], sample_weight=weight)
    return model


def is_fitted(model):
    return any(name.endswith("_") and not name.startswith("_") for name in vars(model))


FORMS = {"dense": np.asarray, "csr": csr_array}
