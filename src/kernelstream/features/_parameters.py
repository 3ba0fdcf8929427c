"""The parameters of a subspace learned from a stream (OK-FE, OK-FEB), and what they decide."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import Annotated, Any, Literal

from kernelstream.core import feature_budget
from kernelstream.core.feature_steps import BOUNDED, LIMITED, PRINTED
from kernelstream.models import _parameters as p
from kernelstream.models._base import KernelEstimator
from kernelstream.parameters import Instance, Nothing, Number, Whole

#: Steps that do not fall with n.
_FOLLOWING = ("tracking", "tracking_square")
#: Stored samples for each component with ``max_points="auto"``: the paper has 1.5 to 5.
_POINTS_EACH = 5

Components = Annotated[
    int, Whole(1, 10_000), "Directions of the subspace, and features (r in the paper)."
]
MaxPoints = Annotated[
    int | Literal["auto"] | None,
    Whole(1, 1_000_000),
    """Stored samples at most (B in the paper), at least n_components; ``auto`` is 5 times as
    many.""",
    """1.5 to 5 times as many are enough. None stores every sample that is
    not censored: memory and time for a sample then grow with the stream.""",
]


class FeatureParameters(KernelEstimator):
    """What a subspace can be told; the choices behind ``auto``."""

    n_components: Components = field(default=10, kw_only=False)
    max_points: MaxPoints = "auto"
    kernel: p.Kernel = "rbf"
    gamma: Annotated[p.Gamma, "The paper writes 1 / gamma."] = "auto"
    degree: p.Degree = 3
    coef0: p.Coef0 = 1.0
    alpha: Annotated[
        float, Number(least=0.0, most=1e100), "Regularisation (lambda in the paper)."
    ] = 1e-3
    solver: Annotated[
        Literal["auto", "parametric", "nonparametric"],
        """``parametric``: the gradient in the subspace, (16); ``nonparametric``: in its
        coefficients, (19), for a stream that does not change. ``auto`` is parametric with the
        tracking steps and without a budget, else nonparametric.""",
        """Parametric steps are cheaper; on a budget they lose a part of the subspace with every
        discarded sample, and on a stream that does not change learning can make the features
        worse.""",
    ] = "auto"
    step_size: Annotated[
        Literal["inverse", "inverse_square", "tracking", "tracking_square"],
        """mu for sample n: c / n, c / n^2, c / |q| or c / |q|^2, with c of ``step_constant``. The
        last two keep following a stream that changes.""",
    ] = "inverse"
    steps: Annotated[
        Literal["auto", "bounded", "printed"],
        """``printed``: mu as the paper has it. ``bounded``: no step is longer than the one beyond
        which an update overshoots its own sample, and those of the nonparametric solver, except c /
        n^2, are divided by the norm of the stored samples' kernel matrix. ``auto`` is ``printed``
        for the nonparametric solver with 1 / |q| and the printed basis (except where alpha would
        make A grow without bound), else ``bounded``.""",
    ] = "auto"
    step_constant: Annotated[
        float | Literal["auto"],
        Number(above=0.0),
        """c of the steps. ``auto`` is 1 for steps as printed and for those that divide by |q|, else
        r^2 / 5 (parametric) or r^3 (nonparametric).""",
    ] = "auto"
    censoring: Annotated[
        Any,
        Number(least=0.0),
        Instance(str, tuple, list, words="'auto' or 'rate:x'", kind='"auto", "rate:x"'),
        Nothing(),
        """Samples with a smaller fit error than this do not change the subspace: a number;
        ``auto``, the mean of the last 100 errors; ``rate:x``, what censors the part x of them; or
        None.""",
        """``("rate", x)`` says the same as ``"rate:x"``. With a budget, nothing is censored before
        it is used up.""",
    ] = None
    removal: Annotated[
        Literal["greedy", "exact", "recency", "fifo"],
        """Which sample is discarded: the one with the shortest row of the factor (25), the one
        whose removal changes the subspace least (24), the shortest after ``forgetting`` (26), or
        the oldest.""",
        "For kernels with k(x, x) = 1 the first two are the same.",
    ] = "greedy"
    forgetting: Annotated[
        float,
        Number(above=0.0, most=1.0),
        """With ``removal="recency"``: by how much the rows of stored samples fade each time one is
        discarded (beta in the paper).""",
        "1 is ``greedy``, small values approach ``fifo``.",
    ] = 1.0
    basis: Annotated[
        Literal["auto", "orthonormal", "printed"],
        """Whether the factor is made orthonormal in the RKHS after every update, or left as the
        paper's recursion gives it (``printed``). ``auto`` is ``printed`` for the tracking steps,
        else ``orthonormal``.""",
        "Same subspace at that moment, other steps from there on: see Notes.",
    ] = "auto"

    def _check_combination(self) -> None:
        super()._check_combination()
        if self._most_points is not None and self._most_points < self.n_components:
            raise ValueError(
                f"max_points={self.max_points} stored samples cannot span n_components="
                f"{self.n_components} directions: choose more points or fewer components"
            )
        if self.forgetting != 1.0 and self.removal != "recency":
            raise ValueError(
                f"forgetting={self.forgetting} has no effect with removal={self.removal!r}: "
                "use removal='recency'"
            )
        self._censoring()

    def _censoring(self) -> tuple[int, float]:
        """The rule of censoring, and its number."""
        given = self.censoring
        if given is None:
            return feature_budget.NEVER, 0.0
        if given == "auto":
            return feature_budget.MOVING_AVERAGE, 0.0
        if isinstance(given, Real):
            return feature_budget.THRESHOLD, float(given)
        try:
            name, rate = given.split(":") if isinstance(given, str) else given
            if name == "rate" and 0.0 <= float(rate) <= 1.0:
                return feature_budget.RATE, float(rate)
        except (TypeError, ValueError):
            pass
        raise ValueError(
            "censoring must be None, 'auto', a threshold >= 0, or 'rate:x' with x from 0 to 1; got "
            f"{given!r}"
        )

    def _plain_parameters(self) -> dict[str, Any]:
        parameters = super()._plain_parameters()
        if isinstance(self.censoring, tuple | list):
            parameters["censoring"] = f"rate:{float(self.censoring[1])!r}"
        return parameters

    @property
    def _most_points(self) -> int | None:
        if self.max_points is None:
            return None
        return int(
            _POINTS_EACH * self.n_components if self.max_points == "auto" else self.max_points
        )

    @property
    def _solver(self) -> str:
        if self.solver != "auto":
            return str(self.solver)
        follows = self.step_size in _FOLLOWING
        return "parametric" if self.max_points is None or follows else "nonparametric"

    @property
    def _orthonormal(self) -> bool:
        if self.basis != "auto":
            return bool(self.basis == "orthonormal")
        return self.step_size not in _FOLLOWING

    @property
    def _bounded(self) -> int:
        if self.steps != "auto":
            return BOUNDED if self.steps == "bounded" else PRINTED
        literal = self._solver == "nonparametric" and self.step_size == "tracking"
        return LIMITED if literal and not self._orthonormal else BOUNDED

    @property
    def _step_constant(self) -> float:
        if self.step_constant != "auto":
            return float(self.step_constant)
        if self._bounded == PRINTED or self.step_size in _FOLLOWING:
            return 1.0
        r = float(self.n_components)
        return r**2 / 5.0 if self._solver == "parametric" else r**3
