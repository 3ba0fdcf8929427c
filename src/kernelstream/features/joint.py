"""Features and a linear learner on them, learned together (Section VI of OK-FEB)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kernelstream.features._base import NOTES, PARAMETERS, FeatureLearner
from kernelstream.kernels import Kernel
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Loss, make_loss
from kernelstream.models._classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.schedules import STEP_NAMES, StepSize

_LEARNER_PARAMETERS = """
    weight_alpha : float, default={weight_alpha}
        Regularisation of the linear learner (its lambda). Must satisfy eta0 * weight_alpha < 1.
    learning_rate : {{"constant", "inverse_time", "inverse_sqrt"}}, default={learning_rate!r}
        Steps of the linear learner: eta0, eta0 / (1 + weight_alpha eta0 t), which is Pegasos' 1 /
        (lambda t) after a start, or eta0 / sqrt(1 + t).
    eta0 : float, default={eta0}
        The (first) step.
    n_epochs : int, default=5
        Passes over the data in ``fit``; ``partial_fit`` always makes one.
    shuffle : bool, default=True
        Whether ``fit`` visits the samples in a random order; ``partial_fit`` never does.
    random_state : int, RandomState or None, default=None
        For the order in ``fit``.
"""

_ATTRIBUTES = """
    dictionary_, factor_, rank_, fit_errors_, censoring_rate_, n_seen_, n_updates_, nbytes_
        As of :class:`OnlineKernelFeatures`.
    dual_coef_ : (outputs, B) array
        The learned function as an expansion on the stored samples; also ``expansion_``.
    error_spent_ : float
        Sum over all updates of what the function lost when the subspace moved, in the RKHS.
"""

_JOINT_NOTES = """
    The learned function is an element of the subspace, f(x) = <g, P phi(x)> = w.z. Each sample is
    foretold, the linear learner makes its step in g, then the subspace moves and g is projected on
    the new one: no basis is involved, so nothing that was learned is thrown off, and
    ``error_spent_`` says what the projections cost.
"""


class _Joint(FeatureLearner):
    """The parameters of the linear learner."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FeatureLearner._parameter_constraints,
        "loss": [],
        "weight_alpha": [Interval(Real, 0.0, None, closed="left")],
        "learning_rate": [StrOptions(set(STEP_NAMES))],
        "eta0": [Interval(Real, 0.0, None, closed="neither")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
    }
    _lasting = (*FeatureLearner._lasting, "loss")

    def _check_combination(self) -> None:
        super()._check_combination()
        if not self.eta0 * self.weight_alpha < 1.0:
            raise ValueError(
                f"eta0 * weight_alpha must be below 1 for the step to shrink the weights, got "
                f"{self.eta0} * {self.weight_alpha}"
            )

    def _learner(self) -> tuple[Any, ...]:
        loss = make_loss(self.loss)
        decay = {"inverse_time": self.weight_alpha * self.eta0, "inverse_sqrt": 1.0}
        step = StepSize(self.learning_rate, self.eta0, decay.get(self.learning_rate, 0.0))
        return (
            loss.code, float(loss.number or 0.0), float(self.weight_alpha),
            step.code, float(step.eta0), float(step.decay),
        )  # fmt: skip

    def _overflow_cure(self) -> str:
        return (
            f"the step size eta0={self.eta0} is too large for this kernel and these targets. "
            "Choose a smaller eta0, or scale the data and the target."
        )


