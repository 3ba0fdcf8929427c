"""Rises of the fit error, and its record."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream.evaluation import FitTrace, RiseDetector, fit_errors


def noisy(level, count, seed=0):
    return np.random.default_rng(seed).uniform(0.5 * level, 1.5 * level, count)


def naive_changes(errors, short, long, deviations):
    """The rule of the docstring, one error after the other."""
    changes, since = [], []
    for number, error in enumerate(errors, 1):
        if np.isfinite(error):
            since.append(error)
        recent, earlier = since[-short:], since[:-short][-long:]
        if not np.isfinite(error) or len(earlier) < short:
            continue
        spread = max(np.std(earlier), 0.01 * abs(np.mean(earlier)) + 1e-12)
        if np.mean(recent) > np.mean(earlier) + deviations * spread:
            changes.append(number)
            since = []
    return changes


class TestRiseDetector:
    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.tuples(st.floats(0.01, 5.0), st.integers(1, 60)), min_size=1, max_size=6),
        st.integers(2, 12),
        st.integers(2, 40),
        st.sampled_from([0.5, 1.0, 2.0]),
        st.integers(0, 9),
    )
    def test_the_rule_as_written(self, stretches, short, long, deviations, seed):
        errors = np.concatenate([noisy(level, n, seed) for level, n in stretches])
        errors[np.random.default_rng(seed).random(len(errors)) < 0.1] = np.nan
        long = max(short, long)
        detector = RiseDetector(short, long, deviations)
        found = [change.sample for change in detector.update(errors)]
        assert found == naive_changes(errors, short, long, deviations)
        assert detector.seen == len(errors)

    @given(st.lists(st.integers(1, 400), min_size=1, max_size=12))
    @settings(max_examples=20, deadline=None)
    def test_chunks_do_not_matter(self, cuts):
        errors = np.concatenate([noisy(0.2, 700), noisy(0.6, 600), noisy(1.5, 500)])
        whole, parts = RiseDetector(), RiseDetector()
        whole.update(errors)
        for part in np.split(errors, np.cumsum(cuts)):
            parts.update(part)
        assert [one.sample for one in parts.changes] == [one.sample for one in whole.changes]
        assert len(whole.changes) == 2

    def test_no_false_alarm_on_noise_or_decline(self):
        random = np.random.default_rng(0)
        detector = RiseDetector()
        detector.update(random.exponential(0.1, 20_000))
        detector.update(np.linspace(0.1, 0.0, 5000) + 0.01 * random.random(5000))
        detector.update(np.full(3000, 1e-17) + 1e-18 * random.random(3000))
        assert detector.changes == []

    def test_says_what_rose(self):
        detector = RiseDetector()
        (change,) = detector.update(np.concatenate([noisy(0.2, 1500), noisy(0.8, 200)]))
        assert change.before == pytest.approx(0.2, rel=0.1)
        assert 0.22 < change.after < 0.8

    @pytest.mark.parametrize(
        "wrong", [{"short": 1}, {"long": 0}, {"deviations": 0.0}, {"deviations": float("nan")}]
    )
    def test_errors(self, wrong):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            RiseDetector(**wrong)


class TestFitTrace:
    def test_means_of_stretches(self):
        errors = noisy(0.5, 1050)
        errors[::7] = np.nan
        trace = FitTrace()
        for part in np.split(errors, [3, 250, 251, 900]):
            trace.update(part, updated=len(part) / 2)
        columns = trace.to_columns()
        assert columns["samples"].tolist() == [*range(100, 1001, 100), 1050]
        expected = [np.nanmean(errors[i : i + 100]) for i in range(0, 1050, 100)]
        assert np.allclose(columns["fit_error"], expected)
        assert columns["mean_fit_error"][-1] == pytest.approx(np.nanmean(errors))
        assert trace.mean == pytest.approx(np.nanmean(errors))
        assert trace.recent == pytest.approx(np.nanmean(errors[900:]))
        assert np.allclose(columns["censored"], 0.5)
        assert (np.diff(columns["seconds"]) >= 0.0).all()

    def test_never_more_records_than_allowed(self, monkeypatch):
        monkeypatch.setattr(fit_errors, "_MOST_RECORDS", 8)
        errors = noisy(0.5, 777)
        trace = FitTrace(every=3)
        for part in np.split(errors, np.arange(10, 777, 10)):
            trace.update(part)
            assert len(trace.to_columns()["samples"]) <= 10
        columns = trace.to_columns()
        assert columns["samples"][-1] == 777
        edges = [0, *columns["samples"].astype(int)]
        means = [errors[a:b].mean() for a, b in itertools.pairwise(edges)]
        assert np.allclose(columns["fit_error"], means)

    def test_nothing_yet(self):
        trace = FitTrace()
        assert np.isnan(trace.mean)
        assert np.isnan(trace.recent)
        assert len(trace.to_columns()["samples"]) == 0
        with pytest.raises(ValueError, match="every"):
            FitTrace(every=0)
