"""What an estimator has learned: a function on stored points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.kernel import Rows
from kernelstream.expansion import KernelExpansion, expand
from kernelstream.kernels import Kernel
from kernelstream.models import _validation as check


class LearnedFunction:
    """Points, weights and values of the function."""

    # Supplied by the estimator.
    _state: Any
    _fitted: Any
    _outputs: Any
    kernel_: Kernel

    @property
    def _live_weights(self) -> NDArray[np.float64]:
        """(M, outputs): the averaged weights where there are any, else the current ones."""
        state, outputs = self._fitted(), self._outputs
        weights = state.weights[:, : state.order].T
        if weights.shape[1] > outputs:
            return weights[:, outputs:].copy()
        return weights * state.status[0]["scale"]

    @property
    def dictionary_(self) -> NDArray[np.float64]:
        """(M, p): the stored points."""
        state = self._fitted()
        return state.points[:, : state.order].T.copy()

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """(outputs, M): the weights of the stored points."""
        return self._live_weights.T.copy()

    @property
    def model_order_(self) -> int:
        """Number of stored points, M."""
        return self._fitted().order

    @property
    def n_seen_(self) -> int:
        """Samples consumed, without those that wait."""
        return int(self._fitted().status[0]["seen"])

    @property
    def error_spent_(self) -> float:
        """Sum over all steps of the Hilbert norm error made by compression."""
        return float(self._fitted().status[0]["error_spent"])

    @property
    def expansion_(self) -> KernelExpansion:
        """The learned function as a value."""
        weights = self._live_weights
        if self._outputs == 1:
            weights = weights[:, 0]
        return KernelExpansion(self.kernel_, self.dictionary_, weights)

    def _usable(self, X: Any) -> Rows:
        """Samples that the function can be evaluated at."""
        self._fitted()
        return check.check_samples(self, X)

    def _values(self, rows: Rows) -> NDArray[np.float64]:
        return expand(self.kernel_, rows, self._state, self._live_weights)
