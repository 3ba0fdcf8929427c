"""Predict first, then learn: every sample of a stream is a test before it is a lesson."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array

from kernelstream.buffer import Buffer
from kernelstream.evaluation.baselines import make_baselines
from kernelstream.evaluation.held_out import HeldOut
from kernelstream.evaluation.labels import buffer_from_state, buffer_state
from kernelstream.evaluation.late import MOST_ROWS, predict_then_learn_late
from kernelstream.evaluation.learner import Predictions, check_whole, rows_between
from kernelstream.evaluation.metrics import make_metrics
from kernelstream.evaluation.programs import learner_for
from kernelstream.evaluation.risk import LossDistribution
from kernelstream.evaluation.stopwatch import Stopwatch
from kernelstream.evaluation.trace import BESIDE_THE_STREAM, Trace
from kernelstream.models._base import KernelEstimator
from kernelstream.models.in_units import InUnits
from kernelstream.parts import part_of, prefixed
from kernelstream.rows import as_rows, check_columns

#: Samples after which the metrics are updated at the latest.
MOST_UNCOUNTED = 4096

#: Version of what :meth:`Prequential.state` returns.
FORMAT = 1

OnRecord = Callable[[dict[str, float]], None]


def prequential(
    model: Any,
    stream: Any,
    metrics: Sequence[str] | None = None,
    *,
    every: int = 1000,
    window: int = 1000,
    fading: float = 0.999,
    lag: int = 0,
    classes: ArrayLike | None = None,
    held_out: tuple[Any, Any] | None = None,
    on_record: OnRecord | None = None,
) -> Trace:
    """Run a model over a stream, testing it on each sample before it learns from it.

    Parameters
    ----------
    model, metrics, every, window, fading, lag, classes, held_out, on_record
        As for :class:`Prequential`. The model is changed in place.
    stream : (X, y), or an iterable of such pairs
        How the samples are cut into pairs makes no difference.

    Returns
    -------
    Trace

    Examples
    --------
    >>> from kernelstream import POLKClassifier, make_multidist
    >>> from kernelstream.evaluation import prequential
    >>> X, y = make_multidist(5000, random_state=1)
    >>> chunks = ((X[i : i + 300], y[i : i + 300]) for i in range(0, 5000, 300))
    >>> trace = prequential(POLKClassifier(random_state=0), chunks, every=1000)
    >>> trace.to_columns()["samples"]
    array([1000, 2000, 3000, 4000, 5000])
    >>> numbers = trace.summary()
    >>> bool(numbers["accuracy_window"] > 0.95 > numbers["majority_window"])
    True
    """
    run = Prequential(
        model, metrics, every=every, window=window, fading=fading, lag=lag, classes=classes,
        held_out=held_out, on_record=on_record,
        losses=held_out is not None and isinstance(model, KernelEstimator),
    )  # fmt: skip
    pair_like = isinstance(stream, tuple) and len(stream) == 2
    of_pairs = pair_like and isinstance(stream[0], tuple) and len(stream[0]) == 2
    for pair in [stream] if pair_like and not of_pairs else stream:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                f"a stream is one tuple (X, y) or an iterable of them, got a {type(pair).__name__}"
            )
        run.update(*pair)
    return run.finish()


class Prequential:
    """A prequential run that is fed piece by piece, and can be stopped and resumed.

    Each sample is predicted by the model as it was just before it, then learned. A model that
    has learned nothing yet says nothing: the first sample of a fresh model (with ``lag`` the first
    ``lag`` + 1) is learned, but not scored. New classes may appear at any time, if the model
    takes them.

    The trace does not depend on how the samples are cut into calls, bit for bit, nor on stops
    and resumes; except for ``seconds`` and, since a model's spare memory depends on its past calls
    and on its having been reloaded, for ``bytes``.

    Parameters
    ----------
    model : estimator
        A model of this package goes through its compiled ``predict_then_learn``, one of River or
        CapyMOA row by row. Any other with ``partial_fit`` and ``predict`` is tested, then trained,
        on blocks of up to ``every`` samples: within a block it does not learn. Such a block, and
        with ``batch_size`` > 1 an unfinished batch, is held back until it is complete or the run
        is finished.
    metrics : sequence of str, optional
        See :class:`ClassMetrics` and :class:`NumberMetrics`; the first one is also measured for
        the baselines. By default ``accuracy, kappa`` or ``mae, rmse``. Of several numbers they are
        averaged.
    every : int, default=1000
        Samples between two records of the trace; see :class:`Trace` for very long streams.
    window, fading : int and float, default=1000 and 0.999
        Of the metrics.
    lag : int, default=0
        Labels come late: sample t is learned only after sample t + ``lag`` was predicted. The
        model then goes one sample at a time through Python: several times slower.
    classes : array, optional
        All classes there will be. scikit-learn's classifiers need it.
    held_out : (X, y), optional
        Samples that are not learned: at each record the first metric and the regularised risk are
        measured on them, see :class:`Trace`. They are no part of :meth:`state`.
    on_record : callable, optional
        Called with each record, a dict.
    losses : bool, default=False
        Also collect the distribution of the losses, by the model's own loss; for models of this
        package only. Samples that were there to fix the units of a target do not count, nor does
        a sample whose class the model did not know when it was predicted, or none beside it.

    Attributes
    ----------
    trace : Trace
    losses : LossDistribution or None
    samples : int
        Samples predicted so far.

    Notes
    -----
    When learning itself fails (:class:`~kernelstream.DivergenceError`), the model may have
    learned samples that were not counted: go on from the last checkpoint.

    Examples
    --------
    >>> from kernelstream import POLKRegressor, make_regression_outliers
    >>> from kernelstream.evaluation import Prequential
    >>> X, y = make_regression_outliers(600, random_state=0)
    >>> run = Prequential(POLKRegressor(), every=200)
    >>> run.update(X[:450], y[:450])
    >>> header, arrays = run.state()  # to a file, with the model
    >>> again = Prequential.restore(run.model, header, arrays)
    >>> again.update(X[450:], y[450:])
    >>> again.finish().to_columns()["samples"]
    array([200, 400, 600])
    """

    def __init__(
        self,
        model: Any,
        metrics: Sequence[str] | None = None,
        *,
        every: int = 1000,
        window: int = 1000,
        fading: float = 0.999,
        lag: int = 0,
        classes: ArrayLike | None = None,
        held_out: tuple[Any, Any] | None = None,
        on_record: OnRecord | None = None,
        losses: bool = False,
    ) -> None:
        for name, value, least in (("every", every, 1), ("window", window, 1), ("lag", lag, 0)):
            check_whole(name, value, least)
        self.samples, self.seconds, self.on_record = 0, 0.0, on_record
        self._every, self._window, self._lag = int(every), int(window), int(lag)
        self._fading = float(fading)
        self._learner = learner_for(model, metrics, classes, losses)
        self._names = self._learner.metrics
        self.losses = LossDistribution() if losses else None
        #: Samples whose losses are not measured: the target's units are not known yet.
        unknown = isinstance(model, InUnits) and not model._settled
        self._unmeasured = model.warm_up + lag if unknown else 0
        #: Samples are handed to the model up to multiples of this only, see _ready.
        self._step, self._offset = (1, 0) if lag else self._learner.steps(self._every)
        #: Labels as numbers; targets of a regressor stay as they are.
        self._labels = self._learner.labels
        self._metrics = make_metrics(self._names, self._labels, window=window, fading=fading)
        self._baselines = make_baselines(self._names[0], self._labels, window=window, lag=lag)
        #: Samples held back: not predicted yet, or with a lag predicted but not learned.
        self._waiting: Buffer | None = None
        self._counted = 0  # samples in the metrics; then targets and predictions that are not yet
        self._uncounted: list[tuple[NDArray[Any], list[Predictions]]] = []
        self._held_out = None if held_out is None else HeldOut(held_out, self._names[0])
        self.trace = Trace(self._names, self._every, BESIDE_THE_STREAM if held_out else ())

    @property
    def taken(self) -> int:
        """Samples given so far, with those held back."""
        held = 0 if self._waiting is None or self._lag else len(self._waiting)
        return self.samples + held

    @property
    def model(self) -> Any:
        """The model, as it is now."""
        return self._learner.model

    def values(self) -> dict[str, float]:
        """The metrics now: over all samples, over the window, and fading."""
        self._count()
        return self._metrics.values()  # type: ignore[no-any-return]

    def values_by_output(self) -> list[dict[str, float]]:
        """:meth:`values` of each number of a sample, of which the metrics average."""
        self._count()
        return [each.values() for each in getattr(self._metrics, "outputs", [self._metrics])]

    # ---- the run --------------------------------------------------------------------------

    def update(self, X: Any, y: Any) -> None:
        """Predict and learn the next samples.

        Nothing happens if anything is wrong with them.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) labels or numbers; (n, q) numbers for models that learn several
        """
        self._take(*self._admit(X, y))

    def _update_prepared(self, X: Any, y: NDArray[Any]) -> None:
        """:meth:`update` with rows and targets that a :class:`~kernelstream.StreamModel` admitted.

        They were looked at on the way; what is left is how the model's kernel takes them.
        """
        kernel = getattr(self.model, "kernel_", None)
        if kernel is not None and not kernel.unit:
            self._learner.check_rows(X)
        self._take(X, y)

    def _take(self, X: Any, y: NDArray[Any]) -> None:
        if self._step > 1:
            X, y = self._with_waiting(X, y)
            self._waiting = None
        done = 0
        while done < len(y):
            end = done + self._ready(len(y) - done)
            if end == done:
                self._wait(X, y, done)
                break
            self._advance(rows_between(X, done, end), y[done:end])
            done = end

    def finish(self) -> Trace:
        """Use what was held back, and record where the run stands. It may go on afterwards."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not self._lag:
            self._advance(waiting.matrix, waiting.targets)
        recorded = self.trace.to_columns()["samples"]
        if self.samples and (not len(recorded) or recorded[-1] != self.samples):
            self._record()
        if waiting is not None and self._lag:  # all predicted before, their labels have come now
            X, y = waiting.matrix, waiting.targets
            with Stopwatch() as watch:
                for i in range(len(y)):
                    self._learner.learn(X[i : i + 1], y[i : i + 1])
            self.seconds += watch.seconds
        return self.trace

    def _admit(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Refuse bad samples before any is used: later a part of them would be learned."""
        self._learner.check_rows(X)
        if not self._learner.compiled or self._lag or self._step > 1:
            check_columns(X)  # of a data frame
            X = check_array(X, accept_sparse="csr", dtype=np.float64)
            X = csr_array(X) if issparse(X) else X
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return X, self._learner.check_targets(y, n)

    def _ready(self, available: int) -> int:
        """How many of the available samples to use next."""
        if self._learner.fresh and not self._lag:
            return 1
        every, available = self.trace.every, min(available, MOST_ROWS if self._lag else available)
        to_record = every - self.samples % every
        if available >= to_record:
            return to_record
        into = self.samples + self._offset
        return max(0, (into + available) // self._step * self._step - into)

    def _advance(self, X: Any, y: NDArray[Any]) -> None:
        """Use these samples, which end where a record is due at the latest."""
        if not self._lag:
            X = self._learner.converted(X, y)
        parts: list[Predictions] = []
        with Stopwatch() as watch:
            if self._lag:
                parts = self._predict_then_learn_late(X, y)
            elif self._learner.fresh:
                self._learner.learn(X, y)
            else:
                parts = [self._learner.predict_then_learn(X, y, self._unmeasured - self.samples)]
        self.seconds += watch.seconds
        self.samples += len(y)
        self._uncounted.append((y.copy(), parts))
        if self.samples % self.trace.every == 0:
            self._record()
        elif self.samples - self._counted >= MOST_UNCOUNTED:
            self._count()

    def _predict_then_learn_late(self, X: Any, y: NDArray[Any]) -> list[Predictions]:
        before = 0 if self._waiting is None else len(self._waiting)
        unmeasured = self._unmeasured - self.samples
        X, y = self._with_waiting(X, y)
        made = predict_then_learn_late(self._learner, X, y, before, self._lag, unmeasured)
        self._wait(X, y, max(0, len(y) - self._lag))
        return made

    def _count(self) -> None:
        """Update metrics and baselines: many small calls would take their time."""
        uncounted, self._uncounted, self._counted = self._uncounted, [], self.samples
        if not uncounted:
            return
        y = np.concatenate([y for y, _ in uncounted])
        targets = y if self._labels is None else self._labels.encode(y)
        self._baselines.update(targets)
        parts = [part for _, parts in uncounted for part in parts]
        scored = sum(len(part.predicted) for part in parts)  # the first may not have been
        if self._labels is not None:
            self._metrics.skip_codes(targets[: len(targets) - scored])
        if not parts:
            return
        if self.losses is not None:
            for part in parts:
                if part.losses is not None:
                    self.losses.update(part.losses)
        predicted = np.concatenate([part.predicted for part in parts])
        targets = targets[len(targets) - scored :]
        if self._labels is None:
            self._metrics.update(targets, predicted)
            return
        extras = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in self._learner.needs
        }
        self._metrics.update_codes(targets, self._labels.encode(predicted), **extras)

    def _record(self) -> None:
        self._count()
        record: dict[str, float] = {"samples": self.samples, "seconds": self.seconds}
        for column in ("model_order", "nbytes", "error_spent"):
            fitted = None if self._learner.fresh else getattr(self.model, f"{column}_", None)
            record["bytes" if column == "nbytes" else column] = np.nan if fitted is None else fitted
        record |= self._metrics.values() | self._baselines.values()
        if self._held_out is not None and not self._learner.fresh:
            loss = np.nan if self.losses is None else self.losses.mean
            record |= self._held_out.values(self.model, loss)
        self.trace.append(record)
        if self.on_record is not None:
            self.on_record(record)

    def _with_waiting(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        if self._waiting is not None:
            both = self._waiting.followed_by(Buffer(as_rows(X), y))
            X, y = both.matrix, both.targets
        return X, y

    def _wait(self, X: Any, y: NDArray[Any], first: int) -> None:
        self._waiting = Buffer.of(X[first:], y[first:]) if first < len(y) else None

    # ---- checkpoints ----------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All but the model, as a header for JSON and plain arrays.

        With the model as it is now, :meth:`restore` goes on as if nothing had happened.
        """
        self._count()
        classes = self._learner.classes
        header: dict[str, Any] = {
            "format": FORMAT, "metrics": list(self._names),
            "every": self._every, "window": self._window, "fading": self._fading, "lag": self._lag,
            "classes": None if classes is None else classes.tolist(),
            "samples": self.samples, "seconds": self.seconds,
            "offset": self._offset, "record_every": self.trace.every,
            "labels": None if self._labels is None else self._labels.to_config(),
            "waiting": None,
            "unmeasured": None if self.losses is None else self._unmeasured,
        }  # fmt: skip
        arrays = prefixed("trace/", self.trace.to_columns())
        arrays |= prefixed("metrics/", self._metrics.arrays())
        arrays |= prefixed("baselines/", self._baselines.arrays())
        if self.losses is not None:
            arrays |= prefixed("losses/", self.losses.arrays())
        if self._waiting is not None:
            header["waiting"], waiting = buffer_state(self._waiting, self._labels is not None)
            arrays |= prefixed("waiting/", waiting)
        return header, arrays

    @classmethod
    def restore(
        cls,
        model: Any,
        header: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        *,
        held_out: tuple[Any, Any] | None = None,
        on_record: OnRecord | None = None,
    ) -> Self:
        """The run that :meth:`state` described, with the model as it was then."""
        if (held_out is None) != ("trace/held_out" not in arrays):
            raise ValueError("held_out must be given again where the run had it, and only there")
        if header.get("format") != FORMAT:
            raise ValueError(
                f"this state of a run has format {header.get('format')!r}, expected {FORMAT}"
            )
        for name, least in (("samples", 0), ("offset", 0), ("record_every", 1)):
            check_whole(name, header[name], least)
        settings = {name: header[name] for name in ("metrics", "every", "window", "fading", "lag")}
        of = "0:" if "metrics/0:recent" in arrays else ""  # several numbers per sample
        sides = len(arrays[f"metrics/{of}recent"]), len(arrays[f"baselines/{of}waiting"]) - 1
        if sides != (settings["window"], settings["lag"]):  # or much memory would be asked for
            raise ValueError("the arrays of a run contradict its settings")
        run = cls(
            model, **settings, classes=header["classes"], held_out=held_out, on_record=on_record,
            losses=header.get("unmeasured") is not None,
        )  # fmt: skip
        if run.losses is not None:
            run._unmeasured = header["unmeasured"]
            run.losses.set_arrays(part_of("losses/", arrays))
        run.samples = run._counted = header["samples"]
        run.seconds = float(header["seconds"])
        run._offset = header["offset"]
        run.trace = Trace.from_columns(part_of("trace/", arrays), every=header["record_every"])
        if run._labels is not None:
            run._labels.set_config(header["labels"])
        run._metrics.set_arrays(part_of("metrics/", arrays))
        run._baselines.set_arrays(part_of("baselines/", arrays))
        if header["waiting"] is not None:
            run._waiting = buffer_from_state(header["waiting"], part_of("waiting/", arrays))
            run._admit(run._waiting.matrix, run._waiting.targets)
        return run
