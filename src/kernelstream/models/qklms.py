"""QKLMS: the quantised kernel least-mean-square filter."""

from __future__ import annotations

from typing import Annotated, Any

from kernelstream.core.filters import QUANTISED
from kernelstream.models import _parameters as p
from kernelstream.models._filters import KernelFilter
from kernelstream.models._flat import MaxPoints
from kernelstream.parameters import Number
from kernelstream.registry import Method, register
from kernelstream.search import LogRange


class QKLMSRegressor(KernelFilter):
    """The kernel least-mean-square filter on quantised inputs.

    See Also
    --------
    KLMSRegressor : every sample becomes a point.
    AVMRegressor : the same cells with other steps.

    Notes
    -----
    With e = y - f(x) the nearest point gets eta e more if it is not farther than the radius;
    otherwise the sample becomes a point of weight eta e [1]_. At the cap, which the paper does not
    have, the nearest point gets it however far it is.

    References
    ----------
    .. [1] B. Chen, S. Zhao, P. Zhu, J. C. Principe, "Quantized kernel least mean square
       algorithm", IEEE Transactions on Neural Networks and Learning Systems 23 (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import QKLMSRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = QKLMSRegressor(gamma=2.0, radius=0.3).partial_fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.9), model.model_order_ < 20
    (True, True)
    """

    eta0: p.Eta0 = 0.2
    max_points: MaxPoints = 256
    radius: Annotated[
        float,
        Number(least=0.0, most=1e150),
        LogRange(0.05, 1.0, unit="distance"),
        "Samples as close as this share a point (epsilon in the paper).",
    ] = 0.5
    _rule = QUANTISED
    _at_the_cap = "a sample went to a point beyond the radius"

    def _numbers(self) -> dict[str, float]:
        return {"step": self.eta0, "threshold": self.radius * self.radius}

    @property
    def _program(self) -> Any:
        return self.kernel_.program._replace(needs_squares=True)  # to find the nearest point


register(
    Method(
        name="qklms",
        title="QKLMS",
        description="samples within a radius share a point, whose weight follows the errors",
        paper="Chen et al., IEEE TNNLS 2012",
        regressor=QKLMSRegressor,
        try_first=("gamma", "eta0", "radius", "max_points"),
    )
)
