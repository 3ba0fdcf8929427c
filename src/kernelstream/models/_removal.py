"""Methods without a factor of the kernel matrix: where there is a cap, points leave for good."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from kernelstream.core.direct import GRADIENT
from kernelstream.core.grow import APPEND
from kernelstream.core.kernel import Rows
from kernelstream.core.reduce import RANDOM
from kernelstream.core.reduce.removal import keep_newest, remove_random
from kernelstream.core.settings import make_settings
from kernelstream.kernels import Kernel, first_gamma, make_kernel
from kernelstream.losses import make_loss
from kernelstream.models import _parameters as p
from kernelstream.models._base import KernelEstimator
from kernelstream.models._words import CAP_COSTS, count_of


class RemovingEstimator(KernelEstimator):
    """Any sample that the step has a coefficient for becomes a point.

    A method says which loss it has, and which rule of ``core/reduce`` makes room.
    """

    kernel: p.Kernel = "rbf"
    gamma: p.Gamma = "auto"
    degree: p.Degree = 3
    coef0: p.Coef0 = 1.0
    max_points: p.MaxPoints = 1000
    max_bytes: p.MaxBytes = None

    loss: ClassVar[Any] = "perceptron"
    batch_size: ClassVar[int] = 1  # type: ignore[misc]
    average: ClassVar[bool] = False
    _reduce: ClassVar[int]  # see core/reduce
    _leaves: ClassVar[str]  # which point leaves, in words

    _factored = False
    _lasting = ("kernel", "gamma", "degree", "coef0")
    _needs_its_points = "its points leave by a rule of their own"

    def _settings(self, outputs: int, most: int) -> NDArray[Any]:
        return make_settings(
            direct=GRADIENT, grow=APPEND, reduce=self._reduce, outputs=outputs, compressed=outputs,
            loss=make_loss(self.loss).code, initial_step=1.0, batch=1, most=most,
        )  # fmt: skip

    def _make_kernel(self, rows: Rows) -> Kernel:
        return make_kernel(self.kernel, first_gamma(self.gamma, rows), self.degree, self.coef0)

    def _shrink(self, limit: int) -> None:
        super()._shrink(limit)
        state = self._state
        if state.status[0]["oldest"] and state.order < self._most(limit):  # a larger cap
            keep_newest(state, state.order)

    def _drop_points(self, most: int) -> None:
        if self._reduce == RANDOM:
            while self._state.order > most:
                remove_random(self._state)
        else:
            keep_newest(self._state, most)

    def _overflow_cure(self) -> str:
        return "the sample_weight is too large."

    def _cap_effect(self, cap: str) -> str:
        times = count_of(self.n_forced_, "time")
        return f"{cap} made room {times} by removing {self._leaves}. {CAP_COSTS}"

    def _approximation(self) -> tuple[str, str]:
        return "Removed points", (
            "The norms of what the removed points contributed to the function, summed: a bound on "
            f"how far it moved. Where there was no room {self._leaves} left."
        )
