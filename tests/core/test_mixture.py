"""Probabilities of a mixture that come true as often as they say."""

import math

import numpy as np
import pytest

from kernelstream.core.experts.class_mixture import (
    LONG,
    STEEPEST,
    UNCALIBRATED,
    calibrate,
    follow_confidence,
    uncalibrated,
)
from kernelstream.core.jit import compiled
from tests.core.tools import size


@compiled
def follow(calibration, low, high, right, importance):
    for t in range(len(low)):
        follow_confidence(calibration, 0, importance[t], low[t], high[t], right[t] > 0.0)


@compiled
def calibrate_all(calibration, out):
    for t in range(len(out)):
        calibrate(calibration, 0, out, t)


def test_steps_are_those_of_a_posterior_with_matrices():
    random = np.random.default_rng(0)
    p = random.uniform(0.5, 0.999, size=40)
    low, high = np.log(p), -np.log(1.0 - p)
    right, importance = random.random(40) < 0.8, random.uniform(0.5, 2.0, size=40)
    found = uncalibrated()[None].copy()
    follow(found, low, high, right.astype(float), importance)

    theta, prior = np.array([1.0, 1.0, 0.0]), np.diag(UNCALIBRATED)
    covariance = prior.copy()
    for row, good, weight in zip(np.c_[low, high, np.ones(40)], right, importance, strict=True):
        sign, h = (1.0 if good else -1.0), covariance @ row
        reach, s = weight * (row @ h), 0.5
        for _ in range(200):  # the gradient at the end of the step, in small moves
            s += 0.2 * (1.0 / (1.0 + math.exp(sign * (theta @ row) + reach * s)) - s)
        theta = theta + weight * sign * s * h
        theta[:2] = np.clip(theta[:2], 0.0, STEEPEST)
        bend = weight * s * (1.0 - s)
        covariance = covariance - bend / (1.0 + bend * (row @ h)) * np.outer(h, h)
        covariance = (1.0 - 1.0 / LONG) * covariance + prior / LONG
    np.testing.assert_allclose(found[0, :3], theta, rtol=1e-6)
    np.testing.assert_allclose(found[0, 3:], covariance[np.tri(3, dtype=bool)], rtol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_noisy_labels_level_off(noise):
    """A mixture that is surer than labels allow is calibrated within some hundred rows."""
    random, n, found = np.random.default_rng(1), size(2000, 300), []
    points = np.array([0.6, 0.8, 0.95, 0.999])
    for _ in range(6):
        p = np.minimum(1.0 / (1.0 + np.exp(-random.exponential(4.0, size=n))), 1.0 - 1e-6)
        right = (random.random(n) < p) != (random.random(n) < noise)
        calibration = uncalibrated()[None].copy()
        follow(calibration, np.log(p), -np.log(1.0 - p), right.astype(float), np.ones(n))
        shown = np.stack([points, 1.0 - points], axis=1)[:, None].copy()
        calibrate_all(calibration, shown)
        found.append(shown[:, 0, 0])
    true = points * (1.0 - noise) + (1.0 - points) * noise
    np.testing.assert_allclose(np.mean(found, axis=0), true, atol=size(0.04, 0.1))


def test_what_is_far_out_does_no_harm():
    calibration = uncalibrated()[None].copy()
    n = size(100_000, 500)
    follow(calibration, np.full(n, -1e-6), np.full(n, 13.8), np.zeros(n), np.full(n, 1e6))
    assert np.isfinite(calibration).all()
    assert (calibration[0, [3, 5, 8]] > 0.0).all()


def test_all_numbers_are_bounded_whatever_weights_samples_have():
    random, n = np.random.default_rng(0), 400
    p = random.uniform(0.5, 1.0 - 1e-6, n)
    calibration = uncalibrated()[None].copy()
    weights = np.where(random.random(n) < 0.05, 1e6, 1.0)
    farthest = 0.0
    for t in range(n):
        given = np.log(p[t : t + 1]), -np.log1p(-p[t : t + 1])
        follow(calibration, *given, (random.random(1) < 0.1).astype(float), weights[t : t + 1])
        farthest = max(farthest, np.abs(calibration[0, :3]).max())
    assert farthest <= STEEPEST
