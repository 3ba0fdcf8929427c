"""Approximation vector machines (AVM)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils._param_validation import Interval, StrOptions

from kernelstream.compression.coverage import (
    FIRST_SAMPLES,
    SHAPES,
    Coverage,
    merge_points,
    suggested_delta,
)
from kernelstream.core.avm import single_pass
from kernelstream.core.kernel import Rows
from kernelstream.core.state import resize
from kernelstream.errors import CapWarning, callers_level
from kernelstream.kernels import KERNEL_NAMES, Kernel, first_gamma, make_kernel
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Loss, make_loss
from kernelstream.models._base import KernelEstimator
from kernelstream.models._classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.rows import slice_rows, take_rows

_PARAMETERS = """
    kernel : str or Kernel, default="rbf"
        ``rbf`` (or ``gaussian``), ``laplacian``, ``matern32``, ``matern52``, or such a
        :class:`~kernelstream.kernels.Kernel`. It must be isotropic with k(x, x) = 1: only then
        are points that lie close to one another close in the RKHS.
    gamma : float, "auto" or "scale", default="auto"
        Of a kernel given by name. ``auto`` is 1 / features, right for standardised data;
        ``scale`` is 1 / (features * variance) of the first call's samples, then frozen.
    alpha : float, default={alpha}
        Regularisation (lambda in the paper). Smaller for longer streams. The steps are
        1 / (alpha t): the first 1 / alpha samples move the function a lot, and with a squared
        error and a small alpha the first predictions can be many deviations off (``huber``
        recovers sooner). With ``delta="auto"`` the samples that wait are predicted as 0 instead.
    delta : float or "auto", default="auto"
        The diameter of the cells; larger: fewer points. ``auto`` takes the mean less the standard
        deviation of the pairwise distances of the first 200 samples (fewer where ``max_bytes``
        does not hold them). Until then these samples wait, or until ``flush()``: nothing is
        learned from them before.
    coverage : {{"hypersphere", "hyperrectangle"}} or Coverage, default="hypersphere"
        The shape of the cells. A fitted :class:`~kernelstream.Coverage` brings its cells along,
        with its own shape and delta (``delta`` here is then not used).
    beta, rho : float, default=0 and 1
        With probability min(1, beta / t^rho) a sample is not approximated by a core point but
        stored itself.
    average : bool, float or "auto", default={average}
        Predict with the mean of all iterates (True), with that of about the last part of them (a
        share in (0, 1)), with the last one (False), or with whichever erred less lately ("auto").
        The end of a stream is not known: the part is at least ``average`` and at most
        2 ``average`` - ``average``^2 of what has been seen. {choice}
    max_points : int or None, default=1000
        Never hold more points than this. Beyond it a sample outside all cells counts for the
        nearest core point: see ``n_forced_``; the first time there is a warning.
    max_bytes : int, optional
        Never hold more memory than this; likewise.
    n_epochs : int, default=5
        Passes over the data in ``fit``; ``partial_fit`` always makes one.
    shuffle : bool, default=True
        Whether ``fit`` visits the samples in a random order; ``partial_fit`` never does.
    random_state : int, RandomState or None, default=None
        For the order in ``fit`` and for ``beta``.
"""

_LARGE_STEPS = """A classifier's steps are large, and one more moves its
        last iterate a lot; but on a stream that changes only that one keeps up: ``auto`` predicts
        with it or with the average of a part of 0.5, whichever made fewer mistakes lately."""
_SMALL_STEPS = """A regression's steps are small enough to do
        without, and an average lags behind a stream that changes. ``auto`` predicts with the last
        one or with the average of a part of 0.5, whichever erred less lately."""

_ATTRIBUTES = """
    delta_ : float or None
        The diameter of the cells; None until the first samples have decided it.
    dictionary_ : (M, p) array
        The stored points: core points, then the samples stored because of ``beta``.
    dual_coef_ : (outputs, M) array
        Their weights.
    model_order_ : int
        Their number, M.
    n_cells_ : int
        How many of them are core points.
    n_seen_ : int
        Samples consumed.
    n_waiting_ : int
        Samples held until ``delta="auto"`` is decided; nothing was learned from them yet.
    nbytes_ : int
        Bytes held, at most 8 c (p + C + 4) plus a record and the samples that wait, where the
        capacity c is at most max(16, 2 M) and C counts the outputs (twice with
        ``average=True``, three times with a part).
    error_spent_ : float
        Sum over all steps of the distance between the step and the same step taken at the
        sample itself, in the norm of the RKHS.
    n_forced_ : int
        Samples approximated beyond their cell, because of a cap.
    expansion_ : KernelExpansion
        The learned function as a value.
    kernel_ : Kernel
        The kernel with all its numbers.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
