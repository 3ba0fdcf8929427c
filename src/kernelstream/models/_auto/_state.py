"""What an automatic model has learned: units and experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelstream.models._auto._committee import Committee
from kernelstream.models._auto._committee_files import (
    are_counts,
    committee_document,
    read_committee,
    read_settings,
)
from kernelstream.models._auto._files import fill, fill_record, record
from kernelstream.models._auto._forest import MOST_BYTES, Forest
from kernelstream.models._auto._history import History, one_or_list, read_scales
from kernelstream.models._auto._intervals import Intervals
from kernelstream.models._auto._learning import UnitState
from kernelstream.models._auto._several import read_units
from kernelstream.models._auto._sizes import Sizes
from kernelstream.models._auto._succession import Succession
from kernelstream.models._auto._units import RowUnits
from kernelstream.parts import Arrays, part_of, prefixed


class AutoState(UnitState):
    """Units of rows and targets, and the committee that learns in them."""

    def __init__(
        self, features: int, outputs: int, numbers: bool, moving: bool, sizes: Sizes,
        delayed: bool, forget: bool | str, seed: int,
    ) -> None:  # fmt: skip
        width = RowUnits(features, False).width
        committee = Committee(width, outputs, numbers, sizes, delayed, forget, seed)
        super().__init__(features, numbers, moving, Succession(committee), 1 if delayed else 2)

    experts: Succession

    @property
    def committee(self) -> Committee:
        """The one that predicts."""
        return self.experts.leading

    def _run(self, rows: Any, targets: Any, weights: Any) -> tuple[Any, Any]:
        each = () if self.targets is None else self.targets.shape
        return self.experts.run(rows, targets, weights), np.ones((len(rows), *each))

    def _change_units(self, shift: Any, stretch: Any) -> None:
        super()._change_units(shift, stretch)
        if self.intervals is not None:
            self.intervals.change_units(stretch)

    def begin_again(self) -> None:
        """Forget everything but units and scales of columns: the rows come once more."""
        self.experts = self.experts.begun_again()

    # ---- files ------------------------------------------------------------------------

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The state as plain numbers and arrays."""
        experts = self.experts
        header, arrays = committee_document(experts.established)
        header |= {
            "moving": self.rows.moving,
            "target": None if self.targets is None else self.targets.to_list(),
            "outputs": experts.outputs,
            "rows": experts.seen,
            "marks_met": experts.marks_met,
            "began": experts.began,
            "contest": {
                **record(experts.status),
                "scale": one_or_list(experts.scales[0]),
                "other": one_or_list(experts.scales[1]),
            },
            "young": None,
        }
        if experts.young is not None:
            header["young"], young = committee_document(experts.young)
            arrays |= prefixed("young_", young)
        header["history"], history = experts.history.to_document()
        arrays |= prefixed("units_", self.rows.columns._asdict()) | prefixed("history_", history)
        arrays |= prefixed("memory_", experts.latest.to_arrays())
        if experts.forest is not None:
            arrays |= prefixed("forest_", experts.forest.to_arrays())
        if self.intervals is not None:
            arrays |= prefixed("intervals_", self.intervals.to_arrays())
        return header, arrays

    @classmethod
    def from_document(
        cls, header: Mapping[str, Any], arrays: Mapping[str, Any], features: int
    ) -> AutoState:
        """The state behind :meth:`to_document`; ValueError if it cannot be one."""
        header = {"rows": header["seen"], "began": 0, "young": None, **header}  # old files
        numbers = header["target"] is not None
        outputs, moving = header["outputs"], header["moving"]
        whole = [outputs, features, *(header[name] for name in ("rows", "marks_met", "began"))]
        if not are_counts(whole) or outputs > 2**20 or type(moving) is not bool:
            raise ValueError("the numbers of the state are out of range")
        sizes, delayed, forget = read_settings(header)
        _check_room(arrays, header, features, sizes)
        seed = header["seed"]
        result = cls(features, outputs, numbers, moving, sizes, delayed, forget, seed)
        experts = result.experts
        read_committee(experts.established, header, arrays)
        if header["young"] is not None:
            if read_settings(header["young"]) != (sizes.on_trial(), delayed, forget):
                raise ValueError("the settings of the experts on trial contradict the state")
            experts.young = experts.established.successor(0)
            read_committee(experts.young, header["young"], part_of("young_", arrays))
        targets = experts.established.targets
        if "contest" in header:
            contest = dict(header["contest"])
            for place, name in enumerate(("scale", "other")):
                experts.scales[place] = read_scales(contest.pop(name), targets)
            fill_record(experts.status, contest)
        if numbers:
            result.targets = read_units(header["target"], targets)
            result.intervals = Intervals.from_arrays(
                part_of("intervals_", arrays), len(experts.established.mixture.shares)
            )
        fill(result.rows.columns._asdict(), part_of("units_", arrays))
        experts.seen, experts.marks_met = header["rows"], header["marks_met"]
        experts.began = header["began"]
        experts.latest.fill(part_of("memory_", arrays), outputs)
        if experts.forest is not None:
            experts.forest.fill(part_of("forest_", arrays))
        history = part_of("history_", arrays)
        experts.history = History.from_document(header["history"], history, experts.seen, targets)
        _check_succession(experts)
        return result


def _check_room(
    arrays: Mapping[str, Any], header: Mapping[str, Any], features: int, sizes: Sizes
) -> None:
    """Refuse sizes that the arrays contradict, before anything of that size is made."""
    counts, units = arrays["counts"], arrays["units_values"]
    width = RowUnits(min(features, 2**24), False).width
    classes = header["outputs"] if header["target"] is None else 1
    if counts.ndim != 3 or counts.shape[2] != classes:
        raise ValueError("the number of outputs contradicts the state")
    shape, numbers = (sizes.leaves, sizes.columns), header["target"] is not None
    if not sizes.columns <= width or (
        Forest.nbytes_for(width, header["outputs"], numbers, *shape) > MOST_BYTES
    ):
        raise ValueError("the trees contradict the state")
    if len(units) != (width if header["moving"] else 0):
        raise ValueError("the number of features contradicts the state")
    if (
        len(arrays["linear0_weights"]) != header["outputs"]
        or arrays["linear0_weights"].shape[1] != 1 + width
    ):
        raise ValueError("the number of features contradicts the state")


def _check_succession(experts: Succession) -> None:
    established, young, now = experts.established, experts.young, experts.status[0]
    if max(each.seen for each in experts.committees) > experts.seen:
        raise ValueError("the experts have learned more rows than there were")
    if (
        not 0.0 <= now["recent"] <= 1.0
        or min(now[name] for name in ("rows", "lost", "variance")) < 0
    ):
        raise ValueError("the numbers of the contest are out of range")
    if young is not None and established.numbers and not (experts.scales[1] > 0.0).all():
        raise ValueError("the numbers of the contest are out of range")
