"""The distribution of losses against the losses themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import SGDRegressor

from kernelstream import COLKClassifier, COLKRegressor, POLKClassifier, POLKRegressor
from kernelstream.evaluation import LossDistribution, Prequential
from kernelstream.evaluation.risk import EDGES, sample_losses
from kernelstream.losses import Loss
from kernelstream.models.in_units import InUnits

STREAMS = {
    "exponential": np.random.default_rng(0).exponential(size=20_000),
    "heavy": np.abs(np.random.default_rng(1).standard_t(2, size=20_000)) ** 2,
    "half zero": np.random.default_rng(2).uniform(-1.0, 1.0, 20_000).clip(0.0),
    "constant": np.full(1000, 3.0),
    "tiny and huge": np.array([0.0, 1e-30, 1.0, 1e20]),
}


def distribution(losses):
    collected = LossDistribution()
    collected.update(losses)
    return collected


def tail_mean(losses, level):
    """The mean of the worst, the last of them in part."""
    ordered = np.sort(losses)[::-1]
    wanted = (1.0 - level) * len(losses)
    shares = np.clip(wanted - np.arange(len(losses)), 0.0, 1.0)
    return float((shares * ordered).sum() / wanted)


@pytest.mark.parametrize("name", STREAMS)
def test_numbers_are_those_of_the_losses(name):
    losses = STREAMS[name]
    found = distribution(losses).summary()
    assert found["count"] == len(losses)
    assert found["mean"] == pytest.approx(losses.mean())
    assert found["deviation"] == pytest.approx(losses.std(), abs=1e-7)
    above = np.maximum(losses - losses.mean(), 0.0)
    assert found["semideviation"] == pytest.approx(np.sqrt(np.mean(above**2)), rel=0.01, abs=1e-7)
    for level in LossDistribution.LEVELS:
        assert found[f"cvar_{100 * level:g}"] == pytest.approx(tail_mean(losses, level), rel=0.002)
    assert found["largest"] == losses.max()


def test_squares_that_overflow_are_infinite():
    found = distribution([1.0, 1e200]).summary()
    assert found["mean"] == 5e199
    assert found["deviation"] == found["semideviation"] == np.inf
    assert found["cvar_90"] == pytest.approx(1e200)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", ["exponential", "heavy"])
def test_quantiles_to_the_width_of_a_bin(name, level):
    exact = np.quantile(STREAMS[name], level)
    assert distribution(STREAMS[name]).quantile(level) == pytest.approx(exact, rel=0.06)


def test_tail_means_grow_from_the_mean():
    collected = distribution(STREAMS["heavy"])
    tails = [collected.cvar(level) for level in np.linspace(0.0, 0.99, 30)]
    assert tails[0] == pytest.approx(collected.mean)
    assert (np.diff(tails) > 0.0).all()
    for level in (-0.1, 1.0):
        with pytest.raises(ValueError, match="level"):
            collected.cvar(level)


def test_a_small_spread_around_a_large_loss_is_not_lost():
    losses = 1e6 + np.random.default_rng(0).uniform(size=1000)
    assert distribution(losses).deviation == pytest.approx(losses.std(), rel=1e-6)
    assert distribution(np.full(1000, 0.1)).deviation < 1e-16


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=40), st.floats(0.0, 0.999))
@settings(max_examples=100, deadline=None)
def test_tail_means_and_quantiles_stay_within_the_losses(losses, level):
    found = distribution(losses)
    assert found.mean <= max(losses)
    assert found.cvar(level) <= max(losses)
    assert found.quantile(0.0) == min(losses)
    assert found.quantile(1.0) == max(losses)
    for bad in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="level"):
            found.quantile(bad)


def test_the_histogram_holds_all_but_the_smallest():
    middles, shares = distribution(STREAMS["half zero"]).histogram()
    assert shares.sum() == pytest.approx(np.mean(STREAMS["half zero"] > 0.0))
    assert middles[-1] == pytest.approx(0.8, rel=0.3)
    assert shares[-1] > 0.0


def test_without_losses_there_are_no_numbers():
    empty = LossDistribution()
    assert np.isnan([empty.mean, empty.deviation, empty.semideviation, empty.cvar(0.9)]).all()
    assert np.isnan(empty.quantile(0.5))
    assert not len(empty.histogram()[0])
    empty.update([np.nan, np.inf])
    assert empty.count == 0


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.0, 1e200), max_size=60), st.integers(1, 60))
def test_any_chunking_gives_the_same_bits(losses, size):
    whole, pieces = distribution(losses), LossDistribution()
    for first in range(0, len(losses), size):
        pieces.update(losses[first : first + size])
    again = LossDistribution()
    again.set_arrays(pieces.arrays())
    for name, array in whole.arrays().items():
        assert np.array_equal(array, again.arrays()[name])
        assert array.nbytes <= 8 * (len(EDGES) + 1)


# In a prequential run.


def numbers(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def expected(losses):
    return pytest.approx(np.mean(losses)), pytest.approx(np.std(losses))


def collected(model, X, y, size=100, **options):
    run = Prequential(model, losses=True, **options)
    for first in range(0, len(y), size):
        run.update(X[first : first + size], y[first : first + size])
    run.finish()
    return run.losses


@pytest.mark.parametrize("make", [lambda: POLKRegressor(Loss("huber", 0.3)), COLKRegressor])
def test_losses_of_numbers(make):
    X, y = numbers()
    losses = collected(make(), X, y)
    model = make().partial_fit(X[:1], y[:1])
    said = model.predict_then_learn(X[1:], y[1:])
    own = Loss("huber", 0.3) if make is not COLKRegressor else Loss("squared_error")
    assert losses.count == 599
    assert (losses.mean, losses.deviation) == expected(own.value(said, y[1:]))


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("classes", [2, 3])
def test_losses_of_classes(classes, loss):
    X, y = numbers()
    labels = np.digitize(y, [-0.3, 0.3][: classes - 1])
    losses = collected(POLKClassifier(loss), X, labels, classes=range(classes))
    model = POLKClassifier(loss).partial_fit(X[:1], labels[:1], classes=range(classes))
    values = model.decide_then_learn(X[1:], labels[1:])
    targets = 2 * labels[1:] - 1 if classes == 2 else labels[1:]
    assert losses.count == 599
    assert (losses.mean, losses.deviation) == expected(Loss(loss).value(values, targets))


def test_a_class_that_was_not_known_has_no_loss():
    X, y = numbers()
    labels = np.digitize(y, [-0.3, 0.3])
    losses = collected(POLKClassifier(), X, labels)
    assert losses.count == 597


@pytest.mark.parametrize("lag", [0, 3])
@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("kind", [POLKClassifier, COLKClassifier])
def test_chunks_do_not_matter_when_classes_appear(kind, loss, lag):
    X, y = numbers(90)
    labels = np.array(["m", "z", "a", "k"])[
        np.minimum(np.arange(90) // 20, np.digitize(y, [0, 0.5, 0.9]))
    ]
    assert len(set(labels)) == 4
    whole = collected(kind(loss, random_state=0), X, labels, 90, lag=lag)
    assert 40 < whole.count < 70  # a fifth and more of the run knows one class
    for size in (1, 7):
        pieces = collected(kind(loss, random_state=0), X, labels, size, lag=lag)
        for name, array in whole.arrays().items():
            assert np.array_equal(array, pieces.arrays()[name])


def test_nothing_to_decide_is_no_loss():
    X, _ = numbers(9)
    model = POLKClassifier().partial_fit(X, np.repeat(["b", "d", "f"], 3))
    losses = sample_losses(model, model.decision_function(X[:4]), np.array(["a", "b", "c", "g"]))
    assert np.isfinite(losses).tolist() == [False, True, False, False]
    alone = POLKClassifier().partial_fit(X, np.repeat("b", 9))
    assert np.isnan(sample_losses(alone, alone.decision_function(X), np.repeat("b", 9))).all()
    assert not len(Loss("hinge").value(np.empty((0, 3)), []))
    assert not len(Loss("hinge").value([], []))


def test_units_of_a_target_are_fixed_first():
    X, y = numbers()
    for size in (7, 250):
        model = InUnits(POLKRegressor(), warm_up=200)
        losses = collected(model, X, 1000.0 * y, size)
        _, unit = model._mean_and_unit()
        said = InUnits(POLKRegressor(), warm_up=200).predict_then_learn(X, 1000.0 * y)[200:]
        assert losses.count == 400
        residuals = (said - 1000.0 * y[200:]) / unit
        assert (losses.mean, losses.deviation) == expected(0.5 * residuals**2)


@pytest.mark.parametrize("lag", [0, 3])
def test_a_run_goes_on_where_it_stopped(lag):
    X, y = numbers(400)
    whole = collected(InUnits(POLKRegressor(), 50), X, y, lag=lag)
    run = Prequential(InUnits(POLKRegressor(), 50), losses=True, lag=lag)
    run.update(X[:170], y[:170])
    header, arrays = run.state()
    again = Prequential.restore(run.model, header, arrays)
    again.update(X[170:], y[170:])
    again.finish()
    assert again.losses.count == 400 - 50 - lag
    for name, array in whole.arrays().items():
        assert np.array_equal(array, again.losses.arrays()[name])


def test_only_where_asked_for():
    X, y = numbers(50)
    run = Prequential(POLKRegressor())
    run.update(X, y)
    assert run.losses is None
    assert not any(name.startswith("losses") for name in run.state()[1])


def test_a_model_without_a_loss_is_refused():
    with pytest.raises(ValueError, match="SGDRegressor has no loss"):
        Prequential(SGDRegressor(), losses=True)
