"""The random budget perceptron (RBP)."""

from __future__ import annotations

from typing import Any, ClassVar

from kernelstream.core.reduce import RANDOM
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._removal import RemovingEstimator
from kernelstream.registry import Method, register


class RBPClassifier(RemovingEstimator, KernelClassifier):
    """The kernel perceptron on a budget: at the cap a point drawn at random leaves.

    See Also
    --------
    ForgetronClassifier : the oldest point leaves, after all weights were shrunk.
    POLKClassifier : points leave where that changes the function least.

    Notes
    -----
    A sample that is not on the right side, y f(x) <= 0, becomes a point of weight y; all others
    change nothing. With more than two classes its weight is 1 for its own class and -1 for the
    best other one. Where that makes one point too many, one of the others leaves, each with the
    same probability [1]_.

    References
    ----------
    .. [1] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget perceptron", Machine Learning 69 (2007).

    Examples
    --------
    >>> from kernelstream import RBPClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = RBPClassifier(gamma=2.0, max_points=100, random_state=0).partial_fit(X, y)
    >>> model.model_order_
    100
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    loss: ClassVar[Any] = "perceptron"  # type: ignore[misc]
    _reduce = RANDOM
    _leaves = "a point drawn at random"


register(
    Method(
        name="rbp",
        title="Random budget perceptron",
        description="mistakes become points; at the cap one drawn at random leaves",
        paper="Cavallanti et al., Machine Learning 2007",
        classifier=RBPClassifier,
        try_first=("gamma", "max_points"),
    )
)