"""

_NOTES = """
    Step t is f <- (t - 1)/t f - 1/(alpha t) l'(f(x), y) k(c, .), where c is the core point of the
    cell that x lies in [1]_. A sample outside all cells becomes a core point; one that the
    loss is content with changes nothing but the scale. The number of cells is bounded for
    bounded data, whatever the order (Theorem 19), and nothing but the points and their
    weights is kept.

    For the losses whose derivative is not bounded, ``squared_error`` and ``squared_hinge``, the
    function is projected onto the ball that the optimum lies in if alpha <= 1: its radius is
    y_max / sqrt(alpha), or sqrt(2 / alpha), where y_max is the largest \\|y\\| so far (of weighted
    samples the largest sqrt(weight) \\|y\\|).

    References
    ----------
    .. [1] T. Le, T. D. Nguyen, V. Nguyen, D. Phung, "Approximation vector machines for
       large-scale online learning", JMLR 18 (2017).
"""


#: ``average="auto"`` averages this part of the iterates ...
SUFFIX = 0.5
#: ... and compares its mistakes with those of the last iterate on so many of every fourth sample.
COMPARED = 250.0


class _AVM(KernelEstimator):
    """The parameters and the step that classification and regression share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [],
        "kernel": [StrOptions(set(KERNEL_NAMES)), Kernel],
        "gamma": [StrOptions({"auto", "scale"}), Interval(Real, 0.0, None, closed="neither")],
        "alpha": [Interval(Real, 0.0, None, closed="neither")],
        "delta": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "coverage": [StrOptions(set(SHAPES)), Coverage],
        "beta": [Interval(Real, 0.0, None, closed="left")],
        "rho": [Interval(Real, 0.0, None, closed="left")],
        "average": ["boolean", StrOptions({"auto"}), Interval(Real, 0.0, 1.0, closed="neither")],
        "max_points": [Interval(Integral, 1, 1_000_000, closed="both"), None],
        "max_bytes": [Interval(Integral, 1, None, closed="left"), None],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }
    _lasting = (*KernelEstimator._lasting, "delta", "coverage")
    _factored = False
    batch_size = 1
    delta_: float | None = None
    _warned = False

    def _check_combination(self) -> None:
        super()._check_combination()
        kernel = make_kernel(self.kernel, 1.0, 3, 1.0)
        if not kernel.isotropic:
            raise ValueError(
                f"kernel={self.kernel!r} does not depend on the distance alone with k(x, x) = 1: a "
                "core point may be far from the samples of its cell in the RKHS. Use 'rbf', "
                "'laplacian', 'matern32' or 'matern52'."
            )
        if isinstance(self.coverage, Coverage) and not hasattr(self.coverage, "core_points_"):
            raise ValueError("coverage holds no cells yet: call its fit, or name only its shape")

    def _make_kernel(self, rows: Rows) -> Kernel:
        return make_kernel(self.kernel, first_gamma(self.gamma, rows), 3, 1.0)

    def _start(self, X: Any, rows: Rows) -> None:
        super()._start(X, rows)
        self._warned = False
        self.delta_ = None if self.delta == "auto" else float(self.delta)
        if isinstance(self.coverage, Coverage):
            self._begin_with(self.coverage)
        elif self.delta_ is None and self._held < 2:
            raise ValueError(
                f"max_bytes={self.max_bytes} does not hold the two samples of "
                f"{rows.dense.shape[1]} features that delta='auto' needs at least: give delta"
            )

    def _begin_with(self, coverage: Coverage) -> None:
        """Core points without weights."""
        points, features = coverage.core_points_, self._state.points.shape[0]
        limit, n = self._capacity_limit(features), len(coverage.core_points_)
        if points.shape[1] != features:
            raise ValueError(f"coverage has {points.shape[1]} features, X has {features}")
        if n > limit - 1:
            raise ValueError(
                f"coverage has {n} core points, but no more than {limit - 1} may be held"
            )
        self.delta_ = coverage.delta_
        self._state = state = resize(self._state, max(n + 1, self._state.capacity))
        state.points[:, :n] = points.T
        state.square_norms[:n] = (points**2).sum(axis=1)
        state.absolute_norms[:n] = np.abs(points).sum(axis=1)
        state.self_kernels[:n] = 1.0
        state.status[0]["order"] = state.status[0]["cells"] = n

    def _settings(self, outputs: int, most: int) -> tuple[Any, ...]:
        loss = make_loss(self.loss)
        shape = self.coverage.shape if isinstance(self.coverage, Coverage) else self.coverage
        unbounded = loss.name in ("squared_error", "squared_hinge")
        return (
            loss.code, float(loss.number or 0.0), float(self.alpha),
            SHAPES[shape], float(self.delta_ or 0.0), float(self.beta), float(self.rho),
            most, self._suffix, COMPARED if self.average == "auto" else 0.0,
            unbounded and self.alpha <= 1.0, outputs,
        )  # fmt: skip

    def _single_pass(self) -> Callable[..., tuple[int, int]]:
        return single_pass  # type: ignore[no-any-return]

    def _drop_points(self, most: int) -> None:
        merge_points(self._state, self.kernel_, self._outputs, most)

    def _overflow_cure(self) -> str:
        cure = (
            f"the steps 1 / (alpha t) with alpha={self.alpha} are too large: choose a larger alpha"
        )
        if is_classifier(self):
            return f"{cure}."
        return f"{cure}, scale the target, or use a loss of bounded slope such as 'huber'."

    # ---- the samples that decide delta ------------------------------------------------

    @property
    def _held(self) -> int:
        """Samples that wait until delta is known."""
        if self.max_bytes is None:
            return FIRST_SAMPLES
        each = 12 * self._state.points.shape[0] + 24  # dense, or sparse without zeros
        return int(min(FIRST_SAMPLES, (self.max_bytes - self._state.nbytes - 8) // each))

    def _learn(self, rows: Rows, targets: NDArray[np.float64], weights: Any) -> None:
        if self.delta_ is not None:
            super()._learn(rows, targets, weights)
            return
        weights = np.ones(len(targets)) if weights is None else weights
        used = weights != 0.0
        rows, targets, weights = take_rows(rows, used), targets[used], weights[used]
        wanted = max(0, min(self._held - self.n_waiting_, len(targets)))
        if wanted:
            self._push(slice_rows(rows, 0, wanted), targets[:wanted], weights[:wanted])
        if self.n_waiting_ >= self._held:
            self.flush()
            rest = slice_rows(rows, wanted, len(targets))
            super()._learn(rest, targets[wanted:], weights[wanted:])

    def _foretell(self, rows: Rows, targets: Any, weights: Any) -> NDArray[np.float64]:
        out = np.zeros((len(targets), self._outputs))
        first = 0
        while self.delta_ is None and first < len(targets):  # all with the same empty model
            end = min(first + max(1, self._held - self.n_waiting_), len(targets))
            part = None if weights is None else weights[first:end]
            out[first:end] = self._values(slice_rows(rows, first, end))
            self._learn(slice_rows(rows, first, end), targets[first:end], part)
            first = end
        if first < len(targets):
            rest = slice_rows(rows, first, len(targets))
            part = None if weights is None else weights[first:]
            out[first:] = super()._foretell(rest, targets[first:], part)
        return out

    def _run(self, rows: Rows, targets: Any, weights: Any) -> None:
        if self.delta_ is None:
            self.delta_ = suggested_delta(rows)
            self._forget_plan()
        super()._run(rows, targets, weights)
        if self.n_forced_ and not self._warned:
            self._warned = True
            caps = {"max_points": self.max_points, "max_bytes": self.max_bytes}
            given = " and ".join(f"{name}={cap}" for name, cap in caps.items() if cap is not None)
            warnings.warn(
                f"The {self.model_order_} points that {given} allows are not enough for cells of "
                f"diameter delta={self.delta_:.3g}: samples outside them count for the nearest "
                "core point (n_forced_ says how many). Allow more, or choose a larger delta.",
                CapWarning,
                stacklevel=callers_level(),
            )

    @property
    def _lean(self) -> bool:
        return super()._lean and self.delta_ is not None

    # ---- what was learned -------------------------------------------------------------

    @property
    def _parts(self) -> int:
        return 1 if not self.average else 2 if self._suffix == 1.0 else 3

    @property
    def _suffix(self) -> float:
        """The part of the iterates that is averaged."""
        return SUFFIX if self.average == "auto" else float(self.average)

    @property
    def _live_weights(self) -> NDArray[np.float64]:
        state, outputs = self._fitted(), self._outputs
        status, weights = state.status[0], state.weights[: state.order]
        latest = self.average == "auto" and status["tracker"] < 0.0
        if latest or weights.shape[1] == outputs:
            return weights[:, :outputs] * status["scale"]
        total = status["summed"] * weights[:, :outputs] - weights[:, outputs : 2 * outputs]
        if weights.shape[1] > 2 * outputs:
            total += weights[:, 2 * outputs :]
        return total / max(1, status["averaged"] + status["before"])

    @property
    def n_cells_(self) -> int:
        """Number of core points: stored points that have a cell."""
        return int(self._fitted().status[0]["cells"])

    def _extra_header(self) -> dict[str, Any]:
        return {**super()._extra_header(), "delta": self.delta_}

    def _restore_extra(self, header: dict[str, Any]) -> None:
        super()._restore_extra(header)
        delta = header["delta"]
        known = delta is not None or header["status"]["order"] > 0
        if known and not 0.0 < float(delta) < np.inf:
            raise ValueError("delta is not the diameter of a cell")
        if not self.kernel_.isotropic:
            raise ValueError("the kernel does not depend on the distance alone")
        self.delta_ = float(delta) if known else None


class AVMClassifier(_AVM, KernelClassifier):
    __doc__ = f"""Nonlinear classification of a stream with the points of a coverage: fast and lean.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        ``hinge``, ``squared_hinge``, ``smooth_hinge``, ``log_loss`` or ``margin_log_loss``. With
        more than two classes ``hinge`` is Crammer and Singer's, ``margin_log_loss`` the paper's
        logistic loss and ``log_loss`` the multinomial one. ``log_loss`` gives probabilities.
    {_PARAMETERS.strip().format(alpha="1e-4", average='"auto"', choice=_LARGE_STEPS)}

    Attributes
    ----------
    classes_ : array
        The labels seen so far, sorted.
    {_ATTRIBUTES.strip()}

    See Also
    --------
    AVMRegressor : the same for numbers.
    POLKClassifier : chooses its points by what they contribute; fewer points, slower steps.

    Notes
    -----
    {_NOTES.strip()}

    Examples
    --------
    >>> from kernelstream import AVMClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = AVMClassifier(gamma=1.0, delta=0.5)
    >>> for start in range(0, 5000, 500):  # the stream arrives in pieces
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    >>> model.model_order_ < 200
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_AVM._parameter_constraints,
        "loss": [StrOptions(set(CLASSIFICATION_LOSSES)), Loss],
    }

    def __init__(
        self,
        loss: str | Loss = "hinge",
        *,
        kernel: str | Kernel = "rbf",
        gamma: float | str = "auto",
        alpha: float = 1e-4,
        delta: float | str = "auto",
        coverage: str | Coverage = "hypersphere",
        beta: float = 0.0,
        rho: float = 1.0,
        average: bool | float | str = "auto",
        max_points: int | None = 1000,
        max_bytes: int | None = None,
        n_epochs: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.alpha = alpha
        self.delta = delta
        self.coverage = coverage
        self.beta = beta
        self.rho = rho
        self.average = average
        self.max_points = max_points
        self.max_bytes = max_bytes
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state


class AVMRegressor(_AVM, KernelRegressor):
    __doc__ = f"""Nonlinear regression on a stream with the points of a coverage: fast and lean.

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        ``squared_error``, ``absolute_error``, ``epsilon_insensitive``, ``huber`` or ``quantile``;
        ``Loss("quantile", 0.9)`` for another level. Standardise the target (scikit-learn's
        ``TransformedTargetRegressor``): alpha is in its units, and the function has no intercept.
    {_PARAMETERS.strip().format(alpha="1e-2", average="False", choice=_SMALL_STEPS)}

    Attributes
    ----------
    {_ATTRIBUTES.strip()}

    See Also
    --------
    AVMClassifier : the same for classes.
    POLKRegressor : chooses its points by what they contribute; fewer points, slower steps.

    Notes
    -----
    {_NOTES.strip()}

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import AVMRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-3.0, 3.0, (5000, 1))
    >>> y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=5000)
    >>> model = AVMRegressor(alpha=1e-3).partial_fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.model_order_ < 20
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_AVM._parameter_constraints,
        "loss": [StrOptions(set(REGRESSION_LOSSES)), Loss],
    }

    def __init__(
        self,
        loss: str | Loss = "squared_error",
        *,
        kernel: str | Kernel = "rbf",
        gamma: float | str = "auto",
        alpha: float = 1e-2,
        delta: float | str = "auto",
        coverage: str | Coverage = "hypersphere",
        beta: float = 0.0,
        rho: float = 1.0,
        average: bool | float | str = False,
        max_points: int | None = 1000,
        max_bytes: int | None = None,
        n_epochs: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.alpha = alpha
        self.delta = delta
        self.coverage = coverage
        self.beta = beta
        self.rho = rho
        self.average = average
        self.max_points = max_points
        self.max_bytes = max_bytes
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state
