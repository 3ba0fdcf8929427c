"""Losses as values: derivatives against differences, convexity, names and numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Loss, make_loss

numbers = st.floats(-5.0, 5.0)


def difference(loss, f, y, up=1e-6, down=1e-6):
    """The derivative by differences, one output after the other."""
    slope = np.empty_like(f)
    for c in range(f.shape[1]):
        step = np.arange(f.shape[1]) == c
        slope[:, c] = loss.value(f + up * step, y) - loss.value(f - down * step, y)
    return slope / (up + down)


def near_a_kink(loss, f, y):
    """Within the difference's reach the slopes to both sides are not the same."""
    forward, backward = difference(loss, f, y, 1e-5, 0.0), difference(loss, f, y, 0.0, 1e-5)
    return not np.allclose(forward, backward, atol=1e-4)


@pytest.mark.parametrize("name", REGRESSION_LOSSES)
@given(f=numbers, y=numbers)
def test_regression_derivatives(name, f, y):
    loss, f = Loss(name), np.array([[f]])
    assert loss.value(f, [y]) >= 0.0
    if not near_a_kink(loss, f, [y]):
        assert np.allclose(loss.derivative(f, [y]), difference(loss, f, [y]), atol=1e-4)


@pytest.mark.parametrize("name", CLASSIFICATION_LOSSES)
@given(f=st.lists(numbers, min_size=3, max_size=3), y=st.integers(0, 2))
def test_classification_derivatives(name, f, y):
    loss = Loss(name)
    for outputs, target in ((np.array([f]), y), (np.array([f[:1]]), 2.0 * (y % 2) - 1.0)):
        assert loss.value(outputs, [target]) >= 0.0
        if not near_a_kink(loss, outputs, [target]):
            slope = loss.derivative(outputs, [target])
            assert np.allclose(slope, difference(loss, outputs, [target]), atol=1e-4)
            if slope.shape[1] > 1:  # outputs only matter relative to one another
                assert abs(slope.sum()) < 1e-12


@pytest.mark.parametrize("name", REGRESSION_LOSSES + CLASSIFICATION_LOSSES)
@given(a=numbers, b=numbers, share=st.floats(0.0, 1.0))
def test_convex(name, a, b, share):
    values = Loss(name).value([a, b, share * a + (1.0 - share) * b], [1.0, 1.0, 1.0])
    assert values[2] <= share * values[0] + (1.0 - share) * values[1] + 1e-9


@pytest.mark.parametrize("name", REGRESSION_LOSSES + CLASSIFICATION_LOSSES)
def test_curvature_is_the_largest_slope_of_the_derivative(name):
    f = np.linspace(-3.0, 3.0, 6_001)
    steepness = np.abs(np.diff(Loss(name).derivative(f, np.ones_like(f)))) / (f[1] - f[0])
    apart_from_kinks = steepness[steepness < 100.0]
    assert apart_from_kinks.max() == pytest.approx(Loss(name).curvature, abs=1e-3)


def test_known_values():
    assert Loss("hinge").value([0.5, 2.0], [1.0, -1.0]).tolist() == [0.5, 3.0]
    assert Loss("squared_error").value([3.0], [1.0]).tolist() == [2.0]
    assert Loss("log_loss").value([0.0], [1.0]) == pytest.approx(np.log(2.0))
    assert Loss("log_loss").value([[0.0, 0.0, 0.0]], [2]) == pytest.approx(np.log(3.0))
    assert Loss("huber", 1.0).derivative([5.0, 0.5], [0.0, 0.0]).tolist() == [1.0, 0.5]
    assert Loss("epsilon_insensitive", 0.5).value([0.4, 1.0], [0.0, 0.0]).tolist() == [0.0, 0.5]
    assert Loss("quantile", 0.9).derivative([0.0, 2.0], [1.0, 1.0]) == pytest.approx([-0.9, 0.1])


@pytest.mark.parametrize("name", REGRESSION_LOSSES + CLASSIFICATION_LOSSES)
def test_values(name):
    loss = make_loss(name)
    assert loss == Loss(name, loss.number) == make_loss(loss)
    assert eval(repr(loss), {"Loss": Loss}) == loss
    assert loss.for_regression == (name in REGRESSION_LOSSES)
    assert np.isfinite(loss.value([1e150, -1e150], [1.0, 1.0])).any()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("magic",), "one of hinge"),
        (("huber", 0.0), "threshold must be finite and > 0"),
        (("huber", np.inf), "threshold"),
        (("huber", "1"), "must be a number"),
        (("quantile", 1.0), "between 0 and 1"),
        (("hinge", 1.0), "no parameter"),
    ],
)
def test_bad_losses_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        Loss(*arguments)


def test_bad_targets_are_refused():
    with pytest.raises(ValueError, match="class indices below 2"):
        Loss("hinge").value([[0.0, 1.0]], [2])
    with pytest.raises(ValueError, match="one output"):
        Loss("huber").value([[0.0, 1.0]], [2])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        Loss("huber").value([0.0, 1.0], [2.0])
