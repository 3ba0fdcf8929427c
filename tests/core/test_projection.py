"""Budgets by projection and merging, against methods that solve every projection from scratch."""

import numpy as np
import pytest

from kernelstream.core.direct import PASSIVE_AGGRESSIVE
from kernelstream.core.grow import APPEND, NOVELTY, SPAN
from kernelstream.core.loop import sample_pass
from kernelstream.core.passes import DONE
from kernelstream.core.reduce import (
    HALVE,
    MERGE,
    PROJECT_CHEAPEST,
    PROJECT_SMALLEST,
    SPANNED,
    TO_NEIGHBOURS,
    TO_NEWEST,
)
from kernelstream.core.reduce.halving import RIDGE
from kernelstream.core.reduce.merging import best_place, fill_table
from kernelstream.core.state import allocate, pack, unpack
from tests.core.test_removal import PROGRAM, TWIN, signed, stream
from tests.core.tools import (
    call_pass,
    learn,
    points_of,
    residual,
    rows_of,
    settings,
    size,
    weights_of,
)
from tests.naive import kernels
from tests.naive import projection as naive

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # random
N = size(120, 40)

PEGASOS = {"schedule": "inverse_time", "regularisation": 0.1, "initial_step": 10.0, "decay": 1.0}
#: name: (loss, settings, twin with its numbers)
METHODS = {
    "projectron": (
        "perceptron", {"grow": NOVELTY, "reduce": SPANNED, "novelty": 0.4, "initial_step": 1.0},
        lambda *a: naive.projectron(*a, 0.4, False),
    ),
    "projectron++": (
        "hinge", {"grow": NOVELTY, "reduce": SPANNED, "novelty": 0.4, "initial_step": 1.0},
        lambda *a: naive.projectron(*a, 0.4, True),
    ),
    "bpa-s": (
        "hinge", {"direct": PASSIVE_AGGRESSIVE, "grow": APPEND, "reduce": TO_NEWEST,
                  "aggressiveness": 0.4},
        lambda *a: naive.bpa(*a, 0.4, False),
    ),
    "bpa-nn": (
        "hinge", {"direct": PASSIVE_AGGRESSIVE, "grow": APPEND, "reduce": TO_NEIGHBOURS,
                  "aggressiveness": 0.4},
        lambda *a: naive.bpa(*a, 0.4, True),
    ),
    "bpa-p": (
        "hinge", {"direct": PASSIVE_AGGRESSIVE, "grow": SPAN, "reduce": PROJECT_CHEAPEST,
                  "aggressiveness": 0.4},
        lambda *a: naive.bpa_p(*a, 0.4),
    ),
    "ahpatron": (
        "perceptron", {"grow": APPEND, "reduce": HALVE, "initial_step": 0.3, "loss_number": 0.5,
                       "radius": 1.5},
        lambda *a: naive.ahpatron(*a, 0.3, 0.5, 1.5, RIDGE),
    ),
    "bsgd, projection": (
        "hinge", {"grow": SPAN, "reduce": PROJECT_SMALLEST, **PEGASOS},
        lambda *a: naive.bsgd_projection(*a, 0.1),
    ),
    "bsgd, merging": (
        "hinge", {"grow": APPEND, "reduce": MERGE, **PEGASOS},
        lambda *a: naive.bsgd_merging(0.7, *a, 0.1),
    ),
}  # fmt: skip


def run(name, X, y, weights, outputs, most, sparse=False, state=None):
    loss, parts, _ = METHODS[name]
    chosen = settings(loss, outputs=outputs, most=most, **parts)
    if state is None:
        factored = parts["grow"] != APPEND
        state = allocate(X.shape[1], outputs, 4, seed=3, factored=factored)
    predictions = np.empty((len(X), outputs))
    state, reason, _ = learn(
        PROGRAM, X, y, chosen, state=state, weights=weights, sparse=sparse, predictions=predictions
    )
    assert reason == DONE
    return state, predictions


