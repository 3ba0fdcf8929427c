"""Streaming metrics against scikit-learn on the same samples."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from kernelstream.evaluation import METRICS, ClassMetrics, NumberMetrics

CLASS_NAMES = [name for name, metric in METRICS.items() if metric.classification]
NUMBER_NAMES = [name for name, metric in METRICS.items() if not metric.classification]


def class_reference(name, truth, said, probability, decision, known, weight=None):
    """scikit-learn's value, NaN where it warns that there is none."""
    binary = len(known) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match name:
            case "accuracy":
                return reference.accuracy_score(truth, said, sample_weight=weight)
            case "error":
                return reference.zero_one_loss(truth, said, sample_weight=weight)
            case "balanced_accuracy":
                return reference.balanced_accuracy_score(truth, said, sample_weight=weight)
            case "kappa":
                return reference.cohen_kappa_score(truth, said, sample_weight=weight)
            case "kappa_temporal":
                repeated = np.average(truth[1:] == truth[:-1], weights=None if weight is None
                                      else weight[1:]) if len(truth) > 1 else np.nan  # fmt: skip
                correct = reference.accuracy_score(truth, said, sample_weight=weight)
                return np.nan if not repeated < 1.0 else (correct - repeated) / (1.0 - repeated)
            case "f1" if len(known) < 2:
                return np.nan
            case "f1":
                options = {"pos_label": known[1]} if binary else {"average": "macro"}
                return reference.f1_score(
                    truth, said, zero_division=np.nan, sample_weight=weight, **options
                )
            case "log_loss":
                proba = np.stack([1.0 - probability, probability], axis=1)
                return reference.log_loss(
                    np.ones(len(probability)), proba, labels=[0, 1], sample_weight=weight
                )
            case "auc" if not binary or len(set(truth)) < 2 or weight is not None:
                return np.nan
            case "auc":
                return reference.roc_auc_score(truth == known[1], decision)


def number_reference(name, truth, said, weight=None):
    match name:
        case "mae":
            return reference.mean_absolute_error(truth, said, sample_weight=weight)
        case "rmse":
            return reference.root_mean_squared_error(truth, said, sample_weight=weight)
        case "r2" if np.ptp(truth) == 0.0:
            return np.nan
        case "r2":
            return reference.r2_score(truth, said, sample_weight=weight)


