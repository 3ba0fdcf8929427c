"""Streams and estimators that several tests share."""

import numpy as np
from scipy.sparse import csr_array

from kernelstream import POLKClassifier, POLKRegressor

ESTIMATORS = [POLKClassifier, POLKRegressor]


def stream(estimator_class, n=200, features=3, classes=2, seed=0):
    """Samples that a kernel model can learn, with every other entry zero for sparse input."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    X[random.random(X.shape) < 0.3] = 0.0
    signal = X[:, 0] * X[:, -1] + np.sin(2.0 * X[:, 0])
    if issubclass(estimator_class, POLKRegressor):
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
