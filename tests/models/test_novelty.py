"""Rows unlike those before."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from kernelstream import NoveltyDetector, StreamModel, load


def stream(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 3)) * [1.0, 5.0, 0.1] + [0.0, 100.0, 3.0]


def test_the_variance_is_that_of_a_gaussian_process():
    # As many points as samples, in plain units: the formula itself.
    X = np.random.default_rng(0).normal(size=(40, 2))
    detector = NoveltyDetector(gamma=2.0, noise=0.5, standardize=False, max_points=60, forget=1.0)
    found = -detector.score_then_learn(X)

    def kernel(a, b):
        apart = np.square(a[:, None] - b[None]).sum(axis=2)
        return np.exp(-2.0 * apart) + 1.0

    for t in (0, 1, 7, 39):
        gram = kernel(X[:t], X[:t]) + 0.5 * np.eye(t)
        k = kernel(X[:t], X[t : t + 1])[:, 0]
        assert found[t] == pytest.approx(2.0 - k @ np.linalg.solve(gram, k), abs=1e-3)


def test_what_is_far_is_unusual():
    detector = NoveltyDetector(contamination=0.05).partial_fit(stream(3000, 0))
    far = stream(50, 1) + np.array([6.0, 30.0, 0.6])
    assert (detector.predict(far) == -1).all()
    assert (detector.novelty(far) > 0.95).all()
    assert np.mean(detector.predict(stream(1000, 2)) == -1) == pytest.approx(0.05, abs=0.03)
    usual = detector.novelty(stream(1000, 3))
    assert usual.mean() == pytest.approx(0.5, abs=0.06)


def test_any_chunking_and_files_give_the_same(tmp_path):
    X = stream(700, 0)
    whole = NoveltyDetector(random_state=0).partial_fit(X)
    parts = NoveltyDetector(random_state=0)
    for first, end in ((0, 1), (1, 300), (300, 301), (301, 512)):
        parts.partial_fit(X[first:end])
    parts.save(tmp_path / "d.ks")
    parts = load(tmp_path / "d.ks").partial_fit(X[512:])
    assert parts.fingerprint() == whole.fingerprint()
    assert np.array_equal(parts.novelty(X), whole.novelty(X))


def test_memory_is_bounded():
    detector = NoveltyDetector(max_bytes=20_000)
    detector.partial_fit(stream(2000, 0))
    assert detector.nbytes_ <= 20_000
    with pytest.raises(ValueError, match="does not hold a single point"):
        NoveltyDetector(max_bytes=10).partial_fit(stream(10, 0))


def test_it_follows_a_stream_that_changes():
    X = stream(3000, 0)
    X[1500:, 0] += 50.0
    detector = NoveltyDetector().partial_fit(X[:1500])
    assert (detector.predict(X[1500:1600]) == -1).all()
    detector.partial_fit(X[1500:])
    assert np.mean(detector.predict(X[-300:]) == -1) < 0.25


def test_usual_rows_after_the_last_are_not_unusual_where_neighbours_are_alike():
    # A circle, slowly: the row after the one just learned is always well known.
    n, random = 3600, np.random.default_rng(0)
    angle = 2.0 * np.pi * np.arange(n) / 700.0
    X = np.column_stack([np.cos(angle), np.sin(angle), random.normal(size=n)])
    detector = NoveltyDetector(random_state=0).partial_fit(X[:3000])
    assert 0.25 < detector.novelty(X[3000:]).mean() < 0.75
    unusual = detector.novelty(X[3000:] + np.array([0.0, 0.0, 6.0]))
    assert np.median(unusual) > 0.95


@pytest.mark.parametrize("standardise", [True, False])
def test_what_runs_on_is_no_news(standardise):
    n, random = 3000, np.random.default_rng(0)
    rows = {"count": np.arange(n) + 5e4, "x": random.normal(size=n), "y": random.normal(size=n)}
    if standardise:  # else the detector has units of its own
        hours = np.arange(n).astype("timedelta64[h]")
        rows["time"] = np.datetime64("2024-01-01T00:00:00", "us") + hours
    model = StreamModel.for_rows(rows, "y", "polk", standardise=standardise).follow_novelty()
    model.learn({name: column[:2500] for name, column in rows.items()})
    after = {name: column[2500:] for name, column in rows.items()}
    assert 0.25 < model.novelty(after).mean() < 0.7
    later = after | {"count": after["count"] + 9e4}
    assert np.array_equal(model.novelty(later)[400:], model.novelty(after)[400:])
    unusual = model.novelty(after | {"x": after["x"] + 9.0})
    assert np.median(unusual) > 0.95


@pytest.mark.parametrize("value", [0.0, 7.0, 1e-9])
def test_the_first_other_row_after_constant_ones_is_novel(value):
    detector = NoveltyDetector().partial_fit(np.full((300, 3), value))
    rows = np.full((3, 3), value)
    rows[1, 0] += 1.0
    rows[2] -= 1.0
    assert detector.predict(rows).tolist() == [1, -1, -1]
    assert detector.novelty(rows)[1:].min() > 0.99


@pytest.mark.slow
def test_scikit_learn_s_contract():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        check_estimator(NoveltyDetector(max_points=20))


def test_with_a_model(tool, tmp_path, rows):
    tool("learn", rows, "--target", "label", "--model", "polk", "--anomalies", "--out", "m.ks")
    out = tool("predict", "m.ks", rows, "--novelty", "--explain").out.splitlines()
    assert out[0].endswith(",novelty,because")
    values = [float(line.split(",")[2]) for line in out[1:]]
    assert all(0.0 <= value <= 1.0 for value in values)
    assert len(set(values)) > 100
    model = load(tmp_path / "m.ks")
    assert isinstance(model, StreamModel)
    assert "moved on" not in tool("predict", "m.ks", rows, "--novelty").err
    other = pd.read_csv(rows)
    other["x"], other["y"] = other["x"] + 40.0, other["y"] - 40.0
    other.to_csv("other.csv", index=False)
    told = tool("predict", "m.ks", "other.csv", "--novelty").err
    assert "400 of 400 rows are more unusual than 95 %" in told
    tool("learn", rows, "--target", "label", "--model", "polk", "--out", "n.ks")
    assert "use learn --anomalies" in tool("predict", "n.ks", rows, "--novelty", code=2).err
