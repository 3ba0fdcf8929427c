"""Mixtures between passes: how they begin, and what they do when experts come or go."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.class_mixture import CLASS_POOLS, uncalibrated
from kernelstream.core.experts.mixture import MixtureState, Pool
from kernelstream.core.experts.number_mixture import (
    BEYOND,
    CERTAIN,
    FEWEST,
    FIRST_ANSWERS,
    FIRST_PARTS,
    NUMBER_POOLS,
    SIMPLEST,
    WITHIN,
)
from kernelstream.core.units import FARTHEST_TARGET

#: Arrays whose last axis has a number for each expert, and sums to 1.
_SHARES = ("shares", "past", "recent", "wide_shares", "wide_past")
#: All arrays with such an axis.
BY_EXPERT = ("used", "powers", "covariance", *_SHARES)


def pools_of(numbers: bool) -> tuple[Pool, ...]:
    """The pools of a mixture."""
    return NUMBER_POOLS if numbers else CLASS_POOLS


def new_mixtures(
    used: NDArray[np.int64], numbers: bool, first: NDArray[np.float64] | float = 1.0
) -> MixtureState:
    """One for each set of experts that may be ``used``, before any row.

    ``first`` (e,) is what experts have at first, relative to each other.
    """
    shares = used * first
    even = shares / shares.sum(axis=1, keepdims=True)
    count, pools = len(used), pools_of(numbers)
    ways, of_numbers = (2 + len(pools), count) if numbers else (1 + len(pools), 0)
    # A pool of numbers adds to the shares; one of classes begins with a geometric mean of all.
    powers = np.zeros_like(even) if numbers else even
    simplest = np.column_stack([np.ones(count), used[:, -SIMPLEST:]])[:of_numbers]
    answers = np.array(FIRST_ANSWERS) * simplest
    return MixtureState(
        used=used, seen=np.zeros(1), shares=even.copy(), past=even.copy(), recent=even.copy(),
        powers=np.repeat(powers[:, None], len(pools), axis=1),
        covariance=np.stack([pool.spread * _diagonals(used) for pool in pools], axis=1),
        ways=np.full((count, ways), 1.0 / ways),
        calibration=np.tile(uncalibrated(), (count, 1)), scales=np.ones(count),
        wide_shares=even[:of_numbers].copy(), wide_past=even[:of_numbers].copy(),
        wide_scales=np.ones(of_numbers), extremes=np.zeros((of_numbers, 2)),
        inside=np.full(of_numbers, WITHIN),
        parts=np.tile(FIRST_PARTS, (of_numbers, 1)),
        certain=np.full((of_numbers, SIMPLEST), CERTAIN),
        answers=answers / answers.sum(axis=1, keepdims=True),
        unlike=np.full((of_numbers, 2), 0.5),
    )  # fmt: skip


def _diagonals(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """(m, e, e): each row as a diagonal."""
    return numbers[:, :, None] * np.eye(numbers.shape[1])


def begin_again(mixture: MixtureState, mine: slice, used: Any, numbers: bool) -> None:
    """Other experts in the places ``mine``, ``used`` (mixtures, places) or not."""
    mixture.used[:, mine] = used
    mixture.powers[..., mine] = 0.0
    mixture.covariance[..., mine] = 0.0
    mixture.covariance[..., mine, :] = 0.0
    for k, pool in enumerate(pools_of(numbers)):
        mixture.covariance[:, k, mine, mine] = pool.spread * _diagonals(used)
    start = 0.5 / mixture.used.sum(axis=1).max()
    for name in _SHARES:
        shares = getattr(mixture, name)
        if len(shares):
            shares[:, mine] = start * mixture.used[:, mine]
            shares /= shares.sum(axis=1, keepdims=True)


def without(mixture: MixtureState, place: int) -> MixtureState:
    """The same without an expert."""
    changed = {}
    for name in BY_EXPERT:
        kept = np.delete(getattr(mixture, name), place, axis=-1)
        if name == "covariance":
            kept = np.delete(kept, place, axis=-2)
        if name in _SHARES:
            kept /= kept.sum(axis=1, keepdims=True)
        changed[name] = np.ascontiguousarray(kept)
    return mixture._replace(**changed)


def weights_of_any_row(mixture: MixtureState, targets: int) -> NDArray[np.float64]:
    """What experts have in the prediction of any row: (targets, experts), the last mixtures.

    Of numbers alone. Where the simplest experts draw predictions to theirs, the mean has that part.
    """
    used, last = mixture.used[-1] != 0, slice(-targets, None)
    shares, wide = (
        np.where(used, part[last], 0.0) for part in (mixture.shares, mixture.wide_shares)
    )
    first, *pools, third = mixture.ways[last].T[:, :, None]
    weights = first * shares + third * wide
    for k, way in enumerate(pools):
        powers = np.where(used, mixture.powers[last, k], 0.0)
        weights += way * (powers + (1.0 - powers.sum(axis=1, keepdims=True)) * shares)
    parts = np.clip(mixture.parts[last], 0.0, 1.0)
    answers = mixture.answers[last]
    weights *= answers[:, :1] + (answers[:, 1:] * parts).sum(axis=1, keepdims=True)
    weights[:, -SIMPLEST:] += answers[:, 1:] * (1.0 - parts)
    return weights  # type: ignore[no-any-return]


def reach_of_any_row(
    mixture: MixtureState, targets: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(2, targets), (targets,): the least and the largest prediction of any row, and by how much
    what lies beyond is drawn there. Of numbers alone.
    """
    least, largest = mixture.extremes[-targets:].T
    beyond = BEYOND * (largest - least)
    ends = np.array([least - beyond, largest + beyond])
    if mixture.seen[0] < FEWEST:
        ends[:] = [[-FARTHEST_TARGET], [FARTHEST_TARGET]]
    return ends, mixture.inside[-targets:]
