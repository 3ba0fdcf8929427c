"""The compiled tracker against its naive twin, and its intervals against theirs."""

import numpy as np
import pytest

from kernelstream.core.experts.tracker import tracker_pass
from kernelstream.models._auto._group import Group, unpacked
from kernelstream.models._auto._intervals import Intervals
from tests.core.tools import kinds_of_rows, size
from tests.naive import intervals as naive_intervals
from tests.naive import krlst as naive

ROWS = kinds_of_rows(size(120, 50))


def compiled(X, y, weights, outputs, numbers, gamma, amplitude, forget, noise, most, cuts=()):
    group = Group(X.shape[1], outputs, most, gamma * X.shape[1], numbers, 0, rates=())
    group.state.status["amplitude"], group.state.status["interval"] = amplitude, 0
    y = y.reshape(len(X), -1)
    noises = np.ones(y.shape[1])
    out, deviations = np.empty((len(X), 1, outputs)), np.empty(y.shape)
    edges = [0, *cuts, len(X)]
    for part in map(slice, edges[:-1], edges[1:]):
        tracker_pass(
            group.state, forget, noise, noises, outputs, X[part], y[part], weights[part], out[part],
            deviations[part],
        )  # fmt: skip
    return group, out[:, 0], deviations if y.shape[1] > 1 else deviations[:, 0]


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize(
    ("outputs", "numbers"), [(1, True), (3, True), (1, False), (2, False), (4, False)]
)
@pytest.mark.parametrize(("forget", "noise", "most"), [(1.0, 0.0, 200), (0.97, 0.1, 12)])
def test_the_twin_agrees(kind, outputs, numbers, forget, noise, most):
    random = np.random.default_rng(outputs)
    X = ROWS[kind](random)
    y = np.sin(2.0 * X[:, 0]) + 0.3 * random.normal(size=len(X))
    weights = random.choice([0.5, 1.0, 3.0], len(X))
    if not numbers:
        y = random.integers(0, outputs, len(X)).astype(float)
    elif outputs > 1:  # the same, noise alone, and twice the first with hardly any noise
        y = np.column_stack([y, random.normal(size=len(X)), 2.0 * np.sin(2.0 * X[:, 0])])
    settings = (outputs, numbers, 0.4, 2.0, forget, noise, most)
    group, predictions, deviations = compiled(X, y, weights, *settings)
    expected, expected_deviations, points, mu, Sigma = naive.krlst(X, y, weights, *settings)
    np.testing.assert_allclose(predictions, expected, atol=1e-6)
    np.testing.assert_allclose(deviations, expected_deviations, atol=1e-6)
    n, state = group.order, group.state
    np.testing.assert_array_equal(state.points[:, :n].T, points)
    values = group.gram() @ unpacked(state.inverse, n).T
    # The state has forgotten already what the twin forgets before its next row.
    np.testing.assert_allclose(values @ state.weights[:, :n].T, np.sqrt(forget) * mu, atol=1e-6)
    later = forget * Sigma + (1.0 - forget) * group.gram()
    lower = unpacked(state.covariance, n)
    covariance = lower + np.tril(lower, -1).T
    np.testing.assert_allclose(values @ covariance @ values.T, later, atol=1e-6)
    assert n <= most


def test_any_cut_gives_the_same_bits():
    random = np.random.default_rng(0)
    X, y, weights = random.normal(size=(300, 4)), random.normal(size=300), np.ones(300)
    settings = (1, True, 0.3, 1.0, 0.999, 0.0, 20)
    whole, predictions, deviations = compiled(X, y, weights, *settings)
    parts, *others = compiled(X, y, weights, *settings, cuts=(1, 2, 50, 51, 200))
    assert all(np.array_equal(a, b) for a, b in zip(whole.state, parts.state, strict=True))
    assert np.array_equal(predictions, others[0])
    assert np.array_equal(deviations, others[1])


def test_a_new_factor_changes_nothing_else():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 4)), random.normal(size=300)
    group, *_ = compiled(X, y, np.ones(300), 1, True, 0.3, 1.0, 0.999, 0.0, 20)

    def predicted():
        out, deviations = np.empty((300, 1, 1)), np.empty((300, 1))
        noises, nothing = group.state.status["noise"].copy(), np.empty((0, 1))
        tracker_pass(group.state, 0.999, 0.0, noises, 1, X, nothing, np.ones(300), out, deviations)
        return out[:, 0, 0], deviations[:, 0]

    before = predicted()
    group.renew(kept=1.0)
    np.testing.assert_allclose(predicted(), before, atol=1e-9)


@pytest.mark.parametrize("case", ["normal", "heavy", "zeros", "zeros, then a jump"])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_the_intervals_twin_agrees(case, level):
    random = np.random.default_rng(1)
    errors = random.standard_t(2.0, size=700) if case == "heavy" else random.normal(size=700)
    errors[: {"zeros": 700, "zeros, then a jump": 300}.get(case, 0)] = 0.0
    deviations = random.uniform(0.5, 2.0, 700)
    found = Intervals(1).learn(errors[:, None], deviations, level)[:, 0]
    np.testing.assert_allclose(
        found, naive_intervals.half_widths(errors, deviations, level), rtol=1e-9
    )
