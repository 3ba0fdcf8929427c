"""Pictures of a model: the map of a classifier or regressor in the plane, a regressor's curve.

All need only what every model here has (`predict`, `dictionary_`, for the map `classes_`), and
Matplotlib, which is imported when a picture is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.evaluation import drawing
from kernelstream.evaluation.drawing import INK, PALETTE, SAMPLE_COLOR, VALUE_COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THINNEST_STRIP = 4.0


def plot_decision_surface(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    resolution: int = 400,
    show_dictionary: bool = True,
    show_legend: bool = True,
    colors: Sequence[str] | None = None,
    margin: float | None = None,
    test_error: float | None = None,
) -> Axes:
    """Draw the classes a model sees in the plane, as in Figure 4 of POLK.

    Every class has a colour: pale where the model decides for it, full for the samples of it.
    Lines are the class boundaries, black dots the points of the dictionary.

    Parameters
    ----------
    model : fitted classifier with 2 features
        With `predict` and `classes_`; `decision_function` makes smooth boundaries,
        `dictionary_` (M, 2) is drawn if present.
    X : (n, 2) array, default=None
        Samples to draw. They, or else the dictionary, set the range of the axes.
    y : (n,) array, default=None
        Their labels; without labels they are drawn grey.
    ax : matplotlib Axes, default=None
        None makes a new figure.
    resolution : int, default=400
        Grid points along the longer axis.
    show_dictionary, show_legend : bool, default=True
    colors : sequence of colours, default=None
        One per class; None takes a palette safe for colour-blind readers (up to 7 classes).
    margin : float, default=None
        Also draw dashed lines where the winning class leads by this much.
    test_error : float, default=None
        Error as a share in [0, 1], to appear in the title.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from kernelstream.evaluation import plot_decision_surface
    >>> from kernelstream.streams import make_multidist
    >>> X, y = make_multidist(300, random_state=0)
    >>> model = SVC().fit(X, y)
    >>> model.dictionary_ = model.support_vectors_
    >>> ax = plot_decision_surface(model, X, y)
    >>> ax.get_title(loc="left").startswith("SVC")
    True
    """
    picture = _Picture(model, X, 2, "plot_decision_surface", ax)
    ax, samples = picture.ax, picture.samples
    x_grid, y_grid, grid = picture.grid(resolution)
    shape = (len(y_grid), len(x_grid))
    classes = np.asarray(model.classes_)
    winner = _class_index(model.predict(grid), classes).reshape(shape)
    rgb = _class_colors(len(classes), colors)
    # See-through, so that the map is pale on a white page and deep on a dark one.
    tints = np.column_stack([rgb, np.full(len(rgb), 0.30)])
    picture.show_map(tints[winner])
    for lead in _leads(model, grid, winner, len(classes)):
        field = lead.reshape(shape)
        _contour(ax, x_grid, y_grid, field, 0.0, linewidths=1.1, linestyles="solid")
        if margin is not None:
            _contour(ax, x_grid, y_grid, field, margin, linewidths=0.8, linestyles="dashed")
    if samples is not None:
        index = None if y is None else _class_index(np.asarray(y), classes)
        # One call for all classes, in stream order: no class is painted over the others.
        known = np.full(len(samples), -1) if index is None else index
        shades = np.vstack([0.86 * rgb, [[0.45, 0.45, 0.45]]])  # the last row: no known label
        picture.show_samples(samples[:, 1], c=shades[known], alpha=0.55)
    handles = [
        drawing.legend_marker(str(name), marker="s", color=color, size=8)
        for name, color in zip(classes, rgb, strict=True)
    ]
    if show_dictionary:
        handles += picture.show_dictionary(46)
    ax.set(xlim=picture.frame[0], ylim=picture.frame[1])
    if show_legend:
        drawing.legend_outside(ax, handles)
    return picture.finish(test_error)


def plot_fit(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    resolution: int = 800,
    show_dictionary: bool = True,
    show_legend: bool = True,
) -> Axes:
    """Draw the curve of a regressor with one feature, its samples and its dictionary.

    Parameters
    ----------
    model : fitted regressor with 1 feature
        With `predict`; `dictionary_` (M, 1) is drawn on the curve if present.
    X : (n, 1) or (n,) array, default=None
        Samples to draw. They, or else the dictionary, set the range of the x axis.
    y : (n,) array, default=None
        Their targets. The y axis spans the curve and the middle 98 % of the targets, so that
        a few outliers cannot flatten the picture.
    resolution : int, default=800
        Points along the curve.
    ax, show_dictionary, show_legend
        As for :func:`plot_decision_surface`.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from kernelstream.evaluation import plot_fit
    >>> from kernelstream.streams import make_regression_outliers
    >>> X, y = make_regression_outliers(200, random_state=0)
    >>> model = SVR(gamma=20).fit(X, y)
    >>> ax = plot_fit(model, X, y)
    >>> len(ax.lines)
    1
    """
    picture = _Picture(model, X, 1, "plot_fit", ax)
    ax, samples = picture.ax, picture.samples
    low, high = picture.frame[0]
    x_grid = np.linspace(low, high, resolution)
    curve = np.asarray(model.predict(x_grid[:, None])).ravel()
    shown = [curve]
    handles = []
    if samples is not None and y is not None:
        targets = np.asarray(y, dtype=float).ravel()
        shown.append(np.quantile(targets, [0.01, 0.99]))
        picture.show_samples(targets, c=SAMPLE_COLOR, alpha=0.45)
        handles.append(drawing.legend_marker("samples", marker="o", color=SAMPLE_COLOR, size=5))
    (line,) = ax.plot(
        x_grid, curve, color=drawing.CURVE_COLOR, linewidth=2.4, zorder=3, label="model"
    )
    handles.append(line)
    if show_dictionary:
        handles += picture.show_dictionary(40)
    lowest, highest = min(s.min() for s in shown), max(s.max() for s in shown)
    pad = 0.06 * (highest - lowest) or 1.0
    ax.set_xlim(low, high)
    ax.set_ylim(lowest - pad, highest + pad)
    drawing.grid_lines(ax)
    if show_legend:
        drawing.legend_outside(ax, handles)
    return picture.finish()


def plot_value_surface(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    resolution: int = 300,
    show_dictionary: bool = True,
    show_legend: bool = True,
) -> Axes:
    """Draw the values a regressor with two features gives in the plane.

    Parameters
    ----------
    model : fitted regressor with 2 features
        With `predict`; `dictionary_` (M, 2) is drawn if present.
    X : (n, 2) array, default=None
        Samples to draw. They, or else the dictionary, set the range of the axes.
    y : (n,) array, default=None
        Their targets, drawn in the colours of the surface.
    ax, resolution, show_dictionary, show_legend
        As for :func:`plot_decision_surface`; the legend is a colour bar.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVR
    >>> from kernelstream.evaluation import plot_value_surface
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> ax = plot_value_surface(SVR().fit(X, X.sum(axis=1)), X)
    >>> len(ax.images)
    1
    """
    picture = _Picture(model, X, 2, "plot_value_surface", ax)
    x_grid, y_grid, grid = picture.grid(resolution)
    values = np.asarray(model.predict(grid)).reshape(len(y_grid), len(x_grid))
    image = picture.show_map(values, cmap=VALUE_COLORS)
    if picture.samples is not None:
        style: dict[str, Any] = {"c": INK, "alpha": 0.35}
        if y is not None:
            style = {"c": np.asarray(y, dtype=float), "cmap": VALUE_COLORS, "norm": image.norm}
        picture.show_samples(picture.samples[:, 1], **style)
    if show_dictionary:
        picture.show_dictionary(46)
    if show_legend:
        picture.ax.figure.colorbar(image, ax=picture.ax)
    return picture.finish()


class _Picture:
    """A model with one or two features, its samples and its dictionary on the same axes."""

    def __init__(
        self, model: Any, X: ArrayLike | None, features: int, caller: str, ax: Axes | None
    ) -> None:
        plt = drawing.import_pyplot()
        self.model = model
        self.features = features
        points: Any = getattr(model, "dictionary_", None)
        points = points.toarray() if hasattr(points, "toarray") else points
        self.dictionary = None if points is None else np.asarray(points, dtype=float)
        found = features if self.dictionary is None else self.dictionary.shape[1]
        found = getattr(model, "n_features_in_", found)
        if found != features:
            plural = "feature" if features == 1 else "features"
            raise ValueError(
                f"{caller} draws models with {features} {plural}; "
                f"this {type(model).__name__} has {found}."
            )
        self.samples = None if X is None else _as_points(X, features)
        #: Range per feature.
        self.frame = _bounds([p for p in (self.samples, self.dictionary) if p is not None])
        if ax is None:
            size = (7.2, 4.4) if features == 1 else (6.4, 5.6)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        self.ax: Any = ax

    def grid(self, resolution: int) -> tuple[Any, Any, Any]:
        """Two axes, and all points on both."""
        lengths = self.frame[:, 1] - self.frame[:, 0]
        if self.aspect == "auto":
            lengths = np.ones(2)  # else cells are squares
        counts = np.maximum(2, np.round(resolution * lengths / lengths.max())).astype(int)
        x_grid, y_grid = map(np.linspace, *self.frame.T, counts)
        points = np.column_stack([axis.ravel() for axis in np.meshgrid(x_grid, y_grid)])
        return x_grid, y_grid, points

    @property
    def aspect(self) -> Literal["equal", "auto"]:
        """One scale for both features, unless one of them would be too thin a strip to see."""
        lengths = self.frame[:, 1] - self.frame[:, 0]
        return "equal" if lengths.max() <= THINNEST_STRIP * lengths.min() else "auto"

    def show_map(self, values: Any, **style: Any) -> Any:
        place = {"extent": tuple(self.frame.ravel()), "origin": "lower", "aspect": self.aspect}
        return self.ax.imshow(values, interpolation="bilinear", **place, **style)

    def show_samples(self, heights: Any, **style: Any) -> None:
        assert self.samples is not None
        size = drawing.marker_size(len(self.samples))
        self.ax.scatter(self.samples[:, 0], heights, s=size, linewidths=0, zorder=2, **style)

    def show_dictionary(self, size: float) -> list[Any]:
        """Draw the points, if there are any; returns their entry of the legend."""
        points = self.dictionary
        if points is None or not len(points):
            return []
        heights = self.model.predict(points) if self.features == 1 else points[:, 1]
        # A thin white rim keeps the points apart from each other and from dark samples.
        rim = {"edgecolors": "white", "linewidths": 1.1}
        self.ax.scatter(points[:, 0], np.ravel(heights), s=size, c=INK, zorder=4, **rim)
        return [drawing.legend_marker("dictionary", marker="o", color=INK, size=7.5)]

    def finish(self, test_error: float | None = None) -> Axes:
        drawing.clean_axes(self.ax)
        parts = [type(self.model).__name__]
        if self.dictionary is not None:
            parts.append(f"{len(self.dictionary)} points")
        if test_error is not None:
            parts.append(f"test error {100 * test_error:.1f} %")
        self.ax.set_title("  ·  ".join(parts), loc="left", fontsize=11, color=INK)
        return self.ax  # type: ignore[no-any-return]


def _as_points(X: ArrayLike, n_features: int) -> NDArray[np.float64]:
    points = np.asarray(X, dtype=float)
    if n_features == 1 and points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or points.shape[1] != n_features or len(points) == 0:
        raise ValueError(f"X must have shape (n, {n_features}), n > 0; got {points.shape}.")
    return points


def _bounds(point_sets: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Range per feature, (p, 2), of the first set that has points, with a border of 5 %."""
    for points in point_sets:
        if len(points):
            low, high = points.min(axis=0), points.max(axis=0)
            pad = np.where(high > low, 0.05 * (high - low), 0.5)
            return np.column_stack([low - pad, high + pad])
    raise ValueError("Nothing sets the range of the axes: the dictionary is empty, so pass X.")


