"""Classes as outputs, new ones at any time."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from kernelstream.core.kernel import Rows
from kernelstream.errors import callers_level
from kernelstream.models import _class_weights as class_weights
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._stream import StreamEstimator, as_before_on_error, learn_epochs
from kernelstream.rows import count_rows, slice_rows


class StreamClassifier(ClassifierMixin, StreamEstimator):  # type: ignore[misc]
    """Classes as outputs: one for two classes, one per class for more."""

    class_weight: p.ClassWeight = None

    classes_: Annotated[NDArray[Any], "The labels seen so far, sorted."] = field(init=False)
    _met: dict[Any, int] = field(init=False)  # samples of each class, for balanced weights

    def _check_combination(self) -> None:
        super()._check_combination()
        class_weights.check(self.class_weight)

    @property
    def _outputs(self) -> int:
        return outputs_for(len(self.classes_))

    def _add_output(self, place: int, before: int) -> None:
        """Room for one more class, where there were so many ``before``."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch, ``n_epochs`` times over the samples.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) labels
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out (its class is
            still noted).
        """
        with as_before_on_error(self):
            self._check_parameters(fresh=True)
            rows = check.check_rows(self, X, new=True)
            labels = check.check_labels(y, count_rows(rows))
            weights = check.check_sample_weight(sample_weight, len(labels), some=True)
            self.classes_, targets = np.unique(labels, return_inverse=True)
            self._fixed_classes = False
            self._met = {}
            weights = class_weights.of_all(self.class_weight, labels, weights)
            self._start(X, rows)
        if absent := class_weights.absent(self.class_weight, self.classes_):
            warnings.warn(
                f"class_weight has {absent!r:.200}, which y does not have: its classes are "
                f"{self.classes_.tolist()!r:.200}",
                stacklevel=callers_level(),
            )
        learn_epochs(self, rows, targets.astype(np.float64), weights)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the next samples of the stream, in order.

        Any chunking of the same samples gives the same model, bit for bit (with
        ``gamma="scale"`` the first chunk decides gamma). If anything is wrong with the input
        the model stays as it was.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) labels
        classes : array, optional
            All classes there will be: a label outside them is an error, now and in later calls.
            Given on a later call they are added to those met before, and then no others are
            accepted. Without it a new class may appear at any time and adds an output.
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out (its class is
            still noted).
        """
        self._consume(X, y, classes, sample_weight, self._learn)
        return self

    def predict_then_learn(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> NDArray[Any]:
        """Predict each sample, then learn from it: :meth:`partial_fit` that also says what it
        thought.

        Returns the predicted labels, each made by the model as it was just before that
        sample (with ``batch_size`` > 1: before that sample's batch). The first call needs
        ``classes``, or a model that has learned something.
        """
        parts = self._predict_then_learn_classes(X, y, classes, sample_weight)
        return np.concatenate([self._labels(values, known) for known, values in parts])

    def decide_then_learn(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> NDArray[np.float64]:
        """:meth:`predict_then_learn` with the values of :meth:`decision_function` for labels.

        They are laid out for ``classes_`` as it is after the call: (n,) for two classes, else
        (n, C). A class that was not known when a sample was predicted has -inf there, so that
        labels and probabilities still follow; where only one was known, two classes have
        -inf or inf for it.
        """
        parts = self._predict_then_learn_classes(X, y, classes, sample_weight)
        values = np.concatenate([_lay_out(part, known, self.classes_) for known, part in parts])
        return values[:, 0] if values.shape[1] == 1 else values

    def predict_proba_then_learn(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> NDArray[np.float64]:
        """:meth:`predict_then_learn` with the probabilities of :meth:`predict_proba` for labels.

        (n, C), laid out for ``classes_`` as it is after the call; 0 for a class that was not known
        when a sample was predicted.
        """
        return self._judge_then_learn(X, y, classes, sample_weight)[1]

    def _judge_then_learn(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What :meth:`decide_then_learn` and :meth:`predict_proba_then_learn` return."""
        parts = self._predict_then_learn_classes(X, y, classes, sample_weight, probable=True)
        values, probabilities = [], []
        for known, found in parts:
            outputs = outputs_for(len(known))
            values.append(_lay_out(found[:, :outputs], known, self.classes_))
            laid_out = np.zeros((len(found), len(self.classes_)))
            laid_out[:, np.searchsorted(self.classes_, known)] = found[:, outputs:]
            probabilities.append(laid_out)
        decided = np.concatenate(values)
        decided = decided[:, 0] if decided.shape[1] == 1 else decided
        return decided, np.concatenate(probabilities)

    def _predict_then_learn_classes(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, probable: bool = False
    ) -> list[tuple[NDArray[Any], NDArray[np.float64]]]:
        """Learn, and return the outputs from just before, with the classes known by then.

        ``probable``: beside them the probabilities of these classes.
        """
        if classes is None and not hasattr(self, "classes_"):
            raise ValueError(
                "predict_then_learn has to say something before it has met a label: give classes= "
                "on the first call, and no others are accepted; or begin with partial_fit without "
                "classes, and new ones may appear at any time"
            )
        predicted: list[tuple[NDArray[Any], NDArray[np.float64]]] = []
        met = 0

        def learn(*samples: Any) -> None:
            nonlocal met
            known = self.classes_
            learn = self._estimate_then_learn if probable else self._predict_then_learn
            predicted.append((known, learn(*samples)[met:]))
            met = 0

        def meet(sample: Rows) -> None:  # learned next, but predicted without its class
            nonlocal met
            values = self._values_next(sample)
            if probable:
                values = np.concatenate([values, self._probabilities(values)], axis=1)
            predicted.append((self.classes_, values))
            met = 1

        self._consume(X, y, classes, sample_weight, learn, meet)
        return predicted

    def _consume(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        learn: Callable[..., None],
        meet: Callable[[Rows], None] = lambda sample: None,
    ) -> None:
        """Check everything, then hand the samples to ``learn`` in order, between new classes.

        ``meet`` gets the first sample of each new class while the class is not known yet.
        """
        self._check_parameters()
        new = not hasattr(self, "_state")
        rows = check.check_rows(self, X, new=new)
        labels = check.check_labels(y, count_rows(rows))
        weights = check.check_sample_weight(sample_weight, len(labels))
        known = self.classes_ if not new else np.array([], dtype=labels.dtype)
        fixed = not new and self._fixed_classes
        if classes is not None:
            if np.ndim(classes) != 1:
                raise ValueError(f"classes must be a list of labels, got {classes!r}")
            given = check.check_labels(classes, len(classes), "classes")
            _arrivals(given, known, fixed, "classes")
            known = np.union1d(known, given) if len(known) else np.unique(given)
            fixed = True
        places = _places_among(known, labels)
        arrivals = _arrivals(labels, known, fixed) if places is None else []
        if new or arrivals or classes is not None:
            with as_before_on_error(self):
                self._fixed_classes = fixed
                if new:
                    self.classes_ = known
                    self._met = {}
                    self._start(X, rows)
                self._check_room(outputs_for(len(known) + len(arrivals)))
                self._check_range(rows)
        else:
            self._check_range(rows)
            weights = class_weights.of_next(self.class_weight, labels, weights, self._met)
            if places is None:
                places = self.classes_.searchsorted(labels)
            learn(rows, places.astype(np.float64), weights)
            return
        if not new and known is not self.classes_:
            for label in np.setdiff1d(known, self.classes_):
                self._add_class(label)
        weights = class_weights.of_next(self.class_weight, labels, weights, self._met)
        # A new class adds its output exactly when its first sample comes, in any chunking.
        edges = [*(row for row, _ in arrivals), len(labels)]
        for number, (first, end) in enumerate(itertools.pairwise([0, *edges])):
            if number:
                meet(slice_rows(rows, first, first + 1))
                self._add_class(arrivals[number - 1][1])
            if first < end:
                targets = np.searchsorted(self.classes_, labels[first:end]).astype(np.float64)
                part = None if weights is None else weights[first:end]
                learn(slice_rows(rows, first, end), targets, part)

    def learn_one(self, x: NDArray[np.float64], y: Any) -> None:
        """Learn from one sample, without scikit-learn's validation.

        ``x`` is a 1-D array of finite numbers. A batch is kept waiting as in ``partial_fit``.
        """
        if getattr(self, "_call", None) is None:
            self._places = {
                label: float(place)
                for place, label in enumerate(getattr(self, "classes_", np.empty(0)).tolist())
            }
        place = self._places.get(y)
        if place is None or self.class_weight is not None:  # the first sample, or a new class
            self.partial_fit(np.asarray(x)[None], [y])
        else:
            self._learn_one(x, place)

    def predict_one(self, x: NDArray[np.float64]) -> Any:
        """The class predicted for one sample, the next of the stream: as in predict_then_learn."""
        return self._labels(self._value_of_next(x), self.classes_)[0].item()

    def _add_class(self, label: Any) -> None:
        """Room for one more class; what was learned about the others stays."""
        place = int(np.searchsorted(self.classes_, label))
        before = len(self.classes_)
        self.classes_ = np.insert(
            self.classes_.astype(np.result_type(self.classes_, np.asarray(label))), place, label
        )
        self._add_output(place, before)
        self._forget_plan()

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The function's values: (n,) for two classes, positive for the second; else (n, C)."""
        values = self._evaluate(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of each sample."""
        return self._labels(self._evaluate(X), self.classes_)

    @staticmethod
    def _labels(values: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
        if len(classes) == 1:
            return np.repeat(classes, len(values))
        if values.shape[1] == 1:
            return classes[(values[:, 0] > 0.0).astype(int)]
        return classes[np.argmax(values, axis=1)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, (n, classes)."""
        return self._probabilities(self._evaluate(X))

    def _probabilities(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, classes): what values of the function say."""
        if len(self.classes_) == 1:
            return np.ones((len(values), 1))
        if values.shape[1] == 1:
            values = np.concatenate([np.zeros_like(values), values], axis=1)
        values = np.exp(values - values.max(axis=1, keepdims=True))
        return values / values.sum(axis=1, keepdims=True)

    def _estimate_then_learn(self, rows: Rows, targets: Any, weights: Any) -> NDArray[np.float64]:
        """:meth:`_predict_then_learn` with the probabilities beside the values."""
        values = self._predict_then_learn(rows, targets, weights)
        return np.concatenate([values, self._probabilities(values)], axis=1)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _extra_header(self) -> dict[str, Any]:
        kind = self.classes_.dtype.kind
        return {
            "classes": self.classes_.tolist(),
            "dtype": kind if kind == "U" else self.classes_.dtype.str,
            "fixed": self._fixed_classes,
            "met": [self._met.get(label, 0) for label in self.classes_.tolist()],
        }

    def _restore_extra(self, header: dict[str, Any]) -> None:
        labels, dtype = header["classes"], header["dtype"]
        plain = all(isinstance(label, str | bool | int | float) for label in labels)
        if not labels or not plain or dtype not in check.LABEL_DTYPES:
            raise ValueError("the classes are not labels")
        self.classes_ = np.array(labels, dtype=dtype)
        if not np.array_equal(np.unique(self.classes_), self.classes_):
            raise ValueError("the classes are not sorted, or not distinct")
        self._fixed_classes = bool(header["fixed"])
        met = header.get("met", [0] * len(labels))  # version 0.1 had none
        if len(met) != len(labels) or not all(type(n) is int and 0 <= n < 2**62 for n in met):
            raise ValueError("the numbers of samples of the classes are not numbers")
        self._met = {label: n for label, n in zip(self.classes_.tolist(), met, strict=True) if n}


def with_another_output(
    weights: NDArray[np.float64], parts: int, place: int, before: int
) -> NDArray[np.float64]:
    """Rows of weights, so many sets of them, for one more class; ``before`` so many were known."""
    outputs = outputs_for(before)
    sets = [weights[k * outputs : (k + 1) * outputs] for k in range(parts)]
    if before == 2:  # f becomes (-f/2, f/2): the margin between the two is what it was
        sets = [np.concatenate([-0.5 * part, 0.5 * part]) for part in sets]
    if before >= 2:
        sets = [np.insert(part, place, 0.0, axis=0) for part in sets]
    elif before == 1 and place == 0:  # the class so far becomes the positive one
        sets = [-part for part in sets]
    return np.concatenate(sets)


def outputs_for(classes: int) -> int:
    """One output distinguishes two classes."""
    return 1 if classes <= 2 else classes


def _lay_out(
    values: NDArray[np.float64], known: NDArray[Any], final: NDArray[Any]
) -> NDArray[np.float64]:
    """Outputs for the ``known`` classes as outputs for the ``final`` ones, which include them."""
    if len(final) == len(known):
        return values
    places = np.searchsorted(final, known)
    if len(final) == 2:
        return np.full_like(values, np.inf if places[0] == 1 else -np.inf)
    if len(known) == 1:
        values = np.zeros_like(values)
    elif len(known) == 2:
        values = np.concatenate([-0.5 * values, 0.5 * values], axis=1)
    laid_out = np.full((len(values), len(final)), -np.inf)
    laid_out[:, places] = values
    return laid_out


def _places_among(known: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp] | None:
    """Where the labels stand among those known, of the same kind; None where one is not found."""
    if not len(known) or known.dtype != labels.dtype or known.dtype.kind not in "iubU":
        return None
    places = known.searchsorted(labels)
    found = known.take(places, mode="clip")
    return places if found.tobytes() == labels.tobytes() else None  # type: ignore[no-any-return]


def _arrivals(
    labels: Any, known: NDArray[Any], fixed: bool, name: str = "y"
) -> list[tuple[int, Any]]:
    """Labels not known yet, with the row where each first appears, in that order.

    An error where the known ones are ``fixed``, or of another kind; ``name`` is what it names.
    """
    kinds = known.dtype.kind + labels.dtype.kind
    if len(known) and kinds.count("U") == 1:
        raise ValueError(
            f"{name} holds labels of type {labels.dtype}, but the classes so far are of type "
            f"{known.dtype}"
        )
    if len(known) and np.result_type(known, labels).kind == "f":
        for array in (known, labels):
            if array.dtype.kind in "iu" and np.abs(array.astype(np.float64)).max() > 2.0**53:
                raise ValueError(
                    f"labels this large cannot be distinguished beside labels of {name}'s type"
                )
    found, first = np.unique(labels, return_index=True)
    unknown = ~np.isin(found, known)
    if fixed and unknown.any():
        row = int(first[unknown].min())
        raise ValueError(
            f"{name} contains the label {labels[row].item()!r} at row {row}, which is not among "
            "the known classes: since classes= was given no others are accepted; a model that is "
            "never given any accepts new ones"
        )
    return sorted(
        ((int(row), label) for row, label in zip(first[unknown], found[unknown], strict=True)),
        key=lambda arrival: arrival[0],
    )
