"""The compiled pass of online kernel features against its naive twin, and where it must hold."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from kernelstream.core import feature_budget, feature_state, feature_steps
from kernelstream.core import features as core
from kernelstream.core.passes import DONE, FULL
from tests.core.tools import KERNELS, call_pass, rows_of, size
from tests.features.tools import feature_bytes
from tests.naive import features as naive
from tests.naive import kernels

R = 4


def settings(
    basis="orthonormal", regularisation=1e-3, budget=None, solver="parametric", step="inverse",
    pace=2.0, removal="greedy", forgetting=1.0, censoring=feature_budget.NEVER, number=0.0,
    align=False, loss=0, shrinkage=0.0, eta=0.3, outputs=0, early=6, bounded=True,
):  # fmt: skip
    values = dict(
        orthonormal=basis == "orthonormal",
        early=early if basis == "orthonormal" else 0,
        regularisation=regularisation,
        most=core.UNLIMITED if budget is None else budget,
        solver=("parametric", "nonparametric").index(solver),
        step=("inverse", "inverse_square", "tracking", "tracking_square").index(step),
        pace=float(pace) if step.startswith("inverse") else 1.0,
        bounded=feature_steps.BOUNDED if bounded else feature_steps.PRINTED,
        removal=("greedy", "exact", "recency", "fifo").index(removal),
        forgetting=forgetting,
        censoring=censoring,
        censoring_number=float(number),
        align=align,
        loss=loss,
        loss_number=0.0,
        shrinkage=shrinkage,
        schedule=0,
        initial_step=eta,
        decay=0.0,
        outputs=outputs,
    )
    chosen = np.zeros(1, feature_state.FEATURE_SETTINGS)[0]
    for name, value in values.items():
        chosen[name] = value
    return chosen


def learn(X, chosen, kernel="gaussian", r=R, state=None, sparse=False, targets=None):
    """The state after the samples, and what the pass said: predictions and fit errors."""
    rows, n = rows_of(X, sparse), len(X)
    dense = chosen.most < core.UNLIMITED or chosen.solver == feature_steps.NONPARAMETRIC
    if state is None:
        state = feature_state.allocate(X.shape[1], r, chosen.outputs, 5, dense)
    targets = np.zeros(n) if targets is None else targets.astype(float)
    said, done = np.full((n, chosen.outputs + 1), np.nan), 0
    while True:
        reason, done = call_pass(
            core.feature_pass, state, chosen, KERNELS[kernel][0], rows, targets, np.ones(n), done,
            said,
        )  # fmt: skip
        if reason != FULL:
            assert (reason, done) == (DONE, n)
            return state, said
        state = feature_state.resize(state, 2 * state.capacity)


def points_of(state):
    """Stored samples and factor A, oldest first."""
    order = np.argsort(state.numbers[: state.order])
    factor = state.factor[order] * 2.0 ** state.status[0]["exponent"]
    return state.points.T[order], factor


def blobs(n, p=3, seed=1):
    return np.random.default_rng(seed).normal(size=(n, p))


def twin_of(X, chosen, kernel="gaussian", **options):
    step = ("inverse", "inverse_square", "tracking", "tracking_square")[chosen.step]
    return naive.online(
        KERNELS[kernel][1], X, np.eye(R), regularisation=chosen.regularisation,
        solver=("parametric", "nonparametric")[chosen.solver], step=step,
        scale=chosen.pace if step.startswith("inverse") else 1.0,
        budget=None if chosen.most == core.UNLIMITED else chosen.most,
        removal=("greedy", "exact", "recency", "fifo")[chosen.removal],
        forgetting=chosen.forgetting, basis="orthonormal" if chosen.orthonormal else "printed",
        largest_step=True, matrix_step=True, early=chosen.early, **options,
    )  # fmt: skip


def assert_same(state, said, twin, kernel="gaussian", tolerance=1e-9):
    points, factor = points_of(state)
    assert np.array_equal(points, twin.points)
    assert np.allclose(said[R:, -1], twin.errors, rtol=0.0, atol=tolerance)
    # A basis is only known up to a rotation; the coefficients then turn with it.
    K = kernels.matrix(KERNELS[kernel][1], points, points)
    turn, _ = orthogonal_procrustes(factor, twin.factor)
    assert np.allclose(factor @ turn, twin.factor, rtol=0.0, atol=100.0 * tolerance)
    inner = factor.T @ K @ factor / 4.0 ** state.status[0]["exponent"]
    rank = state.status[0]["rank"]
    assert np.allclose(state.inner[:rank, :rank], inner[:rank, :rank], rtol=0.0, atol=tolerance)


CASES = [
    (basis, solver, step, budget, removal)
    for basis in ("orthonormal", "printed")
    for solver in ("parametric", "nonparametric")
    for step in ("inverse", "inverse_square", "tracking", "tracking_square")
    for budget, removals in ((None, ("greedy",)), (9, ("greedy", "exact", "recency", "fifo")))
    for removal in removals
    # Where steps vanish and old samples must go, nothing but rounding is left.
    if not (removal in ("recency", "fifo") and step == "inverse_square")
]


@pytest.mark.parametrize(("basis", "solver", "step", "budget", "removal"), CASES)
def test_twin(basis, solver, step, budget, removal):
    X = blobs(50)
    X[np.abs(X) < 0.3] = 0.0
    chosen = settings(
        basis, solver=solver, step=step, budget=budget, removal=removal,
        forgetting=0.8 if removal == "recency" else 1.0,
        pace=200.0 if removal in ("fifo", "recency") else 0.7,
    )  # fmt: skip
    twin, loose = twin_of(X, chosen), removal in ("fifo", "recency") or step == "tracking_square"
    for sparse in (False, True):
        state, said = learn(X, chosen, sparse=sparse)
        assert_same(state, said, twin, tolerance=1e-6 if loose else 1e-9)


@pytest.mark.parametrize("kernel", ["laplacian", "matern52", "polynomial", "scaled sum"])
@pytest.mark.parametrize("removal", ["greedy", "exact"])
def test_twin_with_other_kernels(kernel, removal):
    X = 0.5 * blobs(40)
    chosen = settings(budget=8, removal=removal, pace=0.7)
    state, said = learn(X, chosen, kernel)
    assert_same(state, said, twin_of(X, chosen, kernel), kernel, 1e-7)


@pytest.mark.parametrize("solver", ["parametric", "nonparametric"])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_start_from_the_principal_directions_of_the_first_samples(solver, kernel):
    """Whether the budget is used up just then or there is none; the rest is as small as can be."""
    X = 0.5 * blobs(30)
    for budget, early in ((9, 9), (None, 12)):
        chosen = settings(budget=budget, early=early, solver=solver, pace=0.7)
        state, said = learn(X, chosen, kernel)
        assert_same(state, said, twin_of(X, chosen, kernel), kernel, 1e-7)
        state, _ = learn(X[:early], chosen, kernel)
        points, factor = points_of(state)
        errors = naive.fit_errors(KERNELS[kernel][1], points, factor, points, 0.0)
        K = kernels.matrix(KERNELS[kernel][1], points, points)
        assert np.isclose(errors.sum(), np.linalg.eigvalsh(K)[:-R].sum(), atol=1e-9)


RULES = {
    "auto": (feature_budget.MOVING_AVERAGE, 0.0),
    0.6: (feature_budget.THRESHOLD, 0.6),
    ("rate", 0.7): (feature_budget.RATE, 0.7),
    ("rate", 0.0): (feature_budget.RATE, 0.0),
    ("rate", 1.0): (feature_budget.RATE, 1.0),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("budget", [None, 9])
def test_censoring_twin(rule, budget):
    X = blobs(300 if budget else 150)
    code, number = RULES[rule]
    chosen = settings(budget=budget, censoring=code, number=number, pace=0.7)
    state, said = learn(X, chosen)
    twin = twin_of(X, chosen, censoring=rule)
    assert_same(state, said, twin)
    assert state.status[0]["censored"] == twin.updated.count(False)
    assert state.status[0]["updates"] == twin.updated.count(True)


def test_a_rate_is_reached():
    X = blobs(size(3000, 600))
    for rate in (0.3, 0.8):
        state, _ = learn(X, settings(budget=12, censoring=feature_budget.RATE, number=rate))
        assert abs(state.status[0]["censored"] / state.status[0]["candidates"] - rate) < 0.1


def test_exact_removal_is_the_minimum_of_the_three_traces():
    """(24) as printed, by enumeration, where k(x, x) is not constant."""
    X, kernel = blobs(200), "polynomial"
    state, _ = learn(X[:8], settings("printed", budget=8, removal="exact"), kernel)
    for x in X[8:60]:
        before = set(state.numbers[: state.order])
        wide = settings("printed", budget=9, removal="exact")
        larger, _ = learn(x[None], wide, kernel, state=feature_state.resize(copied(state), 10))
        points, factor = points_of(larger)
        K = kernels.matrix(KERNELS[kernel][1], points, points)
        costs = [naive.distortion(K, factor, i) for i in range(len(points))]
        state, _ = learn(
            x[None], settings("printed", budget=8, removal="exact"), kernel, state=state
        )
        gone = (before | {state.status[0]["seen"] - 1}) - set(state.numbers[: state.order])
        assert gone == {np.sort(larger.numbers[: larger.order])[int(np.argmin(costs))]}


def copied(state):
    return feature_state.FeatureState(*(part.copy() for part in state))


def test_the_printed_recursion_overflows_and_the_carried_one_does_not():
    """The same iterates, with a common power of two apart."""
    X = blobs(size(4000, 400), seed=3)
    kernel = KERNELS["gaussian"][1]
    with np.errstate(all="ignore"):
        try:
            printed = naive.online(
                kernel, X[:200], 1e-150 * np.eye(R), regularisation=1e-330, step="tracking_square"
            ).factor
        except np.linalg.LinAlgError:
            printed = np.array([np.nan])
    assert not np.isfinite(printed).all() or np.abs(printed).max() > 1e-150
    for basis in ("printed", "orthonormal"):
        chosen = settings(basis, 0.0, step="tracking_square", budget=14)
        state, said = learn(X, chosen)
        assert all(np.isfinite(part).all() for part in state[:-1])
        assert np.isfinite(said).all()
    chosen = settings("printed", 0.0, step="tracking_square")
    state, said = learn(X[:60], chosen)
    twin = naive.online(
        kernel, X[:60], np.eye(R), regularisation=0.0, step="tracking_square", basis="scaled",
        largest_step=True,
    )  # fmt: skip
    assert np.allclose(said[R:, -1], twin.errors, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [None, 25])
def test_both_bases_learn_the_subspace_of_the_paper(budget):
    """Where the paper's recursion works, the principal subspace is what all of them approach."""
    random = np.random.default_rng(0)
    angles = random.uniform(0.0, 2.0 * np.pi, 3000)
    X = np.column_stack([np.cos(angles), np.sin(angles)]) + 0.02 * random.normal(
        size=(len(angles), 2)
    )
    K = kernels.matrix(KERNELS["gaussian"][1], X[:300], X[:300])
    best = (np.trace(K) - np.linalg.eigvalsh(K)[-5:].sum()) / 300
    for basis in ("printed", "orthonormal"):
        chosen = settings(
            basis, budget=budget, solver="nonparametric" if budget else "parametric",
            pace=125 if budget else 25,
        )  # fmt: skip
        _, said = learn(X, chosen, r=5)
        assert said[-200:, -1].mean() < 1.5 * best


