"""Losses as small values, named as scikit-learn names them where it does.

With one output, classification losses act on the margin m = y f, y in {-1, 1}. With several
classes they act on m = f_y - f_r, r the best other class (the first in a tie): ``hinge`` is
then Crammer and Singer's loss and ``margin_log_loss`` AVM's logistic of the margin;
``log_loss`` is the multinomial one. At a kink the derivative is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelstream.core import loss as core

#: name -> (code of the compiled branch, its own parameter, default, what values it may take)
_TABLE: dict[str, tuple[int, str, float, str]] = {
    "hinge": (core.HINGE, "", 0.0, ""),
    "squared_hinge": (core.SQUARED_HINGE, "", 0.0, ""),
    "smooth_hinge": (core.SMOOTH_HINGE, "width", 0.5, "positive"),
    "log_loss": (core.LOG_LOSS, "", 0.0, ""),
    "margin_log_loss": (core.MARGIN_LOG_LOSS, "", 0.0, ""),
    "perceptron": (core.PERCEPTRON, "", 0.0, ""),
    "squared_error": (core.SQUARED_ERROR, "", 0.0, ""),
    "absolute_error": (core.ABSOLUTE_ERROR, "", 0.0, ""),
    "epsilon_insensitive": (core.EPSILON_INSENSITIVE, "width", 0.1, "positive"),
    "huber": (core.HUBER, "threshold", 1.35, "positive"),
    "quantile": (core.QUANTILE, "level", 0.5, "level"),
}


@dataclass(frozen=True)
class Loss:
    """A loss by name, with its own number where it has one.

    Parameters
    ----------
    name : str
        One of ``hinge, squared_hinge, smooth_hinge, log_loss, margin_log_loss, perceptron``
        for classification, ``squared_error, absolute_error, epsilon_insensitive, huber,
        quantile`` for regression. ``squared_error`` is (f - y)^2 / 2.
    number : float, optional
        The width of the smooth part of ``smooth_hinge`` (0.5) or of the insensitive tube
        (0.1), the threshold of ``huber`` (1.35), the level of ``quantile`` (0.5).

    Examples
    --------
    >>> Loss("huber", 2.0)
    Loss('huber', 2.0)
    >>> Loss("quantile", 0.9).value([0.0, 2.0], [1.0, 1.0])
    array([0.9, 0.1])
    """

    name: str
    number: float | None = None

    def __post_init__(self) -> None:
        if self.name not in _TABLE:
            raise ValueError(f"loss must be one of {', '.join(_TABLE)}; got {self.name!r}")
        _, meaning, default, rule = _TABLE[self.name]
        if self.number is None:
            object.__setattr__(self, "number", default)
            return
        value = self.number
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{self.name}: {meaning or 'number'} must be a number, got {value!r}")
        good = math.isfinite(value) and (
            0.0 < value < 1.0 if rule == "level" else value > 0.0 if rule else value == 0.0
        )
        if not good:
            wanted = {"level": "between 0 and 1", "positive": "finite and > 0"}.get(
                rule, "left out: this loss has no parameter"
            )
            raise ValueError(f"{self.name}: {meaning or 'number'} must be {wanted}, got {value!r}")

    def __repr__(self) -> str:
        has_number = _TABLE[self.name][1]
        return f"Loss({self.name!r}, {self.number})" if has_number else f"Loss({self.name!r})"

    @property
    def code(self) -> int:
        """The branch of the compiled loss."""
        return _TABLE[self.name][0]

    @property
    def for_regression(self) -> bool:
        """Whether targets are numbers rather than classes."""
        return self.code >= core.FIRST_REGRESSION_LOSS

    def value(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        """The loss of each prediction.

        ``prediction`` has one row of outputs per sample (or is 1-D: one output), ``target``
        is -1/+1 with one output, the class index with several, a number in regression.
        """
        f, y, outputs = self._arrays(prediction, target)
        values = [
            core.loss_value(self.code, self.number, row, outputs, t)
            for row, t in zip(f, y, strict=True)
        ]
        return np.array(values, dtype=np.float64)

    def derivative(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        """The derivative of the loss in each output, shaped like ``prediction``."""
        f, y, outputs = self._arrays(prediction, target)
        out = np.empty_like(f)
        for row, t, slope in zip(f, y, out, strict=True):
            core.loss_derivative(self.code, self.number, row, outputs, t, slope)
        return out.reshape(np.shape(prediction))

    def _arrays(self, prediction: ArrayLike, target: ArrayLike) -> tuple[Any, Any, int]:
        f = np.ascontiguousarray(prediction, dtype=np.float64)
        f = f.reshape(len(f), math.prod(f.shape[1:]))  # -1 would not do without samples
        y = np.asarray(target, dtype=np.float64)
        if f.shape[1] > 1 and not self.for_regression:
            if not (np.isin(y, np.arange(f.shape[1]))).all():
                raise ValueError(f"targets must be class indices below {f.shape[1]}")
        elif self.for_regression and f.shape[1] > 1:
            raise ValueError(f"{self.name} is defined for one output, got {f.shape[1]}")
        return f, y, f.shape[1]


def make_loss(loss: str | Loss) -> Loss:
    """The loss that an estimator's parameter describes."""
    return loss if isinstance(loss, Loss) else Loss(loss)


#: What an estimator's ``loss=`` may name.
CLASSIFICATION_LOSSES = tuple(n for n in _TABLE if not Loss(n).for_regression)
REGRESSION_LOSSES = tuple(n for n in _TABLE if Loss(n).for_regression)
