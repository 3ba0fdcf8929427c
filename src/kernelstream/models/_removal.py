"""Methods without a factor of the kernel matrix: where there is a cap, points leave for good."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, ClassVar

from numpy.typing import NDArray

from kernelstream.core.direct import GRADIENT
from kernelstream.core.grow import APPEND
from kernelstream.core.kernel import Rows
from kernelstream.core.reduce import (
    FORGET,
    GROWING,
    RANDOM,
    SMALLEST,
    UNIFORM,
    WEIGHTED,
    WINDOW,
)
from kernelstream.core.reduce.removal import keep_newest, remove_random
from kernelstream.core.reduce.smallest import remove_smallest
from kernelstream.core.settings import make_settings
from kernelstream.errors import CapWarning, callers_level
from kernelstream.losses import make_loss
from kernelstream.models import _parameters as p
from kernelstream.models._single import SingleSteps
from kernelstream.models._words import CAP_COSTS, cap_note, count_of
from kernelstream.parameters import Number
from kernelstream.schedules import StepSize
from kernelstream.search import LogRange


class RemovingEstimator(SingleSteps):
    """Any sample that the step has a coefficient for becomes a point.

    A method says which loss it has, which steps, and which rule of ``core/reduce`` makes room.
    """

    max_points: p.MaxPoints = 1000

    _leaves: ClassVar[Any]  # which point leaves, in words

    _factored = False
    _needs_its_points = "its points leave by a rule of their own"

    def _choices(self) -> dict[str, Any]:
        """The numbers of its steps, by the names of ``core/settings.py``: here the perceptron's."""
        return {"initial_step": 1.0}

    def _settings(self, outputs: int, most: int) -> NDArray[Any]:
        loss = make_loss(self.loss)
        values = {
            "direct": GRADIENT, "grow": APPEND, "reduce": self._reduce,
            "outputs": outputs, "compressed": outputs,
            "loss": loss.code, "loss_number": loss.number or 0.0, "batch": 1, "most": most,
        }  # fmt: skip
        return make_settings(**{**values, **self._choices()})

    def _shrink(self, limit: int) -> None:
        super()._shrink(limit)
        state, ring = self._state, self._reduce in (WINDOW, FORGET)
        if ring and state.status[0]["oldest"] and state.order < self._most(limit):  # a larger cap
            keep_newest(state, state.order)

    def _drop_points(self, most: int) -> None:
        if self._reduce in (WINDOW, FORGET):
            keep_newest(self._state, most)
            return
        by_chance = self._reduce in (RANDOM, UNIFORM, WEIGHTED)
        while self._state.order > most:
            (remove_random if by_chance else remove_smallest)(self._state)
        if self._reduce not in (SMALLEST, GROWING):  # the others' points are no ring
            self._state.status[0]["oldest"] = 0

    def _cap_effect(self, cap: str) -> str:
        times = count_of(self.n_forced_, "time")
        return f"{cap} made room {times} by removing {self._leaves}. {CAP_COSTS}"

    def _approximation(self) -> tuple[str, str]:
        return "Removed points", (
            "The norms of what the removed points contributed to the function, summed: a bound on "
            f"how far it moved. Where there was no room {self._leaves} left."
        )


class UnbudgetedEstimator(RemovingEstimator):
    """Methods that keep every point: with a cap, from which on the oldest leave, and a warning."""

    max_points: Annotated[
        p.MaxPoints,
        """The method itself has no cap. Where this one is reached the oldest points leave, and a
        ``CapWarning`` says so.""",
    ] = 10_000

    _reduce = WINDOW
    _leaves = "the oldest point"
    _warned = False

    def _start(self, X: Any, rows: Rows) -> None:
        super()._start(X, rows)
        self._warned = False

    def _run(self, *samples: Any) -> None:
        super()._run(*samples)
        if self.n_forced_ and not self._warned:
            self._warned = True
            note = f"{cap_note(self)}. n_forced_ goes on counting, without further warnings"
            warnings.warn(note, CapWarning, stacklevel=callers_level())

    def _cap_effect(self, cap: str) -> str:
        return f"{super()._cap_effect(cap)}, and this method is one without a cap"


class GradientSteps(RemovingEstimator):
    """Steps f <- (1 - eta alpha) f - eta l'(f(x), y) k(x, .) of a step size that is chosen."""

    alpha: p.Alpha = 1e-6
    learning_rate: p.NamedRate = "constant"
    eta0: p.Eta0 = 0.2

    _lasting = ("loss", *RemovingEstimator._lasting)

    def _check_combination(self) -> None:
        super()._check_combination()
        if not self.eta0 * self.alpha < 1.0:
            raise ValueError(
                f"eta0 * alpha must be below 1 for the step to shrink the function, got "
                f"{self.eta0} * {self.alpha}"
            )

    def _choices(self) -> dict[str, Any]:
        decay = {"inverse_time": self.alpha * self.eta0, "inverse_sqrt": 1.0}
        step = StepSize(self.learning_rate, self.eta0, decay.get(self.learning_rate, 0.0))
        return _of_steps(step, self.alpha)

    def _overflow_cure(self) -> str:
        return (
            f"the step size eta0={self.eta0} is too large for this kernel and these targets. "
            "Choose a smaller eta0, scale the data and the target, or use a loss with a bounded "
            "derivative such as 'huber'."
        )


class PegasosSteps(RemovingEstimator):
    """Steps 1 / (alpha t), which leave (t - 1) / t of the function."""

    alpha: Annotated[
        float,
        Number(above=0.0),
        LogRange(1e-6, 1e-1),
        "Regularisation (lambda in the paper): steps are 1 / (alpha t).",
    ] = 1e-3

    def _choices(self) -> dict[str, Any]:
        step = StepSize("inverse_time", 1.0 / self.alpha, 1.0)
        return _of_steps(step, self.alpha)

    def _overflow_cure(self) -> str:
        return (
            f"the steps 1 / (alpha t) with alpha={self.alpha} are too large: take a larger alpha."
        )


def _of_steps(step: StepSize, alpha: float) -> dict[str, Any]:
    return {
        "regularisation": alpha, "schedule": step.code, "initial_step": step.eta0,
        "decay": step.decay,
    }  # fmt: skip
