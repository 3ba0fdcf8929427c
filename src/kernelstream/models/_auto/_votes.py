"""What each stored point of experts adds to a prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.models._auto._group import SIZE, Group
from kernelstream.models._auto._mixtures import weights_of_any_row
from kernelstream.models._auto._tracker import Tracker
from kernelstream.models._auto._units import RowUnits


def point_votes(state: Any, rows: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The points of all groups in use, and what each adds for each row.

    Returns
    -------
    points : (M, features) array
        In the units that rows are measured in; 0 where features share columns.
    votes : (n, M, outputs) array
        Of numbers they add up, with what linear experts and the mean say, to the prediction. Of
        classes they are what is added before it is turned into probabilities.
    """
    measured = state.rows.measure(rows, learning=False)
    unit = 1.0 if state.targets is None else state.targets.unit
    points = [np.empty((0, state.rows.features))]
    votes = [np.empty((len(measured), 0, state.experts.outputs))]
    for group, weights in _groups(state.experts):
        points.append(_points(group, state.rows))
        votes.append(unit * _votes(group, weights, measured))
    return np.concatenate(points), np.concatenate(votes, axis=1)


def _groups(experts: Any) -> list[tuple[Group, NDArray[np.float64]]]:
    """Groups in use and (targets, experts) weights in the mixture for any row; one for classes."""
    if isinstance(experts, Tracker):
        return [(experts.group, np.ones((1, 1)))]
    committee = experts.leading
    mixture = committee.mixture
    used = mixture.used[-1] != 0
    if committee.numbers:
        weights = weights_of_any_row(mixture, committee.targets)
    else:
        by_way = np.concatenate([mixture.shares[-1:], mixture.powers[-1]])
        weights = np.where(used, mixture.ways[-1:] @ by_way, 0.0)
    found = []
    for place, group in enumerate(committee.groups):
        mine = slice(SIZE * place, SIZE * (place + 1))
        if group is not None and used[mine].any():
            found.append((group, weights[:, mine]))
    return found


def _votes(group: Group, weights: Any, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(group.turn):
        rows = rows @ group.turn.T
    state, n = group.state, group.order
    status, points = state.status[0], state.points[:, :n].T
    squares = (
        (np.square(rows) @ state.scales)[:, None]
        + np.square(points) @ state.scales
        - 2.0 * (rows * state.scales) @ points.T
    )
    kernel = status["amplitude"] * np.exp(-status["gamma"] * np.maximum(squares, 0.0)) + 1.0
    functions = group.coefficients().reshape(-1, group.outputs, n)
    weights = np.broadcast_to(weights, (group.outputs, len(functions)))
    return kernel[:, :, None] * np.einsum("oe,eon->no", weights, functions)  # type: ignore[no-any-return]


def _points(group: Group, units: RowUnits) -> NDArray[np.float64]:
    points = group.state.points[:, : group.order].T
    if units.features > units.width:  # nobody can say which feature it was
        return np.zeros((len(points), units.features))
    return points @ np.linalg.pinv(group.turn).T if len(group.turn) else points.copy()
