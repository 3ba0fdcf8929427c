"""The page about programs that were compared on one stream."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelstream.evaluation.comparison import Comparison, Contestant
from kernelstream.evaluation.metrics import METRICS
from kernelstream.report import charts
from kernelstream.report.charts import Chart, Key, Line, Series, line_chart
from kernelstream.report.page import find_template, write_page
from kernelstream.report.progress import SHARES, Card, metric_name, metric_text

COLORS = 7  # of the style sheet: --p0 to --p6
RULE_STYLES = ("dashed", "dotted")


@dataclass(frozen=True)
class Row:
    """A program in the table."""

    key: Key
    words: Sequence[str]  # of its name: lines may break between them
    package: str
    rule: bool
    problem: str
    cells: Sequence[tuple[str, bool]]  # text, and whether it is the best of its column


def write_comparison_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    facts: Mapping[str, Any],
    comparison: Comparison,
    window: int,
) -> None:
    """Write how programs did side by side, as one HTML file that needs nothing else.

    Parameters
    ----------
    path, title, facts
        As for :func:`write_report`, which also says what can go wrong.
    comparison : Comparison
        Its notes are what the reader is warned of.
    window : int
        Rows of the windowed metrics.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelstream import compare, make_multidist
    >>> from kernelstream.report import write_comparison_report
    >>> result = compare(make_multidist(1000, random_state=0), models=["polk"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "compare.html")
    ...     write_comparison_report(
    ...         file, title="Two classes", facts={}, comparison=result, window=1000
    ...     )
    ...     "polk" in file.read_text()
    True
    """
    template = find_template("comparison.html.j2")
    keys = _keys(comparison.contestants)
    write_page(
        path,
        template,
        title,
        facts,
        comparison.notes,
        cards=_cards(comparison),
        columns=[*map(metric_name, comparison.metrics), "time per row", "memory", "rows"],
        rows=_rows(comparison, keys),
        classifier=comparison.task == "classification",
        window=f"{window:,}",
        course=_course(comparison, keys),
        cost=_cost(comparison, keys),
    )


def _keys(contestants: Sequence[Contestant]) -> list[Key]:
    """How each program is drawn: rules in grey, others in colours, which come again after all."""
    keys, rules, others = [], 0, 0
    for each in contestants:
        if each.rule:
            keys.append(Key(each.name, RULE_STYLES[rules % 2]))
            rules += 1
        else:
            style = "program" if others < COLORS else "program again"
            keys.append(Key(each.name, style, f"var(--p{others % COLORS})"))
            others += 1
    return keys


def _cards(comparison: Comparison) -> list[Card]:
    """The best program, how far it is ahead, and what those that beat the rules cost."""
    metric, rule = comparison.metrics[0], comparison.best_rule
    name = metric_name(metric)
    programs = [
        each
        for each in _finished(comparison)
        if not each.rule and np.isfinite(comparison.headline(each))
    ]
    if not programs:
        return [Card("Programs", "0", "none could be measured")]
    best = programs[0]
    cards = [Card(f"Best {name}", metric_text(metric, best.values[metric]), best.name)]
    able = programs
    if rule is not None:
        sign = -1.0 if METRICS[metric].lower_is_better else 1.0
        lead = sign * (best.values[metric] - rule.values[metric])
        text, unit = charts.compact(lead), ""
        if metric in SHARES:
            text, unit = f"{100.0 * lead:.1f}".replace("-", charts.MINUS), "points"
        remark = f"{rule.name}: {metric_text(metric, rule.values[metric])}"
        tone = "good" if lead > 0.0 else "bad"
        cards.append(Card("Ahead of the best rule by", text, remark, unit, tone))
        able = [p for p in programs if sign * (p.values[metric] - rule.values[metric]) > 0.0]
    if able:
        quick = min(able, key=lambda each: each.microseconds)
        known = [each for each in able if np.isfinite(each.nbytes)]
        cards.append(Card("Quickest above rules", _time(quick), f"a row, {quick.name}"))
        if known:
            small = min(known, key=lambda each: each.nbytes)
            cards.append(Card("Smallest above rules", charts.memory(small.nbytes), small.name))
    return cards


def _rows(comparison: Comparison, keys: Sequence[Key]) -> list[Row]:
    best = {name: _best(comparison, name) for name in comparison.metrics}
    others = [each for each in _finished(comparison) if not each.rule]
    quickest = min((each.microseconds for each in others), default=np.nan)
    smallest = min((e.nbytes for e in others if np.isfinite(e.nbytes)), default=np.nan)
    rows = []
    for each, key in zip(comparison.contestants, keys, strict=True):
        cells = []
        for name in comparison.metrics:
            value = each.values.get(name, np.nan)
            cells.append((_text(name, value), value == best[name] and not each.problem))
        cost = [(charts.MISSING, False)] * 2
        if not each.rule:
            held = charts.memory(each.nbytes)
            able = not each.problem
            cost = [
                (_time(each), able and each.microseconds == quickest),
                (held, able and each.nbytes == smallest),
            ]
        cells += [*cost, (f"{each.rows:,}", False)]
        package = "" if each.rule else each.package
        words = re.split(r"(?<=[:.|])", each.name)
        rows.append(Row(key, words, package, each.rule, each.problem, cells))
    return rows


def _finished(comparison: Comparison) -> list[Contestant]:
    """Those that were measured on all rows."""
    return [each for each in comparison.contestants if not each.problem]


def _best(comparison: Comparison, metric: str) -> float:
    values = [each.values.get(metric, np.nan) for each in _finished(comparison)]
    finite = [value for value in values if np.isfinite(value)]
    chosen = min if METRICS[metric].lower_is_better else max
    return chosen(finite, default=np.nan)


def _text(metric: str, value: float) -> str:
    """A metric in a column of such: the same digits for all where it has no units."""
    if metric in SHARES or metric in ("mae", "rmse") or not np.isfinite(value):
        return metric_text(metric, value)
    text = f"{abs(value):.3f}"
    return f"{charts.MINUS if value < 0.0 and float(text) else ''}{text}"


def _time(each: Contestant) -> str:
    return charts.duration(1e-6 * each.microseconds)


def _course(comparison: Comparison, keys: Sequence[Key]) -> Chart:
    """The windowed metric of every program and the best rule, at the places of all records."""
    metric = comparison.metrics[0]
    columns = [each.trace.to_columns() for each in comparison.contestants]
    places = np.unique(np.concatenate([column["samples"] for column in columns]))
    series = []
    for each, key, column in zip(comparison.contestants, keys, columns, strict=True):
        if each.rule and each is not comparison.best_rule:
            continue  # far below, and would leave little room for the others
        values = np.full(len(places), np.nan)
        windowed = column.get(f"{metric}_window", np.nan)
        values[np.searchsorted(places, column["samples"])] = windowed
        series.append(Series(key.label, key.style, values, key.color))
    series.sort(key=lambda one: not one.color)  # rules last: in the legend, too
    look = charts.percent if metric in SHARES else charts.compact
    name = metric_name(metric)
    title = name[:1].upper() + name[1:]
    return line_chart(title, places.astype(float), series, y_format=look, from_zero="x")


def _cost(comparison: Comparison, keys: Sequence[Key]) -> Chart:
    """The metric against the logarithm of the time, with the best rule as a line."""
    metric, rule = comparison.metrics[0], comparison.best_rule
    drawn = [
        (each, key)
        for each, key in zip(comparison.contestants, keys, strict=True)
        if not each.rule and each.microseconds > 0.0 and np.isfinite(comparison.headline(each))
    ]
    name = metric_name(metric)
    title = f"{name[:1].upper()}{name[1:]} and time"
    if not drawn:
        return Chart(title, "Nothing was measured.", "time per row")
    y = np.array([each.values[metric] for each, _ in drawn])
    low, high = charts.padded(np.append(y, [] if rule is None else rule.values[metric]))
    x = np.log10([1e-6 * each.microseconds for each, _ in drawn])
    first, last = np.floor(x.min() - 0.02), np.ceil(x.max() + 0.02)
    look = charts.percent if metric in SHARES else charts.compact
    dots, words = [], []
    for (each, key), across, up in zip(drawn, x, y, strict=True):
        label = f"{each.name}: {metric_text(metric, each.values[metric])}, {_time(each)}"
        left = 100.0 * (across - first) / (last - first)
        down = 100.0 * (high - up) / (high - low)
        dots.append(charts.Dot(round(left, 2), round(down, 2), key.color, key.style, label))
        words.append(label)
    lines = []
    legend = [replace(key, style=f"{key.style} dot") for _, key in drawn]
    if rule is not None:
        down = 1000.0 * (high - rule.values[metric]) / (high - low)
        lines.append(Line("dashed", f"M0,{down:.1f}L1000,{down:.1f}"))
        legend.append(Key(f"{rule.name}, the best rule", "dashed"))
    decades = np.arange(first, last + 1.0)
    return Chart(
        title=title,
        x_label="time per row",
        y_label=name,
        description=f"{'; '.join(words)}.",
        x_ticks=[
            charts.Tick(round(100.0 * (d - first) / (last - first), 3), charts.duration(10.0**d))
            for d in decades.tolist()
        ],
        y_ticks=charts.axis_ticks(low, high, 4, look, down=True),
        dots=dots,
        lines=lines,
        keys=legend,
        grid="xy",
    )