def _class_index(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Position of each label in `classes`, -1 for a label the model has not met."""
    match = np.asarray(labels).ravel()[:, None] == classes[None, :]
    return np.where(match.any(axis=1), match.argmax(axis=1), -1)


def _class_colors(n_classes: int, colors: Sequence[str] | None) -> NDArray[np.float64]:
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    if colors is not None and len(colors) < n_classes:
        raise ValueError(f"colors must name {n_classes} colours, got {len(colors)}.")
    if colors is not None or n_classes <= len(PALETTE):
        return np.array([to_rgb(color) for color in (colors or PALETTE)[:n_classes]])
    return np.asarray(colormaps["turbo"](np.linspace(0.06, 0.94, n_classes)))[:, :3]


def _leads(
    model: Any, grid: NDArray[np.float64], winner: NDArray[np.int64], n_classes: int
) -> list[NDArray[np.float64]]:
    """Per class, by how much it leads the best of the others: zero on its boundary."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(grid))
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.ndim == 1:
            return [scores, -scores] if n_classes == 2 else []
        if scores.shape[1] == n_classes:
            top = np.sort(scores, axis=1)[:, -2:]
            is_top = scores == top[:, 1:]
            return [
                scores[:, c] - np.where(is_top[:, c], top[:, 0], top[:, 1])
                for c in range(n_classes)
            ]
    return [np.where(winner.ravel() == c, 0.5, -0.5) for c in range(n_classes)]


def _contour(
    ax: Axes, x: Any, y: Any, field: NDArray[np.float64], level: float, **style: Any
) -> None:
    if field.min() < level < field.max():  # Matplotlib warns about a level that is not met
        ax.contour(x, y, field, levels=[level], colors=INK, zorder=3, **style)
