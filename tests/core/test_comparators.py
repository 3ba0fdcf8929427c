"""Rules of the methods that others are compared with, against the methods written out."""

from functools import partial

import numpy as np
import pytest

from kernelstream.core.direct import (
    ADAPTIVE_MARGIN,
    PASSIVE_AGGRESSIVE,
    PASSIVE_AGGRESSIVE_SQUARED,
)
from kernelstream.core.direct.adaptive_margin import WIDTH
from kernelstream.core.grow import APPEND
from kernelstream.core.passes import DONE
from kernelstream.core.reduce import GROWING, NOTHING, SMALLEST, UNIFORM, WEIGHTED, WINDOW
from kernelstream.core.reduce.unbiased import remove_unbiased
from kernelstream.core.splitmix import uniform
from kernelstream.core.state import allocate, pack, unpack
from tests.core.test_removal import in_order, signed, stream
from tests.core.tools import from_python, gaussian, learn, points_of, settings, size, weights_of
from tests.naive import comparators as naive
from tests.naive import kernels as naive_kernels

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
PROGRAM, TWIN = gaussian(0.7), naive_kernels.gaussian(0.7)
SEED, ETA, ALPHA, NU = 3, 0.3, 0.02, 0.4

kinds = pytest.mark.parametrize("kind", ["random", "duplicates", "collinear", "huge"])
draw_one, remove_one = from_python(uniform), from_python(remove_unbiased)


def draws():
    """The numbers that a fresh state would draw."""
    status = allocate(1, 1, 1, seed=SEED).status[0]
    return lambda: draw_one(status)


#: Steps: settings, and the twin.
STEPS = {
    "perceptron": (
        {"loss": "perceptron", "initial_step": 1.0},
        partial(naive.gradient, "perceptron", 0.0, 1.0, 0.0),
    ),
    "OGD": (
        {"loss": "hinge", "initial_step": ETA, "regularisation": ALPHA},
        partial(naive.gradient, "hinge", 0.0, ETA, ALPHA),
    ),
    "Pegasos": (
        {"loss": "hinge", "initial_step": 1.0 / ALPHA, "regularisation": ALPHA, "decay": 1.0,
         "schedule": "inverse_time"},
        partial(naive.pegasos, "hinge", 0.0, ALPHA),
    ),
    "PA-I": (
        {"loss": "hinge", "direct": PASSIVE_AGGRESSIVE, "aggressiveness": 0.4},
        partial(naive.passive_aggressive, "hinge", 0.0, 0.4, 1),
    ),
    "PA-II": (
        {"loss": "hinge", "direct": PASSIVE_AGGRESSIVE_SQUARED, "aggressiveness": 0.4},
        partial(naive.passive_aggressive, "hinge", 0.0, 0.4, 2),
    ),
    "NORMA": (
        {"loss": "perceptron", "direct": ADAPTIVE_MARGIN, "initial_step": ETA, "nu": NU,
         "regularisation": ALPHA},
        partial(naive.Norma, ETA, ALPHA, NU),
    ),
}  # fmt: skip
#: The same for numbers.
NUMBER_STEPS = {
    "OGD": (
        {"loss": "squared_error", "initial_step": ETA, "regularisation": ALPHA},
        partial(naive.gradient, "squared_error", 0.0, ETA, ALPHA),
    ),
    "PA-I": (
        {"loss": "epsilon_insensitive", "direct": PASSIVE_AGGRESSIVE, "aggressiveness": 0.4},
        partial(naive.passive_aggressive, "epsilon_insensitive", 0.1, 0.4, 1),
    ),
    "NORMA": (
        {"loss": "epsilon_insensitive", "direct": ADAPTIVE_MARGIN, "initial_step": ETA, "nu": NU,
         "regularisation": ALPHA},
        partial(naive.Norma, ETA, ALPHA, NU, True),
    ),
}  # fmt: skip


def short(outputs, kind="random", interpreted=60):
    return (part[: size(200, interpreted)] for part in stream(outputs, kind))


def run(X, y, weights, outputs, state=None, sparse=False, **chosen):
    if state is None:
        state = allocate(X.shape[1], outputs, 4, seed=SEED, factored=False)
    predictions = np.empty((len(X), outputs))
    state, reason, _ = learn(
        PROGRAM, X, y, settings(outputs=outputs, grow=APPEND, **chosen), state=state,
        weights=weights, sparse=sparse, predictions=predictions,
    )  # fmt: skip
    assert reason == DONE
    return state, predictions


def agree(twin, *samples, ring=False, **chosen):
    """Dense and sparse: the same points and weights, and the same predictions all along."""
    for sparse in (True, False):
        state, predictions = run(*samples, sparse=sparse, **chosen)
        _agree(state, predictions, twin, ring)
    return state


