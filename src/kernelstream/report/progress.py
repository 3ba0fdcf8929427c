"""What a trace shows: the numbers at the end, and how they developed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.evaluation.metrics import METRICS
from kernelstream.evaluation.trace import BESIDE_THE_STREAM
from kernelstream.models._files import stored_bytes
from kernelstream.report import charts
from kernelstream.report.charts import MINUS, MISSING, Chart, Series, Values, compact, line_chart

# Columns of a trace that are not metrics; the others are, the first of them in the headline.
BOOKKEEPING = ("samples", "seconds", "model_order", "bytes", "error_spent", "residual")
BASELINES = ("no_change", "majority")
BETTER_LOW = {"mse", *(name for name, metric in METRICS.items() if metric.lower_is_better)}
STYLES = ("dashed", "dotted")  # of the baselines
SHARES = {"accuracy", "balanced_accuracy", "error"}
NAMES = {"auc": "AUC", "f1": "F1", "mae": "MAE", "mse": "MSE", "r2": "R²", "rmse": "RMSE"}


@dataclass(frozen=True)
class Card:
    """A number to see at once."""

    label: str
    value: str
    remark: str = ""
    unit: str = ""
    tone: str = ""  # "good", "bad" or neither


class Progress:
    """The columns of a trace, whichever of them there are, as float arrays of one length."""

    def __init__(self, columns: Mapping[str, Any], *, of_classes: bool) -> None:
        self.columns = {str(name): _numbers(values) for name, values in columns.items()}
        self.length = min((len(values) for values in self.columns.values()), default=0)
        known = {*BOOKKEEPING, *BASELINES, *BESIDE_THE_STREAM}
        ends = ("_window", "_fading")
        self.metrics = [n for n in self.columns if n not in known and not n.endswith(ends)]
        self.headline = self.metrics[0] if self.metrics else None
        constant = "majority" if of_classes else "the mean"
        self.baselines = dict(zip(BASELINES, ("no change", constant), strict=True))

    def __getitem__(self, name: str) -> Values:
        values = self.columns.get(name)
        return np.full(self.length, np.nan) if values is None else values[: self.length]

    def shows(self, name: str) -> bool:
        """Whether a column has any value."""
        return bool(np.isfinite(self[name]).any())

    def last(self, name: str) -> float:
        """The value at the end; NaN if there is none."""
        return float(self[name][-1]) if self.length else math.nan


def metric_name(name: str) -> str:
    """A metric's name for a sentence.

    >>> metric_name("balanced_accuracy"), metric_name("rmse")
    ('balanced accuracy', 'RMSE')
    """
    return NAMES.get(name, name.replace("_", " "))


def metric_text(name: str | None, value: float) -> str:
    """A metric's value: shares in percent, others with three digits."""
    return charts.percent(value) if name in SHARES else compact(value)


def cards(
    progress: Progress, model: Any, frozen: Mapping[str, float] | None = None
) -> tuple[list[Card], list[Card]]:
    """The headline numbers: how well the model does, and what it costs."""
    headline = progress.headline
    seen = max(progress.last("samples"), float(model.n_seen_))
    seen = float(model.n_seen_) if math.isnan(seen) else seen
    quality = []
    if headline is not None:
        name = _capital(metric_name(headline))
        window = progress.last(f"{headline}_window")
        quality = [
            Card(name, metric_text(headline, progress.last(headline)), "over the whole stream"),
            Card(f"{name}, lately", metric_text(headline, window), "over the last window"),
            *(_lift(progress, headline, baseline) for baseline in BASELINES),
        ]
        if progress.shows("held_out"):
            text = metric_text(headline, progress.last("held_out"))
            quality.append(Card(f"{name}, held out", text, "on samples that it never learns from"))
        if frozen is not None:
            remark = f"on the last {_grouped(frozen['rows'])} samples, not learned from them"
            quality.append(Card("Saved model", metric_text(headline, frozen[headline]), remark))
    seconds = progress.last("seconds")
    speed = progress.last("samples") / seconds if seconds > 0.0 else math.nan
    most = getattr(model, "max_points", None)
    whole_time = f"in {charts.duration(seconds)}" if seconds > 0.0 else ""
    each_time = f"{charts.duration(1.0 / speed)} per sample" if speed > 0.0 else ""
    room = f"of at most {_grouped(most)}" if isinstance(most, int) else ""
    cost = [
        Card("Samples", _grouped(seen), whole_time),
        Card("Stored points", _grouped(model.model_order_), room),
        Card("Size", charts.memory(stored_bytes(model)), "as in its file"),
        Card("Samples per second", compact(speed), each_time),
    ]
    if hasattr(model, "error_spent_"):
        per_thousand = 1000.0 * model.error_spent_ / seen if seen else math.nan
        rate = f"{compact(per_thousand)} per 1000 samples"
        cost.append(Card("Error spent", compact(model.error_spent_), rate))
    return quality, cost