# Streams that break what is not careful.

NASTY = {
    "constant": lambda r: np.ones((200, 2)),
    "zeros": lambda r: np.zeros((200, 2)),
    "duplicates": lambda r: r.normal(size=(7, 2))[r.integers(7, size=200)],
    "two points": lambda r: r.normal(size=(2, 2))[r.integers(2, size=200)],
    "nearly duplicates": lambda r: (
        r.normal(size=(7, 2))[r.integers(7, size=200)] + 1e-9 * r.normal(size=(200, 2))
    ),
    "collinear": lambda r: r.normal(size=(200, 1)) @ np.ones((1, 3)),
    "badly scaled": lambda r: r.normal(size=(200, 3)) * [1e-150, 1.0, 1e150],
    "huge": lambda r: 1e150 * r.uniform(-1.0, 1.0, size=(200, 2)),
    "tiny": lambda r: 1e-160 * r.normal(size=(200, 2)),
    "growing": lambda r: r.normal(size=(200, 2)) * 10.0 ** np.linspace(-150, 20, 200)[:, None],
    "offset": lambda r: 1e6 + r.normal(size=(200, 2)),
    "few": lambda r: r.normal(size=(3, 2)),
}


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "polynomial"])
@pytest.mark.parametrize("name", NASTY)
def test_finite_and_sensible(name, kernel):
    X = NASTY[name](np.random.default_rng(0))
    if kernel != "gaussian":
        if np.abs(X).max() > 1e30:
            pytest.skip("refused before the pass")
        X = np.clip(X, -1e15, 1e15)
    X = X[: size(200, 20)]
    targets = np.sign(X[:, 0] - X[:, 0].mean())
    for step in ("inverse", "inverse_square", "tracking", "tracking_square"):
        for solver in ("parametric", "nonparametric"):
            for basis in ("orthonormal", "printed"):
                for budget, removal in ((None, "greedy"), (6, "greedy"), (6, "fifo")):
                    chosen = settings(
                        basis, budget=budget, removal=removal, solver=solver, step=step,
                        align=True, pace=30.0, outputs=1, regularisation=1e-3,
                    )  # fmt: skip
                    state, said = learn(X, chosen, kernel, targets=targets)
                    assert all(np.isfinite(part).all() for part in state[:-1])
                    assert np.isfinite(said).all()
                    assert all(np.isfinite(float(value)) for value in state.status[0])
                    rank = state.status[0]["rank"]
                    assert rank <= min(R, state.order)
                    if name == "constant":
                        assert rank == 1
                        assert said[-1, -1] <= 1e-5 * max(1.0, said[0, -1])
                    elif name == "two points" and kernel == "gaussian":
                        assert rank == 2
                        assert said[-1, -1] < 1e-4


