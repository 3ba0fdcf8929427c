"""The compiled pass against COLK written out step by step."""

import numpy as np
import pytest

from kernelstream.core.blocks import block_pass, gradient_pass
from kernelstream.core.direct import QUASI_GRADIENT
from kernelstream.core.direct import quasi_gradient as colk
from kernelstream.core.passes import DIVERGED, DONE, FULL, PROBE
from kernelstream.core.state import allocate, pack, resize, unpack
from tests.core.tools import (
    LOSS_NUMBERS,
    call_pass,
    gaussian,
    points_of,
    rows_of,
    settings,
    size,
    weights_of,
)
from tests.naive import colk as naive
from tests.naive import kernels as naive_kernels
from tests.naive import losses as naive_losses
from tests.naive.komp import hilbert_norm

PROGRAM, TWIN = gaussian(2.0), naive_kernels.gaussian(2.0)
SAMPLES = size(61, 35)
GRID = np.random.default_rng(99).normal(size=(30, 2)) * 1.5
RISKS = ("variance", "semivariance", "moments", "semideviations", "cvar")
BY_ORDER = ("moments", "semideviations")
KINDS = {
    "variance": colk.DISPERSION, "semivariance": colk.SEMIDEVIATION, "moments": colk.DISPERSION,
    "semideviations": colk.SEMIDEVIATION, "cvar": colk.CVAR,
}  # fmt: skip


