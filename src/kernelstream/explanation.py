"""Why a model predicts what it does, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from kernelstream.importances import features_by_column
from kernelstream.streams.batch import Batch, Text

#: Stored points that are named, and entries of each.
_POINTS, _ENTRIES = 3, 4


@dataclass(frozen=True)
class StoredPoint:
    """A stored point that took part in a prediction."""

    effect: float  # what it adds
    entries: dict[str, float]  # its largest features


@dataclass(frozen=True)
class Explanation:
    """What decided a prediction.

    ``columns`` holds, by raw column, by how much the prediction would change the other way if
    nothing were known of the column (its value missing): of a number in the target's units, of a
    class in the lead it has over the others, positive where the column speaks for it. Texts are
    named with their value. Largest effects come first, those of ``points`` too. Of experts they
    are what their functions add, by the weight each expert has.
    """

    prediction: Any
    columns: dict[str, float]
    points: list[StoredPoint]

    def __str__(self) -> str:
        return ", ".join(f"{name} {effect:+.3g}" for name, effect in self.columns.items())


def explain(model: Any, batch: Batch, most: int) -> list[Explanation]:
    """Each row's prediction by a StreamModel with its ``most`` largest effects."""
    preparation, estimator = model.preparation, model.estimator
    X = preparation.transform(batch)
    dense = X.toarray() if issparse(X) else np.array(X)
    columns = features_by_column(preparation)
    without = _unknown(preparation)
    predicted = estimator.predict(X)
    own = _leads(estimator, X, predicted)
    effects = np.empty((len(columns), len(dense)))
    for row, places in zip(effects, columns.values(), strict=True):
        changed = dense.copy()
        changed[:, places] = without[places]
        row[:] = own - _leads(estimator, changed, predicted)
    if estimator.model_order_:
        points, votes = _votes(model.model, X, predicted)
    else:  # rows may be waiting, for the unit of the target
        points, votes = np.empty((0, 0)), np.empty((len(predicted), 0))
    names = preparation.feature_names_out
    found = []
    for i, prediction in enumerate(predicted.tolist()):
        order = np.argsort(-np.abs(effects[:, i]), kind="stable")
        labels = [_with_value(name, batch, i) for name in columns]
        ranked = {labels[k]: float(effects[k, i]) for k in order[:most] if effects[k, i] != 0.0}
        found.append(Explanation(prediction, ranked, _points(points, votes[i], names)))
    return found


def _unknown(preparation: Any) -> NDArray[np.float64]:
    """The features of a row of which nothing is known: the mean of numbers, no text, no date."""
    result = np.zeros(preparation.width)
    if not preparation.standardise:
        units = preparation._units
        means = units.columns.mean if hasattr(units, "columns") else units.running.mean
        named = len(preparation._measured)
        result[:named] = means[:named]
        if preparation._dense_width:
            first = preparation.feature_names_out.index("matrix[0]")
            result[first : first + preparation._dense_width] = means[named:]
    return result


def _leads(estimator: Any, X: Any, predicted: NDArray[Any]) -> NDArray[np.float64]:
    """(n,) numbers, or by how much the predicted class leads."""
    if not hasattr(estimator, "decision_function"):
        return estimator.predict(X)  # type: ignore[no-any-return]
    values, classes = estimator.decision_function(X), estimator.classes_
    if len(classes) < 2:
        return np.zeros(len(predicted))
    if values.ndim == 1:
        return np.where(predicted == classes[1], values, -values)
    rows, place = np.arange(len(predicted)), np.searchsorted(classes, predicted)
    own = values[rows, place]
    values[rows, place] = -np.inf
    return own - values.max(axis=1)  # type: ignore[no-any-return]


def _votes(
    model: Any, X: Any, predicted: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The stored points, and (n, points) what each adds to the prediction."""
    if hasattr(model, "_point_votes"):
        points, votes = model._point_votes(X)
        if not hasattr(model, "classes_"):
            return points, votes[:, :, 0]
        place = np.searchsorted(model.classes_, predicted)
        own = np.take_along_axis(votes, place[:, None, None], axis=2)[:, :, 0]
        return points, own - (votes.sum(axis=2) - own) / max(votes.shape[2] - 1, 1)
    points, weights = model.dictionary_, model.dual_coef_
    values = model.kernel_(X, points)
    if not hasattr(model, "classes_"):
        return points, values * weights[0]
    if len(weights) == 1:
        sign = np.where(predicted == model.classes_[0], -1.0, 1.0)
        return points, values * weights[0] * sign[:, None]
    return points, values * weights[np.searchsorted(model.classes_, predicted)]


def _points(points: Any, votes: NDArray[np.float64], names: list[str]) -> list[StoredPoint]:
    found = []
    for place in np.argsort(-np.abs(votes), kind="stable")[:_POINTS].tolist():
        point = points[place]
        largest = np.argsort(-np.abs(point), kind="stable")[:_ENTRIES]
        entries = {names[k]: float(point[k]) for k in largest if point[k] != 0.0}
        found.append(StoredPoint(float(votes[place]), entries))
    return found


def _with_value(name: str, batch: Batch, row: int) -> str:
    """A text column with the text it has in a row."""
    column = batch.columns.get(name)
    if not isinstance(column, Text):
        return name
    code = int(column.codes[row])
    return f"{name} is missing" if code < 0 else f"{name}={column.values[code]}"
