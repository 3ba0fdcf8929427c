"""Probabilities of functions whose loss has none, against a slow twin."""

import numpy as np
import pytest

from kernelstream.core import calibration
from tests.naive.calibration import Calibration

NOTHING = np.empty((0, 2))


def stream(classes, n=400, seed=0):
    random = np.random.default_rng(seed)
    targets = random.integers(0, classes, n).astype(float)
    values = random.normal(size=(n, classes)) * np.linspace(20.0, 0.5, n)[:, None]  # steps shrink
    values[np.arange(n), targets.astype(int)] += np.linspace(20.0, 0.5, n)
    values[:3] = 0.0
    if classes == 2:
        values = values[:, 1:] - values[:, :1]
    return values, targets, random.uniform(0.1, 3.0, n)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("batch", [1, 7])
def test_against_the_twin(classes, batch):
    values, targets, weights = stream(classes)
    table, twin = calibration.new_table(classes), Calibration(classes)
    found = np.empty((len(values), classes))
    calibration.calibrate(table, values, targets, weights, batch, found)
    for start in range(0, len(values), batch):
        part = slice(start, start + batch)
        for f, said in zip(values[part], found[part], strict=True):
            np.testing.assert_allclose(said, twin.probabilities(f), rtol=1e-6, atol=1e-12)
        for f, target, weight in zip(values[part], targets[part], weights[part], strict=True):
            twin.follow(f, target, weight)
    np.testing.assert_allclose(table[1:, :2], twin.curves, rtol=1e-6, atol=1e-9)
    assert calibration.is_possible(table)
    again = np.empty_like(found)
    calibration.fill_probabilities(table, values, again)
    np.testing.assert_allclose(again[-1], twin.probabilities(values[-1]), rtol=1e-6)


def test_any_chunks_give_the_same_bits():
    values, targets, weights = stream(3)
    whole, pieces = calibration.new_table(3), calibration.new_table(3)
    calibration.calibrate(whole, values, targets, weights, 1, NOTHING)
    for i in range(0, len(values), 13):
        part = slice(i, i + 13)
        calibration.calibrate(pieces, values[part], targets[part], weights[part], 1, NOTHING)
    assert np.array_equal(whole, pieces)


# NumPy, where the core is not compiled, warns of inf - inf.
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("size", [0.0, 1e-300, 1e140, 1e200, np.inf])
@pytest.mark.parametrize("weight", [1e-300, 1.0, 1e150])
def test_whatever_comes_they_are_probabilities(size, weight):
    values, targets, weights = stream(3)
    with np.errstate(invalid="ignore"):
        values = np.where(values == 0.0, 0.0, values * size)
    values[np.isnan(values)] = 0.0
    table, found = calibration.new_table(3), np.empty((len(values), 3))
    calibration.calibrate(table, values, targets, np.full(len(weights), weight), 1, found)
    assert calibration.is_possible(table)
    assert (found >= 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.array_equal(found.argmax(axis=1), values.argmax(axis=1))


def test_they_come_true_as_often_as_they_say():
    random = np.random.default_rng(1)
    n = 20_000
    f = random.normal(size=n) * 3.0
    truth = 1.0 / (1.0 + np.exp(-np.sign(f) * (0.2 + 0.3 * np.abs(f))))  # not that of the values
    targets = (random.random(n) < truth).astype(float)
    found = np.empty((n, 2))
    calibration.calibrate(
        calibration.new_table(2), f[:, None], targets, np.ones(n), 1, found
    )  # fmt: skip
    later = slice(2000, None)
    assert np.abs(found[later, 1] - truth[later]).mean() < 0.02
    softmax = 1.0 / (1.0 + np.exp(-f))
    assert np.abs(softmax[later] - truth[later]).mean() > 0.1


def test_a_table_that_cannot_be():
    good = calibration.new_table(2)
    assert calibration.is_possible(good)
    for place, value in (((1, 0), 31.0), ((1, 1), -1.0), ((2, 2), 0.0), ((0, 0), np.nan),
                         ((0, 1), 201.0), ((1, 3), 5.0), ((0, 0), 1e200)):  # fmt: skip
        bad = good.copy()
        bad[place] = value
        assert not calibration.is_possible(bad), place
