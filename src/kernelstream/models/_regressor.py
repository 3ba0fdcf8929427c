"""A number as output, or several."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from kernelstream.core.kernel import Rows
from kernelstream.limits import LARGEST_ENTRY
from kernelstream.losses import make_loss
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._base import KernelEstimator
from kernelstream.models._stream import StreamEstimator, as_before_on_error, learn_epochs
from kernelstream.rows import count_rows

#: Numbers per sample in a file.
_MOST_TARGETS = 1_000_000


class StreamRegressor(RegressorMixin, StreamEstimator):  # type: ignore[misc]
    """A number as output, or several."""

    #: Samples may have several numbers, with one dictionary for all.
    _several: ClassVar[bool] = True
    _n_targets = 1

    @property
    def _outputs(self) -> int:
        return self._n_targets

    @property
    def _numbers_each(self) -> int:
        return self._n_targets

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch, ``n_epochs`` times over the samples.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) numbers, or (n, q): several per sample
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out.
        """
        with as_before_on_error(self):
            self._check_parameters(fresh=True)
            rows = check.check_rows(self, X, new=True)
            targets = check.check_numbers(y, count_rows(rows), self._several)
            weights = check.check_sample_weight(sample_weight, len(targets), some=True)
            self._note_targets(targets)
            self._start(X, rows)
        learn_epochs(self, rows, targets, weights)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the next samples of the stream, in order.

        Any chunking of the same samples gives the same model, bit for bit (with
        ``gamma="scale"`` the first chunk decides gamma). If anything is wrong with the input
        the model stays as it was.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) numbers, or (n, q): several per sample
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out.
        """
        self._learn(*self._admit(X, y, sample_weight))
        return self

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> NDArray[np.float64]:
        """Predict each sample, then learn from it: :meth:`partial_fit` that also says what it
        thought.

        Returns the predictions, each made by the model as it was just before that sample
        (with ``batch_size`` > 1: before that sample's batch).
        """
        return self._flat(self._predict_then_learn(*self._admit(X, y, sample_weight)))

    def _admit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Any, Any]:
        """Check everything; an empty state where there is none."""
        self._check_parameters()
        new = not hasattr(self, "_state")
        rows = check.check_rows(self, X, new=new)
        targets = check.check_numbers(y, count_rows(rows), self._several)
        weights = check.check_sample_weight(sample_weight, len(targets))
        if new:
            with as_before_on_error(self):
                self._note_targets(targets)
                self._start(X, rows)
        else:
            each = 1 if targets.ndim == 1 else targets.shape[1]
            if each != self._n_targets:
                raise ValueError(
                    f"y has {each} {'number' if each == 1 else 'numbers'} per sample, the model "
                    f"has learned {self._n_targets}"
                )
            self._check_range(rows)
        return rows, targets, weights

    def _note_targets(self, targets: NDArray[np.float64]) -> None:
        """How many numbers a sample has."""
        self._n_targets = 1 if targets.ndim == 1 else targets.shape[1]

    def _extra_header(self) -> dict[str, Any]:
        several = {"targets": self._n_targets} if self._n_targets > 1 else {}
        return {**super()._extra_header(), **several}

    def _restore_extra(self, header: dict[str, Any]) -> None:
        super()._restore_extra(header)
        self._n_targets = header.get("targets", 1)
        least = 2 if "targets" in header else 1
        if type(self._n_targets) is not int or not least <= self._n_targets <= _MOST_TARGETS:
            raise ValueError("targets is not a number of targets")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several
        return tags

    def _flat(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) for one number per sample."""
        return values[:, 0] if self._n_targets == 1 else values

    def learn_one(self, x: NDArray[np.float64], y: Any) -> None:
        """Learn from one sample, without scikit-learn's validation.

        ``x`` is a 1-D array of finite numbers, ``y`` a finite number, or an array of as many as the
        model has learned.
        """
        if not hasattr(self, "_state"):
            self.partial_fit(np.asarray(x)[None], [y])
            return
        if isinstance(y, complex | np.complexfloating):
            raise ValueError("Complex data not supported: learn_one takes real numbers")
        if self._n_targets > 1:
            several = check.check_numbers(np.reshape(y, (1, -1)), 1, True)
            if several.shape != (1, self._n_targets):
                raise ValueError(f"learn_one takes {self._n_targets} targets, got {y!r:.80}")
            self._learn_one(x, several[0])
            return
        if not abs(y) <= LARGEST_ENTRY:
            raise ValueError(
                f"learn_one: the target must be a number of at most {LARGEST_ENTRY:.0e} in size, "
                f"got {y}"
            )
        self._learn_one(x, float(y))

    def predict_one(self, x: NDArray[np.float64]) -> Any:
        """The number predicted for one sample, the next of the stream: as in predict_then_learn.

        (q,) where it has learned several.
        """
        values = self._value_of_next(x)[0]
        return float(values[0]) if self._n_targets == 1 else values

    def predict(self, X: Any) -> NDArray[np.float64]:
        """(n,): the predicted number for each sample; (n, q) where it has learned several."""
        return self._flat(self._evaluate(X))


class KernelRegressor(StreamRegressor, KernelEstimator):
    """A number as output of a kernel expansion."""

    loss: p.NumberLoss = field(default="squared_error", kw_only=False)
    n_epochs: p.Epochs = 5
    shuffle: p.Shuffle = True

    def _check_combination(self) -> None:
        super()._check_combination()
        if not make_loss(self.loss).for_regression:
            other = type(self).__name__.replace("Regressor", "Classifier")
            raise ValueError(f"{self.loss!r} is a loss for classes: use {other}")
