"""The error budget is kept at every step, and error_spent_ is the true sum."""

import numpy as np
import pytest

from kernelstream import (
    AVMClassifier,
    AVMRegressor,
    Loss,
    POLKClassifier,
    POLKRegressor,
)
from tests.models.tools import (
    capped,
    stream,
)


def hilbert_distance(f, g):
    """|f - g| with equal points added up first: no rounding where nothing changed."""
    points, place = np.unique(np.vstack([f.points, g.points]), axis=0, return_inverse=True)
    weights = np.zeros((len(points), f._columns.shape[1]))
    np.add.at(weights, place.ravel(), np.vstack([f._columns, -g._columns]))
    return np.sqrt(max(0.0, np.sum(weights * (f.kernel(points) @ weights))))


@pytest.mark.parametrize(
    ("estimator_class", "loss", "classes"),
    [
        (POLKClassifier, "hinge", 2),
        (POLKClassifier, "log_loss", 3),
        (POLKRegressor, "squared_error", 0),
        (POLKRegressor, "huber", 0),
    ],
)
@pytest.mark.parametrize("projection", ["greedy", "random"])
@pytest.mark.parametrize("max_points", [None, 8])
def test_error_budget_is_kept(estimator_class, loss, classes, projection, max_points):
    X, y = stream(estimator_class, n=150, classes=max(classes, 1))
    X[100:110] = X[:10]
    eta, alpha, epsilon = 0.3, 0.01, 0.08
    model = estimator_class(
        loss, eta0=eta, alpha=alpha, compression_error=epsilon, projection=projection,
        max_points=max_points, random_state=0,
    )  # fmt: skip
    known = {"classes": np.arange(classes)} if classes else {}
    targets = 2.0 * y - 1.0 if classes == 2 else y
    model.partial_fit(X[:1], y[:1], **known)
    total, forced = model.error_spent_, model.n_forced_
    for x, label, target in zip(X[1:, None], y[1:], targets[1:], strict=True):
        before = model.expansion_
        slope = Loss(loss).derivative(before(x), [target])
        model.partial_fit(x, [label])
        step = type(before)(before.kernel, x, -eta * slope)
        error = hilbert_distance(model.expansion_, (1.0 - eta * alpha) * before + step)
        total += error
        if model.n_forced_ == forced:
            assert error <= epsilon * (1.0 + 1e-6)
        forced = model.n_forced_
    assert model.error_spent_ == pytest.approx(total, rel=1e-6)
    assert (forced > 0) == (max_points is not None)
    assert total > 10 * epsilon  # there was something to check


@pytest.mark.parametrize(
    ("estimator_class", "loss", "classes"),
    [
        (AVMClassifier, "hinge", 2),
        (AVMClassifier, "log_loss", 3),
        (AVMRegressor, "absolute_error", 0),
        (AVMRegressor, "huber", 0),
    ],
)
@pytest.mark.parametrize("max_points", [None, 8])
@capped
def test_steps_stay_within_their_cell(estimator_class, loss, classes, max_points):
    """Theorem 4: k(x, .) and k(c, .) are at most sqrt(2 (1 - k(delta / 2))) apart."""
    X, y = stream(estimator_class, n=150, classes=max(classes, 1))
    alpha, delta, gamma = 0.05, 0.9, 0.5
    model = estimator_class(
        loss, alpha=alpha, delta=delta, gamma=gamma, average=False, max_points=max_points
    )
    known = {"classes": np.arange(classes)} if classes else {}
    targets = 2.0 * y - 1.0 if classes == 2 else y
    model.partial_fit(X[:1], y[:1], **known)
    total, forced, largest = 0.0, 0, np.sqrt(2.0 - 2.0 * np.exp(-gamma * delta**2 / 4.0))
    for t in range(1, len(y)):
        before = model.expansion_
        slope = Loss(loss).derivative(before(X[t : t + 1]), [targets[t]])
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        eta = 1.0 / (alpha * (t + 1))
        step = type(before)(before.kernel, X[t : t + 1], -eta * slope)
        error = hilbert_distance(model.expansion_, (t / (t + 1)) * before + step)
        total += error
        if model.n_forced_ == forced:
            assert error <= eta * np.linalg.norm(slope) * largest + 1e-9
        forced = model.n_forced_
    assert model.error_spent_ == pytest.approx(total, rel=1e-5)
    assert (forced > 0) == (max_points is not None)
    assert total > 0.1  # there was something to check
