"""The compiled pass against AVM written out step by step."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from kernelstream.core import avm as core
from kernelstream.core import counts, coverage, kernel
from kernelstream.core.passes import DIVERGED, DONE, FULL, UNUSABLE
from kernelstream.core.settings import make_settings
from kernelstream.core.state import allocate, pack, resize, unpack
from tests.core.tools import (
    LOSS_NUMBERS,
    LOSSES,
    call_pass,
    from_python,
    gaussian,
    points_of,
    program,
    rows_of,
    sets,
    size,
)
from tests.naive import avm as twin
from tests.naive import losses as naive_losses

SAMPLES = size(120, 40)
SHAPES = {"hypersphere": coverage.HYPERSPHERE, "hyperrectangle": coverage.HYPERRECTANGLE}
KERNELS = {
    "gaussian": (gaussian(0.7), twin.gaussian(0.7)),
    "matern32": (program((kernel.MATERN32, 0.4)), twin.matern32(0.4)),
}
only_sets = from_python(counts.only_sets)
drawing = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


def settings(
    loss="hinge", regularisation=0.1, shape="hypersphere", delta=1.0, beta=0.0, rho=1.0,
    most=10**9, suffix=0.0, memory=0.0, projected=None, outputs=1,
):  # fmt: skip
    """Settings of the pass by the names that the twin uses."""
    if projected is None:
        projected = loss in ("squared_error", "squared_hinge") and regularisation <= 1.0
    return make_settings(
        loss=LOSSES[loss],
        loss_number=float(LOSS_NUMBERS.get(loss, 0.0)),
        regularisation=float(regularisation),
        cell_shape=SHAPES[shape],
        delta=float(delta),
        exact=float(beta),
        exact_decay=float(rho),
        most=most,
        suffix=float(suffix),
        memory=float(memory),
        ball=projected,
        outputs=outputs,
    )[0]


def stream(n=SAMPLES, features=2, outputs=1, regression=False, seed=0):
    """Samples, some of them twice and with zeros, and labels 0 .. k - 1 or numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    X[rng.random(X.shape) < 0.3] = 0.0
    again = rng.random(n) < 0.15
    X[again] = X[rng.integers(n, size=again.sum())]
    signal = X[:, 0] * X[:, -1] + 0.3 * rng.normal(size=n)
    if regression:
        return X, signal
    edges = np.quantile(signal, np.arange(1, max(outputs, 2)) / max(outputs, 2))
    return X, np.digitize(signal, edges).astype(float)


def learn(
    kernel_program, X, labels, chosen, sparse=False, weights=None, state=None, seed=1, steps=None,
    predictions=None,
):  # fmt: skip
    """Run the pass to its end; with ``steps`` it stops after every sample and is noted there."""
    if state is None:
        parts = 1 if chosen.suffix == 0.0 else 2 if chosen.suffix == 1.0 else 3
        state = allocate(X.shape[1], chosen.outputs * parts, 4, seed, factored=False)
    labels = np.ascontiguousarray(labels, dtype=float)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    out = np.empty((0, chosen.outputs)) if predictions is None else predictions
    edges = range(1, len(X) + 1) if steps is not None else [len(X)]
    i = 0
    for end in edges:
        rows = rows_of(X[:end], sparse)
        while i < end:
            reason, i = call_pass(
                core.cell_pass, state, chosen, kernel_program, rows, labels[:end], weights[:end],
                i, out,
            )  # fmt: skip
            if reason == FULL:
                state = resize(state, 2 * state.capacity)
            elif reason != DONE:
                return state, reason, i
        if steps is not None:
            steps.append(state.order)
    return state, DONE, i


def true_weights(state, outputs):
    """Of the last iterate, and of the average."""
    status, weights = state.status[0], state.weights[:, : state.order].T
    last = weights[:, :outputs]
    if weights.shape[1] == outputs:
        return last * status["scale"], np.zeros_like(last)
    total = status["summed"] * last - weights[:, outputs : 2 * outputs]
    if weights.shape[1] > 2 * outputs:
        total = total + weights[:, 2 * outputs :]
    return last * status["scale"], total / max(1, status["averaged"] + status["before"])


