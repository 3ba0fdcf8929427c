"""Parsimonious online learning with kernels (POLK)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from kernelstream.compression import komp
from kernelstream.core.direct import GRADIENT
from kernelstream.core.grow import SPAN
from kernelstream.core.grow.later import catch_up
from kernelstream.core.kernel import Rows
from kernelstream.core.reduce import KOMP
from kernelstream.core.reduce.komp import BLOCK, GREEDY, RANDOM, prune_block
from kernelstream.core.settings import make_settings
from kernelstream.core.threads import one_thread
from kernelstream.kernels import KERNEL_NAMES, Kernel, first_gamma, make_kernel
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Loss, make_loss
from kernelstream.models._base import KernelEstimator
from kernelstream.models._classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.schedules import STEP_NAMES, ErrorBudget, StepSize

_PARAMETERS = """
    kernel : str or Kernel, default="rbf"
        ``rbf`` (or ``gaussian``), ``laplacian``, ``matern32``, ``matern52``, ``poly`` (or
        ``polynomial``), ``linear`` (no intercept: ``poly`` of degree 1 has one), or any
        :class:`~kernelstream.kernels.Kernel`, sums and products included.
    gamma : float, "auto" or "scale", default="auto"
        Of a kernel given by name. ``auto`` is 1 / features, right for standardised data;
        ``scale`` is 1 / (features * variance) of the first call's samples, then frozen.
    degree, coef0 : int and float, default=3 and 1.0
        Of the polynomial kernel.
    alpha : float, default=1e-6
        Regularisation (lambda in the paper). Must satisfy eta0 * alpha < 1.
    learning_rate : {{"constant", "inverse_time", "inverse_sqrt"}}, default="constant"
        eta0, eta0 / (1 + alpha eta0 t) or eta0 / sqrt(1 + t), t counting steps. A constant
        step keeps following a stream that changes.
    eta0 : float, default={eta0}
        The (first) step size (eta in the paper).
    parsimony : float or "square", default={parsimony}
        The error that each step may make to save points: eps = parsimony * eta^(3/2), or
        eps = eta^2 for ``"square"``. Larger: fewer points.
    epsilon : float, optional
        That error given directly, in the norm of the RKHS; overrules ``parsimony``. A sample
        that the stored points span to eight digits is merged into them even where this costs
        more (at most 1e-4 of its weight); ``error_spent_`` includes it.
    max_points : int or None, default=1000
        Never hold more points than this, whatever the error.
    max_bytes : int, optional
        Never hold more memory than this, whatever the error.
    batch_size : int, default=1
        Samples per step. An unfinished batch waits until it is full, or for ``flush()``: until
        then it is not learned from. Larger batches want a larger ``eta0``.
    average : bool or int, default=False
        Predict with an average of the iterates in which recent ones weigh more (True), or
        with one that forgets beyond this many steps. It lives on the same points. Much better
        where the stream does not change, worse where it changes fast.
    projection : {{"greedy", "random"}}, default="greedy"
        Remove the cheapest point (KOMP), or points drawn at random (Remark 6): cheaper
        steps, a worse model.
    n_epochs : int, default=5
        Passes over the data in ``fit``; ``partial_fit`` always makes one.
    shuffle : bool, default=True
        Whether ``fit`` visits the samples in a random order; ``partial_fit`` never does.
    random_state : int, RandomState or None, default=None
        For the order in ``fit`` and for random projections.
"""

_ATTRIBUTES = """
    dictionary_ : (M, p) array
        The stored points.
    dual_coef_ : (outputs, M) array
        Their weights.
    model_order_ : int
        Their number, M.
    n_seen_ : int
        Samples consumed.
    n_waiting_ : int
        Samples of an unfinished batch; nothing was learned from them yet.
    nbytes_ : int
        Bytes held, at most 8 c (p + C + 4 + c) plus a record and the unfinished batch, where
        the capacity c is at most 4 max(16 + batch_size, M + batch_size) and C counts the
        outputs (twice with ``average``).
    error_spent_ : float
        Sum over all steps of the error made by compression, in the norm of the RKHS.
    n_forced_ : int
        Points removed beyond the budget, because of a cap.
    residual_ : float
        How far the factor of the inverse kernel matrix is from exact.
    expansion_ : KernelExpansion
        The learned function as a value.
    kernel_ : Kernel
        The kernel with all its numbers.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
