"""The value function of a policy, from transitions (COLK, Example 2)."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.direct import TRANSITION
from kernelstream.core.direct.transition import CORRECTED, GRADIENT, SCALAR, STATES
from kernelstream.core.kernel import Rows
from kernelstream.docstrings import documented
from kernelstream.errors import prefixed
from kernelstream.expansion import KernelExpansion
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._past import Remembering, tracking_settings
from kernelstream.models._stream import as_before_on_error
from kernelstream.models.polk import _POLK
from kernelstream.parameters import Number, RandomState
from kernelstream.registry import Method, register
from kernelstream.rows import count_rows, slice_rows, stack_rows, take_rows

_METHODS = {"corrected": CORRECTED, "gradient": GRADIENT, "scalar": SCALAR}


class _Transitions(NamedTuple):
    """Checked transitions."""

    rows: Rows  # states, then as many next states
    rewards: NDArray[np.float64]
    discounts: NDArray[np.float64]  # 0 where the next state is terminal


class KernelPolicyEvaluation(Remembering):
    """The value function of a policy, learned from transitions, in bounded memory.

    V(x) is the expected discounted sum of the rewards that follow state x under the policy that
    made the transitions. It solves Bellman's equation, E[delta | x] = 0 for every state, where
    delta = r + discount V(y) - V(x) is the temporal difference of a transition to y with reward r.

    See Also
    --------
    kernelstream.streams.transitions : transitions from a Gymnasium environment.

    Notes
    -----
    The paper's problem is to minimise E_x[ E[delta | x]^2 ] / 2 (15). The inner expectation is
    conditional on the state, so what tracks it must be a function of the state: z lives on the same
    points as V, and with z(x) <- (1 - beta) z(x) + beta delta, the step is

        V <- (1 - eta0 alpha) V + eta0 (a k(x, .) - discount z(x) k(y, .)), then KOMP.

    ``gradient`` takes a = z(x): the quasi-gradient (24) of the problem, and, for fixed features,
    GTD2 of [2]_. ``corrected`` takes a = delta, whose expectation z(x) estimates: the same
    stationary points, but while z is still behind, the step is that of temporal differences, and
    fast (TDC of [2]_); the smaller ``tracking_rate``, the longer. ``scalar`` is the paper's
    general algorithm, (19) or (20) with (24), applied to this problem with one number z for all
    states (the paper prints no recursion for it): it descends E[delta]^2, which many functions make
    zero. With ``tracking_rate=1`` its z is delta itself, the mean squared temporal
    difference is minimised, and the result is biased wherever transitions are random.

    References
    ----------
    .. [1] A. S. Bedi, A. Koppel, K. Rajawat, P. Sanyal, "Nonparametric compositional stochastic
       optimization for risk-sensitive kernel learning", IEEE Trans. Signal Processing (2021).
    .. [2] R. S. Sutton et al., "Fast gradient-descent methods for temporal-difference learning with
       linear function approximation", ICML (2009).
    .. [3] A. Koppel, G. Warnell, E. Stump, P. Stone, A. Ribeiro, "Breaking Bellman's curse of
       dimensionality: efficient kernel gradient temporal difference", arXiv 1709.04221 (2017).

    Examples
    --------
    A walk on the line that pays its distance from the origin, and ends beyond 2:

    >>> import numpy as np
    >>> from kernelstream import KernelPolicyEvaluation
    >>> random = np.random.default_rng(0)
    >>> states = random.uniform(-2.0, 2.0, (20_000, 1))
    >>> next_states = states + random.normal(scale=0.5, size=states.shape)
    >>> over = abs(next_states[:, 0]) > 2.0
    >>> model = KernelPolicyEvaluation(discount=0.9, gamma=1.0, average=True)
    >>> model = model.partial_fit(states, abs(states[:, 0]), next_states, over)
    >>> bool(model.predict([[1.0]]) > model.predict([[1.9]]))  # likely to end soon
    True
    >>> model.model_order_ < 30
    True
    """

    discount: Annotated[
        float,
        Number(least=0.0, most=1.0),
        "What a reward is worth one step later (gamma in the paper).",
        """1 is for episodes that end: ``terminal`` must then be given.""",
    ] = field(default=0.95, kw_only=False)
    method: Annotated[
        Literal["corrected", "gradient", "scalar"],
        "What stands for E[delta | x]; see the notes.",
        """``scalar`` is the paper's general algorithm with one number, and does not find the value
        function.""",
    ] = "corrected"
    tracking: Annotated[  # type: ignore[misc]
        Literal["average", "momentum"],
        """How ``scalar`` tracks the temporal difference: by plain averaging (19), or by gradient
        tracking (20), as the paper's Algorithm 1 does.""",
        """The other methods average: a step changes the difference at every state, and a function
        that learns at one state at a time cannot be corrected for that.""",
    ] = "average"
    tracking_rate: Annotated[
        float | Literal["auto"],
        Number(above=0.0, most=1.0),
        "The (first) step of the tracked temporal difference (beta in the paper).",
        """A tracker is either faster than the value function, or so slow that it takes no notice
        of the differences while that is still learned; between the two it remembers them, and
        misleads. ``auto`` is 1e-5 for ``corrected``, which is fast as long as the tracker says
        little, and 0.01 for the others, which go where it leads. Where the transitions are not
        those of the policy in the long run (off-policy), temporal differences may diverge: give a
        rate of eta0 or more.""",
    ] = "auto"
    tracking_schedule: p.TrackingSchedule = "constant"
    tracking_decay: p.TrackingDecay = 0.01
    eta0: Annotated[float, Number(above=0.0), "The (first) step size (alpha in the paper)."] = 0.2
    compression_error: Annotated[
        p.CompressionError,
        """In units of the value function, which grows with the rewards and with 1 / (1 - discount):
        scale the rewards, or set this. It covers the value function, its average and the tracked
        function together.""",
    ] = "auto"
    max_points: p.MaxPoints = 500
    random_state: Annotated[
        Any, RandomState(), "For random projections and for the probes of the factor."
    ] = None
    average: Annotated[
        p.Average, "Rewards are noisy, so this helps much where the policy stays the same."
    ] = False

    _lasting = ("kernel", "gamma", "degree", "coef0", "method", "tracking")
    _unlisted = ("n_waiting_",)

    # What POLK takes as parameters: half the square of delta, and two states in each step.
    loss = "squared_error"
    batch_size: ClassVar[int] = STATES  # type: ignore[misc]
    _direct = TRANSITION
    slack: ClassVar[int] = 0  # type: ignore[misc]
    _waits = False

    dictionary_ = documented(_POLK.dictionary_, "(M, p): the stored states.")
    expansion_ = documented(_POLK.expansion_, "The value function as a value.")
    n_seen_ = documented(_POLK.n_seen_, "Transitions consumed.")

    def _check_combination(self) -> None:
        super()._check_combination()
        if self.tracking == "momentum" and self.method != "scalar":
            raise ValueError(
                f"tracking='momentum' (20) is for method='scalar', which tracks one number; "
                f"method={self.method!r} tracks a function, by tracking='average'"
            )

    # ---- learning ---------------------------------------------------------------------

    def partial_fit(
        self, states: Any, rewards: Any, next_states: Any, terminal: Any = None
    ) -> Self:
        """Learn from the next transitions, in order.

        Any chunking of the same transitions gives the same model, bit for bit (with
        ``gamma="scale"`` the first chunk decides gamma). If anything is wrong with the input the
        model stays as it was.

        Parameters
        ----------
        states : (n, p) array, CSR matrix or data frame
            Where each transition began. They need not follow one another.
        rewards : (n,) numbers
            What it earned.
        next_states : (n, p) array, CSR matrix or data frame
            Where it led.
        terminal : (n,) booleans, optional
            Whether nothing follows: the value of the next state is then 0. An episode that was
            only cut short (Gymnasium: truncated) is not terminal. Without it none is: a task that
            goes on for ever.
        """
        rows, rewards, discounts = self._admit(states, rewards, next_states, terminal)
        order = np.arange(STATES * len(rewards)).reshape(STATES, -1).T.ravel()
        self._run(take_rows(rows, order), rewards, np.ones(len(rewards)), None, discounts[:, None])
        return self

    def _admit(self, states: Any, rewards: Any, next_states: Any, terminal: Any) -> _Transitions:
        """Check everything; an empty state where there is none."""
        self._check_parameters()
        with as_before_on_error(self):
            new = not hasattr(self, "_state")
            with prefixed("states"):
                rows = check.check_rows(self, states, new=new)
                if new:
                    self._start(states, rows)
            return self._checked_transitions(rows, rewards, next_states, terminal)

    def _checked_transitions(
        self, rows: Rows, rewards: Any, next_states: Any, terminal: Any
    ) -> _Transitions:
        n = count_rows(rows)
        if self.discount == 1.0 and terminal is None:
            raise ValueError(
                "discount=1 is for episodes that end: say which transitions are the last of theirs "
                "(terminal), or choose a discount below 1"
            )
        with prefixed("next_states"):
            next_rows = check.check_samples(self, next_states)
        with prefixed("states"):
            check.check_kernel_range(self.kernel_, rows)
        if count_rows(next_rows) != n:
            raise ValueError(f"{n} states, but {count_rows(next_rows)} next_states")
        with prefixed("rewards"):
            earned = check.check_numbers(rewards, n)
        discounts = self.discount * (1.0 - _flags(terminal, n))
        return _Transitions(stack_rows(rows, next_rows), earned, discounts)

    def _choices(self, outputs: int, most: int) -> dict[str, Any]:
        return {
            **super()._choices(outputs, most), "batch": 1,
            "tracking": _METHODS[self.method], "tracking_rate": self._tracking_rate,
            **tracking_settings(self),
        }  # fmt: skip

    @property
    def _tracking_rate(self) -> float:
        if self.tracking_rate != "auto":
            return self.tracking_rate
        return 1e-5 if self.method == "corrected" else 0.01

    def _points_needed(self, samples: int) -> int:
        return STATES

    def _overflow_cure(self) -> str:
        return (
            f"the step size eta0={self.eta0} is too large for this kernel, these rewards and "
            f"discount={self.discount}. Choose a smaller eta0, or scale the rewards and the states."
        )

    # ---- what was learned -------------------------------------------------------------

    @property
    def _parts(self) -> int:
        return 1 + bool(self.average) + (self.method != "scalar") + self._remembers

    @property
    def _live_weights(self) -> NDArray[np.float64]:
        state = self._fitted()
        weights = state.weights[:, : state.order].T
        if self.average:
            return weights[:, 1:2].copy()
        return weights[:, :1] * state.status[0]["scale"]

    def predict(self, states: Any) -> NDArray[np.float64]:
        """The value of each state."""
        return self._evaluate(states)[:, 0]

    def temporal_differences(
        self, states: Any, rewards: Any, next_states: Any, terminal: Any = None
    ) -> NDArray[np.float64]:
        """r + discount V(y) - V(x) of each transition, by the value function as it is."""
        self._fitted()
        with prefixed("states"):
            rows = check.check_rows(self, states)
        rows, rewards, discounts = self._checked_transitions(rows, rewards, next_states, terminal)
        n = len(rewards)
        here, there = (self._values(slice_rows(rows, i, i + n))[:, 0] for i in (0, n))
        return rewards + discounts * there - here  # type: ignore[no-any-return]

    @property
    def bellman_error_(self) -> KernelExpansion | float:
        """The tracked E[delta | x]; 0 everywhere if V solves Bellman's equation. A number with
        ``method="scalar"``."""
        state = self._fitted()
        if self.method == "scalar":
            return float(state.status[0]["tracker"])
        weights = state.weights[self._projected - 1, : state.order]
        return KernelExpansion(self.kernel_, self.dictionary_, weights)


def _flags(terminal: Any, n: int) -> NDArray[np.float64]:
    """Booleans as 0.0 and 1.0, one per transition."""
    if terminal is None:
        return np.zeros(n)
    flags = np.asarray(terminal)
    if flags.shape != (n,):
        raise ValueError(f"terminal must hold {n} booleans, got shape {flags.shape}")
    if flags.dtype.kind not in "biuf" or not np.isin(flags, (0, 1)).all():
        raise ValueError("terminal must hold booleans")
    return flags.astype(np.float64)


register(
    Method(
        name="policy evaluation",
        title="policy evaluation",
        description="the value function of a policy from transitions, with Gymnasium environments "
        "too",
        paper="Bedi et al., IEEE TSP 2021, Example 2",
        names=("KernelPolicyEvaluation", "streams.transitions", "streams.LoggedTransitions"),
    )
)
