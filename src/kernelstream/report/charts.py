"""The geometry of charts: where ticks, lines and dots go. The template draws them.

Places are shares of the frame, in percent for ticks and dots and in thousandths for lines, so
that a chart fills whatever width it is given while its text keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Format = Callable[[float, float], str]  # a value and the step between ticks -> its label

MISSING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
MOST_POINTS = 600
FRAME = 1000.0  # lines are drawn in a square of this size, stretched to the frame


@dataclass(frozen=True)
class Tick:
    """A label and its place along its axis, in percent from the left or from the top."""

    place: float
    label: str


@dataclass(frozen=True)
class Line:
    """A line, drawn: its SVG path in thousandths of the frame."""

    style: str  # a class of the style sheet
    path: str
    color: str = ""  # where the class has none


@dataclass(frozen=True)
class Area:
    """A filled area: its SVG path in thousandths of the frame."""

    color: str
    path: str


@dataclass(frozen=True)
class Bar:
    """A part of a whole beside its name: its length in percent of the longest, and in words."""

    label: str
    length: float
    text: str


@dataclass(frozen=True)
class Dot:
    """A dot of a scatter plot, its place in percent."""

    x: float
    y: float
    color: str
    style: str
    label: str = ""  # shown where a pointer rests on it


@dataclass(frozen=True)
class Key:
    """An entry of a legend."""

    label: str
    style: str
    color: str = ""


@dataclass(frozen=True)
class Chart:
    """Everything there is to draw, in places of the frame."""

    title: str
    description: str
    x_label: str
    y_label: str = ""
    x_ticks: Sequence[Tick] = ()
    y_ticks: Sequence[Tick] = ()
    lines: Sequence[Line] = ()
    areas: Sequence[Area] = ()
    dots: Sequence[Dot] = ()
    keys: Sequence[Key] = ()
    marks: Sequence[Tick] = ()  # lines across the frame, at places of the x axis
    scale: tuple[str, Sequence[str], str] | None = None  # lowest label, colours, highest label
    inside: str = ""  # a drawing as large as the frame, without any text from outside
    grid: str = "y"  # the axes whose ticks run through the frame as lines
    shape: str = ""  # CSS aspect ratio, where it matters
    note: str = ""

    @property
    def empty(self) -> bool:
        return not (self.lines or self.areas or self.dots or self.inside)


@dataclass(frozen=True)
class Series:
    """A line to draw: its values, one per place on the x axis, NaN where it has a gap."""

    label: str
    style: str
    values: Values
    color: str = ""  # where the style has none


def line_chart(
    title: str,
    x: Values,
    series: Sequence[Series],
    *,
    x_label: str = "samples",
    y_format: Format | None = None,
    from_zero: str = "",
    marks: Sequence[float] = (),
    mark_label: str = "",
    note: str = "",
) -> Chart:
    """Lines over a common x axis; ``from_zero`` names axes that begin at 0 if they can.

    ``marks`` are places on the x axis to be seen, ``mark_label`` says what they are.

    Series without any finite value are left out. The y axis spans what is usual: a few wild
    values leave the frame rather than flatten the rest, and the chart's note says so.

    >>> chart = line_chart("Order", np.array([0.0, 10.0]), [Series("M", "a", np.array([1.0, 3.0]))])
    >>> chart.lines[0].path
    'M0,954.5L1000,45.5'
    >>> [tick.label for tick in chart.x_ticks]
    ['0', '2', '4', '6', '8', '10']
    """
    x, y_format = np.asarray(x, dtype=float), y_format or compact
    series = [one for one in series if np.isfinite(one.values[np.isfinite(x)]).any()]
    if not series:
        return Chart(title, f"{title}: nothing was recorded.", x_label)
    finite_x = x[np.isfinite(x)]
    x_range = _widen(float(finite_x.min()), float(finite_x.max()), 0.0)
    values = np.concatenate([one.values[np.isfinite(one.values)] for one in series])
    low, high, cut = _usual_range(values)
    y_range = _widen(low, high, 0.05)
    # A stream that was joined late would be squeezed into a corner of an axis from 0.
    if "x" in from_zero and 0.0 < finite_x.min() <= (0.2 if len(x) > 1 else 1.0) * finite_x.max():
        x_range = _widen(0.0, float(finite_x.max()), 0.0)
    if "y" in from_zero and low >= 0.0:
        y_range = 0.0, _widen(0.0, high, 0.05)[1]
    keys = [Key(one.label, one.style, one.color) for one in series]
    keys = keys if len(series) > 1 or len(marks) else []
    places = _percent_of(np.asarray(marks, dtype=float), x_range)
    return Chart(
        title=title,
        description=_describe(title, x_label, series, y_format),
        x_label=x_label,
        x_ticks=axis_ticks(*x_range, 5, compact),
        y_ticks=axis_ticks(*y_range, 4, y_format, down=True),
        lines=[
            Line(one.style, _path(x, one.values, x_range, y_range), one.color) for one in series
        ],
        keys=[*keys, Key(mark_label, "mark")] if len(marks) else keys,
        marks=[
            Tick(round(place, 3), f"{mark_label}: {mark:,.0f}")
            for mark, place in zip(marks, places.tolist(), strict=True)
            if 0.0 <= place <= 100.0
        ],
        note=f"{note} A few values lie beyond the frame.".strip() if cut else note,
    )


def stacked_chart(
    title: str,
    x: Values,
    parts: Mapping[str, Values],
    colors: Sequence[str],
    *,
    marks: Sequence[float] = (),
    mark_label: str = "",
    note: str = "",
) -> Chart:
    """Parts of a whole over a common x axis, one on top of the other, the first at the bottom.

    >>> parts = {"a": np.array([1.0, 0.5]), "b": np.array([0.0, 0.5])}
    >>> chart = stacked_chart("Shares", np.array([10.0, 20.0]), parts, ["red", "blue"])
    >>> chart.areas[0].path
    'M0,0L1000,500L1000,1000L0,1000Z'
    """
    x_range = _widen(float(x[0]), float(x[-1]), 0.0)
    if len(x) == 1:  # as long as the axis
        x, parts = np.array(x_range), {name: np.repeat(part, 2) for name, part in parts.items()}
    across = FRAME * (x - x_range[0]) / (x_range[1] - x_range[0])
    below, areas = np.zeros(len(x)), []
    for part, color in zip(parts.values(), colors, strict=True):
        above = np.clip(below + part, 0.0, 1.0)
        there, back = (
            [f"{_short(a)},{_short(FRAME * (1.0 - b))}" for a, b in zip(across, edge, strict=True)]
            for edge in (above, below)
        )
        areas.append(Area(color, f"M{'L'.join([*there, *reversed(back)])}Z"))
        below = above
    ends = "; ".join(f"{name} {percent(float(part[-1]))}" for name, part in parts.items())
    places = _percent_of(np.asarray(marks, dtype=float), x_range).tolist()
    keys = [Key(name, "square", color) for name, color in zip(parts, colors, strict=True)]
    return Chart(
        title=title,
        description=f"{title}, at the end: {ends}.",
        x_label="samples",
        x_ticks=axis_ticks(*x_range, 5, compact),
        y_ticks=axis_ticks(0.0, 1.0, 4, percent, down=True),
        areas=areas,
        keys=[*keys, Key(mark_label, "mark ink")] if len(marks) else keys,
        marks=[
            Tick(round(place, 3), f"{mark_label}: {mark:,.0f}")
            for mark, place in zip(marks, places, strict=True)
            if 0.0 <= place <= 100.0
        ],
        note=note,
    )


def bars(parts: Mapping[str, float], most: int) -> list[Bar]:
    """The largest parts of 1, largest first, and the rest as one.

    >>> [(bar.label, bar.text) for bar in bars({"a": 0.25, "b": 0.5, "c": 0.25}, 2)]
    [('b', '50.0 %'), ('2 others', '50.0 %')]
    """
    ranked = sorted(parts.items(), key=lambda item: -item[1])
    if len(ranked) > most:
        rest = ranked[most - 1 :]
        others = f"{len(rest):,} others", sum(part for _, part in rest)
        ranked = [*ranked[: most - 1], others]
    longest = max((part for _, part in ranked), default=0.0) or 1.0
    return [Bar(name, round(100.0 * part / longest, 1), percent(part)) for name, part in ranked]


def scatter(
    title: str, places: Values, colors: Sequence[str], styles: Sequence[str], **about: Any
) -> Chart:
    """Dots at (n, 2) places, the first of them below the others; ``about`` the chart."""
    x_range, y_range = (padded(column) for column in places.T)
    across = _percent_of(places[:, 0], x_range).tolist()
    down = (100.0 - _percent_of(places[:, 1], y_range)).tolist()
    return Chart(
        title=title,
        x_ticks=axis_ticks(*x_range, 5, compact),
        y_ticks=axis_ticks(*y_range, 5, compact, down=True),
        dots=[
            Dot(round(x, 2), round(y, 2), color, style)
            for x, y, color, style in zip(across, down, colors, styles, strict=True)
        ],
        grid="xy",
        **about,
    )


def padded(values: Values) -> tuple[float, float]:
    """The range of some values, with a margin."""
    low, high = float(values.min()), float(values.max())
    pad = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return low - pad, high + pad


def _percent_of(values: Values, span: tuple[float, float]) -> Values:
    return 100.0 * (values - span[0]) / (span[1] - span[0])


def axis_ticks(
    low: float, high: float, count: int, format: Format, down: bool = False
) -> list[Tick]:
    """Ticks on round numbers in [low, high]; ``down``: places count from the top."""
    values, step = round_numbers(low, high, count)
    places = [100.0 * (value - low) / (high - low) for value in values]
    return [
        Tick(round(100.0 - place if down else place, 3), format(value, step))
        for place, value in zip(places, values, strict=True)
    ]


def round_numbers(low: float, high: float, count: int) -> tuple[list[float], float]:
    """About ``count`` multiples of 1, 2 or 5 times a power of ten in [low, high], and their step.

    >>> round_numbers(0.0, 7300.0, 4)
    ([0.0, 2000.0, 4000.0, 6000.0], 2000.0)
    """
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min((1.0, 2.0, 5.0, 10.0), key=lambda m: abs(math.log(m * power / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)], step


def compact(value: float, step: float = 0.0) -> str:
    """A number in few characters: 1500 -> 1.5k; digits as the step between ticks needs them.

    >>> compact(1500.0, 500.0), compact(2e6, 1e6), compact(0.25, 0.05), compact(-3e-9)
    ('1.5k', '2M', '0.25', '−3e-09')
    """
    if not math.isfinite(value):
        return MISSING
    size = abs(value) if abs(value) > 1e-12 * step else 0.0
    sign = MINUS if value < 0 and size else ""
    if size == 0.0:
        return "0"
    largest = max(size, step)
    if largest >= 1e15 or largest < 1e-3:
        return f"{sign}{size:.3g}"
    for unit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= unit and (size >= 10_000 or step >= 100 or step == 0.0):
            return sign + _decimals(size / unit, step / unit) + suffix
    return sign + _decimals(size, step)


def three_digits(value: float) -> str:
    """A number for a column of numbers: always three digits.

    >>> three_digits(16.0), three_digits(-0.01), three_digits(123456.0)
    ('16.0', '−0.0100', '1.23e+05')
    """
    return f"{value:#.3g}".rstrip(".").replace("-", MINUS, int(value < 0.0))


def percent(value: float, step: float = 0.0) -> str:
    """A share as a percentage, digits as the step between ticks needs them.

    >>> percent(0.9731), percent(0.95, 0.05)
    ('97.3 %', '95 %')
    """
    if not math.isfinite(value):
        return MISSING
    digits = 1 if step == 0.0 else max(0, -math.floor(math.log10(step * 100.0) + 1e-9))
    text = f"{abs(value) * 100.0:.{min(digits, 6)}f}"
    return f"{MINUS if value < 0 and float(text) else ''}{text} %"


def memory(value: float, step: float = 0.0) -> str:
    """A number of bytes.

    >>> memory(1_234_567), memory(40_000, 20_000)
    ('1.23 MB', '40 kB')
    """
    if not math.isfinite(value):
        return MISSING
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= unit:
            return f"{_decimals(value / unit, step / unit)} {name}"
    return f"{value:.0f} B" if value else "0"


def duration(value: float, step: float = 0.0) -> str:
    """A time in seconds.

    >>> duration(1.5e-5), duration(0.2, 0.1), duration(0)
    ('15 µs', '200 ms', '0')
    """
    if not math.isfinite(value):
        return MISSING
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if max(abs(value), step) >= unit and value:
            return f"{_decimals(value / unit, step / unit)} {name}"
    return "0"


def _decimals(value: float, step: float) -> str:
    """Three digits, or as many decimals as multiples of the step need."""
    if step == 0.0:
        text = f"{value:.3g}"
        return f"{value:.0f}" if "e" in text else text
    text = f"{value:.{min(max(0, -math.floor(math.log10(step) + 1e-9)), 9)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _widen(low: float, high: float, share: float) -> tuple[float, float]:
    """A range that is never empty."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        pad = 0.5 * abs(high) or 0.5
        return low - pad, high + pad
    pad = share * (high - low)
    return low - pad, high + pad


