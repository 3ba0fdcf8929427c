"""KRLS with approximate linear dependence (ALD)."""

from __future__ import annotations

from typing import Annotated

from kernelstream.core.filters import DEPENDENCE
from kernelstream.models._filters import KernelFilter
from kernelstream.parameters import Number
from kernelstream.registry import Method, register
from kernelstream.search import LogRange


class KRLSRegressor(KernelFilter):
    """Kernel recursive least squares: points that are not spanned, least squares over all samples.

    See Also
    --------
    KRLSTRegressor : regularised, and it forgets.
    SlidingKRLSRegressor : least squares over the last samples.

    Notes
    -----
    With a = inverse(K) k the best combination of the points for x and delta = k(x, x) - k'a, what
    is left, x becomes a point if delta > nu; otherwise it is replaced by that combination. The
    weights are the least squares of all samples so replaced, without regularisation and without
    forgetting: P = inverse(A'A), q = P a / (1 + a'P a), P <- P - q a'P, weights <- weights +
    inverse(K) q (y - f(x)) [1]_. Here both inverses are held as square roots, where rounding does
    not add up. At the cap no more points come in.

    References
    ----------
    .. [1] Y. Engel, S. Mannor, R. Meir, "The kernel recursive least-squares algorithm", IEEE
       Transactions on Signal Processing 52 (2004).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KRLSRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = KRLSRegressor(gamma=1.0).partial_fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.999), model.model_order_ < 30
    (True, True)
    """

    novelty: Annotated[
        float,
        Number(least=1e-8, most=1.0),
        LogRange(1e-4, 0.5),
        "Samples of which the points leave more than this become points (nu in the paper).",
    ] = 1e-3
    _rule = DEPENDENCE
    _at_the_cap = "a sample could not become a point"

    def _numbers(self) -> dict[str, float]:
        return {"threshold": self.novelty}


register(
    Method(
        name="krls",
        title="KRLS-ALD",
        description="least squares over all samples, on points that do not span one another",
        paper="Engel et al., IEEE TSP 2004",
        regressor=KRLSRegressor,
        try_first=("gamma", "novelty", "max_points"),
    )
)
