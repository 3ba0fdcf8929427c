"""Intervals contain the target as often as asked, also after a jump, in any chunks and files."""

import numpy as np
import pandas as pd
import pytest

from kernelstream import AutoRegressor, KRLSTRegressor, StreamModel, load
from kernelstream.models._auto._intervals import Intervals
from tests.models.tools import in_pieces

KINDS = pytest.mark.parametrize("kind", [AutoRegressor, KRLSTRegressor])


def noisy(n=1600, seed=0):
    """Normal errors; then another function with ten times the noise."""
    random = np.random.default_rng(seed)
    X, noise = random.normal(size=(n, 3)), random.normal(size=n)
    before = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * noise
    after = 10.0 - 3.0 * X[:, 1] * X[:, 2] + noise
    return X, np.where(np.arange(n) < n // 2, before, after)


def inside(intervals, y):
    return (intervals[:, 0] <= y) & (y <= intervals[:, 1])


@KINDS
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_coverage_also_after_a_jump(kind, coverage):
    X, y = noisy()
    model = kind(random_state=0)
    found = inside(model.predict_interval_then_learn(X, y, coverage=coverage), y)
    assert abs(found.mean() - coverage) < 0.04
    assert abs(found[800:1200].mean() - coverage) < 0.08
    X, y = noisy(6000, seed=1)
    assert abs(inside(model.predict_interval(X[5000:], coverage), y[5000:]).mean() - coverage) < 0.1


def steady(seed, n):
    """Normal errors, heavy tails, or noise that depends on the row."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 5))
    noise = (
        0.3 * random.normal(size=n),
        0.2 * random.standard_t(3, size=n),
        0.2 * random.normal(size=n) * (1.0 + np.abs(X[:, 3])),
    )[seed % 3]
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + noise


@KINDS
def test_rows_that_are_not_learned_are_covered_as_often(kind):
    found = []
    for seed in range(10):
        X, y = steady(seed, 4000)
        model = kind(random_state=0).partial_fit(X[:2000], y[:2000])
        found.append(inside(model.predict_interval(X[2000:]), y[2000:]).mean())
    assert 0.87 < np.mean(found) < 0.93
    assert min(found) > 0.84


@pytest.mark.parametrize("step", ["h", "D"])
def test_a_date_that_says_nothing_does_little_harm_to_a_saved_model(step):
    """Some: the year's circle goes on to where it was never seen."""
    found, n = [], 2000
    when = np.datetime64("2021-01-01T00", step) + np.arange(n)
    for seed in range(4):
        random = np.random.default_rng(seed)
        frame = pd.DataFrame(random.normal(size=(n, 3)), columns=list("abc"))
        frame["when"] = when.astype("datetime64[s]")
        frame["y"] = frame[["a", "b", "c"]] @ [1.0, 2.0, -1.0] + 0.05 * random.normal(size=n)
        model = StreamModel.for_rows(frame, "y", "auto").learn(frame[:1000])
        later, y = frame[1000:].drop(columns="y"), frame["y"][1000:].to_numpy()
        found.append(inside(model.predict_interval(later), y).mean())
        assert np.std(model.predict(later) - y) < 0.12
    assert np.mean(found) > 0.75


@KINDS
def test_files_of_before_have_the_widths_they_had(kind):
    X, y = steady(0, 600)
    intervals = kind(random_state=0).partial_fit(X, y)._state.intervals
    arrays = intervals.to_arrays()
    del arrays["errors"]
    again = Intervals.from_arrays(arrays, len(arrays["scale"]))
    for coverage in (0.5, 0.9):
        expected = intervals.half_width(0, coverage)
        np.testing.assert_allclose(again.half_width_apart(0, coverage), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="out of range"):
        Intervals.from_arrays(
            {**intervals.to_arrays(), "errors": -intervals.state.errors}, len(arrays["scale"])
        )


@KINDS
def test_heavy_tails_are_covered(kind):
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 2))
    y = X[:, 0] + random.standard_t(2.0, size=1500)
    found = inside(kind(random_state=0).predict_interval_then_learn(X, y), y)
    assert abs(found.mean() - 0.9) < 0.03


@KINDS
def test_intervals_are_around_predictions_and_nested(kind):
    X, y = noisy(400)
    model, other = kind(random_state=0), kind(random_state=0)
    before = model.predict_interval_then_learn(X, y)
    assert np.isinf(before[0]).all()
    np.testing.assert_allclose(
        before[5:].mean(axis=1), other.predict_then_learn(X, y)[5:], rtol=1e-9, atol=1e-12
    )
    assert model.fingerprint() == other.fingerprint()
    kept = model.fingerprint()
    value, std = model.predict(X, return_std=True)
    assert (std > 0.0).all()
    previous = np.column_stack([value, value])
    for coverage in (0.1, 0.5, 0.9, 0.99):
        wider = model.predict_interval(X, coverage)
        assert (wider[:, 0] <= previous[:, 0]).all()
        assert (wider[:, 1] >= previous[:, 1]).all()
        previous = wider
    assert model.fingerprint() == kept
    for coverage in (0.0, 1.0, "much"):
        with pytest.raises(ValueError, match="coverage must be"):
            model.predict_interval(X, coverage)


@KINDS
def test_units_of_the_target_do_not_matter(kind):
    X, y = noisy(500)
    plain = kind(random_state=0).predict_interval_then_learn(X, y)
    scaled = kind(random_state=0).predict_interval_then_learn(X, 1024.0 * y)
    np.testing.assert_allclose(scaled[5:], 1024.0 * plain[5:], rtol=1e-6)


@KINDS
def test_chunks_files_and_weights(kind, tmp_path):
    X, y = noisy(700)
    whole, parts = kind(random_state=0), kind(random_state=0)
    expected = whole.predict_interval_then_learn(X, y)
    found = [parts.predict_interval_then_learn(X[i : i + 90], y[i : i + 90])
             for i in range(0, 360, 90)]  # fmt: skip
    parts.save(tmp_path / "half.ks")
    parts = load(tmp_path / "half.ks")
    found.append(parts.predict_interval_then_learn(X[360:], y[360:]))
    assert np.array_equal(np.concatenate(found), expected)
    assert parts.fingerprint() == whole.fingerprint()
    assert in_pieces(kind(random_state=0), X, y, 50).fingerprint() == whole.fingerprint()
    weights = np.ones(700)
    weights[300:] = 0.0  # predicted, not learned from
    skipping = kind(random_state=0)
    weighted = skipping.predict_interval_then_learn(X, y, weights)
    assert np.array_equal(weighted[:300], expected[:300])
    assert np.isfinite(weighted[300:]).all()
    assert skipping.n_seen_ == 300


@KINDS
def test_a_constant_target_has_no_finite_interval_until_it_changes(kind):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.full(60, 7.0)
    y[50] = 9.0
    found = kind(random_state=0).predict_interval_then_learn(X, y)
    assert np.isinf(found[:51]).all()
    assert np.isfinite(found[52:]).all()
