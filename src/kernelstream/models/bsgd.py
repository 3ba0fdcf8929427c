"""Budgeted stochastic gradient descent (BSGD)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from kernelstream.core.reduce import SMALLEST
from kernelstream.models._classifier import KernelClassifier
from kernelstream.models._removal import PegasosSteps
from kernelstream.registry import Method, register

#: How room is made, by ``policy``: a rule of ``core/reduce``, and which point leaves in words.
_POLICIES = {"removal": (SMALLEST, "the point that contributes least")}


class BSGDClassifier(PegasosSteps, KernelClassifier):
    """Pegasos on a budget: at the cap the point that contributes least makes room.

    See Also
    --------
    PegasosClassifier : the same without a budget.
    NPBSGDClassifier : the budget grows with the stream, by chance.

    Notes
    -----
    Step t of a sample (x, y) [1]_, with H = max(0, 1 - y f(x))::

        f <- (1 - 1/t) f
        if H > 0: f <- f + y / (alpha t) k(x, .)
        if there are more than max_points points:
            removal:  drop the one of least |w|^2 k(x, x)

    With removal, the hinge loss and k(x, x) = 1 all weights are of the same size; among those that
    tie the oldest leaves. With more than two classes a step adds to its own class and subtracts
    from the best other one, as in the paper.

    References
    ----------
    .. [1] Z. Wang, K. Crammer, S. Vucetic, "Breaking the curse of kernelization: budgeted
       stochastic gradient descent for large-scale SVM training", JMLR 13 (2012).

    Examples
    --------
    >>> from kernelstream import BSGDClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = BSGDClassifier(gamma=2.0, max_points=100).partial_fit(X, y)
    >>> model.model_order_
    100
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    policy: Annotated[
        Literal["removal"],
        "How room is made at the cap.",
        """``removal`` drops the point that contributes least to the norm of the function.""",
    ] = "removal"

    loss: ClassVar[Any] = "hinge"  # type: ignore[misc]

    @property
    def _reduce(self) -> int:  # type: ignore[override]
        return _POLICIES[self.policy][0]

    @property
    def _leaves(self) -> str:  # type: ignore[override]
        return _POLICIES[self.policy][1]


register(
    Method(
        name="bsgd",
        title="BSGD",
        description="Pegasos' steps; at the cap the point that contributes least makes room",
        paper="Wang et al., JMLR 2012",
        classifier=BSGDClassifier,
        try_first=("gamma", "alpha", "max_points"),
    )
)
