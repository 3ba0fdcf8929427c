"""Points beyond the cap that are projected together, against pursuit on all points."""

import numpy as np
import pytest

from kernelstream.core.grow.later import catch_up
from kernelstream.core.loop import pursuit_pass
from kernelstream.core.passes import DONE, LATE, PROBE
from kernelstream.core.reduce.komp import GREEDY, RANDOM
from kernelstream.core.state import allocate, pack, resize, unpack
from tests.core.tools import (
    call_pass,
    gaussian,
    points_of,
    residual,
    rows_of,
    settings,
    size,
    weights_of,
)
from tests.naive import kernels as naive_kernels
from tests.naive.komp import hilbert_norm, komp

GAMMA = 2.0
PROGRAM, TWIN = gaussian(GAMMA), naive_kernels.gaussian(GAMMA)
MOST = size(24, 10)

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # random


def stream(n, seed=0, kind="random"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if kind == "duplicates":
        X = X[rng.integers(n // 3, size=n)]
    elif kind == "close":  # new points that the points, or one another, nearly span
        X[n // 2 :] = X[: n - n // 2] + 1e-6 * rng.normal(size=(n - n // 2, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2


def learn(X, y, slack, state=None, **options):
    """Samples through the pass; what is late is caught up with, as an estimator does."""
    chosen = settings(
        "squared_error", initial_step=0.4, regularisation=0.01, slack=slack,
        **{"most": MOST, "budget_number": 0.0, **options},
    )  # fmt: skip
    columns = chosen.outputs * (2 if chosen.averaging > 0.0 else 1)
    state = allocate(2, columns, MOST + slack + 1, seed=1) if state is None else state
    rows, i, reason = rows_of(X), 0, LATE
    while reason in (LATE, PROBE):
        reason, i = call_pass(pursuit_pass, state, chosen, PROGRAM, rows, y, np.ones(len(X)), i)
        if reason == PROBE:
            state.status[0]["changes"] = 0
        if reason == LATE:
            catch_up(state, PROGRAM, chosen.outputs, chosen.most, chosen.projection)
    assert (reason, i) == (DONE, len(X))
    return state


@pytest.mark.parametrize("kind", ["random", "duplicates", "close"])
@pytest.mark.parametrize("averaging", [0.0, 3.0])
@pytest.mark.parametrize("slack", [1, 2, 7])
def test_catching_up_is_pursuit_on_all_points(slack, averaging, kind):
    X, y = stream(size(200, 60), kind=kind)
    for n in range(MOST + 5, len(X), 13):
        state = learn(X[:n], y[:n], slack, averaging=averaging)
        points, weights = points_of(state), weights_of(state, 1)
        K = naive_kernels.matrix(TWIN, points, points)
        spent = state.status[0]["error_spent"]
        catch_up(state, PROGRAM, 1, MOST, GREEDY)
        assert state.status[0]["pending"] == 0
        assert state.order <= MOST
        kept, expected, error = komp(K, weights, 0.0, MOST)
        found = np.zeros_like(weights)
        for point, weight in zip(points_of(state), weights_of(state, 1), strict=True):
            found[np.flatnonzero((points == point).all(axis=1))[0]] += weight
        # Where two removals cost the same either is right: the errors are.
        assert np.isclose(hilbert_norm(K, weights - found), error, atol=1e-5)
        if kind == "random":
            assert {tuple(x) for x in points_of(state)} == {tuple(x) for x in points[kept]}
            assert np.allclose(found, expected, atol=1e-7)
            assert np.isclose(state.status[0]["error_spent"] - spent, error, atol=1e-7)
        K = naive_kernels.matrix(TWIN, points_of(state), points_of(state))
        assert residual(state, K)[0] < 1e-4


def test_without_slack_nothing_waits_and_with_it_the_function_is_close():
    X, y = stream(size(600, 80))
    states = [learn(X, y, slack) for slack in (0, 4)]
    assert states[0].status[0]["pending"] == 0
    assert states[0].order == MOST
    assert MOST <= states[1].order <= MOST + 4
    grid = np.random.default_rng(5).normal(size=(200, 2))
    values = [
        naive_kernels.matrix(TWIN, grid, points_of(state)) @ weights_of(state, 1)
        for state in states
    ]
    truth = np.sin(2.0 * grid[:, 0]) + grid[:, 1] ** 2
    errors = [np.sqrt(np.mean((value[:, 0] - truth) ** 2)) for value in values]
    assert abs(errors[1] - errors[0]) < 0.2 * errors[0]


def test_a_budget_is_saved_up():
    X, y = stream(60)
    assert learn(X, y, 5, budget_number=2.0).order < MOST  # the budget alone keeps it small
    for n in range(MOST + 1, 60):
        status = learn(X[:n], y[:n], 5, budget_number=0.02).status[0]
        if status["pending"]:  # every step since the first that was put off has added to it
            steps = status["owed"] / 0.02**2
            assert np.isclose(steps, round(steps))
            assert steps >= status["pending"]


@pytest.mark.parametrize("projection", [GREEDY, RANDOM])
@pytest.mark.parametrize("cut", [31, 37, 40])
def test_pieces_and_files_do_not_matter(cut, projection):
    X, y = stream(70)
    whole = learn(X, y, 6, projection=projection)
    half = learn(X[:cut], y[:cut], 6, projection=projection)
    state = unpack(*pack(half))
    again = learn(X[cut:], y[cut:], 6, state=resize(state, MOST + 7), projection=projection)
    assert str(pack(again)) == str(pack(whole))
