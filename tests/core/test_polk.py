"""The compiled passes against POLK written out step by step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from kernelstream.core.blocks import gradient_pass
from kernelstream.core.loop import pursuit_pass
from kernelstream.core.passes import (
    DIVERGED,
    DONE,
    FULL,
    PROBE,
    PROBE_EVERY,
    SMALLEST_SCALE,
)
from kernelstream.core.reduce import komp
from kernelstream.core.state import allocate, pack, resize
from tests.core.tools import (
    COMPILED,
    KERNELS,
    LOSS_NUMBERS,
    call_pass,
    gaussian,
    kernel_matrix,
    learn,
    points_of,
    rows_of,
    settings,
    size,
    weights_of,
)
from tests.naive import kernels as naive_kernels
from tests.naive import losses as naive_losses
from tests.naive.komp import hilbert_norm
from tests.naive.polk import polk

wrapping_integers = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
PROGRAM, TWIN = gaussian(2.0), naive_kernels.gaussian(2.0)
SAMPLES = size(60, 36)
GRID = np.random.default_rng(99).normal(size=(30, 2)) * 1.5


def stream(n=SAMPLES, outputs=1, regression=False, seed=0, duplicates=True):
    """Samples, some of them twice, and labels 0 .. k - 1 or regression targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if duplicates:
        again = rng.random(n) < 0.15
        X[again] = X[rng.integers(n, size=again.sum())]
    if regression:
        return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    noisy = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(noisy, np.linspace(-0.4, 0.4, max(outputs, 2) - 1)).astype(float)


def twin_of(X, labels, twin=TWIN, loss="hinge", outputs=1, **options):
    binary = outputs == 1 and loss in naive_losses.CLASSIFICATION
    return polk(
        twin, X, 2.0 * labels - 1.0 if binary else labels, loss,
        LOSS_NUMBERS.get(loss, 0.0), outputs, **options,
    )  # fmt: skip


def values_on_grid(points, weights, twin=TWIN):
    return naive_kernels.matrix(twin, GRID, points) @ weights


def on_grid(state, outputs=1):
    return values_on_grid(points_of(state), weights_of(state, outputs))


def same_model(state, outputs, model, twin=TWIN):
    """The same function, of the same points."""
    weights = weights_of(state, outputs)
    expected = np.hstack([model.weights, model.averaged])
    assert {tuple(x) for x in points_of(state)} == {tuple(x) for x in model.points}
    assert state.order == len(model.points)
    points = np.vstack([points_of(state), model.points])
    K = naive_kernels.matrix(twin, points, points)
    size_of_f = hilbert_norm(K, np.vstack([0 * weights, expected]))
    assert hilbert_norm(K, np.vstack([weights, -expected])) <= 1e-6 * (1.0 + size_of_f)
    assert values_on_grid(points_of(state), weights, twin) == pytest.approx(
        values_on_grid(model.points, expected, twin), rel=1e-7, abs=1e-7
    )
    assert state.status[0]["error_spent"] == pytest.approx(sum(model.errors), rel=1e-6, abs=1e-8)


def packed(state):
    """Everything that is saved, to the last bit."""
    arrays, status = pack(state)
    return {name: array.tolist() for name, array in arrays.items()} | status