def compare(X, labels, sparse=False, weights=None, name="gaussian", **options):
    """The same decisions, step by step, and the same numbers."""
    compiled_kernel, naive_kernel = KERNELS[name]
    loss, outputs = options.get("loss", "hinge"), options.get("outputs", 1)
    orders = []
    state, reason, _ = learn(
        compiled_kernel, X, labels, settings(**options), sparse, weights, steps=orders
    )
    assert reason == DONE
    binary = outputs == 1 and loss in naive_losses.CLASSIFICATION
    targets = 2.0 * labels - 1.0 if binary else labels
    number = LOSS_NUMBERS.get(loss, 0.0)
    model = twin.avm(
        naive_kernel, X, targets, loss_number=number, sample_weights=weights,
        **{"loss": loss, **options},
    )  # fmt: skip
    expected_orders = np.maximum.accumulate(
        [0 if place is None else place + 1 for place in model.decisions]
    )
    assert orders == expected_orders.tolist()
    status = state.status[0]
    assert status["cells"] == len(model.core)
    assert status["taken"] == sum(place is not None for place in model.decisions)
    assert status["forced"] == model.forced
    assert status["seen"] == status["steps"] == len(X)
    stored = points_of(state)
    assert np.array_equal(stored[: len(model.core)], model.points[model.core])
    # Points without a cell move when one is added: they are found by their coordinates.
    order = [int(np.flatnonzero((model.points == x).all(axis=1))[0]) for x in stored]
    assert sorted(order) == list(range(len(model.points)))
    last, averaged = true_weights(state, outputs)
    # Weights cancel: what is left is known to the rounding of the steps that made it.
    step = np.abs(model.weights).max(initial=0.0) + 1.0 / options.get("regularisation", 0.1)
    assert last == pytest.approx(model.weights[order], rel=1e-9, abs=1e-11 * step)
    assert averaged == pytest.approx(model.averaged[order], rel=1e-9, abs=1e-11 * step)
    assert status["error_spent"] == pytest.approx(model.errors, rel=1e-6, abs=1e-6 * step)
    if model.norms:
        assert math.sqrt(status["square_norm"]) == pytest.approx(model.norms[-1], rel=1e-6)
    return state, model


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("loss", naive_losses.CLASSIFICATION)
def test_classification_equals_the_twin(loss, outputs, shape, sparse):
    X, labels = stream(outputs=outputs)
    state, _ = compare(X, labels, sparse, loss=loss, outputs=outputs, shape=shape)
    assert 3 < state.order < 40


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", naive_losses.REGRESSION)
def test_regression_equals_the_twin(loss, shape, sparse):
    X, targets = stream(regression=True)
    compare(X, targets, sparse, loss=loss, shape=shape)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("features", [1, 16, 17, 40])
@pytest.mark.parametrize("name", KERNELS)
def test_any_width_and_kernel_equals_the_twin(name, features, sparse):
    X, labels = stream(features=features)
    delta = 1.2 * math.sqrt(2.0 * features)
    compare(X, labels, sparse, name=name, delta=delta)
    compare(X, labels, sparse, name=name, delta=delta, loss="squared_hinge", regularisation=0.01)


@drawing
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("beta", "rho"), [(1.0, 1.0), (10.0, 0.5), (3.0, 1.5), (1e9, 1.0)])
def test_samples_kept_exactly_equal_the_twin(beta, rho, shape):
    X, labels = stream()
    state, _ = compare(X, labels, beta=beta, rho=rho, shape=shape, loss="log_loss")
    assert state.order > state.status[0]["cells"]
    compare(X, labels, beta=beta, rho=rho, shape=shape, loss="squared_hinge")


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("suffix", [1.0, 0.5, 0.1, 0.9])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_averages_equal_the_twin(loss, suffix, outputs):
    X, labels = stream(outputs=outputs)
    _, model = compare(X, labels, loss=loss, suffix=suffix, outputs=outputs, regularisation=0.02)
    assert np.abs(model.weights - model.averaged).max() > 1e-3


