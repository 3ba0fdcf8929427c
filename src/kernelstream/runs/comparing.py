"""Programs side by side: one pass over one stream, each predicts every row, then learns it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from kernelstream.core.threads import one_thread
from kernelstream.evaluation import Prequential
from kernelstream.evaluation.comparison import Comparison, Contestant
from kernelstream.evaluation.metrics import METRICS, check_names
from kernelstream.evaluation.programs import RULES
from kernelstream.evaluation.trace import Trace
from kernelstream.pipeline import StreamModel, guess_task
from kernelstream.registry import DEFAULT
from kernelstream.runs._methods import compile_for, make_estimator
from kernelstream.runs._page import closing_facts, data_name, units_in_words
from kernelstream.runs._programs import (
    DEFAULT_PROGRAMS,
    Entry,
    Stream,
    UnusableError,
    WrongTaskError,
    entries,
    entry,
)
from kernelstream.runs._reading import RunError, Spelling, SteppedRun, in_python
from kernelstream.streams.batch import Batch

#: Of classes, and of numbers; the first decides the order.
METRICS_COMPARED = {
    "classification": ("accuracy", "kappa", "kappa_temporal", "log_loss"),
    "regression": ("mae", "rmse", "r2"),
}
#: Rows that a program is given at a time: some take milliseconds for each.
STEP_ROWS = 256


@dataclass
class Seat:
    """A program in a run, and where it stands."""

    entry: Entry
    score: Prequential | None  # None: it cannot be imported or made
    problem: str = ""  # why it ended before the stream did

    @property
    def trace(self) -> Trace:
        """Its course."""
        return Trace((), every=1) if self.score is None else self.score.trace

    @property
    def rule(self) -> bool:
        """Whether it is a rule that knows no features."""
        return self.entry.package == "rule"


class ComparisonRun(SteppedRun):
    """Programs that are compared on a stream of raw rows; it is what ``kernelstream compare`` does.

    Iterating over it goes on: each step, one program predicts and learns at most 256 rows. A
    program that fails, or that cannot be imported or made, is out, with the reason in the result;
    the others go on. A name that does not exist is an error at once, and so is a run of which no
    program is left before the first row.

    Every program gets the same numbers: columns as :class:`~kernelstream.Preparation` makes them,
    in units that move with the stream, a column for each frequent text. River's models get them
    as dicts, by name. scikit-learn's and CapyMOA's classifiers must know the classes beforehand:
    they are told those of the first batch, and rows of others are predicted, not learned. Targets
    that are numbers other packages' programs get in units of the first batch's.

    Parameters
    ----------
    source, target, task, every, window, units, warm_up, buckets, standardise, spelling, **reading
        As for :class:`~kernelstream.Run`.
    models : str, sequence or dict, optional
        Programs by name: methods of this package ("auto", "polk(eta0=2)"), "river:...",
        "capymoa:...", "sklearn:...", "python:package.module.Class", each with parameters in
        parentheses if need be; or a dict of names to such words or to new models. By default four
        methods of this package and a linear model of scikit-learn. The rules "no change" and
        "majority" or "mean" always take part.
    metrics : sequence of str, optional
        By default accuracy, kappa, kappa_temporal and log_loss, or mae, rmse and r2. The first
        decides the order. A program without probabilities has no log_loss; ``auc``, of two
        classes, is that of the last ``window`` rows.
    rows : int, optional
        Rows to compare on at most.
    seconds : float, optional
        What a program may use at most; after that it is out, measured on fewer rows.

    Attributes
    ----------
    seats : list of Seat
        The programs and where they stand.
    samples : int
        Rows with a target so far.

    Examples
    --------
    >>> from kernelstream import ComparisonRun, make_multidist
    >>> run = ComparisonRun(make_multidist(1000, random_state=0), models="polk(eta0=2)")
    >>> for _ in run:
    ...     if run.samples >= 500:
    ...         run.stop()
    >>> sorted(each.name for each in run.result().contestants)
    ['majority', 'no change', 'polk(eta0=2)']
    """

    def __init__(
        self,
        source: Any,
        target: str = "target",
        models: str | Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        task: str | None = None,
        metrics: Sequence[str] | None = None,
        rows: int | None = None,
        seconds: float | None = None,
        every: int = 1000,
        window: int = 1000,
        units: Literal["moving", "frozen"] = "moving",
        warm_up: int = 1000,
        buckets: int | None = None,
        standardise: bool = True,
        spelling: Spelling = in_python,
        **reading: Any,
    ) -> None:
        super().__init__(source, target, reading, spelling)
        self.samples = 0
        self.rows, self.limit, self.window = rows, seconds, window
        self.settings = {
            "units": units, "warm_up": warm_up, "buckets": buckets, "standardise": standardise
        }  # fmt: skip
        named = None if models is None else entries(models, task, spelling)
        self._open()
        with self._closing_on_error():
            batch = self._look()
            task = task or self._task(batch)
            self.metrics = check_names(metrics or METRICS_COMPARED[task], task == "classification")
            stream = self._stream(batch, task)
            if named is None:
                named = entries(DEFAULT_PROGRAMS[task], task, spelling)
            taken = {each.name for each in named}
            named += [
                entry(rule, task, spelling)
                for rule, tasks in RULES.items()
                if task in tasks and rule not in taken
            ]
            unusable: list[UnusableError] = []
            self.seats = [self._seat(each, stream, every, window, unusable) for each in named]
            if unusable and all(seat.problem or seat.rule for seat in self.seats):
                raise unusable[0]
        self.reader = stream.reader
        self.over = False
        self._steps = self._all_steps()
        self._started = time.perf_counter()
        self.seconds = 0.0

    # ---- the beginning ----------------------------------------------------------------

    def _task(self, batch: Batch) -> str:
        try:
            return guess_task(batch.columns[self._reading["target"]])
        except ValueError as error:
            cure = f"use {self._spelling('task')} or another {self._spelling('target')}"
            raise RunError(f"{self.name}: {error}", cure) from None

    def _stream(self, batch: Batch, task: str) -> Stream:
        target = self._reading["target"]
        preparation = self._prepared(batch, [target], self.settings)
        estimator = make_estimator(DEFAULT, task, {})
        reader = StreamModel(estimator, preparation, target, task)
        targets, known = reader.targets_of(batch)
        if task == "classification":
            return Stream(reader, np.unique(targets[known]), (0.0, 1.0), self.metrics)
        first = targets[known] if known.any() else np.zeros(1)
        units = float(first.mean()), float(first.std()) or 1.0
        return Stream(reader, None, units, self.metrics)

    def _seat(
        self, each: Entry, stream: Stream, every: int, window: int, unusable: list[UnusableError]
    ) -> Seat:
        try:
            learner = each.make(stream)
        except WrongTaskError as error:
            cure = f"leave it out, or set {self._spelling('task')}"
            raise RunError(f"{each.name} {error}", cure) from None
        except UnusableError as error:
            unusable.append(error)
            return Seat(each, None, error.problem)
        return Seat(each, Prequential(learner, every=every, window=window))

    def compile(self) -> Self:
        """Load or make the machine code now, so that the times measured are the programs'."""
        for seat in self.seats:
            model = None if seat.score is None else seat.score.model
            model = getattr(model, "regressor", model)  # of one in units
            if hasattr(model, "predict_then_learn") and not seat.rule:
                compile_for(model)
        self._started = time.perf_counter()
        return self

    # ---- the way ----------------------------------------------------------------------

    def _all_steps(self) -> Iterator[None]:
        while not self._is_full() and (batch := self.read()) is not None:
            X, y = self.reader.admit(batch)
            if self.rows is not None:
                y = y[: self.rows - self.samples]
            for first in range(0, len(y), STEP_ROWS):
                part = slice(first, min(first + STEP_ROWS, len(y)))
                for seat in self.seats:
                    if seat.score is not None and not seat.problem:
                        self._advance(seat, seat.score, X[part], y[part])
                        yield
                self.samples += part.stop - part.start
        self._end()

    def _is_full(self) -> bool:
        none_left = all(seat.problem or seat.rule for seat in self.seats)
        return none_left or (self.rows is not None and self.samples >= self.rows)

    def _advance(self, seat: Seat, score: Prequential, X: Any, y: Any) -> None:
        try:
            with one_thread(), np.errstate(all="ignore"):  # their warnings are not the user's
                score._update_prepared(X, y)
        except Exception as error:  # of other packages, any
            message = " ".join(str(error).split()) or type(error).__name__
            seat.problem = f"failed after row {score.samples:,}: {message[:200]}"
            return
        if self.limit is not None and score.seconds > self.limit:
            seat.problem = f"out after row {score.samples:,}: {self.limit:g} s were used"
            score.finish()

    def _end(self) -> None:
        self.close()
        self.over = True
        if self.stopping:
            self.stopped_by = self._reason
        for seat in self.seats:
            if seat.score is not None and not seat.problem:
                seat.score.finish()
        if not self.samples:
            target = self._reading["target"]
            cure = f"name another {self._spelling('target')}"
            raise RunError(f"no row of {self.name} has a value of {target!r}", cure)
        self.seconds = time.perf_counter() - self._started

    # ---- what it has come to ----------------------------------------------------------

    def run(self) -> Comparison:
        """Go on to the end, and return the result."""
        self.compile()
        for _ in self:
            pass
        return self.result()

    def result(self) -> Comparison:
        """What the run has come to so far."""
        metric = self.metrics[0]
        sign = 1.0 if METRICS[metric].lower_is_better else -1.0

        def place(each: Contestant) -> tuple[bool, bool, float]:
            value = sign * each.values.get(metric, np.nan)
            return bool(each.problem), bool(np.isnan(value)), value

        contestants = sorted((_contestant(seat) for seat in self.seats), key=place)
        found = Comparison(
            self.reader.task, self.metrics, contestants, self.samples, stopped_by=self.stopped_by
        )
        return replace(found, notes=[*self.notes, *found.verdicts()])

    def write_report(
        self,
        path: str | os.PathLike[str],
        result: Comparison,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        """Write a page about the result; ``facts`` are what it says first."""
        from kernelstream.report import write_comparison_report

        packages = {seat.entry.package for seat in self.seats if not seat.rule}
        facts = {
            **(facts or {}),
            "data": data_name(self.name),
            "target": self._reading["target"],
            "task": result.task,
            "programs": ", ".join(sorted(packages)),
            "inputs": f"{len(self.reader.preparation.inputs):,} columns, as "
            f"{self.reader.preparation.width:,} numbers",
            "units": units_in_words(self.reader.preparation) or "",
            **closing_facts(self, self.samples),
        }
        write_comparison_report(
            path,
            title=f"{self._reading['target']} from {Path(data_name(self.name)).name}, compared",
            facts={name: value for name, value in facts.items() if value},
            comparison=result,
            window=self.window,
        )

    @property
    def notes(self) -> list[str]:
        """What the user should know about rows and programs."""
        failed = [f"{seat.entry.name} {seat.problem}" for seat in self.seats if seat.problem]
        return [*self._noted, *self._bad_rows_note(), *failed]


def _contestant(seat: Seat) -> Contestant:
    trace = seat.trace
    values = trace.summary() if len(trace) else {}
    measured = {
        name + end: values.get(name + end, np.nan)
        for name in trace.metrics
        for end in ("", "_window")
    }
    for name in trace.metrics:  # auc is known of the last rows alone
        if np.isnan(measured[name]):
            measured[name] = measured[f"{name}_window"]
    try:
        nbytes = np.nan if seat.score is None else seat.score._learner.nbytes()
    except Exception:  # not every model can be pickled
        nbytes = np.nan
    return Contestant(
        name=seat.entry.name,
        package=seat.entry.package,
        rule=seat.rule,
        rows=int(values.get("samples", 0)),
        values=measured,
        microseconds=values.get("microseconds_per_sample", np.nan),
        nbytes=nbytes,
        trace=trace,
        problem=seat.problem,
    )


def compare(
    source: Any,
    target: str = "target",
    models: str | Sequence[Any] | Mapping[str, Any] | None = None,
    **settings: Any,
) -> Comparison:
    """Programs side by side on one stream: each predicts every row, then learns it.

    Parameters
    ----------
    source, target, models, **settings
        As for :class:`ComparisonRun`.

    Returns
    -------
    Comparison
        Its ``frame`` is the table, ``plot`` draws the picture.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from kernelstream import compare, make_multidist
    >>> models = {"ours": "polk(eta0=2)", "linear": SGDClassifier(random_state=0)}
    >>> result = compare(make_multidist(1500, random_state=0), models=models)
    >>> result.contestants[0].name
    'ours'
    """
    return ComparisonRun(source, target, models, **settings).run()