def compare(X, labels, sparse=False, weights=None, **options):
    state, reason, consumed = learn(
        PROGRAM, X, labels, settings(**options), weights=weights, sparse=sparse
    )
    assert (reason, consumed) == (DONE, len(X))
    assert state.status[0]["seen"] == len(X)
    assert state.status[0]["steps"] == -(-len(X) // options.get("batch", 1))
    model = twin_of(X, labels, sample_weights=weights, **options)
    same_model(state, options.get("outputs", 1), model)
    return state, model


@pytest.mark.parametrize("batch", [1, 4, 32])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("loss", naive_losses.CLASSIFICATION)
def test_classification_equals_the_twin(loss, outputs, batch):
    X, labels = stream(outputs=outputs)
    # Small batches take small steps: a budget that compresses, but not everything.
    state, model = compare(
        X, labels, loss=loss, outputs=outputs, batch=batch, regularisation=0.05,
        initial_step=1.0, budget_number=0.15 if batch == 1 else 0.1,
    )  # fmt: skip
    assert 2 < state.order < len(np.unique(X, axis=0))
    assert max(model.errors) > 0.01


@pytest.mark.parametrize("batch", [1, 4, 32])
@pytest.mark.parametrize("loss", naive_losses.REGRESSION)
def test_regression_equals_the_twin(loss, batch):
    X, targets = stream(regression=True)
    state, _ = compare(X, targets, loss=loss, batch=batch, regularisation=0.01, budget_number=0.05)
    assert 1 < state.order < len(np.unique(X, axis=0))


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("schedule", ["constant", "inverse_time", "inverse_sqrt"])
@pytest.mark.parametrize("budget", ["fixed", "three_halves", "square"])
def test_schedules_and_budgets_equal_the_twin(schedule, budget, batch):
    X, labels = stream()
    compare(
        X, labels, batch=batch, schedule=schedule, decay=0.2, budget=budget, budget_number=0.2,
        initial_step=0.8, regularisation=0.02,
    )  # fmt: skip


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(("averaging", "horizon"), [(1.0, np.inf), (3.0, np.inf), (2.0, 5.0)])
def test_averages_equal_the_twin(averaging, horizon, outputs, batch):
    X, labels = stream(outputs=outputs)
    state, model = compare(
        X, labels, batch=batch, outputs=outputs, averaging=averaging, horizon=horizon,
        regularisation=0.2, budget_number=0.1,
    )  # fmt: skip
    assert len(state.weights) == 2 * outputs
    assert np.abs(model.weights - model.averaged).max() > 0.01


def test_the_average_is_the_average_of_the_functions():
    """Without compression: the mean over t of f_t, on the grid."""
    X, labels = stream(20)
    state, _, _ = learn(PROGRAM, X, labels, settings(averaging=1.0, budget_number=0.0))
    values = []
    for t in range(1, 21):
        model = twin_of(X[:t], labels[:t], budget_number=0.0)
        values.append(values_on_grid(model.points, model.weights)[:, 0])
    averaged = on_grid(state)[:, 1]
    assert averaged == pytest.approx(np.mean(values, axis=0), abs=1e-9)


@pytest.mark.parametrize("averaging", [0.0, 1.0])
@pytest.mark.parametrize("outputs", [1, 3])
def test_predictions_are_made_before_learning(averaging, outputs):
    X, labels = stream(25, outputs)
    chosen = settings(averaging=averaging, outputs=outputs, regularisation=0.1)
    predictions = np.full((25, outputs), np.nan)
    state, _, _ = learn(PROGRAM, X, labels, chosen, predictions=predictions)
    silent, _, _ = learn(PROGRAM, X, labels, chosen)
    assert packed(state) == packed(silent)
    for t in (0, 1, 10, 24):
        model = twin_of(X[:t], labels[:t], averaging=averaging, outputs=outputs, regularisation=0.1)
        weights = model.averaged if averaging else model.weights
        expected = naive_kernels.matrix(TWIN, X[t : t + 1], model.points) @ weights
        assert predictions[t] == pytest.approx(expected[0], abs=1e-8)


@pytest.mark.parametrize("batch", [1, 4])
def test_sample_weights_equal_the_twin(batch):
    X, labels = stream()
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(X))
    weighted, _ = compare(X, labels, weights=weights, batch=batch, budget_number=0.2)
    plain, _, _ = learn(PROGRAM, X, labels, settings(batch=batch, budget_number=0.2))
    assert np.abs(on_grid(weighted) - on_grid(plain)).max() > 0.1


@pytest.mark.parametrize("batch", [1, 4])
def test_samples_without_weight_only_make_time_pass(batch):
    X, labels = stream(12)
    state, _, _ = learn(
        PROGRAM, X, labels, settings(batch=batch, budget_number=0.0), weights=np.zeros(12)
    )
    assert state.order == 0
    assert state.status[0]["seen"] == 12


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("most", [1, 2, 7])
def test_the_cap_equals_the_twin(most, batch):
    X, labels = stream()
    state, model = compare(X, labels, most=most, batch=batch, budget_number=0.05)
    assert max(model.orders) <= most
    assert state.status[0]["forced"] > 0


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("averaging", [0.0, 1.0])
def test_strong_regularisation_equals_the_twin(averaging, batch):
    """The common scale underflows its limit several times and is folded into the weights."""
    X, labels = stream(SAMPLES * (1 if batch == 1 else 2))
    shrink = 1.0 - 0.5 * 1.7
    steps = len(X) // batch
    assert shrink**steps < SMALLEST_SCALE
    state, _ = compare(
        X, labels, batch=batch, regularisation=1.7, budget_number=0.02, averaging=averaging
    )
    assert SMALLEST_SCALE <= state.status[0]["scale"] <= 1.0


