"""What a model of many experts did: who led when, and which columns matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelstream.evaluation.drawing import PALETTE
from kernelstream.report.charts import Bar, Chart, bars, stacked_chart

#: Bars of columns.
MOST_BARS = 12
OTHER_COLOR = "#8A8A8A"


@dataclass(frozen=True)
class ToldSection:
    """What the page says about it."""

    sentence: str
    chart: Chart | None
    bars: Sequence[Bar]


def told_section(model: Any, importances: Mapping[str, float], sentence: str) -> ToldSection | None:
    """Nothing for a model that has neither a history nor importances."""
    chart = _shares(model) if hasattr(model, "history_") else None
    some = any(part > 0.0 for part in importances.values())
    if chart is None and not some:
        return None
    return ToldSection(sentence, chart, bars(importances, MOST_BARS) if some else [])


def _shares(model: Any) -> Chart | None:
    history = dict(model.history_)
    rows = np.asarray(history.pop("rows"), dtype=float)
    if not len(rows):
        return None
    named = dict(list(history.items())[: len(PALETTE)])  # the largest on average come first
    colors = list(PALETTE[: len(named)])
    if len(named) < len(history):
        named["others"] = np.clip(1.0 - sum(named.values()), 0.0, 1.0)
        colors.append(OTHER_COLOR)
    return stacked_chart(
        "Shares of the experts",
        rows,
        named,
        colors,
        marks=[float(row) for row in model.drifts_],
        mark_label="predictions became worse",
        note="A kernel is named by its length scale, gamma times the columns: coarse ones are "
        "small numbers. Adaptive ones follow a stream that changes.",
    )
