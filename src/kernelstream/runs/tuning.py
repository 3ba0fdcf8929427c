"""A search for the parameters of one method on one stream: many candidates in one pass."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.model_selection import ParameterSampler

from kernelstream.core.threads import one_thread
from kernelstream.evaluation import Prequential
from kernelstream.evaluation.metrics import METRICS, check_names
from kernelstream.models.in_units import InUnits
from kernelstream.pipeline import StreamModel, guess_task
from kernelstream.runs import _trials
from kernelstream.runs._checkpoints import Scored
from kernelstream.runs._methods import as_stored, compile_for, estimator_class, make_estimator
from kernelstream.runs._methods import method_of as find_method
from kernelstream.runs._reading import RunError, Spelling, SteppedRun, in_python, text_of
from kernelstream.runs._trials import Trial
from kernelstream.search import search_space
from kernelstream.streams.batch import Batch

#: Of those that are left, one in so many goes on.
FACTOR = 3
#: Rows after which the first leave, at least.
LEAST_ROWS = 300
#: Rows that a candidate is given at a time.
STEP_ROWS = 1024


class Tuning(NamedTuple):
    """What a search has come to."""

    method: str
    parameters: dict[str, Any]  #: Of the best candidate, with those that were given.
    metric: str
    trials: Sequence[Trial]  #: The best first.
    samples: int
    notes: Sequence[str]
    stopped_by: str | None

    @property
    def best(self) -> Trial:
        """The best candidate."""
        return self.trials[0]

    @property
    def default(self) -> Trial:
        """The candidate in which nothing was chosen."""
        return next(trial for trial in self.trials if trial.number == 0)


class TuningRun(SteppedRun):
    """Candidates for the parameters of a method, compared in one pass over a stream of raw rows.

    It is what ``kernelstream tune`` does. The first candidate has the default parameters, the
    others are drawn from :func:`~kernelstream.search.search_space`. All predict and learn the same
    rows; by successive halving two of three leave after a part of the rows, those whose predictions
    were worse, and again after three times as many, until three are left, which see all rows. So do
    the defaults.

    Parameters
    ----------
    source, target, task, units, warm_up, buckets, standardise, make, spelling, **reading
        As for :class:`~kernelstream.Run`.
    model : str, default="polk"
        A method by name.
    trials : int, default=27
        Candidates.
    rows : int, default=20000
        Rows with a target to compare on; fewer where the stream is shorter.
    parameters : dict, optional
        That are the same for all candidates.
    only : sequence of str, optional
        The parameters to choose; by default all that have a range.
    metric : str, optional
        By default accuracy or mae.
    random_state : int, default=0
        For the candidates.
    checkpoint, checkpoint_seconds, resume
        As for :class:`~kernelstream.Run`: the search goes on, and comes to the same.

    Attributes
    ----------
    trials : list of Trial
    samples : int
        Rows with a target so far.

    Examples
    --------
    >>> from kernelstream import make_multidist, tune
    >>> found = tune(make_multidist(1500, random_state=0), model="avm", trials=9)
    >>> len(found.trials), found.trials[0].rows
    (9, 1500)
    >>> bool(found.best.value >= found.default.value)
    True
    >>> sorted(found.parameters)
    ['alpha', 'delta', 'gamma', 'loss']
    """

    def __init__(
        self,
        source: Any,
        target: str = "target",
        model: str = "polk",
        *,
        trials: int = 27,
        rows: int = 20_000,
        parameters: Mapping[str, Any] | None = None,
        only: Sequence[str] | None = None,
        metric: str | None = None,
        task: str | None = None,
        random_state: int = 0,
        units: Literal["moving", "frozen"] = "moving",
        warm_up: int = 1000,
        buckets: int | None = None,
        standardise: bool = True,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = 30.0,
        resume: bool = False,
        make: Callable[..., Any] = make_estimator,
        spelling: Spelling = in_python,
        **reading: Any,
    ) -> None:
        super().__init__(source, target, reading, spelling)
        for name, value in (("trials", trials), ("rows", rows)):
            if value < 2:
                raise RunError(
                    f"{spelling(name, value)} leaves nothing to compare", "give 2 or more"
                )
        find_method(model)
        self.given = dict(parameters or {})
        self.settings: dict[str, Any] = {
            "file": self.name, "method": model, "task": task, "trials": trials, "rows": rows,
            "parameters": as_stored(self.given), "metric": metric, "random_state": random_state,
            "only": None if only is None else list(only),
            "units": units, "warm_up": warm_up, "buckets": buckets, "standardise": standardise,
            **{name: value for name, value in self._reading.items() if name != "schema"},
            "columns": [f"{name}={kind}" for name, kind in self._reading["schema"].items()],
        }  # fmt: skip
        self._path = None if checkpoint is None else Path(checkpoint) / "tuning.ks"
        self._pause, self._make = checkpoint_seconds, make
        self.over, self.samples, self.seconds = False, 0, 0.0
        if self._path is not None and self._path.exists():
            if not resume:
                cure = f"go on with {spelling('resume', True)}, or delete it"
                raise RunError(f"{text_of(checkpoint)} holds a search already", cure)
            self._go_on(self._path)
        else:
            self._begin()
        self.rungs = _rungs(len(self.trials), rows, self._least_rows())
        self._steps = self._all_steps()
        self._started = self._saved = time.perf_counter()

    # ---- the beginning ----------------------------------------------------------------

    def _begin(self) -> None:
        settings, spelling = self.settings, self._spelling
        if settings["task"] is not None:  # before anything is read
            estimator_class(settings["method"], settings["task"], spelling)
        self._open()
        with self._closing_on_error():
            batch = self._look()
            task = settings["task"] or self._task(batch)
            kind = estimator_class(settings["method"], task, spelling)
            self.metric = self._metric(task)
            preparation = self._prepared(batch, [settings["target"]], settings)
            fitting = {
                "gamma": preparation.suggested_gamma,
                "standardize": not preparation.in_moving_units,
            }
            self.trials = []
            for number, chosen in enumerate(self._candidates(kind, preparation.suggested_gamma)):
                trial, values = Trial(number, chosen), {**self.given, **chosen}
                self.trials.append(trial)
                try:
                    estimator = self._make(settings["method"], task, values, **fitting)
                    estimator._check_parameters(fresh=True)
                except Exception as error:  # values that do not go together
                    if number == 0:
                        raise
                    trial.problem = " ".join(str(error).split())
                    continue
                model = StreamModel(estimator, preparation, settings["target"], task)
                trial.scored = Scored(model, Prequential(model.estimator, [self.metric]))

    def _task(self, batch: Batch) -> str:
        try:
            return guess_task(batch.columns[self.settings["target"]])
        except ValueError as error:
            cure = f"use {self._spelling('task')} or another {self._spelling('target')}"
            raise RunError(f"{self.name}: {error}", cure) from None

    def _metric(self, task: str) -> str:
        usual = "accuracy" if task == "classification" else "mae"
        return check_names([self.settings["metric"] or usual], task == "classification")[0]

    def _candidates(self, kind: type[Any], gamma: float) -> Iterator[dict[str, Any]]:
        """What is chosen in each trial: nothing in the first."""
        space, spelling = search_space(kind, gamma), self._spelling
        wanted = self.settings["only"]
        able = [name for name in space if name not in self.given]
        for name in wanted or []:
            if name not in able:
                cure = f"{kind.__name__} can search: {', '.join(able) or 'nothing'}"
                raise RunError(f"{spelling('only', name)} has no range", cure)
        space = {name: space[name] for name in (wanted or able)}
        if not space:
            method = self.settings["method"]
            cure = f"take another {spelling('model')}, such as polk"
            raise RunError(f"{spelling('model', method)} has no parameters to search", cure)
        yield {}
        count, seed = self.settings["trials"] - 1, self.settings["random_state"]
        most = math.prod(len(each) if isinstance(each, list) else count for each in space.values())
        for chosen in ParameterSampler(space, min(count, most), random_state=seed):
            yield {name: _short(chosen[name]) for name in space}

    def _least_rows(self) -> int:
        """Before that, candidates can hardly differ."""
        waiting = max(
            (trial.scored.model.estimator.warm_up for trial in self.trials
             if trial.scored and isinstance(trial.scored.model.estimator, InUnits)),
            default=0,
        )  # fmt: skip
        return max(LEAST_ROWS, 2 * waiting)

    def _go_on(self, path: Path) -> None:
        found = _trials.read(path, self.settings, self._spelling)
        self._open(position=found.position, schema=found.schema)
        self.trials, self.samples, self.metric = found.trials, found.samples, found.metric

    def compile(self) -> Self:
        """Load or make the machine code now."""
        first = next(trial.scored for trial in self.trials if trial.scored)
        compile_for(first.model.model)
        return self

    # ---- the way ----------------------------------------------------------------------

    @property
    def left(self) -> list[Trial]:
        """Candidates that are still in it."""
        return [trial for trial in self.trials if trial.scored is not None]

    def _all_steps(self) -> Iterator[None]:
        rows = self.settings["rows"]
        while self.left and self.samples < rows and (batch := self.read()) is not None:
            X, y = _scored(self.left[0]).model.admit(batch)  # for all of them
            y, first = y[: rows - self.samples], 0
            while first < len(y):
                end = min(first + STEP_ROWS, len(y), first + self._to_rung())
                for trial in self.left:
                    self._advance(trial, X[first:end], y[first:end])
                    yield
                self.samples += end - first
                first = end
                if self.samples in self.rungs:
                    self._halve()
            if self._path is not None and time.perf_counter() - self._saved >= self._pause:
                self._save(self._path)
        self._end()

    def _to_rung(self) -> int:
        ahead = [rung - self.samples for rung in self.rungs if rung > self.samples]
        return ahead[0] if ahead else STEP_ROWS

    def _advance(self, trial: Trial, X: Any, y: Any) -> None:
        score = _scored(trial).score
        try:
            with one_thread():
                score._update_prepared(X, y)
        except Exception as error:  # a step that is too large, most often
            trial.problem = f"failed at row {self.samples:,}: {' '.join(str(error).split())}"
            self._leave(trial)

    def _halve(self) -> None:
        """The best part goes on, and the defaults: the best is compared with them at the end."""
        drawn = self._ranked([trial for trial in self.left if trial.number])
        for trial in drawn[max(FACTOR, math.ceil(len(drawn) / FACTOR)) :]:
            self._leave(trial)

    def _leave(self, trial: Trial) -> None:
        self._measure(trial)
        trial.scored = None  # its memory is given back

    def _ranked(self, trials: Sequence[Trial]) -> list[Trial]:
        for trial in trials:
            self._measure(trial)
        return sorted(trials, key=self._place)

    def _measure(self, trial: Trial) -> None:
        if trial.scored is not None and trial.scored.score.samples:
            trial.value = trial.scored.score.values()[self.metric]
            trial.rows = trial.scored.score.samples

    def _place(self, trial: Trial) -> tuple[bool, int, float]:
        """Who came further is before who left; then by the metric."""
        sign = 1.0 if METRICS[self.metric].lower_is_better else -1.0
        return bool(trial.problem) or math.isnan(trial.value), -trial.rows, sign * trial.value

    def _save(self, path: Path) -> None:
        position = self._position or self.source.position
        place = position, self.source.schema, self.metric, self.samples
        _trials.write(path, self.settings, _trials.State(*place, self.trials))
        self._saved = time.perf_counter()

    def _end(self) -> None:
        if self._path is not None:
            self._save(self._path)
        self.close()
        self.over = True
        if self.stopping:
            self.stopped_by = self._reason
        if not self.samples:
            cure = f"name another {self._spelling('target')}"
            raise RunError(
                f"no row of {self.name} has a value of {self.settings['target']!r}", cure
            )
        self.seconds = time.perf_counter() - self._started

    # ---- what it has come to ----------------------------------------------------------

    def run(self) -> Tuning:
        """Go on to the end, and return the result."""
        self.compile()
        for _ in self:
            pass
        return self.result()

    def result(self) -> Tuning:
        """What the search has come to so far."""
        ranked = self._ranked(self.trials)
        return Tuning(
            self.settings["method"], {**self.given, **ranked[0].parameters}, self.metric, ranked,
            self.samples, self.notes, self.stopped_by,
        )  # fmt: skip

    @property
    def notes(self) -> list[str]:
        """What the user should know."""
        notes, rows = [*self._noted, *self._bad_rows_note()], self.settings["rows"]
        if self.over and self.stopped_by is None and self.samples < rows:
            late = [rung for rung in self.rungs if rung > self.samples]
            if late:
                notes.append(
                    f"the stream has {self.samples:,} rows of the {rows:,} that the search was "
                    f"laid out for: {self._spelling('rows', self.samples)} would let more "
                    "candidates leave early"
                )
        failed = [trial.problem for trial in self.trials if trial.problem]
        if failed:
            first = failed[0] if len(failed) == 1 else f"the first: {failed[0]}"
            notes.append(f"{len(failed)} of {len(self.trials)} candidates failed; {first}")
        return notes


def _scored(trial: Trial) -> Scored:
    assert trial.scored is not None
    return trial.scored


def _rungs(trials: int, rows: int, least: int) -> list[int]:
    """Rows after which candidates leave: each time all but one in three, until three are left.

    >>> _rungs(27, 18000, 100)
    [2000, 6000]
    """
    times = max(0, math.ceil(math.log(trials, FACTOR) - 1e-9) - 1)
    rungs = [rows // FACTOR**power for power in range(times, 0, -1)]
    return sorted({max(rung, least) for rung in rungs if max(rung, least) < rows})


def _short(value: Any) -> Any:
    """Numbers with four digits, as they will be typed."""
    if isinstance(value, float | np.floating):
        return float(f"{float(value):.4g}")
    return value.item() if isinstance(value, np.generic) else value


def tune(source: Any, target: str = "target", model: str = "polk", **settings: Any) -> Tuning:
    """Search for the parameters of a method, many candidates in one pass over a stream.

    Parameters
    ----------
    source, target, model, **settings
        As for :class:`TuningRun`.

    Returns
    -------
    Tuning
        Its ``parameters`` are the best ones.

    Examples
    --------
    >>> from kernelstream import Run, make_multidist, tune
    >>> stream = make_multidist(1500, random_state=0)
    >>> found = tune(stream, model="polk", trials=5, only=["gamma", "eta0"])
    >>> result = Run(stream, model="polk", parameters=found.parameters).run()
    >>> bool(result.metrics["accuracy"] == found.best.value)
    True
    """
    return TuningRun(source, target, model, **settings).run()
