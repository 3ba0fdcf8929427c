"""Input is never modified or kept; predicting and saving change nothing; copies are independent."""

import copy

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

from kernelstream import (
    BPAPClassifier,
)
from tests.models.tools import (
    EXPANSIONS,
    FACTORED,
    FORMS,
    every,
    having,
    stream,
    waiting,
)


def arrays_in(value):
    """All arrays that can be reached from a value."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif type(value).__module__.startswith("kernelstream.") and hasattr(value, "__dict__"):
        value = vars(value).values()
    elif not isinstance(value, list | tuple):
        return []
    return [array for part in value for array in arrays_in(part)]


def arrays_of(X):
    return [X.data, X.indices, X.indptr] if issparse(X) else [X]


@every
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch_size", [1, 7])
def test_input_is_neither_modified_nor_kept(estimator_class, form, batch_size):
    X, y = stream(estimator_class)
    X, weight = FORMS[form](X), np.linspace(0.0, 1.0, len(y))
    given = [*arrays_of(X), y, weight]
    originals = [array.copy() for array in given]
    model = estimator_class(random_state=0, **waiting(estimator_class, batch_size))
    model.partial_fit(X, y, sample_weight=weight)
    model.predict(X)
    estimator_class().fit(X, y, sample_weight=weight)
    for array, original in zip(given, originals, strict=True):
        assert np.array_equal(array, original)
    kept = arrays_in(vars(model))
    assert not any(np.shares_memory(a, b) for a in given for b in kept)
    before = model.fingerprint()
    for array in given:
        array[...] = 0
    assert model.fingerprint() == before


@every
def test_a_matrix_with_duplicates_is_not_tidied_up(estimator_class):
    X = csr_array((np.ones(4), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 3))
    estimator_class().partial_fit(X, [0, 1]).predict(X)
    assert X.indices.tolist() == [2, 0, 0, 1]
    assert X.data.tolist() == [1.0] * 4


@every
@pytest.mark.parametrize("batch_size", [1, 7])
def test_looking_changes_nothing(estimator_class, batch_size, tmp_path):
    X, y = stream(estimator_class)
    average = having(estimator_class, average=True)
    model = estimator_class(**average, **waiting(estimator_class, batch_size))
    model.partial_fit(X[:150], y[:150])
    before = model.fingerprint()
    model.predict(X)
    model.score(X, y)
    model.save(tmp_path / "model")
    if estimator_class in EXPANSIONS:
        model.expansion_.compress(max_points=2)
        for name in ("dictionary_", "dual_coef_"):
            getattr(model, name)[...] = 0.0
    if estimator_class in FACTORED:
        # BPA-P keeps all points, however close to the span of the others.
        assert model.residual_ < (1e-4 if estimator_class is BPAPClassifier else 1e-6)
    assert repr(model)
    assert model.fingerprint() == before


@every
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_and_clones_are_independent(estimator_class, duplicate):
    X, y = stream(estimator_class)
    model = estimator_class(random_state=0, **waiting(estimator_class, 7))
    model.partial_fit(X[:100], y[:100])
    before = model.fingerprint()
    twin = duplicate(model)
    assert twin.fingerprint() == before
    twin.partial_fit(X[100:], y[100:])
    clone(model).partial_fit(X, y)
    assert model.fingerprint() == before
    model.partial_fit(X[100:], y[100:])
    assert model.fingerprint() == twin.fingerprint()
