"""The model seen whole: its map, its curve, or the shadow of its points in a plane."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kernelstream.evaluation.drawing import CURVE_COLOR, INK, PALETTE, SAMPLE_COLOR, VALUE_COLORS
from kernelstream.evaluation.plots import plot_decision_surface, plot_fit, plot_value_surface
from kernelstream.report import charts
from kernelstream.report.charts import Chart, Key, Series, compact, line_chart

MOST_SAMPLES = 800
MOST_ENTRIES = 20_000_000  # of the dense matrix that the plane is computed from
MOST_SCORES = 4_000_000  # classes times grid points of a map
CROWD = 250  # stored points beyond which they are drawn smaller
OTHER_COLOR = "#8A8A8A"
LINE_STYLES = ("thick", "thin", "dashed", "dotted")


def picture(model: Any, names: Sequence[str], target: str, sample: Any) -> Chart | None:
    """The drawing that suits the number of features and the task.

    Two features: the map of classes or values. One: the curve, of the value or of each class's
    score. More: the two directions in which points and samples spread most. Features that are
    zero in every stored point and sample do not count. Of several targets the first one is drawn.
    None where there is neither a stored point nor a sample.
    """
    features = model.n_features_in_
    X, y = _split(sample, features)
    if getattr(model, "_n_targets", 1) > 1:
        model, y = _FirstTarget(model), None if y is None else np.asarray(y)[:, 0]
    most = int(np.clip(MOST_ENTRIES // features, 20, MOST_SAMPLES))
    X = _some_rows(X, most)
    y = None if y is None else _some_rows(np.asarray(y), most)
    stored = _stored(model)
    if X is None and not len(stored):
        return None
    if features > 2:
        used = np.abs(stored).max(axis=0, initial=0.0) > 0.0
        if X is not None:
            largest = abs(X).max(axis=0)
            used |= np.ravel(_dense(largest)) > 0.0
        places = np.flatnonzero(used)
        if not 1 <= len(places) <= 2:
            return _plane(model, X, most)
        model = _Section(model, places)
        names = [names[int(place)] for place in places]
        X = None if X is None else X[:, places]
        features = len(places)
    points = _dense(X)
    if features == 2 and hasattr(model, "classes_"):
        return _class_map(model, points, y, names)
    if features == 2:
        return _value_map(model, points, y, names)
    if hasattr(model, "classes_"):
        return _score_curves(model, points, names[0])
    return _curve(model, points, y, names[0], target)


def _stored(model: Any) -> NDArray[np.float64]:
    """(M, p): the points of a model that is a function on some; others have none to draw."""
    points = getattr(model, "dictionary_", None)
    return np.empty((0, model.n_features_in_)) if points is None else np.asarray(points)


def _key_of_points(model: Any) -> list[Key]:
    return [Key("stored point", "stored")] if len(_stored(model)) else []


class _FirstTarget:
    """A model of several targets as one of the first."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.n_features_in_ = model.n_features_in_
        self.dictionary_ = _stored(model)

    def predict(self, X: Any) -> Any:
        return self._model.predict(X)[:, 0]


class _Section:
    """A model as a function of some of its features, the others being zero."""

    def __init__(self, model: Any, places: NDArray[np.intp]) -> None:
        self._model = model
        self._places = places
        self.n_features_in_ = len(places)
        self.dictionary_ = _stored(model)[:, places]
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
            self.decision_function = lambda X: model.decision_function(self._whole(X))

    def predict(self, X: Any) -> Any:
        return self._model.predict(self._whole(X))

    def _whole(self, X: Any) -> NDArray[np.float64]:
        rows = np.zeros((len(X), self._model.n_features_in_))
        rows[:, self._places] = X
        return rows


# ---- one or two features --------------------------------------------------------------


def _class_map(model: Any, X: Any, y: Any, names: Sequence[str]) -> Chart:
    shown = _stored(model)
    colors, keys = _class_colors(model.classes_, model.predict(shown if len(shown) else X))
    resolution = int(np.clip((MOST_SCORES / len(model.classes_)) ** 0.5, 40, 300))
    look: dict[str, Any] = {"resolution": resolution, "show_legend": False, "colors": colors}
    return _drawn(
        lambda ax: plot_decision_surface(model, X, y, ax=ax, **look),
        title="What the model decides where",
        description="The plane of the two features, coloured by the class the model decides for, "
        "with boundaries, samples and stored points.",
        labels=names,
        keys=[*keys, *_key_of_points(model)],
    )


