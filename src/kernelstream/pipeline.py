"""A model for raw rows: preparation, estimator and target in one, in one file."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from kernelstream import storage
from kernelstream._version import __version__
from kernelstream.models._base import as_before_on_error
from kernelstream.models._classifier import KernelClassifier
from kernelstream.models._files import Saved, embed, rebuild
from kernelstream.models._regressor import KernelRegressor
from kernelstream.preparation import FARTHEST, Preparation, Running, column_of, kind_of
from kernelstream.rows import LARGEST_ENTRY
from kernelstream.streams.batch import Batch, Column, Text

__all__ = ["StreamModel", "guess_task"]

#: What each task is learned with.
TASKS = {"classification": KernelClassifier, "regression": KernelRegressor}

#: Whole numbers as targets are classes if there are at most so many.
MOST_WHOLE_CLASSES = 20


def guess_task(column: Column) -> str:
    """The task that a target column asks for, by its first rows.

    Texts and at most 20 distinct whole numbers are classes, other numbers are to be predicted.

    Examples
    --------
    >>> import numpy as np
    >>> guess_task(np.array([0.0, 1.0, np.nan]))
    'classification'
    >>> guess_task(np.array([0.5, 1.0]))
    'regression'
    """
    if isinstance(column, Text):
        return "classification"
    if kind_of(column) == "date":
        raise ValueError("the target holds dates: neither classes nor numbers")
    values = np.asarray(column, dtype=np.float64)
    values = np.unique(values[~np.isnan(values)])
    if not len(values):
        raise ValueError("the target has no value in the first rows: say which task it is")
    whole = np.isfinite(values).all() and bool((values == np.rint(values)).all())
    return "classification" if whole and len(values) <= MOST_WHOLE_CLASSES else "regression"


class StreamModel(Saved):
    """A model that learns from raw rows and predicts for raw rows.

    The same rows give the same model, bit for bit, however they are cut into batches and
    wherever the model was saved and loaded in between; only the first batch is looked at as a
    whole, for the layout (:meth:`Preparation.start`). The predictions of
    :meth:`predict_then_learn` are the same, too, if the estimator's ``batch_size`` is 1; others
    may differ in the last bit with the number of rows predicted together. If anything is
    wrong with a batch, the model stays as it was.

    **Classes** are texts or whole numbers; new ones may appear at any time. Before the first
    label no class is known, and no prediction can be made: NaN, or "" where labels are texts.

    **Numbers** are learned in units of their standard deviation over the first
    ``preparation.warm_up`` rows with a target. Until this unit is known, those rows are kept
    waiting; then they are learned, in order, and the unit is fixed. Meanwhile the prediction is
    the mean of the targets so far (0 before the first). A stream that ends earlier
    needs :meth:`flush`.

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
    >>> from kernelstream import POLKClassifier
    >>> from kernelstream.pipeline import StreamModel
    >>> from kernelstream.preparation import Preparation
    >>> from kernelstream.streams.batch import Batch, Text
    >>> random = np.random.default_rng(0)
    >>> def rows(n):
    ...     height = random.normal(170.0, 10.0, n)
    ...     size = Text((height > 170.0).astype(np.int32), ["small", "tall"])
    ...     return Batch({"height": height, "size": size}, lines=np.arange(n))
    >>> preparation = Preparation({"height": "number", "size": "text"}, ignore=["size"])
    >>> model = StreamModel(POLKClassifier(), preparation, "size", "classification")
    >>> said, true = model.predict_then_learn(rows(2000))
    >>> bool(np.mean(said == true) > 0.95)
    True
    >>> model.predict(Batch({"height": np.array([150.0, 190.0])}, lines=np.arange(2)))
    array(['small', 'tall'], dtype='<U5')
    """

    def __init__(self, model: Any, preparation: Preparation, target: str, task: str) -> None:
        if task not in TASKS:
            raise ValueError(f"task must be one of {list(TASKS)}, got {task!r:.80}")
        if not isinstance(model, TASKS[task]):
            raise ValueError(f"{task} cannot be learned with a {type(model).__name__}")
        if hasattr(model, "_state"):
            raise ValueError("the model has learned something already: give a new one")
        if model.gamma == "scale":
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
        self.unlabelled_ = 0
        self._kind = preparation.schema.get(target)  # of the target, once known
        self._unit = Running(1)  # of the target
        self._settled = task == "classification"  # the unit is fixed
        self._waiting: list[tuple[Any, NDArray[np.float64]]] = []  # until it is

    # ---- learning ---------------------------------------------------------------------

    def learn(self, batch: Batch) -> Self:
        """Learn from the next rows of the stream."""
        self._consume(batch, None)
        return self

    def predict_then_learn(self, batch: Batch) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predict each row, then learn from it.

        Returns
        -------
        said : (n,) array
            What the model predicted before it learned from that row (with ``batch_size`` > 1:
            from that row's batch).
        true : (n,) array
            The targets; NaN, or "" among texts, where there is none.
        """
        said: list[NDArray[Any]] = []
        targets, known = self._consume(batch, said)
        true = targets if known.all() else np.where(known, targets, self._nothing)
        return np.concatenate(said) if said else targets[:0], true

    def flush(self) -> Self:
        """Learn now from rows kept waiting, and fix the unit of the target: the stream is over."""
        if self._waiting:
            with self._all_or_nothing(in_parts=False):
                self._settle()
        self.model.flush()
        return self

    def _consume(
        self, batch: Batch, said: list[NDArray[Any]] | None
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Learn; what was predicted before goes to ``said``, part by part.

        Returns the targets and which rows have one.
        """
        targets, known, kind = self._targets(batch)
        if not len(batch):
            return targets, known
        first_ever = not hasattr(self.model, "_state")
        begins = int(np.count_nonzero(known & ~np.append(False, known[:-1])))
        with self._all_or_nothing(in_parts=first_ever or (said is not None and begins > 1)):
            X = self.preparation.transform(batch, learn=True)
            self._kind = kind
            self.unlabelled_ += len(known) - int(np.count_nonzero(known))
            if self.task == "classification":
                self._teach(X, targets, known, said)
                return targets, known
            start = self._wait(X, targets, known, said)
            if start < len(known):
                standard: list[NDArray[Any]] = []
                scaled = self._in_units(targets[start:])
                self._teach(X[start:], scaled, known[start:], None if said is None else standard)
                if said is not None:
                    said.extend(self._out_of_units(part) for part in standard)
        return targets, known

    def _teach(
        self, X: Any, targets: NDArray[Any], known: Any, said: list[NDArray[Any]] | None
    ) -> None:
        """Hand rows to the estimator, in order."""
        if said is None:
            if known.any():
                self.model.partial_fit(X[known], targets[known])
            return
        edges = np.flatnonzero(known[1:] != known[:-1]) + 1
        if not hasattr(self.model, "_state"):  # alone: no class is known before the first label
            first = int(np.argmax(known)) if known.any() else len(known)
            edges = np.union1d(edges, [edge for edge in (first, first + 1) if edge < len(known)])
        for first, end in itertools.pairwise([0, *edges[edges > 0].tolist(), len(known)]):
            if not hasattr(self.model, "_state"):
                said.append(np.full(end - first, self._nothing))
                if known[first]:
                    self.model.partial_fit(X[first:end], targets[first:end])
            elif known[first]:
                said.append(self.model.predict_then_learn(X[first:end], targets[first:end]))
            else:  # one by one: the last bit may depend on how many are predicted together
                said.extend(self.model.predict(X[row : row + 1]) for row in range(first, end))

    def _wait(
        self, X: Any, targets: NDArray[Any], known: Any, said: list[NDArray[Any]] | None
    ) -> int:
        """Keep rows until the unit is known; returns the first row that need not wait."""
        if self._settled:
            return 0
        wanted = self.preparation.warm_up - self._unit.rows
        labelled = np.flatnonzero(known)
        end = int(labelled[wanted - 1]) + 1 if len(labelled) >= wanted else len(known)
        labelled = labelled[:wanted]
        before = float(self._unit.mean[0])
        self._unit, means, _ = self._unit.follow(targets[None, labelled])
        if said is not None:  # the mean of the targets before
            means = np.append(before, means[0])
            said.append(means[np.cumsum(known[:end]) - known[:end]])
        if len(labelled):
            self._waiting = [*self._waiting, (X[labelled], targets[labelled])]
        if len(labelled) == wanted:
            self._settle()
        return end

    def _settle(self) -> None:
        X, targets = self._waiting_rows()
        self._settled = True
        self.model.partial_fit(X, self._in_units(targets))
        self._waiting = []

    def _waiting_rows(self) -> tuple[Any, NDArray[np.float64]]:
        parts = [X for X, _ in self._waiting]
        X = vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)
        return X, np.concatenate([targets for _, targets in self._waiting])

    @contextmanager
    def _all_or_nothing(self, in_parts: bool) -> Iterator[None]:
        """An error in here leaves everything as it was.

        The estimator sees to itself within one call; several calls need a copy of it.
        """
        copied = copy.deepcopy(vars(self.model)) if in_parts else None
        try:
            with as_before_on_error(self), as_before_on_error(self.preparation):
                yield
        except Exception:
            if copied is not None:
                self.model.__dict__.clear()
                self.model.__dict__.update(copied)
            raise

    # ---- the target -------------------------------------------------------------------

    def _targets(self, batch: Batch) -> tuple[NDArray[Any], NDArray[np.bool_], str]:
        """Targets as the estimator takes them, which rows have one, and their kind."""
        column = column_of(batch, self.target)
        kind = kind_of(column)
        if kind == "date" or (self.task == "regression" and kind == "text"):
            raise ValueError(f"the target {self.target!r} holds {kind}s, not fit for {self.task}")
        if self._kind not in (None, kind):
            raise ValueError(
                f"the target {self.target!r} holds {kind}s here, but {self._kind}s when learning "
                "began; open the stream with the schema it had then"
            )
        if isinstance(column, Text):
            places, codes = np.unique(column.codes, return_inverse=True)
            if len(places) and not -1 <= places[0] <= places[-1] < len(column.values):
                raise ValueError(f"the target {self.target!r} has codes without a text")
            # A missing text is written "", like one that is there and empty.
            texts = ["" if place < 0 else column.values[place] for place in places.tolist()]
            return np.array(texts, dtype=np.str_)[codes], column.codes >= 0, kind
        values = np.array(column, dtype=np.float64)
        known = ~np.isnan(values)
        usable = np.abs(values) <= LARGEST_ENTRY
        hint = "leave the row out, or leave the entry empty"
        if self.task == "classification":
            usable = (np.abs(values) <= 2.0**53) & (values == np.rint(values))
            hint = "classes are whole numbers or texts; for other numbers use regression"
        bad = np.flatnonzero(known & ~usable)
        if len(bad):
            raise ValueError(
                f"line {batch.lines[bad[0]]}, target {self.target!r} is "
                f"{values[bad[0]]:.6g}: {hint}"
            )
        if self.task == "classification":
            return np.where(known, values, 0.0).astype(np.int64), known, kind
        return values, known, kind

    @property
    def _nothing(self) -> Any:
        """In place of a target that is missing, or of a class when none is known."""
        return "" if self._kind == "text" else np.nan

    def _in_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        mean, unit = self._mean_and_unit()
        with np.errstate(over="ignore"):
            return np.clip((values - mean) / unit, -FARTHEST, FARTHEST)

    def _out_of_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        mean, unit = self._mean_and_unit()
        return values * unit + mean

    def _mean_and_unit(self) -> tuple[float, float]:
        return float(self._unit.mean[0]), float(self._unit.deviation[0]) or 1.0

    # ---- predicting -------------------------------------------------------------------

    def predict(self, batch: Batch) -> NDArray[Any]:
        """Labels as they are in the stream, or numbers in the target's own units."""
        X = self._features(batch)
        if not self._settled:
            return np.full(len(batch), self._unit.mean[0])
        if not len(batch):
            return self.model.classes_[:0] if self.task == "classification" else np.empty(0)
        said = self.model.predict(X)
        return said if self.task == "classification" else self._out_of_units(said)

    @available_if(lambda self: hasattr(self.model, "decision_function"))
    def decision_function(self, batch: Batch) -> NDArray[np.float64]:
        """The estimator's ``decision_function``."""
        return self.model.decision_function(self._features(batch))  # type: ignore[no-any-return]

    @available_if(lambda self: hasattr(self.model, "predict_proba"))
    def predict_proba(self, batch: Batch) -> NDArray[np.float64]:
        """The probability of each of ``classes_``, where the estimator has it."""
        return self.model.predict_proba(self._features(batch))  # type: ignore[no-any-return]

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels met so far, sorted."""
        return self.model.classes_  # type: ignore[no-any-return]

    def _features(self, batch: Batch) -> Any:
        if not hasattr(self.model, "_state") and not self._unit.rows:
            raise NotFittedError("This StreamModel has not learned from any row with a target yet.")
        return self.preparation.transform(batch)

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
            "settled": self._settled,
            "waiting": None,
            "preparation": preparation,
            "model": model,
        }
        arrays |= {f"preparation_{name}": part for name, part in prepared.items()}
        arrays |= self._unit.to_arrays("target_")
        if self._waiting:
            X, arrays["waiting_targets"] = self._waiting_rows()
            header["waiting"] = "sparse" if issparse(X) else "dense"
            if issparse(X):
                arrays["waiting_data"] = X.data
                arrays["waiting_indices"] = X.indices.astype(np.int32)
                arrays["waiting_indptr"] = X.indptr.astype(np.int64)
            else:
                arrays["waiting_rows"] = X
        return header, arrays

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        header, arrays = document.header, document.arrays
        prefix = "preparation_"
        prepared = {
            name[len(prefix) :]: part for name, part in arrays.items() if name.startswith(prefix)
        }
        preparation = Preparation.from_document(header["preparation"], prepared)
        model = rebuild(header["model"], arrays, "model_")
        fresh = rebuild({**header["model"], "fitted": False}, {}, "")
        result = cls(fresh, preparation, header["target"], header["task"])
        result.model = model
        fitted = hasattr(model, "_state")
        if fitted and model.n_features_in_ != preparation.width:
            raise ValueError("the estimator's features are not those of the preparation")
        if not isinstance(result.target, str) or header["kind"] not in (None, "number", "text"):
            raise ValueError("the target is not a column")
        if type(header["unlabelled"]) is not int or header["unlabelled"] < 0:
            raise ValueError("the number of rows without target is not a number")
        result.unlabelled_ = header["unlabelled"]
        result._kind = header["kind"]
        result._unit = Running.from_arrays(arrays, "target_", 1)
        result._settled = header["settled"] is True
        if header["waiting"] is not None:
            result._waiting = [_restore_waiting(header["waiting"], arrays, preparation.width)]
        waiting = len(result._waiting[0][1]) if result._waiting else 0
        if result.task == "classification":
            possible = result._settled and not waiting and not result._unit.rows
        elif result._settled:
            possible = fitted and not waiting and result._unit.rows > 0
        else:
            possible = not fitted and waiting == result._unit.rows < preparation.warm_up
        if not possible:
            raise ValueError("the rows kept waiting contradict the rest")
        return result


def _restore_waiting(form: Any, arrays: Any, width: int) -> tuple[Any, NDArray[np.float64]]:
    targets = arrays["waiting_targets"]
    if targets.ndim != 1 or targets.dtype != np.float64 or not len(targets):
        raise ValueError("the rows kept waiting have no targets")
    if form == "sparse":
        parts = [arrays[f"waiting_{name}"] for name in ("data", "indices", "indptr")]
        if [part.dtype.name for part in parts] != ["float64", "int32", "int64"]:
            raise ValueError("the rows kept waiting are not numbers")
        X = csr_array(tuple(parts), shape=(len(targets), width))
        X.check_format(full_check=True)
        values = X.data
    else:
        X = values = arrays["waiting_rows"]
        if X.shape != (len(targets), width) or X.dtype != np.float64:
            raise ValueError("the rows kept waiting are not rows of features")
    for numbers in (values, targets):
        if not (np.abs(numbers) <= LARGEST_ENTRY).all():
            raise ValueError("the rows kept waiting are not finite")
    return X, targets
