"""Online gradient descent (OGD) with a kernel."""

from __future__ import annotations

from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.models._removal import GradientSteps, UnbudgetedEstimator
from kernelstream.registry import Method, register


class _OGD(UnbudgetedEstimator, GradientSteps):
    """What classification and regression share.

    Notes
    -----
    For each sample (x, y), with the loss l [1]_::

        f <- (1 - eta alpha) f - eta l'(f(x), y) k(x, .)

    Samples whose derivative is zero become no points. The method has no budget: ``max_points`` is
    a cap for safety, at which the oldest points leave. With the cap as a budget it is windowed OGD.

    References
    ----------
    .. [1] J. Kivinen, A. Smola, R. Williamson, "Online learning with kernels", IEEE Trans. Signal
       Processing 52 (2004).
    """


class OGDClassifier(_OGD, KernelClassifier):
    """Gradient steps for classes in the space of functions; every point stays.

    See Also
    --------
    OGDRegressor : the same for numbers.
    WindowedOGDClassifier : with a budget, at which the oldest point leaves.
    BOGDClassifier : with a budget, at which one leaves by chance and the others grow.
    POLKClassifier : the same steps, and points leave where that changes the function least.

    Examples
    --------
    >>> from kernelstream import OGDClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = OGDClassifier(gamma=2.0).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.97)
    True
    """


class OGDRegressor(_OGD, KernelRegressor):
    """Gradient steps for numbers in the space of functions; every point stays.

    See Also
    --------
    OGDClassifier : the same for classes.
    WindowedOGDRegressor : with a budget, at which the oldest point leaves.
    POLKRegressor : the same steps, and points leave where that changes the function least.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import OGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = OGDRegressor(gamma=2.0).partial_fit(X, np.sin(2.0 * X[:, 0]))
    >>> bool(model.score(X, np.sin(2.0 * X[:, 0])) > 0.95)
    True
    """


register(
    Method(
        name="ogd",
        title="Kernel OGD",
        description="gradient steps; every sample with a gradient becomes a point",
        paper="Kivinen et al., IEEE Trans. Signal Processing 2004",
        classifier=OGDClassifier,
        regressor=OGDRegressor,
        try_first=("gamma", "eta0"),
    )
)
