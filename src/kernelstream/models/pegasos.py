"""Pegasos with a kernel."""

from __future__ import annotations

from typing import Any, ClassVar

from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._removal import PegasosSteps, UnbudgetedEstimator
from kernelstream.registry import Method, register


class PegasosClassifier(UnbudgetedEstimator, PegasosSteps, KernelClassifier):
    """Gradient steps 1 / (alpha t) for a support vector machine; every point stays.

    See Also
    --------
    BSGDClassifier : the same on a budget.
    AVMClassifier : the same steps on the core points of cells.

    Notes
    -----
    Step t of a sample (x, y), y in {-1, 1} [1]_::

        f <- (1 - 1/t) f
        if y f(x) < 1 (before the step): f <- f + y / (alpha t) k(x, .)

    The projection onto the ball of radius 1 / sqrt(alpha), optional in the paper, is left out. With
    more than two classes a step adds to its own class and subtracts from the best other one. The
    method has no budget: ``max_points`` is a cap for safety, at which the oldest points leave.

    References
    ----------
    .. [1] S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter, "Pegasos: primal estimated
       sub-gradient solver for SVM", Mathematical Programming 127 (2011).

    Examples
    --------
    >>> from kernelstream import PegasosClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = PegasosClassifier(gamma=2.0).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.97)
    True
    """

    loss: ClassVar[Any] = "hinge"  # type: ignore[misc]


register(
    Method(
        name="pegasos",
        title="Kernel Pegasos",
        description="steps 1 / (alpha t) on the hinge loss; every sample within the margin becomes "
        "a point",
        paper="Shalev-Shwartz et al., Mathematical Programming 2011",
        classifier=PegasosClassifier,
        try_first=("gamma", "alpha"),
    )
)
