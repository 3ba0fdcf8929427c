"""Parts of a state as plain numbers and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import rq

from kernelstream.core.experts.group import GroupState
from kernelstream.core.triangles import pack
from kernelstream.models._auto._group import TRIANGLES, Group, live, unpacked
from kernelstream.parts import Arrays

_SETTINGS = ("scale", "power", "shrinkage")


def group_header(group: Group) -> dict[str, Any]:
    return {name: float(getattr(group, name)) for name in _SETTINGS} | {
        "status": record(group.state.status)
    }


def group_arrays(group: Group) -> Arrays:
    arrays = {
        name: np.ascontiguousarray(live(name, getattr(group.state, name), group.order))
        for name in GroupState._fields[1:]
    }
    for name in TRIANGLES:
        arrays[name] = _flat(unpacked(getattr(group.state, name), group.order))
    if not len(group.state.noises):  # of several targets alone
        del arrays["noises"]
    return {**arrays, "turn": group.turn.copy(), "base": group.base.copy()}


def read_group(
    features: int, outputs: int, numbers: bool, sizes: tuple[int, ...], rates: Any,
    note: Mapping[str, Any], arrays: Arrays,
) -> Group:  # fmt: skip
    """The group behind a header and arrays, if it has one of these sizes."""
    if "factor" in arrays:
        arrays = _triangular(arrays)
    settings = [note[name] for name in _SETTINGS]
    if not all(type(number) is float and 0.0 < number < 1e300 for number in settings):
        raise ValueError("the settings of a group are out of range")
    most = note["status"]["most"]
    if most not in sizes:
        raise ValueError("the size of a group contradicts the state")
    scale, power, shrinkage = settings
    full = len(arrays["turn"]) > 0
    group = Group(features, outputs, most, scale, numbers, 0, power, shrinkage, full, rates)
    fill_record(group.state.status, note["status"])
    status = group.state.status[0]
    if not 0 <= status["points"] <= most or status["numbers"] != numbers:
        raise ValueError("the points of a group contradict the state")
    if min(status["gamma"], status["amplitude"], status["noise"]) <= 0.0 or status["interval"] < 0:
        raise ValueError("the settings of a group are out of range")
    arrays = {"noises": np.empty(0), **arrays}
    for name in GroupState._fields[1:]:
        if name in TRIANGLES:
            lower = np.zeros((group.order, group.order))
            held = _flat(lower)
            fill({name: held}, arrays)
            lower[np.tril_indices(group.order)] = held
            pack(lower, getattr(group.state, name))
        else:
            fill({name: live(name, getattr(group.state, name), group.order)}, arrays)
    fill({"turn": group.turn, "base": group.base}, arrays)
    if min(part.min(initial=0.0) for part in (group.state.scales, group.state.slopes)) < 0.0:
        raise ValueError("the scales of a group are negative")
    if group.state.noises.min(initial=1.0) <= 0.0:
        raise ValueError("the noise of a target is not positive")
    if not group.residual() <= 1e-3:
        raise ValueError("the factor of a group does not belong to its points")
    return group


def _flat(lower: NDArray[np.float64]) -> NDArray[np.float64]:
    """As files hold a lower triangle: row by row, and nothing else."""
    return lower[np.tril_indices(len(lower))]


def _triangular(arrays: Arrays) -> Arrays:
    """Arrays as earlier versions wrote them, in the coordinates that there are now.

    They had inverse(K) = S S^T with a full S, so that coordinates are rotated.
    """
    kept = {name: array for name, array in arrays.items() if name not in ("factor", "diagonal")}
    factor, lower = arrays["factor"], arrays["covariance"]
    square = factor.ndim == 2 and factor.shape == (factor.shape[0],) * 2 == lower.shape
    if not square or arrays["weights"].shape[1:] != factor.shape[1:]:
        raise ValueError("the factor of a group does not belong to its points")
    if not len(factor):
        return {**kept, "inverse": np.empty(0), "covariance": np.empty(0)}
    upper, turn = rq(factor)
    covariance = turn @ (lower + np.tril(lower, -1).T) @ turn.T
    return {
        **kept, "inverse": _flat(upper.T), "covariance": _flat(covariance),
        "weights": arrays["weights"] @ turn.T,
    }  # fmt: skip


def record(status: NDArray[np.void]) -> dict[str, Any]:
    return {name: status[0][name].item() for name in status.dtype.names or ()}


def fill_record(status: NDArray[np.void], values: Mapping[str, Any]) -> None:
    if set(values) != set(status.dtype.names or ()):
        raise ValueError("the numbers of the state are not those of this version")
    for name, value in values.items():
        kind = status.dtype[name].kind
        fits = type(value) is (float if kind == "f" else int) and (
            abs(value) < {"f": np.inf, "i": 2**62, "u": 2**64}[kind]
        )
        if not fits or (kind == "u" and value < 0):
            raise ValueError(f"{name} is not a number that a state can hold")
        status[name] = value


def fill(targets: Mapping[str, NDArray[Any]], arrays: Mapping[str, Any]) -> None:
    """Copy arrays of a document into those of a state, if they fit."""
    for name, target in targets.items():
        array = arrays[name]
        if array.shape != target.shape or array.dtype != target.dtype:
            raise ValueError(f"{name} contradicts the other parts of the state")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")
        target[...] = array