@pytest.mark.parametrize("name", ["laplacian", "matern32", "polynomial", "product of sums"])
@pytest.mark.parametrize("batch", [1, 4])
def test_other_kernels_equal_the_twin(name, batch):
    kernel_program, twin = KERNELS[name]
    X, labels = stream(24, duplicates=False)
    options = {"batch": batch, "regularisation": 0.01, "budget_number": 0.3}
    state, _, _ = learn(kernel_program, X, labels, settings(**options))
    same_model(state, 1, twin_of(X, labels, twin, **options), twin)


@hypothesis_settings(max_examples=size(30, 8))
@given(
    seed=st.integers(0, 2**32 - 1),
    batch=st.integers(1, 6),
    outputs=st.sampled_from([1, 2, 4]),
    budget=st.floats(0.02, 0.5),
    most=st.integers(1, 30),
    regularisation=st.floats(0.0, 0.5),
    averaging=st.sampled_from([0.0, 1.0]),
)
def test_random_settings_equal_the_twin(
    seed, batch, outputs, budget, most, regularisation, averaging
):
    X, labels = stream(20, outputs, seed=seed)
    # Unequal weights: two points with the same coefficient would cost the same, a tie.
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, 20)
    compare(
        X, labels, weights=weights, loss="log_loss", outputs=outputs, batch=batch, most=most,
        budget_number=budget, regularisation=regularisation, averaging=averaging,
    )  # fmt: skip


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("averaging", [0.0, 1.0])
def test_every_step_keeps_the_budget(batch, averaging):
    X, labels = stream()
    options = {
        "batch": batch, "regularisation": 0.1, "budget_number": 0.12, "averaging": averaging,
    }  # fmt: skip
    chosen = settings(**options)
    state, booked, orders = None, [], []
    for first in range(0, len(X), batch):
        before = 0.0 if state is None else float(state.status[0]["error_spent"])
        state, _, _ = learn(PROGRAM, X[: first + batch], labels[: first + batch], chosen,
                            state=state, first=first)  # fmt: skip
        booked.append(float(state.status[0]["error_spent"]) - before)
        orders.append(state.order)
    model = twin_of(X, labels, **options)
    assert booked == pytest.approx(model.errors, abs=1e-7)
    assert orders == model.orders
    assert max(booked) <= 0.12 * (1 + 1e-12)
    assert max(model.errors) <= 0.12 * (1 + 1e-9)


@pytest.mark.parametrize("batch", [1, 4, 32])
@pytest.mark.parametrize("outputs", [1, 3])
def test_dense_and_sparse_learn_the_same(batch, outputs):
    X, labels = stream(outputs=outputs)
    X[np.random.default_rng(5).random(X.shape) < 0.3] = 0.0
    options = {"batch": batch, "outputs": outputs, "budget_number": 0.1, "regularisation": 0.1}
    dense, _, _ = learn(PROGRAM, X, labels, settings(**options))
    sparse, _, _ = learn(PROGRAM, X, labels, settings(**options), sparse=True)
    assert np.array_equal(points_of(dense), points_of(sparse))
    assert weights_of(sparse, outputs) == pytest.approx(weights_of(dense, outputs), abs=1e-9)
    assert sparse.status[0]["error_spent"] == pytest.approx(dense.status[0]["error_spent"])
    same_model(sparse, outputs, twin_of(X, labels, **options))


def test_many_features_equal_the_twin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 25)) / 3.0
    labels = (X[:, 0] > 0).astype(float)
    for batch in (1, 8):
        options = {"batch": batch, "budget_number": 0.3 if batch == 1 else 0.08}
        for sparse in (False, True):
            state, _, _ = learn(gaussian(0.2), X, labels, settings(**options), sparse=sparse)
            model = twin_of(X, labels, naive_kernels.gaussian(0.2), **options)
            weights = weights_of(state, 1)
            assert {tuple(x) for x in points_of(state)} == {tuple(x) for x in model.points}
            place = [int(np.flatnonzero((model.points == x).all(axis=1))[0]) for x in
                     points_of(state)]  # fmt: skip
            assert weights == pytest.approx(model.weights[place], abs=1e-8)


def test_a_batch_of_one_is_a_single_step():
    X, labels = stream()
    chosen = settings(regularisation=0.1, budget_number=0.1)
    single, _, _ = learn(PROGRAM, X, labels, chosen, compiled_pass=pursuit_pass)
    batch, _, _ = learn(PROGRAM, X, labels, chosen, compiled_pass=gradient_pass)
    assert {tuple(x) for x in points_of(single)} == {tuple(x) for x in points_of(batch)}
    assert on_grid(batch) == pytest.approx(on_grid(single), abs=1e-8)


