"""Experts and mixtures of the automatic model, against what is written out in NumPy."""

import math

import numpy as np
import pytest

from kernelstream.core.experts import steps
from kernelstream.core.experts.lags import LAGS, lag_pass, new_lags
from kernelstream.core.experts.linear import LINEAR_STATUS, LinearState, linear_pass
from kernelstream.core.experts.targets import chain_pass
from kernelstream.core.jit import INTERPRETED, compiled
from kernelstream.core.splitmix import uniform
from kernelstream.core.units import ColumnUnits, moving_units
from kernelstream.models._auto._committee import Committee
from kernelstream.models._auto._group import Group, unpacked
from kernelstream.models._auto._sizes import Sizes
from tests.core.tools import size
from tests.naive import experts as naive

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # random
N = size(400, 90)
RATES = (0.05, 0.3, 2.0)


def draws(seed):
    """The numbers that the compiled pass draws."""
    status = np.zeros(1, np.dtype([("random", np.uint64)])).view(np.recarray)
    status["random"] = seed
    while True:
        yield uniform(status[0])


def stream(kind, outputs, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    if kind == "duplicates":
        X = X[rng.integers(9, size=N)]
    elif kind == "collinear":
        X = np.outer(rng.normal(size=N), [1.0, -2.0, 0.5])
    elif kind == "constant":
        X[:] = 1.0
    X[rng.random(X.shape) < 0.2] = 0.0
    signal = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)
    if outputs < 0:  # several numbers
        others = [0.3 * X[:, 0] + rng.normal(size=N) for _ in range(-outputs - 1)]
        return X, np.column_stack([signal, *others]), rng.uniform(0.5, 2.0, N)
    if outputs == 0:
        return X, signal, rng.uniform(0.5, 2.0, N)
    edges = np.quantile(signal, np.arange(1, outputs) / outputs)
    return X, np.digitize(signal, edges).astype(float), rng.uniform(0.5, 2.0, N)


@pytest.mark.parametrize("wanted", [-3, 0, 1, 2, 4])
@pytest.mark.parametrize("kind", ["random", "duplicates", "collinear", "constant"])
def test_a_group_of_experts(kind, wanted):
    X, y, weights = stream(kind, wanted)
    numbers, most, outputs = wanted <= 0, 12, max(abs(wanted), 1)
    group = Group(3, outputs, most, 1.5, numbers, 5, rates=RATES)
    group.state.scales[:] = [0.5, 2.0, 1.0]
    group.state.status["interval"] = 0  # scales stay
    status = group.state.status[0]
    twin = naive.Group(
        status["gamma"], status["amplitude"], group.state.scales.copy(), RATES, outputs,
        most, numbers, draws(5),
    )  # fmt: skip
    out = np.empty((N, 4, outputs))
    variances = group.run(X, y, weights, out, 0)
    expected = [twin.step(*sample) for sample in zip(X, y, weights, strict=True)]
    assert np.allclose(out, [row for row, _ in expected], rtol=1e-6, atol=1e-8)
    assert np.allclose(variances, [v for _, v in expected], rtol=1e-5, atol=1e-8)
    assert group.order == len(twin.points)
    assert np.array_equal(group.state.points[:, : group.order].T, twin.points)
    assert group.residual() < 1e-9
    if kind == "random":
        assert group.order == most  # points were replaced


