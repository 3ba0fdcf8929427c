"""Step sizes and error budgets by their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelstream import POLKRegressor
from kernelstream.schedules import Parsimony, StepSize


@given(st.integers(0, 10**9), st.floats(1e-6, 1.0), st.floats(0.0, 1.0))
def test_step_sizes(t, eta0, decay):
    assert StepSize("constant", eta0, decay)(t) == eta0
    assert StepSize("inverse_time", eta0, decay)(t) == pytest.approx(eta0 / (1.0 + decay * t))
    assert StepSize("inverse_sqrt", eta0, decay)(t) == pytest.approx(
        eta0 / (1.0 + decay * t) ** 0.5
    )


@given(st.floats(0.0, 1.0), st.floats(1e-6, 10.0))
def test_errors_that_follow_the_step_size(number, eta):
    assert Parsimony(number)(eta) == pytest.approx(number * eta**1.5)
    assert Parsimony(number, 2)(eta) == pytest.approx(number * eta**2)
    for parsimony in (Parsimony(number), Parsimony(number, 2)):
        typed = f"parsimony:{parsimony.factor!r}:{parsimony.power}"
        assert Parsimony.from_text(typed) == parsimony


@pytest.mark.parametrize("values", [(-1.0,), (float("nan"),), ("0.1",), (1.0, 3)])
def test_unusable_factors_and_powers_are_refused(values):
    with pytest.raises(ValueError, match="of Parsimony must be"):
        Parsimony(*values)
    assert Parsimony.from_text(f"parsimony:{':'.join(map(str, (*values, 7)))}") is None


@pytest.mark.parametrize(
    ("error", "same"), [("auto", Parsimony(0.02)), (Parsimony(0.5), 0.5 * 0.25**1.5)]
)
def test_the_compression_error_of_constant_steps(error, same):
    X = np.random.default_rng(0).normal(size=(200, 2))
    points = [
        POLKRegressor(eta0=0.25, compression_error=each).partial_fit(X, X[:, 0]).dictionary_
        for each in (error, same)
    ]
    assert np.array_equal(*points)


@pytest.mark.parametrize(
    ("learning_rate", "expected"),
    [
        ("constant", [0.5, 0.5, 0.5]),
        ("inverse_time", [0.5, 0.5 / 1.05, 0.5 / 1.1]),
        ("inverse_sqrt", [0.5, 0.5 / 2**0.5, 0.5 / 3**0.5]),
    ],
)
def test_the_estimator_takes_these_steps(learning_rate, expected):
    """Far apart points: each weight is its own step size, times what later steps shrink."""
    model = POLKRegressor(
        learning_rate=learning_rate, eta0=0.5, alpha=0.1, compression_error=0.0, gamma=1.0
    )  # fmt: skip
    model.partial_fit([[0.0], [100.0], [200.0]], [1.0, 1.0, 1.0])
    left = [1.0, 1.0, 1.0]
    for t, eta in enumerate(expected):
        left[:t] = [share * (1.0 - 0.1 * eta) for share in left[:t]]
    weights = dict(zip(model.dictionary_[:, 0], model.dual_coef_[0], strict=True))
    steps = [eta * share for eta, share in zip(expected, left, strict=True)]
    assert [weights[x] for x in (0.0, 100.0, 200.0)] == pytest.approx(steps)
