"""KLMS: the kernel least-mean-square filter."""

from __future__ import annotations

from kernelstream.core.filters import GROWING
from kernelstream.models import _parameters as p
from kernelstream.models._filters import KernelFilter
from kernelstream.models._flat import MaxPoints
from kernelstream.registry import Method, register


class KLMSRegressor(KernelFilter):
    """The kernel least-mean-square filter, on a window.

    See Also
    --------
    QKLMSRegressor : nearby samples share a point.
    KNLMSRegressor : steps are normalised, and points must differ.

    Notes
    -----
    Every sample becomes a point whose weight is the step times its error, eta (y - f(x)): a
    gradient step of the squared error, without regularisation [1]_. The method has no cap; where
    there is one here the oldest point leaves.

    References
    ----------
    .. [1] W. Liu, P. P. Pokharel, J. C. Principe, "The kernel least-mean-square algorithm", IEEE
       Transactions on Signal Processing 56 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KLMSRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = KLMSRegressor(gamma=2.0, max_points=500).partial_fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.95)
    True
    """

    eta0: p.Eta0 = 0.2
    max_points: MaxPoints = 1000
    _rule = GROWING
    _at_the_cap = "the oldest point left"

    def _numbers(self) -> dict[str, float]:
        return {"step": self.eta0}


register(
    Method(
        name="klms",
        title="KLMS",
        description="every sample becomes a point, weighted by its error; the oldest leave",
        paper="Liu et al., IEEE TSP 2008",
        regressor=KLMSRegressor,
        try_first=("gamma", "eta0", "max_points"),
    )
)
