"""The square-root factor against the definition: S S^T = inverse(K)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream.core import gram, kernel
from kernelstream.core.gram import DEPENDENT
from tests.core.tools import gaussian, kernel_matrix, program, size

EPS = np.finfo(float).eps
CAPACITY = 40

#: Streams of points that a factor must survive.
STREAMS = {
    "random": lambda rng: rng.normal(size=3),
    "duplicated": lambda rng: np.round(rng.normal(size=3)),
    "collinear": lambda rng: rng.normal() * np.array([1.0, 2.0, -1.0]),
    "constant": lambda rng: np.array([0.3, -1.0, 2.0]),
    "tiny spread": lambda rng: 1.0 + 1e-5 * rng.normal(size=3),
    "far away": lambda rng: 1e6 + rng.normal(size=3),
    "many scales": lambda rng: rng.normal(size=3) * 10.0 ** rng.integers(-8, 9),
}
PROGRAMS = {
    "gaussian": gaussian(0.5),
    "laplacian": program((kernel.LAPLACIAN, 0.5)),
    "matern52": program((kernel.MATERN52, 0.5)),
    "linear": program((kernel.LINEAR,)),
    "cubic": program((kernel.POLYNOMIAL, 1.0, 1.0, 3)),
}


class Factor:
    """A factor and its points, changed by the functions under test alone."""

    def __init__(self, kernel_program):
        self.program = kernel_program
        self.points = np.empty((0, 3))
        self.factor = np.full((CAPACITY, CAPACITY), np.nan)  # spare room may hold anything
        self.diagonal = np.full(CAPACITY, np.nan)
        self.worst = 1.0  # largest k(x, x) diag(inverse(K)) so far

    @property
    def n(self):
        return len(self.points)

    @property
    def S(self):  # noqa: N802
        return self.factor[: self.n, : self.n]

    def kernels(self, X, Z):
        return kernel_matrix(self.program, np.atleast_2d(X), np.atleast_2d(Z))[0]

    def append(self, x):
        """Returns delta / k(x, x)."""
        values, own = self.kernels(x, self.points), self.kernels(x, x)[0, 0]
        u, a = np.empty(self.n), np.empty(self.n)
        delta = own - gram.coordinates(self.factor, values, self.n, u, a)
        if delta > DEPENDENT * own:
            gram.append_point(self.factor, self.diagonal, self.n, a, delta)
            self.points = np.vstack([self.points, x])
            self.note()
        return delta / own if own > 0 else 0.0

    def append_block(self, X):
        """Returns the order, how many were accepted, z and the residual Gram matrix."""
        q = len(X)
        block_gram = self.kernels(X, X)
        own = np.diag(block_gram).copy()
        order, z = np.empty(q, np.int64), np.full((q, self.n + q), np.nan)
        a = gram.complement(self.factor, self.n, self.kernels(X, self.points), block_gram)
        accepted = gram.append_block(
            self.factor, self.diagonal, self.n, a, block_gram, own, np.ones(q, bool), order, z
        )
        self.points = np.vstack([self.points, X[order[:accepted]]])
        self.note()
        return order, accepted, z, block_gram

    def remove(self, j):
        """Returns the column that gives the change of the weights."""
        n = self.n
        v, column = np.empty(n), np.empty(n)
        gram.reflect_away(self.factor, self.diagonal, n, j, v, column)
        self._drop([j])
        return column

    def remove_block(self, removed):
        n, r = self.n, len(removed)
        dropped = np.empty((n, r))
        gram.reflect_block_away(
            self.factor, self.diagonal, n, np.array(removed, np.int64), r, dropped
        )
        self._drop(removed)
        return dropped

    def _drop(self, removed):
        keep = np.setdiff1d(np.arange(self.n), removed)
        self.factor[: len(keep), : len(keep)] = self.factor[keep, : len(keep)]
        self.diagonal[: len(keep)] = self.diagonal[keep]
        self.points = self.points[keep]
        self.note()

    def note(self):
        own = np.diag(self.kernels(self.points, self.points)) if self.n else np.ones(0)
        self.worst = max(self.worst, (own * self.diagonal[: self.n]).max(initial=1.0))

    def residual(self):
        """max |S S^T K - I|, with K scaled to ones on its diagonal."""
        if self.n == 0:
            return 0.0
        K = self.kernels(self.points, self.points)
        root = np.sqrt(np.diag(K))
        error = self.S @ (self.S.T @ K) - np.eye(self.n)
        return np.abs(error * root[:, None] / root).max()

    def check(self):
        # A kernel value is known to EPS, and the weights a of a new point on the old ones are
        # at most sqrt(worst) in size, so delta is known to EPS sqrt(worst); the last column of
        # S divides by it, and delta k(x, x) >= 1 / worst. Measured: at most 6 in place of 30.
        assert self.residual() <= 30 * EPS * self.worst**1.5
        norms = (self.S**2).sum(axis=1)
        assert self.diagonal[: self.n] == pytest.approx(norms, rel=1e-12)


def operations():
    places = st.lists(st.integers(0, 1000), min_size=1, max_size=6)
    return st.lists(
        st.tuples(st.sampled_from(["append", "append block", "remove", "remove block"]), places),
        min_size=1,
        max_size=size(40, 15),
    )


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=size(25, 5))
@given(steps=operations(), seed=st.integers(0, 2**32 - 1))
def test_residual_stays_small(name, stream, steps, seed):
    rng = np.random.default_rng(seed)
    draw = STREAMS[stream]
    factor = Factor(PROGRAMS[name])
    for operation, places in steps:
        if operation == "append" and factor.n < CAPACITY:
            factor.append(draw(rng))
        elif operation == "append block" and factor.n + len(places) <= CAPACITY:
            factor.append_block(np.array([draw(rng) for _ in places]))
        elif operation == "remove" and factor.n:
            factor.remove(places[0] % factor.n)
        elif operation == "remove block" and factor.n:
            factor.remove_block(list(dict.fromkeys(p % factor.n for p in places)))
        factor.check()


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 8])
def test_residual_after_very_many_changes(block):
    """Errors must not pile up: only the conditioning of the points may show."""
    rng = np.random.default_rng(0)
    factor = Factor(gaussian(0.5))
    for _ in range(size(20_000, 200) // block):
        if block == 1:
            factor.append(rng.normal(size=3))
        else:
            factor.append_block(rng.normal(size=(block, 3)))
        while factor.n > 25:
            if block == 1:
                factor.remove(rng.integers(factor.n))
            else:
                chosen = rng.choice(factor.n, min(block, factor.n - 20), replace=False)
                factor.remove_block(chosen.tolist())
    factor.check()


def spread(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def test_coordinates_are_the_projection():
    factor = Factor(gaussian(0.5))
    X = spread(11)
    for x in X[:10]:
        factor.append(x)
    K, k = factor.kernels(X[:10], X[:10]), factor.kernels(X[10], X[:10])
    u, a = np.empty(10), np.empty(10)
    square = gram.coordinates(factor.factor, k, 10, u, a)
    weights = np.linalg.solve(K, k[0])
    assert a == pytest.approx(weights, abs=1e-10)
    assert square == pytest.approx(k[0] @ weights, rel=1e-12)


@pytest.mark.parametrize("stream", ["random", "far away", "tiny spread"])
@pytest.mark.parametrize("q", [1, 2, 7])
def test_block_append_equals_repeated_append(stream, q):
    rng = np.random.default_rng(q)
    old = np.array([STREAMS[stream](rng) for _ in range(6)])
    new = np.array([STREAMS[stream](rng) for _ in range(q)])
    gamma = 2e9 if stream == "tiny spread" else 0.5
    one, many = Factor(gaussian(gamma)), Factor(gaussian(gamma))
    for x in old:
        one.append(x)
        many.append(x)
    for x in new:
        one.append(x)
    order, accepted, _, _ = many.append_block(new)
    assert accepted == q
    assert sorted(order) == list(range(q))
    place = np.concatenate([np.arange(6), 6 + order])  # of many's points among one's
    expected = (one.S @ one.S.T)[np.ix_(place, place)]
    assert pytest.approx(expected, rel=1e-8, abs=1e-8) == many.S @ many.S.T
    assert many.diagonal[: many.n] == pytest.approx(one.diagonal[place], rel=1e-8)


@pytest.mark.parametrize("old", [0, 4])
def test_dependent_points_of_a_block_are_projected(old):
    rng = np.random.default_rng(3)
    stored, fresh = spread(old, 1), spread(3, 2)
    near = fresh[[0, 2]] + 1e-7 * rng.normal(size=(2, 3))
    near = np.vstack([near, stored[:1] + 1e-7, fresh[:1]])
    factor = Factor(gaussian(0.5))
    for x in stored:
        factor.append(x)
    X = np.vstack([near, fresh])
    order, accepted, z, rest = factor.append_block(X)
    assert accepted == 3
    assert factor.n == old + 3
    for i in range(accepted, len(X)):
        x = X[order[i]]
        K, k = factor.kernels(factor.points, factor.points), factor.kernels(x, factor.points)[0]
        weights = np.linalg.solve(K, k)
        assert z[i, : factor.n] == pytest.approx(weights, abs=1e-8)
        assert rest[i, i] == pytest.approx(1.0 - k @ weights, abs=1e-13)
        assert rest[i, i] <= DEPENDENT
    factor.check()


def test_a_linear_kernel_has_no_more_points_than_dimensions():
    rng = np.random.default_rng(0)
    for block in (False, True):
        factor = Factor(PROGRAMS["linear"])
        if block:
            factor.append_block(rng.normal(size=(20, 3)))
        else:
            for x in rng.normal(size=(20, 3)):
                factor.append(x)
        assert factor.n == 3
        factor.append_block(np.zeros((2, 3)))  # k(x, x) = 0
        factor.append(np.zeros(3))
        assert factor.n == 3
        factor.check()


@pytest.mark.parametrize("j", [0, 4, 8])
def test_removal_gives_the_projection_weights(j):
    factor = Factor(gaussian(0.5))
    X = spread(9)
    for x in X:
        factor.append(x)
    column = factor.remove(j)
    keep = np.delete(np.arange(9), j)
    K = factor.kernels(X, X)
    expected = np.linalg.solve(K[np.ix_(keep, keep)], K[keep, j])
    assert -column[keep] / column[j] == pytest.approx(expected, abs=1e-10)
    assert factor.S @ factor.S.T @ K[np.ix_(keep, keep)] == pytest.approx(np.eye(8), abs=1e-11)


@pytest.mark.parametrize("removed", [[0], [8], [3, 0, 8], [8, 7, 6, 5], list(range(9))])
def test_block_removal_equals_one_by_one(removed):
    X = spread(9)
    one, many = Factor(gaussian(0.5)), Factor(gaussian(0.5))
    for x in X:
        one.append(x)
        many.append(x)
    for x in X[removed]:
        one.remove(int(np.flatnonzero((one.points == x).all(axis=1))[0]))
    dropped = many.remove_block(removed)
    assert np.array_equal(one.points, many.points)
    assert pytest.approx(one.S @ one.S.T, abs=1e-9) == many.S @ many.S.T
    assert many.diagonal[: many.n] == pytest.approx(one.diagonal[: one.n], rel=1e-10)
    # Row i of the block lives in the first i + 1 of the dropped columns.
    assert np.triu(dropped[removed], 1) == pytest.approx(np.zeros((len(removed),) * 2), abs=1e-10)
