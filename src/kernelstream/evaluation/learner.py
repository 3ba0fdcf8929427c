"""A model under test: what it says of samples, and how it learns them, whatever its kind."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from kernelstream.evaluation.labels import Labels
from kernelstream.evaluation.metrics import DEFAULT_METRICS, METRICS, check_names
from kernelstream.evaluation.risk import sample_losses
from kernelstream.models import _validation as check


class Predictions(NamedTuple):
    """What a model predicted for some samples; the rest only where it is needed."""

    predicted: NDArray[Any]  # (n,) labels or numbers
    probability: NDArray[np.float64] | None = None  # (n,) probability of the true class
    decision: NDArray[np.float64] | None = None  # (n,) for the second of two classes
    losses: NDArray[np.float64] | None = None  # (n,) or fewer


class Learner:
    """A model that predicts and learns, and what the metrics need to know of it.

    A model of this package predicts and learns in one compiled pass, each sample predicted by
    the model just before it; any other predicts all samples of a call, then learns them.

    ``losses``: whether the model's own loss is measured too.
    """

    def __init__(
        self,
        model: Any,
        metrics: Sequence[str] | None = None,
        classes: ArrayLike | None = None,
        losses: bool = False,
    ) -> None:
        self.model = model
        self.classification = self._is_classification()  # says labels
        self.metrics = check_names(
            DEFAULT_METRICS[self.classification] if metrics is None else metrics,
            self.classification,
        )
        self.classes = None  # all there will be, sorted, where that is known
        if classes is not None:
            given = np.asarray(classes)
            self.classes = np.unique(check.check_labels(given, len(given), "classes"))
        #: Labels as numbers, those that are known beforehand first; None: targets are numbers.
        self.labels = Labels() if self.classification else None
        if self.labels is not None:
            for known in (self.classes, getattr(model, "classes_", None)):
                if known is not None:
                    self.labels.encode(np.asarray(known))
        self.compiled = hasattr(model, "predict_then_learn")  # of this package
        self.fresh = not self._has_learned()  # has learned nothing yet
        #: What the metrics need beside predictions: "probability", "decision".
        self.needs = {METRICS[metric].needs for metric in self.metrics} - {""}
        self._losses = losses
        self._each = 0  # numbers of a sample, once known
        self._check_metrics()
        self._check_model()

    def _is_classification(self) -> bool:
        return is_classification(self.model)

    def _has_learned(self) -> bool:
        return _is_fitted(self.model)

    def _has_probabilities(self) -> bool:
        return hasattr(self.model, "predict_proba")

    def _has_decisions(self) -> bool:
        return hasattr(self.model, "decision_function") or hasattr(self.model, "predict_proba")

    def _check_metrics(self) -> None:
        name = type(self.model).__name__
        wanted_by = {METRICS[metric].needs: metric for metric in self.metrics}
        if "probability" in wanted_by and not self._has_probabilities():
            raise ValueError(
                f"{wanted_by['probability']} needs probabilities, which this {name} does not give"
            )
        if "decision" in wanted_by and not self._has_decisions():
            raise ValueError(f"{wanted_by['decision']} needs decision values, which {name} lacks")

    def _check_model(self) -> None:
        model, name = self.model, type(self.model).__name__
        if self.fresh and self.compiled and getattr(model, "gamma", None) == "scale":
            raise ValueError(
                "gamma='scale' looks at the samples of the first call, which is a single one "
                "here: give gamma as a number, or let the model learn some samples before"
            )
        if self.fresh and self.classification and not self.compiled and self.classes is None:
            raise ValueError(f"{name} must know all classes when it starts: give classes=")
        if self._losses and not self.compiled:
            raise ValueError(f"{name} has no loss that could be measured")

    def steps(self, every: int) -> tuple[int, int]:
        """Every how many samples the model may be called, and how far into such a step it is.

        A model of another package is called every ``every`` samples.
        """
        if not self.compiled:
            return every, 0
        # Within an unfinished batch, how many rows are evaluated at once changes the last bits.
        return getattr(self.model, "batch_size", 1), getattr(self.model, "n_waiting_", 0)

    # ---- samples that it can take ---------------------------------------------------------

    def check_rows(self, X: Any) -> None:
        """Refuse rows that the model would refuse."""
        if not self.compiled:
            return
        new = not hasattr(self.model, "n_features_in_")
        rows = check.check_rows(self.model, X, new=new)
        if not new and hasattr(self.model, "kernel_"):
            check.check_kernel_range(self.model.kernel_, rows)

    def check_targets(self, y: Any, n: int) -> NDArray[Any]:
        """(n,) numbers or known labels, (n, q) numbers, or an error."""
        if not self.classification:
            several = self.compiled and getattr(self.model, "_several", False)
            targets = check.check_numbers(y, n, several)
            each = 1 if targets.ndim == 1 else targets.shape[1]
            if each != (self._each or each):
                raise ValueError(
                    f"y has {each} numbers per sample, the samples before {self._each}"
                )
            self._each = each
            return targets
        labels = check.check_labels(np.asarray(y), n)
        fixed = self.classes
        if self.compiled and getattr(self.model, "_fixed_classes", False):
            fixed = self.model.classes_
        unknown = np.array([]) if fixed is None else np.setdiff1d(labels, fixed)
        if len(unknown):
            raise ValueError(f"y contains the label {unknown[0]!r}, not in classes")
        return labels

    def converted(self, X: Any, y: NDArray[Any]) -> Any:
        """Rows as :meth:`learn` and :meth:`predict_then_learn` take them, in no measured time."""
        return X

    # ---- asking and teaching --------------------------------------------------------------

    def learn(self, X: Any, y: NDArray[Any]) -> None:
        """Learning alone."""
        learn = self.model.partial_fit
        if self.fresh and self.classes is not None and "classes" in signature(learn).parameters:
            learn(X, y, classes=self.classes)
        elif self.compiled and not self.fresh and len(y) == 1 and isinstance(X, np.ndarray):
            self.model.learn_one(X[0], y[0])
        else:
            learn(X, y)
        self.fresh = False

    def predict(self, X: Any, y: NDArray[Any], unmeasured: int) -> Predictions:
        """Predicting alone, all samples with the model as it is.

        The losses of the first ``unmeasured`` of them are left out.
        """
        predicted, probability, decision = self.model.predict(X), None, None
        if "probability" in self.needs:
            probability = _probability(self.model.predict_proba(X), self.model.classes_, y)
        if "decision" in self.needs:
            if hasattr(self.model, "decision_function"):
                decision = _second_class(self.model.decision_function(X), self.model.classes_)
            else:
                decision = _second_class(self.model.predict_proba(X)[:, -1], self.model.classes_)
        losses = None
        if self._losses:
            values = self.model.decision_function(X) if self.classification else predicted
            losses = self._losses_of(values, y, unmeasured)
        return Predictions(predicted, probability, decision, losses)

    def predict_then_learn(self, X: Any, y: NDArray[Any], unmeasured: int) -> Predictions:
        """Both, each sample predicted by the model just before it where the model can do that."""
        if not self.compiled:
            predicted = self.predict(X, y, unmeasured)
            self.learn(X, y)
            return predicted
        if not self.needs and not (self._losses and self.classification):
            predicted = self.model.predict_then_learn(X, y)
            return Predictions(predicted, losses=self._losses_of(predicted, y, unmeasured))
        # Where the loss has probabilities they follow from the values.
        calibrated = "probability" in self.needs and getattr(self.model, "_follows", False)
        if calibrated:
            values, probabilities = self.model._judge_then_learn(X, y)
        else:
            values = self.model.decide_then_learn(X, y)
        known = self.model.classes_
        if "probability" in self.needs and not calibrated:
            probabilities = _softmax(values, len(known))
        if values.ndim == 1 and len(known) == 2:
            winners = (values > 0.0).astype(np.int64)
        elif values.ndim == 1:
            winners = np.zeros(len(values), dtype=np.int64)
        else:
            winners = np.argmax(values, axis=1)
        return Predictions(
            known[winners],
            _probability(probabilities, known, y) if "probability" in self.needs else None,
            _second_class(values, known) if "decision" in self.needs else None,
            self._losses_of(values, y, unmeasured),
        )

    def nbytes(self) -> float:
        """Memory that the model says it holds; NaN where it says nothing."""
        held = None if self.fresh else getattr(self.model, "nbytes_", None)
        return np.nan if held is None else float(held)

    def _losses_of(
        self, predicted: NDArray[np.float64], y: NDArray[Any], unmeasured: int
    ) -> NDArray[np.float64] | None:
        if not self._losses:
            return None
        first = min(len(y), max(0, unmeasured))
        if first == len(y):
            return np.empty(0)
        return sample_losses(self.model, predicted[first:], y[first:])


def is_classification(model: Any) -> bool:
    """Whether a model predicts labels, not numbers."""
    if hasattr(model, "__sklearn_tags__"):
        if is_classifier(model):
            return True
        if is_regressor(model):
            return False
    raise ValueError(f"{type(model).__name__} is neither a classifier nor a regressor")


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _softmax(values: NDArray[np.float64], classes: int) -> NDArray[np.float64]:
    """Probabilities from decision values; the same bits with classes of -inf and without."""
    if classes == 1:
        return np.ones((len(values), 1))
    if values.ndim == 1:
        values = np.stack([-0.5 * values, 0.5 * values], axis=1)
        values[np.isposinf(values)] = 0.0  # beside -inf: the one class known by then
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / np.cumsum(powers, axis=1)[:, -1:]


def _probability(
    probabilities: NDArray[np.float64], classes: NDArray[Any], y: NDArray[Any]
) -> NDArray[np.float64]:
    """The probability of each true class; 0 for a class that the model does not know."""
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[places] == y, probabilities[np.arange(len(y)), places], 0.0)


def _second_class(values: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Decision values of two classes; NaN where the model knew fewer, or knows more."""
    if values.ndim > 1 or len(classes) != 2:
        return np.full(len(values), np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def rows_between(X: Any, first: int, end: int) -> Any:
    """Some rows of a matrix or a data frame."""
    if isinstance(X, np.ndarray) or issparse(X):
        return X[first:end]
    return X.iloc[first:end] if hasattr(X, "iloc") else X[first:end]


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number, or too small."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value < 2**62:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
