"""Length scales that compete: which leads with more points, which go, and what comes instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.models._auto._group import SIZE
from kernelstream.models._auto._history import FIRST
from kernelstream.models._auto._sizes import SCALES

#: Rows between two looks at the groups, and before the first race.
EVERY = FIRST
FIRST_RACE = 2048
#: How far length scales may move.
_COARSEST, _FINEST = 1 / 32, 512.0
#: A finer group gets the points of the race also where its loss is so many times the least: the
#: losses of 512 rows are no better known, and it is the one that points help most.
_AS_GOOD = 1.02
#: A challenger wins also with so many times the loss of the leader, which has twice the points.
_HANDICAP = 1.1
#: With less weight on experts for which all rows count alike a stream changes after all.
_CHANGING = 0.25

#: Rows and targets.
Learned = tuple[NDArray[np.float64], NDArray[np.float64]]


def compete(committee: Any, latest: Learned) -> None:
    """What happens at a look; new groups learn from the latest rows."""
    judge_challenger(committee)
    undo_race(committee, latest)
    race(committee, latest)
    lead(committee)
    move(committee, latest)


def judge_challenger(committee: Any) -> None:
    """The group with a full metric stays if with more points it is better than the leader."""
    if committee.challenger < 0 or committee.seen < 2 * committee.raced:
        return
    losses, place = committee.group_losses(), committee.challenger
    group = committee.groups[place]
    if group is not None and losses[place] < _HANDICAP * losses[committee.leader]:
        losses[[k for k, other in enumerate(committee.groups) if other is None or k == place]] = -1
        committee.place(int(np.argmax(losses)), None)
        old, committee.leader = committee.groups[committee.leader], place
        if old is not None:
            old.resize(committee.sizes.most)
        group.resize(committee.leading_size(committee.sizes))
    else:
        committee.place(place, None)
    committee.challenger = -1


def lead(committee: Any) -> None:
    """Now and then look whether the right group has the points, and enough of them."""
    if not committee.raced or committee.challenger >= 0 or committee.seen & (committee.seen - 1):
        return
    recent = committee.recent()[: SIZE * len(committee.groups)].reshape(-1, SIZE).sum(axis=1)
    best, leader = int(np.argmax(recent)), committee.groups[committee.leader]
    if recent[best] > 0.5 and recent[committee.leader] < 0.25 and leader is not None:
        leader.resize(committee.sizes.most)
        committee.leader, leader = best, committee.groups[best]
    if leader is not None:
        leader.resize(committee.leading_size(committee.sizes))


def race(committee: Any, latest: Learned) -> None:
    """Where the stream does not change, the best length scale gets more points."""
    if committee.raced or committee.seen < FIRST_RACE or committee.seen & (committee.seen - 1):
        return
    if not committee.is_steady():
        return
    losses = committee.group_losses()
    scales = [0.0 if group is None else group.scale for group in committee.groups]
    as_good = losses <= _AS_GOOD * losses.min()
    committee.raced = committee.seen
    committee.leader = int(np.argmax(np.where(as_good, scales, 0.0)))
    leader, worst = committee.groups[committee.leader], int(np.argmax(losses))
    assert leader is not None
    for place, group in enumerate(committee.groups):
        if group is not None and place != committee.leader:
            group.resize(committee.sizes.most)
    leader.resize(committee.leading_size(committee.sizes))
    if committee.sizes.may_turn(committee.features):
        group = committee.new_group(max(leader.scale, 2.0), 1.0, 4.0, committee.seen, full=True)
        committee.place(worst, group, latest)
        committee.challenger = worst
    else:
        committee.place(worst, None)


def undo_race(committee: Any, latest: Learned) -> None:
    """Where the stream changes after all, three length scales compete again."""
    if not committee.raced or committee.challenger >= 0:
        return
    empty = [place for place, group in enumerate(committee.groups) if group is None]
    if not empty or committee.recent()[committee.lasting()].sum() >= _CHANGING:
        return
    for group in committee.groups:
        if group is not None:
            group.resize(committee.sizes.most)
    known = {group.scale for group in committee.groups if group is not None}
    for place in empty:
        scale = next(scale for scale, *_ in SCALES if scale not in known)
        known.add(scale)
        _, power, shrinkage = SCALES[place]
        group = committee.new_group(scale, power, shrinkage, committee.seen)
        committee.place(place, group, latest)
    committee.raced, committee.leader = 0, -1


def move(committee: Any, latest: Learned) -> None:
    """A length scale beyond the best one, in place of one at the other end without weight."""
    if committee.raced or committee.seen - committee.moved < 2 * EVERY:
        return
    losses = committee.group_losses()
    scales = [group.scale for group in committee.groups if group is not None]
    coarse, middle, fine = np.argsort(scales)
    for edge, other, factor in ((fine, coarse, 4.0), (coarse, fine, 0.25)):
        mine = slice(SIZE * other, SIZE * (other + 1))
        weight = committee.recent()[mine].sum()
        better = losses.argmin() == edge and losses[edge] < 0.97 * losses[middle]
        scale, old = scales[edge] * factor, scales[other]
        if not better or weight >= 0.01 or not _COARSEST <= scale <= _FINEST:
            continue
        if committee.closed.get(scale, (0, 0))[0] > committee.seen:
            continue
        openings = committee.closed.get(old, (0, 0))[1] + 1
        committee.closed[old] = (committee.seen + 1024 * 2**openings, openings)
        _, power, shrinkage = SCALES[other]
        group = committee.new_group(scale, power, shrinkage, committee.seen)
        committee.place(other, group, latest)
        committee.moved = committee.seen
        return