@pytest.mark.parametrize("suffix", [0.1, 0.5, 0.9])
def test_the_suffix_is_never_shorter_than_asked_for_nor_twice_as_long(suffix):
    for t in range(math.ceil(5 / suffix), 400):
        part = 1.0 - twin.suffix_start(suffix, t) / t
        assert suffix - 2.0 / t <= part <= 2.0 * suffix - suffix**2 + 2.0 / t


@drawing
@pytest.mark.parametrize("beta", [0.0, 5.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_cap_equals_the_twin(shape, beta):
    X, labels = stream()
    state, _ = compare(X, labels, shape=shape, most=5, beta=beta)
    assert state.order == 5
    assert state.status[0]["forced"] > 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss"])
def test_sample_weights_equal_the_twin(loss):
    X, labels = stream()
    compare(X, labels, loss=loss, weights=np.random.default_rng(1).choice([0.5, 1.0, 3.0], len(X)))


@drawing
@given(data=st.data())
@hypothesis_settings(max_examples=size(150, 15))
def test_any_run_equals_the_twin(data):
    """Coordinates on a grid: equal distances and samples exactly on the edge of a cell are common.

    Targets and weights are not, or rounding would decide at the kinks of the losses.
    """
    outputs = data.draw(st.sampled_from([1, 3]))
    loss = data.draw(st.sampled_from(sorted(LOSSES)))
    if loss in naive_losses.REGRESSION:
        outputs = 1
    softmax = loss == "log_loss" and outputs > 1
    n, features = data.draw(st.integers(1, size(60, 12))), data.draw(st.integers(1, 20))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    X = rng.integers(-2, 3, (n, features)) / 2.0
    if loss in naive_losses.REGRESSION:
        labels = rng.normal(size=n)
    else:
        labels = rng.integers(max(outputs, 2), size=n).astype(float)
    compare(
        X, labels, data.draw(st.booleans()),
        weights=rng.uniform(0.5, 2.0, n),
        name=data.draw(st.sampled_from(sorted(KERNELS))),
        loss=loss, outputs=outputs,
        shape=data.draw(st.sampled_from(sorted(SHAPES))),
        delta=data.draw(st.sampled_from([0.5, 1.0, 2.0, 3.0, 4.0])),
        # Less would drive softmax to where rounding decides whether anything is left to learn.
        regularisation=data.draw(st.sampled_from([0.31, 1.0, 4.1, 0.31 if softmax else 0.013])),
        beta=data.draw(st.sampled_from([0.0, 2.0])),
        most=data.draw(st.sampled_from([10**9, 3])),
        suffix=data.draw(st.sampled_from([0.0, 1.0, 0.3])),
    )  # fmt: skip


@pytest.mark.parametrize("suffix", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("outputs", [1, 3])
def test_predictions_are_made_before_learning(suffix, outputs):
    X, labels = stream(30, outputs=outputs)
    chosen = settings(suffix=suffix, outputs=outputs)
    predictions = np.full((30, outputs), np.nan)
    learn(KERNELS["gaussian"][0], X, labels, chosen, predictions=predictions)
    targets = 2.0 * labels - 1.0 if outputs == 1 else labels
    for t in (0, 1, 10, 29):
        model = twin.avm(
            KERNELS["gaussian"][1], X[:t], targets[:t], "hinge", outputs=outputs, suffix=suffix
        )
        values = np.exp(-0.7 * ((model.points - X[t]) ** 2).sum(axis=1))
        expected = values @ (model.averaged if suffix else model.weights)
        assert predictions[t] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("loss", "outputs"), [("hinge", 1), ("hinge", 3), ("huber", 1)])
def test_of_last_iterate_and_average_the_better_one_predicts(loss, outputs):
    regression, n = loss == "huber", 300
    X, labels = stream(n, outputs=outputs, regression=regression)
    labels[n // 2 :] = -labels[n // 2 :] if regression else outputs * labels[n // 2 :] % 2
    said = {}
    for name, options in (("last", {}), ("average", {"suffix": 0.5})):
        said[name] = np.empty((n, outputs))
        chosen = settings(loss, outputs=outputs, regularisation=0.01, **options)
        learn(gaussian(0.7), X, labels, chosen, predictions=said[name])
    mistakes = {
        name: np.abs(f[:, 0] - labels) if regression
        else ((f[:, 0] > 0.0) if outputs == 1 else f.argmax(axis=1)) != labels
        for name, f in said.items()
    }  # fmt: skip
    tracked, expected, used = 0.0, [], set()
    for t in range(n):
        used.add(name := "last" if tracked < 0.0 else "average")
        expected.append(said[name][t])
        if t % core.COMPARE_EVERY == 0:
            gap = float(mistakes["last"][t]) - float(mistakes["average"][t])
            tracked += (gap - tracked) / 5.0
    chosen = settings(loss, outputs=outputs, regularisation=0.01, suffix=0.5, memory=5.0)
    predictions = np.empty((n, outputs))
    state, _, _ = learn(gaussian(0.7), X, labels, chosen, predictions=predictions)
    assert predictions == pytest.approx(np.array(expected), rel=1e-9, abs=1e-9)
    assert state.status[0]["tracker"] == pytest.approx(tracked, abs=1e-9)
    assert used == {"last", "average"}


def test_samples_without_derivative_are_not_stored():
    X = np.array([[0.0], [0.1], [5.0]])
    state, _, _ = learn(gaussian(1.0), X, np.ones(3), settings(regularisation=0.01, delta=0.01))
    # The second lies beyond the margin of the first.
    assert points_of(state).ravel().tolist() == [0.0, 5.0]
    assert state.status[0]["taken"] == 2


def test_the_squared_loss_needs_the_ball():
    """Without the projection the same steps grow beyond all bounds."""
    X, targets = stream(200, regression=True)
    options = {"regularisation": 1e-4, "delta": 1.0}
    with np.errstate(all="ignore"):
        free = twin.avm(twin.gaussian(0.7), X, targets, "squared_error", projected=False, **options)
    assert not np.abs(free.weights).max() < 1e30
    state, reason, _ = learn(gaussian(0.7), X, targets, settings("squared_error", **options))
    assert reason == DONE
    radius = np.abs(targets).max() / math.sqrt(1e-4)
    points, (weights, _) = points_of(state), true_weights(state, 1)
    gram = np.exp(-0.7 * ((points[:, None] - points[None]) ** 2).sum(axis=2))
    norm = math.sqrt((weights * (gram @ weights)).sum())
    assert norm == pytest.approx(math.sqrt(state.status[0]["square_norm"]), rel=1e-6)
    assert norm <= radius * (1.0 + 1e-9)
    unbounded = settings("squared_error", projected=False, **options)
    _, reason, consumed = learn(gaussian(0.7), X, targets, unbounded)
    assert (reason, consumed < 200) == (DIVERGED, True)


def test_chunks_and_placement_do_not_change_a_bit():
    X, labels = stream(size(400, 30), features=19)
    chosen = settings(delta=5.0, loss="log_loss", suffix=0.4, memory=9.0)
    for sparse in (False, True):
        whole, _, _ = learn(gaussian(0.05), X, labels, chosen, sparse)
        pieces, _, _ = learn(gaussian(0.05), X, labels, chosen, sparse, steps=[])
        arrays, status = pack(whole)
        other_arrays, other_status = pack(pieces)
        assert status == other_status
        assert all(np.array_equal(arrays[name], other_arrays[name]) for name in arrays)


@drawing
@pytest.mark.parametrize("options", [
    {},
    {"loss": "log_loss", "outputs": 3, "suffix": 0.5},
    {"shape": "hyperrectangle", "delta": 4.0},
    {"beta": 5.0, "rho": 0.5, "delta": 6.0},
    {"beta": 5.0, "rho": 0.5, "delta": 6.0, "most": 9},
    {"loss": "squared_hinge", "regularisation": 0.01},
    {"loss": "squared_error"},
])  # fmt: skip
@pytest.mark.parametrize("features", [3, 40])
def test_a_pass_over_sets_equals_that_over_dense_rows(features, options):
    n, outputs = size(400, 80), options.get("outputs", 1)
    X = sets(n, features)
    labels = np.random.default_rng(1).integers(max(2, outputs), size=n).astype(float)
    chosen = settings(**{"delta": 4.0 if features > 3 else 1.5, **options})
    said = np.empty((2, n, outputs))
    models = [
        learn(gaussian(0.05), X, labels, chosen, sparse, predictions=predictions)
        for sparse, predictions in zip((False, True), said, strict=True)
    ]
    (dense, *ended), (sparse, *also) = models
    assert ended == also == [DONE, n]
    assert only_sets(rows_of(X, sparse=True), 0, n, sparse.points, sparse.order)
    assert np.array_equal(said[0], said[1])
    assert np.array_equal(points_of(dense), points_of(sparse))
    assert dense.status.tobytes() == sparse.status.tobytes()
    assert np.array_equal(true_weights(dense, outputs), true_weights(sparse, outputs))


def test_sets_and_other_rows_may_alternate():
    """Blocks with and without other numbers: counted, multiplied, and with points of both kinds."""
    n = size(240, 120)
    X = sets(n, 20)
    X[n // 3 : n // 2, 4] *= 0.5
    labels = np.random.default_rng(1).integers(2, size=n).astype(float)
    chosen = settings(delta=3.0)
    expected, _, _ = learn(gaussian(0.05), X, labels, chosen)
    state = allocate(20, 1, 4, 1, factored=False)
    edges = [0, n // 3, n // 2, n // 2 + 1, n]
    for begin, end in itertools.pairwise(edges):
        state, *_ = learn(
            gaussian(0.05), X[begin:end], labels[begin:end], chosen, sparse=True, state=state
        )
    assert np.array_equal(points_of(expected), points_of(state))
    assert np.array_equal(true_weights(expected, 1), true_weights(state, 1))


def test_a_table_is_made_again_when_the_state_grows():
    n = size(300, 100)
    X, labels = sets(n, 20), np.random.default_rng(1).integers(2, size=n).astype(float)
    chosen, rows = settings(delta=0.5), rows_of(X, sparse=True)
    state, places = allocate(20, 1, 1, 1, factored=False), []
    reason, i = FULL, 0
    while reason == FULL:
        reason, i = call_pass(
            core.cell_pass, state, chosen, gaussian(0.05), rows, labels, np.ones(n), i
        )
        if reason == FULL:
            places.append(i)
            state = resize(state, state.capacity + 13)
    assert reason == DONE
    assert len(places) > 2
    expected, _, _ = learn(gaussian(0.05), X, labels, chosen)
    assert np.array_equal(points_of(expected), points_of(state))
    assert np.array_equal(true_weights(expected, 1), true_weights(state, 1))


def test_bad_samples_stop_the_pass():
    X, labels = stream(10)
    X[4, 1] = np.nan
    state, reason, i = learn(gaussian(1.0), X, labels, settings(loss="log_loss"))
    assert (reason, i, state.status[0]["seen"]) == (UNUSABLE, 4, 4)


@drawing
def test_a_state_survives_the_file():
    X, labels = stream()
    chosen = settings(beta=3.0, suffix=0.5, memory=9.0, loss="squared_hinge")
    straight, _, _ = learn(gaussian(0.7), X, labels, chosen)
    half, _, _ = learn(gaussian(0.7), X[:25], labels[:25], chosen)
    assert half.factor.shape == (0, 0)
    again = unpack(*pack(half), factored=False)
    resumed, _, _ = learn(gaussian(0.7), X[25:], labels[25:], chosen, state=again)
    assert str(pack(straight)) == str(pack(resumed))
