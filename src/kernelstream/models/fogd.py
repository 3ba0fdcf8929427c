"""FOGD: online gradient descent on random Fourier features."""

from __future__ import annotations

from kernelstream.models._linear_features import (
    ConstantSteps,
    LinearOnFeaturesClassifier,
    LinearOnFeaturesRegressor,
)
from kernelstream.models._random_features import RandomFeatures
from kernelstream.registry import Method, register


class _FOGD(RandomFeatures, ConstantSteps):
    """What classification and regression share.

    Notes
    -----
    The kernel is replaced once and for all by the products of 2 D features, cosines and sines of
    D random projections; the model is linear in them and takes gradient steps [1]_. Time and
    memory of a step depend on nothing but D. The paper's features are not divided by sqrt(D),
    which is a matter of the step size; here they are, so that ``eta0`` means the same as
    elsewhere.

    References
    ----------
    .. [1] J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu, "Large scale online kernel learning",
       Journal of Machine Learning Research 17 (2016).
    """


class FOGDClassifier(_FOGD, LinearOnFeaturesClassifier):
    """Online gradient descent on random Fourier features.

    See Also
    --------
    NOGDClassifier : features from points of the stream.
    RandomFeatureClassifier : the same features with steps that become smaller.

    Examples
    --------
    >>> from kernelstream import FOGDClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = FOGDClassifier(gamma=2.0, max_points=200, random_state=0).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """


class FOGDRegressor(_FOGD, LinearOnFeaturesRegressor):
    """Online gradient descent on random Fourier features.

    See Also
    --------
    NOGDRegressor : features from points of the stream.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import FOGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = FOGDRegressor(gamma=1.0, random_state=0).partial_fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.95)
    True
    """


register(
    Method(
        name="fogd",
        title="FOGD",
        description="gradient steps on random Fourier features: the same time for every sample",
        paper="Lu et al., JMLR 2016",
        classifier=FOGDClassifier,
        regressor=FOGDRegressor,
        try_first=("gamma", "eta0", "max_points"),
    )
)
