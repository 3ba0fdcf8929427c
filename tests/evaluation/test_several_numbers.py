"""Runs on samples with several numbers: metrics of each and their mean, chunks, resumes."""

import numpy as np
import pytest
from sklearn.linear_model import SGDRegressor
from sklearn.metrics import mean_absolute_error

from kernelstream import COLKRegressor, POLKRegressor
from kernelstream.evaluation import Prequential, prequential
from kernelstream.streams import make_robot_arm

X, Y = make_robot_arm(300, random_state=0)


def new_model(batch_size=1):
    return POLKRegressor(gamma=0.5, eta0=0.5, batch_size=batch_size)


def test_metrics_are_those_of_each_output_and_their_mean():
    run = Prequential(new_model(), ["mae", "r2"], every=100)
    run.update(X, Y)
    made = new_model().predict_then_learn(X, Y)
    each = mean_absolute_error(Y[1:], made[1:], multioutput="raw_values")
    assert np.allclose([values["mae"] for values in run.values_by_output()], each)
    assert np.isclose(run.values()["mae"], each.mean())
    columns = run.finish().to_columns()
    assert np.isclose(columns["mae"][-1], each.mean())
    assert np.isclose(columns["no_change"][-1], np.abs(np.diff(Y, axis=0)).mean())


@pytest.mark.parametrize(("batch_size", "lag"), [(1, 0), (7, 0), (1, 3)])
def test_chunks_and_resumes_make_no_difference(batch_size, lag):
    whole = Prequential(new_model(batch_size), every=100, lag=lag, losses=True)
    whole.update(X, Y)
    parts = Prequential(new_model(batch_size), every=100, lag=lag, losses=True)
    parts.update(X[:59], Y[:59])
    header, arrays = parts.state()
    again = Prequential.restore(parts.model, header, arrays)
    for first in range(59, 300, 40):
        again.update(X[first : first + 40], Y[first : first + 40])
    one, other = whole.finish().to_columns(), again.finish().to_columns()
    for name in one.keys() - {"seconds", "bytes"}:
        assert np.array_equal(one[name], other[name], equal_nan=True), name
    assert whole.losses.mean == again.losses.mean


def test_one_column_is_one_number():
    with pytest.warns(UserWarning, match="column-vector"):
        column = prequential(new_model(), (X, Y[:, :1]), every=100).to_columns()
    plain = prequential(new_model(), (X, Y[:, 0]), every=100).to_columns()
    for name in plain.keys() - {"seconds", "bytes"}:
        assert np.array_equal(column[name], plain[name], equal_nan=True)


def test_held_out_and_the_regularised_risk():
    model = COLKRegressor(gamma=0.5, alpha=0.01)
    trace = prequential(model, (X[:200], Y[:200]), every=100, held_out=(X[200:], Y[200:]))
    columns = trace.to_columns()
    wrong = model.predict(X[200:]) - Y[200:]
    assert np.isclose(columns["held_out"][-1], np.abs(wrong).mean())
    risk = 0.5 * (wrong**2).sum(axis=1).mean() + 0.005 * model.expansion_.norm() ** 2
    assert np.isclose(columns["held_out_risk"][-1], risk)


def test_another_number_of_columns_and_models_of_one_number_are_refused():
    run = Prequential(new_model(), every=100)
    run.update(X[:50], Y[:50])
    with pytest.raises(ValueError, match="y has 2 numbers per sample, the samples before 3"):
        run.update(X[50:], Y[50:, :2])
    assert run.samples == 50
    with pytest.raises(ValueError, match="one number per sample"):
        prequential(SGDRegressor(), (X, Y), every=100)