def _value_map(model: Any, X: Any, y: Any, names: Sequence[str]) -> Chart:
    return _drawn(
        lambda ax: plot_value_surface(model, X, y, ax=ax, show_legend=False),
        title="What the model predicts where",
        description="The plane of the two features, coloured by the value the model predicts, "
        "with samples and stored points.",
        labels=names,
        keys=_key_of_points(model),
        scaled=True,
    )


def _curve(model: Any, X: Any, y: Any, name: str, target: str) -> Chart:
    keys = [Key("model", "line", CURVE_COLOR), *_key_of_points(model)]
    if X is not None and y is not None:
        keys.insert(1, Key("sample", "dot", SAMPLE_COLOR))
    return _drawn(
        lambda ax: plot_fit(model, X, y, ax=ax, show_legend=False),
        title="The fitted curve",
        description=f"The value the model predicts for each value of {name}.",
        labels=(name, target),
        keys=keys,
        grid="xy",
        shape=(7.2, 4.0),
    )


def _score_curves(model: Any, X: Any, name: str) -> Chart:
    """One feature and classes: each class's score along the feature."""
    grid = np.linspace(*charts.padded(_stored(model)[:, 0] if X is None else X[:, 0]), 400)
    scores = model.decision_function(grid[:, None]).reshape(len(grid), -1)
    labels = [str(label) for label in model.classes_]
    if scores.shape[1] == 1:  # two classes: one function, positive for the second
        labels = [f"for {labels[-1]} (positive)"]
    leading = np.argsort(-np.bincount(scores.argmax(axis=1), minlength=scores.shape[1]))
    series = [
        Series(labels[number], style, scores[:, number])
        for number, style in zip(leading.tolist(), LINE_STYLES, strict=False)
    ]
    return line_chart("Score of each class", grid, series, x_label=name)


def _drawn(
    draw: Callable[[Any], Any],
    *,
    labels: Sequence[str],
    grid: str = "",
    shape: tuple[float, float] | None = None,
    scaled: bool = False,
    **about: Any,
) -> Chart:
    """A chart whose inside Matplotlib draws; the text around it is the page's own."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "kernelstream"}):
        figure = Figure(figsize=shape or (6.0, 6.0))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        draw(ax)
        x_range, y_range = ax.get_xlim(), ax.get_ylim()
        if shape is None:
            shape = (6.0, 4.5)
            if ax.get_aspect() == 1.0:
                tall = (y_range[1] - y_range[0]) / (x_range[1] - x_range[0])
                shape = (6.0, 6.0 * tall) if tall <= 1.0 else (6.0 / tall, 6.0)
            figure.set_size_inches(shape)
        ax.set_aspect("auto")
        ax.set_title("", loc="left")
        ax.set_axis_off()
        scale = _color_scale(*ax.images[0].get_clim()) if scaled else None
        inside = _inline_svg(figure)
    return Chart(
        x_label=labels[0],
        y_label=labels[1],
        x_ticks=charts.axis_ticks(*x_range, 5, compact),
        y_ticks=charts.axis_ticks(*y_range, 5, compact, down=True),
        inside=inside,
        grid=grid,
        scale=scale,
        shape=f"{shape[0]:.3f} / {shape[1]:.3f}",
        **about,
    )


def _inline_svg(figure: Any) -> str:
    """The figure as an element of a page, in the page's ink."""
    file = io.StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", transparent=True, metadata=no_metadata)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)  # would hold for all the page
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)  # HTML knows them, and nothing is a link
    text = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
        r'<svg viewBox="\1" preserveAspectRatio="none" width="100%" height="100%" '
        r'aria-hidden="true" class="drawing">',
        text,
        count=1,
    )
    for color, name in ((INK, "ink"), ("#ffffff", "surface")):
        text = re.sub(color, f"var(--{name})", text, flags=re.IGNORECASE)
    return text


# ---- more features --------------------------------------------------------------------