def test_directions_that_died_out_are_opened_again():
    """A sensor that is stuck pushes other samples out; then the stream goes on."""
    X = blobs(200)
    X[50:150] = X[50]
    chosen = settings(budget=8, removal="fifo", step="tracking")
    state, _ = learn(X[:150], chosen)
    assert state.status[0]["rank"] < R
    state, _ = learn(X[150:], chosen, state=state)
    assert state.status[0]["rank"] == R


def test_samples_that_hold_a_direction_alone_are_spared():
    """Full steps on a tight budget: the shortest row may be the only one of its direction."""
    X = blobs(size(400, 100), p=30)
    chosen = settings(budget=24, step="inverse", pace=1e9)
    state, _ = learn(X, chosen, "laplacian", r=20)
    assert state.status[0]["rank"] == 20
    assert state.status[0]["removed"] == len(X) - 24


# A basis that moves least.


@pytest.mark.parametrize("solver", ["parametric", "nonparametric"])
@pytest.mark.parametrize("basis", ["orthonormal", "printed"])
def test_aligned_basis_moves_least(solver, basis):
    """After every update: Procrustes against the basis before, on explicit coordinates."""
    X = blobs(40)
    K = kernels.matrix(KERNELS["gaussian"][1], X, X)
    values, vectors = np.linalg.eigh(K)
    phi = (vectors * np.sqrt(np.maximum(values, 0.0))).T  # columns: samples, inner products K
    chosen = settings(basis, budget=7, solver=solver, step="tracking", align=True)

    def basis_of(state):
        L = phi[:, state.numbers[: state.order]] @ state.factor[: state.order]
        return L @ state.root.T @ state.rotation.T

    state, _ = learn(X[:R], chosen)
    old = basis_of(state)
    for x in X[R:]:
        state, _ = learn(x[None], chosen, state=state)
        new = basis_of(state)
        assert np.allclose(new.T @ new, np.eye(R), atol=1e-8)
        best = new @ orthogonal_procrustes(new, old)[0]
        assert np.allclose(new, best, atol=1e-7)
        old = new


