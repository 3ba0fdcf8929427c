"""Rules that let points leave for good, against perceptrons written out."""

import numpy as np
import pytest

from kernelstream.core.dictionary import random_below
from kernelstream.core.grow import APPEND
from kernelstream.core.passes import DONE
from kernelstream.core.reduce import FORGET, NOTHING, RANDOM, WINDOW
from kernelstream.core.reduce.forget import SPENT
from kernelstream.core.reduce.removal import keep_newest
from kernelstream.core.state import allocate, pack, unpack
from tests.core.tools import gaussian, learn, points_of, settings, size, weights_of
from tests.naive import kernels as naive_kernels
from tests.naive import removal as naive

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # random
PROGRAM, TWIN = gaussian(0.7), naive_kernels.gaussian(0.7)
N = size(400, 120)


def stream(outputs, kind="random", seed=0):
    """Samples and labels 0 .. k - 1; mistakes never end."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    if kind == "duplicates":
        X = X[rng.integers(7, size=N)]
    elif kind == "collinear":
        X = np.outer(rng.normal(size=N), [1.0, -2.0, 0.5])
    elif kind == "huge":
        X *= 1e150
    X[rng.random(X.shape) < 0.3] = 0.0
    y = rng.integers(max(outputs, 2), size=N).astype(float)
    y[::2] = np.digitize(X[::2, 0], np.linspace(-0.5, 0.5, max(outputs, 2) - 1))
    return X, y, rng.uniform(0.5, 1.5, size=N)  # no two sums cancel exactly


def run(X, y, weights, outputs, reduce, most, sparse=False, state=None):
    chosen = settings(
        "perceptron", outputs=outputs, initial_step=1.0, most=most, grow=APPEND, reduce=reduce
    )
    if state is None:
        state = allocate(X.shape[1], outputs, 4, seed=3, factored=False)
    predictions = np.empty((len(X), outputs))
    state, reason, _ = learn(
        PROGRAM, X, y, chosen, state=state, weights=weights, sparse=sparse, predictions=predictions
    )
    assert reason == DONE
    return state, predictions


def signed(y, outputs):
    return 2.0 * y - 1.0 if outputs == 1 else y


def in_order(state):
    """Points and weights from the oldest to the newest."""
    points, weights = points_of(state), weights_of(state, len(state.weights))
    turn = -int(state.status[0]["oldest"])
    return np.roll(points, turn, axis=0), np.roll(weights, turn, axis=0)


@pytest.mark.parametrize("kind", ["random", "duplicates", "collinear", "huge"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("most", [1, 2, 12])
@pytest.mark.parametrize("sparse", [False, True])
def test_random_budget_perceptron(outputs, most, kind, sparse):
    X, y, weights = stream(outputs, kind)
    state, predictions = run(X, y, weights, outputs, RANDOM, most, sparse)
    status = allocate(1, 1, 1, seed=3).status[0]
    points, w, expected = naive.rbp(
        TWIN, X, signed(y, outputs), weights, outputs, most, lambda n: random_below(status, n)
    )
    assert np.array_equal(points_of(state), points)
    assert np.allclose(weights_of(state, outputs), w, atol=1e-12)
    assert np.allclose(predictions, expected, atol=1e-11)


@pytest.mark.parametrize("kind", ["random", "duplicates", "collinear", "huge"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("most", [1, 2, 12, 50])
@pytest.mark.parametrize("sparse", [False, True])
def test_forgetron(outputs, most, kind, sparse):
    X, y, weights = stream(outputs, kind)
    state, predictions = run(X, y, weights, outputs, FORGET, most, sparse)
    points, w, expected = naive.forgetron(TWIN, X, signed(y, outputs), weights, outputs, most)
    found, found_weights = in_order(state)
    assert np.array_equal(found, points)
    assert np.allclose(found_weights, w, atol=1e-9)
    assert np.allclose(predictions, expected, atol=1e-9)
    status = state.status[0]
    assert status["own"][SPENT] <= 15.0 / 32.0 * status["taken"] * (1.0 + 1e-12)


@pytest.mark.parametrize("reduce", [WINDOW, FORGET])
def test_the_oldest_leaves_also_where_the_cap_has_changed(reduce):
    X, y, weights = stream(1)
    caps = [5, 9, 9, 4, 20]
    state = allocate(3, 1, 4, seed=3, factored=False)
    arrived = []  # all that ever became a point
    for part, most in zip(np.split(np.arange(N), len(caps)), caps, strict=True):
        if state.order > most:
            keep_newest(state, most)
        elif state.status[0]["oldest"]:
            keep_newest(state, state.order)
        for i in part:
            taken, one = state.status[0]["taken"], slice(i, i + 1)
            state, _ = run(X[one], y[one], weights[one], 1, reduce, most, state=state)
            if state.status[0]["taken"] > taken:
                arrived.append(X[i])
            assert np.array_equal(in_order(state)[0], np.reshape(arrived[-state.order :], (-1, 3)))
        assert state.order <= most


def test_without_a_rule_nothing_leaves():
    X, y, weights = stream(1)
    state, _ = run(X, y, weights, 1, NOTHING, 3)
    assert state.order == state.status[0]["taken"] > 3
    assert state.status[0]["removed"] == 0


@pytest.mark.parametrize("reduce", [RANDOM, WINDOW, FORGET])
def test_a_state_survives_the_file(reduce):
    X, y, weights = stream(3)
    straight, _ = run(X, y, weights, 3, reduce, 9)
    half, _ = run(X[:77], y[:77], weights[:77], 3, reduce, 9)
    again = unpack(*pack(half), factored=False)
    resumed, _ = run(X[77:], y[77:], weights[77:], 3, reduce, 9, state=again)
    assert str(pack(straight)) == str(pack(resumed))
