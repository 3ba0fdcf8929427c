"""What an automatic model has learned: units and experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.group import GroupState
from kernelstream.core.kernel import Rows
from kernelstream.core.threads import one_thread
from kernelstream.models._auto._committee import Committee, Sizes
from kernelstream.models._auto._group import SIZE, Group, live
from kernelstream.models._auto._history import History
from kernelstream.models._auto._units import RowUnits, TargetUnits
from kernelstream.parts import Arrays, part_of, prefixed
from kernelstream.rows import count_rows, slice_rows

_NOTHING = np.empty(0)


class AutoState:
    """Units of rows and targets, and the committee that learns in them."""

    def __init__(
        self, features: int, outputs: int, numbers: bool, moving: bool, sizes: Sizes,
        delayed: bool, forget: bool | str, seed: int,
    ) -> None:  # fmt: skip
        self.rows = RowUnits(features, moving)
        self.targets = TargetUnits() if numbers else None
        self.committee = Committee(self.rows.width, outputs, numbers, sizes, delayed, forget, seed)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.committee.nbytes

    @property
    def order(self) -> int:
        return self.committee.order

    # ---- rows -------------------------------------------------------------------------

    @one_thread()
    def learn(self, rows: Rows, targets: Any, weights: Any, predictions: Any = None) -> None:
        """Learn in order; ``predictions`` (n, outputs) receives those from just before."""
        committee, first, n = self.committee, 0, count_rows(rows)
        while first < n:
            room = committee.room()
            if self.targets is not None and self.targets.scale == 0.0:
                room = 1
            end = min(n, first + room)
            part = self.rows.measure(slice_rows(rows, first, end), learning=True)
            made = self._step(part, targets[first:end], weights[first:end])
            if predictions is not None:
                predictions[first:end] = made
            first = end

    def _step(self, rows: Any, targets: Any, weights: Any) -> NDArray[np.float64]:
        committee, units = self.committee, self.targets
        if units is None:
            return committee.run(rows, targets, weights)[:, 0]
        if units.scale == 0.0:  # units must know the target before it can be learned
            made = units.restore(committee.run(rows, _NOTHING, weights)[:, 0])
            new = units.count == 0.0
            units.follow(targets)
            change = units.refit()
            if not new:
                committee.change_units(*change)
            committee.run(rows, units.measure(targets), weights)
            return made
        made = units.restore(committee.run(rows, units.measure(targets), weights)[:, 0])
        units.follow(targets)
        if committee.seen & (committee.seen - 1) == 0:
            committee.change_units(*units.refit())
        return made

    @one_thread()
    def predict(self, rows: Rows, following: bool = False) -> NDArray[np.float64]:
        """(n, outputs): probabilities, or numbers, of any rows, or of the next of the stream."""
        committee, n = self.committee, count_rows(rows)
        out = np.empty((n, committee.outputs))
        block = max(1, 2**18 // (committee.experts * committee.outputs))
        for first in range(0, n, block):
            end = min(n, first + block)
            part = self.rows.measure(slice_rows(rows, first, end), learning=False)
            made = committee.run(part, _NOTHING, np.ones(end - first))
            out[first:end] = made[:, 0 if following else -1]
        return out if self.targets is None else self.targets.restore(out)

    def add_class(self, place: int) -> None:
        """Room for one more class at ``place``."""
        self.committee.add_output(place)

    # ---- files ------------------------------------------------------------------------

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The state as plain numbers and arrays."""
        committee = self.committee
        groups = [None if group is None else _group_header(group) for group in committee.groups]
        header: dict[str, Any] = {
            "moving": self.rows.moving,
            "target": None if self.targets is None else self.targets.to_list(),
            "outputs": committee.outputs,
            "sizes": list(committee.sizes),
            "delayed": committee.delayed,
            "forget": committee.forget,
            "seed": committee.seed,
            "seen": committee.seen,
            "raced": committee.raced,
            "leader": committee.leader,
            "challenger": committee.challenger,
            "moved": committee.moved,
            "closed": [[scale, *when] for scale, when in committee.closed.items()],
            "events": [list(event) for event in committee.events],
            "groups": groups,
            "linear": [_record(linear.status) for linear in committee.linear],
        }
        header["history"], history = committee.history.to_document()
        arrays = prefixed("units_", self.rows.columns._asdict()) | prefixed("history_", history)
        for name, array in _plain_arrays(committee).items():
            arrays[name] = array.copy()
        for place, group in enumerate(committee.groups):
            if group is not None:
                arrays |= prefixed(f"group{place}_", _group_arrays(group))
        return header, arrays

    @classmethod
    def from_document(
        cls, header: Mapping[str, Any], arrays: Mapping[str, Any], features: int
    ) -> AutoState:
        """The state behind :meth:`to_document`; ValueError if it cannot be one."""
        numbers = header["target"] is not None
        sizes = Sizes(*header["sizes"])
        whole = [header[name] for name in ("outputs", "seen", "raced", "moved", "seed")]
        whole += [sizes.most, sizes.large, sizes.memory, features]
        if not all(type(number) is int and 0 <= number < 2**62 for number in whole):
            raise ValueError("the numbers of the state are out of range")
        if (
            not 1 <= sizes.most <= sizes.large <= 2**16
            or header["outputs"] > 2**20
            or sizes.memory > 2**16
        ):
            raise ValueError("the sizes of the state are out of range")
        flags = [header["moving"], header["delayed"], sizes.diagonal]
        if not all(type(flag) is bool for flag in flags) or header["forget"] not in (
            True,
            False,
            "auto",
        ):
            raise ValueError("the state's settings are out of range")
        _check_room(arrays, header, features)
        result = cls(
            features, header["outputs"], numbers, header["moving"], sizes, header["delayed"],
            header["forget"], header["seed"],
        )  # fmt: skip
        committee = result.committee
        if numbers:
            result.targets = TargetUnits.from_list(header["target"])
        _fill(result.rows.columns._asdict(), part_of("units_", arrays))
        if len(header["groups"]) != len(committee.groups):
            raise ValueError("the groups are not those of this version")
        for place, note in enumerate(header["groups"]):
            own = part_of(f"group{place}_", arrays)
            committee.groups[place] = None if note is None else _read_group(committee, note, own)
        for linear, note in zip(committee.linear, header["linear"], strict=True):
            _fill_record(linear.status, note)
            if not -1.0 <= linear.status[0]["last"] < committee.outputs and not numbers:
                raise ValueError("the last class is unknown")
        committee.memory_rows = arrays["memory_rows"]
        committee.memory_targets = arrays["memory_targets"]
        rows = len(committee.memory_targets)
        if committee.memory_rows.shape != (rows, committee.features) or rows > sizes.memory:
            raise ValueError("the remembered rows contradict the state")
        _fill(_plain_arrays(committee), arrays)
        committee.seen, committee.raced = header["seen"], header["raced"]
        committee.moved = header["moved"]
        history = part_of("history_", arrays)
        committee.history = History.from_document(header["history"], history, committee.seen)
        for name in ("leader", "challenger"):
            if header[name] not in range(-1, len(committee.groups)):
                raise ValueError(f"the {name} is not a group")
            setattr(committee, name, header[name])
        committee.closed = {float(s): (int(a), int(b)) for s, a, b in header["closed"]}
        committee.events = [(int(row), str(what)) for row, what in header["events"]]
        _check_committee(committee)
        return result


