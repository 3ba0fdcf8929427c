"""Classes as outputs, new ones at any time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from kernelstream.core.kernel import Rows
from kernelstream.losses import make_loss
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._base import KernelEstimator
from kernelstream.models._stream import StreamEstimator, as_before_on_error, learn_epochs
from kernelstream.rows import count_rows, slice_rows


class StreamClassifier(ClassifierMixin, StreamEstimator):  # type: ignore[misc]
    """Classes as outputs: one for two classes, one per class for more."""

    classes_: Annotated[NDArray[Any], "The labels seen so far, sorted."] = field(init=False)

    @property
    def _outputs(self) -> int:
        return _outputs_for(len(self.classes_))

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
            self._start(X, rows)
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

    def _predict_then_learn_classes(
        self, X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> list[tuple[NDArray[Any], NDArray[np.float64]]]:
        """Learn, and return the outputs from just before, with the classes known by then."""
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
            predicted.append((known, self._predict_then_learn(*samples)[met:]))
            met = 0

        def meet(sample: Rows) -> None:  # learned next, but predicted without its class
            nonlocal met
            predicted.append((self.classes_, self._values_next(sample)))
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
        arrivals = _arrivals(labels, known, fixed)
        if new or arrivals or classes is not None:
            with as_before_on_error(self):
                self._fixed_classes = fixed
                if new:
                    self.classes_ = known
                    self._start(X, rows)
                self._check_room(_outputs_for(len(known) + len(arrivals)))
                self._check_range(rows)
        else:
            self._check_range(rows)
            learn(rows, self.classes_.searchsorted(labels).astype(np.float64), weights)
            return
        if not new and known is not self.classes_:
            for label in np.setdiff1d(known, self.classes_):
                self._add_class(label)
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
        if place is None:  # the first sample, or a new class
            self.partial_fit(np.asarray(x)[None], [y])
        else:
            self._learn_one(x, place)

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

    def _has_probabilities(self) -> bool:
        return True

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, (n, classes); for ``loss="log_loss"`` only."""
        values = self._evaluate(X)
        if len(self.classes_) == 1:
            return np.ones((len(values), 1))
        if values.shape[1] == 1:
            values = np.concatenate([np.zeros_like(values), values], axis=1)
        values = np.exp(values - values.max(axis=1, keepdims=True))
        return values / values.sum(axis=1, keepdims=True)

    @available_if(lambda self: self._has_probabilities())
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


class KernelClassifier(StreamClassifier, KernelEstimator):
    """Classes as outputs of a kernel expansion."""

    loss: p.ClassLoss = field(default="hinge", kw_only=False)
    n_epochs: p.Epochs = 5
    shuffle: p.Shuffle = True

    def _check_combination(self) -> None:
        super()._check_combination()
        if make_loss(self.loss).for_regression:
            other = type(self).__name__.replace("Classifier", "Regressor")
            raise ValueError(f"{self.loss!r} is a loss for regression: use {other}")

    def _add_output(self, place: int, before: int) -> None:
        state = self._state
        weights = with_another_output(state.weights, self._parts, place, before)
        self._state = state._replace(weights=weights)
        self._note_new_outputs(halved=before == 2)
        self._shrink(self._capacity_limit(self.n_features_in_))
        if self._pending is not None:
            targets = self._pending.targets
            targets[targets >= place] += 1.0

    def _has_probabilities(self) -> bool:
        if make_loss(self.loss).name == "log_loss":
            return True
        raise AttributeError(
            f"probabilities need loss='log_loss', this model has {self.loss!r}; decision_function "
            "is there with every loss"
        )


def with_another_output(
    weights: NDArray[np.float64], parts: int, place: int, before: int
) -> NDArray[np.float64]:
    """Rows of weights, so many sets of them, for one more class; ``before`` so many were known."""
    outputs = _outputs_for(before)
    sets = [weights[k * outputs : (k + 1) * outputs] for k in range(parts)]
    if before == 2:  # f becomes (-f/2, f/2): the margin between the two is what it was
        sets = [np.concatenate([-0.5 * part, 0.5 * part]) for part in sets]
    if before >= 2:
        sets = [np.insert(part, place, 0.0, axis=0) for part in sets]
    elif before == 1 and place == 0:  # the class so far becomes the positive one
        sets = [-part for part in sets]
    return np.concatenate(sets)


def _outputs_for(classes: int) -> int:
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


def _arrivals(
    labels: Any, known: NDArray[Any], fixed: bool, name: str = "y"
) -> list[tuple[int, Any]]:
    """Labels not known yet, with the row where each first appears, in that order.

    An error where the known ones are ``fixed``, or of another kind; ``name`` is what it names.
    """
    if len(known) and known.dtype == labels.dtype and known.dtype.kind in "iubU":
        places = np.minimum(known.searchsorted(labels), len(known) - 1)
        if (known[places] == labels).all():
            return []
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
