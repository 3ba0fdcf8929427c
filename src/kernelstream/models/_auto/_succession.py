"""The committee that predicts, and a young one on trial where the stream may have changed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.contest import CONTEST_STATUS, contest
from kernelstream.models._auto._committee import Committee
from kernelstream.models._auto._forest import Forest
from kernelstream.models._auto._group import as_columns
from kernelstream.models._auto._history import TOLD, History, in_other_units
from kernelstream.models._auto._latest import Latest
from kernelstream.models._auto._race import EVERY
from kernelstream.models._auto._sizes import Sizes
from kernelstream.models._auto._told import shares_of

#: Rows before the first trial, and of a trial.
_FIRST_TRIAL, _TRIAL = 2048, 2048
#: From these rows on a trial ends where it is clear that it is lost, or won.
_LOST_FROM, _WON_FROM, _CLEAR = 512, 1024, 0.95
#: The odds (logarithm) with which a young committee begins.
_BEGIN = -2.0


def _new_forest(committee: Committee) -> Forest | None:
    """Trees of the size that the committee expects; None where there are none."""
    sizes = committee.sizes
    if not sizes.leaves:
        return None
    return Forest(
        committee.features, committee.outputs, committee.numbers, sizes.leaves, sizes.columns,
        committee.seed + 104729,
    )  # fmt: skip


class Succession:
    """One committee, at times two, what these share, and the record of it all.

    After a sudden change what was learned is worth less than nothing: experts must unlearn it.
    Where predictions become worse a second committee begins that knows nothing. Of the two the
    one predicts that was better lately; in the end the better one stays.
    """

    def __init__(self, established: Committee) -> None:
        self.established = established
        self.young: Committee | None = None
        self.seen = 0
        self.status = np.zeros(1, CONTEST_STATUS)
        targets = established.targets
        self.scales = np.zeros((2, targets))  # squared errors of numbers, of both
        self.latest = Latest(
            established.features, targets, established.numbers, established.sizes.memory,
            predicts=not established.delayed,
        )  # fmt: skip
        self.latest.follow_scales(established.scales())
        self.forest = _new_forest(established)
        self.history = History(targets)
        self.marks_met = 0  # marks of the history that were answered
        self.began = 0  # committees that took over

    @property
    def leading(self) -> Committee:
        """The committee that predicts."""
        young = self.young
        return young if young is not None and self.status[0]["leads"] else self.established

    @property
    def committees(self) -> list[Committee]:
        return [each for each in (self.established, self.young) if each is not None]

    @property
    def outputs(self) -> int:
        return self.established.outputs

    @property
    def experts(self) -> int:
        return self.established.experts

    @property
    def nbytes(self) -> int:
        held = self.latest.nbytes + self.history.nbytes + self.status.nbytes + self.scales.nbytes
        held += 0 if self.forest is None else self.forest.nbytes
        return held + sum(each.nbytes for each in self.committees)

    @property
    def order(self) -> int:
        """Points held."""
        return sum(each.order for each in self.committees)

    def begun_again(self) -> Succession:
        """One that has learned nothing but the scales of columns, and which group is to lead."""
        return Succession(self.leading.begun_again())

    def add_output(self, place: int) -> None:
        """Room for one more class, at ``place``."""
        for each in self.committees:
            each.add_output(place)
        self.latest.add_class(place)
        if self.forest is not None:
            self.forest.add_class(place)

    def resize(self, sizes: Sizes) -> None:
        """Other sizes: caps changed, or there are more classes."""
        self.established.resize(sizes)
        if self.young is not None:
            if sizes.young == 0:
                self._end_trial(young_stays=False)
            else:
                self.young.resize(self.established.sizes.on_trial())
        self.latest = self.latest.resize(sizes.memory)
        forest, shape = self.forest, (sizes.leaves, sizes.columns)
        if forest is not None and shape != (forest.leaves, forest.columns):
            self.forest = _new_forest(self.established)
            for each in self.committees:
                each.doubt_trees()

    def change_units(self, shift: Any, stretch: Any) -> None:
        """Targets are now (y + shift) * stretch of what they were; of several, arrays."""
        for each in self.committees:
            each.change_units(shift, stretch)
        self.latest.change_units(shift, stretch)
        if self.forest is not None:
            self.forest.change_units(shift, stretch)
        self.history.change_units(stretch)
        self.scales = in_other_units(self.scales, stretch)

    # ---- rows -------------------------------------------------------------------------

    def room(self) -> int:
        """Rows until something happens between passes."""
        return min(EVERY - self.seen % EVERY, *(each.room() for each in self.committees))

    def run(self, rows: Any, targets: Any, weights: Any) -> NDArray[np.float64]:
        """(n, mixtures, outputs): predictions, each from just before its row was learned.

        Without targets nothing is learned. With them there may be ``room()`` rows at most.
        """
        columns = as_columns(targets)
        shared = self._run_shared(rows, columns, weights)
        if not len(targets):
            return self.leading.run(rows, targets, weights, *shared)
        made = [each.run(rows, targets, weights, *shared) for each in self.committees]
        first, out = made[0], np.empty_like(made[0])
        second, numbers = made[1] if len(made) > 1 else first[:0], self.established.numbers
        contest(self.status, self.scales, numbers, first, second, columns, weights, out)
        if numbers:
            errors = np.abs(columns - out[:, 0])
        else:  # the probability of the other classes
            chosen = np.arange(len(rows)), 0, targets.astype(np.int64)
            errors = np.maximum(0.0, 1.0 - out[chosen])[:, None]
        self.history.follow(errors, numbers, self.seen)
        self.seen += len(rows)
        self._between()
        return out

    def _run_shared(self, rows: Any, columns: Any, weights: Any) -> tuple[Any, Any]:
        """(n, ..., outputs): what the experts say that both committees use; and (n,): which rows
        are unlike the last one.
        """
        parts = []
        if self.forest is not None:
            parts.append(self.forest.run(rows, columns, weights))
        similar, unlike = self.latest.run(rows, columns, self.outputs)
        if self.latest.predicts:
            parts.append(similar)
        shared = np.concatenate([np.empty((len(rows), 0, self.outputs)), *parts], axis=1)
        return shared, unlike

    def _between(self) -> None:
        history, look = self.history, self.seen % EVERY == 0
        surprised = look and history.all_marks > self.marks_met
        if surprised:
            self.marks_met = history.all_marks
        changed = surprised and history.strengths[-1] >= TOLD
        young_stays = self._verdict(changed) if look else None
        if young_stays is False:
            self._end_trial(young_stays=False)
        changes = False
        for each in self.committees[1:] if young_stays else self.committees:  # those that stay
            changes |= each.change(self.latest, surprised)
        if young_stays:
            self._end_trial(young_stays=True)
        if changes:
            self.latest.follow_scales(self.established.scales())
        if look and young_stays is None:
            self._try(changed)
        if history.is_due(self.seen):
            history.append(shares_of(self.leading), self.seen)

    # ---- trials -----------------------------------------------------------------------

    def _try(self, changed: bool) -> None:
        """Begin a trial where there is doubt; ``changed``: a mark that is told.

        The end of a trial takes with it what losses were before: only the history, which sees all
        rows, notices a change right then. And what began before a change must unlearn as well.
        """
        now = self.status[0]
        if self.young is not None and not (changed and not now["leads"]):
            return
        if self._may_try() and (changed or now["doubt"]) and self.seen >= _FIRST_TRIAL:
            self.young = self.established.successor(self.seen)
            if self.forest is not None:
                self.forest.fell_half()
            now["odds"], now["recent"] = _BEGIN, 0.0
            self.scales[1] = self.scales[0]

    def _verdict(self, changed: bool) -> bool | None:
        """Whether the young committee is to stay; None where there is none, or it is not clear."""
        now, young = self.status[0], self.young
        if young is None or (changed and not now["leads"]):  # then it begins again
            return None
        lost = young.seen >= _LOST_FROM and now["recent"] < 1.0 - _CLEAR
        won = young.seen >= _WON_FROM and now["recent"] > _CLEAR
        return bool(now["recent"] > 0.5) if young.seen >= _TRIAL or lost or won else None

    def _may_try(self) -> bool:
        established = self.established
        return established.sizes.young > 0 and established.forget is not False

    def _end_trial(self, young_stays: bool) -> None:
        """One of the two stays, and is watched from now on."""
        scales, lost = self.scales[1 if young_stays else 0], self.status[0]["lost"]
        if young_stays and self.young is not None:
            sizes, self.established = self.established.sizes, self.young
            self.established.resize(sizes)
            self.began += 1
        self.young = None
        self.status[...] = np.zeros(1, CONTEST_STATUS)
        self.status["lost"] = 0 if young_stays else lost + 1
        self.scales = np.stack([scales, np.zeros_like(scales)])
