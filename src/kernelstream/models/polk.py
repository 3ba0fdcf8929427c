"""Parsimonious online learning with kernels (POLK)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelstream.compression import komp
from kernelstream.core.grow import SPAN
from kernelstream.core.grow.later import catch_up
from kernelstream.core.kernel import Rows
from kernelstream.core.reduce.komp import BLOCK, GREEDY, RANDOM, prune_block
from kernelstream.core.schedule import FIXED
from kernelstream.core.settings import make_settings
from kernelstream.core.threads import one_thread
from kernelstream.docstrings import documented
from kernelstream.kernels import Kernel, first_gamma, make_kernel
from kernelstream.losses import make_loss
from kernelstream.models import _parameters as p
from kernelstream.models._base import KernelEstimator
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.registry import Method, register
from kernelstream.schedules import Parsimony, Steps, StepSize


class _POLK(KernelEstimator):
    """The parameters and the step that classification and regression share.

    Notes
    -----
    Each step is f~ = (1 - eta alpha) f - (eta / B) sum_b l'(f(x_b), y_b) k(x_b, .), followed by
    kernel orthogonal matching pursuit: points are removed, cheapest first and all weights
    projected again, while the result stays within eps of f~ in the norm of the RKHS [1]_. With
    a constant step the number of points stays bounded however long the stream is (Theorem 4).
    The inverse kernel matrix is kept as a square root that is only extended or rotated; its
    residual is watched, see ``residual_``.

    References
    ----------
    .. [1] A. Koppel, G. Warnell, E. Stump, A. Ribeiro, "Parsimonious online learning with
       kernels via sparse projections in function space", JMLR 20 (2019).
    """

    kernel: p.Kernel = "rbf"
    gamma: p.Gamma = "auto"
    degree: p.Degree = 3
    coef0: p.Coef0 = 1.0
    alpha: p.Alpha = 1e-6
    learning_rate: p.LearningRate = "constant"
    eta0: p.Eta0 = 0.2
    eta_decay: p.EtaDecay = "auto"
    compression_error: p.CompressionError = "auto"
    max_points: Annotated[
        p.MaxPoints, "The time that a step at the cap takes grows with its square."
    ] = 300
    max_bytes: p.MaxBytes = None
    slack: p.Slack = 0  # type: ignore[misc]
    batch_size: p.BatchSize = 1
    average: p.Average = False
    average_horizon: p.AverageHorizon = None
    projection: p.Projection = "greedy"

    _parsimony: ClassVar[float] = 0.02  # with compression_error="auto"
    _lasting = (*KernelEstimator._lasting, "degree", "coef0")

    def _check_combination(self) -> None:
        super()._check_combination()
        if isinstance(self.learning_rate, str) and not self.eta0 * self.alpha < 1.0:
            raise ValueError(
                f"eta0 * alpha must be below 1 for the step to shrink the function, got "
                f"{self.eta0} * {self.alpha}"
            )
        if self.slack and self.batch_size > 1:
            raise ValueError(
                f"slack={self.slack} is for steps of one sample, and batch_size={self.batch_size}: "
                "a batch is projected together anyway; leave one of the two out"
            )

    def _settings(self, outputs: int, most: int) -> NDArray[Any]:
        return make_settings(**self._choices(outputs, most))

    def _choices(self, outputs: int, most: int) -> dict[str, Any]:
        """Parts and numbers by the names of ``core/settings.py``."""
        loss = make_loss(self.loss)
        code, first_step, decay = self._steps()
        error = self.compression_error
        if error == "auto":
            error = Parsimony(self._parsimony)
        form = (error.code, error.factor) if isinstance(error, Parsimony) else (FIXED, error)
        return {
            "direct": self._direct, "grow": SPAN, "reduce": self._reduce,
            "outputs": outputs, "compressed": self._projected,
            "loss": loss.code, "loss_number": loss.number or 0.0,
            "regularisation": self.alpha, "schedule": code, "initial_step": first_step,
            "decay": decay, "batch": self.batch_size,
            "averaging": AVERAGING if self.average else 0.0,
            "horizon": np.inf if self.average_horizon is None else self.average_horizon,
            "most": most, "slack": self.slack,
            "budget": form[0], "budget_number": form[1],
            "projection": RANDOM if self.projection == "random" else GREEDY,
        }  # fmt: skip

    def _steps(self) -> tuple[int, float, float]:
        """Schedule, first step, or the present one where they are given, and decay."""
        if isinstance(self.learning_rate, Steps):
            made = int(self._state.status[0]["steps"]) if hasattr(self, "_state") else 0
            return self.learning_rate.code, self.learning_rate.between(made, 1)[0], 0.0
        decay = {"inverse_time": self.alpha * self.eta0, "inverse_sqrt": 1.0}
        own = decay.get(self.learning_rate, 0.0)
        own = own if self.eta_decay == "auto" else float(self.eta_decay)
        return StepSize(self.learning_rate, self.eta0).code, self.eta0, own

    def _run(
        self, rows: Rows, targets: Any, weights: Any, predictions: Any = None, extra: Any = None
    ) -> None:
        if extra is not None and isinstance(self.learning_rate, Steps):
            extra = np.hstack([extra, self._table(len(targets))])
        super()._run(rows, targets, weights, predictions, extra)

    def _table(self, samples: int) -> NDArray[np.float64]:
        """The step size of each of the next samples, where they are given."""
        given = self.learning_rate
        if not isinstance(given, Steps) or not samples:
            return super()._table(samples)
        if self._plan is None:
            self._plan = self._make_plan()
        batch = int(self._plan[1][0]["batch"])
        made = int(self._state.status[0]["steps"])
        steps = given.between(made, -(-samples // batch))
        if not (steps * self.alpha < 1.0).all():
            raise ValueError(
                f"steps times alpha must be below 1 for a step to shrink the function, got "
                f"{steps.max()} * {self.alpha}"
            )
        return np.repeat(steps, batch)[:samples, None]

    @property
    def _lean(self) -> bool:
        return super()._lean and isinstance(self.learning_rate, str)

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

    nbytes_ = documented(
        KernelEstimator.nbytes_,
        """Bytes held, at most 8 c (p + C + 4 + c) plus a record and the unfinished batch, where the
        capacity c is at most 4 max(16 + b, M + b) with b = batch_size + slack, and C counts the
        outputs (twice with ``average``).""",
    )

    @property
    def residual_(self) -> float:
        """``max |S S^T K - I|``: how far the factor of the inverse Gram matrix is from exact."""
        return komp.residual(self._fitted(), self.kernel_)


#: The average gives iterate t a weight growing like t^(AVERAGING - 1).
AVERAGING = 4.0


class POLKClassifier(_POLK, KernelClassifier):
    """Nonlinear classification of a stream, in bounded memory.

    See Also
    --------
    POLKRegressor : the same for numbers.

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

    eta0: p.Eta0 = 0.5

    _parsimony = 0.1


class POLKRegressor(_POLK, KernelRegressor):
    """Nonlinear regression on a stream, in bounded memory.

    See Also
    --------
    POLKClassifier : the same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import POLKRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-3.0, 3.0, (5000, 1))
    >>> y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=5000)
    >>> model = POLKRegressor().partial_fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.model_order_ < 40
    True

    Several numbers per sample share one dictionary; the loss is the sum of theirs:

    >>> both = POLKRegressor().partial_fit(X, np.stack([y, y**2], axis=1))
    >>> both.predict(X[:3]).shape, both.model_order_ < 60
    ((3, 2), True)
    """


register(
    Method(
        name="polk",
        title="POLK",
        description="functional gradient steps; after each, points are removed while the function "
        "stays within a given distance of itself",
        paper="Koppel et al., JMLR 2019",
        classifier=POLKClassifier,
        regressor=POLKRegressor,
        try_first=("gamma", "eta0"),
    )
)
