"""Sliding-window KRLS."""

from __future__ import annotations

from kernelstream.core.filters import WINDOW
from kernelstream.models import _parameters as p
from kernelstream.models._filters import KernelFilter, Ridge
from kernelstream.registry import Method, register


class SlidingKRLSRegressor(KernelFilter):
    """Regularised kernel least squares over the last samples.

    See Also
    --------
    FixedBudgetKRLSRegressor : the sample leaves that the others predict best.
    KRLSTRegressor : forgets slowly instead.

    Notes
    -----
    The last ``max_points`` samples are the points, their weights inverse(K + c I) y: exactly the
    kernel ridge regression of the window, brought up to date with each sample [1]_. The inverse is
    held as a square root, where rounding does not add up.

    References
    ----------
    .. [1] S. Van Vaerenbergh, J. Via, I. Santamaria, "A sliding-window kernel RLS algorithm and
       its application to nonlinear channel identification", ICASSP 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import SlidingKRLSRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = SlidingKRLSRegressor(gamma=1.0, max_points=60).partial_fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.99), model.model_order_
    (True, 60)
    """

    ridge: Ridge = 0.01
    n_epochs: p.Epochs = 1
    _rule = WINDOW
    _at_the_cap = "the oldest sample left, as the method has it"

    def _numbers(self) -> dict[str, float]:
        return {"ridge": self.ridge}


register(
    Method(
        name="sw-krls",
        title="Sliding-window KRLS",
        description="kernel ridge regression of the last samples",
        paper="Van Vaerenbergh et al., ICASSP 2006",
        regressor=SlidingKRLSRegressor,
        try_first=("gamma", "ridge", "max_points"),
    )
)
