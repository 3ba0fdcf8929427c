"""Losses as small values, named as scikit-learn names them where it does.

With one output, classification losses act on the margin m = y f, y in {-1, 1}. With several
classes they act on m = f_y - f_r, r the best other class (the first in a tie): ``hinge`` is
then Crammer and Singer's loss and ``margin_log_loss`` AVM's logistic of the margin;
``log_loss`` is the multinomial one. At a kink the derivative is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kernelstream.core import loss as core


class _Row(NamedTuple):
    """A loss, its own number, and its largest second derivative where it is curved."""

    code: int  # of the compiled branch
    meaning: str = ""  # what its number is
    default: float = 0.0
    rule: str = ""  # what values the number may take
    curvature: Callable[[float], float] = lambda number: 0.0


_TABLE = {
    "hinge": _Row(core.HINGE),
    "squared_hinge": _Row(core.SQUARED_HINGE, curvature=lambda _: 2.0),
    "smooth_hinge": _Row(core.SMOOTH_HINGE, "width", 0.5, "positive", lambda width: 1.0 / width),
    "log_loss": _Row(core.LOG_LOSS, curvature=lambda _: 0.25),
    "margin_log_loss": _Row(core.MARGIN_LOG_LOSS, curvature=lambda _: 0.25),
    "perceptron": _Row(core.PERCEPTRON),
    "squared_error": _Row(core.SQUARED_ERROR, curvature=lambda _: 1.0),
    "absolute_error": _Row(core.ABSOLUTE_ERROR),
    "epsilon_insensitive": _Row(core.EPSILON_INSENSITIVE, "width", 0.1, "positive"),
    "huber": _Row(core.HUBER, "threshold", 1.35, "positive", lambda _: 1.0),
    "quantile": _Row(core.QUANTILE, "level", 0.5, "level"),
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
        _, meaning, default, rule, _ = _TABLE[self.name]
        if self.number is None:
            object.__setattr__(self, "number", default)
            return
        value = self.number
        if isinstance(value, bool) or not isinstance(value, int | float):
            good, wanted = False, "a number"
        elif rule == "level":
            good, wanted = 0.0 < value < 1.0, "between 0 and 1"
        elif rule == "positive":
            good, wanted = 0.0 < value < math.inf, "finite and > 0"
        else:
            good, wanted = value == 0.0, "left out: this loss has no parameter"
        if not good:
            raise ValueError(f"{self.name}: {meaning or 'number'} must be {wanted}, got {value!r}")

    def __repr__(self) -> str:
        has_number = _TABLE[self.name].meaning
        return f"Loss({self.name!r}, {self.number})" if has_number else f"Loss({self.name!r})"

    @property
    def code(self) -> int:
        """The branch of the compiled loss."""
        return _TABLE[self.name].code

    @property
    def curvature(self) -> float:
        """A bound on the second derivative in f, or in the margin, apart from kinks."""
        return _TABLE[self.name].curvature(self.number or 0.0)

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
