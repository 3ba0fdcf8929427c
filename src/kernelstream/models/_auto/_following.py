"""Where the stream changes: more points for a fine group, and a second order that keeps up."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelstream.models._auto._group import SIZE
from kernelstream.models._auto._sizes import SCALES

#: Rows before any of it.
_FROM = 2048
#: A group that has more of the weight of all groups leads, and one that has less no longer does.
_MOST_WEIGHT, _LITTLE_WEIGHT = 0.5, 0.25
#: Points help where the length scales have moved to finer ones, and where the span of those that
#: there are misses more of the rows: mean squared distance, per k(x, x). Coarse functions of many
#: columns miss as much, and gain nothing.
_COARSE, _UNCOVERED = SCALES[-1][0], 0.05
#: Rows that are looked at for this.
_LOOKED_AT = 64
#: A second-order expert has fallen behind with so many times the loss of its group's leading
#: expert, once the group has seen so many rows. With 1.2 times, streams in random order lost by it.
_BEHIND, _SETTLED = 2.0, 1024


def follow(committee: Any, rows: Any) -> None:
    """A group that holds most of the weight, and has too few points for the rows, gets more."""
    if committee.raced or committee.numbers or committee.seen < _FROM:
        return
    recent = committee.recent()[: SIZE * len(committee.groups)].reshape(-1, SIZE)
    weights, sizes = recent.sum(axis=1), committee.sizes
    weights /= weights.sum()
    best, leader = int(np.argmax(weights)), committee.leader
    group = committee.groups[best]
    if best == leader or weights[best] < _MOST_WEIGHT or group.order < sizes.most:
        return
    if group.scale <= _COARSE or recent[best, 0] > 0.5 * recent[best].sum():
        return
    if group.uncovered(rows[-_LOOKED_AT:]) < _UNCOVERED:
        return
    if leader >= 0:
        if weights[leader] > _LITTLE_WEIGHT:
            return
        committee.groups[leader].resize(sizes.most)
    committee.leader = best
    group.resize(sizes.changing)


def catch_up(committee: Any) -> None:
    """Second-order experts that have fallen behind go on from where their group's leader is."""
    if committee.raced or committee.forget is False or committee.seen < _FROM:
        return
    for group in committee.groups:
        losses = group.state.losses
        if group.age >= _SETTLED and losses[0] > _BEHIND * losses.min():
            group.catch_up()