@st.composite
def class_streams(draw):
    n = draw(st.integers(1, 60))
    classes = draw(st.sampled_from([["a"], ["b", "a"], ["b", "c", "a"], [7, -1], [3, 1, 4, 0, 9]]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    truth, said = random.choice(classes, size=(2, n))
    decision = np.round(random.normal(size=n), 1)  # with ties
    return truth, said, random.random(n), decision


def pieces(n, cuts):
    edges = sorted({0, n, *(cut % (n + 1) for cut in cuts)})
    return [slice(*pair) for pair in itertools.pairwise(edges)]


cuts = st.lists(st.integers(0, 60), max_size=8)


@settings(max_examples=40)
@given(class_streams(), cuts, st.integers(1, 25), st.sampled_from([1.0, 0.999, 0.9, 0.01, 1e-40]))
def test_class_metrics_are_scikit_learns(samples, cuts, window, fading):
    truth, said, probability, decision = samples
    known = np.unique(np.concatenate([truth, said]))
    metrics = ClassMetrics(CLASS_NAMES, window=window, fading=fading)
    for part in pieces(len(truth), cuts):
        metrics.update(
            truth[part], said[part], probability=probability[part], decision=decision[part]
        )
    values = metrics.values()
    last = slice(-window, None)
    weight = fading ** np.arange(len(truth))[::-1].astype(float)
    for name in CLASS_NAMES:
        recent = (truth[last], said[last], probability[last], decision[last])
        everything = (truth, said, probability, decision)
        assert values[f"{name}_window"] == pytest.approx(
            class_reference(name, *recent, known), rel=1e-9, abs=1e-12, nan_ok=True
        )
        if name == "auc":
            assert np.isnan(values["auc"])
            assert np.isnan(values["auc_fading"])
            continue
        assert values[name] == pytest.approx(
            class_reference(name, *everything, known), rel=1e-9, abs=1e-12, nan_ok=True
        )
        if fading >= 0.9:  # weights beyond the last digit decide on 0 / 0 differently
            assert values[f"{name}_fading"] == pytest.approx(
                class_reference(name, *everything, known, weight), rel=1e-7, abs=1e-9, nan_ok=True
            )


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    cuts,
    st.integers(1, 25),
    st.sampled_from([1.0, 0.999, 0.5]),
    st.sampled_from([0.0, 1e6]),
)
def test_number_metrics_are_scikit_learns(seed, n, cuts, window, fading, centre):
    random = np.random.default_rng(seed)
    truth, said = centre + random.normal(size=(2, n))
    metrics = NumberMetrics(NUMBER_NAMES, window=window, fading=fading)
    for part in pieces(n, cuts):
        metrics.update(truth[part], said[part])
    values = metrics.values()
    weight = fading ** np.arange(n)[::-1].astype(float)
    for name in NUMBER_NAMES:
        expected = number_reference(name, truth, said)
        assert values[name] == pytest.approx(expected, rel=1e-7, nan_ok=True)
        expected = number_reference(name, truth[-window:], said[-window:])
        assert values[f"{name}_window"] == pytest.approx(expected, rel=1e-7, nan_ok=True)
        expected = number_reference(name, truth, said, weight)
        assert values[f"{name}_fading"] == pytest.approx(expected, rel=1e-7, nan_ok=True)


@pytest.mark.parametrize("fading", [1.0, 0.999, 0.7, 1e-30])
@pytest.mark.parametrize("size", [7, 999, 20000])
def test_cutting_changes_no_bit(fading, size):
    random = np.random.default_rng(0)
    n = 10000
    truth, said = random.integers(0, 12, size=(2, n))
    probability, decision = random.random((2, n))
    y, prediction = random.normal(size=(2, n)) * 10.0 ** random.integers(-8, 9, n)

    def measured(sizes):
        classes = ClassMetrics(CLASS_NAMES, window=300, fading=fading)
        numbers = NumberMetrics(NUMBER_NAMES, window=300, fading=fading)
        for first in range(0, n, sizes):
            part = slice(first, first + sizes)
            classes.update(
                truth[part], said[part], probability=probability[part], decision=decision[part]
            )
            numbers.update(y[part], prediction[part])
        return np.array([*classes.values().values(), *numbers.values().values()])

    assert measured(size).tobytes() == measured(1234).tobytes()


def test_fading_is_the_recursion():
    random = np.random.default_rng(1)
    y, said = random.normal(size=(2, 500))
    metrics = NumberMetrics(["mae"], fading=0.97)
    metrics.update(y, said)
    errors = weight = 0.0
    for error in np.abs(y - said):
        errors, weight = 0.97 * errors + error, 0.97 * weight + 1.0
    assert metrics.values()["mae_fading"] == errors / weight


def test_nothing_yet_is_nan_and_one_class_is_undefined():
    for metrics in (ClassMetrics(CLASS_NAMES), NumberMetrics(NUMBER_NAMES)):
        assert np.isnan(list(metrics.values().values())).all()
    metrics = ClassMetrics(CLASS_NAMES)
    metrics.update(["x"] * 5, ["x"] * 5, probability=np.ones(5), decision=np.zeros(5))
    values = metrics.values()
    assert values["accuracy"] == values["balanced_accuracy"] == 1.0
    assert all(np.isnan(values[name]) for name in ("kappa", "f1", "auc", "auc_window"))


def test_a_spread_far_from_zero_keeps_its_digits():
    random = np.random.default_rng(2)
    y = 1e9 + random.normal(size=2000)
    metrics = NumberMetrics(["r2"], window=2000)
    metrics.update(y, y + 0.1)
    assert metrics.values()["r2"] == pytest.approx(reference.r2_score(y, y + 0.1), rel=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClassMetrics(["mae"]), "metrics for classification are some of accuracy"),
        (lambda: NumberMetrics([]), "metrics for regression"),
        (lambda: ClassMetrics(["error", "error"]), "each once"),
        (lambda: ClassMetrics(window=0), "window must be at least 1"),
        (lambda: ClassMetrics(fading=1.5), r"factor in \(0, 1\]"),
        (lambda: ClassMetrics(["auc"]).update([1], [1]), "update needs decision="),
        (lambda: ClassMetrics().update([1], [1, 2]), "1 labels, but 2 predictions"),
        (lambda: NumberMetrics().update([1.0], [1.0, 2.0]), "targets of shape"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
