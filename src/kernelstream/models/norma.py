"""NORMA: online learning with kernels in a window, with a margin that is learned along."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from kernelstream.core.direct import ADAPTIVE_MARGIN
from kernelstream.core.direct.adaptive_margin import WIDTH
from kernelstream.core.reduce import WINDOW
from kernelstream.models import _parameters as p
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.models._removal import GradientSteps, RemovingEstimator
from kernelstream.parameters import Number
from kernelstream.registry import Method, register
from kernelstream.search import Choices


class _NORMA(GradientSteps):
    """What classification and regression share.

    Notes
    -----
    For each sample (x, y) [1]_, with rho and epsilon 0 at first. Classes, y in {-1, 1}::

        f <- (1 - eta alpha) f
        if y f(x) <= rho: f <- f + eta y k(x, .);  rho <- rho - eta (1 - nu)
        else:             rho <- rho + eta nu

    Numbers, with r = y - f(x)::

        f <- (1 - eta alpha) f
        if |r| > epsilon: f <- f + eta sign(r) k(x, .);  epsilon <- epsilon + eta (1 - nu)
        else:             epsilon <- epsilon - eta nu

    Then, with more than max_points points, the oldest leaves. f(x) is the value before the step;
    an epsilon below 0 counts as 0. With more than two classes y f(x) is f_y - f_r, r the best other
    class, and a step adds to y what it subtracts from r. The paper's offset b is left out. With a
    fixed margin, or the squared error, NORMA is windowed OGD. For classes and a constant step f and
    rho are proportional to eta0: only eta0 * alpha matters.

    References
    ----------
    .. [1] J. Kivinen, A. Smola, R. Williamson, "Online learning with kernels", IEEE Trans. Signal
       Processing 52 (2004).
    """

    nu: Annotated[
        float,
        Number(above=0.0, below=1.0),
        Choices(0.01, 0.05, 0.1, 0.3, 0.5, 0.8),
        "The share of the samples that is to make a step: inside the margin, outside the tube.",
    ] = 0.2
    alpha: p.Alpha = 1e-3

    _reduce = WINDOW
    _leaves = "the oldest point"
    _lasting = RemovingEstimator._lasting  # the loss is the method's own

    def _choices(self) -> dict[str, Any]:
        return {**super()._choices(), "direct": ADAPTIVE_MARGIN, "nu": self.nu}

    @property
    def _width(self) -> float:
        return float(self._fitted().status[0]["own"][WIDTH])


class NORMAClassifier(_NORMA, KernelClassifier):
    """Classes of a stream by its newest points, with a margin that is learned along.

    See Also
    --------
    WindowedOGDClassifier : the same with a fixed margin.

    Examples
    --------
    >>> from kernelstream import NORMAClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = NORMAClassifier(gamma=2.0, max_points=300).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    loss: ClassVar[Any] = "perceptron"  # type: ignore[misc]

    @property
    def margin_(self) -> float:
        """rho: samples of at most this margin make a step."""
        return self._width


class NORMARegressor(_NORMA, KernelRegressor):
    """Numbers of a stream by its newest points, with a tube that is learned along.

    See Also
    --------
    WindowedOGDRegressor : the same with any loss.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import NORMARegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = NORMARegressor(gamma=2.0).partial_fit(X, np.sin(2.0 * X[:, 0]))
    >>> bool(model.score(X, np.sin(2.0 * X[:, 0])) > 0.9)
    True
    """

    loss: ClassVar[Any] = "epsilon_insensitive"  # type: ignore[misc]

    @property
    def epsilon_(self) -> float:
        """epsilon: samples that are off by more make a step."""
        return max(0.0, self._width)


register(
    Method(
        name="norma",
        title="NORMA",
        description="gradient steps, a margin learned along; at the cap the oldest point leaves",
        paper="Kivinen et al., IEEE Trans. Signal Processing 2004",
        classifier=NORMAClassifier,
        regressor=NORMARegressor,
        try_first=("gamma", "alpha", "nu"),
    )
)
