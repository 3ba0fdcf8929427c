"""What an automatic model has learned: units and experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelstream.models._auto._committee import Committee
from kernelstream.models._auto._files import (
    fill,
    fill_record,
    group_arrays,
    group_header,
    read_group,
    record,
)
from kernelstream.models._auto._group import RATES, SIZE
from kernelstream.models._auto._history import History
from kernelstream.models._auto._intervals import Intervals
from kernelstream.models._auto._learning import UnitState
from kernelstream.models._auto._sizes import Sizes
from kernelstream.models._auto._units import RowUnits, TargetUnits
from kernelstream.parts import Arrays, part_of, prefixed


class AutoState(UnitState):
    """Units of rows and targets, and the committee that learns in them."""

    def __init__(
        self, features: int, outputs: int, numbers: bool, moving: bool, sizes: Sizes,
        delayed: bool, forget: bool | str, seed: int,
    ) -> None:  # fmt: skip
        width = RowUnits(features, False).width
        self.committee = Committee(width, outputs, numbers, sizes, delayed, forget, seed)
        super().__init__(features, numbers, moving, self.committee, 1 if delayed else 2)

    def _run(self, rows: Any, targets: Any, weights: Any) -> tuple[Any, Any]:
        return self.committee.run(rows, targets, weights), np.ones(len(rows))

    def _change_units(self, shift: float, stretch: float) -> None:
        super()._change_units(shift, stretch)
        if self.intervals is not None:
            self.intervals.change_units(stretch)

    def begin_again(self) -> None:
        """Forget everything but units and scales of columns: the rows come once more."""
        self.experts = self.committee = self.committee.begun_again()

    # ---- files ------------------------------------------------------------------------

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The state as plain numbers and arrays."""
        committee = self.committee
        groups = [None if group is None else group_header(group) for group in committee.groups]
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
            "marks_met": committee.marks_met,
            "closed": [[scale, *when] for scale, when in committee.closed.items()],
            "events": [list(event) for event in committee.events],
            "groups": groups,
            "linear": [record(linear.status) for linear in committee.linear],
        }
        header["history"], history = committee.history.to_document()
        arrays = prefixed("units_", self.rows.columns._asdict()) | prefixed("history_", history)
        for name, array in _plain_arrays(committee).items():
            arrays[name] = array.copy()
        for place, group in enumerate(committee.groups):
            if group is not None:
                arrays |= prefixed(f"group{place}_", group_arrays(group))
        if self.intervals is not None:
            arrays |= prefixed("intervals_", self.intervals.to_arrays())
        return header, arrays

    @classmethod
    def from_document(
        cls, header: Mapping[str, Any], arrays: Mapping[str, Any], features: int
    ) -> AutoState:
        """The state behind :meth:`to_document`; ValueError if it cannot be one."""
        numbers = header["target"] is not None
        sizes = Sizes(*header["sizes"])
        whole = [
            header[name] for name in ("outputs", "seen", "raced", "moved", "marks_met", "seed")
        ]
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
            result.intervals = Intervals.from_arrays(
                part_of("intervals_", arrays), len(committee.mixture.shares)
            )
        fill(result.rows.columns._asdict(), part_of("units_", arrays))
        if len(header["groups"]) != len(committee.groups):
            raise ValueError("the groups are not those of this version")
        for place, note in enumerate(header["groups"]):
            own = part_of(f"group{place}_", arrays)
            committee.groups[place] = (
                None
                if note is None
                else read_group(
                    committee.features,
                    committee.outputs,
                    numbers,
                    (sizes.most, sizes.leading, sizes.large),
                    RATES,
                    note,
                    own,
                )
            )
        for linear, note in zip(committee.linear, header["linear"], strict=True):
            fill_record(linear.status, note)
            if linear.status[0]["numbers"] != numbers:
                raise ValueError("a linear expert is of another kind")
            if not -1.0 <= linear.status[0]["last"] < committee.outputs and not numbers:
                raise ValueError("the last class is unknown")
        committee.memory_rows = arrays["memory_rows"]
        committee.memory_targets = arrays["memory_targets"]
        rows = len(committee.memory_targets)
        if committee.memory_rows.shape != (rows, committee.features) or rows > sizes.memory:
            raise ValueError("the remembered rows contradict the state")
        fill(_plain_arrays(committee), arrays)
        committee.seen, committee.raced = header["seen"], header["raced"]
        committee.moved, committee.marks_met = header["moved"], header["marks_met"]
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
        allowed = committee.allowed[:, SIZE * place : SIZE * (place + 1)]
        if (mine != allowed * (group is not None)).any():
            raise ValueError("the shares of the experts contradict the groups")
    classes = not committee.numbers
    if classes and not -1.0 <= committee.last[0] < committee.outputs:
        raise ValueError("the last class is unknown")
    if classes and (committee.counts < 0.0).any():
        raise ValueError("the counts of classes are negative")
    memory = committee.memory_targets
    if classes and not np.isin(memory, np.arange(committee.outputs)).all():
        raise ValueError("the remembered rows have unknown classes")
