"""The Forgetron, self-tuned."""

from __future__ import annotations

from typing import Any, ClassVar

from kernelstream.core.reduce import FORGET
from kernelstream.models import _parameters as p
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._removal import RemovingEstimator
from kernelstream.registry import Method, register


class ForgetronClassifier(RemovingEstimator, KernelClassifier):
    """The kernel perceptron on a budget: weights shrink, and at the cap the oldest point leaves.

    See Also
    --------
    RBPClassifier : a point drawn at random leaves, and nothing shrinks.

    Notes
    -----
    A mistake, y f(x) <= 0, becomes a point of weight y. Where that makes one point too many, all
    weights are multiplied by phi, and the oldest point, by then a small one, leaves. phi is the
    largest number in (0, 1] with Psi(phi s, phi mu) + Q <= 15/32 M, where Psi(a, b) = a^2 + 2 a -
    2 a b, s is the weight of the oldest point, mu its margin, M the mistakes so far and Q the sum
    of Psi so far: the mistakes are then bounded as for a function of limited norm [1]_. The paper
    has two classes and kernels with k(x, x) <= 1; with more classes a point has its weight for its
    class, minus that for the best other one, and a^2 counts for both.

    References
    ----------
    .. [1] O. Dekel, S. Shalev-Shwartz, Y. Singer, "The Forgetron: a kernel-based perceptron on a
       budget", SIAM J. Computing 37 (2008).

    Examples
    --------
    >>> from kernelstream import ForgetronClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = ForgetronClassifier(gamma=2.0, max_points=100).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    kernel: p.IsotropicKernel = "rbf"

    loss: ClassVar[Any] = "perceptron"  # type: ignore[misc]
    _reduce = FORGET
    _leaves = "the oldest point, once all weights were shrunk"


register(
    Method(
        name="forgetron",
        title="Forgetron",
        description="mistakes become points; at the cap weights shrink and the oldest leaves",
        paper="Dekel et al., SIAM J. Computing 2008",
        classifier=ForgetronClassifier,
        try_first=("gamma", "max_points"),
    )
)
