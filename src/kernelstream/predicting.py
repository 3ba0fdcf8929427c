"""What a model for raw rows predicts, and what it says about that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kernelstream.explanation import Explanation, explain
from kernelstream.importances import ColumnImportances, features_by_column
from kernelstream.preparation import Preparation
from kernelstream.raw_columns import MISSING
from kernelstream.streams.batch import Batch
from kernelstream.streams.python_rows import as_batch

if TYPE_CHECKING:  # the detector is imported where one is wanted: predictions need none
    from kernelstream.models.novelty import NoveltyDetector


#: Parts of importances below are shown as 0 %.
_NOTHING = 0.0005


class _OfModel:
    """A method that there is where the estimator has one of the same name."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method, self.__doc__ = method, method.__doc__

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self._method
        name = self._method.__name__
        if hasattr(model.model, name):
            return MethodType(self._method, model)
        cure = "use predict"
        if name == "predict_interval":
            cure = "intervals are for numbers, learned with 'auto' or 'krlst'"
            if model.task == "classification":
                cure = "intervals are for numbers; of classes, use predict_proba or predict"
        raise AttributeError(f"a {type(model.model).__name__} has no {name}: {cure}")


class PredictsRows:
    """Predictions for raw rows; :class:`~kernelstream.StreamModel` adds learning and files."""

    # Supplied by the model.
    model: Any
    estimator: Any
    preparation: Preparation
    target: str
    targets: list[str]
    task: str
    importances: ColumnImportances | None
    detector: NoveltyDetector | None
    _kind: str | None

    def predict(self, rows: Any) -> NDArray[Any]:
        """Labels as they are in the stream, or numbers in the target's own units.

        (n,), of several targets (n, q).
        """
        X = self._features(rows)
        if not X.shape[0]:
            return self.model.classes_[:0] if self.task == "classification" else self._nothing()
        return self.estimator.predict(X)  # type: ignore[no-any-return]

    def predict_one(self, row: Mapping[str, Any]) -> Any:
        """The prediction for one row: a label, or a number; of several targets a dict of them."""
        found = self.predict(row)[0]
        if len(self.targets) > 1:
            return dict(zip(self.targets, found.tolist(), strict=True))
        return found.item()

    def _nothing(self, *more: int) -> NDArray[np.float64]:
        """Predictions of no rows."""
        several = (len(self.targets),) if len(self.targets) > 1 else ()
        return np.empty((0, *several, *more))

    @_OfModel
    def decision_function(self, rows: Any) -> NDArray[np.float64]:
        """The estimator's ``decision_function``."""
        X, classes = self._features(rows), len(self.classes_)
        if not X.shape[0]:
            return np.empty((0, classes) if classes > 2 else 0)
        return self.model.decision_function(X)  # type: ignore[no-any-return]

    @_OfModel
    def predict_proba(self, rows: Any) -> NDArray[np.float64]:
        """The probability of each of ``classes_``, where the estimator has it."""
        X = self._features(rows)
        if not X.shape[0]:
            return np.empty((0, len(self.classes_)))
        return self.model.predict_proba(X)  # type: ignore[no-any-return]

    @_OfModel
    def predict_interval(self, rows: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """(n, 2): the estimator's ``predict_interval``, where it has one; of several (n, q, 2).

        The widths come from errors of predictions just before each row was learned: where the
        stream changes and the model no longer learns, fewer rows lie within.
        """
        X = self._features(rows)
        if not X.shape[0]:
            return self._nothing(2)
        return self.model.predict_interval(X, coverage)  # type: ignore[no-any-return]

    def novelty(self, rows: Any) -> NDArray[np.float64]:
        """(n,): which part of the latest rows was less unusual than each of these, from 0 to 1.

        After :meth:`follow_novelty` and some rows. Dates, and numbers that run on like a counter,
        do not make a row unusual.
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
            found = self.importances.shares()
        elif hasattr(self.model, "column_importances_"):
            shares, columns = self.model.column_importances_, features_by_column(self.preparation)
            found = {name: float(shares[places].sum()) for name, places in columns.items()}
        else:
            return {}
        ranked = sorted(found.items(), key=lambda item: -item[1])
        # A feature of none of the columns is there for gaps that may come.
        return {name: part for name, part in ranked if part >= _NOTHING or name != MISSING}

    def explain(self, rows: Any, most: int = 5) -> list[Explanation]:
        """What decided the prediction of each row.

        Parameters
        ----------
        rows : data frame, dict, list of dicts, columns or batch
        most : int, default=5
            Columns to be named in each.
        """
        self._check_taught()
        if len(self.targets) > 1:
            raise ValueError(
                "explanations are of one prediction, and this model predicts "
                f"{len(self.targets)} numbers of a row: make a model of each target"
            )
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
            for name in self.targets:
                schema[name] = self._kind or preparation.schema.get(name)
        return as_batch(rows, schema, unnamed=preparation.matrix_width is not None)[0]
