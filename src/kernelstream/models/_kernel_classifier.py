"""Classes as outputs of a function, with probabilities whatever the loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import storage
from kernelstream.core import calibration
from kernelstream.core.jit import entry
from kernelstream.core.kernel import Rows
from kernelstream.losses import make_loss
from kernelstream.models import _parameters as p
from kernelstream.models._base import KernelEstimator
from kernelstream.models._classifier import StreamClassifier, with_another_output


class CalibratedClassifier(StreamClassifier):
    """Classes as outputs of a function that a loss moves; a base class holds the function."""

    loss: p.ClassLoss = field(default="hinge", kw_only=False)

    if TYPE_CHECKING:
        batch_size: Any
    _fit_errors: ClassVar[int] = 0
    _calibration: NDArray[np.float64] | None = field(init=False, default=None)

    def _check_combination(self) -> None:
        super()._check_combination()
        if make_loss(self.loss).for_regression:
            other = type(self).__name__.replace("Classifier", "Regressor")
            raise ValueError(f"{self.loss!r} is a loss for regression: use {other}")

    # ---- probabilities where the loss has none: see core/calibration.py ----------------

    @property
    def _follows(self) -> bool:
        return getattr(self.loss, "name", self.loss) != "log_loss"  # asked for in every call

    def _calibration_table(self) -> NDArray[np.float64]:
        """The calibration; a new one for a model that has none yet."""
        if self._calibration is None:
            return calibration.new_table(len(self.classes_))
        return self._calibration

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._calibration is not None:  # joblib may have mapped the array read-only
            self._calibration = self._calibration.copy()

    def _forget_predictions(self) -> None:
        self._calibration = None

    def _start(self, X: Any, rows: Rows) -> None:
        self._forget_predictions()
        super()._start(X, rows)

    def _follow(self, made: NDArray[np.float64], targets: Any, weights: Any) -> None:
        outputs, beside = self._outputs, self._outputs + self._fit_errors
        values, room = made, _NO_ROOM
        if made.shape[1] > outputs:
            values = np.ascontiguousarray(made[:, :outputs])
            room = np.empty((len(made) if made.shape[1] > beside else 0, len(self.classes_)))
        self._calibration = self._calibration_table()
        calibration.calibrate(self._calibration, values, targets, weights, self.batch_size, room)
        if len(room):
            made[:, beside:] = room

    def _judge(self, predictions: NDArray[np.float64]) -> None:
        beside = self._outputs + self._fit_errors
        if predictions.shape[1] > beside:
            predictions[:, beside:] = self._probabilities(predictions[:, : self._outputs])

    def _probabilities(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if not self._follows:
            return super()._probabilities(values)
        found = np.empty((len(values), len(self.classes_)))
        calibration.fill_probabilities(
            self._calibration_table(), np.ascontiguousarray(values), found
        )
        return found

    def _estimate_then_learn(self, rows: Rows, targets: Any, weights: Any) -> NDArray[np.float64]:
        if not self._follows:
            return super()._estimate_then_learn(rows, targets, weights)
        return self._predict_then_learn(rows, targets, weights, beside=len(self.classes_))

    def _take_predictions(self, models: list[Any], shares: NDArray[np.float64]) -> None:
        if self._follows:
            tables = np.stack([model._calibration_table() for model in models])
            self._calibration = np.tensordot(shares, tables, axes=1)

    def _note_new_class(self, place: int) -> None:
        if self._calibration is not None:
            row = calibration.new_row()
            self._calibration = np.insert(self._calibration, place + 1, row, axis=0)

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = super()._document()
        if self._follows:
            arrays["calibration"] = self._calibration_table()
        return header, arrays

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        arrays = dict(document.arrays)
        table = arrays.pop("calibration", None)  # files of version 0.1 have none
        model = super()._from_document(document._replace(arrays=arrays))
        if table is not None:
            shape = len(model.classes_) + 1, calibration.COLUMNS
            fits = table.shape == shape and table.dtype == np.float64
            if not fits or not calibration.is_possible(table):
                raise ValueError("the calibration does not fit the classes")
            model._calibration = table
        return model


_NO_ROOM = np.empty((0, 1))


class KernelClassifier(CalibratedClassifier, KernelEstimator):
    """Classes as outputs of a kernel expansion."""

    n_epochs: p.Epochs = 5
    shuffle: p.Shuffle = True

    def _following(
        self, made: NDArray[np.float64], targets: Any, weights: Any
    ) -> Callable[[Any], None]:
        if self._fit_errors:
            return super()._following(made, targets, weights)
        rest = made, targets, weights, 1, _NO_ROOM
        calibrate = entry(calibration.calibrate, (self._calibration_table(), *rest))

        def follow(model: Any) -> None:
            if model._calibration is None:
                model._calibration = model._calibration_table()
            calibrate(model._calibration, *rest)

        return follow

    def _add_output(self, place: int, before: int) -> None:
        state = self._state
        weights = with_another_output(state.weights, self._parts, place, before)
        self._state = state._replace(weights=weights)
        self._note_new_class(place)
        self._note_new_outputs(halved=before == 2)
        self._shrink(self._capacity_limit(self.n_features_in_))
        if self._pending is not None:
            targets = self._pending.targets
            targets[targets >= place] += 1.0
