"""The diameter curve and the beta-rho surface."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import root_mean_squared_error

from kernelstream import AVMClassifier, AVMRegressor, Coverage, POLKClassifier, make_multidist
from kernelstream.evaluation import beta_rho_surface, candidate_deltas, diameter_curve

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def stream():
    return make_multidist(1500, random_state=1)


def test_curve_is_the_models_own_run(stream):
    X, y = stream
    curve = diameter_curve(AVMClassifier(gamma=1.0), X, y, deltas=[2.0, 0.5])
    assert curve.deltas.tolist() == [0.5, 2.0]
    for delta, error, points in zip(curve.deltas, curve.errors, curve.points, strict=True):
        model = AVMClassifier(gamma=1.0, delta=delta)
        said = model.partial_fit(X[:1], y[:1]).predict_then_learn(X[1:], y[1:])
        assert error == np.mean(said != y[1:])
        assert points == model.model_order_
    assert (curve.microseconds > 0.0).all()
    assert curve.forced.tolist() == [0, 0]


def test_a_cap_is_counted_instead_of_warned_of(stream):
    X, y = stream
    model = AVMClassifier(gamma=1.0, delta=0.5, max_points=10)
    curve = diameter_curve(model, X, y, deltas=[0.5, 20.0])
    surface = beta_rho_surface(model, X, y, betas=[0.0], rhos=[1.0])
    assert curve.points[0] == surface.points[0, 0] == 10
    assert curve.forced[0] == surface.forced[0, 0] > 0
    assert curve.forced[1] == 0
    assert curve.to_columns()["no room"] is curve.forced


def test_regression_measures_rmse(stream):
    X, _ = stream
    y = np.sin(X[:, 0])
    curve = diameter_curve(AVMRegressor(), X, y, deltas=[1.0])
    said = AVMRegressor(delta=1.0).predict_then_learn(X, y)
    assert curve.metric == "RMSE"
    assert curve.errors[0] == pytest.approx(root_mean_squared_error(y, said))
    later = diameter_curve(AVMRegressor(), X, y, deltas=[1.0], skip=500)
    assert later.errors[0] == pytest.approx(root_mean_squared_error(y[500:], said[500:]))
    with pytest.raises(ValueError, match="skip must leave samples of the 1500"):
        diameter_curve(AVMRegressor(), X, y, deltas=[1.0], skip=1500)


def test_candidates_go_from_auto_to_the_end_of_the_papers_range(stream):
    X = stream[0][:200]
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(200, 1)]
    mean, deviation = distances.mean(), distances.std()
    deltas = candidate_deltas(stream[0])
    assert deltas[-1] == pytest.approx(2.0 * (mean + deviation))
    assert deltas[0] == pytest.approx(max(mean - deviation, 0.25 * mean))
    assert candidate_deltas(csr_array(stream[0])) == pytest.approx(deltas)
    with pytest.raises(ValueError, match="give deltas"):
        candidate_deltas(np.ones((5, 2)))


def test_the_model_is_not_touched(stream):
    model = AVMClassifier(gamma=1.0)
    curve = diameter_curve(model, *stream)
    assert len(curve.deltas) == 9
    assert model.delta == "auto"
    assert not hasattr(model, "classes_")


def test_surface(stream):
    model = AVMClassifier(gamma=1.0, delta=1.0, random_state=0)
    surface = beta_rho_surface(model, *stream, betas=[0.0, 10.0], rhos=[0.5, 1.0, 1.5])
    assert surface.errors.shape == surface.points.shape == (2, 3)
    assert len(set(surface.points[0])) == 1
    assert (np.diff(surface.points[1]) < 0).all()
    columns = surface.to_columns()
    assert columns["beta"].tolist() == [0.0] * 3 + [10.0] * 3
    assert columns["points"][4] == surface.points[1, 1]


def test_pictures(stream, tmp_path):
    model = AVMClassifier(gamma=1.0, delta=1.0, random_state=0)
    curve = diameter_curve(model, *stream, deltas=[1.0, 2.0])
    figure = curve.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert [axes.get_ylabel() for axes in figure.axes] == ["mistake rate", "points"]
    assert list(curve.to_columns())[:3] == ["delta", "mistake rate", "points"]
    surface = beta_rho_surface(model, *stream, betas=[0.0, 1.0], rhos=[1.0])
    surface.plot(tmp_path / "surface.png")
    assert (tmp_path / "surface.png").stat().st_size > 1000


def test_what_cannot_be_studied_is_refused(stream):
    with pytest.raises(ValueError, match="has no cells"):
        diameter_curve(POLKClassifier(), *stream)
    with pytest.raises(ValueError, match="deltas is empty"):
        diameter_curve(AVMClassifier(), *stream, deltas=[])
    fixed = AVMClassifier(coverage=Coverage(delta=1.0).fit(stream[0]))
    with pytest.raises(ValueError, match="its own delta"):
        diameter_curve(fixed, *stream)
