"""A model on its way through a stream."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from sklearn.base import clone, is_classifier

from kernelstream import registry
from kernelstream.core.threads import one_thread
from kernelstream.errors import DivergenceError
from kernelstream.evaluation import Prequential
from kernelstream.evaluation.learner import check_whole
from kernelstream.models._words import cap_note
from kernelstream.pipeline import StreamModel, guess_task
from kernelstream.registry import DEFAULT
from kernelstream.runs import _methods as methods
from kernelstream.runs._checkpoints import Checkpoint, Scored
from kernelstream.runs._kept import Kept
from kernelstream.runs._methods import (
    as_stored,
    check_like,
    check_several,
    compile_for,
    estimator_class,
    make_estimator,
    refuse_like,
)
from kernelstream.runs._notes import row_notes
from kernelstream.runs._page import write_page
from kernelstream.runs._reading import RunError, Spelling, StreamRun, in_python, join, text_of
from kernelstream.runs._result import Result, result_of
from kernelstream.streams.batch import Batch
from kernelstream.targets import as_given, names_of

#: Rows kept for the pictures of the report.
SAMPLE_ROWS = 500
#: Rows that one step learns from at most.
STEP_ROWS = 1024


class Run(StreamRun):
    """A model that learns from a stream of raw rows: each is predicted first, then learned from.

    It is what ``kernelstream learn`` does, and the same settings give the same model, bit for
    bit. Iterating over it goes on, at most 1024 rows at a time; in between it can be looked at,
    stopped, or left alone for a while. A run that was stopped or killed goes on from its last
    checkpoint as if nothing had happened. An error ends it, with the last checkpoint as it is.

    Parameters
    ----------
    source : path, "-", (X, y) or data frame
        As for :func:`~kernelstream.streams.open_stream`.
    target : str or sequence of str, default="target"
        The column to predict, or several of numbers, which most regressors learn together.
    model : str or estimator, default="auto"
        A method by name ("auto", "polk", ..., as ``kernelstream learn --help`` lists them), then
        with ``random_state=0`` and, where it has one, a gamma that suits the columns if
        ``parameters`` do not say otherwise; or a new estimator of this package, which is copied.
    parameters : dict, optional
        Of the method, where it is given by name.
    task : {"classification", "regression"}, optional
        By default what the target's first rows suggest.
    metrics, every, window, lag
        As for :class:`~kernelstream.evaluation.Prequential`.
    units, warm_up, buckets, standardise
        As for :class:`~kernelstream.Preparation`.
    importances : bool, default=False
        Learn along which columns matter: see :meth:`~kernelstream.StreamModel.follow_importances`.
    anomalies : bool, default=False
        Learn along which rows are usual: see :meth:`~kernelstream.StreamModel.follow_novelty`.
    like : path, optional
        A model file: rows are prepared as its model does, so that the two can be merged.
    checkpoint : path, optional
        A folder for the file to go on from.
    checkpoint_seconds : float, default=30
        How often it is written, at the end of a batch.
    resume : bool, default=False
        Go on from the checkpoint, if there is one.
    report : path, optional
        Where :meth:`run` writes a page about the run.
    make : callable, optional
        Makes the estimator of a method by name, from name, task, parameters and defaults.
    spelling : callable, optional
        How notes and errors write a parameter (and its value).
    **reading
        ``schema, drop, on_bad, quarantine, batch_rows, format, delimiter, header, n_features,
        decimal`` as for :func:`~kernelstream.streams.open_stream`. A quarantine file starts empty.

    Attributes
    ----------
    model : StreamModel
    score : Prequential
        Metrics, baselines and the trace.
    samples : int
        Rows with a target so far.
    over : bool
        Whether it has ended: the stream is over, it was stopped, or an error came.
    stopping, stopped_by
        See :meth:`stop`.

    Examples
    --------
    >>> from kernelstream import Run, make_multidist
    >>> X, y = make_multidist(5000, random_state=0)
    >>> run = Run((X, y), model="polk", parameters={"eta0": 2.0}, batch_rows=1000)
    >>> for _ in run:
    ...     if run.samples >= 3000:
    ...         run.stop()  # after this batch; without it, the run ends with the stream
    >>> result = run.result()
    >>> result.samples, result.stopped_by
    (3000, 'stop()')
    >>> bool(result.metrics["accuracy"] > 0.8 > result.baselines["majority"])
    True
    >>> result.model.save("model.ks")  # doctest: +SKIP
    """

    def __init__(
        self,
        source: Any,
        target: str | Sequence[str] = "target",
        model: Any = DEFAULT,
        *,
        parameters: Mapping[str, Any] | None = None,
        task: str | None = None,
        metrics: Sequence[str] | None = None,
        every: int = 1000,
        window: int = 1000,
        lag: int = 0,
        units: Literal["moving", "frozen"] = "moving",
        warm_up: int = 1000,
        buckets: int | None = None,
        standardise: bool = True,
        importances: bool = False,
        anomalies: bool = False,
        like: str | os.PathLike[str] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = 30.0,
        resume: bool = False,
        report: str | os.PathLike[str] | None = None,
        make: Callable[..., Any] = make_estimator,
        spelling: Spelling = in_python,
        **reading: Any,
    ) -> None:
        super().__init__(source, as_given(names_of(target)), reading, spelling)
        #: The method, where it is known: what to try first, and what to compare with.
        self.method = methods.method_of(model)
        if isinstance(model, str):
            name, given = model, dict(parameters or {})
            stored = as_stored(given)
        elif parameters:
            raise ValueError("parameters are for a method by name: give them to the estimator")
        else:
            name, given = type(model).__name__, model.get_params()
            stored = as_stored({k: v for k, v in given.items() if v is not None})
        risky = self.method is not None and self.method.without_risk
        check_whole("lag", lag, 0)
        #: Everything that decides what a run comes to; a checkpoint goes on only with the same.
        self.settings: dict[str, Any] = {
            "file": self.name,
            "method": name,
            "task": task,
            "parameters": stored,
            "metrics": None if metrics is None else list(metrics),
            "every": every, "window": window, "lag": lag,
            "units": units, "warm_up": warm_up, "buckets": buckets, "standardise": standardise,
            **{name: value for name, value in self._reading.items() if name != "schema"},
            "columns": [f"{name}={kind}" for name, kind in self._reading["schema"].items()],
            **{name: True for name, wanted in
               (("importances", importances), ("anomalies", anomalies)) if wanted},
            "like": text_of(like),
            "against_neutral": True if risky and report is not None else None,
        }  # fmt: skip
        self.sample: Any = None  # the last rows prepared and their targets, for pictures
        self.over = False
        self._report = report
        self._path = None if checkpoint is None else Path(checkpoint) / "checkpoint.ks"
        self._pause = checkpoint_seconds
        self._parts: list[Batch] = []  # of a batch, not learned from yet
        self._rows: tuple[Any, Any, int] | None = None  # of the first, and how many are done
        if self._path is not None and self._path.exists():
            if not resume:
                cure = f"go on with {spelling('resume', True)}, or delete it"
                raise RunError(f"{self._path.parent} holds a checkpoint already", cure)
            self._go_on(self._path)
        else:
            chosen = make if isinstance(model, str) else None
            self._begin(model, chosen, given)
        self._kept = Kept(self.model, self.score.taken, window)
        self._started = self._saved = time.perf_counter()
        self.seconds = 0.0  # from here to the end

    # ---- the beginning ----------------------------------------------------------------

    def _begin(self, model: Any, make: Any, parameters: Mapping[str, Any]) -> None:
        settings = self.settings
        like = None if settings["like"] is None else StreamModel.load(settings["like"])
        if make is not None and settings["task"] is not None:
            estimator_class(model, settings["task"], self._spelling)  # before anything is read
        self._open(like=None if like is None else like.preparation)
        with self._closing_on_error():
            if settings["on_bad"] == "quarantine":
                self.source.bad.start_file_again()
            batch = self._look()
            if like is None:
                task = self._task(batch, model)
                alone = registry.looks_back(model)
                preparation = self._prepared(batch, self._targets, settings, alone)
            else:
                task, preparation = like.task, like.preparation
                check_like(like, settings, self._spelling)
            if make is None:
                estimator = clone(model)
            else:
                estimator_class(model, task, self._spelling)
                fitting = {
                    "gamma": preparation.suggested_gamma,
                    "standardize": not preparation.in_moving_units,
                    "labels_delayed": settings["lag"] > 0,
                }
                estimator = make(model, task, parameters, **fitting)
            check_several(estimator, self._targets, self._spelling)

            if like is not None and not hasattr(type(estimator), "dual_coef_"):
                refuse_like(estimator, self._spelling)

            def scored(estimator: Any) -> Scored:
                if like is not None:
                    taught = like.with_new_model(estimator)
                else:
                    taught = StreamModel(estimator, preparation, self._targets, task)
                measured = {name: settings[name] for name in ("metrics", "every", "window", "lag")}
                losses = bool(settings["against_neutral"])
                return Scored(taught, Prequential(taught.estimator, **measured, losses=losses))

            self.model, self.score = scored(estimator)
            if settings.get("importances"):
                self.model.follow_importances()
            if settings.get("anomalies"):
                self.model.follow_novelty()
            #: The same model without risk, where a report compares the two.
            self.neutral: Scored | None = None
            if settings["against_neutral"] and self.method is not None:
                self.neutral = scored(methods.without_risk(self.method, estimator))

    def _task(self, batch: Batch, model: Any) -> str:
        if self.settings["task"] is not None:
            return str(self.settings["task"])
        if not isinstance(model, str):
            return "classification" if is_classifier(model) else "regression"
        spelling = self._spelling
        if len(self._targets) > 1:
            return "regression"
        column = batch.columns[self._targets[0]]
        self._refuse_numbers_as_texts(self._targets[0], column)
        try:
            return guess_task(column)
        except ValueError as error:
            cure = f"use {spelling('task')} or another {spelling('target')}"
            raise RunError(f"{self.name}: {error}", cure) from None

    @property
    def _targets(self) -> list[str]:
        return names_of(self.settings["target"])

    def _go_on(self, path: Path) -> None:
        found = Checkpoint.read(path, self.settings, self._spelling)
        self._open(position=found.position, schema=found.schema)
        self.model, self.score = found.own
        self.neutral = found.neutral
        if isinstance(found.settings["method"], str) and self.method is not None:
            # The default was another one when the run began.
            self.method = registry.models().get(found.settings["method"], self.method)
            self.settings["method"] = found.settings["method"]

    def compile(self) -> Self:
        """Load or make the machine code now, so that the times measured are the model's."""
        compile_for(self.model.model)
        self._started = self._saved = time.perf_counter()
        return self

    # ---- the way ----------------------------------------------------------------------

    @property
    def samples(self) -> int:
        """Rows with a target so far."""
        return self.score.samples

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Self:
        """Predict the next rows, then learn from them, one after the other."""
        try:
            while self._rows is None:
                if self.over or not self._next_batch():
                    raise StopIteration
            left = STEP_ROWS
            while left > 0 and self._rows is not None:
                X, y, first = self._rows
                part = slice(first, min(first + left, len(y), first + self._until_look()))
                with one_thread():  # also for what looks at rows: threads wait on a busy machine
                    self.score._update_prepared(X[part], y[part])
                    self.model.note_learned(X[part], y[part])
                    self._compare(X[part], y[part])
                left -= part.stop - first
                self._rows = X, y, part.stop
                if part.stop == len(y):
                    self._part_is_done()
                    if self._parts and left > 0:
                        self._next_batch()
        except StopIteration:
            raise
        except BaseException:  # the model may have learned what was not counted
            self.over = True
            self._rows = None
            self.close()
            raise
        return self

    def _until_look(self) -> int:
        """Rows that may be learned before which columns matter is looked at."""
        return STEP_ROWS if self.model.importances is None else self.model.importances.until_look()

    def run(self) -> Result:
        """Go on to the end, write the report where one is wanted, and return the result."""
        self.compile()
        for _ in self:
            pass
        if self._report is not None:
            self.write_report(self._report)
        return self.result()

    def _next_batch(self) -> bool:
        """Have the next rows with a target at hand, if the batch has any; False at the end."""
        if not self._parts:
            batch = self.read()
            if batch is None:
                self._end()
                return False
            self._parts = self._kept.parts(batch)
        X, y = self.model.admit(self._parts[0])
        self._rows = X, y, 0
        if not len(y):
            self._part_is_done()
        return True

    def _part_is_done(self) -> None:
        assert self._rows is not None
        X, y, _ = self._rows
        self._rows = None
        self._kept.follow(self._parts.pop(0), len(y))
        if len(y):
            rows: Any = X, y
            if self.sample is not None and len(y) < SAMPLE_ROWS:
                rows = tuple(map(join, self.sample, rows))
            self.sample = tuple(part[-SAMPLE_ROWS:] for part in rows)
        over = time.perf_counter() - self._saved >= self._pause
        if self._path is not None and over and not self._parts:
            self._save_checkpoint(self._path)
            self._saved = time.perf_counter()

    def _compare(self, X: Any, y: Any) -> None:
        """The risk-neutral model learns the same; if it cannot, the run goes on without it."""
        if self.neutral is None:
            return
        try:
            self.neutral.score._update_prepared(X, y)
        except DivergenceError as error:
            self.neutral = None
            self._noted.append(f"no risk-neutral model to compare with: {error}")

    def _save_checkpoint(self, path: Path) -> None:
        own = Scored(self.model, self.score)
        position = self._position or self.source.position
        Checkpoint(self.settings, position, self.source.schema, own, self.neutral).write(path)

    def _end(self) -> None:
        """The stream is over, or the run was stopped."""
        if self._path is not None:
            self._save_checkpoint(self._path)  # before finishing: a longer file could go on here
        self.close()
        self.over = True
        if self.stopping:
            self.stopped_by = self._reason
        else:  # use what was held back
            for scored in (Scored(self.model, self.score), self.neutral):
                if scored is not None:
                    scored.score.finish()
                    scored.model.flush()
            if not self.samples:
                raise RunError(
                    f"no row of {self.name} has a value of {', '.join(self._targets)!r}",
                    f"name another {self._spelling('target')}",
                )
        self.seconds = time.perf_counter() - self._started

    # ---- what it has come to ----------------------------------------------------------

    def result(self) -> Result:
        """What the run has come to so far."""
        return result_of(self)

    @property
    def frozen(self) -> dict[str, float] | None:
        """What a copy of the model, kept some rows ago, does on the rows since then.

        It is what the saved model will do on rows that it cannot learn from. Its ``rows``, between
        one window and two, the run's metrics, and of models with intervals ``interval_coverage``:
        how often those of 90 % contained the target.
        """
        return self._kept.measured(self.score.trace.metrics)

    @property
    def notes(self) -> list[str]:
        """What the user should know about rows, columns and the quality of the model."""
        notes = self._row_notes()
        model = self.model.model
        if hasattr(model, "_state") and (note := cap_note(model, self._spelling)):
            notes.append(note)
        return notes

    def _row_notes(self) -> list[str]:
        return [*self._noted, *row_notes(self), *self._bad_rows_note()]

    def write_report(
        self, path: str | os.PathLike[str], facts: Mapping[str, str] | None = None
    ) -> bool:
        """Write a page about the run; False, and a note, where there is nothing to show yet.

        ``facts`` are what the page says first.
        """
        if not (len(self.score.trace) and hasattr(self.model.model, "_state")):
            self._noted.append("stopped too early for a report: there is nothing to show yet")
            return False
        write_page(path, self, facts or {})
        return True
