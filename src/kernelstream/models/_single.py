"""Methods that learn sample by sample, with any kernel: what they share."""

from __future__ import annotations

from typing import ClassVar

from kernelstream.core.kernel import Rows
from kernelstream.kernels import Kernel, first_gamma, make_kernel
from kernelstream.models import _parameters as p
from kernelstream.models._base import KernelEstimator


class SingleSteps(KernelEstimator):
    """One sample a step, no average; a cap in points or bytes."""

    kernel: p.Kernel = "rbf"
    gamma: p.Gamma = "auto"
    degree: p.Degree = 3
    coef0: p.Coef0 = 1.0
    max_points: p.MaxPoints = 300
    max_bytes: p.MaxBytes = None

    batch_size: ClassVar[int] = 1  # type: ignore[misc]
    average: ClassVar[bool] = False

    _lasting: ClassVar[tuple[str, ...]] = ("kernel", "gamma", "degree", "coef0")

    def _make_kernel(self, rows: Rows) -> Kernel:
        return make_kernel(self.kernel, first_gamma(self.gamma, rows), self.degree, self.coef0)

    def _overflow_cure(self) -> str:
        return "the sample_weight is too large."
