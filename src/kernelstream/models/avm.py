"""Approximation vector machines (AVM)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from kernelstream.compression.coverage import SHAPES, Coverage, merge_points
from kernelstream.core.avm import cell_pass
from kernelstream.core.kernel import Rows
from kernelstream.core.settings import make_settings
from kernelstream.core.state import resize
from kernelstream.docstrings import documented
from kernelstream.errors import CapWarning, callers_level
from kernelstream.kernels import Kernel, Points, first_gamma, make_kernel
from kernelstream.losses import make_loss
from kernelstream.models import _parameters as p
from kernelstream.models._base import KernelEstimator
from kernelstream.models._deciding import _DecidingDelta
from kernelstream.models._kernel_classifier import KernelClassifier
from kernelstream.models._regressor import KernelRegressor
from kernelstream.models._words import CAP_COSTS, cap_note, count_of
from kernelstream.parameters import Number
from kernelstream.registry import Method, register
from kernelstream.search import LogRange

Alpha = Annotated[
    float,
    Number(above=0.0),
    LogRange(1e-6, 1e-1),
    "Regularisation (lambda in the paper).",
    """Smaller for longer streams. The steps are 1 / (alpha t): the first 1 / alpha samples move
    the function a lot, and with a squared error and a small alpha the first predictions can be
    many deviations off (``huber`` recovers sooner).""",
]
Delta = Annotated[
    float | Literal["auto"],
    Number(above=0.0),
    LogRange(0.1, 2.0, unit="distance"),
    "The diameter of the cells; larger: fewer points.",
    """``auto`` takes the mean less the standard deviation of the pairwise distances of the first
    200 samples (fewer where half of ``max_bytes`` does not hold them). A classifier makes its
    model again from all samples so far when there are 2, 4, 8 ... 128 and 200 of them; for a
    regression they wait: it begins with steps so long that 0 is the better prediction. ``flush()``
    decides at once.""",
]
Average = Annotated[
    bool | Literal["auto"],
    """Predict with the mean of the iterates (True), with the last one (False), or with whichever
    erred less lately ("auto").""",
    """True is the paper's mean of w_1 = 0 to w_T, the iterates before each step; ``auto`` takes
    those after each step, and part of them. A classifier's steps are large, and one more moves its
    last iterate a lot, but on a stream that changes only that one keeps up. A regression's steps
    are small enough to do without an average.""",
]

#: ``average="auto"`` averages this part of the iterates ...
SUFFIX = 0.5
#: ... and compares its mistakes with those of the last iterate on so many of every fourth sample.
COMPARED = 250.0


class _AVM(_DecidingDelta):
    """The parameters and the step that classification and regression share.

    Notes
    -----
    Step t is f <- (t - 1)/t f - 1/(alpha t) l'(f(x), y) k(c, .), where c is the core point of the
    cell that x lies in [1]_. A sample outside all cells becomes a core point; one that the
    loss is content with changes nothing but the scale. The number of cells is bounded for
    bounded data, whatever the order (Theorem 19), and nothing but the points and their
    weights is kept.

    For the losses whose derivative is not bounded, ``squared_error`` and ``squared_hinge``, the
    function is projected onto the ball that the optimum lies in if alpha <= 1: its radius is
    y_max / sqrt(alpha), or sqrt(2 / alpha), where y_max is the largest |y| so far (of weighted
    samples the largest sqrt(weight) |y|).

    References
    ----------
    .. [1] T. Le, T. D. Nguyen, V. Nguyen, D. Phung, "Approximation vector machines for
       large-scale online learning", JMLR 18 (2017).
    """

    kernel: p.IsotropicKernel = "rbf"
    gamma: p.Gamma = "auto"
    alpha: Alpha = 1e-4
    delta: Delta = "auto"
    coverage: Annotated[
        Literal["hypersphere", "hyperrectangle"] | Coverage,
        """The shape of the cells. hypersphere: balls, delta across; hyperrectangle: boxes with
        sides of 2 delta / sqrt(features).""",
        """A fitted :class:`~kernelstream.Coverage` brings its cells along, with its own shape and
        delta (``delta`` here is then not used).""",
    ] = "hypersphere"
    exact_probability: Annotated[
        float,
        Number(least=0.0),
        """With probability min(1, exact_probability / t^exact_decay) sample t is not approximated
        by a core point but stored itself (beta and rho in the paper).""",
    ] = 0.0
    exact_decay: Annotated[
        float, Number(least=0.0), "How fast that probability falls along the stream."
    ] = 1.0
    average: Average = False
    average_horizon: Annotated[
        float | None,
        Number(above=0.0, below=1.0),
        """Of ``average``: the last part of the stream that it reaches back to, as a share; none:
        all of it, with ``auto`` 0.5.""",
        """The end of a stream is not known: a share h is at least h and at most 2 h - h^2 of what
        has been seen. ``fit`` knows it: with ``average=True`` it is h exactly.""",
    ] = None
    max_points: Annotated[
        p.MaxPoints,
        """Beyond it a sample outside all cells counts for the nearest core point: see
        ``n_forced_``; the first time there is a warning.""",
    ] = 1000
    max_bytes: Annotated[p.MaxBytes, "Beyond it likewise."] = None

    _lasting = (*KernelEstimator._lasting, "delta", "coverage")
    _needs_its_points = "its steps need its cells"
    _smaller_with = (("a larger", "delta"), ("a smaller", "max_points"))
    _factored = False
    batch_size = 1
    delta_: Annotated[float, "The diameter of the cells."] = field(init=False)
    _warned = False

    def _check_combination(self) -> None:
        super()._check_combination()
        kernel = make_kernel(self.kernel, 1.0, 3, 1.0)
        if not kernel.unit:
            raise ValueError(
                f"kernel={self.kernel!r} does not depend on the distance alone with k(x, x) = 1: a "
                "core point may be far from the samples of its cell in the RKHS. Use 'rbf', "
                "'matern12', 'matern32' or 'matern52'."
            )
        if isinstance(self.coverage, Coverage) and not hasattr(self.coverage, "core_points_"):
            raise ValueError("coverage holds no cells yet: call its fit, or name only its shape")

    def _make_kernel(self, rows: Rows) -> Kernel:
        return make_kernel(self.kernel, first_gamma(self.gamma, rows), 3, 1.0)

    def _start(self, X: Any, rows: Rows) -> None:
        built = isinstance(self.coverage, Coverage)
        features = rows.dense.shape[1]
        self._warned = False
        self._deciding = self.delta == "auto" and not built
        self.delta_ = 1.0 if self.delta == "auto" else float(self.delta)
        if self._deciding and self._deciding_samples(features, self._columns) < 2:
            two = 2 * self._sample_bytes(features)
            least = max(2 * two, two + self._least_bytes(features, self._columns))
            raise ValueError(
                f"max_bytes={self.max_bytes} does not hold the samples that decide delta='auto' "
                f"beside the model: give delta, or allow {least} bytes"
            )
        super()._start(X, rows)
        if not self.kernel_.isotropic:
            warnings.warn(
                f"kernel={self.kernel!r} depends on the l1 distance, AVM's cells and its theory on "
                "the Euclidean one: use 'matern12', the Laplacian of that distance",
                stacklevel=callers_level(),
            )
        if isinstance(self.coverage, Coverage):
            self._begin_with(self.coverage)

    def _begin_with(self, coverage: Coverage) -> None:
        """Core points without weights."""
        points, features = coverage.core_points_, self._state.points.shape[0]
        limit, n = self._capacity_limit(features), len(coverage.core_points_)
        if points.shape[1] != features:
            raise ValueError(f"coverage has {points.shape[1]} features, X has {features}")
        if n > limit - 1:
            raise ValueError(
                f"coverage has {n} core points, but no more than {limit - 1} may be held: allow "
                "more (max_points, max_bytes), or fit it with a larger delta"
            )
        self.delta_ = coverage.delta_
        self._state = state = resize(self._state, max(n + 1, self._state.capacity))
        for part, values in zip(state[:3], Points.of(points)[:3], strict=True):
            part[..., :n] = values
        state.self_kernels[:n] = 1.0
        state.status[0]["order"] = state.status[0]["cells"] = n

    def _settings(self, outputs: int, most: int) -> NDArray[Any]:
        loss = make_loss(self.loss)
        shape = self.coverage.shape if isinstance(self.coverage, Coverage) else self.coverage
        unbounded = loss.name in ("squared_error", "squared_hinge")
        return make_settings(
            outputs=outputs, loss=loss.code, loss_number=loss.number or 0.0,
            regularisation=self.alpha, most=most, cell_shape=SHAPES[shape], delta=self.delta_,
            exact=self.exact_probability, exact_decay=self.exact_decay,
            by_margin=self._margin is not None, exact_margin=self._margin or 0.0,
            suffix=self._suffix, lagging=self.average is True, average_from=self._average_from,
            memory=COMPARED if self.average == "auto" else 0.0,
            ball=unbounded and self.alpha <= 1.0,
        )  # fmt: skip

    def _pass(self) -> Callable[..., tuple[int, int]]:
        return cell_pass  # type: ignore[no-any-return]

    def _drop_points(self, most: int) -> None:
        merge_points(self._state, self.kernel_, self._outputs, most)

    def _overflow_cure(self) -> str:
        others = ", scale the target, or use a loss of bounded slope such as 'huber'"
        return (
            f"the steps 1 / (alpha t) with alpha={self.alpha} are too large: choose a larger alpha"
            f"{'' if is_classifier(self) else others}."
        )

    def _run(self, *samples: Any) -> None:
        super()._run(*samples)
        if self.n_forced_ and not self._warned and not self._deciding:
            self._warned = True
            note = f"{cap_note(self)}. n_forced_ goes on counting, without further warnings"
            warnings.warn(note, CapWarning, stacklevel=callers_level())

    # ---- what was learned -------------------------------------------------------------

    @property
    def _parts(self) -> int:
        return 1 if not self.average else 2 if self._suffix == 1.0 else 3

    @property
    def _suffix(self) -> float:
        """The part of the iterates that is averaged."""
        if not self.average:
            return 0.0
        whole = SUFFIX if self.average == "auto" else 1.0
        return whole if self.average_horizon is None else float(self.average_horizon)

    @property
    def _margin(self) -> float | None:
        """Samples with a smaller margin are stored themselves."""
        return None

    @property
    def _average_from(self) -> int:
        """After how many steps the average begins, where the length is known."""
        if self._length is None or self.average is not True or self._suffix == 1.0:
            return 0
        return math.ceil((1.0 - self._suffix) * self._length)

    @property
    def _live_weights(self) -> NDArray[np.float64]:
        state, outputs = self._fitted(), self._outputs
        status, weights = state.status[0], state.weights[:, : state.order].T
        latest = self.average == "auto" and status["tracker"] < 0.0
        if latest or weights.shape[1] == outputs:
            return weights[:, :outputs] * status["scale"]
        total = status["summed"] * weights[:, :outputs] - weights[:, outputs : 2 * outputs]
        if weights.shape[1] > 2 * outputs:
            total += weights[:, 2 * outputs :]
        return total / max(1, status["averaged"] + status["before"])

    dictionary_ = documented(
        KernelEstimator.dictionary_,
        """(M, p): the stored points: core points, then the samples stored because of
        ``exact_probability``.""",
    )
    nbytes_ = documented(
        KernelEstimator.nbytes_,
        """Bytes held, at most 8 c (p + C + 4) plus a record and the samples that wait, where the
        capacity c is at most max(16, 2 M) and C counts the outputs (twice with ``average=True``,
        three times with an ``average_horizon`` or
        ``auto``).""",
    )
    error_spent_ = documented(
        KernelEstimator.error_spent_,
        """Sum over all steps of the distance between the step and the same step taken at the sample
        itself, in the norm of the RKHS.""",
    )
    n_forced_ = documented(
        KernelEstimator.n_forced_, "Samples approximated beyond their cell, because of a cap."
    )

    @property
    def n_cells_(self) -> int:
        """Number of core points: stored points that have a cell."""
        return int(self._fitted().status[0]["cells"])

    def _facts(self) -> dict[str, Any]:
        return {"delta": getattr(self, "delta_", None)}

    def _facts_in_words(self) -> dict[str, str]:
        if not hasattr(self, "delta_"):
            return {}
        return {"delta": f"{self.delta_:.3g}{' (auto)' if self.delta == 'auto' else ''}"}

    def _forced_facts(self) -> dict[str, int]:
        return {"samples_outside_cells": self.n_forced_}

    def _cap_effect(self, cap: str) -> str:
        return (
            f"{cap} left no room for the cells of {count_of(self.n_forced_, 'sample')}: they "
            f"counted for the nearest core point. {CAP_COSTS}, and kernelstream diameter what a "
            "larger delta would do"
        )

    def _approximation(self) -> tuple[str, str]:
        forced = self.n_forced_
        beyond = f", {count_of(forced, 'sample')} outside all cells included" if forced else ""
        return "Error of the approximation", (
            "A sample counts for the core point of the cell that it lies in (delta "
            f"{self.delta_:.3g}). This is the distance between each step and the same step at the "
            f"sample itself, in the norm of the function space, summed over all steps{beyond}."
        )

    def _extra_header(self) -> dict[str, Any]:
        return {**super()._extra_header(), "delta": self.delta_, "deciding": self._deciding}

    def _restore_extra(self, header: dict[str, Any]) -> None:
        super()._restore_extra(header)
        self.delta_ = float(header["delta"])
        if not 0.0 < self.delta_ < np.inf:
            raise ValueError("delta is not the diameter of a cell")
        if not self.kernel_.unit:
            raise ValueError("the kernel does not depend on the distance alone")
        self._deciding = bool(header["deciding"])
        if self._deciding and self.delta != "auto":
            raise ValueError("delta was given, and cannot be still to be decided")


class AVMClassifier(_AVM, KernelClassifier):
    """Nonlinear classification of a stream with the points of a coverage: fast and lean.

    See Also
    --------
    AVMRegressor : the same for numbers.
    POLKClassifier : chooses its points by what they contribute; fewer points, slower steps.

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

    average: Average = "auto"

    exact_margin: Annotated[
        float | None,
        Number(),
        """Samples that the right class is ahead of the others by less than this are stored
        themselves, not approximated; none: all are approximated.""",
        """The paper's example of a decision that depends on the model is 1. With a cap, or a stream
        that does not end, take a smaller one: every such sample is a point.""",
    ] = None

    _provisional = True

    @property
    def _margin(self) -> float | None:
        return self.exact_margin


class AVMRegressor(_AVM, KernelRegressor):
    """Nonlinear regression on a stream with the points of a coverage: fast and lean.

    See Also
    --------
    AVMClassifier : the same for classes.
    POLKRegressor : chooses its points by what they contribute; fewer points, slower steps.

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

    alpha: Alpha = 1e-2

    _provisional = False


register(
    Method(
        name="avm",
        title="AVM",
        description="gradient steps on the core points of cells of a given diameter: the fastest "
        "steps and the least memory per point",
        paper="Le et al., JMLR 2017",
        classifier=AVMClassifier,
        regressor=AVMRegressor,
        names=("Coverage",),
        try_first=("gamma", "alpha", "delta"),
    )
)
