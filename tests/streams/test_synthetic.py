"""Tests of the synthetic streams."""

import numpy as np
import pytest
from sklearn.svm import SVC

from kernelstream.streams import (
    make_drifting_market,
    make_multidist,
    make_regression_outliers,
    synthetic,
)


def test_multidist_shapes_and_labels():
    X, y = make_multidist(400, random_state=0)
    assert X.shape == (400, 2)
    assert X.dtype == np.float64
    assert np.array_equal(np.unique(y), np.arange(5))


def test_multidist_is_reproducible_and_leaves_global_state_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (make_multidist(50, 20, random_state=7) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert not np.array_equal(first[0], make_multidist(50, random_state=8)[0])


def test_multidist_mixture_depends_on_the_seed_alone():
    short, _ = make_multidist(1000, std=0, random_state=3)
    long, _, test, _ = make_multidist(2000, 1000, std=0, random_state=3)
    means = np.unique(short, axis=0)
    assert len(means) == 15
    assert np.array_equal(means, np.unique(long, axis=0))
    assert np.array_equal(means, np.unique(test, axis=0))


def test_multidist_generator_advances():
    rng = np.random.default_rng(0)
    first, _ = make_multidist(10, random_state=rng)
    second, _ = make_multidist(10, random_state=rng)
    assert not np.array_equal(first, second)


def test_multidist_without_spread_shows_the_unit_circle():
    X, y = make_multidist(200, n_classes=4, std=0, center_std=0, random_state=0)
    corners = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    assert np.allclose(X, corners[y], atol=1e-12)


def test_multidist_components_are_uniform_and_have_the_stated_deviation():
    X, y = make_multidist(60_000, n_classes=2, n_components=2, std=0.2, random_state=1)
    exact, exact_y = make_multidist(60_000, n_classes=2, n_components=2, std=0, random_state=1)
    assert np.array_equal(y, exact_y)
    assert np.std(X - exact) == pytest.approx(0.2, rel=0.01)
    _, counts = np.unique(exact, axis=0, return_counts=True)
    assert len(counts) == 4
    assert np.allclose(counts, 15_000, rtol=0.03)


def test_multidist_default_is_as_easy_as_table_2_says():
    errors = []
    for seed in range(5):
        X, y, X_test, y_test = make_multidist(1000, 1000, random_state=seed)
        errors.append(1 - SVC(gamma=1 / 1.2).fit(X, y).score(X_test, y_test))
    # The printed variance of 0.2 gives 16-40 %.
    assert np.median(errors) < 0.15


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_samples", 0),
        ("n_samples", 1.5),
        ("n_test", -1),
        ("n_classes", 1),
        ("n_components", 0),
        ("std", -0.1),
        ("std", float("nan")),
        ("center_std", float("inf")),
    ],
)
def test_multidist_names_a_bad_parameter(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        make_multidist(**{name: value})


def test_regression_without_noise_is_the_curve():
    X, y, y_clean = make_regression_outliers(
        500, noise=0, outlier_rate=0, random_state=0, return_clean=True
    )
    assert X.shape == (500, 1)
    assert X.min() >= 0
    assert X.max() <= 1
    assert np.array_equal(y, y_clean)
    assert np.allclose(y, 2 * X[:, 0] + 3 * np.sin(6 * X[:, 0]))


def test_regression_returns_the_same_data_with_and_without_the_clean_target():
    X, y = make_regression_outliers(50, random_state=0)
    X_again, y_again, _ = make_regression_outliers(50, random_state=0, return_clean=True)
    assert np.array_equal(X, X_again)
    assert np.array_equal(y, y_again)


@pytest.mark.parametrize("distribution", ["student_t", "gaussian", "uniform", "exponential"])
def test_regression_longer_stream_begins_with_the_shorter_one(distribution):
    short, long = (
        make_regression_outliers(n, outlier_distribution=distribution, random_state=5)
        for n in (100, 1000)
    )
    assert np.array_equal(short[0], long[0][:100])
    assert np.array_equal(short[1], long[1][:100])


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 1.0])
def test_regression_outlier_rate(rate):
    _, y, y_clean = make_regression_outliers(
        20_000, noise=0, outlier_rate=rate, random_state=0, return_clean=True
    )
    assert np.mean(y != y_clean) == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize(
    ("distribution", "statistic", "expected"),
    [
        ("gaussian", np.std, 2.0),
        ("uniform", lambda error: np.abs(error).max(), 2.0),
        ("exponential", np.mean, 2.0),
        ("exponential", np.min, 0.0),
        # The quartiles of Student's t with 2 degrees of freedom are at +-sqrt(2/3).
        ("student_t", lambda error: np.quantile(error, 0.75), 2 * np.sqrt(2 / 3)),
    ],
)
def test_regression_outlier_distributions(distribution, statistic, expected):
    _, y, y_clean = make_regression_outliers(
        20_000,
        noise=0,
        outlier_rate=1,
        outlier_distribution=distribution,
        outlier_scale=2.0,
        random_state=0,
        return_clean=True,
    )
    assert statistic(y - y_clean) == pytest.approx(expected, abs=0.05)