"""

_NOTES = """
    Each step is f~ = (1 - eta alpha) f - (eta / B) sum_b l'(f(x_b), y_b) k(x_b, .), followed by
    kernel orthogonal matching pursuit: points are removed, cheapest first and all weights
    projected anew, while the result stays within eps of f~ in the norm of the RKHS [1]_. With
    a constant step the number of points stays bounded however long the stream is (Theorem 4).
    The inverse kernel matrix is kept as a square root that is only extended or rotated; its
    residual is watched, see ``residual_``.

    References
    ----------
    .. [1] A. Koppel, G. Warnell, E. Stump, A. Ribeiro, "Parsimonious online learning with
       kernels via sparse projections in function space", JMLR 20 (2019).
"""


class _POLK(KernelEstimator):
    """The parameters and the step that classification and regression share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [],
        "kernel": [StrOptions(set(KERNEL_NAMES)), Kernel],
        "gamma": [StrOptions({"auto", "scale"}), Interval(Real, 0.0, None, closed="neither")],
        "degree": [Interval(Integral, 1, 64, closed="both")],
        "coef0": [Interval(Real, 0.0, None, closed="left")],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "learning_rate": [StrOptions(set(STEP_NAMES))],
        "eta0": [Interval(Real, 0.0, None, closed="neither")],
        "parsimony": [Interval(Real, 0.0, None, closed="left"), StrOptions({"square"})],
        "epsilon": [Interval(Real, 0.0, None, closed="left"), None],
        "max_points": [Interval(Integral, 1, 1_000_000, closed="both"), None],
        "max_bytes": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, 1_000_000, closed="both")],
        "average": ["boolean", Interval(Integral, 2, None, closed="left")],
        "projection": [StrOptions({"greedy", "random"})],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }

    _lasting = (*KernelEstimator._lasting, "degree", "coef0")

    def _check_combination(self) -> None:
        super()._check_combination()
        if not self.eta0 * self.alpha < 1.0:
            raise ValueError(
                f"eta0 * alpha must be below 1 for the step to shrink the function, got "
                f"{self.eta0} * {self.alpha}"
            )

    def _settings(self, outputs: int, most: int) -> NDArray[Any]:
        return make_settings(**self._choices(outputs, most))

    def _choices(self, outputs: int, most: int) -> dict[str, Any]:
        """Parts and numbers by the names of ``core/settings.py``."""
        loss = make_loss(self.loss)
        decay = {"inverse_time": self.alpha * self.eta0, "inverse_sqrt": 1.0}
        step = StepSize(self.learning_rate, self.eta0, decay.get(self.learning_rate, 0.0))
        if self.epsilon is not None:
            budget = ErrorBudget("fixed", self.epsilon)
        elif self.parsimony == "square":
            budget = ErrorBudget("square", 1.0)
        else:
            budget = ErrorBudget("three_halves", self.parsimony)
        return {
            "direct": GRADIENT, "grow": SPAN, "reduce": KOMP,
            "outputs": outputs, "compressed": self._projected,
            "loss": loss.code, "loss_number": loss.number or 0.0,
            "regularisation": self.alpha, "schedule": step.code, "initial_step": step.eta0,
            "decay": step.decay, "batch": self.batch_size,
            "averaging": AVERAGING if self.average else 0.0, "horizon": self._horizon(),
            "most": most, "slack": self.slack,
            "budget": budget.code, "budget_number": budget.number,
            "projection": RANDOM if self.projection == "random" else GREEDY,
        }  # fmt: skip

    def _make_kernel(self, rows: Rows) -> Kernel:
        return make_kernel(self.kernel, first_gamma(self.gamma, rows), self.degree, self.coef0)

    def _drop_points(self, most: int) -> None:
        prune_block(self._state, self._outputs, 0.0, 0.0, most, GREEDY, BLOCK)

    def _catch_up(self, limit: int) -> None:
        greedy = RANDOM if self.projection == "random" else GREEDY
        with one_thread():
            catch_up(self._state, self.kernel_.program, self._outputs, self._most(limit), greedy)

    def _watch(self) -> None:
        komp.watch(self._state, self.kernel_, self._outputs)

    def _overflow_cure(self) -> str:
        return (
            f"the step size eta0={self.eta0} is too large for this kernel and these targets. "
            "Choose a smaller eta0, scale the data and the target, or use a loss with a bounded "
            "derivative such as 'huber'."
        )

    @property
    def residual_(self) -> float:
        """``max |S S^T K - I|``: how far the factor of the inverse Gram matrix is from exact."""
        return komp.residual(self._fitted(), self.kernel_)

    def _horizon(self) -> float:
        return np.inf if isinstance(self.average, bool | np.bool_) else float(self.average)