def test_blocked_compression_inside_a_pass(monkeypatch):
    """Too many points for the twin: the distance to f~ by its definition, step by step."""
    batch, budget = size(64, 8), 0.03
    if not COMPILED:  # only the interpreter sees changed constants
        monkeypatch.setattr(komp, "BLOCKED_FROM", 8)
        monkeypatch.setattr(komp, "BLOCK", 3)
    X, targets = stream(size(640, 40), regression=True, duplicates=False)
    X *= size(4.0, 1.5)
    chosen = settings(loss="squared_error", batch=batch, budget_number=budget, regularisation=0.1)
    state = allocate(2, 1, 400, 1)
    blocked = 0
    for first in range(0, len(X), batch):
        part = slice(first, first + batch)
        points, weights = points_of(state), weights_of(state, 1)
        before = float(state.status[0]["error_spent"])
        state, _, _ = learn(PROGRAM, X[part], targets[part], chosen, state=state)
        slopes = kernel_matrix(PROGRAM, X[part], points)[0] @ weights - targets[part, None]
        everything = np.vstack([points, X[part], points_of(state)])
        gap = np.vstack([weights * 0.95, -0.5 / batch * slopes, -weights_of(state, 1)])
        error = hilbert_norm(kernel_matrix(PROGRAM, everything, everything)[0], gap)
        assert state.status[0]["error_spent"] - before == pytest.approx(error, abs=1e-7)
        assert error <= budget * (1 + 1e-6)
        removed = len(points) + batch - state.order
        blocked += len(points) + batch >= komp.BLOCKED_FROM and removed > 1
    assert blocked > 2


@pytest.mark.parametrize("projection", [komp.GREEDY, komp.RANDOM])
@pytest.mark.parametrize("averaging", [0.0, 1.0])
@wrapping_integers
def test_chunks_make_no_difference(projection, averaging):
    X, labels = stream()
    chosen = settings(
        budget_number=0.1, regularisation=0.3, projection=projection, averaging=averaging
    )
    expected, _, _ = learn(PROGRAM, X, labels, chosen)
    for chunk in (1, 7):
        state = None
        for first in range(0, len(X), chunk):
            part = slice(first, first + chunk)
            state, _, _ = learn(PROGRAM, X[part], labels[part], chosen, state=state)
        assert packed(state) == packed(expected)


@pytest.mark.parametrize("compiled_pass", [pursuit_pass, gradient_pass])
def test_a_full_state_is_handed_back_and_resumed(compiled_pass):
    X, labels = stream(SAMPLES, duplicates=False)
    batch = 1 if compiled_pass is pursuit_pass else 4
    chosen = settings(batch=batch, budget_number=0.0)
    rows, weights = rows_of(X), np.ones(len(X))
    state = allocate(2, 1, 10, 1)
    reason, i = call_pass(compiled_pass, state, chosen, PROGRAM, rows, labels, weights, 0)
    assert reason == FULL
    assert i == state.status[0]["seen"] < len(X)
    assert state.order + batch > state.capacity
    before = packed(state)
    again = call_pass(compiled_pass, state, chosen, PROGRAM, rows, labels, weights, i)
    assert again == (FULL, i)
    assert packed(state) == before
    state = resize(state, 100)
    reason, i = call_pass(compiled_pass, state, chosen, PROGRAM, rows, labels, weights, i)
    assert (reason, i) == (DONE, len(X))
    roomy, _, _ = learn(PROGRAM, X, labels, chosen, capacity=100)
    assert packed(state) == packed(roomy)


