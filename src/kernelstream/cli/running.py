"""A run over a stream: predict, learn, and stop or go on at any moment."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from sklearn.base import clone, is_classifier

from kernelstream import storage
from kernelstream.cli import quality
from kernelstream.cli.errors import UserError
from kernelstream.cli.methods import METHODS, estimator_class, make_estimator, option
from kernelstream.cli.predict import load_stream_model
from kernelstream.errors import DivergenceError
from kernelstream.evaluation import Prequential
from kernelstream.parameters import parameters_of
from kernelstream.pipeline import StreamModel, guess_task
from kernelstream.preparation import KINDS, Preparation
from kernelstream.streams import StreamError, open_stream
from kernelstream.streams.batch import Batch, Source, Text
from kernelstream.streams.columns import check_present

#: Rows kept for the pictures of the report.
SAMPLE_ROWS = 500
#: The usual row of the last ones (at least so many) may be this many deviations from the mean where
#: the model does badly, and where it does not: seasons may take a healthy column beyond the first.
FEWEST_ROWS, FAR, VERY_FAR = 20, 5.0, 10.0

#: Rows between two looks at the display.
_ROWS_BETWEEN_LOOKS = 1024

_KIND = "Checkpoint"


class Plan(NamedTuple):
    """Everything that decides what a run comes to; a checkpoint goes on only with the same."""

    file: str
    target: str
    method: str
    task: str | None  # None: what the target's first rows suggest
    parameters: dict[str, str | None]
    metrics: list[str] | None
    every: int
    window: int
    lag: int
    drop: list[str]
    columns: list[str]  # NAME=KIND, where the first batch would suggest another kind
    warm_up: int
    buckets: int
    standardise: bool
    batch_rows: int
    on_bad: str
    quarantine: str | None
    format: str | None
    delimiter: str | None
    header: bool
    n_features: int | None
    like: str | None  # a model file whose preparation is taken over
    against_neutral: bool | None = None  # a risk-neutral model learns beside it, for the report

    def differences(self, other: dict[str, Any]) -> list[str]:
        """The settings in which another plan, from a file, differs: as a user knows them."""
        # None and "not given" are the same: a newer version may know more parameters.
        now, then = _flat(self._asdict()), _flat(other)
        names = [name for name in {**now, **then} if now.get(name) != then.get(name)]
        return [
            f"{_OPTIONS.get(name) or option(name)} ({then.get(name)} then, {now.get(name)} now)"
            for name in names
        ]


#: Settings that are not called as they are on the command line.
_OPTIONS = {"file": "the file", "method": "--model", "against_neutral": "--report"}


def _flat(plan: dict[str, Any]) -> dict[str, Any]:
    """All settings side by side, the method's too."""
    plan = dict(plan)
    return {**plan, **plan.pop("parameters"), "parameters": None}


class Scored(NamedTuple):
    """A model and how well it does."""

    model: StreamModel
    score: Prequential


