"""Several trained models as one: the reduce step of any training in parts."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from kernelstream.compression.komp import compressed_state
from kernelstream.core.state import SMALLEST_CAPACITY, resize
from kernelstream.expansion import check_error, checked_shares
from kernelstream.models._base import KernelEstimator
from kernelstream.registry import Method, register

#: Fields of the record that add up over the models.
COUNTED = ("seen", "taken", "removed", "forced", "dependent", "error_spent")


def needs_its_points(model: Any) -> str:
    """Why a model's points cannot be replaced by others; nothing where they can."""
    factored = getattr(model, "_factored", False)
    without = "" if factored else "it keeps no factor of its kernel matrix"
    return str(model._needs_its_points or without)


def merge(
    models: Sequence[Any],
    weights: Sequence[float] | None = None,
    error: float | None = None,
    max_points: int | None = None,
) -> Any:
    """The mean function of several models, compressed, as a model that can go on learning.

    Parameters
    ----------
    models : sequence of estimators
        All of one class, with the same kernel and features, in the same order where they have
        names. They stay as they are. Classes that only some of them have met are taken over.
    weights : sequence of float, optional
        Not negative; by default in proportion to the samples seen. Divided by their sum.
    error : float, optional
        The distance in the RKHS that may be lost. Without it only what other points span to
        eight digits is merged, unless ``max_points`` forces more.
    max_points : int, optional
        At most this many points remain, and never more than the first model allows.

    Returns
    -------
    model
        With the parameters of the first one.

    Examples
    --------
    >>> from kernelstream import POLKClassifier, make_multidist, merge
    >>> X, y, X_test, y_test = make_multidist(6000, n_test=1000, random_state=1)
    >>> parts = [POLKClassifier().fit(X[i::3], y[i::3]) for i in range(3)]
    >>> model = merge(parts, max_points=40)
    >>> model.model_order_ <= 40, bool(model.score(X_test, y_test) > 0.97)
    (True, True)
    """
    models = list(models)
    if not models:
        raise ValueError("merge needs at least one model")
    first = models[0]
    for model in models:
        if not isinstance(model, KernelEstimator):
            raise TypeError(
                "merge takes models of this package that are one kernel expansion, got "
                f"{type(model).__name__}: learn with POLK or COLK what is to be merged"
            )
        model._fitted()
        if why := needs_its_points(model):
            raise ValueError(
                f"{type(model).__name__} cannot be merged or compressed: {why}. Learn with "
                f"{model._smaller()}; functions alone can be: "
                "KernelExpansion.merge([model.expansion_, ...]), model.expansion_.compress(...)"
            )
        if type(model) is not type(first) or model._columns // model._outputs != (
            first._columns // first._outputs
        ):
            raise ValueError(f"{first!r} and {model!r} are of different kinds")
        if model.n_features_in_ != first.n_features_in_:
            raise ValueError(
                f"the models take {first.n_features_in_} and {model.n_features_in_} features"
            )
        if model._numbers_each != first._numbers_each:
            raise ValueError(
                f"the models learn {first._numbers_each} and {model._numbers_each} numbers a sample"
            )
        if model.kernel_ != first.kernel_:
            raise ValueError(
                f"the models live in different spaces: {first.kernel_!r} and {model.kernel_!r}; "
                "give all of them the same kernel and gamma"
            )
    _check_names(models)
    check_error(error)
    check_max_points(max_points)
    models = [copy.deepcopy(model).flush() for model in models]
    _share_classes(models)
    shares = checked_shares(weights, np.array([float(model.n_seen_) for model in models]))
    shares = shares / shares.max()  # their sum may be beyond the largest number
    shares = shares / shares.sum()
    result = models[0]
    outputs = result._outputs
    parts = []
    for model, share in zip(models, shares, strict=True):
        part = model._state.weights[: model._projected, : model.model_order_].T * share
        part[:, :outputs] *= model._state.status[0]["scale"]
        parts.append(part)
    limit = result._capacity_limit(result.n_features_in_)
    most = limit - result.batch_size  # a step needs room for its batch
    if max_points is not None:
        most = min(most, int(max_points))
    state = compressed_state(
        result.kernel_,
        np.concatenate([model.dictionary_ for model in models]),
        np.concatenate(parts),
        error or 0.0,
        most,
    )
    status = state.status[0]
    for name in COUNTED:
        status[name] += sum(model._state.status[0][name] for model in models)
    status["steps"] = max(model._state.status[0]["steps"] for model in models)
    status["random"] = result._state.status[0]["random"]
    for name in ("tracker", "threshold"):
        values = [model._state.status[0][name] for model in models]
        status[name] = float(np.dot(shares, values))
    result._take_predictions(models, shares)
    capacity = max(state.order, min(state.order + SMALLEST_CAPACITY, limit))
    result._state = resize(state, capacity, result._columns)
    result._restart_past()
    result._forget_plan()
    return result


def check_max_points(max_points: Any) -> None:
    """Refuse what is no number of points."""
    if max_points is None:
        return
    whole = isinstance(max_points, Integral) and not isinstance(max_points, bool)
    if not (whole and 1 <= max_points <= np.iinfo(np.int32).max):
        raise ValueError(
            f"max_points must be a whole number from 1 to {np.iinfo(np.int32).max}, got "
            f"{max_points!r}"
        )


def _check_names(models: list[Any]) -> None:
    """Refuse models whose columns mean different things; plain arrays name none."""
    named = [model for model in models if hasattr(model, "feature_names_in_")]
    for model in named[1:]:
        names, expected = list(model.feature_names_in_), list(named[0].feature_names_in_)
        if names != expected:
            raise ValueError(
                f"the models' features are {expected} and {names}: let all of them learn from "
                "the same columns in the same order"
            )


def _share_classes(models: list[Any]) -> None:
    """Give every model an output for every class that any of them has met."""
    if not hasattr(models[0], "classes_"):
        return
    known = models[0].classes_
    for model in models[1:]:
        if (known.dtype.kind == "U") != (model.classes_.dtype.kind == "U"):
            raise ValueError("some models have texts as classes, others numbers")
        known = np.union1d(known, model.classes_)
    for model in models:
        for label in np.setdiff1d(known, model.classes_):
            model._add_class(label)
    models[0]._fixed_classes = all(model._fixed_classes for model in models)


register(
    Method(
        name="functions",
        title="functions as values",
        description="evaluate, add, scale, inner products, fewer points, several models as one",
        names=("KernelExpansion", "merge"),
    )
)