@pytest.mark.parametrize("compiled_pass", [pursuit_pass, gradient_pass])
def test_the_factor_is_shown_to_the_caller_now_and_then(compiled_pass):
    batch = 1 if compiled_pass is pursuit_pass else 4
    X, labels = stream(600, duplicates=False)
    chosen = settings(batch=batch, budget_number=0.0, most=6, loss="log_loss")
    rows, weights = rows_of(X), np.ones(len(X))
    state = allocate(2, 1, 20, 1)
    reason, i = call_pass(compiled_pass, state, chosen, PROGRAM, rows, labels, weights, 0)
    assert reason == PROBE
    assert i == state.status[0]["seen"] < len(X)
    assert PROBE_EVERY <= state.status[0]["changes"] < PROBE_EVERY + 2 * batch
    # Until the caller has looked, nothing goes on.
    again = call_pass(compiled_pass, state, chosen, PROGRAM, rows, labels, weights, i)
    assert again == (PROBE, i)
    state.status[0]["changes"] = 0
    reason, later = call_pass(compiled_pass, state, chosen, PROGRAM, rows, labels, weights, i)
    assert reason == PROBE
    assert later > i


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("averaging", [0.0, 1.0])
def test_divergence_leaves_the_state_as_it_was(batch, averaging):
    X, targets = stream(40, regression=True, duplicates=False)
    weights = np.ones(40)
    weights[21] = 1e200
    chosen = settings(loss="squared_error", batch=batch, averaging=averaging, budget_number=0.01)
    state, reason, i = learn(PROGRAM, X, targets, chosen, weights=weights)
    assert (reason, i) == (DIVERGED, 21 // batch * batch)
    expected, _, _ = learn(PROGRAM, X[:i], targets[:i], chosen)
    assert packed(state) == packed(expected)


@pytest.mark.parametrize("batch", [1, 4])
def test_a_step_that_is_too_large_is_noticed(batch):
    X, targets = stream(600, regression=True)
    chosen = settings(
        loss="squared_error", batch=batch, initial_step=50.0, most=4, budget_number=0.0
    )
    state, reason, _ = learn(gaussian(0.001), X, targets, chosen)
    assert reason == DIVERGED
    assert np.isfinite(state.weights[:, : state.order]).all()


@pytest.mark.parametrize("batch", [1, 8])
def test_identical_rows_are_one_point(batch):
    X, labels = np.ones((24, 2)), (np.arange(24) % 3 == 0).astype(float)
    state, _ = compare(X, labels, loss="log_loss", batch=batch, budget_number=0.0)
    assert state.order == 1
    assert state.status[0]["dependent"] == 23


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("averaging", [0.0, 1.0])
def test_what_dependent_samples_cost_is_booked(averaging, batch):
    """Almost duplicates are never stored; after shrinking, their error is in true units."""
    X, labels = stream(8 * batch, duplicates=False)
    chosen = settings(
        loss="log_loss", batch=batch, regularisation=1.0, budget_number=0.0, averaging=averaging
    )
    state, _, _ = learn(PROGRAM, X, labels, chosen)
    scale = state.status[0]["scale"]
    assert scale < 0.01
    points, weights = points_of(state), weights_of(state, 1)
    near = X[:batch] + 3.5e-6 / np.sqrt(2.0)  # delta = 2 gamma distance^2 = 5e-11
    new_state, _, _ = learn(PROGRAM, near, np.ones(batch), chosen, state=resize(state, 64))
    assert np.array_equal(points_of(new_state), points)

    f = naive_kernels.matrix(TWIN, near, points) @ weights[:, :1]
    slopes = np.array([naive_losses.derivative("log_loss", 0.0, v, 1.0) for v in f])
    expected = np.zeros((len(points) + batch, weights.shape[1]))
    expected[: len(points)] = weights
    expected[: len(points), 0] *= 0.5
    expected[len(points) :, :1] = -0.5 / batch * slopes
    if averaging:
        expected[:, 1] += (expected[:, 0] - expected[:, 1]) / 9.0
    expected[: len(points)] -= weights_of(new_state, 1)
    everything = np.vstack([points, near])
    error = hilbert_norm(naive_kernels.matrix(TWIN, everything, everything), expected)
    booked = new_state.status[0]["error_spent"] - state.status[0]["error_spent"]
    assert error > 1e-7
    assert booked == pytest.approx(error, rel=0.2)


@pytest.mark.parametrize("batch", [1, 4])
def test_a_huge_budget_keeps_nothing(batch):
    X, labels = stream()
    state, _ = compare(X, labels, batch=batch, budget_number=1e6)
    assert state.order == 0
    # One sample at a time, the booked error is that of the sample alone.
    if batch == 1:
        assert state.status[0]["error_spent"] == pytest.approx(0.5 * len(X))


@wrapping_integers
def test_random_projection_keeps_the_budget():
    X, labels = stream()
    chosen = settings(budget_number=0.1, projection=komp.RANDOM)
    state, booked = None, []
    for first in range(len(X)):
        before = 0.0 if state is None else float(state.status[0]["error_spent"])
        state, _, _ = learn(PROGRAM, X[: first + 1], labels[: first + 1], chosen, state=state,
                            first=first)  # fmt: skip
        booked.append(float(state.status[0]["error_spent"]) - before)
    assert max(booked) <= 0.1 * (1 + 1e-12)
    greedy, _, _ = learn(PROGRAM, X, labels, settings(budget_number=0.1))
    assert state.order >= greedy.order


def test_input_is_not_modified():
    X, labels = stream()
    weights = np.full(len(X), 2.0)
    copies = X.copy(), labels.copy(), weights.copy()
    for batch in (1, 4):
        for sparse in (False, True):
            learn(PROGRAM, X, labels, settings(batch=batch), weights=weights, sparse=sparse)
    for given_array, copy in zip((X, labels, weights), copies, strict=True):
        assert np.array_equal(given_array, copy)