def _agree(state, predictions, twin, ring):
    points, w, expected = twin
    found = in_order(state) if ring else (points_of(state), weights_of(state, len(state.weights)))
    assert np.array_equal(found[0], points)
    assert np.allclose(found[1], w, rtol=1e-9, atol=1e-11 * max(1.0, np.abs(w).max(initial=0.0)))
    assert np.allclose(predictions, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def twin_of(samples, step, room):
    X, y, weights, outputs = samples
    return naive.learn(TWIN, X, signed(y, outputs), weights, outputs, step, room)


@pytest.mark.parametrize("method", STEPS)
@kinds
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("most", [1, 12, None])
def test_steps_with_and_without_a_window(method, outputs, most, kind):
    samples = *short(outputs, kind), outputs
    chosen, make_step = STEPS[method]
    chosen = {**chosen, "reduce": NOTHING} if most is None else {**chosen, "reduce": WINDOW}
    step, room = make_step(), naive.unbounded if most is None else naive.window(most)
    twin = twin_of(samples, step, room)
    state = agree(twin, *samples, ring=most is not None, most=most or 10**9, **chosen)
    assert state.status[0]["taken"] > 0
    if method == "NORMA":
        assert np.isclose(state.status[0]["own"][WIDTH], step.width)


@pytest.mark.parametrize("method", NUMBER_STEPS)
@kinds
def test_steps_for_numbers(method, kind):
    X, _, weights = short(1, kind)
    y = np.sin(2.0 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=len(X))
    chosen, make_step = NUMBER_STEPS[method]
    twin = naive.learn(TWIN, X, y, weights, 1, make_step(), naive.window(20))
    agree(twin, X, y, weights, 1, ring=True, reduce=WINDOW, most=20, **chosen)


@kinds
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("most", [1, 2, 12])
def test_the_smallest_leaves(outputs, most, kind):
    samples = *short(outputs, kind), outputs
    chosen, make_step = STEPS["Pegasos"]
    twin = twin_of(samples, make_step(), naive.Smallest(TWIN, most))
    agree(twin, *samples, reduce=SMALLEST, most=most, **chosen)


@pytest.mark.parametrize("outputs", [1, 3])
def test_where_all_tie_the_oldest_leaves(outputs):
    """Pegasos' steps make weights of one size, but for rounding."""
    X, y, weights = short(outputs)
    samples = X, y, np.ones_like(weights), outputs
    chosen, make_step = STEPS["Pegasos"]
    twin = twin_of(samples, make_step(), naive.window(12))
    agree(twin, *samples, ring=True, reduce=SMALLEST, most=12, **chosen)


@pytest.mark.parametrize("sampling", ["uniform", "weighted"])
@kinds
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("most", [1, 2, 12])
def test_one_leaves_by_chance_and_the_others_grow(outputs, most, kind, sampling):
    samples = *short(outputs, kind), outputs
    chosen, make_step = STEPS["OGD"]
    room = naive.Unbiased(TWIN, most, sampling, 2.0 * ETA, draws())
    twin = twin_of(samples, make_step(), room)
    reduce = UNIFORM if sampling == "uniform" else WEIGHTED
    agree(twin, *samples, reduce=reduce, most=most, largest=2.0, **chosen)


@kinds
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(("start", "delay", "most"), [(1, 30.0, 20), (5, 60.0, 9), (8, 0.0, 10**6)])
def test_the_budget_grows_by_chance(outputs, start, delay, most, kind):
    samples = *short(outputs, kind, 100), outputs
    chosen, make_step = STEPS["Pegasos"]
    twin = twin_of(samples, make_step(), naive.Growing(TWIN, most, start, delay, draws()))
    chosen = {**chosen, "reduce": GROWING, "most": most, "start": start, "delay": delay}
    state = agree(twin, *samples, **chosen)
    assert start < state.order <= most
    if delay == 0.0:
        assert state.order == state.status[0]["taken"]


@pytest.mark.parametrize("reduce", [UNIFORM, WEIGHTED])
def test_a_draw_keeps_the_mean(reduce):
    """Of the old points, over many draws."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(40, 3)), rng.integers(2, size=40), rng.uniform(1, 2, size=40)
    full, _ = run(X, y, weights, 1, reduce=NOTHING, **STEPS["OGD"][0])
    old, count = full.order - 1, size(3000, 500)
    before, total = weights_of(full, 1)[:old, 0], np.zeros(old)
    places = {tuple(point): j for j, point in enumerate(points_of(full)[:old])}
    rule = settings(reduce=reduce, largest=1e9)
    for seed in range(count):
        state = unpack(*pack(full), factored=False)
        state.status[0]["random"] = seed
        remove_one(state, rule, ETA, np.empty((1, state.capacity)))
        for point, weight in zip(points_of(state), weights_of(state, 1)[:, 0], strict=True):
            if tuple(point) in places:
                total[places[tuple(point)]] += weight / count
    assert np.abs(total / before - 1.0).max() < 5.0 / count**0.5


@pytest.mark.parametrize("reduce", [SMALLEST, UNIFORM, WEIGHTED, GROWING])
def test_a_state_survives_the_file(reduce):
    X, y, weights = stream(3)
    chosen, _ = STEPS["Pegasos" if reduce in (SMALLEST, GROWING) else "OGD"]
    chosen = {**chosen, "reduce": reduce, "most": 9, "start": 4, "delay": 50.0, "largest": 2.0}
    straight, _ = run(X, y, weights, 3, **chosen)
    half, _ = run(X[:77], y[:77], weights[:77], 3, **chosen)
    again = unpack(*pack(half), factored=False)
    resumed, _ = run(X[77:], y[77:], weights[77:], 3, state=again, **chosen)
    assert str(pack(straight)) == str(pack(resumed))


def test_a_share_of_the_samples_is_within_the_margin():
    """nu, once the margin has found its place."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=2000) > 0.0).astype(float)
    chosen, _ = STEPS["NORMA"]
    state, _ = run(X, y, np.ones(2000), 1, reduce=WINDOW, most=100, **chosen)
    assert abs(state.status[0]["taken"] / 2000 - NU) < 0.03