def _usual_range(values: Values) -> tuple[float, float, bool]:
    """The range without a few wild values, and whether there are such."""
    low, high = float(values.min()), float(values.max())
    usual_low, usual_high = np.quantile(values, [0.01, 0.98]).tolist()
    usual = usual_high - usual_low
    if len(values) < 20 or not usual > 0.0 or high - low <= 4.0 * usual:
        return low, high, False
    return max(low, usual_low - 0.5 * usual), min(high, usual_high + 0.5 * usual), True


def _path(x: Values, y: Values, x_range: tuple[float, float], y_range: tuple[float, float]) -> str:
    chosen = thin_out(y, MOST_POINTS)
    x, y = x[chosen], y[chosen]
    across = FRAME * (x - x_range[0]) / (x_range[1] - x_range[0])
    down = FRAME * (1.0 - (y - y_range[0]) / (y_range[1] - y_range[0]))
    down = np.clip(down, -FRAME, 2.0 * FRAME)  # outside the frame, in numbers any browser takes
    words = []
    pen_down = False
    drawn = np.isfinite(across) & np.isfinite(down)
    for number, here in enumerate(drawn.tolist()):
        if here:
            alone = not pen_down and (number + 1 == len(drawn) or not drawn[number + 1])
            spot = f"{_short(across[number])},{_short(down[number])}"
            words.append(f"{'L' if pen_down else 'M'}{spot}{'h0' if alone else ''}")
        pen_down = here
    return "".join(words)


def thin_out(values: Values, most: int) -> NDArray[np.intp]:
    """Which of the values to draw: the extremes of each stretch, so that no spike is lost."""
    if len(values) <= most:
        return np.arange(len(values))
    chosen: list[int] = [0, len(values) - 1]
    edges = np.linspace(0, len(values), most // 2).astype(int)
    for first, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        stretch = values[first:end]
        if np.isfinite(stretch).any():
            bounded = np.where(np.isfinite(stretch), stretch, np.nan)
            chosen += [first + int(np.nanargmin(bounded)), first + int(np.nanargmax(bounded))]
        else:
            chosen.append(first)
    return np.unique(chosen)


def _short(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _describe(title: str, x_label: str, series: Sequence[Series], format: Format) -> str:
    """The chart in a sentence, for readers who do not see it."""
    parts = []
    for one in series:
        values = one.values[np.isfinite(one.values)]
        parts.append(
            f"{one.label} from {format(float(values[0]), 0.0)} to {format(float(values[-1]), 0.0)}"
        )
    return f"{title} over {x_label}: {'; '.join(parts)}."
