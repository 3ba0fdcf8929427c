"""How error and size of an AVM depend on delta, beta and rho (Figures 2 and 3 of the paper)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier

from kernelstream.compression import coverage
from kernelstream.errors import CapWarning
from kernelstream.evaluation import drawing
from kernelstream.evaluation.drawing import PALETTE, VALUE_COLORS
from kernelstream.rows import as_finite_rows, count_rows, slice_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DiameterCurve:
    """Error and size of an AVM for several diameters of its cells, smallest first."""

    metric: str  #: "mistake rate" or "RMSE", of predict-then-learn
    deltas: Floats
    errors: Floats
    points: NDArray[np.int64]  #: stored at the end
    forced: NDArray[np.int64]  #: samples outside all cells, for which there was no room
    microseconds: Floats  #: per sample

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The table by columns, as ``pandas.DataFrame`` takes it."""
        return {
            "delta": self.deltas,
            self.metric: self.errors,
            "points": self.points,
            "no room": self.forced,
            "microseconds per sample": self.microseconds,
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw error and number of points against delta; save the picture where a path is given."""
        figure, axes = drawing.import_pyplot().subplots(figsize=(6.4, 4.0), layout="constrained")
        axes.plot(self.deltas, self.errors, "o-", color=PALETTE[0])
        axes.set_ylabel(self.metric, color=PALETTE[0])
        axes.set_xlabel("diameter of the cells, delta")
        drawing.clean_axes(axes)
        size = drawing.right_axis(axes)
        size.plot(self.deltas, self.points, "s--", color=PALETTE[4])
        size.set_ylabel("points", color=PALETTE[4])
        size.set_ylim(bottom=0)
        return drawing.saved(figure, path)


@dataclass(frozen=True)
class SamplingSurface:
    """Error and size of an AVM that stores some samples themselves, by beta and rho."""

    metric: str  #: "mistake rate" or "RMSE", of predict-then-learn over all samples
    betas: Floats
    rhos: Floats
    errors: Floats  #: (betas, rhos)
    points: NDArray[np.int64]  #: (betas, rhos), stored at the end
    forced: NDArray[np.int64]  #: (betas, rhos), samples for which there was no room

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The table by columns, one row for each pair."""
        betas, rhos = np.meshgrid(self.betas, self.rhos, indexing="ij")
        return {
            "beta": betas.ravel(),
            "rho": rhos.ravel(),
            self.metric: self.errors.ravel(),
            "points": self.points.ravel(),
            "no room": self.forced.ravel(),
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw error and number of points as maps; save the picture where a path is given."""
        plt = drawing.import_pyplot()
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
        maps = ((left, self.errors, self.metric), (right, self.points, "points"))
        for axes, values, label in maps:
            image = axes.imshow(values, origin="lower", aspect="auto", cmap=VALUE_COLORS)
            axes.set_xticks(range(len(self.rhos)), [f"{rho:.3g}" for rho in self.rhos])
            axes.set_yticks(range(len(self.betas)), [f"{beta:.3g}" for beta in self.betas])
            axes.set(xlabel="rho", ylabel="beta")
            figure.colorbar(image, ax=axes, label=label)
            drawing.clean_axes(axes)
        return drawing.saved(figure, path)


def diameter_curve(
    model: Any, X: ArrayLike, y: ArrayLike, deltas: Sequence[float] | None = None, *, skip: int = 0
) -> DiameterCurve:
    """Run copies of an AVM over a stream, each with cells of another diameter.

    Parameters
    ----------
    model : AVMClassifier or AVMRegressor
        Its other parameters are used as they are; the model itself is not touched.
    X, y : arrays
        Samples in the order of the stream: each is predicted, then learned. Classes are met as
        they come; the first sample of a classifier is learned, but not counted.
    deltas : sequence of float, optional
        By default :func:`candidate_deltas`.
    skip : int, default=0
        So many samples at the beginning are learned but not counted: the first steps are large,
        and with a squared loss their errors can hide all the others.

    Returns
    -------
    DiameterCurve

    Examples
    --------
    >>> from kernelstream import AVMClassifier, make_multidist
    >>> from kernelstream.evaluation import diameter_curve
    >>> X, y = make_multidist(2000, random_state=1)
    >>> curve = diameter_curve(AVMClassifier(gamma=1.0), X, y, deltas=[0.5, 1.0, 2.0])
    >>> bool(curve.points[0] > curve.points[1] > curve.points[2])
    True
    >>> bool(curve.errors[0] < 0.1)
    True
    """
    if not hasattr(model, "delta"):
        raise ValueError(f"{type(model).__name__} has no cells: use AVMClassifier or AVMRegressor")
    if isinstance(model.coverage, coverage.Coverage):
        raise ValueError("the model's coverage brings its own delta: name only its shape")
    if not 0 <= skip < np.shape(X)[0] - is_classifier(model):
        raise ValueError(f"skip must leave samples of the {np.shape(X)[0]} to count, got {skip!r}")
    chosen = np.sort(np.asarray(candidate_deltas(X) if deltas is None else deltas, np.float64))
    if not len(chosen):
        raise ValueError("deltas is empty: there is nothing to run")
    _run(model, X, y, skip, delta=float(chosen[-1]))  # loads machine code, not to be timed
    runs = [_run(model, X, y, skip, delta=float(delta)) for delta in chosen]
    return DiameterCurve(_metric(model), chosen, *map(np.array, zip(*runs, strict=True)))


def beta_rho_surface(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    betas: Sequence[float] = (0.0, 1.0, 2.5, 5.0, 10.0),
    rhos: Sequence[float] = (0.5, 0.75, 1.0, 1.25, 1.5),
) -> SamplingSurface:
    """Run copies of an AVM over a stream for each beta and rho.

    Parameters
    ----------
    model, X, y
        As for :func:`diameter_curve`. Give the model a delta, and room in ``max_points``.
    betas, rhos : sequences of float
        ``exact_probability`` and ``exact_decay``; the paper's range is the default.

    Returns
    -------
    SamplingSurface

    Examples
    --------
    >>> from kernelstream import AVMClassifier, make_multidist
    >>> from kernelstream.evaluation import beta_rho_surface
    >>> X, y = make_multidist(1000, random_state=1)
    >>> model = AVMClassifier(gamma=1.0, delta=1.0, random_state=0)
    >>> surface = beta_rho_surface(model, X, y, betas=[0.0, 10.0], rhos=[0.5, 1.5])
    >>> bool(surface.points[0, 0] == surface.points[0, 1])  # beta = 0: rho plays no part
    True
    >>> bool(surface.points[1, 0] > surface.points[1, 1])
    True
    """
    runs = [
        [_run(model, X, y, 0, exact_probability=float(b), exact_decay=float(r)) for r in rhos]
        for b in betas
    ]
    errors, points, forced = (
        np.array([[run[part] for run in row] for row in runs]) for part in range(3)
    )
    return SamplingSurface(
        _metric(model), np.asarray(betas, np.float64), np.asarray(rhos, np.float64), errors,
        points, forced,
    )  # fmt: skip


def candidate_deltas(X: ArrayLike, n: int = 9) -> Floats:
    """Diameters worth trying: from that of ``delta="auto"`` to the upper end of the paper's range.

    Section 9.2 looks around twice the mean pairwise distance, give or take two deviations; the
    distances are those of the first 200 samples.
    """
    rows = as_finite_rows(X)
    first = slice_rows(rows, 0, min(coverage.FIRST_SAMPLES, count_rows(rows)))
    mean, deviation = coverage.distance_statistics(first)
    if not mean > 0.0:
        raise ValueError("the first samples are all alike: give deltas")
    return np.linspace(coverage.suggested_delta(first), 2.0 * (mean + deviation), n)


def _run(
    model: Any, X: Any, y: Any, skip: int, **parameters: float
) -> tuple[float, int, int, float]:
    """Error, points, samples without room and microseconds per sample of one pass."""
    fresh = clone(model).set_params(**parameters)
    truth, classes = np.asarray(y), is_classifier(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapWarning)  # to be expected of some, and in the result
        if classes:  # they are met as the stream has them: a model that knows all is another one
            fresh.partial_fit(X[:1], truth[:1])
            X, truth, skip = X[1:], truth[1:], max(skip - 1, 0)
        start = perf_counter()
        predicted = fresh.predict_then_learn(X, truth)
        microseconds = 1e6 * (perf_counter() - start) / len(truth)
        fresh.flush()
    wrong = (predicted != truth if classes else (predicted - truth) ** 2)[skip:]
    error = float(np.mean(wrong)) if classes else float(np.sqrt(np.mean(wrong)))
    return error, fresh.model_order_, fresh.n_forced_, microseconds


def _metric(model: Any) -> str:
    return "mistake rate" if is_classifier(model) else "RMSE"
