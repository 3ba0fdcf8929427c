import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelstream.core.loss import loss_derivative, loss_value
from tests.core.tools import LOSS_NUMBERS, LOSSES
from tests.naive import losses as naive

finite = st.floats(-50, 50)


def core_loss(name, f, target, number=None):
    """Value, derivative and whether the derivative is not zero."""
    number = float(LOSS_NUMBERS.get(name, 0.0) if number is None else number)
    f = np.array(f, dtype=float)
    out = np.full(len(f), np.nan)
    value = loss_value(LOSSES[name], number, f, len(f), float(target))
    active = loss_derivative(LOSSES[name], number, f, len(f), float(target), out)
    return value, out, active


def agrees(name, f, target):
    value, derivative, active = core_loss(name, f, target)
    number = LOSS_NUMBERS.get(name, 0.0)
    expected = naive.derivative(name, number, f, target)
    assert value == pytest.approx(naive.value(name, number, f, target), rel=1e-12, abs=1e-12)
    assert derivative == pytest.approx(expected, rel=1e-12, abs=1e-12)
    # A softmax that rounds to the one-hot vector counts as no derivative.
    assert active == bool((np.abs(derivative) > 1e-15).any()) or np.abs(derivative).max() < 1e-15


@pytest.mark.parametrize("name", naive.CLASSIFICATION)
@given(f=finite, target=st.sampled_from([-1.0, 1.0]))
def test_binary_equals_the_twin(name, f, target):
    agrees(name, [f], target)


@pytest.mark.parametrize("name", naive.REGRESSION)
@given(f=finite, target=finite)
def test_regression_equals_the_twin(name, f, target):
    agrees(name, [f], target)


@pytest.mark.parametrize("name", naive.CLASSIFICATION)
@given(f=st.lists(finite, min_size=2, max_size=5), data=st.data())
def test_multi_class_equals_the_twin(name, f, data):
    agrees(name, f, data.draw(st.integers(0, len(f) - 1)))


@pytest.mark.parametrize("name", [*naive.CLASSIFICATION, *naive.REGRESSION])
def test_derivative_is_the_slope_of_the_value(name):
    rng = np.random.default_rng(0)
    h = 1e-6
    for trial in range(60):
        outputs = 1 if name in naive.REGRESSION else (1, 3)[trial % 2]
        f = rng.normal(size=outputs) * 2
        target = rng.integers(outputs) if outputs > 1 else rng.choice([-1.0, 1.0])
        target = rng.normal() if name in naive.REGRESSION else target
        slopes = np.empty(outputs)
        for c in range(outputs):
            step = h * np.eye(outputs)[c]
            up, down = core_loss(name, f + step, target)[0], core_loss(name, f - step, target)[0]
            slopes[c] = (up - down) / (2 * h)
        assert core_loss(name, f, target)[1] == pytest.approx(slopes, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "f", "target"),
    [
        ("hinge", [1.0], 1.0),
        ("hinge", [-1.0], -1.0),
        ("squared_hinge", [1.0], 1.0),
        ("smooth_hinge", [1.0], 1.0),
        ("hinge", [2.0, 1.0, 0.0], 0),
        ("absolute_error", [3.0], 3.0),
        ("epsilon_insensitive", [0.1], 0.0),
        ("epsilon_insensitive", [-0.1], 0.0),
        ("quantile", [3.0], 3.0),
    ],
)
def test_zero_at_the_kink(name, f, target):
    _, derivative, active = core_loss(name, f, target)
    assert not derivative.any()
    assert not active


def test_the_first_of_equal_rivals_is_taken():
    assert core_loss("hinge", [1.0, 0.0, 1.0, 1.0], 1)[1].tolist() == [1.0, -1.0, 0.0, 0.0]
    assert core_loss("hinge", [0.0, 0.0, 0.0], 0)[1].tolist() == [-1.0, 1.0, 0.0]


@pytest.mark.parametrize("name", ["log_loss", "margin_log_loss"])
@pytest.mark.parametrize("f", [-1e5, -750.0, 750.0, 1e5])
def test_logistic_losses_never_overflow(name, f):
    for outputs in ([f], [f, 0.0], [0.0, f, -f]):
        value, derivative, _ = core_loss(name, outputs, 1.0)
        assert 0.0 <= value < np.inf
        assert np.abs(derivative).max() <= 1.0


def test_wrong_side_of_the_logistic_loss_is_linear():
    value, derivative, _ = core_loss("log_loss", [-1e5], 1.0)
    assert value == 1e5
    assert derivative[0] == -1.0


@pytest.mark.parametrize("name", ["log_loss", "margin_log_loss", "squared_error"])
def test_a_derivative_that_is_not_a_number_is_not_hidden(name):
    _, derivative, active = core_loss(name, [np.nan], 1.0)
    assert active
    assert np.isnan(derivative[0])
