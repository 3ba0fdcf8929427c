"""Random features with AVM's steps."""

from __future__ import annotations

from dataclasses import field

from kernelstream.models import _parameters as p
from kernelstream.models._linear_features import (
    InverseSteps,
    LinearOnFeaturesClassifier,
    LinearOnFeaturesRegressor,
)
from kernelstream.models._random_features import RandomFeatures
from kernelstream.registry import Method, register


class _RandomFeature(RandomFeatures, InverseSteps):
    """What classification and regression share.

    Notes
    -----
    The features of FOGD with the steps of AVM and Pegasos, 1 / (alpha t), of which each leaves
    (t - 1) / t of the function: a comparison in which only the features differ from AVM's core
    points [1]_.

    References
    ----------
    .. [1] T. Le, T. D. Nguyen, V. Nguyen, D. Phung, "Approximation vector machines for large-scale
       online learning", Journal of Machine Learning Research 18 (2017).
    """


class RandomFeatureClassifier(_RandomFeature, LinearOnFeaturesClassifier):
    """Random Fourier features with steps that become smaller as 1 / (alpha t).

    See Also
    --------
    FOGDClassifier : constant steps.
    AVMClassifier : the same steps, on core points.

    Examples
    --------
    >>> from kernelstream import RandomFeatureClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = RandomFeatureClassifier(gamma=2.0, random_state=0).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """


class RandomFeatureRegressor(_RandomFeature, LinearOnFeaturesRegressor):
    """Random Fourier features with steps that become smaller as 1 / (alpha t).

    See Also
    --------
    FOGDRegressor : constant steps.

    Notes
    -----
    The first steps are huge, and with a small ``alpha`` the squared error, whose derivative is not
    bounded, overflows: the default is a loss with a bounded one.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import RandomFeatureRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = RandomFeatureRegressor(gamma=1.0, alpha=0.01, random_state=0)
    >>> bool(model.partial_fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.9)
    True
    """

    loss: p.NumberLoss = field(default="huber", kw_only=False)


register(
    Method(
        name="rf-sgd",
        title="Random features with AVM's steps",
        description="random Fourier features with steps 1 / (alpha t)",
        paper="Le et al., JMLR 2017",
        classifier=RandomFeatureClassifier,
        regressor=RandomFeatureRegressor,
        try_first=("gamma", "alpha", "max_points"),
    )
)
