"""Programs side by side on one stream: the table and its picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelstream.evaluation import drawing, quality
from kernelstream.evaluation.drawing import PALETTE
from kernelstream.evaluation.metrics import METRICS
from kernelstream.evaluation.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

#: Of rules that know no features, in pictures.
RULE_COLOR = "#7A7A7A"


@dataclass(frozen=True)
class Contestant:
    """What one program did."""

    name: str
    package: str  #: Where it is from, with its version.
    rule: bool  #: Whether it is a rule that knows no features.
    rows: int  #: That it was measured on.
    values: dict[str, float]  #: Metrics over all rows, and over the last (``_window``).
    microseconds: float  #: A row, predicted and learned.
    nbytes: float  #: Held at the end; NaN: unknown.
    trace: Trace  #: The course.
    problem: str = ""  #: Why it ended before the stream did.


@dataclass(frozen=True)
class Comparison:
    """Programs on one stream, the best by the first metric first.

    Those that ended before the stream did come last: other rows are no measure.

    Examples
    --------
    >>> from kernelstream import compare, make_multidist
    >>> result = compare(make_multidist(2000, random_state=0), models=["polk", "avm"])
    >>> sorted(each.name for each in result.contestants)
    ['avm', 'majority', 'no change', 'polk']
    >>> result.contestants[0].rule, result.metrics[0]
    (False, 'accuracy')
    """

    task: str
    metrics: tuple[str, ...]
    contestants: Sequence[Contestant]
    samples: int  #: Rows of the stream with a target.
    notes: Sequence[str] = ()
    stopped_by: str | None = None  #: What ended it before the stream was over.

    @property
    def best_rule(self) -> Contestant | None:
        """The best of the rules that the first metric can measure."""
        rules = (each for each in self.contestants if each.rule and not each.problem)
        return next((each for each in rules if np.isfinite(self.headline(each))), None)

    def headline(self, each: Contestant) -> float:
        """The first metric of a program; NaN where it has none."""
        return each.values.get(self.metrics[0], np.nan)

    def to_columns(self) -> dict[str, list[Any]]:
        """The table by columns, as ``pandas.DataFrame`` takes it."""
        measured = [name + end for end in ("", "_window") for name in self.metrics]
        return {
            "program": [each.name for each in self.contestants],
            **{name: [each.values.get(name, np.nan) for each in self.contestants]
               for name in measured},
            "microseconds": [each.microseconds for each in self.contestants],
            "bytes": [each.nbytes for each in self.contestants],
            "rows": [each.rows for each in self.contestants],
            "problem": [each.problem for each in self.contestants],
        }  # fmt: skip

    @property
    def frame(self) -> DataFrame:
        """The table as a pandas data frame, one row a program."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "frame needs pandas: pip install 'kernelstream[cli]'; to_columns() gives lists"
            ) from error
        return pd.DataFrame(self.to_columns()).set_index("program")

    def verdicts(self) -> list[str]:
        """Sentences about programs that the rules do as well as, or better."""
        rule, metric = self.best_rule, self.metrics[0]
        if rule is None:
            return []
        sign = 1.0 if METRICS[metric].lower_is_better else -1.0
        bar = sign * rule.values[metric]
        measured = [each for each in self.contestants if not (each.rule or each.problem)]
        beaten = [each.name for each in measured if sign * self.headline(each) >= bar]
        if not beaten:
            return []
        value = quality.number(rule.values[metric])
        return [f"no better than the rule {rule.name!r} ({metric} {value}): {', '.join(beaten)}"]

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the first metric along the stream, and against the time that a row takes.

        Parameters
        ----------
        path : path-like, optional
            Where to save the picture; the suffix chooses the format.
        """
        figure, (course, cost) = drawing.import_pyplot().subplots(
            1, 2, figsize=(10.5, 4.4), layout="constrained", width_ratios=[2.0, 1.0]
        )
        metric, rules, others = self.metrics[0], 0, 0
        for each in self.contestants:
            look: dict[str, Any] = {"color": RULE_COLOR, "ls": ("--", ":")[rules % 2], "lw": 1.2}
            if each.rule:
                rules += 1
            else:
                dashed = "-" if others < len(PALETTE) else "--"
                look = {"color": PALETTE[others % len(PALETTE)], "ls": dashed, "lw": 1.6}
                others += 1
            columns = each.trace.to_columns()
            windowed = columns.get(f"{metric}_window", np.empty(0))
            if len(windowed) and (not each.rule or each is self.best_rule):
                if len(windowed) == 1:  # no line
                    look["marker"] = "o"
                course.plot(columns["samples"], windowed, label=each.name, **look)
            if not each.rule and np.isfinite(self.headline(each)):
                cost.plot(each.microseconds, each.values[metric], "o", color=look["color"])
        if self.best_rule is not None:
            cost.axhline(self.best_rule.values[metric], color=RULE_COLOR, ls="--", lw=1.0)
        name = metric.replace("_", " ")
        course.set(xlabel="samples", ylabel=f"{name}, over the last rows")
        cost.set(xlabel="microseconds a row", ylabel=f"{name}, over all rows", xscale="log")
        figure.legend(frameon=False, fontsize=9, ncols=4, loc="outside upper left")
        for axes in (course, cost):
            drawing.clean_axes(axes)
            drawing.grid_lines(axes)
        return drawing.saved(figure, path)
