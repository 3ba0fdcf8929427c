"""The page about features learned from a stream."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.report import charts
from kernelstream.report.charts import Series, compact, line_chart
from kernelstream.report.page import find_template, write_page
from kernelstream.report.progress import Card, Progress, time_chart

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
    path, title, facts, notes
        As for :func:`write_report`, which also says what can go wrong.
    trace : FitTrace
        The record of the run.
    model : OnlineKernelFeatures
        As it was at the end.
    sample : (n, r) array, optional
        Features of some samples, to draw.

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
    template = find_template("features.html.j2")
    record, detector = Progress(trace.to_columns(), of_classes=False), trace.detector
    changes = trace.changes[:MOST_CHANGES]
    quality, cost = _cards(record, trace, model)
    samples = record["samples"]
    errors = [
        Series(f"mean of {trace.every:,} samples", "thick", record["fit_error"]),
        Series("mean so far", "dashed", record["mean_fit_error"]),
    ]
    censored = [Series("censored", "thick", record["censored"])]
    write_page(
        path,
        template,
        title,
        facts,
        notes,
        quality=quality,
        cost=cost,
        error_chart=line_chart(
            "Fit error",
            samples,
            errors,
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
        cost_charts=[
            line_chart(
                "Share of samples censored",
                samples,
                censored,
                y_format=charts.percent,
                from_zero="xy",
            ),
            time_chart(record, "Reading and writing included."),
        ],
        picture=None if sample is None else _picture(np.asarray(sample)),
    )


def _cards(record: Progress, trace: Any, model: Any) -> tuple[list[Card], list[Card]]:
    seconds = record.last("seconds")
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
        Card("Memory", charts.memory(model.nbytes_), "held by the extractor"),
        Card("Samples per second", compact(speed), "reading and writing included"),
        Card("Censored", charts.percent(model.censoring_rate_), "samples that fitted well already"),
    ]
    return quality, cost


def _picture(features: NDArray[np.float64]) -> charts.Chart | None:
    """Samples in the plane of the two features that vary most."""
    if features.ndim != 2 or features.shape[1] < 2 or not len(features):
        return None
    across, up = (int(place) for place in np.argsort(-features.var(axis=0), kind="stable")[:2])
    return charts.scatter(
        "The latest samples",
        features[:, [across, up]],
        ["var(--accent)"] * len(features),
        ["sample"] * len(features),
        description=f"{len(features)} samples by their features z{across} and z{up}.",
        x_label=f"z{across}",
        y_label=f"z{up}",
        note="In the two features that vary most.",
    )
