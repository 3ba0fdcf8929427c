"""AVM's options that claim to be the paper's, against its algorithm boxes, to 1e-9.

Where a distance equals delta / 2 to the last digit, or two outputs tie, rounding decides; random
samples do neither.
"""

import math

import numpy as np
import pytest

from kernelstream import AVMClassifier, AVMRegressor, Loss
from kernelstream.kernels import Gaussian
from tests.naive import avm_paper as paper

RUNS = range(20)
ALPHA, DELTA = 0.1, 0.9
CELLS = {"hypersphere": paper.hypersphere, "hyperrectangle": paper.hyperrectangle}
COMMON = {"kernel": Gaussian(0.8), "alpha": ALPHA, "delta": DELTA}
#: Section 7: alpha_t of each loss.
BINARY = {
    "hinge": lambda f, y: -y * (y * f < 1.0),
    "log_loss": lambda f, y: -y / (1.0 + math.exp(y * f)),
    Loss("smooth_hinge", 0.5): lambda f, y: (
        0.0 if y * f > 1.0 else -y if y * f < 0.5 else y * (y * f - 1.0) / 0.5
    ),
}
NUMBERS = {
    "squared_error": lambda f, y: f - y,
    "absolute_error": lambda f, y: np.sign(f - y),
    Loss("epsilon_insensitive", 0.1): lambda f, y: np.sign(f - y) * (abs(f - y) > 0.1),
}
CLASSES = {"hinge": lambda a: -1.0 * (a < 1.0), "margin_log_loss": lambda a: -1 / (1 + math.exp(a))}


def stream(seed, n=30):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 0] + 0.2 * random.normal(size=n)


def kernel(X, Z):
    return np.exp(-0.8 * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


def compare(iterates, models, X, suffix=1.0):
    """The last iterate and the average, by whether the model averages."""
    for average, model in models.items():
        said = (model.decision_function if hasattr(model, "classes_") else model.predict)(X)
        mean = paper.average(kernel, iterates, X, suffix)
        expected = mean if average else paper.value(kernel, iterates[-1], X)
        assert np.allclose(said, expected, rtol=0.0, atol=1e-9)


def always(t, margin):
    return True


@pytest.mark.parametrize("loss", BINARY, ids=str)
@pytest.mark.parametrize("shape", CELLS)
def test_algorithm_2_for_two_classes(loss, shape):
    for seed in RUNS:
        X, signal = stream(seed)
        y = np.where(signal > 0.0, 1.0, -1.0)
        models = {
            average: AVMClassifier(loss, coverage=shape, average=average, **COMMON)
            .partial_fit(X, y, classes=[-1.0, 1.0])
            for average in (False, True)
        }  # fmt: skip
        iterates = paper.algorithm_2(kernel, X, y, BINARY[loss], ALPHA, DELTA, CELLS[shape], always)
        compare(iterates, models, X)


@pytest.mark.parametrize("loss", NUMBERS, ids=str)
def test_algorithm_2_for_numbers(loss):
    for seed in RUNS:
        X, y = stream(seed)
        y[0] = 1.1 * np.abs(y).max()  # y_max is known from the beginning
        models = {
            average: AVMRegressor(loss, average=average, **COMMON).partial_fit(X, y)
            for average in (False, True)
        }
        iterates = paper.algorithm_2(
            kernel, X, y, NUMBERS[loss], ALPHA, DELTA, paper.hypersphere, always,
            ball=y[0] if loss == "squared_error" else None,
        )  # fmt: skip
        compare(iterates, models, X)


@pytest.mark.parametrize("loss", CLASSES)
def test_algorithm_5(loss):
    for seed in RUNS:
        X, signal = stream(seed)
        y = np.digitize(signal, [-0.5, 0.5]).astype(float)
        models = {
            average: AVMClassifier(loss, average=average, **COMMON)
            .partial_fit(X, y, classes=[0.0, 1.0, 2.0])
            for average in (False, True)
        }  # fmt: skip
        iterates = paper.algorithm_5(
            kernel, X, y, 3, CLASSES[loss], ALPHA, DELTA, paper.hypersphere
        )
        compare(iterates, models, X)


@pytest.mark.parametrize("suffix", [0.3, 0.5])
def test_the_suffix_average_is_exact_where_the_length_is_known(suffix):
    """Theorem 9: of the iterates (1 - alpha) T + 1 to T. fit knows T, and one can go on."""
    for seed in RUNS:
        X, signal = stream(seed)
        y = np.where(signal > 0.0, 1.0, -1.0)
        model = AVMClassifier(
            "log_loss", average=True, average_horizon=suffix, n_epochs=2, shuffle=False, **COMMON
        ).fit(X, y)  # fmt: skip
        twice, labels = np.vstack([X, X]), np.append(y, y)
        iterates = paper.algorithm_2(
            kernel, twice, labels, BINARY["log_loss"], ALPHA, DELTA, paper.hypersphere, always,
        )  # fmt: skip
        compare(iterates, {True: model}, X, suffix)
        assert np.isfinite(model.partial_fit(X, y).decision_function(X)).all()


def test_a_decision_that_depends_on_the_margin():
    """The example of Section 6.2.1, Z_t = 1 iff y w(x) is large enough."""
    cells = points = 0
    for seed in RUNS:
        X, signal = stream(seed, 40)
        y = np.where(signal > 0.0, 1.0, -1.0)
        model = AVMClassifier("log_loss", average=False, exact_margin=0.5, **COMMON)
        model.partial_fit(X, y, classes=[-1.0, 1.0])
        iterates = paper.algorithm_2(
            kernel, X, y, BINARY["log_loss"], ALPHA, DELTA, paper.hypersphere,
            lambda t, margin: margin >= 0.5,
        )  # fmt: skip
        compare(iterates, {False: model}, X)
        cells, points = cells + model.n_cells_, points + model.model_order_
    assert 0 < cells < points
