"""The compiled pass of policy evaluation against its twin."""

import numpy as np
import pytest

from kernelstream.core.blocks import transition_pass
from kernelstream.core.direct import TRANSITION
from kernelstream.core.direct import transition as policy
from kernelstream.core.passes import DIVERGED, DONE, FULL, PROBE
from kernelstream.core.state import allocate, resize
from tests.core.tools import (
    BUDGETS,
    KERNELS,
    SCHEDULES,
    call_pass,
    gaussian,
    kernel_matrix,
    points_of,
    residual,
    rows_of,
    settings,
    size,
    weights_of,
)
from tests.naive import kernels as naive_kernels
from tests.naive.policy import Evaluation

METHODS = {
    "corrected": policy.CORRECTED,
    "gradient": policy.GRADIENT,
    "scalar": policy.SCALAR,
}
TRANSITIONS = size(50, 25)
GRID = np.random.default_rng(9).normal(size=(20, 2))


def transitions(n=TRANSITIONS, seed=0):
    """A walk in which some states come back, some stay where they are, and some are the last."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 2))
    next_states = 0.8 * states + 0.4 * rng.normal(size=(n, 2))
    states[1:] = np.where(rng.random((n - 1, 1)) < 0.5, next_states[:-1], states[1:])
    still = rng.random(n) < 0.1
    next_states[still] = states[still]
    again = rng.random(n) < 0.1
    states[again] = states[rng.integers(n, size=again.sum())]
    discounts = np.where(rng.random(n) < 0.15, 0.0, 0.9)
    return states, np.sin(states[:, 0]) + 0.2 * rng.normal(size=n), next_states, discounts


def learn(
    program, data, method="corrected", beta=0.1, regularisation=0.0, schedule="constant",
    initial_step=0.5, decay=0.0, budget="fixed", budget_number=0.1, most=10**9, averaging=0.0,
    horizon=np.inf, sparse=False, state=None, tracking="average",
):  # fmt: skip
    """Run the pass to its end, growing the state; returns state, reason, next."""
    states, rewards, next_states, discounts = data
    columns = 1 + (averaging > 0.0) + (method != "scalar")
    chosen = settings(
        "squared_error", None, regularisation, schedule, initial_step, decay, budget,
        budget_number, most, averaging=averaging, horizon=horizon, direct=TRANSITION,
        compressed=columns, tracking=METHODS[method], tracking_rate=beta,
    )  # fmt: skip
    both = np.stack([states, next_states], axis=1).reshape(-1, states.shape[1])
    if state is None:
        state = allocate(states.shape[1], columns + (tracking == "momentum"), 4, 1)
    rows, i = rows_of(both, sparse), 0
    while True:
        reason, i = call_pass(
            transition_pass, state, chosen, program, rows, rewards, np.ones(len(rewards)), i,
            extra=discounts[:, None],
        )  # fmt: skip
        if reason == FULL:
            state = resize(state, 2 * state.capacity)
        elif reason == PROBE:
            state.status[0]["changes"] = 0
        else:
            return state, reason, i


def compare(data, program=None, twin=None, sparse=False, closeness=1e-7, **options):
    """The compiled pass and the twin learn the same functions on the same points."""
    program = gaussian(0.7) if program is None else program
    twin = naive_kernels.gaussian(0.7) if twin is None else twin
    state, reason, consumed = learn(program, data, sparse=sparse, **options)
    assert (reason, consumed) == (DONE, len(data[1]))
    assert state.status[0]["seen"] == state.status[0]["steps"] == len(data[1])
    slow = Evaluation(twin, data[0].shape[1], **options)
    for transition in zip(*data, strict=True):
        slow.learn(*transition)
    assert {tuple(x) for x in points_of(state)} == {tuple(x) for x in slow.points}
    expected = [slow.value]
    if options.get("averaging"):
        expected.append(slow.average)
    if options.get("method") == "scalar":
        assert state.status[0]["tracker"] == pytest.approx(slow.scalar, rel=1e-7)
    else:
        expected.append(slow.tracked)
    K = naive_kernels.matrix(twin, GRID, points_of(state))
    K_slow = naive_kernels.matrix(twin, GRID, slow.points)
    found = K @ weights_of(state, 1)[:, : len(expected)]
    assert found == pytest.approx(
        K_slow @ np.column_stack(expected), rel=min(1e-6, 10.0 * closeness), abs=closeness
    )
    assert state.status[0]["error_spent"] == pytest.approx(sum(slow.errors), rel=1e-6, abs=1e-8)
    return state, slow


@pytest.mark.parametrize("averaging", [0.0, 4.0])
@pytest.mark.parametrize(
    ("method", "tracking"), [*((method, "average") for method in METHODS), ("scalar", "momentum")]
)
def test_the_pass_equals_its_twin(method, tracking, averaging):
    state, slow = compare(
        transitions(), method=method, averaging=averaging, regularisation=0.05, budget_number=0.05,
        tracking=tracking,
    )  # fmt: skip
    assert 2 < state.order < TRANSITIONS
    assert max(slow.errors) > 0.01


@pytest.mark.parametrize("tracking", ["average", "momentum"])
def test_one_number_is_algorithm_1_as_printed(tracking):
    """(19) or (20), (24), KOMP, in twenty runs. The kernel is narrow and the compression not
    small, so that no condition comes near 1e8: there rounding decides what is removed."""
    for seed in range(size(20, 3)):
        compare(
            transitions(25, seed), gaussian(4.0), naive_kernels.gaussian(4.0), method="scalar",
            tracking=tracking, beta=0.2, regularisation=0.05, budget_number=0.03, closeness=1e-9,
        )  # fmt: skip


@pytest.mark.parametrize("name", ["laplacian", "matern52", "scaled sum", "product of sums"])
def test_other_kernels_equal_the_twin(name):
    program, twin = KERNELS[name]
    compare(transitions(20), program, twin, initial_step=0.05, budget_number=0.05)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("budget", BUDGETS)
def test_schedules_and_budgets_equal_the_twin(schedule, budget):
    compare(
        transitions(), schedule=schedule, decay=0.2, budget=budget, budget_number=0.2,
        regularisation=0.02,
    )  # fmt: skip


def test_a_cap_equals_the_twin():
    state, slow = compare(transitions(), budget_number=0.0, most=5, averaging=4.0, horizon=8.0)
    assert state.order == 5
    assert max(slow.orders) == 5
    assert state.status[0]["forced"] > 0


def test_sparse_states_give_the_same_function():
    data = transitions()
    data[0][::3, 0] = 0.0
    compare(data, sparse=True)


def test_any_chunking_gives_the_same_bits():
    data = transitions()
    whole, _, _ = learn(gaussian(0.7), data)
    for piece in (1, 7):
        state = None
        for first in range(0, len(data[1]), piece):
            part = [np.ascontiguousarray(each[first : first + piece]) for each in data]
            state, _, _ = learn(gaussian(0.7), part, state=state)
        n = whole.order
        assert state.order == n
        assert (state.weights[:, :n] == whole.weights[:, :n]).all()
        assert (state.points[:, :n] == whole.points[:, :n]).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_terminal_state_is_worth_nothing(method):
    """Only rewards at the end: V(x) is their mean, and next states are never looked at."""
    states, rewards, next_states, _ = transitions()
    data = states, rewards, next_states, np.zeros(len(rewards))
    other = states, rewards, 100.0 + next_states, np.zeros(len(rewards))
    one, _, _ = learn(gaussian(0.7), data, method=method)
    two, _, _ = learn(gaussian(0.7), other, method=method)
    assert one.order == two.order
    assert (one.weights[:, : one.order] == two.weights[:, : two.order]).all()


@pytest.mark.parametrize("method", METHODS)
def test_overflow_is_noticed_before_anything_changes(method):
    states, rewards, next_states, discounts = transitions()
    rewards[10] = 1e120
    state, reason, i = learn(gaussian(0.7), (states, rewards, next_states, discounts), method)
    assert (reason, i) == (DIVERGED, 10)
    assert state.status[0]["seen"] == 10
    assert np.isfinite(state.weights).all()
    assert np.isfinite(state.status[0]["tracker"])


def test_the_factor_stays_exact():
    data = transitions(size(2000, 60))
    state, _, _ = learn(gaussian(0.7), data, budget_number=0.001)
    K, _ = kernel_matrix(gaussian(0.7), points_of(state), points_of(state))
    off, _ = residual(state, K)
    assert off < 1e-6
