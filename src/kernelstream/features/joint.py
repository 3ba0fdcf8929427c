"""Features and a linear learner on them, learned together (Section VI of OK-FEB)."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any

from kernelstream.docstrings import documented
from kernelstream.features._base import FeatureLearner
from kernelstream.features._parameters import Components, MaxPoints
from kernelstream.losses import make_loss
from kernelstream.models import _parameters as p
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.parameters import Number, Words
from kernelstream.registry import Method, register
from kernelstream.schedules import STEP_NAMES, StepSize

_WeightAlpha = Annotated[
    float,
    Number(least=0.0),
    "Regularisation of the linear learner (its lambda).",
    "Must satisfy eta0 * weight_alpha < 1.",
]
_LearningRate = Annotated[
    str,
    Words(*STEP_NAMES),
    """Steps of the linear learner: eta0, eta0 / (1 + weight_alpha eta0 t), which is Pegasos' 1 /
    (lambda t) after a start, or eta0 / sqrt(1 + t).""",
]
_Eta0 = Annotated[float, Number(above=0.0), "The (first) step of the linear learner."]


class _Joint(FeatureLearner):
    """The parameters of the linear learner.

    Notes
    -----
    The learned function is an element of the subspace, f(x) = <g, P phi(x)> = w.z. Each sample is
    predicted, the linear learner makes its step in g, then the subspace moves and g is projected on
    the new one: no basis is involved, so nothing that was learned is thrown off, and
    ``error_spent_`` says what the projections cost. How the subspace is
    learned: see the notes of :class:`OnlineKernelFeatures`, which follow [1]_.
    """

    n_components: Components = field(default=20, kw_only=False)
    max_points: MaxPoints = 60
    weight_alpha: _WeightAlpha = 1e-4
    learning_rate: _LearningRate = "inverse_time"
    eta0: _Eta0 = 1.0

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

    dual_coef_ = documented(
        FeatureLearner.dual_coef_,
        "(outputs, B): the learned function as an expansion on the stored samples.",
    )
    error_spent_ = documented(
        FeatureLearner.error_spent_,
        "Sum over all updates of what the function lost when the subspace moved, in the RKHS.",
    )

    def _overflow_cure(self) -> str:
        return (
            f"the step size eta0={self.eta0} is too large for this kernel and these targets. "
            "Choose a smaller eta0, or scale the data and the target."
        )


class OnlineKernelFeatureClassifier(_Joint, KernelClassifier):
    """Classification with kernel features and a linear learner, learned together.

    See Also
    --------
    OnlineKernelFeatureRegressor : the same for numbers.
    OnlineKernelFeatures : the features alone.

    Examples
    --------
    >>> from kernelstream import make_multidist
    >>> from kernelstream.features import OnlineKernelFeatureClassifier
    >>> X, y, X_test, y_test = make_multidist(3000, n_test=1000, random_state=1)
    >>> model = OnlineKernelFeatureClassifier(15, max_points=30)
    >>> for start in range(0, 3000, 500):  # the stream arrives in pieces
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    >>> model.model_order_
    30
    """

    loss: Annotated[p.ClassLoss, "``hinge`` is Pegasos' step."] = "hinge"


class OnlineKernelFeatureRegressor(_Joint, KernelRegressor):
    """Regression with kernel features and a linear learner, learned together.

    See Also
    --------
    OnlineKernelFeatureClassifier : the same for classes.
    OnlineKernelFeatures : the features alone.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import OnlineKernelFeatureRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-3.0, 3.0, (3000, 1))
    >>> y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=3000)
    >>> model = OnlineKernelFeatureRegressor(10, max_points=20).partial_fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    loss: Annotated[
        p.NumberLoss,
        """``squared_error`` is LMS. No step is longer than 1 / |z|^2, beyond which it would
        overshoot the sample.""",
    ] = "squared_error"
    weight_alpha: _WeightAlpha = 1e-6
    learning_rate: _LearningRate = "constant"
    eta0: _Eta0 = 0.3


register(
    Method(
        name="ok-feb",
        title="OK-FEB",
        description="a few features per sample whose products approximate the kernel, learned from "
        "the stream on a budget; alone or with a linear learner",
        paper="Sheikholeslami et al., IEEE TSP 2018",
        classifier=OnlineKernelFeatureClassifier,
        regressor=OnlineKernelFeatureRegressor,
        names=("features.OnlineKernelFeatures", "features.KernelFeatures"),
        command="kernelstream features",
    )
)
