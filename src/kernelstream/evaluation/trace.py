"""The course of a run: a table that never grows beyond a bound, and its picture."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.evaluation import drawing
from kernelstream.evaluation.drawing import CURVE_COLOR, INK, PALETTE
from kernelstream.evaluation.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

#: Records kept: when there are more, every second one goes and ``every`` doubles.
MOST_RECORDS = 2000

_ABOUT_THE_MODEL = ("samples", "seconds", "model_order", "bytes", "error_spent")
#: Columns of a run with samples held out.
BESIDE_THE_STREAM = ("held_out", "held_out_risk", "risk")
_BASELINES = ("no_change", "no_change_window", "majority", "majority_window")


class Trace:
    r"""What a prequential run recorded every so many samples, and at its end.

    Columns: ``samples``; ``seconds`` spent predicting and learning, not compiling; ``model_order``,
    ``bytes`` and ``error_spent`` of the model (NaN if it has none); per metric ``m`` over all
    samples, ``m_window`` and ``m_fading``; the baselines ``no_change`` and ``majority`` by the
    first metric, each also with ``_window``. Where samples were held out: ``held_out``, the first
    metric on them; ``held_out_risk``, the mean of the model's loss on them plus alpha/2 \|f\|^2;
    and ``risk``, the same with the mean loss of the stream's samples, each predicted before it was
    learned.

    However long the stream, at most 2000 records are kept: when there are more, ``every`` doubles
    and only the records at its multiples stay, and the last one.

    Parameters
    ----------
    metrics : sequence of str
        The first is the headline of plot and summary.
    every : int
        Samples between two records.
    extra : sequence of str, default=()
        More columns.

    Examples
    --------
    >>> from kernelstream.evaluation import Trace
    >>> trace = Trace(["accuracy"], every=10)
    >>> trace.append({"samples": 10, "accuracy": 0.75})
    >>> trace.summary()["accuracy"], len(trace)
    (0.75, 1)
    """

    def __init__(self, metrics: Any, every: int, extra: Sequence[str] = ()) -> None:
        self.metrics = tuple(metrics)
        self.every = every
        names = [name + suffix for name in self.metrics for suffix in ("", "_window", "_fading")]
        self._columns: dict[str, list[float]] = {
            name: [] for name in (*_ABOUT_THE_MODEL, *names, *_BASELINES, *extra)
        }

    def __len__(self) -> int:
        return len(self._columns["samples"])

    def append(self, record: Mapping[str, float]) -> None:
        """Add a record; columns it does not name are NaN.

        The record before it goes if it is not at a multiple of ``every``: the run was finished
        there, and then went on.
        """
        samples = self._columns["samples"]
        first = len(samples) - 1  # the others are at multiples
        if len(samples) == MOST_RECORDS:
            self.every *= 2
            first = 0
        stale = [i for i in range(max(first, 0), len(samples)) if samples[i] % self.every]
        for name, column in self._columns.items():
            for i in reversed(stale):
                del column[i]
            column.append(record.get(name, np.nan))

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The table as arrays: ``samples`` int64, the rest float64."""
        return {
            name: np.array(column, dtype=np.int64 if name == "samples" else np.float64)
            for name, column in self._columns.items()
        }

    @classmethod
    def from_columns(cls, columns: Mapping[str, ArrayLike], *, every: int | None = None) -> Self:
        """The trace that :meth:`to_columns` described.

        Without ``every`` it is taken from where the first record is.
        """
        metrics = [name for name in columns if name in METRICS]
        table = {name: np.asarray(column).reshape(-1).tolist() for name, column in columns.items()}
        samples = table.get("samples", [])
        extra = [name for name in BESIDE_THE_STREAM if name in columns]
        trace = cls(metrics, every or int(samples[0] if samples else 1), extra)
        missing = sorted(set(trace._columns) - set(table))
        if missing or len({len(column) for column in table.values()}) != 1:
            raise ValueError(
                "the columns of a trace have one length, and none may be missing: "
                f"{', '.join(missing) or 'lengths differ'}"
            )
        for name in trace._columns:
            trace._columns[name] = table[name]
        return trace

    @property
    def frame(self) -> DataFrame:
        """The table as a pandas data frame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "trace.frame needs pandas: pip install 'kernelstream[cli]'; "
                "trace.to_columns() gives plain arrays"
            ) from error
        return pd.DataFrame(self.to_columns())

    def summary(self) -> dict[str, float]:
        """The last record without the fading metrics, and microseconds per sample."""
        self._check_not_empty("summary")
        last = {name: column[-1] for name, column in self._columns.items()}
        numbers = {name: value for name, value in last.items() if not name.endswith("_fading")}
        numbers["microseconds_per_sample"] = 1e6 * last["seconds"] / last["samples"]
        return numbers

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the headline metric with the baselines, the model's size, and the time.

        Parameters
        ----------
        path : path-like, optional
            Where to save the picture; the suffix chooses the format.
        """
        self._check_not_empty("plot")
        plt = drawing.import_pyplot()
        columns = self.to_columns()
        samples = columns["samples"]
        columns["KiB"] = columns["bytes"] / 1024
        figure, (quality, size, speed) = plt.subplots(
            3, 1, sharex=True, figsize=(8.0, 7.2), layout="constrained",
            gridspec_kw={"height_ratios": [2.2, 1.0, 1.0]},
        )  # fmt: skip
        marker = "o" if len(self) == 1 else None
        headline = self.metrics[0]

        def line(axes: Axes, name: str, color: str, width: float, **look: Any) -> None:
            axes.plot(samples, columns[name], color=color, linewidth=width, marker=marker, **look)

        constant = "majority" if METRICS[headline].classification else "mean"
        line(quality, "no_change_window", "#7A7A7A", 1.0, ls="--", label="no change, window")
        line(quality, "majority_window", "#7A7A7A", 1.0, ls=":", label=f"{constant}, window")
        line(quality, headline, INK, 1.3, label="all samples")
        line(quality, f"{headline}_window", PALETTE[0], 2.0, label="window")
        if "held_out" in columns:
            line(quality, "held_out", PALETTE[1], 1.6, label="held out")
        quality.set_ylabel(headline.replace("_", " "))
        quality.legend(frameon=False, fontsize=9, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))

        line(size, "model_order", PALETTE[2], 1.8)
        size.set_ylabel("points", color=PALETTE[2])
        held = drawing.right_axis(size)
        line(held, "KiB", PALETTE[1], 1.2)
        held.set_ylabel("KiB", color=PALETTE[1])

        with np.errstate(invalid="ignore", divide="ignore"):
            steps = np.diff(samples, prepend=0)
            columns["microseconds"] = 1e6 * np.diff(columns["seconds"], prepend=0.0) / steps
        line(speed, "microseconds", CURVE_COLOR, 1.4)
        speed.set(ylabel="µs per sample", xlabel="samples")
        for axes in (size, held, speed):
            axes.set_ylim(bottom=0)
        for axes in (quality, size, speed):
            drawing.clean_axes(axes)
            drawing.grid_lines(axes)
        return drawing.saved(figure, path)

    def _check_not_empty(self, what: str) -> None:
        if not len(self):
            raise ValueError(
                f"The trace is empty, there is nothing to {what}: a record comes every "
                f"{self.every} samples, and one with finish()"
            )
