"""Linear functions of features of a kernel: what they share beside ``core/linear_features.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.kernel import Rows
from kernelstream.core.linear_features import (
    LINEAR_SETTINGS,
    LINEAR_STATUS,
    LinearState,
    linear_pass,
)
from kernelstream.losses import make_loss
from kernelstream.models import _parameters as p
from kernelstream.models._classifier import with_another_output
from kernelstream.models._flat import FlatEstimator
from kernelstream.models._kernel_classifier import CalibratedClassifier
from kernelstream.models._regressor import StreamRegressor
from kernelstream.parameters import Number
from kernelstream.rows import dense_matrix
from kernelstream.schedules import StepSize
from kernelstream.search import LogRange


class LinearOnFeatures(FlatEstimator):
    """Steps f <- (1 - eta alpha) f - eta l'(f(x), y) z(x) on features z of a kernel."""

    _arrays: ClassVar[type[Any]] = LinearState
    _status = LINEAR_STATUS
    _lasting: ClassVar[tuple[str, ...]] = ("loss", "kernel", "gamma")
    _sets: ClassVar[int] = 1  # of weights: rows are so many times the outputs
    _needs_its_points = "its features are not points"

    if TYPE_CHECKING:  # a parameter of classifiers and of regressors, each with its own losses
        loss: Any

    def _kind(self) -> int:
        """See ``core/linear_features.py``."""
        raise NotImplementedError

    def _step(self) -> tuple[StepSize, float]:
        """The step size, and lambda."""
        raise NotImplementedError

    def _pass(self) -> Callable[..., tuple[int, int]]:
        return linear_pass  # type: ignore[no-any-return]

    def _settings(self) -> NDArray[Any]:
        loss, (step, regularisation) = make_loss(self.loss), self._step()
        settings = np.zeros(1, LINEAR_SETTINGS)
        values = {
            "rule": self._kind(), "outputs": self._outputs, "loss": loss.code,
            "loss_number": loss.number or 0.0, "regularisation": regularisation,
            "schedule": step.code, "initial_step": step.eta0, "decay": step.decay,
        }  # fmt: skip
        for name, value in values.items():
            settings[0][name] = value
        return settings

    def _size(self, state: Any) -> int:
        return int(state.points.shape[1])

    def _fill(self, state: Any, seed: int) -> None:
        state.status[0]["scale"] = 1.0
        state.status[0]["random"] = seed

    def _check_read(self, state: Any) -> None:
        status = state.status[0]
        if not 0.0 < status["scale"] <= 1.0 or status["features"] > self._size(state):
            raise ValueError("the state's parts contradict one another")
        if np.abs(state.weights).max(initial=0.0) > 1e150:
            raise ValueError("the weights are too large")

    def _overflow_cure(self) -> str:
        return (
            "the step is too large for these targets. Choose a smaller one, scale the target, or "
            "use a loss with a bounded derivative such as 'huber'."
        )


class ConstantSteps(LinearOnFeatures):
    """Steps that are all alike, without regularisation."""

    eta0: p.Eta0 = 0.2

    def _step(self) -> tuple[StepSize, float]:
        return StepSize("constant", self.eta0), 0.0


class InverseSteps(LinearOnFeatures):
    """Steps 1 / (alpha t), which leave (t - 1) / t of the function."""

    alpha: Annotated[
        float,
        Number(least=1e-9),
        LogRange(1e-6, 1e-1),
        "Regularisation (lambda in the paper): steps are 1 / (alpha t).",
    ] = 1e-3

    def _step(self) -> tuple[StepSize, float]:
        return StepSize("inverse_time", 1.0 / self.alpha, 1.0), self.alpha


class LinearOnFeaturesClassifier(CalibratedClassifier, LinearOnFeatures):
    """Classes as outputs."""

    def _add_output(self, place: int, before: int) -> None:
        state = self._state
        self._state = state._replace(
            weights=with_another_output(state.weights, self._sets, place, before)
        )
        self._note_new_class(place)


class LinearOnFeaturesRegressor(LinearOnFeatures, StreamRegressor):
    """A number as output."""

    loss: p.NumberLoss = field(default="squared_error", kw_only=False)

    def _check_combination(self) -> None:
        super()._check_combination()
        if not make_loss(self.loss).for_regression:
            other = type(self).__name__.replace("Regressor", "Classifier")
            raise ValueError(f"{self.loss!r} is a loss for classes: use {other}")


def phases(state: Any, rows: Rows) -> NDArray[np.float64]:
    """(n, D): samples times frequencies."""
    return dense_matrix(rows) @ state.points  # type: ignore[no-any-return]
