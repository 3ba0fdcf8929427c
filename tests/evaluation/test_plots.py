"""Tests of the plots, on small models that have just the attributes needed."""

import builtins

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from kernelstream.evaluation import (  # noqa: E402
    plot_decision_surface,
    plot_fit,
    plot_value_surface,
)


class NearestPoint:
    """One class per dictionary point."""

    def __init__(self, dictionary, classes):
        self.dictionary_ = np.asarray(dictionary, dtype=float)
        self.classes_ = np.asarray(classes)

    def scores(self, X):
        return -((X[:, None, :] - self.dictionary_[None]) ** 2).sum(axis=2)

    def predict(self, X):
        return self.classes_[self.scores(X).argmax(axis=1)]


class NearestPointWithScores(NearestPoint):
    def decision_function(self, X):
        scores = self.scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores


class Curve:
    def __init__(self, dictionary):
        self.dictionary_ = np.asarray(dictionary, dtype=float)

    def predict(self, X):
        return np.sin(np.asarray(X)[:, 0])


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, size=(60, 2))


TRIANGLE = [[-1, -1], [1, -1], [0, 1]]


@pytest.mark.parametrize("kind", [NearestPoint, NearestPointWithScores])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_surface_shows_regions_boundaries_samples_and_dictionary(kind, n_classes, samples):
    model = kind(TRIANGLE[:n_classes], ["a", "b", "c"][:n_classes])
    ax = plot_decision_surface(model, samples, model.predict(samples), resolution=40)
    ax.figure.canvas.draw()
    points, dictionary = (
        c for c in ax.collections if hasattr(c, "get_sizes") and len(c.get_sizes())
    )
    assert len(points.get_offsets()) == 60
    assert np.array_equal(dictionary.get_offsets(), model.dictionary_)
    assert len(ax.collections) > 2  # the boundaries
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [*["a", "b", "c"][:n_classes], "dictionary"]
    image = ax.images[0]
    assert len(np.unique(image.get_array().reshape(-1, 4), axis=0)) == n_classes
    assert ax.get_aspect() == 1


def test_surface_grid_is_the_right_way_round():
    model = NearestPoint([[0, 0], [0, 10]], [0, 1])
    ax = plot_decision_surface(model, resolution=50, colors=["red", "blue"])
    image = ax.images[0].get_array()
    bottom, top = image[0, 0], image[-1, 0]
    assert bottom[0] > bottom[2]
    assert top[2] > top[0]


def test_surface_without_samples_uses_the_dictionary_range():
    ax = plot_decision_surface(NearestPoint(TRIANGLE, [0, 1, 2]), resolution=30)
    assert ax.get_xlim() == pytest.approx((-1.1, 1.1))


def test_surface_uses_the_given_axes_and_hides_the_dictionary(samples):
    _, ax = plt.subplots()
    model = NearestPoint(TRIANGLE, [0, 1, 2])
    assert plot_decision_surface(model, samples, ax=ax, show_dictionary=False, resolution=20) is ax
    assert "dictionary" not in [text.get_text() for text in ax.get_legend().get_texts()]


def test_surface_title_has_model_order_and_test_error():
    ax = plot_decision_surface(NearestPoint(TRIANGLE, [0, 1, 2]), test_error=0.0398, resolution=20)
    title = ax.get_title(loc="left")
    assert "NearestPoint" in title
    assert "3 points" in title
    assert "4.0 %" in title


def test_surface_margin_adds_lines(samples):
    model = NearestPointWithScores(TRIANGLE, [0, 1, 2])
    plain = plot_decision_surface(model, samples, resolution=30)
    dashed = plot_decision_surface(model, samples, resolution=30, margin=0.5)
    assert len(dashed.collections) > len(plain.collections)


def test_surface_takes_many_classes_and_unknown_labels(samples):
    rng = np.random.default_rng(1)
    model = NearestPoint(rng.normal(size=(12, 2)), np.arange(12))
    plot_decision_surface(model, samples, np.full(60, 99), resolution=20).figure.canvas.draw()


def test_surface_of_a_model_that_knows_one_class():
    model = NearestPoint([[0, 0]], ["only"])
    plot_decision_surface(model, resolution=10).figure.canvas.draw()


def test_surface_refuses_other_dimensions(samples):
    with pytest.raises(ValueError, match="2 features; this NearestPoint has 3"):
        plot_decision_surface(NearestPoint(np.eye(3), [0, 1, 2]))
    with pytest.raises(ValueError, match=r"X must have shape \(n, 2\)"):
        plot_decision_surface(NearestPoint(TRIANGLE, [0, 1, 2]), samples[:, :1])
    with pytest.raises(ValueError, match="pass X"):
        plot_decision_surface(NearestPoint(np.empty((0, 2)), []))
    with pytest.raises(ValueError, match="colors must name 3"):
        plot_decision_surface(NearestPoint(TRIANGLE, [0, 1, 2]), colors=["red"])


def test_fit_shows_curve_samples_and_dictionary():
    x = np.linspace(0, 6, 50)
    y = np.sin(x)
    y[10] = 1e6
    ax = plot_fit(Curve([[1.0], [2.0], [4.0]]), x, y)
    ax.figure.canvas.draw()
    dictionary = ax.collections[-1].get_offsets()
    assert np.allclose(dictionary, [[d, np.sin(d)] for d in (1.0, 2.0, 4.0)])
    assert np.allclose(ax.lines[0].get_ydata(), np.sin(ax.lines[0].get_xdata()))
    assert "3 points" in ax.get_title(loc="left")


def test_fit_is_not_flattened_by_an_outlier():
    x = np.linspace(0, 6, 500)
    y = np.sin(x)
    y[10] = 1e6
    assert plot_fit(Curve([[1.0]]), x, y).get_ylim()[1] < 2


def test_fit_without_samples_and_with_bad_dimensions():
    assert plot_fit(Curve([[0.0], [1.0]])).get_xlim() == pytest.approx((-0.05, 1.05))
    with pytest.raises(ValueError, match="1 feature; this Curve has 2"):
        plot_fit(Curve([[0.0, 1.0]]))


def test_missing_matplotlib_says_what_to_install(monkeypatch):
    real_import = builtins.__import__

    def no_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(ImportError, match=r"pip install kernelstream\[plot\]"):
        plot_decision_surface(NearestPoint(TRIANGLE, [0, 1, 2]))


def test_surface_of_features_of_very_different_scale_fills_the_frame():
    model = NearestPoint([[0, 0], [1, 1000]], [0, 1])
    ax = plot_decision_surface(model, resolution=50, show_legend=False)
    assert ax.get_aspect() == "auto"
    assert ax.images[0].get_array().shape[:2] == (50, 50)
    assert ax.get_legend() is None


@pytest.mark.parametrize("targets", [None, [0.0, 1.0, 5.0]])
def test_value_surface_shows_values_samples_and_dictionary(targets):
    ax = plot_value_surface(Curve([[0.0, 0.0], [3.0, 4.0]]), TRIANGLE, targets, resolution=30)
    ax.figure.canvas.draw()
    points, dictionary = ax.collections
    assert np.array_equal(points.get_offsets(), TRIANGLE)
    assert np.array_equal(dictionary.get_offsets(), [[0, 0], [3, 4]])
    values = np.asarray(ax.images[0].get_array())
    assert values[0] == pytest.approx(np.sin(np.linspace(-1.1, 1.1, 30)))
    assert (values == values[0]).all()
    assert len(ax.figure.axes) == 2  # the colour bar