# The joint mode.


@pytest.mark.parametrize("solver", ["parametric", "nonparametric"])
@pytest.mark.parametrize("basis", ["orthonormal", "printed"])
@pytest.mark.parametrize("budget", [None, 7])
def test_the_function_is_projected_on_the_subspace_that_has_moved(solver, basis, budget):
    """One sample at a time, on explicit coordinates: f, the step of Pegasos, the projection."""
    X = blobs(40)
    y = (X[:, 0] * X[:, 1] > 0.0).astype(float)
    K = kernels.matrix(KERNELS["gaussian"][1], X, X)
    values, vectors = np.linalg.eigh(K)
    phi = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    eta, shrinkage, ridge = 0.5, 0.01, 1e-3
    chosen = settings(
        basis, ridge, budget=budget, solver=solver, step="tracking", outputs=1, eta=eta,
        shrinkage=shrinkage,
    )  # fmt: skip

    def subspace(state):
        factor = state.factor[: state.order] * 2.0 ** state.status[0]["exponent"]
        return phi[:, state.numbers[: state.order]] @ factor[:, : state.status[0]["rank"]]

    def function(state):
        L = phi[:, state.numbers[: state.order]] @ state.factor[: state.order]
        return L @ state.weights[0]

    state, _ = learn(X[:1], chosen, targets=y[:1])
    spent = 0.0
    for i in range(1, len(X)):
        L, g = subspace(state), function(state)
        q = np.linalg.solve(L.T @ L + ridge * np.eye(L.shape[1]), L.T @ phi[:, i])
        f, target = g @ (L @ q), 2.0 * y[i] - 1.0
        g = (1.0 - eta * shrinkage) * g + (eta * target * (L @ q) if target * f < 1.0 else 0.0)
        state, said = learn(X[i : i + 1], chosen, state=room(state), targets=y[i : i + 1])
        assert np.isclose(said[0, 0], f, atol=1e-9)
        Q, _ = np.linalg.qr(subspace(state))
        projected = Q @ (Q.T @ g)
        assert np.allclose(function(state), projected, atol=1e-8)
        spent += np.linalg.norm(g - projected)
        if i == R - 1:
            assert np.isclose(spent, 0.0, atol=1e-7)  # new directions only
    assert np.isclose(state.status[0]["error_spent"], spent, rtol=1e-6)
    assert spent > 0.0


