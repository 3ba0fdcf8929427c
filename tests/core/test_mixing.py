"""Experts mixed, against the same written out."""

import numpy as np
import pytest

from kernelstream.core.experts.class_mixture import CLASS_POOLS, mix_classes
from kernelstream.core.experts.number_mixture import NUMBER_POOLS, mix_numbers
from kernelstream.core.experts.targets import level_pass
from kernelstream.models._auto._committee import Committee
from kernelstream.models._auto._mixtures import new_mixtures
from kernelstream.models._auto._sizes import Sizes
from tests.core.tools import size
from tests.naive import experts as naive

N = size(400, 90)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("alike", [1.0, 1e-6])
def test_a_mixture_of_classes(classes, alike):
    """Also where experts hardly differ, one is not used, and one is sure and wrong."""
    random = np.random.default_rng(0)
    y, weights = random.integers(classes, size=N), random.uniform(0.5, 2.0, N)
    shared = 2.0 * np.eye(classes)[y] + random.normal(size=(N, classes))
    scores = shared[:, None] + alike * random.normal(size=(N, 5, classes))
    scores[:, 1] *= 3.0
    scores[N // 2 :, 1] *= -1.0  # the best one becomes the worst
    scores[N // 3, :, (y[N // 3] + 1) % classes] += 500.0
    opinions = np.exp(scores - scores.max(axis=2, keepdims=True))
    opinions /= opinions.sum(axis=2, keepdims=True)
    used = np.array([[1, 1, 1, 0, 1]])
    mixture, out = new_mixtures(used.copy(), False), np.empty((N, 1, classes))
    mix_classes(mixture, opinions, y[:, None].astype(float), weights, out)
    own = np.flatnonzero(used[0])
    twin = naive.ClassMixture(len(own), CLASS_POOLS)
    mixed = [twin.step(*row) for row in zip(opinions[:, own], y, weights, strict=True)]
    assert np.array_equal(out[:, 0].argmax(axis=1), np.argmax(mixed, axis=1))  # calibrated
    assert np.allclose(mixture.ways[0], twin.ways, rtol=1e-5)
    assert np.allclose(mixture.shares[0, own], twin.shares.now, rtol=1e-6)
    for k, pool in enumerate(twin.pools):
        assert np.allclose(mixture.powers[0, k, own], pool.powers, rtol=1e-4, atol=1e-5)
        found = mixture.covariance[0, k][np.ix_(own, own)]
        assert np.allclose(found, pool.covariance, rtol=1e-4, atol=1e-7)
    assert not mixture.powers[0, :, 3].any()
    assert not mixture.covariance[0, :, 3].any()


@pytest.mark.parametrize("alike", [0.3, 1e-6])
@pytest.mark.parametrize("simplest", [1, 2])
def test_a_mixture_of_numbers(alike, simplest):
    """Also where experts hardly differ, and with or without the last value."""
    random = np.random.default_rng(0)
    y, weights = random.normal(size=N), random.uniform(0.5, 2.0, N)
    shared = random.normal(size=N)
    opinions = y[:, None] + 0.3 * shared[:, None] + alike * random.normal(size=(N, 5))
    opinions[:, 2] += 2.0 * np.exp(-np.arange(N) / 20.0)  # one that learns slowly
    opinions[:, 3:] = opinions[:, 3:] * [0.3, 0.1] + random.normal(size=(N, 2))
    y[N // 2], opinions[N // 2 + 1, 3] = 30.0, 100.0
    used = np.ones((1, 5), np.int64)
    used[0, 3] = simplest == 2
    mixture, out = new_mixtures(used, True), np.empty((N, 1, 1))
    mix_numbers(mixture, opinions[:, :, None].copy(), y[:, None], weights, np.zeros(N), out)
    own = np.flatnonzero(used[0])
    twin = naive.NumberMixture(len(own), NUMBER_POOLS[0].spread, simplest)
    expected = [twin.step(*row) for row in zip(opinions[:, own], y, weights, strict=True)]
    assert np.allclose(out[:, 0, 0], expected, rtol=1e-6, atol=1e-8)
    assert mixture.scales[0] == pytest.approx(twin.scale)
    assert mixture.wide_scales[0] == pytest.approx(twin.wide_scale)
    assert mixture.inside[0] == pytest.approx(twin.inside)
    assert mixture.ways[0] == pytest.approx(twin.ways)
    assert mixture.answers[0, -simplest:] == pytest.approx(twin.nearer.shares[-simplest:])
    assert mixture.parts[0, -simplest:] == pytest.approx(twin.nearer.part)


def test_targets_of_several_numbers_are_mixed_each_by_itself():
    """As a mixture of one of them alone; and the last value and the mean are those of each."""
    random = np.random.default_rng(0)
    Y = random.normal([0.0, 5.0], size=(N, 2))
    opinions = Y[:, None] + random.normal(size=(N, 20, 2)) * random.uniform(0.1, 1.0, (20, 2))
    both = Committee(3, 2, True, Sizes(12, 12, 16, 4), False, "auto", 0)
    last, level, seen = np.zeros(2), np.zeros(2), np.zeros(1)
    level_pass(last, level, seen, Y, opinions, 18)
    assert np.array_equal(opinions[1:, 18], Y[:-1])
    assert np.allclose(level, Y.mean(axis=0))
    out, unlike = np.empty((N, 2, 2)), (np.arange(N) % 5 == 4).astype(float)
    mix_numbers(both.mixture, opinions, Y, np.ones(N), unlike, out)
    for c in range(2):
        alone = Committee(3, 1, True, Sizes(12, 12, 16, 4), False, "auto", 0)
        expected, one = np.empty((N, 2, 1)), slice(c, c + 1)
        own = np.ascontiguousarray(opinions[:, :, one])
        mix_numbers(
            alone.mixture, own, np.ascontiguousarray(Y[:, one]), np.ones(N), unlike, expected
        )
        assert np.array_equal(out[:, :, one], expected)
        assert np.array_equal(both.mixture.shares[c::2], alone.mixture.shares)


def test_rows_that_are_unlike_the_last_one():
    """They are predicted by the one of two mixtures that was right in such rows."""
    random = np.random.default_rng(0)
    y, unlike = np.cumsum(random.normal(size=N)), (np.arange(N) % 10 == 9).astype(float)
    y += np.cumsum(50.0 * unlike * random.normal(size=N))
    opinions = (y + random.normal(size=N))[:, None] + 3.0 * random.normal(size=(N, 4))
    opinions[:, 2] = np.concatenate([[0.0], y[:-1]])  # the last value
    used, weights = np.array([[1, 1, 1, 1], [1, 1, 0, 1]]), random.uniform(0.5, 2.0, N)
    made = []
    for rows in (np.zeros(N), unlike):
        mixture, out = new_mixtures(used.copy(), True), np.empty((N, 2, 1))
        mix_numbers(mixture, opinions[:, :, None].copy(), y[:, None], weights, rows, out)
        made.append(out[:, :, 0])
    (all_, any_row), share, scales = made[0].T, 0.5, []
    for t in range(N):  # the mean square of the errors of the shares, as the mixture has it
        mixture, out = new_mixtures(used.copy(), True), np.empty((t + 1, 2, 1))
        part = slice(0, t + 1)
        if unlike[t]:
            mix_numbers(
                mixture,
                opinions[part, :, None].copy(),
                y[part, None],
                weights[part],
                np.zeros(t + 1),
                out,
            )
        scales.append(mixture.wide_scales[1])
    for t in np.flatnonzero(unlike):
        assert made[1][t, 0] == pytest.approx(share * all_[t] + (1.0 - share) * any_row[t])
        share = naive.next_share(share, y[t] - all_[t], y[t] - any_row[t], scales[t], weights[t])
    same = unlike == 0.0
    np.testing.assert_array_equal(made[1][same], made[0][same])
    np.testing.assert_array_equal(made[1][:, 1], any_row)
    assert share < 0.4