def _plane(model: Any, X: Any, most: int) -> Chart:
    """Stored points and samples along the two directions in which they spread most."""
    points = _some_rows(_stored(model), most)
    kept = points if X is None else np.concatenate([points, _dense(X)])
    coordinates, shares = _principal_plane(kept)
    stored = len(points)
    # Colours from the very rows that are drawn: samples as they came, sparse or not.
    parts = [rows for rows in (points, X) if rows is not None and rows.shape[0]]
    predicted = np.concatenate([model.predict(rows) for rows in parts])
    scale = None
    if hasattr(model, "classes_"):
        palette, keys = _class_colors(model.classes_, predicted)
        place = np.searchsorted(model.classes_, predicted)
        colors = [palette[number] for number in place.tolist()]
    else:
        low, high = float(predicted.min()), float(predicted.max())
        colors, keys = _value_colors(predicted, low, high), []
        scale = _color_scale(low, high)
    looks = "stored crowd" if stored > CROWD else "stored"
    order = [*range(stored, len(coordinates)), *range(stored)]  # stored points on top
    if stored:
        keys = [*keys, Key("stored point", "stored-open")]
    if X is not None:
        keys.append(Key("sample", "sample"))
    return charts.scatter(
        f"{'Stored points' if stored else 'Samples'} in the plane where they spread most",
        coordinates[order],
        [colors[number] for number in order],
        [looks if number < stored else "sample" for number in order],
        description=f"{stored} stored points and {len(coordinates) - stored} samples along their "
        "first two principal components, coloured by what the model predicts.",
        x_label=f"first component, {100.0 * shares[0]:.0f} % of the variance",
        y_label=f"second component, {100.0 * shares[1]:.0f} % of the variance",
        keys=keys,
        scale=scale,
    )


def _principal_plane(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[float]]:
    """Coordinates (n, 2) along the principal components, and their shares of the variance."""
    from sklearn.decomposition import PCA

    used = rows[:, np.ptp(rows, axis=0) > 0.0]
    coordinates, shares = np.zeros((len(rows), 2)), [0.0, 0.0]
    components = min(2, len(rows) - 1, used.shape[1])
    if components > 0:
        unit = float(np.abs(used).max())  # squares of huge numbers overflow
        pca = PCA(components, random_state=0)
        coordinates[:, :components] = pca.fit_transform(used / unit) * unit
        shares[:components] = np.nan_to_num(pca.explained_variance_ratio_).tolist()
    return coordinates, shares


# ---- samples and colours --------------------------------------------------------------


def _split(sample: Any, features: int) -> tuple[Any, Any]:
    if sample is None:
        return None, None
    X, y = sample if isinstance(sample, tuple) else (sample, None)
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"sample must be X or (X, y) with X of shape (n, p), got {X.shape}")
    if X.shape[1] != features:
        raise ValueError(f"sample has {X.shape[1]} features, the model has {features}")
    if y is not None and len(y) != X.shape[0]:
        raise ValueError(f"sample has {X.shape[0]} rows and {len(y)} targets")
    return (X, y) if X.shape[0] else (None, None)


def _some_rows(rows: Any, most: int) -> Any:
    """At most so many rows, evenly spread over all."""
    if rows is None or rows.shape[0] <= most:
        return rows
    return rows[np.linspace(0, rows.shape[0] - 1, most).astype(int)]


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


def _class_colors(classes: NDArray[Any], predicted: NDArray[Any]) -> tuple[list[str], list[Key]]:
    """A colour per class, and the legend; of many classes only the frequent have their own."""
    if len(classes) <= len(PALETTE):
        colors = list(PALETTE[: len(classes)])
        named = list(range(len(classes)))
    else:
        counts = np.bincount(np.searchsorted(classes, predicted), minlength=len(classes))
        named = sorted(np.argsort(-counts, kind="stable")[: len(PALETTE) - 1].tolist())
        colors = [OTHER_COLOR] * len(classes)
        for color, number in zip(PALETTE, named, strict=False):
            colors[number] = color
    keys = [Key(str(classes[number]), "square", colors[number]) for number in named]
    if len(keys) < len(classes):
        keys.append(Key(f"{len(classes) - len(keys)} other classes", "square", OTHER_COLOR))
    return colors, keys


def _value_colors(values: NDArray[np.float64], low: float, high: float) -> list[str]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shares = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    return [to_hex(color) for color in colormaps[VALUE_COLORS](shares)]


def _color_scale(low: float, high: float) -> tuple[str, list[str], str]:
    return compact(low), _value_colors(np.linspace(0.0, 1.0, 9), 0.0, 1.0), compact(high)