def _lift(progress: Progress, metric: str, baseline: str) -> Card:
    """By how much the model is better than a baseline, in the terms the metric asks for."""
    value, other = progress.last(metric), progress.last(baseline)
    name = progress.baselines[baseline]
    label = f"Lift over {name}"
    remark = f"baseline {metric_text(metric, other)}"
    if not math.isfinite(value) or not math.isfinite(other):
        return Card(label, MISSING, "no baseline was recorded" if math.isnan(other) else "")
    if metric not in METRICS.keys() | BETTER_LOW:
        return Card(f"Difference to {name}", _signed(value - other, compact), remark)
    gain = other - value if metric in BETTER_LOW else value - other
    tone = "good" if gain > 0.0 else "bad" if gain < 0.0 else ""
    if metric in SHARES:
        points = f"{100.0 * gain:+.1f}".replace("-", MINUS) if gain else "0.0"
        return Card(label, points, remark, "points", tone)
    if metric in BETTER_LOW and other > 0.0:  # how much of the baseline's loss is gone
        return Card(label, _signed(gain / other, charts.percent), remark, tone=tone)
    return Card(label, _signed(gain, compact), remark, tone=tone)


def metrics_table(progress: Progress) -> list[tuple[str, list[str]]]:
    """Per metric and baseline, its last values: cumulative, windowed, fading."""
    if not progress.length:
        return []
    rows = []
    for name in [*progress.metrics, *(name for name in BASELINES if name in progress.columns)]:
        metric = progress.headline if name in BASELINES else name
        label = f"baseline: {progress.baselines[name]}" if name in BASELINES else metric_name(name)
        ends = [progress.last(f"{name}{suffix}") for suffix in ("", "_window", "_fading")]
        rows.append((label, [metric_text(metric, end) for end in ends]))
    return rows


def metric_chart(progress: Progress) -> Chart:
    """The headline metric over time, with the baselines."""
    metric = progress.headline
    if metric is None:
        return line_chart("Metric", progress["samples"], [])
    name = metric_name(metric)
    series = []
    for (column, text), style in zip(progress.baselines.items(), STYLES, strict=True):
        windowed = progress[f"{column}_window"]
        known = windowed if np.isfinite(windowed).any() else progress[column]
        series.append(Series(f"baseline: {text}", style, known))
    series += [
        Series(f"{name}, cumulative", "thin", progress[metric]),
        Series(f"{name}, windowed", "thick", progress[f"{metric}_window"]),
    ]
    if progress.shows("held_out"):
        series.append(Series(f"{name}, held out", "dashed", progress["held_out"]))
    look = charts.percent if metric in SHARES else compact
    return line_chart(_capital(name), progress["samples"], series, y_format=look, from_zero="x")


def regularised_risk_chart(progress: Progress) -> Chart | None:
    """E[loss] + alpha/2 |f|^2, as in the papers' figures; None where nothing was held out."""
    series = [
        Series(text, style, progress[column])
        for column, text, style in (
            ("risk", "on the stream", "thick"), ("held_out_risk", "held out", "dashed"),
        )
        if progress.shows(column)
    ]  # fmt: skip
    if not series:
        return None
    note = "The mean loss plus alpha/2 times the squared norm of the function."
    return line_chart("Regularised risk", progress["samples"], series, from_zero="x", note=note)


def cost_charts(progress: Progress) -> list[Chart]:
    """Points, memory and time over the stream."""
    samples = progress["samples"]
    order = Series("stored points", "thick", progress["model_order"])
    bytes_ = Series("bytes", "thick", progress["bytes"])
    first, note = 0, ""
    if progress.length > 3:  # compiling and warming up would dwarf the rest
        first, note = 1, "Without the first record, which includes the start."
    return [
        line_chart("Stored points", samples, [order], from_zero="xy"),
        line_chart(
            "Memory",
            samples,
            [bytes_],
            y_format=charts.memory,
            from_zero="xy",
            note="With room for more points, which a file does without.",
        ),
        time_chart(progress, note, first),
    ]


def time_chart(progress: Progress, note: str, first: int = 0) -> Chart:
    """The time that a sample took, from one of the records on."""
    each = [Series("time per sample", "thick", _rates(progress, "seconds")[first:])]
    samples = progress["samples"][first:]
    title, look = "Time per sample", charts.duration
    return line_chart(title, samples, each, y_format=look, from_zero="xy", note=note)


def budget_charts(progress: Progress) -> list[Chart]:
    """The error made by compression, in all and as a rate."""
    total = Series("error spent", "thick", progress["error_spent"])
    rates = 1000.0 * _rates(progress, "error_spent")
    rate = Series("error per 1000 samples", "thick", rates)
    samples = progress["samples"]
    return [
        line_chart("Error spent, in all", samples, [total], from_zero="xy"),
        line_chart("Error spent per 1000 samples", samples, [rate], from_zero="xy"),
    ]


def _rates(progress: Progress, name: str) -> Values:
    """Growth of a column per sample between records, at the later record's place."""
    samples, values = progress["samples"], progress[name]
    with np.errstate(invalid="ignore", divide="ignore"):
        steps, growth = np.diff(samples, prepend=0.0), np.diff(values, prepend=0.0)
        # A clock set again by a resumed run goes backwards: no rate there.
        return np.where((steps > 0.0) & (growth >= 0.0), growth / steps, np.nan)


def _numbers(values: Any) -> NDArray[np.float64]:
    numbers = np.asarray(values, dtype=np.float64).ravel()
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _grouped(count: float) -> str:
    return f"{count:,.0f}".replace(",", "\u202f")


def _signed(value: float, format: Any) -> str:
    return ("+" if value > 0.0 else "") + format(value)