def short_stream(outputs, kind="random"):
    return [part[:N] for part in stream(outputs, kind)]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["random", "duplicates", "collinear", "huge"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("most", [1, 2, 12])
def test_every_step_equals_the_twin(name, outputs, most, kind):
    X, y, weights = short_stream(outputs, kind)
    twin = METHODS[name][2]
    points, w, expected = twin(TWIN, X, signed(y, outputs), weights, outputs, most)
    # merged points are computed, the others are samples
    scale = np.abs(X).max() if name == "bsgd, merging" else 0.0
    for sparse in (False, True):  # the twin takes longest
        state, predictions = run(name, X, y, weights, outputs, most, sparse)
        assert np.allclose(points_of(state), points, rtol=0.0, atol=1e-9 * scale), sparse
        assert np.allclose(predictions, expected, atol=1e-6), sparse
        assert np.allclose(weights_of(state, outputs), w, atol=1e-5), sparse
        if state.factored:
            assert residual(state, kernels.matrix(TWIN, points, points))[0] < 1e-6, sparse


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("sparse", [False, True])
def test_chunks_and_files_do_not_matter(name, sparse):
    X, y, weights = short_stream(3)
    straight, _ = run(name, X, y, weights, 3, 9, sparse)
    state = None
    for first in range(0, N, 23):
        part = slice(first, first + 23)
        state, _ = run(name, X[part], y[part], weights[part], 3, 9, sparse, state)
        state = unpack(*pack(state), factored=state.factored)
    assert str(pack(straight)) == str(pack(state))


def test_ahpatron_knows_its_norm():
    X, y, weights = short_stream(3)
    state, _ = run("ahpatron", X, y, weights, 3, 10)
    w, points = weights_of(state, 3), points_of(state)
    square = np.sum(w * (kernels.matrix(TWIN, points, points) @ w))
    assert np.isclose(state.status[0]["square_norm"], square, rtol=1e-9)
    assert square <= 1.5**2 * (1.0 + 1e-9)
    assert state.status[0]["forced"] > 5


@pytest.mark.parametrize("name", ["bpa-s", "bpa-nn", "bpa-p"])
def test_the_error_is_what_leaves_the_direction_of_the_sample(name):
    X, y, weights = short_stream(1)
    state, spent = None, 0.0
    points, w = np.empty((0, 3)), np.empty((0, 1))
    for i in range(N):
        one = slice(i, i + 1)
        state, _ = run(name, X[one], y[one], weights[one], 1, 5, state=state)
        moved = state.status[0]["error_spent"] - spent
        together = np.vstack([points, points_of(state), X[one]])
        change = np.vstack([-w, weights_of(state, 1), [[0.0]]])[:, 0]
        values = kernels.matrix(TWIN, together, together) @ change
        square = change @ values - values[-1] ** 2  # k(x, x) = 1
        assert np.isclose(moved, np.sqrt(max(square, 0.0)), rtol=1e-6, atol=1e-6)
        spent, points, w = state.status[0]["error_spent"], points_of(state), weights_of(state, 1)
    assert spent > 1.0


@pytest.mark.parametrize("kappa", [0.01, 0.2, 0.5, 0.95])
@pytest.mark.parametrize("ratio", [1.0, 0.7, 0.1])
def test_where_two_points_merge(kappa, ratio):
    exponent = -np.log(kappa)

    def overlap(h):
        return kappa ** (1.0 - h) ** 2 + ratio * kappa**h**2

    grid = np.linspace(0.5, 1.0, 5001)
    best = grid[np.argmax(overlap(grid))]
    h = best_place(ratio, exponent)
    assert np.isclose(h, best, atol=3e-4)
    assert overlap(h) > overlap(best) * (1.0 - 1e-7)


def test_the_table_loses_next_to_nothing():
    """The overlap at the place looked up, against that at the best: the cost follows from it."""
    table = np.empty((size(256, 32),) * 2)
    fill_table(table)
    X, y, weights = short_stream(3)
    found = []
    for extra in (None, table):
        state = allocate(3, 3, 16, seed=3, factored=False)
        chosen = settings("hinge", outputs=3, most=12, **METHODS["bsgd, merging"][1])
        predictions = np.empty((N, 3))
        reason, _ = call_pass(
            sample_pass(chosen.reduce),
            state,
            chosen,
            PROGRAM,
            rows_of(X),
            y,
            weights,
            0,
            predictions,
            extra,
        )
        assert reason == DONE
        found.append((predictions, state.status[0]["error_spent"]))
    assert np.isclose(found[0][1], found[1][1], rtol=0.02)
    assert np.mean(found[0][0].argmax(axis=1) == found[1][0].argmax(axis=1)) > 0.95