@pytest.mark.parametrize("kind", ["walk", "season", "steps", "repeated", "huge"])
def test_numbers_by_earlier_ones(kind):
    """In any chunking as ridge regression with matrices."""
    random, n = np.random.default_rng(3), size(500, 420)
    y = {
        "walk": np.cumsum(random.normal(size=n)),
        "season": np.sin(np.arange(n) * np.pi / 24.0) + 0.1 * random.normal(size=n),
        "steps": np.repeat(random.normal(size=n // 20 + 1), 20)[:n],
        "repeated": np.tile([0.5, 0.5, -1.0], n)[:n],
        "huge": 1e4 * random.standard_cauchy(n).clip(-1.0, 1.0),
    }[kind][:, None]
    weights, out = random.uniform(0.5, 2.0, n), np.zeros((n, 2, 1))
    state, first = new_lags(1), 0
    prior = np.diagonal(state.covariance[0]).copy()
    for chunk in (1, 2, 40, 300, n):
        part = slice(first, min(n, first + chunk))
        lag_pass(state, y[part], weights[part], out[part], 1)
        first = part.stop
    twin = naive.Lags(LAGS.tolist(), prior)
    expected = [twin.step(*row) for row in zip(y[:, 0].tolist(), weights, strict=True)]
    np.testing.assert_allclose(out[:, 1, 0], expected, rtol=1e-6, atol=1e-7 * np.abs(y).max())
    after = [part.copy() for part in state]
    alone = np.zeros((3, 2, 1))
    lag_pass(state, np.empty((0, 1)), np.ones(3), alone, 1)  # the next one alone
    assert (alone[:, 1] == alone[0, 1]).all()
    assert all((a == b).all() for a, b in zip(after, state, strict=True))


def test_seasons_are_learned_from_the_numbers_alone():
    random, n = np.random.default_rng(0), size(4000, 1200)
    hours = np.arange(n)
    y = np.where(hours // 24 % 7 < 5, np.sin(hours * np.pi / 12.0), 0.0)
    y = (y + 0.05 * random.normal(size=n))[:, None]
    out = np.zeros((n, 1, 1))
    lag_pass(new_lags(1), y, np.ones(n), out, 0)
    half = slice(n // 2, None)
    error = np.square(out[half, 0] - y[half]).mean()
    assert error < 0.6 * np.square(np.diff(y, axis=0)[half]).mean()


@pytest.mark.parametrize("full", [False, True])
def test_a_renewed_group_keeps_its_values(full):
    X, y, weights = stream("random", 3)
    group = Group(3, 3, 20, 1.5, False, 5, full=full)
    group.run(X, y, weights, np.empty((N, 4, 3)), 0)

    def values():
        return group.coefficients() @ group.gram()

    group.state.slopes[:], before = 0.0, values()  # nothing to learn scales from
    group.state.metric[:] = 0.0
    certain = np.trace(unpacked(group.state.covariance, group.order))
    group.renew()
    assert np.allclose(values(), before, atol=1e-9)
    assert np.trace(unpacked(group.state.covariance, group.order)) > certain
    group.state.slopes[:] = [9.0, 1.0, 0.0]
    group.state.metric[:] = np.diag([9.0, 1.0, 0.0]) if full else group.state.metric
    group.renew()
    assert group.residual() < 1e-9
    reach = np.linalg.norm(group.turn, axis=1) ** 2 if full else group.state.scales
    assert reach[0] > reach[1] > reach[2] > 0.0


def test_units_of_a_target_change_what_a_group_says():
    X, y, weights = stream("random", 0)
    group = Group(3, 1, 20, 1.5, True, 5)
    group.run(X, y, weights, np.empty((N, 4, 1)), 0)
    points = np.ascontiguousarray(group.state.points[:, : group.order].T)
    before, after = np.empty((2, group.order, 4, 1))
    group.run(points, np.empty(0), np.ones(len(points)), before, 0)
    group.change_units(-0.7, 3.0)
    group.run(points, np.empty(0), np.ones(len(points)), after, 0)
    assert np.allclose(after, (before - 0.7) * 3.0, atol=1e-9)


def test_units_of_several_targets_change_what_experts_say():
    """Each in its own way: kernel and linear experts, also those that look at the last targets."""
    X, Y, _ = stream("random", -3)
    shift, stretch = np.array([-0.7, 0.0, 2.0]), np.array([3.0, 1.0, 0.01])
    committee = Committee(3, 3, True, Sizes(12, 12, 16, 4), False, "auto", 0)
    committee.run(X[:64], Y[:64], np.ones(64), np.zeros((64, 2, 3)), np.zeros(64))
    nothing = np.empty((0, 3))

    def opinions():
        found = [committee.last[None].copy(), committee.level[None].copy()]
        for group in committee.groups:  # functions keep their values at the points
            points = np.ascontiguousarray(group.state.points[:, : group.order].T)
            found.append(np.empty((len(points), 4, 3)))
            group.run(points, nothing, np.ones(len(points)), found[-1], 0)
        for linear in committee.linear:
            found.append(np.empty((N, 1, 3)))
            linear_pass(linear, committee.last, X, nothing, np.ones(N), found[-1], 0)
        return found

    before = opinions()
    committee.change_units(shift, stretch)
    for old, new in zip(before, opinions(), strict=True):
        assert np.allclose(new, (old + shift) * stretch, atol=1e-9)
    for group in committee.groups:
        noise = group.state.status[0]["noise"]
        assert np.isclose(noise, np.exp(np.log(group.state.noises).mean()))


def naive_linear(X, Y, lagged, draws):
    """Recursive least squares of all targets, on 1, the row and the last targets."""
    out, last = [], np.zeros(Y.shape[1])
    width = 1 + X.shape[1] + (Y.shape[1] if lagged else 0)
    covariance, weights = np.eye(width), np.zeros((width, Y.shape[1]))
    if not lagged:  # inputs as far out as they are
        X = np.where(np.abs(X) > 3.0, np.sign(X) * (2.0 + np.exp(np.abs(X) - 3.0)), X)
        X = np.clip(X, -100.0, 100.0)
    for x, y in zip(X, Y, strict=True):
        z = np.concatenate([[1.0], x, last if lagged else []])
        out.append(z @ weights)
        h = covariance @ z
        v = z @ h
        gain = 1.0 / (0.1 + v)
        weights += np.outer(h, gain * (y - out[-1]))
        chance = next(draws)
        if gain * v < 0.1:
            gain = 0.1 / v if chance * 0.1 < gain * v else 0.0
        covariance -= gain * np.outer(h, h)
        last = y
    return np.array(out)


@pytest.mark.parametrize("lagged", [False, True])
def test_a_linear_expert_of_several_targets(lagged):
    X, Y, _ = stream("random", -2)
    width = 4 + 2 * lagged
    status = np.zeros(1, LINEAR_STATUS)
    status["numbers"], status["lagged"], status["forget"], status["random"] = 1, lagged, 1.0, 7
    status["far"] = not lagged
    linear = LinearState(status, np.eye(width), np.zeros((2, width)))
    out, last = np.empty((N, 1, 2)), np.zeros(2)
    for part in (slice(0, 5), slice(5, N)):
        linear_pass(linear, last, X[part], Y[part], np.ones(N)[part], out[part], 0)
        last = Y[part][-1]
    assert np.allclose(out[:, 0], naive_linear(X, Y, lagged, draws(7)), atol=1e-8)


@pytest.mark.parametrize("margin", [-1e4, -30.0, -1.0, 0.0, 0.3, 40.0, 1e4])
@pytest.mark.parametrize("reach", [0.0, 1e-9, 0.5, 30.0, 1e4, 1e8])
def test_implicit_steps_solve_their_equation(margin, reach):
    solve = steps.solve_logistic
    if not INTERPRETED:
        solve = compiled(lambda margin, reach: steps.solve_logistic(margin, reach), cache=False)
    s = solve(margin, reach)
    assert 0.0 <= s <= 1.0
    w = -(margin + reach * s)
    right = 1.0 / (1.0 + math.exp(-w)) if w > -700.0 else 0.0
    assert s == pytest.approx(right, rel=1e-6, abs=1e-9)


def naive_unit(known, m, v, filled, power):
    """What is 0 and what is 1 in a column."""
    if 0.0 < filled < 0.5:
        return 0.0, max(np.sqrt(v), 0.5 * np.sqrt(power / filled))
    if len(set(known)) == 2:
        return m, max(np.sqrt(v), 0.5 * np.ptp(known))
    return m, np.sqrt(v)


def naive_units(X):
    """Units of each column, one value at a time."""
    out = np.zeros_like(X)
    for j, column in enumerate(X.T):
        m = v = filled = power = 0.0
        known = []
        for t, x in enumerate(column):
            if np.isnan(x):
                continue
            known.append(x)
            a = max(1.0 / len(known), 1.0 / 4000.0)
            counts = x
            if len(known) > 20:  # one value far out must not set the unit
                center, unit = naive_unit(known, m, v, filled, power)
                counts = np.clip(x, center - 10.0 * unit, center + 10.0 * unit) if unit else x
            u = counts - m
            m, v = m + a * u, (1.0 - a) * (v + a * u * u)
            filled += a * ((counts != 0.0) - filled)
            power += a * (counts * counts - power)
            center, unit = naive_unit(known, m, v, filled, power)
            z = (x - center) / unit if unit > 1e-14 * abs(center) else 0.0
            out[t, j] = z if abs(z) <= 3.0 else np.sign(z) * (3.0 + np.log(abs(z) - 2.0))
    return out


def test_units_that_move():
    rng = np.random.default_rng(0)
    X = np.column_stack([
        rng.normal(5.0, 2.0, N), rng.choice([0.0, 1.0], N, p=[0.9, 0.1]), np.full(N, 3.0),
        np.arange(N) * 1e3, np.exp(3.0 * rng.normal(size=N)), rng.choice([-1.0, 1.0], N),
        np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)), rng.poisson(0.1, N),
        1e150 * rng.normal(size=N),
    ])  # fmt: skip
    units, out = ColumnUnits(*np.zeros((len(ColumnUnits._fields), X.shape[1]))), np.empty_like(X)
    moving_units(units, X[: N // 2], True, out[: N // 2])
    moving_units(units, X[N // 2 :], True, out[N // 2 :])
    assert np.allclose(out, naive_units(X), rtol=1e-9, atol=1e-12)
    kept = [part.copy() for part in units]
    again = np.empty_like(X)
    moving_units(units, X, False, again)
    assert all(np.array_equal(a, b) for a, b in zip(kept, units, strict=True))
    assert np.isfinite(again).all()
    # A counter that runs on stays where the learned rows were, others near them.
    later, shown = X[-1:].copy(), np.empty((1, X.shape[1]))
    later[0, [0, 3]] += 1e9
    moving_units(units, later, False, shown)
    assert units.least[3] > 0.5
    assert shown[0, 3] == units.most[3]
    reached, width = units.most[0], units.most[0] - units.least[0]
    assert shown[0, 0] == pytest.approx(reached + 0.5 * width)


def test_one_value_far_out_does_not_set_the_unit():
    X = np.random.default_rng(0).normal(size=(400, 1))
    expected, found = np.empty_like(X), np.empty_like(X)
    moving_units(ColumnUnits(*np.zeros((len(ColumnUnits._fields), 1))), X, True, expected)
    X[200] = 1e9
    moving_units(ColumnUnits(*np.zeros((len(ColumnUnits._fields), 1))), X, True, found)
    ratio = expected[210:].std() / found[210:].std()
    assert 1.0 < ratio < 1.5  # without a bound it would be 1e7


@pytest.mark.parametrize("kept", [1.0, 0.3, 0.02])
@pytest.mark.parametrize("n", [1, 20, 150])
def test_a_renewed_group_is_as_certain_as_it_should_be(n, kept):
    """In the new coordinates of the old functions: (kept inverse(C) + (1 - kept) I)^-1."""
    random = np.random.default_rng(n)
    group = Group(3, 1, n, 8.0, True, 0)
    rows, out = random.normal(size=(3 * n, 3)), np.empty((3 * n, 4, 1))
    group.run(rows, np.sin(rows[:, 0]), np.ones(3 * n), out, 0)
    n = group.order

    def parts():
        inverse, lower = (unpacked(group.state[k], n) for k in (3, 4))
        return inverse, lower + np.tril(lower, -1).T

    (inverse, before), values = parts(), group.coefficients() @ group.gram()
    group.renew(kept)
    again, after = parts()
    change = again @ np.linalg.inv(inverse)
    expected = kept * np.linalg.inv(change @ before @ change.T) + (1.0 - kept) * np.eye(n)
    np.testing.assert_allclose(after, np.linalg.inv(expected), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(group.coefficients() @ group.gram(), values, atol=1e-9)
    assert group.residual() < 1e-9


def test_a_covariance_that_rounding_made_indefinite_is_mended():
    random = np.random.default_rng(0)
    group = Group(2, 1, 12, 1.0, True, 0)
    rows, out = random.normal(size=(40, 2)), np.empty((40, 4, 1))
    group.run(rows, np.sin(rows[:, 0]), np.ones(40), out, 0)
    n = group.order
    group.state.covariance[0] = -1e-9
    group.renew()
    lower = unpacked(group.state.covariance, n)
    assert np.linalg.eigvalsh(lower).min() > 0.0
    assert group.residual() < 1e-9


@pytest.mark.parametrize("kept", [1.0, 0.3])
def test_points_that_came_too_near_to_others_leave_and_the_rest_keeps_its_values(kept):
    random = np.random.default_rng(0)
    group = Group(2, 1, 12, 8.0, True, 0)
    rows, out = random.normal(size=(60, 2)), np.empty((60, 4, 1))
    group.run(rows, np.sin(rows[:, 0]), np.ones(60), out, 0)
    n, state = group.order, group.state
    values = group.coefficients() @ group.gram()
    inverse, lower = (unpacked(state[k], n) for k in (3, 4))
    L = np.linalg.inv(inverse)
    before = L @ (lower + np.tril(lower, -1).T) @ L.T  # of the values at the points
    for near, other in ((3, 1), (7, 2)):
        state.points[:, near] = state.points[:, other] + 1e-9
        state.norms[near] = (state.scales * state.points[:, near] ** 2).sum()
    group.renew(kept)
    own = [i for i in range(n) if i not in (3, 7)]
    assert group.order == n - 2
    assert group.residual() < 1e-9
    np.testing.assert_allclose(group.coefficients() @ group.gram(), values[:, own], atol=1e-9)
    if kept == 1.0:
        inverse, lower = (unpacked(state[k], n - 2) for k in (3, 4))
        L = np.linalg.inv(inverse)
        after = L @ (lower + np.tril(lower, -1).T) @ L.T
        np.testing.assert_allclose(after, before[np.ix_(own, own)], atol=1e-9)


@pytest.mark.parametrize("rows", [12, 4, 1])
def test_chains_of_classes(rows):
    rng, classes, decays = np.random.default_rng(0), 12, np.array([0.99, 0.9, 0.99])
    y = np.cumsum(rng.integers(0, 3, size=N)) % classes
    y[::5] = rng.integers(classes, size=len(y[::5]))
    last, counts = np.full(1, -1.0), np.zeros((3, rows + 1, classes))
    owners, times = np.arange(rows), np.zeros(rows, np.int64)
    out, alone = np.empty((N, 3, classes)), np.empty((1, 3, classes))
    twins = [naive.Chain(classes, rows, decay) for decay in decays[:2]]
    for t, label in enumerate(y):
        state = last, counts, owners, times, decays
        chain_pass(*state, np.empty((0, 1)), alone, 0)
        chain_pass(*state, np.full((1, 1), float(label)), out[t : t + 1], 0)
        assert np.array_equal(alone[0], out[t])
        for e, twin in enumerate(twins):
            assert np.allclose(out[t, e], twin.step(label), rtol=1e-12), t
    assert np.allclose(out.sum(axis=2), 1.0)
