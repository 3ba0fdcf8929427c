"""Taking points in and pruning, against KOMP with every projection solved from scratch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from kernelstream.core import costs, dictionary, kernel
from kernelstream.core.gram import DEPENDENT
from kernelstream.core.grow import block, span
from kernelstream.core.reduce import komp
from tests.core.tools import (
    COMPILED,
    filled_state,
    from_python,
    gaussian,
    kernel_matrix,
    points_of,
    program,
    rows_of,
    size,
    weights_of,
)
from tests.naive import kernels as naive_kernels
from tests.naive.komp import hilbert_norm
from tests.naive.komp import komp as naive_komp

#: The random numbers wrap around on purpose, and NumPy says so when they are not compiled.
wrapping_integers = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
GAMMA = 1.5
PROGRAM, TWIN = gaussian(GAMMA), naive_kernels.gaussian(GAMMA)

# Compiled for compiled callers only.
take_in_compiled, prune, find_cheapest, renormalise = map(
    from_python, (span.take_in, komp.prune, costs.find_cheapest, dictionary.renormalise)
)


def problem(n, columns=1, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=(n, 2)), rng.normal(size=(n, columns))


def prepared(Z, weights, outputs=None, scale=1.0, **options):
    """A state with the true weights given: the first ``outputs`` columns are held scaled."""
    outputs = weights.shape[1] if outputs is None else outputs
    stored = weights.copy()
    stored[:, :outputs] /= scale
    state, error = filled_state(PROGRAM, Z, stored, **options)
    assert error == 0.0
    state.status[0]["scale"] = scale
    state.status[0]["cheapest"] = 0.0
    return state


def distance(Z, weights, state, outputs):
    """Hilbert distance between two functions, by the definition."""
    points = np.vstack([Z, points_of(state)])
    both = np.vstack([weights, -weights_of(state, outputs)])
    return hilbert_norm(naive_kernels.matrix(TWIN, points, points), both)


def rows_as_set(X):
    return {tuple(x) for x in X}


def weights_at(state, Z, outputs):
    """True weights in the order of the points Z, zero where a point is not stored."""
    stored = dict(zip(map(tuple, points_of(state)), weights_of(state, outputs), strict=True))
    return np.array([stored.get(tuple(z), np.zeros(len(state.weights))) for z in Z])


def pruned_like_the_twin(state, Z, weights, outputs, budget, most):
    K = naive_kernels.matrix(TWIN, Z, Z)
    kept, expected, error = naive_komp(K, weights, budget, most)
    assert rows_as_set(points_of(state)) == rows_as_set(Z[kept])
    assert state.status[0]["error_spent"] == pytest.approx(error, rel=1e-7, abs=1e-9)
    assert distance(Z, weights, state, outputs) == pytest.approx(error, rel=1e-6, abs=1e-7)
    assert weights_at(state, Z, outputs) == pytest.approx(expected, abs=1e-7)
    assert len(kept) <= most
    assert error <= budget or len(kept) == most
    return kept, error


BUDGETS = [(0.0, 10**6), (0.5, 10**6), (1.5, 10**6), (1e3, 10**6), (0.0, 5), (0.4, 1), (1.0, 0)]


@pytest.mark.parametrize(("budget", "most"), BUDGETS)
@pytest.mark.parametrize(("columns", "outputs", "scale"), [(1, 1, 1.0), (3, 3, 0.01), (4, 2, 0.1)])
def test_pruning_equals_the_twin(budget, most, columns, outputs, scale):
    Z, weights = problem(14, columns)
    state = prepared(Z, weights, outputs, scale)
    prune(state, outputs, 0.0, budget**2, most, komp.GREEDY)
    pruned_like_the_twin(state, Z, weights, outputs, budget, most)


@hypothesis_settings(max_examples=size(40, 10))
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 12),
    budget=st.floats(0.05, 3.0),
    most=st.integers(1, 14),
)
def test_pruning_equals_the_twin_on_random_problems(seed, n, budget, most):
    Z, weights = problem(n, 2, seed, spread=2.0)
    state = prepared(Z, weights)
    prune(state, 2, 0.0, budget**2, most, komp.GREEDY)
    pruned_like_the_twin(state, Z, weights, 2, budget, most)


@pytest.mark.parametrize(("budget", "most"), BUDGETS)
@pytest.mark.parametrize("expected", [2, 5, 40])
@pytest.mark.parametrize(("columns", "outputs", "scale"), [(1, 1, 1.0), (4, 2, 0.1)])
def test_blocked_pruning_equals_the_twin(budget, most, expected, columns, outputs, scale):
    Z, weights = problem(14, columns)
    state = prepared(Z, weights, outputs, scale)
    unit = scale**2
    error = komp._prune_blocked(state, outputs, 0.0, budget**2 / unit, most, expected)
    state.status[0]["error_spent"] = np.sqrt(error * unit)
    pruned_like_the_twin(state, Z, weights, outputs, budget, most)


@pytest.mark.parametrize(("budget", "most"), [(3.0, 10**6), (0.0, 80), (1.0, 120)])
@pytest.mark.parametrize("expected", [2, 36])
def test_long_blocked_pruning_equals_one_by_one(monkeypatch, budget, most, expected):
    """More removals than one block holds, through the public door."""
    if COMPILED:
        n = komp.BLOCKED_FROM + 20
    else:  # only the interpreter sees changed constants
        n, most = 30, most - 100 if most < 10**6 else most
        most = max(most, 5)
        monkeypatch.setattr(komp, "BLOCKED_FROM", 8)
        monkeypatch.setattr(komp, "BLOCK", 6)
    Z, weights = problem(n, 2, spread=3.0)
    one, many = prepared(Z, weights), prepared(Z, weights)
    prune(one, 2, 0.0, budget**2, most, komp.GREEDY)
    komp.prune_block(many, 2, 0.0, budget**2, most, komp.GREEDY, expected)
    assert many.order <= min(most, n - 5)
    assert rows_as_set(points_of(many)) == rows_as_set(points_of(one))
    for field in ("error_spent", "cheapest"):
        assert many.status[0][field] == pytest.approx(one.status[0][field], rel=1e-7)
    assert many.status[0]["forced"] == one.status[0]["forced"]
    assert distance(Z, weights, many, 2) == pytest.approx(one.status[0]["error_spent"], abs=1e-6)


def test_what_was_already_spent_counts():
    Z, weights = problem(12)
    free, spent = prepared(Z, weights), prepared(Z, weights)
    prune(free, 1, 0.0, 1.0, 100, komp.GREEDY)
    prune(spent, 1, 0.9, 1.0, 100, komp.GREEDY)
    assert spent.order > free.order
    lost = distance(Z, weights, spent, 1)
    assert lost**2 <= 0.1 + 1e-9
    assert spent.status[0]["error_spent"] == pytest.approx(np.sqrt(0.9 + lost**2))


def test_forced_removals_are_counted():
    Z, weights = problem(12)
    state = prepared(Z, weights)
    prune(state, 1, 0.0, 0.0, 4, komp.GREEDY)
    assert state.status[0]["forced"] == 8
    state = prepared(Z, weights)
    prune(state, 1, 0.0, 1e6, 4, komp.GREEDY)
    assert (state.order, state.status[0]["forced"]) == (0, 0)


@wrapping_integers
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("outputs", [1, 2])
def test_random_projection_stays_within_the_budget(seed, outputs):
    Z, weights = problem(14, 2)
    state = prepared(Z, weights, outputs, 0.5, seed=seed)
    prune(state, outputs, 0.0, 1.2**2, 100, komp.RANDOM)
    error = distance(Z, weights, state, outputs)
    assert error <= 1.2
    assert state.status[0]["error_spent"] == pytest.approx(error, abs=1e-9)


@wrapping_integers
def test_random_projection_is_reproducible_and_random():
    Z, weights = problem(14, 1)

    def kept(seed):
        state = prepared(Z, weights, seed=seed)
        prune(state, 1, 0.0, 0.0, 6, komp.RANDOM)
        return points_of(state).tolist()

    assert kept(3) == kept(3)
    assert len({str(sorted(kept(seed))) for seed in range(6)}) > 1
    greedy = prepared(Z, weights)
    prune(greedy, 1, 0.0, 0.0, 6, komp.GREEDY)
    assert sorted(kept(3)) != sorted(points_of(greedy).tolist())


@wrapping_integers
def test_random_numbers_are_uniform():
    state, _ = filled_state(PROGRAM, *problem(1), seed=7)
    draws = [dictionary.random_below(state.status[0], 5) for _ in range(1000)]
    assert set(draws) == set(range(5))
    assert np.bincount(draws).min() > 150


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_point_that_comes_back_is_merged_exactly(outputs, sparse):
    Z, weights = problem(10, 2)
    Z[4] = [0.0, 1.5]
    state = prepared(Z, weights, outputs, 0.5)
    expected = state.weights[:, :10].T.copy()
    expected[(points_of(state) == Z[4]).all(axis=1)] += [0.3, -0.2]
    take_in(state, Z[4], np.array([0.3, -0.2]), outputs, 0.0, sparse)
    assert state.order == 10
    assert np.array_equal(state.weights[:, :10].T, expected)
    assert state.status[0]["dependent"] == 1


def take_in(state, x, new, outputs, budget, sparse=False):
    values, norms = np.empty((1, state.capacity)), np.empty((1, 2))
    rows = rows_of(x[None], sparse)
    kernel.kernel_rows(
        PROGRAM, rows, 0, 1, state.points, state.square_norms, state.absolute_norms, state.order,
        values, norms,
    )  # fmt: skip
    return take_in_compiled(
        state, rows, 0, norms[0, 0], norms[0, 1], values, 1.0, new, outputs, budget,
        np.empty((2, state.order)),
    )  # fmt: skip


@pytest.mark.parametrize("budget", [0.0, 0.01, 0.3, 100.0])
def test_taking_in_and_pruning_equals_the_twin(budget):
    """Whether a sample is stored and removed or never stored must make no difference."""
    for seed in range(5):
        Z, weights = problem(9, 1, seed)
        state = prepared(Z[:8], weights[:8])
        error = take_in(state, Z[8], weights[8] * 0.1, 1, budget**2)
        prune(state, 1, error, budget**2, 100, komp.GREEDY)
        weights[8] *= 0.1
        pruned_like_the_twin(state, Z, weights, 1, budget, 100)


def test_a_dependent_sample_is_projected_and_its_error_booked():
    Z, weights = problem(8)
    x = Z[3] + 2e-6
    state = prepared(Z, weights)
    error = take_in(state, x, np.array([2.0]), 1, 0.0)
    assert state.order == 8
    assert state.status[0]["dependent"] == 1
    K, k = naive_kernels.matrix(TWIN, Z, Z), naive_kernels.matrix(TWIN, [x], Z)[0]
    projection = np.linalg.solve(K, k)
    assert error == pytest.approx(4.0 * (1.0 - k @ projection), abs=1e-13)
    assert 0.0 <= error <= 4.0 * DEPENDENT
    expected = weights[:, 0] + 2.0 * projection
    assert weights_at(state, Z, 1)[:, 0] == pytest.approx(expected, abs=1e-7)


def block_into(state, X, new, outputs):
    values, norms = np.empty((len(X), state.order)), np.empty((len(X), 2))
    kernel.kernel_rows(
        PROGRAM, rows_of(X), 0, len(X), state.points, state.square_norms, state.absolute_norms,
        state.order, values, norms,
    )  # fmt: skip
    return block.take_in_block(state, PROGRAM, X.copy(), values, norms, new.copy(), len(X), outputs)


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_block_with_duplicates_adds_exactly_its_function(outputs):
    Z, weights = problem(12, 2)
    state = prepared(Z[:6], weights[:6], outputs, 0.5, capacity=40)
    places = [6, 2, 7, 6, 2, 8, 7, 9]  # repeated samples, stored samples, fresh ones
    new = np.random.default_rng(5).normal(size=(len(places), 2))
    assert block_into(state, Z[places], new, outputs) == 0.0
    true_new = new.copy()
    true_new[:, :outputs] *= 0.5
    everything = np.vstack([Z[:6], Z[places]])
    expected = np.vstack([weights[:6], true_new])
    assert state.order == 10
    assert state.status[0]["dependent"] == 4
    assert distance(everything, expected, state, outputs) < 1e-7
    at_nine, at_six, at_two = weights_at(state, Z[[9, 6, 2]], outputs)
    assert at_nine == pytest.approx(true_new[7], abs=1e-15)
    assert at_six == pytest.approx(true_new[0] + true_new[3], abs=1e-15)
    assert at_two == pytest.approx(weights[2] + true_new[1] + true_new[4], abs=1e-15)


def test_a_block_of_identical_rows():
    state, error = filled_state(PROGRAM, np.ones((16, 2)), np.ones((16, 1)))
    assert (state.order, error) == (1, 0.0)
    assert state.weights[0, 0] == 16.0


def test_a_block_with_near_duplicates_books_what_it_loses():
    Z, weights = problem(6)
    state = prepared(Z, weights, capacity=40)
    X = np.vstack([Z[:2] + 3e-6, Z[2] + np.array([[1.0, 1.0], [1.0, 1.000004]])])
    new = np.array([[1.0], [-2.0], [0.5], [3.0]])
    error = block_into(state, X, new, 1)
    assert state.order == 7
    assert state.status[0]["dependent"] == 3
    lost = distance(np.vstack([Z, X]), np.vstack([weights, new]), state, 1)
    assert np.sqrt(error) == pytest.approx(lost, abs=1e-7)
    assert lost < 1e-4


@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize("n", [0, 5, 45])
def test_rebuilding_keeps_the_function(n, scale):
    Z, weights = problem(n, 3, spread=2.0)
    state = prepared(Z, weights, 2, scale, capacity=64)
    good = state.factor[:n, :n].copy()
    state.factor[:n, :n] *= 1.001  # lost digits
    state.status[0]["changes"] = 99
    assert block.rebuild(state, PROGRAM, 2) == 0.0
    assert state.order == n
    assert (state.status[0]["rebuilds"], state.status[0]["changes"]) == (1, 0)
    assert distance(Z, weights, state, 2) < 1e-7
    K = kernel_matrix(PROGRAM, points_of(state), points_of(state))[0]
    S = state.factor[:n, :n]
    assert np.abs(S @ S.T @ K - np.eye(n)).max(initial=0.0) < 1e-9
    assert n == 0 or not np.array_equal(S, good * 1.001)


def test_rebuilding_merges_dependent_points():
    Z, weights = problem(10, 2)
    state = prepared(Z, weights, capacity=12)
    state.points[:, 7] = state.points[:, 3] + 1e-7
    Z, weights = points_of(state), weights_of(state, 2)
    error = block.rebuild(state, PROGRAM, 2)
    assert state.order == 9
    assert 0.0 <= error < 1e-9
    assert distance(Z, weights, state, 2) < 1e-4


def test_renormalising_changes_the_units_only():
    Z, weights = problem(6, 4)
    state = prepared(Z, weights, 2, 1e-3)
    find_cheapest(state, 2)
    cheapest = state.status[0]["cheapest"] * 1e-6
    renormalise(state, 2)
    assert state.status[0]["scale"] == 1.0
    assert weights_at(state, Z, 2) == pytest.approx(weights, rel=1e-14)
    assert state.status[0]["cheapest"] == pytest.approx(cheapest, rel=1e-12)
    find_cheapest(state, 2)
    assert state.status[0]["cheapest"] == pytest.approx(cheapest, rel=1e-12)


def test_linear_kernel_prunes_to_its_dimension():
    rng = np.random.default_rng(0)
    linear = program((kernel.LINEAR,))
    Z, weights = rng.normal(size=(20, 3)), rng.normal(size=(20, 1))
    state, error = filled_state(linear, Z, weights)
    assert state.order == 3
    assert error < 1e-12
    assert weights_of(state, 1).T @ points_of(state) == pytest.approx(weights.T @ Z, abs=1e-9)
