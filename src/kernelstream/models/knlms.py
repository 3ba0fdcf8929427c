"""KNLMS: the normalised kernel least-mean-square filter with the coherence criterion."""

from __future__ import annotations

from typing import Annotated

from kernelstream.core.filters import NORMALISED
from kernelstream.models._filters import KernelFilter
from kernelstream.models._flat import MaxPoints
from kernelstream.parameters import Number
from kernelstream.registry import Method, register
from kernelstream.search import Choices, LogRange


class KNLMSRegressor(KernelFilter):
    """The normalised kernel least-mean-square filter: points that differ, weights that all move.

    See Also
    --------
    KLMSRegressor : only the newest point gets a weight.
    KRLSRegressor : least squares instead of steps.

    Notes
    -----
    A sample becomes a point if its coherence with every point, |k(x, d)| / sqrt(k(x, x) k(d, d)),
    is at most mu. Then, with k the kernel values of x at the points, all weights move by
    eta / (epsilon + |k|^2) (y - f(x)) k [1]_. The paper's dictionary is finite by itself; at a cap
    here no more points come in, and the weights still move.

    References
    ----------
    .. [1] C. Richard, J. C. M. Bermudez, P. Honeine, "Online prediction of time series data with
       kernels", IEEE Transactions on Signal Processing 57 (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KNLMSRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = KNLMSRegressor(gamma=1.0).partial_fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.95), model.model_order_ < 40
    (True, True)
    """

    eta0: Annotated[
        float,
        Number(above=0.0, most=2.0),
        LogRange(0.02, 1.0),
        "The share of its error by which a sample moves the function (eta in the paper).",
    ] = 0.2
    coherence: Annotated[
        float,
        Number(least=0.0, below=1.0),
        Choices(0.3, 0.5, 0.7, 0.9, 0.99),
        "Samples that cohere more with a point do not become one (mu in the paper).",
    ] = 0.7
    ridge: Annotated[
        float,
        Number(above=0.0, most=1e6),
        "Added to |k|^2, so that small kernel values move less (epsilon in the paper).",
    ] = 0.01
    max_points: MaxPoints = 256
    _rule = NORMALISED
    _at_the_cap = "a sample could not become a point"

    def _numbers(self) -> dict[str, float]:
        return {"step": self.eta0, "threshold": self.coherence, "ridge": self.ridge}


register(
    Method(
        name="knlms",
        title="KNLMS",
        description="samples that differ become points; all weights move, in normalised steps",
        paper="Richard et al., IEEE TSP 2009",
        regressor=KNLMSRegressor,
        try_first=("gamma", "eta0", "coherence", "max_points"),
    )
)