class OnlineKernelFeatureClassifier(_Joint, KernelClassifier):
    __doc__ = f"""Classification with kernel features and a linear learner, learned together.

    Parameters
    ----------
    {PARAMETERS.strip().format(components=20, budget=60)}
    loss : str or Loss, default="hinge"
        Of the linear learner: ``hinge`` (Pegasos), ``log_loss`` (gives probabilities),
        ``squared_hinge``, ``smooth_hinge`` or ``margin_log_loss``.
    {_LEARNER_PARAMETERS.strip().format(weight_alpha=1e-4, learning_rate="inverse_time", eta0=1.0)}

    Attributes
    ----------
    classes_ : array
        The labels seen so far, sorted.
    {_ATTRIBUTES.strip()}

    See Also
    --------
    OnlineKernelFeatureRegressor : the same for numbers.
    OnlineKernelFeatures : the features alone.

    Notes
    -----
    {_JOINT_NOTES.strip()}

    {NOTES.strip()}

    Examples
    --------
    >>> from kernelstream import make_multidist
    >>> from kernelstream.features import OnlineKernelFeatureClassifier
    >>> X, y, X_test, y_test = make_multidist(3000, n_test=1000, random_state=1)
    >>> model = OnlineKernelFeatureClassifier(15, budget=30)
    >>> for start in range(0, 3000, 500):  # the stream arrives in pieces
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    >>> model.model_order_
    30
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_Joint._parameter_constraints,
        "loss": [StrOptions(set(CLASSIFICATION_LOSSES)), Loss],
    }

    def __init__(
        self,
        n_components: int = 20,
        *,
        budget: int | str | None = 60,
        kernel: str | Kernel = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        alpha: float = 1e-3,
        solver: str = "auto",
        step_size: str = "inverse",
        censoring: Any = None,
        removal: str = "greedy",
        forgetting: float = 1.0,
        basis: str = "auto",
        loss: str | Loss = "hinge",
        weight_alpha: float = 1e-4,
        learning_rate: str = "inverse_time",
        eta0: float = 1.0,
        n_epochs: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.budget = budget
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.solver = solver
        self.step_size = step_size
        self.censoring = censoring
        self.removal = removal
        self.forgetting = forgetting
        self.basis = basis
        self.loss = loss
        self.weight_alpha = weight_alpha
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state


class OnlineKernelFeatureRegressor(_Joint, KernelRegressor):
    __doc__ = f"""Regression with kernel features and a linear learner, learned together.

    Parameters
    ----------
    {PARAMETERS.strip().format(components=20, budget=60)}
    loss : str or Loss, default="squared_error"
        Of the linear learner: ``squared_error`` (LMS), ``absolute_error``,
        ``epsilon_insensitive``, ``huber`` or ``quantile``. Standardise the target. No step is
        longer than 1 / |z|^2, beyond which it would overshoot the sample.
    {_LEARNER_PARAMETERS.strip().format(weight_alpha=1e-6, learning_rate="constant", eta0=0.3)}

    Attributes
    ----------
    {_ATTRIBUTES.strip()}

    See Also
    --------
    OnlineKernelFeatureClassifier : the same for classes.
    OnlineKernelFeatures : the features alone.

    Notes
    -----
    {_JOINT_NOTES.strip()}

    {NOTES.strip()}

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import OnlineKernelFeatureRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-3.0, 3.0, (3000, 1))
    >>> y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=3000)
    >>> model = OnlineKernelFeatureRegressor(10, budget=20).partial_fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_Joint._parameter_constraints,
        "loss": [StrOptions(set(REGRESSION_LOSSES)), Loss],
    }

    def __init__(
        self,
        n_components: int = 20,
        *,
        budget: int | str | None = 60,
        kernel: str | Kernel = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        alpha: float = 1e-3,
        solver: str = "auto",
        step_size: str = "inverse",
        censoring: Any = None,
        removal: str = "greedy",
        forgetting: float = 1.0,
        basis: str = "auto",
        loss: str | Loss = "squared_error",
        weight_alpha: float = 1e-6,
        learning_rate: str = "constant",
        eta0: float = 0.3,
        n_epochs: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.budget = budget
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.solver = solver
        self.step_size = step_size
        self.censoring = censoring
        self.removal = removal
        self.forgetting = forgetting
        self.basis = basis
        self.loss = loss
        self.weight_alpha = weight_alpha
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state
