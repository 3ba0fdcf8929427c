"""All experts of an automatic model, their mixtures, and what changes between passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.class_mixture import mix_classes
from kernelstream.core.experts.lags import LagState, lag_pass, new_lags
from kernelstream.core.experts.linear import (
    LINEAR_STATUS,
    LinearState,
    first_covariance,
    linear_pass,
)
from kernelstream.core.experts.mixture import MixtureState
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
from kernelstream.models._auto._history import FIRST, in_other_units
from kernelstream.models._auto._mixtures import begin_again, new_mixtures, without
from kernelstream.models._auto._relevance import relevance_of
from kernelstream.models._auto._sizes import (
    DECAYS,
    LINEAR,
    SCALES,
    WIDEST_METRIC,
    Sizes,
    lagged_inputs,
)
from kernelstream.models._auto._units import near

#: How far length scales may move.
_COARSEST, _FINEST = 1 / 32, 512.0
_MANY = 16384
#: Rows between two looks at the groups, and before the first race.
EVERY = FIRST
_FIRST_RACE = 2048
#: A finer group gets the points of the race also where its loss is so many times the least: the
#: losses of 512 rows are no better known, and it is the one that points help most.
_AS_GOOD = 1.02
#: A challenger wins also with so many times the loss of the leader, which has twice the points.
_HANDICAP = 1.1
#: With less weight on experts for which all rows count alike a stream changes after all.
_CHANGING = 0.25
#: Rows after which groups no longer learn from the latest rows again.
_LAST_REHEARSAL = 2048
#: The certainty that groups keep where predictions became worse at once.
_KEPT_IN_DRIFT = 0.02

#: Rows and targets.
Latest = tuple[NDArray[np.float64], NDArray[np.float64]]
_NONE: Latest = np.empty((0, 0)), np.empty(0)


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
            self._group(scale, power, shrinkage, place)
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
        if leader is not None and self.seen < _FIRST_RACE and self._is_steady():
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

    def _group(
        self, scale: float, power: float, shrinkage: float, seed: int, full: bool = False
    ) -> Group:
        return Group(
            self.features, self.outputs, self.sizes.most, scale, self.numbers,
            self.seed + 1000003 * seed, power, shrinkage, full,
        )  # fmt: skip

    def _linear(self, lagged: bool, forget: float, seed: int) -> LinearState:
        status = np.zeros(1, LINEAR_STATUS)
        status["random"], status["numbers"] = self.seed + 7919 * (seed + 1), self.numbers
        status["lagged"], status["forget"] = lagged, forget
        status["last"] = 0.0 if self.numbers else -1.0
        width = 1 + self.features + lagged * lagged_inputs(self.outputs, self.numbers)
        # The others expect large weights: where many inputs are exact, these are right.
        small = forget == 1.0 and not lagged
        covariance = first_covariance(self.features, width, small, self.sizes.diagonal)
        return LinearState(status, covariance, np.zeros((self.outputs, width)))

    @property
    def experts(self) -> int:
        simple = 2 if self.numbers else len(DECAYS)
        return self._lag_place() + (self.lags is not None) + simple

    def _lag_place(self) -> int:
        """Where the expert on earlier numbers is, after the kernel and linear ones."""
        return SIZE * len(self.groups) + len(self.linear)

    def _uses_last_target(self) -> NDArray[np.bool_]:
        found = np.zeros(self.experts, bool)
        first = SIZE * len(self.groups)
        for place, linear in enumerate(self.linear):
            found[first + place] = linear.status[0]["lagged"]
        found[self._lag_place() : -1] = True
        return found

    def _fitted(self) -> list[int]:
        """Experts that are fitted to targets, with which they forget or not."""
        return list(range(self._lag_place() + (self.lags is not None)))

    def _lasting(self) -> list[int]:
        """Experts for which all rows count alike."""
        first = SIZE * len(self.groups)
        found = [SIZE * place for place in range(len(self.groups))]
        forgets = [linear.status[0]["forget"] < 1.0 for linear in self.linear]
        found += [first + k for k, forgetting in enumerate(forgets) if not forgetting]
        return found if self.lags is None else [*found, self._lag_place()]

    def _forgetting(self) -> list[int]:
        lasting = set(self._lasting())
        return [k for k in self._fitted() if k not in lasting]

    def _mixtures(self) -> MixtureState:
        all_ = np.ones(self.experts, bool)
        if self.forget != "auto":  # experts of one kind alone
            all_[self._fitted()] = False
            all_[self._lasting() if not self.forget else self._forgetting()] = True
        any_ = all_ & ~self._uses_last_target()
        sets = np.stack([any_] if self.delayed else [all_, any_])
        used = np.repeat(sets, self.targets, axis=0).astype(np.int64)
        return new_mixtures(used, self.numbers)

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
                group.resize(self._size(sizes) if place == self.leader else sizes.most)
        for k, linear in enumerate(self.linear):
            if sizes.diagonal and len(linear.covariance) > 1:
                diagonal = np.diagonal(linear.covariance)[None].copy()
                self.linear[k] = linear._replace(covariance=diagonal)
        if self.lags is not None and not sizes.lags:
            self.mixture = without(self.mixture, self._lag_place())
            self.allowed = np.delete(self.allowed, self._lag_place(), axis=1)
            self.lags = None
        # A diagonal stays one, as the rest of the covariance is gone, and so are earlier numbers.
        self.sizes = sizes._replace(
            diagonal=sizes.diagonal or self.sizes.diagonal, lags=self.lags is not None
        )

    # ---- rows -------------------------------------------------------------------------

    def room(self) -> int:
        """Rows until something happens between passes."""
        to_look = EVERY - self.seen % EVERY
        ages = [self.seen, *(group.age for group in self.groups if group is not None)]
        to_renewal = min(next_renewal(age) - age for age in ages)
        return max(1, min(to_look, to_renewal, 2**18 // (self.experts * self.outputs)))

    def run(self, rows: Any, targets: Any, weights: Any) -> NDArray[np.float64]:
        """(n, mixtures, outputs): predictions, each from just before its row was learned.

        Without targets nothing is learned. With them there may be ``room()`` rows at most.
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
            first += 1
        if self.numbers:
            level_pass(self.last, self.level, self.level_seen, targets, opinions, first)
            mix_numbers(self.mixture, opinions, targets, weights, out)
        else:
            self.chains.run(self.last, targets, opinions, first)
            mix_classes(self.mixture, opinions, targets, weights, out)
        if len(targets):
            self.seen += n
        return out

    # ---- between passes ---------------------------------------------------------------

    def change(self, rows: Any, targets: Any, surprised: bool) -> None:
        """What changes after a pass. ``rows`` and ``targets`` are the latest that were learned."""
        targets = near(targets) if self.numbers else targets
        due = [group for group in self.groups if group is not None and is_renewal(group.age)]
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
        if self.seen % EVERY == 0 and self.seen >= 2 * EVERY:
            latest = rows, targets
            self._judge_challenger()
            self._undo_race(latest)
            self._race(latest)
            self._lead()
            self._move(latest)
            follow(self, rows)
            catch_up(self)

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
            linear.status["last"] = (linear.status["last"] + shift[0]) * stretch[0]
        self.last[:] = (self.last + shift) * stretch
        self.level[:] = (self.level + shift) * stretch
        if self.lags is not None:
            self.lags.past[:] = (self.lags.past + shift[:, None]) * stretch[:, None]
            self.lags.squares[:] = in_other_units(self.lags.squares, stretch)
        square = np.resize(np.minimum(stretch, 1e100) ** 2, len(self.mixture.scales))
        for scales in (self.mixture.scales, self.mixture.wide_scales):
            scales[:] = np.clip(scales * square, 1e-12, 1e8)

    def group_losses(self) -> NDArray[np.float64]:
        """Of each group's experts, weighted by their shares; inf where there is no group."""
        found = np.full(len(self.groups), np.inf)
        current = self.mixture.shares[: self.targets].mean(axis=0)
        for place, group in enumerate(self.groups):
            if group is not None:
                shares = current[SIZE * place : SIZE * (place + 1)]
                found[place] = shares @ group.state.losses / shares.sum()
        return found

    def _place(self, place: int, group: Group | None, latest: Latest = _NONE) -> None:
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

    def _judge_challenger(self) -> None:
        """The group with a full metric stays if with more points it is better than the leader."""
        if self.challenger < 0 or self.seen < 2 * self.raced:
            return
        losses, place = self.group_losses(), self.challenger
        group = self.groups[place]
        if group is not None and losses[place] < _HANDICAP * losses[self.leader]:
            losses[[k for k, other in enumerate(self.groups) if other is None or k == place]] = -1
            self._place(int(np.argmax(losses)), None)
            old, self.leader = self.groups[self.leader], place
            if old is not None:
                old.resize(self.sizes.most)
            group.resize(self._size(self.sizes))
        else:
            self._place(place, None)
        self.challenger = -1

    def _size(self, sizes: Sizes) -> int:
        """Points of the leading group: more when there are rows enough to learn them from."""
        if not self.raced:
            return sizes.changing
        return sizes.large if self.seen >= _MANY else sizes.leading

    def _lead(self) -> None:
        """Now and then look whether the right group has the points, and enough of them."""
        if not self.raced or self.challenger >= 0 or self.seen & (self.seen - 1):
            return
        recent = self.recent()[: SIZE * len(self.groups)].reshape(-1, SIZE).sum(axis=1)
        best, leader = int(np.argmax(recent)), self.groups[self.leader]
        if recent[best] > 0.5 and recent[self.leader] < 0.25 and leader is not None:
            leader.resize(self.sizes.most)
            self.leader, leader = best, self.groups[best]
        if leader is not None:
            leader.resize(self._size(self.sizes))

    def _is_steady(self) -> bool:
        """Whether experts for which all rows count alike have most of the weight."""
        return bool(self.recent()[self._lasting()].sum() > 0.5)

    def _race(self, latest: Latest) -> None:
        """Where the stream does not change, the best length scale gets more points."""
        if self.raced or self.seen < _FIRST_RACE or self.seen & (self.seen - 1):
            return
        if not self._is_steady():
            return
        losses = self.group_losses()
        scales = [0.0 if group is None else group.scale for group in self.groups]
        as_good = losses <= _AS_GOOD * losses.min()
        self.raced, self.leader = self.seen, int(np.argmax(np.where(as_good, scales, 0.0)))
        leader, worst = self.groups[self.leader], int(np.argmax(losses))
        assert leader is not None
        for place, group in enumerate(self.groups):
            if group is not None and place != self.leader:
                group.resize(self.sizes.most)
        leader.resize(self._size(self.sizes))
        if self.features <= WIDEST_METRIC:
            group = self._group(max(leader.scale, 2.0), 1.0, 4.0, self.seen, full=True)
            self._place(worst, group, latest)
            self.challenger = worst
        else:
            self._place(worst, None)

    def _undo_race(self, latest: Latest) -> None:
        """Where the stream changes after all, three length scales compete again."""
        if not self.raced or self.challenger >= 0:
            return
        empty = [place for place, group in enumerate(self.groups) if group is None]
        if not empty or self.recent()[self._lasting()].sum() >= _CHANGING:
            return
        for group in self.groups:
            if group is not None:
                group.resize(self.sizes.most)
        known = {group.scale for group in self.groups if group is not None}
        for place in empty:
            scale = next(scale for scale, *_ in SCALES if scale not in known)
            known.add(scale)
            _, power, shrinkage = SCALES[place]
            self._place(place, self._group(scale, power, shrinkage, self.seen), latest)
        self.raced, self.leader = 0, -1

    def _move(self, latest: Latest) -> None:
        """A length scale beyond the best one, in place of one at the other end without weight."""
        if self.raced or self.seen - self.moved < 2 * EVERY:
            return
        losses = self.group_losses()
        scales = [group.scale for group in self.groups if group is not None]
        coarse, middle, fine = np.argsort(scales)
        for edge, other, factor in ((fine, coarse, 4.0), (coarse, fine, 0.25)):
            mine = slice(SIZE * other, SIZE * (other + 1))
            weight = self.recent()[mine].sum()
            better = losses.argmin() == edge and losses[edge] < 0.97 * losses[middle]
            scale, old = scales[edge] * factor, scales[other]
            if not better or weight >= 0.01 or not _COARSEST <= scale <= _FINEST:
                continue
            if self.closed.get(scale, (0, 0))[0] > self.seen:
                continue
            openings = self.closed.get(old, (0, 0))[1] + 1
            self.closed[old] = (self.seen + 1024 * 2**openings, openings)
            _, power, shrinkage = SCALES[other]
            self._place(other, self._group(scale, power, shrinkage, self.seen), latest)
            self.moved = self.seen
            return
