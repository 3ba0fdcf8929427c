"""A model for raw rows: preparation, estimator and target in one, in one file."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelstream import fresh, registry, storage
from kernelstream._version import __version__
from kernelstream.explanation import Explanation, explain
from kernelstream.importances import LOOK, ColumnImportances, features_by_column
from kernelstream.models._classifier import StreamClassifier, outputs_for
from kernelstream.models._files import Saved, embed, rebuild
from kernelstream.models._regressor import StreamRegressor
from kernelstream.models._stream import as_before_on_error
from kernelstream.models.in_units import InUnits
from kernelstream.models.novelty import NoveltyDetector
from kernelstream.parts import part_of, prefixed
from kernelstream.preparation import Preparation
from kernelstream.rows import as_rows
from kernelstream.streams.batch import Batch
from kernelstream.streams.python_rows import as_batch
from kernelstream.targets import Targets, guess_task, nothing_like, read_targets

__all__ = ["StreamModel", "guess_task"]

#: What each task is learned with.
TASKS = {"classification": StreamClassifier, "regression": StreamRegressor}


class StreamModel(Saved):
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
    NaN, or "" where labels are texts, None where they are true and false.

    **Numbers** are learned in units of their standard deviation over the first
    ``preparation.warm_up`` rows with a target (:class:`~kernelstream.models.in_units.InUnits`).

    Rows without a target are predicted, not learned from.

    Parameters
    ----------
    model : estimator of kernelstream.models
        New: it has learned nothing yet. ``gamma=preparation.suggested_gamma`` suits it.
    preparation : Preparation
    target : str
        The column to predict; never a feature.
    task : {"classification", "regression"}

    Attributes
    ----------
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

    def __init__(self, model: Any, preparation: Preparation, target: str, task: str) -> None:
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
        if target in preparation.schema and target not in preparation.ignore:
            raise ValueError(f"the target {target!r} is among the features: ignore it there")
        if preparation.schema.get(target) == "date":
            raise ValueError(f"the target {target!r} holds dates: neither classes nor numbers")
        if task == "regression" and preparation.schema.get(target) == "text":
            raise ValueError(f"the target {target!r} holds texts, which are classes")
        self.model = model
        self.preparation = preparation
        self.target = target
        self.task = task
        #: What learns from prepared rows and predicts in the target's own terms.
        self.estimator = self._in_units(model)
        self.unlabelled_ = 0
        self._kind = preparation.schema.get(target)  # of the target, once known
        #: Follows which columns matter, where that is wanted: see :meth:`follow_importances`.
        self.importances: ColumnImportances | None = None
        #: Says how unusual rows are, where that is wanted: see :meth:`follow_novelty`.
        self.detector: NoveltyDetector | None = None

    def follow_importances(self) -> Self:
        """From now on, learn along which columns matter: what shuffling each does to the loss.

        It takes one prediction for every three rows.
        """
        self.importances = self.importances or ColumnImportances()
        return self

    def follow_novelty(self) -> Self:
        """From now on, learn along which rows are usual: see :meth:`novelty`."""
        prepared = self.preparation.in_moving_units
        self.detector = self.detector or NoveltyDetector(random_state=0, standardize=not prepared)
        return self

    @classmethod
    def for_rows(
        cls,
        rows: Any,
        target: str,
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
        target : str
            The column to predict.
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
        return InUnits(model, self.preparation.warm_up)

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
        predicted : (n,) array
            What the model predicted before it learned from that row (with ``batch_size`` > 1:
            from that row's batch).
        true : (n,) array
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
        missing = nothing_like(targets)
        return predicted, targets if known.all() else np.where(known, targets, missing)

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
            if self.task == "classification" and not hasattr(self.model, "_state"):
                predicted.append(np.full(end - first, nothing_like(targets)))
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
        return read_targets(batch, self.target, self.task, self._kind, self._truth)

    @property
    def _truth(self) -> bool:
        """Whether the labels are true and false."""
        return getattr(getattr(self.model, "classes_", None), "dtype", None) == np.bool_

    def targets_of(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The targets of some rows, and which of them have one."""
        targets, known, _ = self._targets(self._batch(rows, labelled=True))
        return targets, known

    # ---- predicting -------------------------------------------------------------------

    def predict(self, rows: Any) -> NDArray[Any]:
        """Labels as they are in the stream, or numbers in the target's own units."""
        X = self._features(rows)
        if not X.shape[0]:
            return self.model.classes_[:0] if self.task == "classification" else np.empty(0)
        return self.estimator.predict(X)  # type: ignore[no-any-return]

    def predict_one(self, row: Mapping[str, Any]) -> Any:
        """The prediction for one row: a label, or a number."""
        return self.predict(row)[0].item()

    @available_if(lambda self: hasattr(self.model, "decision_function"))
    def decision_function(self, rows: Any) -> NDArray[np.float64]:
        """The estimator's ``decision_function``."""
        return self.model.decision_function(self._features(rows))  # type: ignore[no-any-return]

    @available_if(lambda self: hasattr(self.model, "predict_proba"))
    def predict_proba(self, rows: Any) -> NDArray[np.float64]:
        """The probability of each of ``classes_``, where the estimator has it."""
        return self.model.predict_proba(self._features(rows))  # type: ignore[no-any-return]

    @available_if(lambda self: hasattr(self.model, "predict_interval"))
    def predict_interval(self, rows: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """(n, 2): the estimator's ``predict_interval``, where it has one."""
        X = self._features(rows)
        if not X.shape[0]:
            return np.empty((0, 2))
        return self.model.predict_interval(X, coverage)  # type: ignore[no-any-return]

    def novelty(self, rows: Any) -> NDArray[np.float64]:
        """(n,): which part of the latest rows was less unusual than each of these, from 0 to 1.

        After :meth:`follow_novelty` and some rows.
        """
        if self.detector is None or not hasattr(self.detector, "_state"):
            raise ValueError("which rows are usual was not learned: call follow_novelty() first")
        X = self._features(rows)
        return self.detector.novelty(X) if X.shape[0] else np.empty(0)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels met so far, sorted."""
        return self.model.classes_  # type: ignore[no-any-return]

    @property
    def column_importances_(self) -> dict[str, float]:
        """How much each raw column matters, as parts of 1, largest first.

        After :meth:`follow_importances`: what shuffling it among the latest rows adds to the loss.
        Else how strongly predictions react to it, where the estimator knows; or nothing.
        """
        if self.importances is not None and self.importances.means:
            return self.importances.shares()
        if not hasattr(self.model, "column_importances_"):
            return {}
        shares = self.model.column_importances_
        columns = features_by_column(self.preparation)
        found = {name: float(shares[places].sum()) for name, places in columns.items()}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def explain(self, rows: Any, most: int = 5) -> list[Explanation]:
        """What decided the prediction of each row.

        Parameters
        ----------
        rows : data frame, dict, list of dicts, columns or batch
        most : int, default=5
            Columns to be named in each.
        """
        self._check_taught()
        batch = self._batch(rows)
        return explain(self, batch, most) if len(batch) else []

    def what_it_did(self) -> str:
        """A sentence about how it predicts and what changed; nothing where it has none."""
        if not hasattr(self.model, "_state"):
            return ""
        return str(self.model._what_it_did(self.column_importances_))

    def _check_taught(self) -> None:
        check_is_fitted(
            self.estimator, msg="This StreamModel has not learned from any row with a target yet."
        )

    def _features(self, rows: Any) -> Any:
        self._check_taught()
        return self.preparation.transform(self._batch(rows))

    def _batch(self, rows: Any, labelled: bool = False) -> Batch:
        """Rows in whatever form, with the columns that are looked at."""
        if isinstance(rows, Batch):
            return rows
        preparation = self.preparation
        schema: dict[str, str | None] = {
            name: kind
            for name, kind in preparation.schema.items()
            if name not in preparation.ignore
        }
        if labelled:
            schema[self.target] = self._kind or preparation.schema.get(self.target)
        return as_batch(rows, schema, unnamed=preparation.matrix_width is not None)[0]

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
        result = StreamModel(model, self.preparation.frozen_copy(), self.target, self.task)
        result._kind = self._kind
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
        preparation, prepared = self.preparation.to_document()
        model, arrays = embed(self.model, "model_")
        header = {
            "version": __version__,
            "target": self.target,
            "task": self.task,
            "kind": self._kind,
            "unlabelled": self.unlabelled_,
            "units": None,
            "preparation": preparation,
            "model": model,
        }
        arrays |= prefixed("preparation_", prepared)
        if isinstance(self.estimator, InUnits):
            header["units"], units = self.estimator.to_document()
            arrays |= units
        if self.importances is not None:
            header["importances"], held = self.importances.to_document()
            arrays |= prefixed("importances_", held)
        if self.detector is not None:
            header["detector"], held = embed(self.detector, "detector_")
            arrays |= held
        return header, arrays

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        header, arrays = document.header, document.arrays
        prepared = part_of("preparation_", arrays)
        preparation = Preparation.from_document(header["preparation"], prepared)
        model = rebuild(header["model"], arrays, "model_")
        fresh = rebuild({**header["model"], "fitted": False}, {}, "")
        result = cls(fresh, preparation, header["target"], header["task"])
        if hasattr(model, "_state") and model.n_features_in_ != preparation.width:
            raise ValueError("the estimator's features are not those of the preparation")
        if not isinstance(result.target, str) or header["kind"] not in (None, "number", "text"):
            raise ValueError("the target is not a column")
        if type(header["unlabelled"]) is not int or header["unlabelled"] < 0:
            raise ValueError("the number of rows without target is not a number")
        result.unlabelled_ = header["unlabelled"]
        result._kind = header["kind"]
        result.model = result.estimator = model
        result.estimator = result._in_units(model)
        if result.estimator is not model:
            result.estimator.restore(header["units"], arrays, preparation.width)
        elif header["units"] is not None:
            raise ValueError("the model has units of its own")
        if header.get("importances") is not None:
            held = part_of("importances_", arrays)
            result.importances = ColumnImportances.from_document(
                header["importances"], held, preparation.width
            )
        if header.get("detector") is not None:
            result.detector = rebuild(header["detector"], arrays, "detector_")
            if not isinstance(result.detector, NoveltyDetector):
                raise ValueError("the detector of unusual rows is not one")
        return result
