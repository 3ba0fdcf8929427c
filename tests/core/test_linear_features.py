"""Linear functions on random and Nystroem features against naive twins."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from kernelstream.core.jit import INTERPRETED
from kernelstream.kernels import Gaussian, Laplacian, Matern32, Matern52
from kernelstream.losses import make_loss
from kernelstream.models._random_features import frequencies
from kernelstream.models.dualsgd import DualSGDClassifier, DualSGDRegressor
from kernelstream.models.fogd import FOGDClassifier, FOGDRegressor
from kernelstream.models.nogd import NOGDClassifier, NOGDRegressor
from kernelstream.models.random_features import RandomFeatureClassifier, RandomFeatureRegressor
from tests.core.tools import kinds_of_rows
from tests.naive import linear_features as naive
from tests.naive.filters import gaussian

N = 60 if INTERPRETED else 200
ROWS = kinds_of_rows(N)


def samples(kind, classes):
    random = np.random.default_rng(classes)
    X = ROWS[kind](random)
    y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=N)
    if not classes:
        return X, y, y
    labels = random.permutation(np.arange(N) % classes)
    labels = np.where(random.random(N) < 0.7, (y > 0).astype(int), labels)
    labels[:classes] = np.arange(classes)
    return X, labels, 2.0 * labels - 1.0 if classes == 2 else labels


def outputs_of(model, X, y, classes):
    if not classes:
        return model.predict_then_learn(X, y)[:, None]
    made = model.decide_then_learn(X, y, classes=np.arange(classes))
    return made[:, None] if made.ndim == 1 else made


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("shrinking", [False, True])
def test_random_features_agree_with_their_twin(shrinking, classes, kind):
    X, y, targets = samples(kind, classes)
    loss = {0: "huber", 2: "hinge", 4: "log_loss"}[classes]
    if kind == "constant" and classes == 2:  # margins of exactly 1 would be decided by rounding
        loss = "smooth_hinge"
    if shrinking:
        make = RandomFeatureClassifier if classes else RandomFeatureRegressor
        steps = {"alpha": 0.05}
    else:
        make, steps = FOGDClassifier if classes else FOGDRegressor, {"eta0": 0.3}
    model = make(loss, gamma=0.4, max_points=11, random_state=0, **steps)
    made = outputs_of(model, X, y, classes)
    sparse = outputs_of(clone(model), csr_array(X), y, classes)
    features = naive.fourier(X, model._state.points)
    outputs = 1 if classes in (0, 2) else classes
    expected, weights = naive.descend(
        features, targets, outputs, loss, make_loss(loss).number or 0.0,
        (lambda t: 1.0 / (0.05 * (t + 1))) if shrinking else (lambda t: 0.3),
        0.05 if shrinking else 0.0,
    )  # fmt: skip
    for found in (made, sparse):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    for form in (X, csr_array(X)):
        found = model._evaluate(form)
        np.testing.assert_allclose(found, features @ weights.T, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("most", [1, 15])
def test_nogd_agrees_with_its_twin(most, classes, kind):
    X, y, targets = samples(kind, classes)
    loss = {0: "squared_error", 2: "hinge", 4: "log_loss"}[classes]
    if kind == "constant" and classes == 2:
        loss = "smooth_hinge"
    make = NOGDClassifier if classes else NOGDRegressor
    model = make(loss, gamma=0.4, max_points=most, eta0=0.3, rank=0.4)
    made = outputs_of(model, X, y, classes)
    sparse = outputs_of(clone(model), csr_array(X), y, classes)
    expected, points = naive.nogd(
        lambda A, B: gaussian(A, B, 0.4), X, targets, 1 if classes in (0, 2) else classes, loss,
        make_loss(loss).number or 0.0, 0.3, most, 0.4,
    )  # fmt: skip
    for found in (made, sparse):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert np.array_equal(model._state.points[:, : model.model_order_].T, points)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize(("most", "moved"), [(1, 3), (12, 4)])
def test_dualsgd_agrees_with_its_twin(most, moved, classes, kind):
    X, y, targets = samples(kind, classes)
    loss = {0: "huber", 2: "hinge", 4: "log_loss"}[classes]
    if kind == "constant" and classes == 2:
        loss = "smooth_hinge"
    make = DualSGDClassifier if classes else DualSGDRegressor
    model = make(
        loss, gamma=0.4, max_points=most, moved=moved, n_frequencies=7, alpha=0.05, random_state=0
    )
    made = outputs_of(model, X, y, classes)
    sparse = outputs_of(clone(model), csr_array(X), y, classes)
    k, state = (lambda A, B: gaussian(A, B, 0.4)), model._state
    expected, points, w, v = naive.dualsgd(
        k, X, targets, 1 if classes in (0, 2) else classes, loss, make_loss(loss).number or 0.0,
        0.05, most, moved, state.frequencies,
    )  # fmt: skip
    for found in (made, sparse):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    assert np.array_equal(state.points[:, : model.model_order_].T, points)
    assert model.n_forced_ > 0
    last = w @ k(points, X) + v @ naive.fourier(X, state.frequencies).T
    for form in (X, csr_array(X)):
        np.testing.assert_allclose(model._evaluate(form), last.T, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, Matern32, Matern52])
def test_frequencies_have_the_spectrum_of_the_kernel(kernel):
    kernel, count = kernel(0.7), 40_000
    X = np.random.default_rng(0).normal(size=(6, 2))
    drawn = frequencies(kernel, 3, count, 2)
    z = naive.fourier(X, drawn)
    assert np.abs(z @ z.T - kernel(X)).max() < 5.0 / np.sqrt(count)
    assert np.array_equal(frequencies(kernel, 3, 10, 2), drawn[:, :10])


def test_a_kernel_without_a_known_spectrum_is_refused():
    X, y, _ = samples("random", 2)
    with pytest.raises(ValueError, match=r"spectrum is known.*Product"):
        FOGDClassifier(kernel=Gaussian(1.0) * Laplacian(1.0)).partial_fit(X, y)


@pytest.mark.parametrize("make", [FOGDRegressor, NOGDRegressor, DualSGDRegressor])
def test_more_room_on_the_way_keeps_the_function(make):
    X, y, _ = samples("random", 0)
    model = make(gamma=0.4, max_points=10, random_state=0).partial_fit(X, y)
    before = model.predict(X)
    model.set_params(max_points=30)
    model._resize(30)
    np.testing.assert_allclose(model.predict(X), before, rtol=1e-9, atol=1e-12)
    model.partial_fit(X, y)
    assert model.model_order_ == 30
    assert np.mean((model.predict(X) - y) ** 2) < np.mean((before - y) ** 2)
