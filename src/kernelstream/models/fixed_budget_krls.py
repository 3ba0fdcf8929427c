"""Fixed-budget KRLS."""

from __future__ import annotations

from kernelstream.core.filters import IMPORTANCE
from kernelstream.models import _parameters as p
from kernelstream.models._filters import KernelFilter, Ridge
from kernelstream.registry import Method, register


class FixedBudgetKRLSRegressor(KernelFilter):
    """Regularised kernel least squares over the samples that matter most.

    See Also
    --------
    SlidingKRLSRegressor : the oldest sample leaves.
    KRLSTRegressor : what points have taught stays when they leave.

    Notes
    -----
    The points are samples with their targets, the weights w = inverse(K + c I) y. When there is
    one too many, the sample leaves that the others predict best: the one with the least a
    posteriori error |w_j| / inverse(K + c I)_jj [1]_. The paper can also let stored targets follow
    new samples nearby; as in the authors' program that is left out (mu = 0).

    References
    ----------
    .. [1] S. Van Vaerenbergh, I. Santamaria, W. Liu, J. C. Principe, "Fixed-budget kernel
       recursive least-squares", ICASSP 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import FixedBudgetKRLSRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = FixedBudgetKRLSRegressor(gamma=1.0, max_points=20).partial_fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.99), model.model_order_
    (True, 20)
    """

    ridge: Ridge = 0.01
    n_epochs: p.Epochs = 1
    _rule = IMPORTANCE
    _at_the_cap = "the sample left that the others predict best, as the method has it"

    def _numbers(self) -> dict[str, float]:
        return {"ridge": self.ridge}


register(
    Method(
        name="fb-krls",
        title="Fixed-budget KRLS",
        description="kernel ridge regression of the samples that others predict worst",
        paper="Van Vaerenbergh et al., ICASSP 2010",
        regressor=FixedBudgetKRLSRegressor,
        try_first=("gamma", "ridge", "max_points"),
    )
)
