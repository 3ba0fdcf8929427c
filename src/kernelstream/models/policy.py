"""The value function of a policy, from transitions (COLK, Example 2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from kernelstream.core.direct import TRANSITION
from kernelstream.core.direct.transition import CORRECTED, GRADIENT, SCALAR, STATES
from kernelstream.core.kernel import Rows
from kernelstream.expansion import KernelExpansion
from kernelstream.kernels import Kernel
from kernelstream.models import _validation as check
from kernelstream.models._base import as_before_on_error
from kernelstream.models.polk import _POLK
from kernelstream.rows import count_rows, slice_rows, stack_rows, take_rows

_METHODS = {"corrected": CORRECTED, "gradient": GRADIENT, "scalar": SCALAR}


class _Transitions(NamedTuple):
    """Checked transitions."""

    rows: Rows  # states, then as many next states
    rewards: NDArray[np.float64]
    discounts: NDArray[np.float64]  # 0 where the next state is terminal


class KernelPolicyEvaluation(_POLK):
    """The value function of a policy, learned from transitions, in bounded memory.

    V(x) is the expected discounted sum of the rewards that follow state x under the policy that
    made the transitions. It solves Bellman's equation, E[delta | x] = 0 for every state, where
    delta = r + discount V(y) - V(x) is the temporal difference of a transition to y with reward r.

    Parameters
    ----------
    discount : float in [0, 1), default=0.95
        What a reward is worth one step later (gamma in the paper).
    method : {"corrected", "gradient", "scalar"}, default="corrected"
        What stands for E[delta | x]; see the notes. ``scalar`` is the paper's recursion as printed,
        and does not find the value function.
    beta : float in (0, 1], default=0.001
        Step of the tracked temporal difference.
    kernel : str or Kernel, default="rbf"
        As for :class:`POLKRegressor`.
    gamma : float, "auto" or "scale", default="auto"
        Of a kernel given by name. ``auto`` is 1 / features, right for standardised states;
        ``scale`` is 1 / (features * variance) of the first call's states, then frozen.
    degree, coef0 : int and float, default=3 and 1.0
        Of the polynomial kernel.
    alpha : float, default=1e-6
        Regularisation (lambda in the paper). Must satisfy eta0 * alpha < 1.
    learning_rate : {"constant", "inverse_time", "inverse_sqrt"}, default="constant"
        eta0, eta0 / (1 + alpha eta0 t) or eta0 / sqrt(1 + t), t counting transitions.
    eta0 : float, default=0.2
        The (first) step size (alpha in the paper).
    parsimony : float or "square", default=0.02
        The error that each step may make to save points: eps = parsimony * eta^(3/2), or
        eps = eta^2 for ``"square"``. In units of the value function, which grows with the rewards
        and with 1 / (1 - discount): scale the rewards, or set this. Larger: fewer points.
    epsilon : float, optional
        That error given directly, in the norm of the RKHS; overrules ``parsimony``. It covers the
        value function, its average and the tracked function together.
    max_points : int or None, default=500
        Never hold more points than this, whatever the error.
    max_bytes : int, optional
        Never hold more memory than this, whatever the error.
    average : bool or int, default=False
        Predict with an average of the iterates in which recent ones weigh more (True), or
        with one that forgets beyond this many steps. Rewards are noisy, so this helps much where
        the policy stays the same.
    projection : {"greedy", "random"}, default="greedy"
        Remove the cheapest point (KOMP), or points drawn at random.
    random_state : int, RandomState or None, default=None
        For random projections and for the probes of the factor.

    Attributes
    ----------
    dictionary_ : (M, p) array
        The stored states.
    dual_coef_ : (1, M) array
        Their weights.
    model_order_ : int
        Their number, M.
    expansion_ : KernelExpansion
        The value function as a value.
    bellman_error_ : KernelExpansion or float
        The tracked E[delta | x]; 0 everywhere if V solves Bellman's equation. A number with
        ``method="scalar"``.
    n_seen_ : int
        Transitions consumed.
    nbytes_, error_spent_, n_forced_, residual_, kernel_, n_features_in_, feature_names_in_
        As for :class:`POLKRegressor`.

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
    fast (TDC of [2]_); the smaller ``beta``, the longer. ``scalar`` is the recursion of the paper
    and of [3]_ with one number z for all states: it descends E[delta]^2, which many functions
    make zero. With ``beta=1`` its z is delta itself, the mean squared temporal difference is
    minimised, and the result is biased wherever transitions are random.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "discount": [Interval(Real, 0.0, 1.0, closed="left")],
        "method": [StrOptions(set(_METHODS))],
        "beta": [Interval(Real, 0.0, 1.0, closed="right")],
        **{
            name: constraint
            for name, constraint in _POLK._parameter_constraints.items()
            if name not in ("loss", "batch_size", "n_epochs", "shuffle")
        },
    }
    _lasting = ("kernel", "gamma", "degree", "coef0", "method")

    # What POLK takes as parameters: half the square of delta, and two states in each step.
    loss = "squared_error"
    batch_size = STATES
    _waits = False

    def __init__(
        self,
        discount: float = 0.95,
        *,
        method: str = "corrected",
        beta: float = 0.001,
        kernel: str | Kernel = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        alpha: float = 1e-6,
        learning_rate: str = "constant",
        eta0: float = 0.2,
        parsimony: float | str = 0.02,
        epsilon: float | None = None,
        max_points: int | None = 500,
        max_bytes: int | None = None,
        average: bool | int = False,
        projection: str = "greedy",
        random_state: Any = None,
    ) -> None:
        self.discount = discount
        self.method = method
        self.beta = beta
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
        self.average = average
        self.projection = projection
        self.random_state = random_state

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
            with _naming("states"):
                rows = check.check_rows(self, states, new=new)
                if new:
                    self._start(states, rows)
            return self._checked_transitions(rows, rewards, next_states, terminal)

    def _checked_transitions(
        self, rows: Rows, rewards: Any, next_states: Any, terminal: Any
    ) -> _Transitions:
        n = count_rows(rows)
        with _naming("next_states"):
            next_rows = check.check_rows(self, next_states)
            check.check_kernel_range(self.kernel_, next_rows)
        with _naming("states"):
            check.check_kernel_range(self.kernel_, rows)
        if count_rows(next_rows) != n:
            raise ValueError(f"{n} states, but {count_rows(next_rows)} next_states")
        with _naming("rewards"):
            earned = check.check_numbers(rewards, n)
        discounts = self.discount * (1.0 - _flags(terminal, n))
        return _Transitions(stack_rows(rows, next_rows), earned, discounts)

    def _choices(self, outputs: int, most: int) -> dict[str, Any]:
        return {
            **super()._choices(outputs, most), "direct": TRANSITION, "batch": 1,
            "tracking": _METHODS[self.method], "tracking_rate": self.beta,
        }  # fmt: skip

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
        return 1 + bool(self.average) + (self.method != "scalar")

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
        with _naming("states"):
            rows = check.check_rows(self, states)
        rows, rewards, discounts = self._checked_transitions(rows, rewards, next_states, terminal)
        n = len(rewards)
        here, there = (self._values(slice_rows(rows, i, i + n))[:, 0] for i in (0, n))
        return rewards + discounts * there - here  # type: ignore[no-any-return]

    @property
    def bellman_error_(self) -> KernelExpansion | float:
        """The tracked expectation of the temporal difference, given the state."""
        state = self._fitted()
        if self.method == "scalar":
            return float(state.status[0]["tracker"])
        return KernelExpansion(self.kernel_, self.dictionary_, state.weights[-1, : state.order])


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


@contextmanager
def _naming(argument: str) -> Iterator[None]:
    """Errors raised in here name the argument."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from None