class Run:
    """A model on its way through a stream."""

    def __init__(
        self,
        plan: Plan,
        source: Source,
        model: StreamModel,
        score: Prequential,
        neutral: Scored | None = None,
    ) -> None:
        self.plan = plan
        self.source = source
        self.model = model
        self.score = score
        self.neutral = neutral  # the same without risk, where the report compares the two
        self.notes: list[str] = []  # about the columns
        self.sample: Any = None  # the last rows prepared and their targets, for pictures
        self._position: Any = None  # see next_batch

    @classmethod
    def begin(cls, plan: Plan) -> tuple[Self, Batch]:
        """A run at the start of its stream, and the first batch, not learned yet."""
        estimator_class(plan.method, plan.task or "classification")  # before anything is read
        like = None if plan.like is None else load_stream_model(Path(plan.like))
        source = _open(plan, like=like)
        if plan.on_bad == "quarantine":
            source.bad.start_file_anew()
        try:
            return cls._begin(plan, source, like)
        except BaseException:
            source.close()
            raise

    @classmethod
    def _begin(cls, plan: Plan, source: Source, like: StreamModel | None) -> tuple[Self, Batch]:
        batch = next(source, None)
        if batch is None:
            raise UserError(
                f"{plan.file} has no row that fits: {source.bad.count:,} were refused",
                "look at them with --on-bad raise",
            )
        if like is not None:
            task = like.task
            if (plan.target, plan.task or task) != (like.target, task):
                raise UserError(
                    f"{plan.like} predicts {like.target!r} ({task})",
                    f"give --target {like.target} and --task {task}, or another model to --like",
                )
            preparation = like.preparation
        else:
            task = plan.task or task_of(batch, plan.target, plan.file)
            preparation = Preparation(
                source.schema,
                ignore=[plan.target],
                matrix_width=source.matrix_width,
                warm_up=plan.warm_up,
                buckets=plan.buckets,
                standardise=plan.standardise,
            ).start(batch)
        gamma = preparation.suggested_gamma
        estimator = make_estimator(plan.method, task, plan.parameters, gamma=gamma)

        def stream_model(estimator: Any) -> StreamModel:
            if like is not None:
                return like.anew(estimator)
            return StreamModel(estimator, preparation, plan.target, task)

        model = stream_model(estimator)
        score = _score(plan, model)
        neutral = None
        if plan.against_neutral:
            other = stream_model(risk_neutral(plan.method, estimator))
            neutral = Scored(other, _score(plan, other))
        run = cls(plan, source, model, score, neutral)
        run.notes = mostly_numbers(batch, source.schema)
        return run, batch

    @classmethod
    def resume(cls, plan: Plan, path: Path) -> Self:
        """The run that a checkpoint holds, at the place where it was written."""
        try:
            document = storage.read(path)
        except storage.ModelFileError as error:
            raise UserError(str(error), "delete it and start anew") from None
        if document.kind != _KIND:
            raise UserError(f"{path} is not a checkpoint", "name the folder given to --checkpoint")
        try:
            return cls._restore(plan, path, document)
        except (UserError, StreamError, OSError, MemoryError):
            raise
        except Exception as error:  # what a file holds may lead to any: see storage.believing
            raise UserError(
                f"{path} cannot be gone on from: {error!r}", "delete it and start anew"
            ) from error

    @classmethod
    def _restore(cls, plan: Plan, path: Path, document: storage.Document) -> Self:
        header = document.header
        if differ := ", ".join(plan.differences(header["plan"])):
            raise UserError(
                f"the checkpoint in {path.parent} was made with other settings: {differ}",
                "give the same command, or another --checkpoint folder",
            )
        parts = ("model", "score", "neutral", "neutral score")
        arrays: dict[str, dict[str, Any]] = {part: {} for part in parts}
        for name, array in document.arrays.items():
            part, _, rest = name.partition(":")
            arrays[part][rest] = array

        def restored(model: str, score: str) -> Scored:
            document = storage.Document("StreamModel", header[model], arrays[model])
            taught = StreamModel._from_document(document)
            return Scored(
                taught, Prequential.restore(taught.estimator, header[score], arrays[score])
            )

        neutral = restored("neutral", "neutral score") if header.get("neutral") else None
        source = _open(plan, header["position"], header["schema"])
        return cls(plan, source, *restored("model", "score"), neutral)

    def compile(self) -> None:
        """Load or make the machine code now, so that the times measured are the model's."""
        estimator = clone(self.model.model)
        # Instead of looking at many samples first; and one feature needs other memory.
        given = {"gamma": 1.0, "delta": 1.0, "max_bytes": None}
        known = estimator.get_params()
        estimator.set_params(**{name: value for name, value in given.items() if name in known})
        X, y = np.zeros((2, 1)), np.array([0.0, 1.0])
        for features in (X, csr_array(X)):
            fresh = clone(estimator).partial_fit(features, y)
            fresh.predict_then_learn(features, y)
            fresh.predict(features)

    def save_checkpoint(self, path: Path) -> None:
        """Everything needed to go on from here, in one file, replaced atomically."""
        header = {
            "plan": self.plan._asdict(),
            "position": self._position or self.source.position,
            "schema": self.source.schema,
        }
        parts = {"model": self.model._document(), "score": self.score.state()}
        if self.neutral is not None:
            parts["neutral"] = self.neutral.model._document()
            parts["neutral score"] = self.neutral.score.state()
        named: dict[str, Any] = {}
        for part, (header[part], arrays) in parts.items():
            named |= {f"{part}:{name}": array for name, array in arrays.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        storage.write(path, _KIND, header, named)

    def next_batch(self, stop: Stop) -> Batch | None:
        """The next rows; None when there are no more, or when a signal ends the waiting for them.

        Only a pipe can keep us waiting. What it gives after the last batch is not known to have
        been used when a signal comes, so that the place to go on from is noted before.
        """
        if self.plan.file != "-":
            return next(self.source, None)
        self._position = self.source.position
        try:
            with stop.at_once():
                batch = next(self.source, None)
        except StopWaitingError:
            return None
        self._position = None
        return batch

    def advance(self, batch: Batch, shown: Callable[[], None] = lambda: None) -> None:
        """Predict the rows of a batch, then learn from them, one after the other.

        ``shown`` is called now and then on the way.
        """
        X, y = self.model.admit(batch)
        if len(y):
            for first in range(0, len(y), _ROWS_BETWEEN_LOOKS):
                part = slice(first, first + _ROWS_BETWEEN_LOOKS)
                self.score.update(X[part], y[part])
                self._compare(X[part], y[part])
                shown()
            rows = X, y
            if self.sample is not None and len(y) < SAMPLE_ROWS:
                rows = tuple(map(join, self.sample, rows))
            self.sample = tuple(part[-SAMPLE_ROWS:] for part in rows)

    def _compare(self, X: Any, y: Any) -> None:
        """The risk-neutral model learns the same; if it cannot, the run goes on without it."""
        if self.neutral is None:
            return
        try:
            self.neutral.score.update(X, y)
        except DivergenceError as error:
            self.neutral = None
            self.notes.append(f"no risk-neutral model to compare with: {error}")

    def finish(self) -> None:
        """The stream is over: use what was held back."""
        self.score.finish()
        self.model.flush()
        if self.neutral is not None:
            self.neutral.score.finish()
            self.neutral.model.flush()


def _score(plan: Plan, model: StreamModel) -> Prequential:
    return Prequential(
        model.estimator, plan.metrics, every=plan.every, window=plan.window, lag=plan.lag,
        losses=bool(plan.against_neutral),
    )  # fmt: skip


def neutral_method(method: str) -> str:
    """The method that learns beside one that is sensitive to risk; nothing beside others."""
    return METHODS[method].without_risk if method in METHODS else ""


def risk_neutral(method: str, estimator: Any) -> Any:
    """The same without risk, with the settings that the two share."""
    task = "classification" if is_classifier(estimator) else "regression"
    kind = estimator_class(neutral_method(method), task)
    known = parameters_of(kind)
    return kind(**{name: v for name, v in estimator.get_params().items() if name in known})


def _open(
    plan: Plan, position: Any = None, schema: Any = None, like: StreamModel | None = None
) -> Source:
    """The stream of a plan, with the columns of an earlier part of it or of a similar model."""
    width = plan.n_features
    schema = schema or given_kinds(plan.columns)
    if like is not None:
        schema = like.preparation.schema
        width = width or like.preparation.matrix_width
    source = open_stream(
        plan.file,
        target=plan.target,
        batch_rows=plan.batch_rows,
        on_bad=plan.on_bad,
        quarantine=plan.quarantine,
        position=position,
        schema=schema,
        format=plan.format,
        delimiter=plan.delimiter,
        header=plan.header,
        n_features=width,
        drop=plan.drop,
    )
    if position is None:
        try:
            check_given(plan.columns, source, plan.file)
        except StreamError:
            source.close()
            raise
    return source


def join(upper: Any, lower: Any) -> Any:
    """Prepared rows, or their targets, one below the other."""
    if issparse(upper):
        return vstack([upper, lower], format="csr")
    return np.concatenate([upper, lower])


def task_of(batch: Batch, target: str, file: str) -> str:
    """The task that the target's first rows suggest."""
    try:
        return guess_task(batch.columns[target])
    except ValueError as error:
        raise UserError(f"{file}: {error}", "use --task or another --target") from None


def check_given(columns: list[str], source: Source, file: str) -> None:
    """Refuse a --column that the source does not have."""
    for name in given_kinds(columns):
        check_present(file, name, list(source.schema))


def given_kinds(columns: list[str]) -> dict[str, str]:
    kinds = {}
    for text in columns:
        name, _, kind = text.rpartition("=")
        if not name or kind not in KINDS:
            raise UserError(
                f"--column {text} does not say what a column is",
                f"write NAME=KIND with one of: {', '.join(KINDS)}",
            )
        kinds[name] = kind
    return kinds


def mostly_numbers(batch: Batch, schema: dict[str, str]) -> list[str]:
    """Notes about text columns that look like numbers with a few exceptions."""
    notes = []
    for name, column in batch.columns.items():
        if schema.get(name) != "text" or not isinstance(column, Text) or not len(column):
            continue
        odd = [value for value in column.values if not _is_number(value)]
        numeric = np.array([_is_number(value) for value in column.values])
        known = column.codes[column.codes >= 0]
        if odd and len(known) and numeric[known].mean() >= 0.9:
            notes.append(
                f"column {name!r} is taken as text because of values like {odd[0]!r:.40}; "
                f"--column {name}=number refuses those rows instead"
            )
    return notes


def quality_notes(run: Run) -> list[str]:
    """Where a rule without a model does as well, and inputs that harm or may be why."""
    if not len(run.score.trace):
        return []
    metric, values = run.score.trace.metrics[0], run.score.trace.summary()
    to_try = ", ".join(option(name) for name in METHODS[run.plan.method].try_first)
    worse = []
    # Until the units of a target are known the mean is all that is predicted.
    if run.model.task == "classification" or run.score.samples > run.plan.warm_up:
        for when, suffix in (("", ""), ("lately ", "_window")):
            if rule := quality.beaten_by(metric, values, run.model.task, suffix):
                worse.append(f"{when}{rule}: try another {to_try} or --model")
    return worse[:1] + _far_inputs(run, FAR if worse else VERY_FAR)


def _far_inputs(run: Run, far: float) -> list[str]:
    """Notes about numbers that have left the range of the rows their units were taken from."""
    preparation = run.model.preparation
    if run.sample is None or not preparation.standardise or not preparation.frozen:
        return []
    X, notes = run.sample[0], []
    names = preparation.feature_names_out
    for name, kind in preparation.inputs.items():
        if kind != "number" or name not in names or X.shape[0] < FEWEST_ROWS:
            continue
        values = X[:, [names.index(name)]]
        away = float(np.median(np.abs(values.toarray() if issparse(values) else values)))
        if away > far:
            notes.append(
                f"column {name!r} has left the range of the first {run.plan.warm_up:,} rows: it is "
                f"{away:,.0f} deviations away; leave it out (--drop {name}) or let more rows set "
                "the units (--warm-up)"
            )
    return notes


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def checkpoint_file(folder: Path) -> Path:
    """The one file in a checkpoint folder."""
    return folder / "checkpoint.ks"


class StopWaitingError(Exception):
    """A signal came while we were waiting for input."""


class Stop:
    """Set by Ctrl-C or SIGTERM: finish the batch, then stop. A second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._waiting = False

    def __bool__(self) -> bool:
        return self.signal is not None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Within, both signals only leave a note here."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with contextlib.suppress(ImportError):
            import pyarrow

            # Its own would cancel the reading of a block, whose rows would then be missing.
            pyarrow.enable_signal_handlers(False)
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Within, a signal does not only leave a note but raises StopWaitingError."""
        self._waiting = True
        try:
            if self.signal is not None:
                raise StopWaitingError
            yield
        finally:
            self._waiting = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal == number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number
        if os.isatty(2):
            again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
            os.write(2, f"\nstopping after this batch{again}\n".encode())
        if self._waiting:
            self._waiting = False
            raise StopWaitingError


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def resident_bytes() -> int:
    """Memory of this process, where the system tells (Linux); else 0."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def headline(score: Prequential) -> tuple[str, float, float]:
    """The first metric: its name, over all samples, and over the window."""
    name = score.trace.metrics[0]
    if not len(score.trace):
        return name, np.nan, np.nan
    numbers = score.trace.summary()
    return name, numbers[name], numbers[f"{name}_window"]
