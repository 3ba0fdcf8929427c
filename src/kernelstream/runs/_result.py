"""What a run has come to, as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kernelstream.evaluation import Trace
from kernelstream.pipeline import StreamModel

if TYPE_CHECKING:
    from kernelstream.runs.learning import Run


class Result(NamedTuple):
    """What a run has come to so far."""

    model: StreamModel
    samples: int  # with a target
    metrics: dict[str, float]  # each over all samples, and over the last (``_window``)
    baselines: dict[str, float]  # the first metric of ``no_change`` and ``majority``
    trace: Trace
    notes: list[str]  # what the user should know
    stopped_by: str | None  # what ended it before the stream was over
    #: What the model, no longer learning, does on the last rows: how many ``rows``, metrics, and
    #: ``interval_coverage`` where it has intervals; None where the stream was too short for that,
    #: or was gone on with too late.
    frozen: dict[str, float] | None = None


def result_of(run: Run) -> Result:
    """The numbers of a run at its last record."""
    trace = run.score.trace
    numbers = trace.summary() if len(trace) else {}
    metrics, baselines = (
        {n + end: numbers[n + end] for n in names for end in ("", "_window") if n in numbers}
        for names in (trace.metrics, ("no_change", "majority"))
    )
    return Result(
        run.model, run.samples, metrics, baselines, trace, run.notes, run.stopped_by, run.frozen
    )
