"""Passive-aggressive learning with a kernel (PA-I and PA-II)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from kernelstream.core.direct import PASSIVE_AGGRESSIVE, PASSIVE_AGGRESSIVE_SQUARED
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.models._removal import UnbudgetedEstimator
from kernelstream.parameters import Number, Whole
from kernelstream.registry import Method, register
from kernelstream.search import LogRange


class _KernelPA(UnbudgetedEstimator):
    """What classification and regression share.

    Notes
    -----
    For each sample (x, y) with the loss l, the derivative g of l and q = |g|^2 k(x, x) [1]_::

        PA-I:   tau = min(C, l / q)
        PA-II:  tau = l / (q + 1 / (2 C))
        f <- f - tau g k(x, .)

    The loss is the hinge, max(0, 1 - y f(x)), with more than two classes that of the margin f_y -
    f_r to the best other class, of which |g|^2 = 2; of numbers max(0, |y - f(x)| - epsilon). A
    sample's weight multiplies C. The method has no budget: ``max_points`` is a cap for safety, at
    which the oldest points leave.

    References
    ----------
    .. [1] K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, "Online
       passive-aggressive algorithms", JMLR 7 (2006).
    """

    C: Annotated[
        float,
        Number(above=0.0),
        LogRange(0.01, 10.0),
        "Aggressiveness: how far a single sample may move the function.",
    ] = 1.0
    variant: Annotated[
        int, Whole(1, 2), "1: steps of at most C (PA-I); 2: softer steps (PA-II)."
    ] = 1

    def _choices(self) -> dict[str, Any]:
        rules = {1: PASSIVE_AGGRESSIVE, 2: PASSIVE_AGGRESSIVE_SQUARED}
        return {"direct": rules[self.variant], "aggressiveness": self.C}

    def _overflow_cure(self) -> str:
        return f"C={self.C} or the sample_weight is too large for these targets."


class KernelPAClassifier(_KernelPA, KernelClassifier):
    """Classes of a stream: the smallest step that gives each sample a margin of 1.

    See Also
    --------
    KernelPARegressor : the same for numbers.

    Examples
    --------
    >>> from kernelstream import KernelPAClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = KernelPAClassifier(gamma=2.0, C=0.1).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    loss: ClassVar[Any] = "hinge"  # type: ignore[misc]


class KernelPARegressor(_KernelPA, KernelRegressor):
    """Numbers of a stream: the smallest step that brings each sample within epsilon.

    See Also
    --------
    KernelPAClassifier : the same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KernelPARegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = KernelPARegressor(gamma=2.0).partial_fit(X, np.sin(2.0 * X[:, 0]))
    >>> bool(model.score(X, np.sin(2.0 * X[:, 0])) > 0.95)
    True
    """

    epsilon: Annotated[float, Number(least=0.0), "Errors up to this size count as none."] = 0.1

    loss: ClassVar[Any] = "epsilon_insensitive"  # type: ignore[misc]

    def _choices(self) -> dict[str, Any]:
        return {**super()._choices(), "loss_number": self.epsilon}


register(
    Method(
        name="pa",
        title="Kernel passive-aggressive",
        description="the smallest step that makes the sample's loss zero, or less (PA-I, PA-II); "
        "every step is a point",
        paper="Crammer et al., JMLR 2006",
        classifier=KernelPAClassifier,
        regressor=KernelPARegressor,
        try_first=("gamma", "C"),
    )
)
