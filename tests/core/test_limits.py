"""Finite stays finite, the cap holds, the factor stays usable: at the ends of the number range."""

import numpy as np
import pytest

from kernelstream.core import kernel
from kernelstream.core.passes import DONE
from tests.core.tools import (
    COMPILED,
    gaussian,
    kernel_matrix,
    learn,
    points_of,
    program,
    residual,
    settings,
    size,
)

# Not compiled, NumPy says so when a distance or a cost becomes infinite on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

LINEAR = program((kernel.LINEAR,))


def finite(state):
    n = state.order
    parts = (state.weights[:, :n], state.factor[:n, :n], state.diagonal[:n])
    return (
        all(np.isfinite(part).all() for part in parts)
        and np.isfinite(state.status[0]["error_spent"])
        and 0.0 < state.status[0]["scale"] <= 1.0
    )


def noise(n, width=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, width)), (rng.random(n) < 0.5).astype(float)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("averaging", [0.0, 1.0])
@pytest.mark.parametrize("shrink", [1e-3, 1e-9, 1e-12, 1e-15])
def test_a_step_that_nearly_forgets_everything(shrink, averaging, batch):
    """eta lambda close to 1: the scale falls by 1e-15 in one step."""
    X, labels = noise(size(400, 40))
    chosen = settings(
        batch=batch, averaging=averaging, initial_step=1.0, regularisation=1.0 - shrink, most=20,
        budget_number=1e-3,
    )  # fmt: skip
    state, reason, _ = learn(gaussian(1.0), X, labels, chosen)
    assert reason == DONE
    assert finite(state)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1.0, 1e12])
def test_gaussian_kernel_at_any_scale(gamma, scale, batch):
    X, labels = noise(size(400, 40))
    X = np.clip(X, -1.0, 1.0) * scale
    state, reason, _ = learn(gaussian(gamma), X, labels, settings(batch=batch, most=10))
    assert reason == DONE
    assert state.order <= 10
    assert finite(state)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("weight", [1e-200, 1e-100, 1e100, 1e139])
def test_any_sample_weight(weight, batch):
    X, labels = noise(size(400, 40))
    state, _, _ = learn(
        gaussian(1.0), X, labels, settings(batch=batch, most=5), weights=np.full(len(X), weight)
    )
    assert state.order <= 5
    assert finite(state)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", ["duplicates", "collinear", "constant", "near", "scales"])
def test_long_degenerate_streams(name, batch):
    rng = np.random.default_rng(0)
    n = size(20_000, 100)
    X = {
        "duplicates": lambda: rng.normal(size=(30, 3))[rng.integers(30, size=n)],
        "collinear": lambda: np.outer(rng.normal(size=n), [1.0, 2.0, -1.0]),
        "constant": lambda: np.full((n, 3), 3.7),
        "near": lambda: np.round(rng.normal(size=(n, 3))) + 1e-9 * rng.normal(size=(n, 3)),
        "scales": lambda: rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-8, 9, size=(n, 1)),
    }[name]()
    labels = (rng.random(n) < 0.5).astype(float)
    worst = []

    def note(state):
        points = points_of(state)
        worst.append(residual(state, kernel_matrix(gaussian(1.0), points, points)[0])[0])

    chosen = settings(batch=batch, most=40, budget_number=1e-3, regularisation=1e-3)
    state, reason, _ = learn(gaussian(1.0), X, labels, chosen, on_probe=note)
    note(state)
    assert reason == DONE
    assert finite(state)
    assert max(worst) < 1e-6


@pytest.mark.skipif(not COMPILED, reason="needs a few hundred points")
@pytest.mark.parametrize("batch", [1, 16])
def test_without_compression_the_factor_stays_usable(batch):
    X, labels = noise(500)
    state, _, _ = learn(gaussian(0.5), X, labels, settings(batch=batch, budget_number=0.0))
    points = points_of(state)
    assert residual(state, kernel_matrix(gaussian(0.5), points, points)[0])[0] < 1e-3


@pytest.mark.parametrize("batch", [1, 2])
def test_the_cap_holds_when_costs_overflow(batch):
    X = np.array([[1e150, 0.0], [0.0, 1e150], [1e150, 1e150]])
    state, _, _ = learn(
        LINEAR, X, np.array([0.0, 1.0, 0.0]), settings(most=1, batch=batch),
        weights=np.full(3, 1e10),
    )  # fmt: skip
    assert state.order <= 1


def test_a_kernel_that_underflows():
    X = np.array([[1e-156, 0.0], [0.0, 1e-156], [1e-156, 2e-156]])
    chosen = settings(budget_number=0.0, batch=2, most=1)
    state, _, _ = learn(LINEAR, X, np.array([1.0, 0.0, 1.0]), chosen)
    assert finite(state)
