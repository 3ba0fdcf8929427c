"""Changes that the automatic model tells, on streams whose sudden changes are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import AutoClassifier, AutoRegressor, StreamModel, make_multidist, streams
from kernelstream.models._auto._history import TOLD

#: A change is found by a mark so many rows after it at most.
SOON = 1000
#: Strengths from which marks could be told; 0 is all that the model answers.
STRENGTHS = (0.0, 4.0, 5.0, 6.0, 7.0, 8.0)
SEEDS = range(10, 13)


class Stream(NamedTuple):
    """A generator, and how long a concept lasts; 0 where nothing changes at once.

    The market's rule changes halfway, and drifts slowly all the time; a row resembles the last.
    """

    make: Callable[..., Any]
    period: int
    numbers: bool = False


STREAMS = {
    "SEA": Stream(streams.make_sea, 5000),
    "random trees": Stream(streams.make_random_trees, 5000),
    "interchanging RBF": Stream(streams.make_interchanging_rbf, 3000),
    "changing board": Stream(streams.make_changing_board, 2000),
    "changing relevance": Stream(streams.make_changing_relevance, 5000, True),
    "rotating hyperplane": Stream(streams.make_rotating_hyperplane, 0),
    "moving squares": Stream(streams.make_moving_squares, 0),
    "multidist": Stream(make_multidist, 0),
    "random walk": Stream(streams.make_random_walk, 0, True),
    "market": Stream(streams.make_drifting_market, 10_000),
    "seasonal": Stream(streams.make_seasonal, 0, True),
}


def marks_of(stream: Stream, n: int, seed: int) -> tuple[Any, Any]:
    """Rows of all marks of a run, and their strengths."""
    made = stream.make(n, random_state=seed)
    if isinstance(made, dict):
        model = StreamModel.for_rows(made, "direction").learn(made).model
    else:
        kind = AutoRegressor if stream.numbers else AutoClassifier
        model = kind(random_state=0).partial_fit(*made[:2])
    history = model._state.experts.history
    return history.marks, history.strengths


def found(marks: Any, period: int, n: int) -> tuple[int, int, list[int]]:
    """Changes, marks that belong to none, and how late those found were."""
    changes = np.arange(period, n - SOON + 1, period) if period else np.empty(0, np.int64)
    delays: list[int] = []
    used = np.zeros(len(marks), bool)
    for change in changes.tolist():
        near = (marks > change) & (marks <= change + SOON)
        if near.any():
            delays.append(int(marks[near].min()) - change)
        used |= near
    return len(changes), int(np.count_nonzero(~used)), delays


def main() -> None:
    """Changes found, false alarms and delays, by the strength from which marks are told."""
    n = max(4000, int(share() * 20_000))
    runs = {name: [marks_of(each, n, s) for s in SEEDS] for name, each in STREAMS.items()}

    def lines() -> Iterator[list[Any]]:
        for name, stream in STREAMS.items():
            cells = []
            for least in STRENGTHS:
                told = [found(m[s >= least], stream.period, n) for m, s in runs[name]]
                hits = sum(len(delays) for _, _, delays in told)
                false = sum(alarms for _, alarms, _ in told)
                late = [delay for _, _, delays in told for delay in delays]
                cells.append(f"{hits}, {false}" + (f", {np.median(late):.0f}" if late else ""))
            changes = len(SEEDS) * found(runs[name][0][0], stream.period, n)[0]
            yield [name, changes, *cells]

    show(
        f"Sudden changes of {len(SEEDS)} streams of {n:,} rows each: those found within {SOON:,} "
        "rows, false alarms, median delay; by the strength from which marks are told (now "
        f"{TOLD:g})",
        ("stream", "changes", *(f"{least:g}" for least in STRENGTHS)),
        lines(),
    )