def _plain_arrays(committee: Committee) -> Arrays:
    """Arrays of a committee that are always there."""
    found = {
        "last": committee.last, "level": committee.level, "level_seen": committee.level_seen,
        "counts": committee.counts, "memory_rows": committee.memory_rows,
        "memory_targets": committee.memory_targets,
    }  # fmt: skip
    found |= prefixed("mixture_", committee.mixture._asdict())
    for place, linear in enumerate(committee.linear):
        found[f"linear{place}_covariance"] = linear.covariance
        found[f"linear{place}_weights"] = linear.weights
    return found


def _group_header(group: Group) -> dict[str, Any]:
    names = ("scale", "power", "shrinkage")
    return {name: float(getattr(group, name)) for name in names} | {
        "status": _record(group.state.status)
    }


def _group_arrays(group: Group) -> Arrays:
    arrays = {
        name: np.ascontiguousarray(live(name, getattr(group.state, name), group.order))
        for name in GroupState._fields[1:]
    }
    return {**arrays, "turn": group.turn.copy()}


def _read_group(committee: Committee, note: Mapping[str, Any], arrays: Arrays) -> Group:
    settings = [note[name] for name in ("scale", "power", "shrinkage")]
    if not all(type(number) is float and 0.0 < number < 1e6 for number in settings):
        raise ValueError("the settings of a group are out of range")
    most = note["status"]["most"]
    if most not in (committee.sizes.most, committee.sizes.large):
        raise ValueError("the size of a group contradicts the state")
    scale, power, shrinkage = settings
    full = len(arrays["turn"]) > 0
    group = Group(
        committee.features, committee.outputs, most, scale, committee.numbers, 0, power,
        shrinkage, full,
    )  # fmt: skip
    _fill_record(group.state.status, note["status"])
    status = group.state.status[0]
    if not 0 <= status["points"] <= most or status["numbers"] != committee.numbers:
        raise ValueError("the points of a group contradict the state")
    if min(status["gamma"], status["amplitude"], status["noise"]) <= 0.0 or status["interval"] < 1:
        raise ValueError("the settings of a group are out of range")
    for name in GroupState._fields[1:]:
        target = live(name, getattr(group.state, name), group.order)
        _fill({name: target}, arrays)
    _fill({"turn": group.turn}, arrays)
    if group.residual() > 1e-3:
        raise ValueError("the factor of a group does not belong to its points")
    return group