def outliers(**options):
    _, y, clean, is_outlier = make_regression_outliers(
        20_000, noise=0.0, random_state=0, return_clean=True, return_outliers=True, **options
    )
    return y, clean, is_outlier


def test_which_samples_are_outliers():
    y, clean, is_outlier = outliers()
    assert ((y != clean) == is_outlier).all()
    _, _, alone = make_regression_outliers(20_000, random_state=0, return_outliers=True)
    assert (alone == is_outlier).all()


def test_outliers_may_replace_the_target():
    y, clean, is_outlier = outliers(outlier_mode="replaced", outlier_distribution="gaussian")
    assert (y[~is_outlier] == clean[~is_outlier]).all()
    assert abs(np.corrcoef(y[is_outlier], clean[is_outlier])[0, 1]) < 0.1
    assert np.std(y[is_outlier]) == pytest.approx(3.0, rel=0.05)


def test_degrees_of_freedom_make_the_tail():
    y, clean, is_outlier = outliers(degrees_of_freedom=30.0, outlier_scale=1.0)
    assert np.std((y - clean)[is_outlier]) == pytest.approx((30.0 / 28.0) ** 0.5, rel=0.1)


def test_outliers_of_any_distribution():
    y, clean, is_outlier = outliers(outlier_distribution=lambda rng, n: np.full(n, 2.0))
    assert (y - clean)[is_outlier] == pytest.approx(6.0)
    with pytest.raises(ValueError, match=r"20000 numbers, got shape \(3,\)"):
        outliers(outlier_distribution=lambda rng, n: np.zeros(3))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_samples", 0),
        ("noise", -1),
        ("outlier_rate", 1.1),
        ("outlier_distribution", "cauchy"),
        ("outlier_scale", "big"),
        ("outlier_mode", "subtracted"),
        ("degrees_of_freedom", 0.0),
    ],
)
def test_regression_names_a_bad_parameter(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        make_regression_outliers(**{name: value})


def test_market_has_everything_a_real_stream_has():
    columns = make_drifting_market(20_000, random_state=0)
    assert {len(column) for column in columns.values()} == {20_000}
    assert np.isnan(columns["wind"]).mean() > 0.01
    assert np.isnan(columns["temperature"]).mean() > 0.01
    labels = columns["direction"]
    assert 0.3 < (labels == "up").mean() < 0.7
    assert 0.7 < (labels[1:] == labels[:-1]).mean() < 0.95  # a strong baseline: no change
    again = make_drifting_market(20_000, random_state=0)
    assert all(np.array_equal(columns[name], again[name], equal_nan=name in ("wind", "temperature"))
               for name in columns)  # fmt: skip


@pytest.mark.parametrize(
    ("blocks", "make"),
    [
        (synthetic.multidist_blocks, make_multidist),
        (synthetic.regression_outliers_blocks, make_regression_outliers),
    ],
)
def test_blocks_begin_with_the_stream_made_at_once(blocks, make):
    X, y = (np.concatenate(parts) for parts in zip(*blocks(150_000, random_state=4), strict=True))
    assert X.shape[0] == len(y) == 150_000
    X_whole, y_whole = make(synthetic.BLOCK_SAMPLES, random_state=4)
    assert np.array_equal(X[: len(y_whole)], X_whole)
    assert np.array_equal(y[: len(y_whole)], y_whole)
    shorter = next(blocks(70, random_state=4))
    assert np.array_equal(shorter[0], X[:70])
    assert not np.array_equal(X[100_000:100_070], X[:70])


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        (3.0, "a name or a function"),
        (np.ones(5), "a name or a function"),
        (lambda rng, n: np.full(n, np.nan), "finite"),
        (lambda rng, n: np.full(n, "a"), "must return 50 numbers"),
    ],
)
def test_outliers_that_are_not_numbers_are_refused(distribution, message):
    with pytest.raises(ValueError, match=message):
        make_regression_outliers(50, outlier_distribution=distribution)
