"""Budgeted stochastic gradient descent (BSGD)."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from kernelstream.compression import komp
from kernelstream.core.grow import APPEND, SPAN
from kernelstream.core.reduce import MERGE, PROJECT_SMALLEST, SMALLEST
from kernelstream.core.reduce.komp import BLOCK, GREEDY, prune_block
from kernelstream.core.reduce.merging import fill_table
from kernelstream.kernels import Gaussian, make_kernel
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._removal import PegasosSteps
from kernelstream.registry import Method, register
from kernelstream.search import Choices

#: How room is made, by ``policy``: a rule of ``core/reduce``, and which point leaves in words.
_POLICIES = {
    "removal": (SMALLEST, "the point that contributes least"),
    "projection": (PROJECT_SMALLEST, "the point that contributes least, projected on the others"),
    "merging": (MERGE, "the point of least weight, merged with another"),
}
#: Ratios of weights, and kernel values, in the table of where to merge two points.
_TABLE_SIZE = 256


@cache
def _places() -> NDArray[np.float64]:
    table = np.empty((_TABLE_SIZE, _TABLE_SIZE))
    fill_table(table)
    return table


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
            removal:     drop the one of least |w|^2 k(x, x)
            projection:  project the same one on all others
            merging:     replace the one of least |w|, m, and another, n, by one between them

    With removal, the hinge loss and k(x, x) = 1 all weights are of the same size; among those that
    tie the oldest leaves. With more than two classes a step adds to its own class and subtracts
    from the best other one, as in the paper.

    Merging is for the Gaussian kernel. The new point is z = h x_m + (1 - h) x_n, where h maximises
    |w_m| k(x_m, z) + |w_n| k(x_n, z), its weights are w_m k(x_m, z) + w_n k(x_n, z), and n is the
    point for which that changes the function least, of those on the same side as m (a positive
    product of the weights); where there is none, m leaves. The paper does not say what to do with
    points on different sides: BudgetedSVM looks for z beyond the two. A sample that the points
    span to eight digits is projected on them at once, with ``policy="projection"``.

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
        Literal["removal", "projection", "merging"],
        Choices("removal", "projection", "merging"),
        "How room is made at the cap: drop the least point, project it, or merge it with another.",
        """``removal`` drops the point that contributes least to the norm of the function.
        ``projection`` keeps what the other points can express of it, in a time that grows with
        their square. ``merging`` makes a new point of two; the Gaussian kernel only.""",
    ] = "removal"
    search: Annotated[
        Literal["golden", "table"],
        "Of ``policy='merging'``: where to merge is searched for, or looked up in a table: faster.",
    ] = "table"

    loss: ClassVar[Any] = "hinge"  # type: ignore[misc]
    _lasting = (*PegasosSteps._lasting, "policy")

    def _check_combination(self) -> None:
        super()._check_combination()
        kernel = make_kernel(self.kernel, 1.0, self.degree, self.coef0)
        if self.policy == "merging" and not isinstance(kernel, Gaussian):
            raise ValueError(
                f"policy='merging' is for the Gaussian kernel, got kernel={self.kernel!r}: take "
                "kernel='rbf', or policy='projection'"
            )

    @property
    def _factored(self) -> bool:  # type: ignore[override]
        return self.policy == "projection"

    def _choices(self) -> dict[str, Any]:
        return {**super()._choices(), "grow": SPAN if self._factored else APPEND}

    def _table(self, samples: int) -> NDArray[np.float64]:
        looked_up = self.policy == "merging" and self.search == "table"
        return _places() if looked_up else super()._table(samples)

    def _drop_points(self, most: int) -> None:
        if self._factored:
            prune_block(self._state, self._outputs, 0.0, 0.0, most, GREEDY, BLOCK)
        else:
            super()._drop_points(most)

    def _watch(self) -> None:
        komp.watch(self._state, self.kernel_, self._outputs)

    @property
    def residual_(self) -> float:
        """``max |S S^T K - I|`` of the factor that ``policy="projection"`` keeps."""
        if not self._factored:
            raise AttributeError("only policy='projection' keeps a factor of the kernel matrix")
        return komp.residual(self._fitted(), self.kernel_)

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
        description="Pegasos' steps; at the cap the least point is dropped, projected or merged",
        paper="Wang et al., JMLR 2012",
        classifier=BSGDClassifier,
        try_first=("gamma", "alpha", "policy", "max_points"),
    )
)
