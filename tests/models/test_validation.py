"""Large arrays are looked at in one thread, and what is wrong with them is found."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kernelstream import POLKClassifier
from tests.core.test_threads import threads


@pytest.fixture
def model():
    return POLKClassifier(gamma=1.0, max_points=2).partial_fit(np.eye(5), [0, 1, 0, 1, 0])


def test_large_arrays_are_looked_at_in_one_thread(model, monkeypatch):
    product, seen = np.vdot, []
    monkeypatch.setattr(np, "vdot", lambda a, b: seen.append(threads()) or product(a, b))
    with threadpool_limits(2, user_api="blas"):
        model.predict(np.ones((4000, 5)))
        POLKClassifier(gamma=1.0).partial_fit(np.ones((4000, 5)), np.arange(4000) % 2)
        assert threads() == {2}
    assert seen == [{1}, {1}]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("value", "problem"),
    [(np.nan, "NaN at row 2500, column 3"), (-np.inf, "infinity at row 2500, column 3")],
)
def test_one_bad_entry_of_many(model, kind, value, problem):
    X = np.ones((4000, 5), dtype=kind)
    X[2500, 3] = value
    with pytest.raises(ValueError, match=problem):
        model.predict(X)
    with pytest.raises(ValueError, match=problem):
        POLKClassifier().partial_fit(X, np.arange(4000) % 2)


def test_many_large_entries_are_no_bad_one(model):
    X = np.full((4000, 5), 0.9e150)
    assert model.predict(X).shape == (4000,)
    X[2500, 3] = 1.1e150
    with pytest.raises(ValueError, match=r"too large, 1\.1e\+150 at row 2500, column 3"):
        model.predict(X)
