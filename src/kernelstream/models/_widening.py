"""More features for a model that has learned: as if they had been there, always 0, before."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelstream.core.feature_state import FeatureState
from kernelstream.core.state import State
from kernelstream.models._auto._committee import Committee
from kernelstream.models._auto._group import Group
from kernelstream.models._auto._learning import UnitState
from kernelstream.models._auto._succession import Succession
from kernelstream.models._auto._tracker import Tracker
from kernelstream.models._auto._units import WIDEST
from kernelstream.models._experts import ExpertEstimator

#: Features of a model that stores points, so that their memory is bounded.
_MOST = 4096


def can_widen(model: Any) -> bool:
    """Whether a model that has learned can be given more features.

    Those on a state of their own, random features for example, cannot: they depend on the width.
    """
    return isinstance(model._state, State | FeatureState | UnitState)


def most_features(model: Any) -> int:
    """How many features a model, new or not, may have when they come one by one."""
    return WIDEST if isinstance(model, ExpertEstimator) else _MOST


def add_features(model: Any, more: int) -> None:
    """Append ``more`` features; what was learned about the others stays, gamma included."""
    if not more:
        return
    state, features = model._fitted(), model.n_features_in_ + more
    if isinstance(state, UnitState):
        if features > WIDEST:
            raise ValueError(
                f"{type(model).__name__} takes up to {WIDEST} features that come one by one, and "
                f"these are {features}: choose among them, or use another model"
            )
        _widen_units(state, more)
    else:
        model._state = state._replace(points=_longer(state.points, more, axis=0))
        if model._pending is not None:
            rows = model._pending.rows
            rows = rows._replace(dense=_longer(rows.dense, more, axis=1))
            model._pending = type(model._pending)(
                rows, model._pending.targets, model._pending.weights
            )
    model.n_features_in_ = features
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    model._forget_plan()


def _longer(array: Any, more: int, axis: int, value: float = 0.0) -> Any:
    widths = [(0, more if each == axis else 0) for each in range(array.ndim)]
    return np.pad(array, widths, constant_values=value)


def _larger(square: Any, more: int, diagonal: float) -> Any:
    """A square matrix with more rows and columns; (0, 0) stays."""
    if not len(square):
        return square
    found = np.pad(square, ((0, more), (0, more)))
    new = np.arange(len(square), len(found))
    found[new, new] = diagonal
    return found


def _widen_units(state: UnitState, more: int) -> None:
    rows = state.rows
    rows.features, rows.width = rows.features + more, rows.width + more
    if rows.moving:
        columns = (_longer(part, more, axis=0) for part in rows.columns)
        rows.columns = type(rows.columns)(*columns)
    experts = state.experts
    if isinstance(experts, Tracker):
        _widen_group(experts.group, more)
    elif isinstance(experts, Succession):
        for committee in experts.committees:
            _widen_committee(committee, more)
        experts.latest = experts.latest.widened(more)
        if experts.forest is not None:
            experts.forest.features += more


def _widen_group(group: Group, more: int) -> None:
    state = group.state
    group.state = state._replace(
        points=_longer(state.points, more, axis=0),
        scales=_longer(state.scales, more, axis=0, value=1.0),
        slopes=_longer(state.slopes, more, axis=0),
        metric=_larger(state.metric, more, 0.0),
    )
    group.base = _longer(group.base, more, axis=0, value=1.0)
    group.turn = _larger(group.turn, more, 1.0)


def _widen_committee(experts: Committee, more: int) -> None:
    end = 1 + experts.features  # of the features, behind the constant; last targets may follow
    for group in experts.groups:
        if group is not None:
            _widen_group(group, more)
    for place, linear in enumerate(experts.linear):
        new = np.full(more, end)
        weights = np.insert(linear.weights, new, 0.0, axis=1)
        if len(linear.covariance) == 1:
            covariance = np.insert(linear.covariance, new, 1.0, axis=1)
        else:
            covariance = np.insert(np.insert(linear.covariance, new, 0.0, axis=1), new, 0.0, axis=0)
            covariance[range(end, end + more), range(end, end + more)] = 1.0
        experts.linear[place] = linear._replace(covariance=covariance, weights=weights)
    experts.features += more
