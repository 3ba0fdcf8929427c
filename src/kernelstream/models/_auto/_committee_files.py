"""A committee as plain numbers and arrays, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kernelstream.core.experts.neighbours import SIZE as NEIGHBOURS
from kernelstream.core.experts.number_mixture import NUMBER_POOLS
from kernelstream.core.units import FARTHEST_TARGET
from kernelstream.models._auto._classes import Chains
from kernelstream.models._auto._committee import FARTHEST_EXTREME, Committee
from kernelstream.models._auto._files import (
    fill,
    fill_record,
    group_arrays,
    group_header,
    read_group,
    record,
)
from kernelstream.models._auto._forest import LEAVES
from kernelstream.models._auto._group import RATES, SIZE
from kernelstream.models._auto._mixtures import BY_EXPERT
from kernelstream.models._auto._sizes import DECAYS, LINEAR, Sizes
from kernelstream.models._auto._units import WIDEST
from kernelstream.parts import Arrays, part_of, prefixed

#: Of a pool: what experts, or their uncertainty, may have in a file.
_LARGEST_POWER = 1e30
_COUNTS = ("seen", "raced", "moved", "seed")


def are_counts(numbers: Iterable[Any]) -> bool:
    return all(type(number) is int and 0 <= number < 2**62 for number in numbers)


def committee_document(committee: Committee) -> tuple[dict[str, Any], Arrays]:
    """Everything but the number of outputs."""
    header: dict[str, Any] = {
        "sizes": list(committee.sizes),
        "delayed": committee.delayed,
        "forget": committee.forget,
        **{name: getattr(committee, name) for name in (*_COUNTS, "leader", "challenger")},
        "closed": [[scale, *when] for scale, when in committee.closed.items()],
        "groups": [None if group is None else group_header(group) for group in committee.groups],
        "linear": [record(linear.status) for linear in committee.linear],
    }
    arrays = {name: array.copy() for name, array in _plain_arrays(committee).items()}
    for place, group in enumerate(committee.groups):
        if group is not None:
            arrays |= prefixed(f"group{place}_", group_arrays(group))
    return header, arrays


def read_settings(header: Mapping[str, Any]) -> tuple[Sizes, bool, bool | str]:
    """Sizes, whether labels are delayed, what is forgotten; ValueError if they cannot be."""
    sizes, delayed, forget = Sizes(*header["sizes"]), header["delayed"], header["forget"]
    if type(sizes.whole) is bool:  # earlier files say whether all keep the diagonal alone
        sizes = sizes._replace(whole=0 if sizes.whole else len(LINEAR))
    counts = sizes.most, sizes.large, sizes.memory, sizes.young, sizes.leaves, sizes.columns
    if not are_counts([*counts, header["seed"]]):
        raise ValueError("the numbers of the state are out of range")
    trees = sizes.leaves in LEAVES and 1 <= sizes.columns <= WIDEST
    if not trees and (sizes.leaves, sizes.columns) != (0, 0):
        raise ValueError("the sizes of the state are out of range")
    if not 1 <= sizes.most <= sizes.large <= 2**16 or max(sizes.memory, sizes.young) > 2**16:
        raise ValueError("the sizes of the state are out of range")
    if {type(delayed), type(sizes.lags)} != {bool} or sizes.whole not in range(len(LINEAR) + 1):
        raise ValueError("the state's settings are out of range")
    if forget not in (True, False, "auto"):
        raise ValueError("the state's settings are out of range")
    return sizes, delayed, forget


def read_committee(
    committee: Committee, header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Fill a new committee, which has the settings of the file."""
    sizes, numbers = committee.sizes, committee.numbers
    if not are_counts(header[name] for name in _COUNTS):
        raise ValueError("the numbers of the state are out of range")
    if len(header["groups"]) != len(committee.groups):
        raise ValueError("the groups are not those of this version")
    known = sizes.most, sizes.changing, sizes.leading, sizes.large
    for place, note in enumerate(header["groups"]):
        own = part_of(f"group{place}_", arrays)
        committee.groups[place] = (
            None
            if note is None
            else read_group(committee.features, committee.outputs, numbers, known, RATES, note, own)
        )
    for linear, note in zip(committee.linear, header["linear"], strict=True):
        fill_record(linear.status, {"far": 0, **note})  # earlier files do not say it
        if linear.status[0]["numbers"] != numbers:
            raise ValueError("a linear expert is of another kind")
        if not -1.0 <= linear.status[0]["last"] < committee.outputs and not numbers:
            raise ValueError("the last class is unknown")
    fill(_plain_arrays(committee), _as_now(committee, arrays))
    for name in _COUNTS:
        setattr(committee, name, header[name])
    for name in ("leader", "challenger"):
        if header[name] not in range(-1, len(committee.groups)):
            raise ValueError(f"the {name} is not a group")
        setattr(committee, name, header[name])
    committee.closed = {float(s): (int(a), int(b)) for s, a, b in header["closed"]}
    _check_committee(committee)


