"""Mixtures between passes: how they begin, and what they do when experts come or go."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.mixture import (
    SIMPLEST,
    SPREAD,
    WHOLE,
    MixtureState,
    uncalibrated,
)

#: Arrays whose last axis has a number for each expert.
_BY_EXPERT = ("used", "shares", "past", "recent", "powers", "squares", "wide_shares", "wide_past")
#: Those that sum to 1.
_SHARES = ("shares", "past", "recent", "wide_shares", "wide_past")


def new_mixtures(used: NDArray[np.int64], numbers: bool) -> MixtureState:
    """One for each set of experts that may be ``used``, before any row."""
    even = used / used.sum(axis=1, keepdims=True)
    count, e = used.shape
    squares, ways, of_numbers = np.zeros((count, e, e)), 2, 0
    if numbers:
        squares[:, range(e), range(e)] = SPREAD * used
        ways, of_numbers = 3, count
    answers = np.column_stack([np.ones(count, np.int64), used[:, -SIMPLEST:]])[:of_numbers]
    return MixtureState(
        used=used, seen=np.zeros(1), shares=even.copy(), past=even.copy(), recent=even.copy(),
        powers=np.zeros_like(even) if numbers else even.copy(), squares=squares,
        ways=np.full((count, ways), 1.0 / ways),
        calibration=np.tile(uncalibrated(), (count, 1)), scales=np.ones(count),
        wide_shares=even[:of_numbers].copy(), wide_past=even[:of_numbers].copy(),
        wide_scales=np.ones(of_numbers), parts=np.ones((of_numbers, SIMPLEST)),
        certain=np.full((of_numbers, SIMPLEST), WHOLE),
        answers=answers / answers.sum(axis=1, keepdims=True),
    )  # fmt: skip


def begin_again(mixture: MixtureState, mine: slice, used: Any, numbers: bool) -> None:
    """Other experts in the places ``mine``, ``used`` (mixtures, places) or not."""
    mixture.used[:, mine] = used
    mixture.powers[:, mine] = 0.0
    mixture.squares[:, mine] = 0.0
    mixture.squares[:, :, mine] = 0.0
    start = 0.0
    if used.any():
        start = 0.5 / mixture.used.sum(axis=1).max()
        if numbers:
            own = range(mine.start, mine.stop)
            mixture.squares[:, own, own] = SPREAD
    for name in _SHARES:
        shares = getattr(mixture, name)
        if len(shares):
            shares[:, mine] = start * mixture.used[:, mine]
            shares /= shares.sum(axis=1, keepdims=True)


def without(mixture: MixtureState, place: int) -> MixtureState:
    """The same without an expert."""
    changed = {}
    for name in _BY_EXPERT:
        kept = np.delete(getattr(mixture, name), place, axis=-1)
        if name == "squares":
            kept = np.delete(kept, place, axis=1)
        if name in _SHARES:
            kept /= kept.sum(axis=1, keepdims=True)
        changed[name] = np.ascontiguousarray(kept)
    return mixture._replace(**changed)


def weights_of_any_row(mixture: MixtureState, targets: int) -> NDArray[np.float64]:
    """What experts have in the prediction of any row: (targets, experts), the last mixtures.

    Of numbers alone. Where the simplest experts draw predictions to theirs, the mean has that part.
    """
    used, last = mixture.used[-1] != 0, slice(-targets, None)
    shares, wide, powers = (
        np.where(used, part[last], 0.0)
        for part in (mixture.shares, mixture.wide_shares, mixture.powers)
    )
    first, second, third = mixture.ways[last].T[:, :, None]
    first = first + second * (1.0 - powers.sum(axis=1, keepdims=True))
    weights = first * shares + second * powers + third * wide
    parts = np.clip(mixture.parts[last], 0.0, 1.0)
    answers = mixture.answers[last]
    weights *= answers[:, :1] + (answers[:, 1:] * parts).sum(axis=1, keepdims=True)
    weights[:, -SIMPLEST:] += answers[:, 1:] * (1.0 - parts)
    return weights  # type: ignore[no-any-return]
