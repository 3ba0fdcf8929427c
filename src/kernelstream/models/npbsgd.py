"""Nonparametric budgeted stochastic gradient descent (NPBSGD)."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any

from kernelstream.core.reduce import GROWING
from kernelstream.losses import Loss, make_loss
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.models._removal import PegasosSteps, RemovingEstimator
from kernelstream.parameters import Number, Whole, Words
from kernelstream.registry import Method, register
from kernelstream.search import LogRange


class _NPBSGD(PegasosSteps):
    """What classification and regression share.

    Notes
    -----
    Step t of a sample (x, y), with the loss l, B the budget so far [1]_::

        f <- (1 - 1/t) f - l'(f(x), y) / (alpha t) k(x, .)
        if there are more than B points, with probability min(1, growth_delay / t):
            drop the one of least |w|^2 k(x, x)
        otherwise: B <- B + 1

    So the budget is kept at first and grows the more often the longer the stream is, up to
    ``max_points``. This is the authors' program [2]_ with its scheme "Removal"; its other scheme
    projects the point that leaves on the first five points. There t begins with 2, beta is given as
    a share of the samples, and the squared error is one of the losses.

    References
    ----------
    .. [1] T. Le, V. Nguyen, T. D. Nguyen, D. Phung, "Nonparametric budgeted stochastic gradient
       descent", AISTATS 2016.
    .. [2] https://github.com/ntienvu/NonparametricBudgetedSGD
    """

    initial_points: Annotated[int, Whole(1, 1_000_000), "Points before the model may grow."] = 300
    growth_delay: Annotated[
        float,
        Number(least=0.0),
        """beta in the paper: up to so many samples the model does not grow; at sample t a point too
        many stays with probability 1 - growth_delay / t.""",
    ] = 2000.0

    _reduce = GROWING
    _leaves = "the point that contributes least"
    _lasting = ("loss", *RemovingEstimator._lasting)
    _smaller_with = (("a smaller", "initial_points"), ("a larger", "growth_delay"))

    def _choices(self) -> dict[str, Any]:
        return {**super()._choices(), "start": self.initial_points, "delay": self.growth_delay}


class NPBSGDClassifier(_NPBSGD, KernelClassifier):
    """Classes of a stream with a budget that grows with it.

    See Also
    --------
    BSGDClassifier : the same with a fixed budget.

    Examples
    --------
    >>> from kernelstream import NPBSGDClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = NPBSGDClassifier(gamma=2.0, initial_points=50, random_state=0).partial_fit(X, y)
    >>> model.model_order_ > 50
    True
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """


class NPBSGDRegressor(_NPBSGD, KernelRegressor):
    """Numbers of a stream with a budget that grows with it.

    See Also
    --------
    NPBSGDClassifier : the same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import NPBSGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = NPBSGDRegressor(gamma=2.0, random_state=0).partial_fit(X, np.sin(2.0 * X[:, 0]))
    >>> bool(model.score(X, np.sin(2.0 * X[:, 0])) > 0.9)
    True
    """

    loss: Annotated[
        str | Loss,
        Words("absolute_error", "epsilon_insensitive", "huber", "quantile"),
        "``absolute_error``, ``epsilon_insensitive``, ``huber`` or ``quantile``.",
        """The first steps 1 / (alpha t) are huge: the slope of the loss must be bounded, as that of
        the squared error is not. Standardise the target.""",
    ] = field(default="huber", kw_only=False)
    alpha: Annotated[
        float,
        Number(above=0.0),
        LogRange(1e-4, 1e-1),
        "Regularisation (lambda in the paper): steps are 1 / (alpha t).",
    ] = 3e-3

    def _check_combination(self) -> None:
        super()._check_combination()
        if make_loss(self.loss).name == "squared_error":
            raise ValueError(
                "the slope of squared_error has no bound, and the first steps 1 / (alpha t) would "
                "make the function grow without one: take loss='huber'"
            )


register(
    Method(
        name="npbsgd",
        title="NPBSGD",
        description="Pegasos' steps; beyond a budget the point that contributes least leaves or, "
        "more and more often, the budget grows",
        paper="Le et al., AISTATS 2016",
        classifier=NPBSGDClassifier,
        regressor=NPBSGDRegressor,
        try_first=("gamma", "alpha", "initial_points"),
    )
)