def _as_now(committee: Committee, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Earlier files have a scale of errors for each expert, calibrate by first-order steps, mix
    numbers in two ways, or never nearer to the simplest experts, have one pool, whose powers of
    classes moved by first-order steps, and no experts on similar rows.

    The scale of all of them together, the three numbers of the calibration and the powers are where
    it begins; the third way of numbers, and what is nearer, predicts nothing until it has learned.
    """
    mixture, found = committee.mixture, dict(arrays)
    experts = found["mixture_used"].shape[-1]
    if not committee.delayed and experts == committee.experts - NEIGHBOURS:
        found |= _with_similar(committee, found)
    scales, numbers = found["mixture_scales"], found["mixture_calibration"]
    if scales.shape == (len(mixture.used), experts + 2):
        found["mixture_scales"] = np.ascontiguousarray(scales[:, -2])
    if numbers.shape == (len(mixture.used), 6) and numbers.dtype == np.float64:
        found["mixture_calibration"] = np.column_stack([numbers[:, :3], mixture.calibration[:, 3:]])
    if "mixture_pair" in found:
        found["mixture_ways"] = found.pop("mixture_pair")
        if committee.numbers:
            found["mixture_ways"] = np.pad(found["mixture_ways"], ((0, 0), (0, 1)))
        for name in ("shares", "past", "scales"):
            of_classes = getattr(mixture, f"wide_{name}")
            wide = found[f"mixture_{name}"] if committee.numbers else of_classes
            found[f"mixture_wide_{name}"] = wide
    if "mixture_squares" in found:
        found |= _with_pools(committee, found)
    if "mixture_answers" not in found:
        found |= {f"mixture_{name}": getattr(mixture, name) for name in ("parts", "certain")}
        found["mixture_answers"] = np.zeros_like(mixture.answers)
        found["mixture_answers"][:, :1] = 1.0
    found.setdefault("mixture_unlike", mixture.unlike)
    anything = np.tile([-FARTHEST_TARGET, FARTHEST_TARGET], (len(mixture.extremes), 1))
    found.setdefault("mixture_extremes", anything)
    found.setdefault("mixture_inside", mixture.inside)
    if "owners" not in found:
        found |= _fewer_rows(committee, found)
    return found


def _with_similar(committee: Committee, arrays: Mapping[str, Any]) -> Arrays:
    """Mixtures of files without experts on similar rows: these have no share until they learn."""
    mine, used = committee.similar, committee.mixture.used
    places = np.full(NEIGHBOURS, mine.start)
    names = [f"mixture_{name}" for name in (*BY_EXPERT, "squares")]
    found = {name: np.insert(arrays[name], places, 0, axis=-1) for name in names if name in arrays}
    found["mixture_used"][:, mine] = used[:, mine]
    if "mixture_squares" in found:
        squares = np.insert(found["mixture_squares"], places, 0, axis=-2)
        for k in range(mine.start, mine.stop):
            squares[:, k, k] = NUMBER_POOLS[0].spread * used[:, k]
        found["mixture_squares"] = squares
    return found


def _with_pools(committee: Committee, arrays: Mapping[str, Any]) -> Arrays:
    """Powers, their covariance and the ways, of files with one pool."""
    mixture, pools = committee.mixture, committee.mixture.powers.shape[1]
    powers = np.repeat(arrays["mixture_powers"][:, None], pools, axis=1)
    if committee.numbers:
        covariance = np.ascontiguousarray(arrays["mixture_squares"][:, None])
        return {"mixture_powers": powers, "mixture_covariance": covariance}
    first, second = np.hsplit(arrays["mixture_ways"], 2)
    return {
        "mixture_powers": powers,
        "mixture_covariance": mixture.covariance,
        "mixture_ways": np.hstack([first, *[second / pools] * pools]),
    }


def _fewer_rows(committee: Committee, arrays: Mapping[str, Any]) -> Arrays:
    """Chains and linear experts of files that have a row, or an input, for every last class."""
    counts, classes = arrays["counts"], committee.chains.counts.shape[2]
    if counts.shape != (len(DECAYS), classes + 1, classes):
        raise ValueError("counts contradicts the other parts of the state")
    chains = Chains(classes)
    chains.counts, chains.owners = counts.copy(), np.arange(classes)
    chains.times = np.zeros(classes, np.int64)
    chains.keep(counts[0, :-1].sum(axis=1))
    found = chains.arrays
    for place, linear in enumerate(committee.linear):
        width = linear.weights.shape[1]
        for name in (f"linear{place}_covariance", f"linear{place}_weights"):
            found[name] = np.ascontiguousarray(arrays[name][:, :width])
        full = len(found[f"linear{place}_covariance"]) > 1
        found[f"linear{place}_covariance"] = found[f"linear{place}_covariance"][
            : width if full else 1
        ]
    return found


def _plain_arrays(committee: Committee) -> Arrays:
    """Arrays of a committee that are always there."""
    found = {
        "last": committee.last, "level": committee.level, "level_seen": committee.level_seen,
        **committee.chains.arrays,
    }  # fmt: skip
    found |= prefixed("mixture_", committee.mixture._asdict())
    for place, linear in enumerate(committee.linear):
        found[f"linear{place}_covariance"] = linear.covariance
        found[f"linear{place}_weights"] = linear.weights
    if committee.lags is not None:
        found |= prefixed("lags_", committee.lags._asdict())
    return found


def _check_committee(committee: Committee) -> None:
    mixture, sums = committee.mixture, committee.mixture.shares.sum(axis=1)
    used = np.isin(mixture.used, (0, 1)).all()
    shares = (mixture.shares >= 0.0).all() and np.allclose(sums, 1.0)
    wide = (mixture.wide_shares >= 0.0).all() and np.allclose(mixture.wide_shares.sum(axis=1), 1.0)
    ways = (mixture.ways >= 0.0).all() and np.allclose(mixture.ways.sum(axis=1), 1.0)
    answers = (mixture.answers >= 0.0).all() and np.allclose(mixture.answers.sum(axis=1), 1.0)
    unlike = (mixture.unlike >= 0.0).all() and np.allclose(mixture.unlike.sum(axis=1), 1.0)
    parts = mixture.past, mixture.recent, mixture.wide_past
    averages = all(((part >= 0.0) & (part <= 1.0 + 1e-6)).all() for part in parts)
    diagonals = np.diagonal(mixture.covariance, axis1=-2, axis2=-1)
    pools = (np.abs(mixture.powers) <= _LARGEST_POWER).all() and (diagonals >= -1e-6).all()
    pools = pools and (np.abs(mixture.covariance) <= _LARGEST_POWER).all()
    averages = averages and bool((np.diff(mixture.extremes) >= 0.0).all())
    averages = averages and bool((np.abs(mixture.extremes) <= FARTHEST_EXTREME).all())
    averages = averages and bool(((mixture.inside > 0.0) & (mixture.inside < 1.0)).all())
    counted = min(mixture.seen[0], committee.level_seen[0]) >= 0.0
    variances = mixture.calibration[:, [3, 5, 8]]
    positive = (mixture.scales, mixture.wide_scales, variances, mixture.certain)
    if not (
        used
        and shares
        and wide
        and ways
        and answers
        and averages
        and unlike
        and pools
        and counted
        and all((part > 0.0).all() for part in positive)
    ):
        raise ValueError("the shares of the experts are out of range")
    for place, group in enumerate(committee.groups):
        mine = mixture.used[:, SIZE * place : SIZE * (place + 1)]
        allowed = committee.allowed[:, SIZE * place : SIZE * (place + 1)]
        if (mine != allowed * (group is not None)).any():
            raise ValueError("the shares of the experts contradict the groups")
    lags = committee.lags
    if lags is not None and min(lags.seen[0], *lags.squares) < 0.0:
        raise ValueError("the expert on earlier numbers is out of range")
    classes = not committee.numbers
    if classes and not -1.0 <= committee.last[0] < committee.outputs:
        raise ValueError("the last class is unknown")
    chains = committee.chains
    if (chains.counts < 0.0).any() or (chains.times < 0).any():
        raise ValueError("the counts of classes are negative")
    owners = np.unique(chains.owners)
    if len(owners) < len(chains.owners) or not np.isin(owners, range(chains.counts.shape[2])).all():
        raise ValueError("the counts belong to unknown classes")