#: The average gives iterate t a weight growing like t^(AVERAGING - 1).
AVERAGING = 4.0


class POLKClassifier(_POLK, KernelClassifier):
    __doc__ = f"""Nonlinear classification of a stream, in bounded memory.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        ``hinge``, ``squared_hinge``, ``smooth_hinge``, ``log_loss`` or ``margin_log_loss``. With
        more than two classes ``hinge`` is Crammer and Singer's and ``log_loss`` the
        multinomial one. ``log_loss`` gives probabilities.
    {_PARAMETERS.strip().format(eta0=0.5, parsimony=0.1)}

    Attributes
    ----------
    classes_ : array
        The labels seen so far, sorted.
    {_ATTRIBUTES.strip()}

    See Also
    --------
    POLKRegressor : the same for numbers.

    Notes
    -----
    {_NOTES.strip()}

    Examples
    --------
    >>> from kernelstream import POLKClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = POLKClassifier()
    >>> for start in range(0, 5000, 500):  # the stream arrives in pieces
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> bool(model.score(X_test, y_test) > 0.97)
    True
    >>> model.model_order_ < 60
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_POLK._parameter_constraints,
        "loss": [StrOptions(set(CLASSIFICATION_LOSSES)), Loss],
    }

    def __init__(
        self,
        loss: str | Loss = "hinge",
        *,
        kernel: str | Kernel = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        alpha: float = 1e-6,
        learning_rate: str = "constant",
        eta0: float = 0.5,
        parsimony: float | str = 0.1,
        epsilon: float | None = None,
        max_points: int | None = 1000,
        max_bytes: int | None = None,
        batch_size: int = 1,
        average: bool | int = False,
        projection: str = "greedy",
        n_epochs: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.parsimony = parsimony
        self.epsilon = epsilon
        self.max_points = max_points
        self.max_bytes = max_bytes
        self.batch_size = batch_size
        self.average = average
        self.projection = projection
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state


class POLKRegressor(_POLK, KernelRegressor):
    __doc__ = f"""Nonlinear regression on a stream, in bounded memory.

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        ``squared_error``, ``absolute_error``, ``epsilon_insensitive``, ``huber`` or ``quantile``;
        ``Loss("quantile", 0.9)`` for another level. Standardise the target (scikit-learn's
        ``TransformedTargetRegressor``): steps and budgets are in its units, and the function
        has no intercept.
    {_PARAMETERS.strip().format(eta0=0.2, parsimony=0.02)}

    Attributes
    ----------
    {_ATTRIBUTES.strip()}

    See Also
    --------
    POLKClassifier : the same for classes.

    Notes
    -----
    {_NOTES.strip()}

    Examples
    --------
    >>> import numpy as np
from numpy.typing import NDArray
    >>> from kernelstream import POLKRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-3.0, 3.0, (5000, 1))
    >>> y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=5000)
    >>> model = POLKRegressor().partial_fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.model_order_ < 40
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_POLK._parameter_constraints,
        "loss": [StrOptions(set(REGRESSION_LOSSES)), Loss],
    }

    def __init__(
        self,
        loss: str | Loss = "squared_error",
        *,
        kernel: str | Kernel = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        alpha: float = 1e-6,
        learning_rate: str = "constant",
        eta0: float = 0.2,
        parsimony: float | str = 0.02,
        epsilon: float | None = None,
        max_points: int | None = 1000,
        max_bytes: int | None = None,
        batch_size: int = 1,
        average: bool | int = False,
        projection: str = "greedy",
        n_epochs: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.parsimony = parsimony
        self.epsilon = epsilon
        self.max_points = max_points
        self.max_bytes = max_bytes
        self.batch_size = batch_size
        self.average = average
        self.projection = projection
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state
