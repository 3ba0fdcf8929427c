"""The kernel perceptron."""

from __future__ import annotations

from typing import Any, ClassVar

from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._removal import UnbudgetedEstimator
from kernelstream.registry import Method, register


class KernelPerceptronClassifier(UnbudgetedEstimator, KernelClassifier):
    """The perceptron with a kernel: every mistake becomes a point.

    See Also
    --------
    RBPClassifier : with a budget, at which a point drawn at random leaves.
    ForgetronClassifier : with a budget, at which the oldest point leaves once all were shrunk.

    Notes
    -----
    For each sample (x, y), y in {-1, 1} [1]_::

        if y f(x) <= 0: f <- f + y k(x, .)

    With more than two classes a mistake adds k(x, .) to its own class and subtracts it from the
    best other one. The method has no budget: ``max_points`` is a cap for safety, at which the
    oldest points leave.

    References
    ----------
    .. [1] Y. Freund, R. Schapire, "Large margin classification using the perceptron algorithm",
       Machine Learning 37 (1999).

    Examples
    --------
    >>> from kernelstream import KernelPerceptronClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = KernelPerceptronClassifier(gamma=2.0).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    loss: ClassVar[Any] = "perceptron"  # type: ignore[misc]


register(
    Method(
        name="perceptron",
        title="Kernel perceptron",
        description="every mistake becomes a point",
        paper="Freund and Schapire, Machine Learning 1999",
        classifier=KernelPerceptronClassifier,
        try_first=("gamma",),
    )
)