def _record(status: NDArray[np.void]) -> dict[str, Any]:
    return {name: status[0][name].item() for name in status.dtype.names or ()}


def _fill_record(status: NDArray[np.void], values: Mapping[str, Any]) -> None:
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


def _fill(targets: Mapping[str, NDArray[Any]], arrays: Mapping[str, Any]) -> None:
    """Copy arrays of a document into those of a state, if they fit."""
    for name, target in targets.items():
        array = arrays[name]
        if array.shape != target.shape or array.dtype != target.dtype:
            raise ValueError(f"{name} contradicts the other parts of the state")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")
        target[...] = array


def _check_room(arrays: Mapping[str, Any], header: Mapping[str, Any], features: int) -> None:
    """Refuse sizes that the arrays contradict, before anything of that size is made."""
    counts, units = arrays["counts"], arrays["units_values"]
    width = RowUnits(min(features, 2**24), False).width
    if counts.ndim != 3 or counts.shape[2] != header["outputs"]:
        raise ValueError("the number of outputs contradicts the state")
    if len(units) != (width if header["moving"] else 0):
        raise ValueError("the number of features contradicts the state")
    if (
        len(arrays["linear0_weights"]) != header["outputs"]
        or arrays["linear0_weights"].shape[1] != 1 + width
    ):
        raise ValueError("the number of features contradicts the state")


def _check_committee(committee: Committee) -> None:
    mixture, sums = committee.mixture, committee.mixture.shares.sum(axis=1)
    used = np.isin(mixture.used, (0, 1)).all()
    shares = (mixture.shares >= 0.0).all() and np.allclose(sums, 1.0)
    pairs = (mixture.pair > 0.0).all() and np.allclose(mixture.pair.sum(axis=1), 1.0)
    if not used or not shares or not pairs or (mixture.scales <= 0.0).any():
        raise ValueError("the shares of the experts are out of range")
    for place, group in enumerate(committee.groups):
        mine = mixture.used[:, SIZE * place : SIZE * (place + 1)]
        if (mine != (group is not None)).any():
            raise ValueError("the shares of the experts contradict the groups")
    classes = not committee.numbers
    if classes and not -1.0 <= committee.last[0] < committee.outputs:
        raise ValueError("the last class is unknown")
    if classes and (committee.counts < 0.0).any():
        raise ValueError("the counts of classes are negative")
    memory = committee.memory_targets
    if classes and not np.isin(memory, np.arange(committee.outputs)).all():
        raise ValueError("the remembered rows have unknown classes")
