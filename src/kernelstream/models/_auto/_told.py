"""What an automatic model does, in tables and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.neighbours import NEAREST
from kernelstream.models._auto._group import SIZE
from kernelstream.models._auto._history import GROUPS, WIDTH

#: Shares below are not worth a word.
_SMALL = 0.1
#: Columns that matter are named until they have so much together, at most so many of them.
_ENOUGH, _MOST_NAMES = 0.6, 3
#: A column stands out if it has so many times an equal part.
_STANDS_OUT = 1.5


def shares_of(committee: Any) -> NDArray[np.float64]:
    """How the experts share now, as a record of the history."""
    shares, found = committee.recent(), []
    for place, group in enumerate(committee.groups):
        mine = shares[SIZE * place : SIZE * (place + 1)]
        scale = 0.0 if group is None else -group.scale if len(group.turn) else group.scale
        found += [scale, mine[0], mine[1:].sum()]
    first = SIZE * len(committee.groups)
    last = first + len(committee.linear)
    lagged = np.array([linear.status[0]["lagged"] for linear in committee.linear], bool)
    trees, similar, linear = shares[committee.trees], shares[committee.similar], shares[first:last]
    others = np.delete(shares, slice(committee.trees.start, committee.similar.stop))[last:]
    kinds = linear[~lagged], linear[lagged], trees, similar, others[:-1], others[-1]
    return np.array([*found, *(kind.sum() for kind in kinds)])


def slopes_of(experts: Any) -> NDArray[np.float64]:
    """(features,): how strongly predictions react to each, by the experts' shares; sum 1.

    Mean squares of slopes, of trees the gains of splits; all 0 where nothing is known yet.
    """
    committee = experts.leading
    shares, found = committee.recent(), np.zeros(committee.features)
    parts = [
        (shares[SIZE * place : SIZE * (place + 1)].sum(), group.slopes())
        for place, group in enumerate(committee.groups)
        if group is not None
    ]
    first = SIZE * len(committee.groups)
    for place, linear in enumerate(committee.linear):
        weights = linear.weights[:, 1 : 1 + committee.features]
        squares = np.square(np.clip(weights, -1e150, 1e150))
        parts.append((shares[first + place], squares.mean(axis=0)))
    if experts.forest is not None:
        parts.append((shares[committee.trees].sum(), experts.forest.gains()))
    for share, squares in parts:
        total = squares.sum()
        if total > 0.0:
            found += share * (squares / total)
    return found / (found.sum() or 1.0)


def expert_shares(committee: Any) -> dict[str, float]:
    """Every expert in use with its share, largest first."""
    names: list[str] = []
    for group in committee.groups:
        if group is None:
            names += [""] * SIZE
            continue
        kernel = _kernel_name(-group.scale if len(group.turn) else group.scale)
        names.append(kernel)
        names += [f"{kernel}, adaptive, step {rate:g}" for rate in group.state.rates]
    last, level = _others(committee.numbers)
    for linear in committee.linear:
        status = linear.status[0]
        name = f"linear with the {last[0]}" if status["lagged"] else "linear"
        names.append(name + ", forgetting" * bool(status["forget"] < 1.0))
    last = last[1:]
    if committee.lags is not None:
        names.append("earlier values")
    if committee.sizes.leaves:
        names.append("trees")
    if not committee.delayed:
        names += ["most similar row", f"{NEAREST} similar rows"]
    names += [*last, level]
    mixture = committee.mixture
    shares = {
        name: float(share)
        for name, share, used in zip(names, committee.recent(), mixture.used[0], strict=True)
        if used
    }
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _others(numbers: bool) -> tuple[list[str], str]:
    """What experts on earlier targets are called, after the word for an earlier target."""
    if numbers:
        return ["last value", "last value"], "mean"
    return ["last label", "label after label", "label after label, forgetting"], "label frequencies"


def _kernel_name(scale: float) -> str:
    return f"kernel {scale:g}" if scale > 0.0 else "kernel, full metric"


def families(records: NDArray[Any], numbers: bool) -> dict[str, NDArray[np.float64]]:
    """Columns of shares by family from (n, WIDTH) records: kernels by length scale, and others."""
    columns: dict[str, NDArray[np.float64]] = {}

    def add(name: str, where: Any, shares: Any) -> None:
        held = columns.setdefault(name, np.zeros(len(records)))
        held[where] += shares[where]

    for group in range(GROUPS):
        scales, second, first = records[:, 3 * group : 3 * group + 3].T.astype(np.float64)
        for scale in np.unique(scales[scales != 0.0]).tolist():
            where = scales == scale
            add(_kernel_name(scale), where, second)
            add(f"{_kernel_name(scale)}, adaptive", where, first)
    last = _others(numbers)[0][0]
    level = _others(numbers)[1]
    others = ("linear", f"linear with the {last}", "trees", "similar rows", f"{last}s", level)
    for name, shares in zip(others, records[:, 3 * GROUPS :].T, strict=True):
        add(name, slice(None), shares.astype(np.float64))
    used = {name: shares for name, shares in columns.items() if shares.any()}
    return dict(sorted(used.items(), key=lambda item: -item[1].sum()))


def history_of(experts: Any) -> dict[str, NDArray[Any]]:
    """Rows, and the shares of each family at them; the last row is now."""
    history, committee = experts.history, experts.leading
    rows = history.every * np.arange(1, history.count + 1)
    records = history.records[: history.count]
    if experts.seen and not history.is_due(experts.seen):
        rows = np.append(rows, experts.seen)
        now = shares_of(committee).astype(np.float32)
        records = np.concatenate([records, now[None]])
    return {"rows": rows, **families(records.reshape(-1, WIDTH), committee.numbers)}


# ---- in words ---------------------------------------------------------------------------


def in_a_sentence(experts: Any, importances: Mapping[str, float]) -> str:
    """What the model is, which columns matter and when the stream changed."""
    history, committee = experts.history, experts.leading
    marks = history.told.tolist()
    before = history.all_told - len(marks)
    record = shares_of(committee)
    of_columns = 1.0 - record[-2:].sum()  # the share of experts that look at columns
    parts = [
        _of_experts(record, committee.numbers),
        _of_columns(importances) if of_columns >= _SMALL else "",
        _of_changes(marks, before),
        _of_restarts(experts.began),
    ]
    text = "; ".join(part for part in parts if part)
    return f"{text[:1].upper()}{text[1:]}."


def _of_experts(record: NDArray[np.float64], numbers: bool) -> str:
    last, level = ("value", "the mean so far") if numbers else ("label", "the usual labels")
    kinds = {
        "a nonlinear model": record[1 : 3 * GROUPS : 3].sum(),
        "a nonlinear model that follows changes": record[2 : 3 * GROUPS : 3].sum(),
        "a linear model": record[-6],
        f"a linear model that knows the last {last}": record[-5],
        "trees": record[-4],
        "rows like it lately": record[-3],
        f"the last {last}s alone": record[-2],
        level: record[-1],
    }
    ranked = sorted(kinds.items(), key=lambda item: -item[1])
    named = [item for item in ranked[1:] if item[1] >= _SMALL]
    said = [f"{name} ({100.0 * share:.0f} %)" for name, share in [ranked[0], *named]]
    return ("mostly " if ranked[0][1] > 0.5 else "") + ", then ".join(said)


def _of_columns(importances: Mapping[str, float]) -> str:
    if len(importances) < 2:
        return ""
    ranked = sorted(importances.items(), key=lambda item: -item[1])
    if ranked[0][1] <= 0.0:
        return ""
    if ranked[0][1] < _STANDS_OUT / len(ranked):
        return "no column matters much more than the others"
    names: list[str] = []
    named, total = set[str](), 0.0
    for name, share in ranked[:_MOST_NAMES]:
        if total >= _ENOUGH or share < 0.5 * ranked[0][1] / _MOST_NAMES:
            break
        total += share
        columns = set(name.split(" or "))  # some share an input
        if not columns & named:
            names.append(name)
            named |= columns
    return f"{_listed(names)} {'matter' if len(names) > 1 else 'matters'} most"


def _of_changes(marks: Sequence[int], before: int) -> str:
    if not marks:
        return ""
    shown = marks[-_MOST_NAMES:]
    more = before + len(marks) - len(shown)
    rows = f"row{'s' if len(shown) > 1 else ''} {_listed([f'{row:,}' for row in shown])}"
    often = f", and {more:,} {'times' if more > 1 else 'time'} before" if more else ""
    return f"predictions became worse at once, as after a change, near {rows}{often}"


def _of_restarts(count: int) -> str:
    if not count:
        return ""
    times = "once" if count == 1 else f"{count:,} times"
    return f"it forgot everything {times}, which was better than what it had learned before"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
