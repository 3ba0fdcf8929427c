"""Two models on one stream, against what is written out in NumPy."""

import math

import numpy as np
import pytest

from kernelstream.core.experts.contest import CONTEST_STATUS, contest
from tests.core.tools import size

N = size(900, 300)


def predictions(numbers, seed, wrong_from=None):
    """(n, 2, outputs) with targets; from a row on they are hardly better than chance.

    ``numbers``: how many a row has; 0 of classes.
    """
    random = np.random.default_rng(seed)
    each = max(1, numbers)
    y = np.random.default_rng(99).normal(size=(N, each)) * 10.0 ** np.arange(each)
    noise = np.full(N, 0.3)
    if wrong_from is not None:
        noise[wrong_from:] = 3.0
    errors = noise[:, None] * random.normal(size=(N, each)) * 10.0 ** np.arange(each)
    made = (y + errors)[:, None] * np.ones((1, 2, 1))
    if numbers:
        return made, y
    p = 1.0 / (1.0 + np.exp(-4.0 * made))
    return np.concatenate([1.0 - p, p], axis=2), (y > 0.0).astype(float)


class Naive:
    """The same, a row at a time."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.losses, self.doubt = [], False
        self.share, self.recent, self.leads = 0.5, 0.0, False
        self.fast = self.slow = self.variance = 0.0
        self.scales = np.zeros((2, max(1, numbers)))

    def likelihood(self, made, y, place):
        if not self.numbers:
            return math.log(0.98 * made[0, int(y[0])] + 0.02 / made.shape[1])
        error, scale = y - made[0], self.scales[place]
        each = -2.5 * np.log(1.0 + error**2 / (4.0 * scale)) - 0.5 * np.log(scale)
        return each.sum()  # of all numbers together

    def follow(self, made, y, place, rate):
        error, scale = y - made[0], self.scales[place]
        counts = 5.0 / (4.0 + error**2 / scale)
        self.scales[place] += rate * (counts * error**2 - scale)

    def step(self, first, second, y, weight):
        chosen = second if second is not None and self.leads else first
        if self.numbers and self.scales[0, 0] == 0.0:
            self.scales[0] = 1.0
        rate = max(1.0 / (len(self.losses) + 2.0), 1.0 / 512.0)
        if second is None:
            self.watch(first, y)
        if second is not None:
            apart = self.likelihood(second, y, 1) - self.likelihood(first, y, 0)
            odds = self.share / (1.0 - self.share) * math.exp(weight * apart)
            self.share = 0.999 * odds / (1.0 + odds) + 0.0005
            self.recent += (self.share - self.recent) / 200.0
            self.leads = self.share > 0.5 and self.recent > 0.25
        if self.numbers:
            self.follow(first, y, 0, rate)
            if second is not None:
                self.follow(second, y, 1, 1.0 / 512.0)
        return chosen

    def watch(self, first, y):
        if self.numbers:
            loss = np.log(1.0 + (y - first[0]) ** 2 / (4.0 * self.scales[0])).mean()
        else:
            loss = 1.0 - first[0, int(y[0])]
        self.losses.append(loss)
        rows = len(self.losses)
        slow = max(1.0 / rows, 1e-3)
        self.fast += max(1.0 / rows, 0.02) * (loss - self.fast)
        self.variance = (1.0 - slow) * (self.variance + slow * (loss - self.slow) ** 2)
        self.slow += slow * (loss - self.slow)
        above = self.fast - self.slow > 4.0 * math.sqrt(self.variance / 100.0)
        self.doubt |= rows > 250 and above and self.fast > 1.1 * self.slow


@pytest.mark.parametrize("numbers", [0, 1, 3])
@pytest.mark.parametrize("alone", [False, True])
def test_a_contest(numbers, alone):
    first, y = predictions(numbers, 0, wrong_from=2 * N // 3)
    second, _ = predictions(numbers, 1)
    weights = np.random.default_rng(2).uniform(0.2, 2.0, N)
    status, twin = np.zeros(1, CONTEST_STATUS), Naive(numbers)
    scales = np.zeros_like(twin.scales)
    scales[1] = twin.scales[1] = 1.0
    other = second[:0] if alone else second
    out = np.empty_like(first)
    cut = N // 2  # in two passes
    for part in (slice(cut), slice(cut, N)):
        given = first[part], other[part], y[part], weights[part], out[part]
        contest(status, scales, numbers > 0, *given)
    rows = zip(first, [None] * N if alone else second, y, weights, strict=True)
    assert np.array_equal(out, [twin.step(*row) for row in rows])
    now = status[0]
    assert now["recent"] == pytest.approx(twin.recent)
    assert bool(now["doubt"]) == twin.doubt
    assert now["slow"] == pytest.approx(twin.slow)
    assert scales == pytest.approx(twin.scales)
    if alone:
        assert twin.doubt  # the first model became worse
    else:
        assert np.array_equal(out[-1], second[-1])
        assert np.array_equal(out[:5], first[:5])


@pytest.mark.parametrize(("lost", "doubt"), [(0, 1), (9, 0)])
def test_trials_for_nothing_make_doubts_rare(lost, doubt):
    first, y = predictions(0, 0, wrong_from=2 * N // 3)
    status, out = np.zeros(1, CONTEST_STATUS), np.empty_like(first)
    status["lost"] = lost
    contest(status, np.zeros((2, 1)), False, first, first[:0], y, np.ones(N), out)
    assert status[0]["doubt"] == doubt


def test_a_model_that_is_as_good_as_ever_is_not_doubted():
    first, y = predictions(0, 0)
    status, out = np.zeros(1, CONTEST_STATUS), np.empty_like(first)
    contest(status, np.zeros((2, 1)), False, first, first[:0], y, np.ones(N), out)
    assert status[0]["doubt"] == 0
    assert np.array_equal(out, first)
