"""Passive-aggressive steps, against their definition."""

import numpy as np
import pytest

from kernelstream.core.direct import PASSIVE_AGGRESSIVE, PASSIVE_AGGRESSIVE_SQUARED
from kernelstream.core.grow import APPEND
from kernelstream.core.passes import DONE
from kernelstream.core.reduce import NOTHING
from kernelstream.core.state import allocate
from tests.core.tools import LOSS_NUMBERS, gaussian, learn, points_of, settings, weights_of
from tests.naive import kernels as naive_kernels
from tests.naive import losses

TWIN = naive_kernels.gaussian(0.7)


def twin(X, targets, sample_weights, loss, outputs, rule, C):
    points, w = np.empty((0, X.shape[1])), np.empty((0, outputs))
    number = LOSS_NUMBERS.get(loss, 0.0)
    for x, target, weight in zip(X, targets, sample_weights, strict=True):
        f = w.T @ np.array([TWIN(x, d) for d in points]).reshape(-1)
        g = losses.derivative(loss, number, f, target)
        if not g.any():
            continue
        value, square = losses.value(loss, number, f, target), g @ g * TWIN(x, x)
        step = min(C * weight, value / square)
        if rule == PASSIVE_AGGRESSIVE_SQUARED:
            step = value / (square + 1.0 / (2.0 * C * weight))
        points, w = np.vstack([points, x]), np.vstack([w, -step * g])
    return points, w


@pytest.mark.parametrize("rule", [PASSIVE_AGGRESSIVE, PASSIVE_AGGRESSIVE_SQUARED])
@pytest.mark.parametrize(
    ("loss", "outputs"), [("hinge", 1), ("hinge", 3), ("epsilon_insensitive", 1)]
)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_steps_equal_the_twin(rule, loss, outputs, C):
    rng = np.random.default_rng(0)
    X, sample_weights = rng.normal(size=(60, 2)), rng.uniform(0.5, 1.5, size=60)
    y = np.sin(2.0 * X[:, 0])
    if loss == "hinge":
        y = np.digitize(y, [-0.4, 0.4] if outputs == 3 else [0.0]).astype(float)
    chosen = settings(
        loss, outputs=outputs, direct=rule, grow=APPEND, reduce=NOTHING, aggressiveness=C
    )
    state = allocate(2, outputs, 4, seed=0, factored=False)
    state, reason, _ = learn(gaussian(0.7), X, y, chosen, state=state, weights=sample_weights)
    assert reason == DONE
    signed = 2.0 * y - 1.0 if loss == "hinge" and outputs == 1 else y
    points, w = twin(X, signed, sample_weights, loss, outputs, rule, C)
    assert np.array_equal(points_of(state), points)
    assert np.allclose(weights_of(state, outputs), w, atol=1e-12)