def room(state):
    return (
        feature_state.resize(state, state.capacity + 1) if state.order == state.capacity else state
    )


@pytest.mark.parametrize("removal", ["greedy", "fifo"])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_a_function_is_not_lengthened_by_a_lost_direction(removal, kernel):
    """One direction on one or two samples: what the projection leaves of it is rounding."""
    X = 2.0 * blobs(size(2000, 200))
    y = (X[:, 0] > 0.0).astype(float)
    for budget in (1, 2):
        chosen = settings(
            budget=budget, removal=removal, outputs=1, shrinkage=0.01, step="inverse",
            solver="nonparametric", pace=1.0, early=0,
        )  # fmt: skip
        state, said = learn(X, chosen, kernel, r=1, targets=y)
        assert np.isfinite(said).all()
        assert abs(float(state.weights[0, 0])) < 1e3
        assert np.isfinite(float(state.status[0]["error_spent"]))


def test_basis_is_orthonormal_where_samples_differ_by_many_powers_of_ten():
    """Without a kernel matrix at hand, too: M comes from the samples where digits were lost."""
    for seed in range(8, 12):
        random = np.random.default_rng(seed)
        X = random.normal(size=(40, 4)) * 10.0 ** random.integers(-3, 4, size=(40, 1))
        for n in (9, 24, 40):
            state, _ = learn(X[:n], settings(early=20, pace=5.0), "polynomial", r=5)
            points, factor = points_of(state)
            rank = state.status[0]["rank"]
            K = kernels.matrix(KERNELS["polynomial"][1], points, points)
            assert np.allclose(factor[:, :rank].T @ K @ factor[:, :rank], np.eye(rank), atol=1e-3)


def test_memory_in_closed_form():
    for capacity, p, r, outputs, dense in ((5, 3, 4, 0, True), (17, 50, 20, 3, False)):
        state = feature_state.allocate(p, r, outputs, capacity, dense)
        assert state.nbytes == feature_bytes(capacity, p, r, outputs, dense)
