"""A model for raw rows: preparation, estimator and target in one, in one file."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import fresh, registry, storage
from kernelstream.importances import LOOK, ColumnImportances
from kernelstream.models._classifier import StreamClassifier, outputs_for
from kernelstream.models._files import Saved
from kernelstream.models._regressor import StreamRegressor
from kernelstream.models._stream import as_before_on_error
from kernelstream.models.in_units import InUnits
from kernelstream.pipeline_file import document_of, restored
from kernelstream.predicting import PredictsRows
from kernelstream.preparation import Preparation
from kernelstream.rows import as_rows
from kernelstream.streams.batch import Batch
from kernelstream.targets import (
    Targets,
    guess_task,
    names_of,
    nothing_like,
    read_several,
    read_targets,
)

__all__ = ["StreamModel", "guess_task"]

#: What each task is learned with.
TASKS = {"classification": StreamClassifier, "regression": StreamRegressor}


class StreamModel(PredictsRows, Saved):
    """A model that learns from raw rows and predicts for raw rows.

    The same rows give the same model, bit for bit, however they are cut into batches and
    wherever the model was saved and loaded in between; only the first batch is looked at as a
    whole, for the layout (:meth:`Preparation.start`). The predictions of
    :meth:`predict_then_learn` are the same, too, if the estimator's ``batch_size`` is 1; others
    may differ in the last bit with the number of rows predicted together. If anything is
    wrong with a batch, the model stays as it was; only a :class:`~kernelstream.DivergenceError`
    or :class:`~kernelstream.IllConditionedError` may come after some of its rows were learned.

    **Rows** are a data frame (of pandas, Polars or whatever narwhals knows), a dict, a list of
    dicts, a dict of columns, or a batch of :func:`~kernelstream.streams.open_stream`. Columns are
    found by name, in any order; those that the model does not look at are passed over. Models of
    features without names take arrays ``X``, and ``(X, y)`` to learn from.

    **Classes** are texts, whole numbers, or true and false, and come back as they are; new ones
    may appear at any time. Before the first label no class is known, and no prediction can be made:
    NaN, or "" where labels are texts, None where they are true and false. Nor is a number known
    before the first target: NaN, or 0 by methods that wait for its unit.

    **Numbers** are learned in units of their standard deviation over the first
    ``preparation.warm_up`` rows with a target (:class:`~kernelstream.models.in_units.InUnits`).

    **Several targets** are columns of numbers, learned together where the estimator can; each in
    units of its own. Predictions are (n, q) then.

    Rows without a target, or without one of several, are predicted, not learned from.

    Parameters
    ----------
    model : estimator of kernelstream.models
        New: it has learned nothing yet. ``gamma=preparation.suggested_gamma`` suits it.
    preparation : Preparation
    target : str or sequence of str
        The column to predict, or several of numbers; never a feature.
    task : {"classification", "regression"}

    Attributes
    ----------
    target : str
        The column to predict; of several their names in one text.
    targets : list of str
    unlabelled_ : int
        Rows that had no target.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import POLKClassifier, StreamModel
    >>> height = np.random.default_rng(0).normal(170.0, 10.0, 2000)
    >>> rows = {"height": height, "size": np.where(height > 170.0, "tall", "small")}
    >>> model = StreamModel.for_rows(rows, "size", POLKClassifier())
    >>> predicted, true = model.predict_then_learn(rows)
    >>> bool(np.mean(predicted == true) > 0.95)
    True
    >>> model.predict([{"height": 150.0}, {"height": 190.0}])
    array(['small', 'tall'], dtype='<U5')
    >>> model.predict_one({"height": 190.0})
    'tall'
    """

    def __init__(
        self, model: Any, preparation: Preparation, target: str | Sequence[str], task: str
    ) -> None:
        targets = names_of(target)
        if task not in TASKS:
            raise ValueError(f"task must be one of {list(TASKS)}, got {task!r:.80}")
        if not isinstance(model, TASKS[task]):
            raise ValueError(f"{task} cannot be learned with a {type(model).__name__}")
        if hasattr(model, "_state"):
            raise ValueError("the model has learned something already: give a new one")
        if getattr(model, "gamma", None) == "scale":
            raise ValueError(
                "gamma='scale' depends on how the stream is cut: use preparation.suggested_gamma"
            )
        for name in targets:
            if name in preparation.schema and name not in preparation.ignore:
                raise ValueError(f"the target {name!r} is among the features: ignore it there")
            if preparation.schema.get(name) == "date":
                raise ValueError(f"the target {name!r} holds dates: neither classes nor numbers")
            if task == "regression" and preparation.schema.get(name) == "text":
                raise ValueError(f"the target {name!r} holds texts, which are classes")
        if len(targets) > 1 and not getattr(model, "_several", False):
            raise ValueError(
                f"{type(model).__name__} learns one target, not {len(targets)}: several are for "
                "numbers, and most regressors, POLKRegressor and KRLSTRegressor among them, learn "
                "them; or make a model of each"
            )
        self.model = model
        self.preparation = preparation
        self.target, self.targets = ", ".join(targets), targets
        self.task = task
        #: What learns from prepared rows and predicts in the target's own terms.
        self.estimator = self._in_units(model)
        self.unlabelled_ = 0
        self._kind = preparation.schema.get(targets[0])  # of the targets, once known
        self._small = False  # whether its labels are written true and false, in small letters
        #: Follows which columns matter, where that is wanted: see :meth:`follow_importances`.
        self.importances: ColumnImportances | None = None
        #: Says how unusual rows are, where that is wanted: see :meth:`follow_novelty`.
        self.detector = None

    def follow_importances(self) -> Self:
        """From now on, learn along which columns matter: what shuffling each does to the loss.

        It takes two predictions for every five rows, of models with a factor of their Gram matrix
        six times as many: at most about a fifth of the time.
        """
        self.importances = self.importances or ColumnImportances()
        return self

    def follow_novelty(self) -> Self:
        """From now on, learn along which rows are usual: see :meth:`novelty`."""
        from kernelstream.models.novelty import NoveltyDetector  # most models have none

        prepared = self.preparation.in_moving_units
        self.detector = self.detector or NoveltyDetector(random_state=0, standardize=not prepared)
        return self

    @classmethod
    def for_rows(
        cls,
        rows: Any,
        target: str | Sequence[str],
        model: Any = registry.DEFAULT,
        *,
        task: str | None = None,
        **preparing: Any,
    ) -> Self:
        """A new model for rows like these, which has learned nothing yet, not even from them.

        Parameters
        ----------
        rows : data frame, dict, list of dicts or dict of columns
            The first rows: they decide what each column holds, and the layout of the features.
            The more there are, the better: a column that is first met later is not looked at.
        target : str or sequence of str
            The column to predict, or several of numbers.
        model : str or estimator, default="auto"
            A method by name, then with ``random_state=0``, or a new estimator of this package,
            which is copied. Where its gamma is "auto" it gets one that suits the columns.
        task : {"classification", "regression"}, optional
            By default what the target suggests, or the estimator.
        **preparing
            ``units, warm_up, buckets, standardise`` as for :class:`~kernelstream.Preparation`.
        """
        return cls(*fresh.parts_for(rows, target, model, task, preparing))

    def _in_units(self, model: Any) -> Any:
        """A regressor that needs its target in units learns in them."""
        if self.task == "classification" or model._measures_targets:
            return model
        return InUnits(model, self.preparation.warm_up, len(self.targets))

    # ---- learning ---------------------------------------------------------------------

    def admit(self, rows: Any) -> tuple[Any, NDArray[Any]]:
        """Features and targets of those of the next rows that have a target, not learned yet.

        The preparation learns from all rows. The samples are meant for :attr:`estimator`: by way
        of a :class:`~kernelstream.evaluation.Prequential` run, for example.
        """
        X, targets, known = self._admit(self._batch(rows, labelled=True))
        return (X, targets) if known.all() else (X[known], targets[known])

    def learn(self, rows: Any) -> Self:
        """Learn from the next rows of the stream."""
        batch = self._batch(rows, labelled=True)
        if len(batch):
            with self._all_or_nothing():
                X, targets = self.admit(batch)
                for part in self._parts(len(targets)):
                    self.estimator.partial_fit(X[part], targets[part])
                    self.note_learned(X[part], targets[part])
        return self

    def _parts(self, n: int) -> Iterator[slice]:
        """Samples to be learned, up to each look at the importances."""
        first = 0
        while first < n:
            end = min(n, first + (n if self.importances is None else self.importances.until_look()))
            yield slice(first, end)
            first = end

    def note_learned(self, X: Any, targets: NDArray[Any]) -> None:
        """Samples that :attr:`estimator` has just learned, at most up to the next look."""
        if self.importances is not None:
            self.importances.follow(X, targets, self.preparation, self.estimator)
        if self.detector is not None:
            self.detector.partial_fit(X)

    def learn_one(self, row: Mapping[str, Any]) -> Self:
        """Learn from one row."""
        return self.learn(row)

    def predict_then_learn(self, rows: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predict each row, then learn from it.

        Returns
        -------
        predicted : (n,) array, of several targets (n, q)
            What the model predicted before it learned from that row (with ``batch_size`` > 1:
            from that row's batch).
        true : array of the same shape
            The targets; NaN, or "" among texts, where there is none.
        """
        batch = self._batch(rows, labelled=True)
        if not len(batch):
            targets, _, _ = self._targets(batch)
            return targets, targets
        with self._all_or_nothing():
            X, targets, known = self._admit(batch)
            self._check_ahead(X, targets[known])
            predicted = self._teach(X, targets, known)
        if known.all() or targets.ndim == 2:  # one of several may be there
            return predicted, targets
        return predicted, np.where(known, targets, nothing_like(targets))

    def flush(self) -> Self:
        """Learn now from rows kept waiting: the stream is over."""
        with self._all_or_nothing():
            self.estimator.flush()
        return self

    def _admit(self, batch: Batch) -> tuple[Any, NDArray[Any], NDArray[np.bool_]]:
        """Features, targets, and which rows have one."""
        targets, known, kind = self._targets(batch)
        X = self.preparation.transform(batch, learn=True)
        self._kind = kind
        self._small = self._small or self.targets[0] in batch.small
        self.unlabelled_ += len(known) - int(np.count_nonzero(known))
        return X, targets, known

    def _teach(self, X: Any, targets: NDArray[Any], known: Any) -> NDArray[Any]:
        """Hand rows to the estimator, in order; returns its prediction of each from before."""
        nothing_known = self.task == "classification" and not hasattr(self.model, "_state")
        edges = np.flatnonzero(known[1:] != known[:-1]) + 1
        if nothing_known:  # the first label comes alone: no class is known before
            first = int(np.argmax(known)) if known.any() else len(known)
            edges = np.union1d(edges, [edge for edge in (first, first + 1) if edge < len(known)])
        if self.importances is not None:  # and so do looks
            looks = (self.importances.rows + np.cumsum(known)) % LOOK == 0
            edges = np.union1d(edges, np.flatnonzero(looks[:-1] & known[:-1]) + 1)
        predicted = []
        for first, end in itertools.pairwise([0, *edges[edges > 0].tolist(), len(known)]):
            untaught = self.estimator is self.model and not hasattr(self.model, "_state")
            if untaught and not (known[first] and self.task == "regression"):
                predicted.append(np.full(targets[first:end].shape, nothing_like(targets)))
                if known[first]:
                    self.model.partial_fit(X[first:end], targets[first:end])
            elif known[first]:
                predicted.append(
                    self.estimator.predict_then_learn(X[first:end], targets[first:end])
                )
            else:  # one by one: how many rows are evaluated at once changes the last bits
                predicted.extend(self.estimator.predict(X[i : i + 1]) for i in range(first, end))
            if known[first]:
                self.note_learned(X[first:end], targets[first:end])
        return np.concatenate(predicted)

    def _check_ahead(self, X: Any, targets: NDArray[Any]) -> None:
        """Refuse now what a model would refuse when it has learned from some of the rows.

        A model that has learned sees to itself within one call, and the preparation to the
        entries; across several calls a kernel value may still overflow, or a class find no room.
        """
        model = self.model
        if not hasattr(model, "_state"):
            return
        model._check_range(as_rows(X))
        if self.task == "classification" and getattr(model, "max_bytes", None) is not None:
            model._check_room(outputs_for(len(np.union1d(model.classes_, targets))))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """An error in here leaves everything as it was; see also :meth:`_check_ahead`."""
        parts = [self, self.preparation, *([] if self.importances is None else [self.importances])]
        if self.estimator is not self.model:
            parts.append(self.estimator)
        if not hasattr(self.model, "_state"):  # nothing of it can be changed in place
            parts.append(self.model)
        with ExitStack() as stack:
            for part in parts:
                stack.enter_context(as_before_on_error(part))
            yield

    # ---- the target -------------------------------------------------------------------

    def _targets(self, batch: Batch) -> Targets:
        if len(self.targets) > 1:
            return read_several(batch, self.targets, self._kind)
        return read_targets(batch, self.targets[0], self.task, self._kind, self._truth)

    @property
    def _truth(self) -> bool:
        """Whether the labels are true and false."""
        return getattr(getattr(self.model, "classes_", None), "dtype", None) == np.bool_

    def as_written(self, labels: list[Any]) -> list[Any]:
        """Labels as the file has them: true and false in small letters, if it has these."""
        if not (self._small and self._truth):
            return labels
        return [str(label).lower() for label in labels]

    def targets_of(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The targets of some rows, and which of them have one."""
        targets, known, _ = self._targets(self._batch(rows, labelled=True))
        return targets, known

    def prepares_like(self, other: StreamModel) -> bool:
        """Whether both give every row the same features and measure the target alike."""
        alike = self.preparation.same_as(other.preparation)
        if alike and isinstance(self.estimator, InUnits) and isinstance(other.estimator, InUnits):
            alike = self.estimator.same_units(other.estimator)
        return alike

    def with_new_model(self, model: Any) -> StreamModel:
        """A new model that prepares rows as this one does: the two can be merged.

        Parameters
        ----------
        model : estimator
            New: it has learned nothing yet.
        """
        self._check_taught()
        result = StreamModel(model, self.preparation.frozen_copy(), self.targets, self.task)
        result._kind, result._small = self._kind, self._small
        if isinstance(self.estimator, InUnits):
            result.estimator.take_units(self.estimator)
        return result

    def with_model(self, model: Any) -> Self:
        """A copy with another trained estimator for the same prepared rows."""
        result = copy.deepcopy(self)
        result.model = result.estimator = model
        if isinstance(self.estimator, InUnits):
            result.estimator = copy.deepcopy(self.estimator)
            result.estimator.regressor = model
        return result

    # ---- files ------------------------------------------------------------------------

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return document_of(self)

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        return restored(cls, document)
