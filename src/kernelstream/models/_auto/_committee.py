"""All experts of an automatic model, their mixtures, and what changes between passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.class_mixture import mix_classes
from kernelstream.core.experts.lags import LagState, lag_pass, new_lags
from kernelstream.core.experts.linear import (
    LINEAR_STATUS,
    TOGETHER_CLASSES,
    TOGETHER_LAGGED,
    TOGETHER_NUMBERS,
    LinearState,
    first_covariance,
    linear_pass,
)
from kernelstream.core.experts.mixture import MixtureState
from kernelstream.core.experts.neighbours import SIZE as NEIGHBOURS
from kernelstream.core.experts.number_mixture import mix_numbers
from kernelstream.core.experts.targets import level_pass
from kernelstream.models._auto._classes import Chains, with_class
from kernelstream.models._auto._following import catch_up, follow
from kernelstream.models._auto._group import (
    FIRST_SCALES,
    SIZE,
    Group,
    as_columns,
    is_renewal,
    next_renewal,
)
from kernelstream.models._auto._history import in_other_units
from kernelstream.models._auto._latest import Latest
from kernelstream.models._auto._mixtures import begin_again, new_mixtures, without
from kernelstream.models._auto._race import EVERY, FIRST_RACE, Learned, compete
from kernelstream.models._auto._relevance import relevance_of
from kernelstream.models._auto._sizes import (
    DECAYS,
    LINEAR,
    SCALES,
    Sizes,
    lagged_inputs,
)
from kernelstream.models._auto._units import near

#: Rows after which the leading group may have the most points.
_MANY = 16384
#: Rows after which groups no longer learn from the latest rows again.
_LAST_REHEARSAL = 2048
#: The certainty that groups keep where predictions became worse at once.
_KEPT_IN_DRIFT = 0.02

#: What similar rows say of a target is within so many units: one that was far out came by chance.
_FARTHEST = 10.0

#: The least and the largest target are within so many units: their squares must have room.
FARTHEST_EXTREME = 1e50

#: The weights of linear experts where units of targets change: by more, nothing was meant.
_LARGEST_WEIGHT = 1e6

#: What the kernel experts of a group have at first: second order, and steps from small to large.
_FIRST_SHARES = (1.0, 0.5, 0.25, 0.25)

_NONE: Learned = np.empty((0, 0)), np.empty(0)


class Committee:
    """Experts and mixtures for rows in units.

    Mixture 0 uses every expert: it predicts the next row of the stream. Mixture 1 does without
    those that look at the last target: it predicts any row. Where labels come late there is only
    the latter. Several targets of numbers share all experts, and each has such mixtures of its own.
    """

    def __init__(
        self, features: int, outputs: int, numbers: bool, sizes: Sizes, delayed: bool,
        forget: bool | str, seed: int,
    ) -> None:  # fmt: skip
        self.features, self.outputs, self.numbers = features, outputs, numbers
        self.targets = outputs if numbers else 1
        self.sizes, self.delayed, self.forget, self.seed = sizes, delayed, forget, seed
        self.seen = 0
        self.groups: list[Group | None] = [
            self.new_group(scale, power, shrinkage, place)
            for place, (scale, power, shrinkage) in enumerate(SCALES)
        ]
        self.linear = [
            self._linear(lagged, forget, place)
            for place, (lagged, forget) in enumerate(LINEAR)
            if not (lagged and delayed)
        ]
        self.lags: LagState | None = new_lags(self.targets) if sizes.lags else None
        self.last = np.full(self.targets, 0.0 if numbers else -1.0)
        self.level, self.level_seen = np.zeros(self.targets), np.zeros(1)
        self.chains = Chains(1 if numbers else outputs)
        self.raced = 0  # the row of the race, 0 before
        self.leader = self.challenger = -1
        self.moved = 0  # the row of the last move
        self.closed: dict[float, tuple[int, int]] = {}  # scale: closed until, openings
        self.mixture = self._mixtures()
        self.allowed = self.mixture.used.copy()

    def begun_again(self) -> Committee:
        """One that has learned nothing but the scales of columns, and which group is to lead."""
        result = Committee(
            self.features, self.outputs, self.numbers, self.sizes, self.delayed, self.forget,
            self.seed,
        )  # fmt: skip
        best = int(np.argmin(self.group_losses()))
        for group, old in zip(result.groups, self.groups, strict=True):
            learned = old or self.groups[best]
            if group is not None and learned is not None:
                group.begin_like(learned)
        leader = result.groups[best]
        if leader is not None and self.seen < FIRST_RACE and self.is_steady():
            # Too short for a race, but the rows come again.
            result.raced, result.leader = 1, best
            leader.resize(result.sizes.leading)
        return result

    def successor(self, seed: int) -> Committee:
        """One that knows nothing, as small as it must be while it is on trial."""
        sizes = self.sizes.on_trial()
        return Committee(
            self.features, self.outputs, self.numbers, sizes, self.delayed, self.forget,
            self.seed + seed,
        )  # fmt: skip

    # ---- the parts --------------------------------------------------------------------

    def new_group(
        self, scale: float, power: float, shrinkage: float, seed: int, full: bool = False
    ) -> Group:
        return Group(
            self.features, self.outputs, self.sizes.most, scale, self.numbers,
            self.seed + 1000003 * seed, power, shrinkage, full,
        )  # fmt: skip

    def _linear(self, lagged: bool, forget: float, place: int) -> LinearState:
        status = np.zeros(1, LINEAR_STATUS)
        status["random"], status["numbers"] = self.seed + 7919 * (place + 1), self.numbers
        status["lagged"], status["forget"] = lagged, forget
        status["far"] = self.numbers and not lagged
        status["last"] = 0.0 if self.numbers else -1.0
        width = 1 + self.features + lagged * lagged_inputs(self.outputs, self.numbers)
        # The others expect large weights: right where many inputs are exact.
        together = np.inf
        if forget == 1.0 and self.numbers:
            together = TOGETHER_LAGGED if lagged else TOGETHER_NUMBERS
        elif forget == 1.0 and not lagged:
            together = TOGETHER_CLASSES
        covariance = first_covariance(
            self.features, width, together, not self.sizes.keeps_whole(place)
        )
        return LinearState(status, covariance, np.zeros((self.outputs, width)))

    @property
    def experts(self) -> int:
        return self.similar.stop + (2 if self.numbers else len(DECAYS))

    def _lag_place(self) -> int:
        """Where the expert on earlier numbers is, after the kernel and linear ones."""
        return SIZE * len(self.groups) + len(self.linear)

    @property
    def trees(self) -> slice:
        """Where the trees are, one expert together."""
        first = self._lag_place() + (self.lags is not None)
        return slice(first, first + (self.sizes.leaves > 0))

    @property
    def similar(self) -> slice:
        """Where the experts on similar rows are; nowhere where labels come late."""
        first = self.trees.stop
        return slice(first, first + NEIGHBOURS * (not self.delayed))

    def _uses_last_rows(self) -> NDArray[np.bool_]:
        found = np.zeros(self.experts, bool)
        first = SIZE * len(self.groups)
        for place, linear in enumerate(self.linear):
            found[first + place] = linear.status[0]["lagged"]
        found[self._lag_place() : -1] = True
        found[self.trees] = False
        return found

    def _fitted(self) -> list[int]:
        """Experts that are fitted to targets, with which they forget or not."""
        return list(range(self.similar.stop))

    def lasting(self) -> list[int]:
        """Experts for which all rows count alike."""
        first = SIZE * len(self.groups)
        found = [SIZE * place for place in range(len(self.groups))]
        forgets = [linear.status[0]["forget"] < 1.0 for linear in self.linear]
        found += [first + k for k, forgetting in enumerate(forgets) if not forgetting]
        return found if self.lags is None else [*found, self._lag_place()]

    def _forgetting(self) -> list[int]:
        lasting = set(self.lasting())
        return [k for k in self._fitted() if k not in lasting]

    def _mixtures(self) -> MixtureState:
        all_ = np.ones(self.experts, bool)
        if self.forget != "auto":  # experts of one kind alone
            all_[self._fitted()] = False
            all_[self.lasting() if not self.forget else self._forgetting()] = True
        any_ = all_ & ~self._uses_last_rows()
        sets = np.stack([any_] if self.delayed else [all_, any_])
        used = np.repeat(sets, self.targets, axis=0).astype(np.int64)
        return new_mixtures(used, self.numbers, self._first_shares())

    def _first_shares(self) -> NDArray[np.float64]:
        """Of all experts, relative to each other.

        Of numbers, kernel experts that follow fast have less: in the first rows they learn noise.
        """
        found = np.ones(self.experts)
        if self.numbers:
            found[: SIZE * len(self.groups)] = np.tile(_FIRST_SHARES, len(self.groups))
        return found

    @property
    def nbytes(self) -> int:
        held: list[NDArray[Any]] = [*self.chains.arrays.values(), *self.mixture, *(self.lags or ())]
        held += [part for linear in self.linear for part in linear]
        groups = sum(group.nbytes for group in self.groups if group)
        return sum(part.nbytes for part in held) + groups

    @property
    def order(self) -> int:
        """Points held in all groups."""
        return sum(group.order for group in self.groups if group)

    def add_output(self, place: int) -> None:
        """Room for one more class, at ``place``."""
        self.outputs += 1
        for group in self.groups:
            if group is not None:
                group.add_output(place)
        self.linear = [with_class(linear, self.features, place) for linear in self.linear]
        self.chains.add_class(place)
        if self.last[0] >= place:
            self.last += 1.0

    def resize(self, sizes: Sizes) -> None:
        """Other sizes: caps changed, or there are more classes."""
        for place, group in enumerate(self.groups):
            if group is not None:
                group.resize(self.leading_size(sizes) if place == self.leader else sizes.most)
        places = [k for k, (lagged, _) in enumerate(LINEAR) if not (lagged and self.delayed)]
        for k, linear in enumerate(self.linear):
            if not sizes.keeps_whole(places[k]) and len(linear.covariance) > 1:
                diagonal = np.diagonal(linear.covariance)[None].copy()
                self.linear[k] = linear._replace(covariance=diagonal)
        if self.sizes.leaves and not sizes.leaves:
            self._leave(self.trees.start)
        if self.lags is not None and not sizes.lags:
            self._leave(self._lag_place())
            self.lags = None
        # A diagonal stays one, as the rest of the covariance is gone, and so are earlier numbers.
        self.sizes = sizes._replace(
            whole=min(sizes.whole, self.sizes.whole), lags=self.lags is not None
        )

    def doubt_trees(self) -> None:
        """The trees have begun again: their share does so, too."""
        if self.sizes.leaves:
            begin_again(self.mixture, self.trees, self.allowed[:, self.trees], self.numbers)

    def _leave(self, place: int) -> None:
        """Mix without an expert from now on."""
        self.mixture = without(self.mixture, place)
        self.allowed = np.delete(self.allowed, place, axis=1)

    # ---- rows -------------------------------------------------------------------------

    def room(self) -> int:
        """Rows until something happens between passes."""
        to_look = EVERY - self.seen % EVERY
        ages = [self.seen, *(group.age for group in self.groups if group is not None)]
        to_renewal = min(next_renewal(age) - age for age in ages)
        return max(1, min(to_look, to_renewal, 2**18 // (self.experts * self.outputs)))

    def run(
        self, rows: Any, targets: Any, weights: Any, shared: Any, unlike: Any
    ) -> NDArray[np.float64]:
        """(n, mixtures, outputs): predictions, each from just before its row was learned.

        ``shared`` (n, ..., outputs) is what trees and similar rows say, ``unlike`` (n,) is 1 for
        rows that are unlike the last one. Without targets nothing is learned. With them there may
        be ``room()`` rows at most.
        """
        n = len(rows)
        opinions = np.zeros((n, self.experts, self.outputs))
        out = np.empty((n, len(self.mixture.shares) // self.targets, self.outputs))
        targets = as_columns(targets)
        fitted, last = targets, self.last
        if self.numbers:
            fitted, last = near(targets), near(last)
        for place, group in enumerate(self.groups):
            if group is not None:
                group.run(rows, fitted, weights, opinions, SIZE * place)
        first = SIZE * len(self.groups)
        for linear in self.linear:
            linear_pass(linear, last, rows, fitted, weights, opinions, first)
            first += 1
        if self.lags is not None:
            lag_pass(self.lags, targets, weights, opinions, first)
        limit = _FARTHEST if self.numbers else 1.0
        opinions[:, self.trees.start : self.similar.stop] = np.clip(shared, -limit, limit)
        first = self.similar.stop
        if self.numbers:
            level_pass(self.last, self.level, self.level_seen, targets, opinions, first)
            mix_numbers(self.mixture, opinions, targets, weights, unlike, out)
        else:
            self.chains.run(self.last, targets, opinions, first)
            mix_classes(self.mixture, opinions, targets, weights, out)
        if len(targets):
            self.seen += n
        return out

    # ---- between passes ---------------------------------------------------------------

    def change(self, latest: Latest, surprised: bool) -> bool:
        """What changes after a pass, if anything does; ``latest``: the rows that were learned."""
        due = [group for group in self.groups if group is not None and is_renewal(group.age)]
        look = self.seen % EVERY == 0 and self.seen >= 2 * EVERY
        if not (due or surprised or look):
            return False
        rows, targets = latest.last(self.seen)  # a young one must not learn from rows before it
        targets = near(targets) if self.numbers else targets
        young = [FIRST_SCALES <= group.age <= _LAST_REHEARSAL for group in due]
        known = relevance_of(rows, as_columns(targets), self.numbers) if any(young) else None
        for each, is_young in zip(due, young, strict=True):
            each.renew(relevance=known if is_young else None)
            if is_young:
                each.rehearse(rows, targets)
        if surprised:
            for group in self.groups:
                if group is not None:  # what was certain no longer is
                    group.renew(_KEPT_IN_DRIFT)
        if look:
            compete(self, (rows, targets))
            follow(self, rows)
            catch_up(self)
        return True

    def scales(self) -> NDArray[np.float64]:
        """(p,): those of columns, as the best group has learned them."""
        group = self.groups[int(np.argmin(self.group_losses()))]
        assert group is not None
        return group.column_scales()

    def recent(self) -> NDArray[np.float64]:
        """(e,): shares lately, on the next row of the stream; of several targets on average."""
        return self.mixture.recent[: self.targets].mean(axis=0)  # type: ignore[no-any-return]

    def change_units(self, shift: Any, stretch: Any) -> None:
        """Targets are now (y + shift) * stretch of what they were; of several, arrays."""
        shift, stretch = (np.resize(each, self.targets) for each in (shift, stretch))
        for group in self.groups:
            if group is not None:
                group.change_units(shift, stretch)
        apart = stretch[:, None] / stretch
        np.fill_diagonal(apart, 1.0)
        for linear in self.linear:
            # Last targets as inputs change along: the weight of its own stays.
            inputs, lagged = np.split(linear.weights, [1 + self.features], axis=1)
            inputs[:, 0] += shift
            if linear.status[0]["lagged"]:
                inputs[:, 0] -= (lagged * shift).sum(axis=1)
                lagged *= apart
            inputs *= stretch[:, None]
            np.clip(linear.weights, -_LARGEST_WEIGHT, _LARGEST_WEIGHT, out=linear.weights)
            linear.status["last"] = (linear.status["last"] + shift[0]) * stretch[0]
        self.last[:] = (self.last + shift) * stretch
        self.level[:] = (self.level + shift) * stretch
        if self.lags is not None:
            self.lags.past[:] = (self.lags.past + shift[:, None]) * stretch[:, None]
            self.lags.squares[:] = in_other_units(self.lags.squares, stretch)
        extremes = self.mixture.extremes.reshape(-1, self.targets, 2)
        extremes[:] = (extremes + shift[:, None]) * stretch[:, None]
        np.clip(extremes, -FARTHEST_EXTREME, FARTHEST_EXTREME, out=extremes)
        square = np.resize(np.minimum(stretch, 1e100) ** 2, len(self.mixture.scales))
        for scales in (self.mixture.scales, self.mixture.wide_scales):
            # No more than all of a target: one that was the same so far has a unit only now.
            scales[:] = np.clip(scales * square, 1e-12, np.maximum(1.0, scales))

    def group_losses(self) -> NDArray[np.float64]:
        """Of each group's experts, weighted by their shares; inf where there is no group."""
        found = np.full(len(self.groups), np.inf)
        current = self.mixture.shares[: self.targets].mean(axis=0)
        for place, group in enumerate(self.groups):
            if group is not None:
                shares = current[SIZE * place : SIZE * (place + 1)]
                found[place] = shares @ group.state.losses / shares.sum()
        return found

    def place(self, place: int, group: Group | None, latest: Learned = _NONE) -> None:
        """Another group in this place, which learns from the latest rows; or none."""
        self.groups[place] = group
        if place == self.leader and not self.raced:
            self.leader = -1
        mine = slice(SIZE * place, SIZE * (place + 1))
        if group is not None:
            rows, targets = latest
            known = relevance_of(rows, as_columns(targets), self.numbers)
            group.replay(rows, targets, known)
        used = self.allowed[:, mine] * (group is not None)
        begin_again(self.mixture, mine, used, self.numbers)

    def leading_size(self, sizes: Sizes) -> int:
        """Points of the leading group: more when there are rows enough to learn them from."""
        if not self.raced:
            return sizes.changing
        return sizes.large if self.seen >= _MANY else sizes.leading

    def is_steady(self) -> bool:
        """Whether experts for which all rows count alike have most of the weight."""
        return bool(self.recent()[self.lasting()].sum() > 0.5)
