"""How losses are distributed, beside those of other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelstream.report.charts import Chart, Series, axis_ticks, compact, line_chart, percent

NAMES = {
    "count": "samples",
    "mean": "mean",
    "deviation": "standard deviation",
    "semideviation": "semideviation (above the mean)",
    "largest": "largest",
}
STYLES = ("thick", "dashed", "thin", "dotted")
#: Levels at which the mean of the worst losses is drawn.
LEVELS = np.concatenate([np.linspace(0.0, 0.95, 20), [0.96, 0.97, 0.98, 0.99]])

#: The smallest losses are not drawn: they would take up decades.
UNSEEN = 0.03


@dataclass(frozen=True)
class RiskSection:
    """What the page says about risk."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    charts: Sequence[Chart]


def risk_section(losses: Mapping[str, Any]) -> RiskSection:
    """Table and charts of some loss distributions, the model's own first."""
    summaries = [distribution.summary() for distribution in losses.values()]
    return RiskSection(
        columns=list(losses),
        rows=[
            (
                NAMES.get(name) or f"CVaR {name.removeprefix('cvar_')} % (mean of the worst)",
                [compact(summary[name]) for summary in summaries],
            )
            for name in summaries[0]
        ],
        charts=[_histogram(losses), _tails(losses)],
    )


def _histogram(losses: Mapping[str, Any]) -> Chart:
    """Shares of the samples by the size of their loss, which spans decades."""
    found = []
    least = min(distribution.quantile(UNSEEN) for distribution in losses.values())
    for distribution in losses.values():
        x, shares = distribution.histogram()
        found.append((x[x >= least], shares[x >= least]))
    places = np.unique(np.concatenate([np.round(np.log10(x), 6) for x, _ in found]))
    series = []
    for name, style, (x, shares) in zip(losses, STYLES, found, strict=False):
        values = np.zeros(len(places))
        values[np.searchsorted(places, np.round(np.log10(x), 6))] = shares
        series.append(Series(name, style, values))
    chart = line_chart(
        "Distribution of losses", places, series, x_label="loss", y_format=percent, from_zero="y"
    )
    if len(places) < 2:
        return chart
    ticks = axis_ticks(places[0], places[-1], 4, lambda value, step: compact(10.0**value))
    return replace(chart, x_ticks=ticks)


def _tails(losses: Mapping[str, Any]) -> Chart:
    """The mean of the worst losses, by how many count as the worst."""
    series = [
        Series(name, style, np.array([distribution.cvar(level) for level in LEVELS]))
        for (name, distribution), style in zip(losses.items(), STYLES, strict=False)
    ]
    return line_chart(
        "Mean of the worst losses (CVaR)", 100.0 * LEVELS, series, x_label="level, %",
        from_zero="y",
    )  # fmt: skip
