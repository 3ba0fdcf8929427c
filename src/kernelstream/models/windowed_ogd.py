"""Online gradient descent in a window: at the cap the oldest point leaves."""

from __future__ import annotations

from kernelstream.core.reduce import WINDOW
from kernelstream.models import _parameters as p
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.models._removal import GradientSteps
from kernelstream.registry import Method, register


class _WindowedOGD(GradientSteps):
    """What classification and regression share.

    Notes
    -----
    For each sample (x, y), with the loss l [1]_::

        f <- (1 - eta alpha) f - eta l'(f(x), y) k(x, .)
        if there are more than max_points points: drop the oldest

    With alpha > 0 old points have shrunk by then: the truncation of [1]_, whose error falls like
    (1 - eta alpha)^max_points.

    References
    ----------
    .. [1] J. Kivinen, A. Smola, R. Williamson, "Online learning with kernels", IEEE Trans. Signal
       Processing 52 (2004).
    """

    alpha: p.Alpha = 1e-3

    _reduce = WINDOW
    _leaves = "the oldest point"


class WindowedOGDClassifier(_WindowedOGD, KernelClassifier):
    """Gradient steps for classes on the newest points.

    See Also
    --------
    OGDClassifier : without a budget.
    NORMAClassifier : the same with a margin that is learned along.

    Examples
    --------
    >>> from kernelstream import WindowedOGDClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = WindowedOGDClassifier(gamma=2.0, max_points=100).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """


class WindowedOGDRegressor(_WindowedOGD, KernelRegressor):
    """Gradient steps for numbers on the newest points.

    See Also
    --------
    OGDRegressor : without a budget.
    NORMARegressor : the same with a tube that is learned along.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import WindowedOGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = WindowedOGDRegressor(gamma=2.0, max_points=500)
    >>> model = model.partial_fit(X, np.sin(2.0 * X[:, 0]))
    >>> bool(model.score(X, np.sin(2.0 * X[:, 0])) > 0.9)
    True
    """


register(
    Method(
        name="windowed-ogd",
        title="Windowed OGD",
        description="gradient steps; at the cap the oldest point leaves",
        paper="Kivinen et al., IEEE Trans. Signal Processing 2004",
        classifier=WindowedOGDClassifier,
        regressor=WindowedOGDRegressor,
        try_first=("gamma", "eta0", "max_points"),
    )
)
