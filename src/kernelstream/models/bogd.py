"""Bounded online gradient descent (BOGD)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from kernelstream.core.reduce import UNIFORM, WEIGHTED
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._removal import GradientSteps
from kernelstream.parameters import Number
from kernelstream.registry import Method, register


class BOGDClassifier(GradientSteps, KernelClassifier):
    """Gradient steps on a budget: at the cap a point leaves by chance and the others grow.

    See Also
    --------
    WindowedOGDClassifier : the oldest point leaves, and nothing grows.
    RBPClassifier : the perceptron with points that leave by chance.

    Notes
    -----
    For each sample (x, y), with the loss l and B = max_points [1]_::

        if l'(f(x), y) = 0: f <- (1 - eta alpha) f
        else:
            if there are B points: draw one of them, i, with probability p_i, and drop it
                w_j <- w_j / (1 - p_j) for the others, cut at +- clip eta
            f <- (1 - eta alpha) f - eta l'(f(x), y) k(x, .)

    uniform: p_i = 1 / B. weighted (BOGD++): p_i = 1 - s |w_i| sqrt(k(x_i, x_i)), s such that they
    sum to 1: what contributes little is more likely to leave. Negative p_i count as 0 and the
    others are scaled, of which the paper says nothing. On average the function stays what it was.
    With more than two classes |w_i| is the norm of a point's weights, and each of them is cut.

    References
    ----------
    .. [1] P. Zhao, J. Wang, P. Wu, R. Jin, S. Hoi, "Fast bounded online gradient descent algorithms
       for scalable kernel-based online learning", ICML 2012.

    Examples
    --------
    >>> from kernelstream import BOGDClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = BOGDClassifier(gamma=2.0, max_points=100, random_state=0).partial_fit(X, y)
    >>> model.model_order_
    100
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    sampling: Annotated[
        Literal["uniform", "weighted"],
        "Which points leave: any, or more likely those that contribute little.",
    ] = "weighted"
    clip: Annotated[
        float,
        Number(least=1.0),
        "Weights are cut at this many times eta0 where points leave (gamma in the paper).",
    ] = 4.0

    learning_rate: ClassVar[str] = "constant"  # type: ignore[misc]
    _leaves = "a point drawn at random, in whose stead the others grew"

    @property
    def _reduce(self) -> int:  # type: ignore[override]
        return UNIFORM if self.sampling == "uniform" else WEIGHTED

    def _choices(self) -> dict[str, Any]:
        return {**super()._choices(), "largest": self.clip}


register(
    Method(
        name="bogd",
        title="BOGD",
        description="gradient steps; at the cap a point leaves by chance, and the others grow",
        paper="Zhao et al., ICML 2012",
        classifier=BOGDClassifier,
        try_first=("gamma", "eta0", "max_points"),
    )
)
