"""Streams and estimators that several tests share."""

from itertools import cycle

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kernelstream import registry
from kernelstream.core.state import STATUS
from kernelstream.models._base import KernelEstimator
from kernelstream.parameters import parameters_of

METHODS = registry.models()
ESTIMATORS = [kind for method in METHODS.values() for kind in method.estimators]
CLASSIFIERS = [method.classifier for method in METHODS.values() if method.classifier]
REGRESSORS = [method.regressor for method in METHODS.values() if method.regressor]
POLK, AVM, COLK = (list(METHODS[name].estimators) for name in ("polk", "avm", "colk"))
#: Those that learn one kernel expansion, with points and weights of its own.
EXPANSIONS = [kind for kind in ESTIMATORS if issubclass(kind, KernelEstimator)]
FACTORED = [kind for kind in EXPANSIONS if kind()._factored]
KOMP = [kind for kind in FACTORED if "compression_error" in parameters_of(kind)]

every = pytest.mark.parametrize("estimator_class", ESTIMATORS)
every_expansion = pytest.mark.parametrize("estimator_class", EXPANSIONS)
with_factor = pytest.mark.parametrize("estimator_class", FACTORED)
with_komp = pytest.mark.parametrize("estimator_class", KOMP)
capped = pytest.mark.filterwarnings("ignore::kernelstream.CapWarning")


def having(estimator_class, **values):
    """Of these parameters the ones that an estimator has, with values that it accepts."""
    known = parameters_of(estimator_class)
    return {
        name: value
        for name, value in values.items()
        if name in known and known[name].accepts(value)
    }


def usable(estimator_class, parameters):
    """Whether an estimator takes all of these parameters, and all of them together."""
    if not set(parameters) <= set(parameters_of(estimator_class)):
        return False
    try:
        estimator_class(**parameters)._check_parameters()
    except ValueError:
        return False
    return True


def drawn(draw, estimator_class, table):
    """A value for each parameter of an estimator in a table of values, of those that it accepts."""
    chosen = {}
    for name, values in table.items():
        if accepted := [value for value in values if having(estimator_class, **{name: value})]:
            chosen[name] = draw(st.sampled_from(accepted))
    return chosen


def waiting(estimator_class, batch_size):
    """Parameters with which some samples of a short stream wait: for their batch, or for delta."""
    batch = next(
        (size for size in (batch_size, batch_size + 1)
         if usable(estimator_class, {"batch_size": size})), None,
    )  # fmt: skip
    if batch is not None:
        return {"batch_size": batch}
    return {} if batch_size > 1 else at_once(estimator_class)


def at_once(estimator_class):
    """Parameters with which every sample is learned at once."""
    return having(estimator_class, delta=0.8)


def in_bytes(estimator_class):
    """How many times the memory of one expansion an estimator needs at least."""
    return 1 if estimator_class in EXPANSIONS else 16


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


def wave(n=4000):
    """A sine of one feature, with noise."""
    random = np.random.default_rng(0)
    X = random.uniform(-3.0, 3.0, (n, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=n)


def in_pieces(model, X, y, size, sample_weight=None):
    """Feed the stream by ``size`` samples a call, or by several sizes in turn."""
    sizes, first = cycle(np.atleast_1d(size)), 0
    while first < len(y):
        part = slice(first, first + next(sizes))
        weight = None if sample_weight is None else sample_weight[part]
        model.partial_fit(X[part], y[part], sample_weight=weight)
        first = part.stop
    return model


def is_fitted(model):
    return any(name.endswith("_") and not name.startswith("_") for name in vars(model))


FORMS = {"dense": np.asarray, "csr": csr_array}


def assert_refused(model, call, match=None):
    """The call fails; a fitted model is what it was, a new one is still new."""
    before = model.fingerprint() if is_fitted(model) else None
    with pytest.raises((ValueError, TypeError), match=match):
        call(model)
    assert before == (model.fingerprint() if is_fitted(model) else None)


def assert_within_closed_form(model):
    p, columns = model.n_features_in_, model._columns
    order, batch = model._state.extent, model.batch_size + model.slack
    if not model._factored:
        capacity = max(17, 2 * order + 1)
        row, held = p + columns + 4, 201 if getattr(model, "_deciding", False) else batch
    else:
        capacity = 4 * max(16 + batch, order + batch)
        row, held = p + columns + 3 + capacity, batch
    waiting = (held - 1) * (12 * p + 24) + 8
    assert model.nbytes_ <= 8 * capacity * row + STATUS.itemsize + waiting
    if model.max_points is not None:
        assert model.model_order_ <= model.max_points + model.slack