def stream(n=SAMPLES, outputs=1, regression=True, seed=0):
    """Samples, some of them twice; numbers, or labels 0 .. k - 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    again = rng.random(n) < 0.15
    X[again] = X[rng.integers(n, size=again.sum())]
    if regression:
        return X, np.sin(2 * X[:, 0]) + np.where(X[:, 1] > 0, 0.5, 0.1) * rng.normal(size=n)
    noisy = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(noisy, np.linspace(-0.4, 0.4, max(outputs, 2) - 1)).astype(float)


def risk_of(risk="variance", risk_weight=0.1, order=4, level=0.9, tracking="momentum", beta=0.05,
            cut=np.inf):  # fmt: skip
    return {
        "direct": QUASI_GRADIENT, "risk": KINDS[risk], "risk_weight": risk_weight,
        "moments": order if risk in BY_ORDER else 2, "level": level, "cut": cut,
        "tracking": colk.MOMENTUM if tracking == "momentum" else colk.AVERAGE,
        "tracking_rate": beta,
    }  # fmt: skip


def learn(X, labels, chosen, risk, state=None, weights=None, sparse=False, predictions=None,
          every=None):  # fmt: skip
    """Run the pass to its end; ``every``: back to Python after so many samples."""
    tracked = risk["tracking"] == colk.MOMENTUM
    chosen = chosen.copy()
    for name, value in risk.items():
        chosen[name] = value
    parts = 1 + (chosen.averaging > 0.0) + tracked
    if state is None:
        state = allocate(X.shape[1], chosen.outputs * parts, 16, seed=1)
    weights = np.ones(len(X)) if weights is None else weights
    every = len(X) if every is None else every
    for first in range(0, len(X), every):
        part = slice(first, first + every)
        rows, i = rows_of(X[part], sparse), 0
        room = np.empty((0, 1)) if predictions is None else predictions[part]
        while True:
            reason, i = call_pass(
                block_pass(chosen.direct),
                state,
                chosen,
                PROGRAM,
                rows,
                labels[part],
                weights[part],
                i,
                room,
            )
            if reason == FULL:
                state = resize(state, 2 * state.capacity)
            elif reason == PROBE:
                state.status[0]["changes"] = 0
            elif reason == DONE:
                break
            else:
                return state, reason
    return state, DONE


def twin_of(X, labels, risk_options, loss="squared_error", outputs=1, **options):
    binary = outputs == 1 and loss in naive_losses.CLASSIFICATION
    return naive.colk(
        TWIN, X, 2.0 * labels - 1.0 if binary else labels, loss, LOSS_NUMBERS.get(loss, 0.0),
        outputs, **options, **risk_options,
    )  # fmt: skip


def distance(points, weights, other_points, other_weights):
    together = np.vstack([points, other_points])
    K = naive_kernels.matrix(TWIN, together, together)
    return hilbert_norm(K, np.vstack([weights, -other_weights]))


def compare(X, labels, risk_options, sparse=False, weights=None, **options):
    options = {"loss": "squared_error", "regularisation": 0.05, "budget_number": 0.05, "batch": 2,
               **options}  # fmt: skip
    outputs = options.get("outputs", 1)
    state, reason = learn(
        X, labels, settings(**options), risk_of(**risk_options), sparse=sparse, weights=weights
    )
    assert reason == DONE
    model = twin_of(X, labels, risk_options, sample_weights=weights, **options)
    projected = np.hstack([model.weights, model.averaged])
    found = weights_of(state, outputs)
    assert {tuple(x) for x in points_of(state)} == {tuple(x) for x in model.points}
    columns = projected.shape[1]
    assert distance(points_of(state), found[:, :columns], model.points, projected) < 1e-6
    status = state.status[0]
    assert status["error_spent"] == pytest.approx(sum(model.errors), rel=1e-6, abs=1e-8)
    assert status["tracker"] == pytest.approx(model.trackers[-1], rel=1e-6, abs=1e-9)
    assert status["threshold"] == pytest.approx(model.thresholds[-1], rel=1e-6, abs=1e-9)
    if risk_options.get("tracking", "momentum") == "momentum":
        assert past_distance(state, outputs, *model.earlier) < 1e-6
    return state, model


def past_distance(state, outputs, points, weights):
    """How far the function that the state holds as its past is from another one."""
    n = state.extent
    return distance(state.points[:, :n].T, state.weights[-outputs:, :n].T, points, weights)


def expansion(points, weights):
    """Weight by point, to the last bit."""
    return {tuple(x): w for x, w in zip(points.tolist(), weights.tolist(), strict=True) if any(w)}


def past_of(state, outputs):
    n = state.extent
    return expansion(state.points[:, :n].T, state.weights[-outputs:, :n].T)


def present_of(state, outputs):
    return expansion(points_of(state), weights_of(state, outputs)[:, :outputs])


@pytest.mark.parametrize("tracking", ["momentum", "average"])
@pytest.mark.parametrize("risk", RISKS)
def test_regression_equals_the_twin(risk, tracking):
    X, y = stream()
    state, model = compare(X, y, {"risk": risk, "tracking": tracking, "level": 0.7})
    assert 2 < state.order < len(np.unique(X, axis=0))
    assert max(model.errors) > 0.01
    neutral = twin_of(X, y, {"risk_weight": 0.0}, regularisation=0.05, budget_number=0.05)
    assert distance(neutral.points, neutral.weights, model.points, model.weights) > 1e-2


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("risk", ["semivariance", "cvar"])
def test_classification_equals_the_twin(risk, loss, outputs):
    X, labels = stream(outputs=outputs, regression=False)
    compare(
        X, labels, {"risk": risk, "risk_weight": 0.5}, loss=loss, outputs=outputs,
        initial_step=1.0, budget_number=0.1,
    )  # fmt: skip


@pytest.mark.parametrize("loss", ["absolute_error", "epsilon_insensitive", "huber", "quantile"])
def test_other_losses_equal_the_twin(loss):
    X, y = stream(seed=1)
    compare(X, y, {"risk": "moments", "order": 3}, loss=loss)


@pytest.mark.parametrize("batch", [2, 4, 6])
@pytest.mark.parametrize("averaging", [0.0, 4.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_batches_averages_and_sparse_rows_equal_the_twin(batch, averaging, sparse):
    X, y = stream(seed=2)
    X[np.abs(X) < 0.3] = 0.0
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(X))
    compare(
        X, y, {"risk": "moments", "cut": 0.4, "beta": 0.3}, batch=batch, averaging=averaging,
        sparse=sparse, weights=weights,
    )  # fmt: skip


def test_a_cap_equals_the_twin():
    X, y = stream(seed=3)
    state, _ = compare(X, y, {"risk": "semivariance"}, most=5, budget_number=0.01)
    assert state.order == 5
    assert state.status[0]["forced"] > 0


def test_the_past_is_exact_after_every_step():
    """Through compression, with points taken in, projected, removed, and coming back."""
    X, y = stream(n=size(300, 60), seed=4)
    X[30:60] = X[:30]
    risk, state = risk_of("moments"), None
    ghosts = []
    for first in range(0, len(X) - 1, 2):
        part = slice(first, first + 2)
        budget = 0.02 if first % 8 else 0.2
        chosen = settings(loss="squared_error", batch=2, budget_number=budget, regularisation=0.01)
        before = {} if state is None else present_of(state, 1)
        state, _ = learn(X[part], y[part], chosen, risk, state=state)
        assert past_of(state, 1) == before
        ghosts.append(state.status[0]["ghosts"])
    assert min(ghosts) == 0
    assert max(ghosts) > 1


def test_many_points_at_once_become_ghosts():
    X, y = stream(n=size(80, 60), seed=5)
    state, _ = learn(X, y, settings(loss="squared_error", batch=2, budget_number=0.0), risk_of())
    before, order = present_of(state, 1), state.order
    state, reason = learn(
        X[:2] + 9.0, y[:2], settings(loss="squared_error", batch=2, budget_number=50.0),
        risk_of(), state=state,
    )  # fmt: skip
    assert reason == DONE
    assert state.order == 0
    assert state.status[0]["ghosts"] == order
    assert past_of(state, 1) == before
    assert past_of(resize(unpack(*pack(state)), order + 9), 1) == before


@pytest.mark.parametrize("loss", ["squared_error", "hinge", "log_loss"])
@pytest.mark.parametrize("tracking", ["momentum", "average"])
@pytest.mark.parametrize("batch", [2, 4])
def test_without_risk_it_is_polk_bit_for_bit(loss, tracking, batch):
    outputs = 3 if loss == "log_loss" else 1
    X, y = stream(n=size(400, 60), outputs=outputs, regression=loss == "squared_error")
    chosen = settings(loss=loss, outputs=outputs, batch=batch, regularisation=0.01)
    state, _ = learn(X, y, chosen, risk_of(risk_weight=0.0, tracking=tracking))
    polk = allocate(2, outputs, 2 * len(X), seed=1)
    i, reason = 0, PROBE
    while reason == PROBE:
        reason, i = call_pass(
            gradient_pass, polk, chosen, PROGRAM, rows_of(X), y, np.ones(len(X)), i
        )
        polk.status[0]["changes"] = 0
    assert np.array_equal(points_of(state), points_of(polk))
    assert np.array_equal(weights_of(state, outputs)[:, :outputs], weights_of(polk, outputs))
    assert state.status[0]["error_spent"] == polk.status[0]["error_spent"]


@pytest.mark.parametrize("tracking", ["momentum", "average"])
def test_coming_back_to_python_does_not_matter(tracking):
    X, y = stream(n=60)
    chosen = settings(loss="squared_error", batch=2, budget_number=0.05, averaging=4.0)
    risk, states = risk_of("moments", tracking=tracking), []
    for every in (2, 10, 60):
        predictions = np.full((60, 1), np.nan)
        state, _ = learn(X, y, chosen, risk, predictions=predictions, every=every)
        arrays, status = pack(state)
        del status["changes"]  # set back at probes, which the helper answers at once
        states.append(({k: v.tolist() for k, v in arrays.items()}, status, predictions.tolist()))
        assert np.isfinite(predictions).all()
    assert states[0] == states[1] == states[2]


def test_a_step_that_would_overflow_changes_nothing():
    X, y = stream(n=40)
    chosen = settings(loss="squared_error", batch=2)
    state, _ = learn(X[:38], y[:38], chosen, risk_of("moments"))
    before = pack(state)
    state, reason = learn(X[38:], np.array([1e30, 1.0]), chosen, risk_of("moments"), state=state)
    assert reason == DIVERGED
    arrays, status = pack(state)
    assert status == before[1]
    assert all(np.array_equal(arrays[name], array) for name, array in before[0].items())
