"""The open core of COLK: a nested expectation of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NoReturn

import numba
import numpy as np
from numba.extending import is_jitted
from numpy.typing import NDArray

from kernelstream.core.direct.quasi_gradient import partner, tracking_rate
from kernelstream.core.kernel import Program, Rows
from kernelstream.core.loop import advance, evaluate_block
from kernelstream.core.passes import DIVERGED, FULL, PROBE, PROBE_EVERY, roomy
from kernelstream.core.state import State
from kernelstream.models._regressor import KernelRegressor
from kernelstream.models.colk import _Paired
from kernelstream.parameters import Whole


class CompositionalLearner(_Paired, KernelRegressor):
    """Minimise a function of an expectation, learned online from pairs of samples.

    That is E[ outer(f(x), E[ inner(f(x')) ]) ] + alpha / 2 |f|^2. The outer function may depend on
    f at its own sample, too: a risk does. Functions compiled with ``numba.njit`` give a compiled
    pass; plain Python functions are called sample by sample from a loop in Python, which is
    slower and gives the same model.

    See Also
    --------
    COLKRegressor : mean plus risk of a loss, ready to use.

    Notes
    -----
    With a pair of samples, g tracking h at x' by (19) or (20), the step is [1]_

        f~ = (1 - eta alpha) f - eta (a k(x, .) + <b, h'(f(x'))> k(x', .)),

    (a, b) = ``outer_derivative`` at f(x) and g, averaged over both roles of the pair, then
    KOMP. (24) is the case without the first term. How the function before the last step is kept,
    which (20) needs, is described in :class:`COLKRegressor`. Nothing is clipped: the functions do
    that themselves; a step that is not finite is refused. Functions cannot be written to a model
    file: save ``expansion_``, or pickle the model.

    References
    ----------
    .. [1] A. S. Bedi, A. Koppel, K. Rajawat, P. Sanyal, "Nonparametric compositional stochastic
       optimization for risk-sensitive kernel learning", IEEE Trans. Signal Processing (2021).

    Examples
    --------
    The mean of a loss plus its variance, E[l + w (l - E[l])^2]:

    >>> import numpy as np
    >>> from kernelstream import COLKRegressor, CompositionalLearner
    >>> def loss(value, x, y):
    ...     return 0.5 * (value - y) ** 2
    >>> def slope(value, x, y):
    ...     return value - y
    >>> def outer(value, mean, x, y):
    ...     excess = 0.5 * (value - y) ** 2 - mean
    ...     return (1.0 + 2.0 * excess) * (value - y), -2.0 * excess
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-1.0, 1.0, (1000, 1))
    >>> y = np.sin(3.0 * X[:, 0]) + 0.3 * random.normal(size=1000)
    >>> model = CompositionalLearner(loss, slope, outer).partial_fit(X, y)
    >>> ready = COLKRegressor(risk="variance", risk_weight=1.0, clip=None).partial_fit(X, y)
    >>> bool(np.allclose(model.predict(X), ready.predict(X)))
    True
    """

    inner: Annotated[  # type: ignore[misc]
        Callable[..., Any],
        """``inner(value, x, y)``: h at f(x) = value, for the features x (1-D array) and the target
        y of a sample: a number, or ``n_tracked`` numbers.""",
    ] = field(kw_only=False)
    inner_derivative: Annotated[  # type: ignore[misc]
        Callable[..., Any], "``inner_derivative(value, x, y)``: its derivative in value."
    ] = field(kw_only=False)
    outer_derivative: Annotated[  # type: ignore[misc]
        Callable[..., Any],
        """``outer_derivative(value, tracked, x, y)``: the derivatives of the outer function in
        value and in what is tracked, as a pair. The second is a number, or ``n_tracked``
        numbers.""",
    ] = field(kw_only=False)
    n_tracked: Annotated[
        int | None,
        Whole(1, 10_000),
        "How many numbers ``inner`` returns, as an array or a tuple.",
        """``tracked`` is then an array of them. Without it all these are plain numbers.""",
    ] = None

    _lasting = (
        *(name for name in _Paired._lasting if name != "loss"),
        "inner",
        "inner_derivative",
        "outer_derivative",
        "n_tracked",
    )

    # What other regressors ask for: the functions take its place.
    loss: ClassVar[str] = "squared_error"  # type: ignore[misc]
    max_bytes: ClassVar[None] = None  # type: ignore[misc]
    _tracked: NDArray[np.float64] = field(init=False)

    @property
    def tracker_(self) -> Any:
        """The estimate g of E[ inner(f(x)) ]: a number, or ``n_tracked`` numbers."""
        self._fitted()
        return float(self._tracked[0]) if self.n_tracked is None else self._tracked.copy()

    @property
    def nbytes_(self) -> int:
        """Bytes held by the model, spare capacity and unfinished batch included."""
        return super().nbytes_ + self._tracked.nbytes

    def save(self, path: Any) -> NoReturn:
        """Refused: a model file is data, and functions are not."""
        raise TypeError(
            "CompositionalLearner cannot be saved: its functions are code, and model files hold "
            "data only. Save model.expansion_, or pickle the model"
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_tracked"):  # joblib may have mapped it read-only
            self._tracked = np.array(self._tracked)

    def _extra_header(self) -> dict[str, Any]:
        return {"tracked": self._tracked.tolist()}

    def _start(self, X: Any, rows: Rows) -> None:
        super()._start(X, rows)
        self._tracked = np.zeros(self.n_tracked or 1)

    def _overflow_cure(self) -> str:
        return (
            f"a function given to CompositionalLearner is not finite there, or the step size "
            f"eta0={self.eta0} is too large for it. Choose a smaller eta0, or bound its "
            "derivatives."
        )

    def _pass(self) -> Callable[..., tuple[int, int]]:
        functions = self.inner, self.inner_derivative, self.outer_derivative
        learn = make_pass(*functions, self.n_tracked is None)

        def compositional_pass(*given: Any) -> tuple[int, int]:
            state, program, rows = State(*given[:8]), Program(*given[9:15]), Rows(*given[15:20])
            targets, weights, _, first, predictions = given[20:]
            current, past = np.split(state.weights, [self._projected])
            with np.errstate(invalid="ignore", over="ignore"):  # such a step is refused
                return learn(
                    state._replace(weights=current), past, given[8], program, rows, targets,
                    weights, first, predictions, self._tracked,
                )  # fmt: skip

        return compositional_pass


@lru_cache(maxsize=64)
def make_pass(
    inner: Callable[..., Any],
    inner_derivative: Callable[..., Any],
    outer_derivative: Callable[..., Any],
    scalar: bool,
) -> Callable[..., tuple[int, int]]:
    """A pass for these functions: compiled if all of them are, else the same code in Python."""
    jitted = all(is_jitted(function) for function in (inner, inner_derivative, outer_derivative))
    compile_or_not = numba.njit(nogil=True) if jitted else lambda function: function

    if scalar:

        @compile_or_not  # type: ignore[untyped-decorator]
        def put(number: Any, out: Any) -> None:
            out[0] = number

        @compile_or_not  # type: ignore[untyped-decorator]
        def seen(tracked: Any) -> Any:
            return tracked[0]

    else:

        @compile_or_not  # type: ignore[untyped-decorator]
        def put(numbers: Any, out: Any) -> None:
            for k in range(out.shape[0]):
                out[k] = numbers[k]

        @compile_or_not  # type: ignore[untyped-decorator]
        def seen(tracked: Any) -> Any:
            return tracked

    @compile_or_not  # type: ignore[untyped-decorator]
    def sample(rows: Any, i: Any, x: Any) -> None:
        if rows.sparse:
            x[:] = 0.0
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                x[rows.indices[q]] = rows.data[q]
        else:
            x[:] = rows.dense[i]

    @compile_or_not  # type: ignore[untyped-decorator]
    def learn(
        state: Any, past: Any, settings: Any, program: Any, rows: Any, targets: Any,
        sample_weights: Any, first: Any, predictions: Any, tracked: Any,
    ) -> tuple[int, int]:  # fmt: skip
        status, rule = state.status[0], settings[0]
        rest = np.zeros((rule.batch, state.weights.shape[0] - 1))
        i = first
        while i < targets.shape[0]:
            count = min(rule.batch, targets.shape[0] - i)
            if status.order + count > state.diagonal.shape[0]:
                return FULL, i
            if status.changes >= PROBE_EVERY:
                return PROBE, i
            values, norms, f, earlier = evaluate_block(state, past, rule, program, rows, i, count)
            if predictions.shape[0] > 0:
                for r in range(count):
                    predictions[i + r, 0] = f[r, f.shape[1] - 1]  # of the average if there is one
            rate = tracking_rate(rule.tracking_rate, status.steps)
            x = np.zeros((count, state.points.shape[0]))
            trackers = np.zeros((count, tracked.shape[0]))  # after each sample alone
            now, then = np.zeros(tracked.shape[0]), np.zeros(tracked.shape[0])
            for r in range(count):
                sample(rows, i + r, x[r])
                put(inner(f[r, 0], x[r], targets[i + r]), now)
                if past.shape[0] > 0:  # (20)
                    put(inner(earlier[r, 0], x[r], targets[i + r]), then)
                    trackers[r] = (1.0 - rate) * (tracked - then) + now
                else:  # (19)
                    trackers[r] = (1.0 - rate) * tracked + rate * now
            # (24) with the outer function's own derivative, each sample in both roles
            direction = np.zeros((count, 1))
            for r in range(count):
                other = partner(r, count)
                in_value, in_tracked = outer_derivative(
                    f[r, 0], seen(trackers[other]), x[r], targets[i + r]
                )
                put(in_tracked, then)
                put(inner_derivative(f[other, 0], x[other], targets[i + other]), now)
                direction[r, 0] += in_value
                direction[other, 0] += (then * now).sum()
            after = np.zeros(tracked.shape[0])
            for r in range(count):
                direction[r, 0] *= sample_weights[i + r]
                after += trackers[r] / count
            if not np.isfinite(after).all() or not advance(
                state, past, rule, program, rows, i, values, norms, direction, rest[:count],
                count, count,
            ):  # fmt: skip
                return DIVERGED, i
            tracked[:] = after
            i += count
        return roomy(state, rule.batch), i

    return learn  # type: ignore[no-any-return]
