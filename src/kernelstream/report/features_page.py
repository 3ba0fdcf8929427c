"""The page about features learned from a stream."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream._version import __version__
from kernelstream.report.charts import (
    Chart,
    Dot,
    Series,
    axis_ticks,
    compact,
    duration,
    line_chart,
    memory,
    percent,
)
from kernelstream.report.page import LONG_FACT, _fact, _template
from kernelstream.report.progress import Card
from kernelstream.storage import replace_file

TEMPLATE = "features.html.j2"
MOST_CHANGES = 50  # in the table and in the chart


def write_features_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    facts: Mapping[str, Any],
    trace: Any,
    model: Any,
    sample: Any = None,
    notes: Iterable[str] = (),
) -> None:
    """Write how features were learned from a stream, as one HTML file that needs nothing else.

    Parameters
    ----------
    path : str or path-like
        The file to write; an old one is replaced in one go, or stays if anything goes wrong.
    title : str
        The heading.
    facts : dict
        What was run, in the order to show it.
    trace : FitTrace
        The record of the run.
    model : OnlineKernelFeatures
        As it was at the end.
    sample : (n, r) array, optional
        Features of some samples, to draw.
    notes : iterable of str, optional
        What the reader should be warned of.

    Raises
    ------
    ImportError
        If Jinja or Matplotlib is missing.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelstream.evaluation import FitTrace
    >>> from kernelstream.features import OnlineKernelFeatures
    >>> from kernelstream.report import write_features_report
    >>> from kernelstream.streams import make_turning_ellipsoid
    >>> X, _ = make_turning_ellipsoid(2000, random_state=0)
    >>> model, trace = OnlineKernelFeatures(10, max_points=20, gamma=0.5), FitTrace()
    >>> changes = trace.update(model.partial_fit_errors(X))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "report.html")
    ...     write_features_report(
    ...         file, title="An ellipsoid that turns", facts={}, trace=trace, model=model
    ...     )
    ...     "An ellipsoid that turns" in file.read_text()
    True
    """
    columns = trace.to_columns()
    detector = trace.detector
    changes = trace.changes[:MOST_CHANGES]
    quality, cost = _cards(columns, trace, model)
    page = _template(TEMPLATE).render(
        title=title,
        facts=[(str(name), _fact(value)) for name, value in facts.items()],
        long_fact=LONG_FACT,
        notes=list(map(str, notes)),
        quality=quality,
        cost=cost,
        error_chart=line_chart(
            "Fit error",
            columns["samples"],
            [
                Series(f"mean of {trace.every:,} samples", "thick", columns["fit_error"]),
                Series("mean so far", "dashed", columns["mean_fit_error"]),
            ],
            from_zero="xy",
            marks=[float(change.sample) for change in changes],
            mark_label="change noticed",
        ),
        rule=(
            f"A change is noticed when the mean of the last {detector.short:,} fit errors is "
            f"above the mean of the {detector.long:,} before them by {detector.deviations:g} "
            "standard deviations of a single error; then the comparison begins again."
        ),
        changes=[
            (f"{change.sample:,}", compact(change.before), compact(change.after))
            for change in changes
        ],
        more_changes=len(trace.changes) - len(changes),
        cost_charts=_cost_charts(columns),
        picture=None if sample is None else _picture(np.asarray(sample)),
        version=__version__,
    )
    replace_file(path, page.encode("utf-8", "replace"))


def _cards(
    columns: dict[str, NDArray[np.float64]], trace: Any, model: Any
) -> tuple[list[Card], list[Card]]:
    seconds = float(columns["seconds"][-1]) if len(columns["seconds"]) else float("nan")
    speed = trace.samples / seconds if seconds > 0.0 else float("nan")
    quality = [
        Card("Fit error", compact(trace.mean), "mean over the whole stream"),
        Card("Fit error, lately", compact(trace.recent), "mean over the last samples"),
        Card("Changes", f"{len(trace.changes):,}", "rises of the fit error"),
        Card("Features", f"{model.factor_.shape[1]:,}", "numbers for each sample"),
    ]
    cost = [
        Card("Samples", f"{trace.samples:,}"),
        Card("Stored samples", f"{len(model.factor_):,}", "that span the subspace"),
        Card("Memory", memory(model.nbytes_), "held by the extractor"),
        Card("Samples per second", compact(speed), "reading and writing included"),
        Card("Censored", percent(model.censoring_rate_), "samples that fitted well already"),
    ]
    return quality, cost


def _cost_charts(columns: dict[str, NDArray[np.float64]]) -> list[Chart]:
    samples = columns["samples"]
    counts = np.diff(np.concatenate([[0.0], samples]))
    spent = np.diff(np.concatenate([[0.0], columns["seconds"]]))
    with np.errstate(divide="ignore", invalid="ignore"):
        each = spent / counts
    return [
        line_chart(
            "Share of samples censored",
            samples,
            [Series("censored", "thick", columns["censored"])],
            y_format=percent,
            from_zero="xy",
        ),
        line_chart(
            "Time per sample",
            samples,
            [Series("seconds", "thick", each)],
            y_format=duration,
            from_zero="xy",
            note="Reading and writing included.",
        ),
    ]


def _picture(features: NDArray[np.float64]) -> Chart | None:
    """Samples in the plane of the two features that vary most."""
    if features.ndim != 2 or features.shape[1] < 2 or not len(features):
        return None
    across, up = (int(place) for place in np.argsort(-features.var(axis=0), kind="stable")[:2])
    ranges = []
    for column in (across, up):
        low, high = float(features[:, column].min()), float(features[:, column].max())
        pad = 0.05 * (high - low) or 0.5
        ranges.append((low - pad, high + pad))
    (left, right), (bottom, top) = ranges
    return Chart(
        title="The latest samples",
        description=f"{len(features)} samples by their features z{across} and z{up}.",
        x_label=f"z{across}",
        y_label=f"z{up}",
        x_ticks=axis_ticks(left, right, 5, compact),
        y_ticks=axis_ticks(bottom, top, 4, compact, down=True),
        dots=[
            Dot(
                round(100.0 * (x - left) / (right - left), 2),
                round(100.0 * (top - y) / (top - bottom), 2),
                "var(--accent)",
                "sample",
            )
            for x, y in features[:, [across, up]].tolist()
        ],
        grid="xy",
        note="In the two features that vary most.",
    )
