"""The open core of COLK: a nested expectation of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import storage
from kernelstream.core.kernel import Program, Rows
from kernelstream.core.state import State
from kernelstream.errors import prefixed
from kernelstream.models import _validation as check
from kernelstream.models._compositional import check_functions, make_pass
from kernelstream.models._regressor import KernelRegressor
from kernelstream.models._stream import as_before_on_error
from kernelstream.models.colk import _Paired
from kernelstream.parameters import Whole
from kernelstream.rows import count_rows, stack_rows, take_rows

#: Parameters that are code, which files do not hold.
_FUNCTIONS = ("inner", "inner_derivative", "outer_derivative")


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
    KOMP. (24) is the case without the first term. With ``inner_X`` the samples x of the outer
    expectation (theta in the paper) and x' of the inner one (xi) come from populations of their
    own and keep their roles: that is Algorithm 1 as printed. How the function before the last step
    is kept, which (20) needs, is described in :class:`COLKRegressor`. Nothing is clipped: the
    functions do that themselves; a step that is not finite is refused. Functions are not written
    to a model file: ``load(path, inner=..., inner_derivative=..., outer_derivative=...)`` is given
    them again.

    With several targets per sample f has as many outputs, on one dictionary. ``value`` and ``y``
    are then arrays of q numbers; the derivatives in value are q numbers, of ``n_tracked`` functions
    an (n_tracked, q) array.

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

    Two populations: a curve through the samples whose mean elsewhere is to be 1, with no targets
    there. The inner function is f itself, the outer one adds (mean - 1)^2 to the loss:

    >>> def itself(value, x, y):
    ...     return value
    >>> def one(value, x, y):
    ...     return 1.0
    >>> def fit_and_mean(value, mean, x, y):
    ...     return value - y, 2.0 * (mean - 1.0)
    >>> elsewhere = random.uniform(2.0, 3.0, (1000, 1))
    >>> model = CompositionalLearner(itself, one, fit_and_mean, gamma=5.0)
    >>> model = model.partial_fit(X, y, inner_X=elsewhere)
    >>> bool(abs(model.predict(elsewhere).mean() - 1.0) < 0.1)
    True

    Two targets at once, whose errors are to cancel on average: to the loss of both is added
    2 (E[e_1 + e_2])^2, where e_c = f_c(x) - y_c:

    >>> def sum_of_errors(value, x, y):
    ...     return (value - y).sum()
    >>> def ones(value, x, y):
    ...     return np.ones(2)
    >>> def fit_and_cancel(value, mean, x, y):
    ...     return value - y, 4.0 * mean
    >>> Y = np.column_stack([y, np.cos(3.0 * X[:, 0])])
    >>> model = CompositionalLearner(sum_of_errors, ones, fit_and_cancel).partial_fit(X, Y)
    >>> model.predict(X[:5]).shape, bool(abs(model.tracker_) < 0.1)
    ((5, 2), True)
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
        *_FUNCTIONS,
        "n_tracked",
    )

    # What other regressors ask for: the functions take its place.
    loss: ClassVar[str] = "squared_error"  # type: ignore[misc]
    max_bytes: ClassVar[None] = None  # type: ignore[misc]
    _tracked: NDArray[np.float64] = field(init=False)
    _apart: bool = field(init=False, default=False)  # whether inner samples are others

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from scratch, ``n_epochs`` times over samples of one population.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) numbers, or (n, q), optional
            With q of them f has q outputs. Without any the functions are given 0.
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out.
        """
        return super().fit(X, _targets(X, y), sample_weight)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        inner_X: Any = None,
        inner_y: Any = None,
    ) -> Self:
        """Learn from the next samples of the stream, in order.

        Any chunking of the same samples gives the same model, bit for bit (with
        ``gamma="scale"`` the first chunk decides gamma). If anything is wrong with the input
        the model stays as it was.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) numbers, or (n, q), optional
            With q of them f has q outputs. Without any the functions are given 0.
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out.
        inner_X : (n, p) array, CSR matrix or data frame, optional
            Samples of the inner expectation, if they come from a population of their own: one for
            each of ``X``, which are then those of the outer expectation alone. Either always or
            never.
        inner_y : (n,) numbers, or (n, q), optional
            Their targets, as many as ``y`` has.
        """
        apart = inner_X is not None
        if inner_y is not None and not apart:
            raise ValueError("inner_y belongs to inner_X, which is not given")
        if hasattr(self, "_state") and apart != self._apart:
            raise ValueError(
                "inner_X must be given with all samples or with none: so far it "
                f"{'was' if self._apart else 'was not'} given. Use a fresh model"
            )
        with as_before_on_error(self):
            samples = self._admit(X, self._or_zeros(X, y), sample_weight)
            if apart:
                self._apart = True
                samples = self._interleaved(*samples, inner_X, inner_y)
        self._learn(*samples)
        return self

    def _interleaved(
        self, rows: Rows, targets: Any, weights: Any, inner_X: Any, inner_y: Any
    ) -> tuple[Rows, Any, Any]:
        """Outer and inner samples in turns."""
        n = len(targets)
        with prefixed("inner_X"):
            others = check.check_samples(self, inner_X)
        if count_rows(others) != n:
            raise ValueError(f"X has {n} rows, inner_X has {count_rows(others)}")
        with prefixed("inner_y"):
            theirs = check.check_numbers(self._or_zeros(inner_X, inner_y), n, several=True)
        if theirs.shape != targets.shape:
            each = 1 if theirs.ndim == 1 else theirs.shape[1]
            raise ValueError(
                f"y has {self._n_targets} numbers per sample, inner_y has {each}: f has as many, "
                "and both are compared with it"
            )
        order = np.arange(2 * n).reshape(2, n).T.ravel()
        return (
            take_rows(stack_rows(rows, others), order),
            np.concatenate([targets, theirs])[order],
            None if weights is None else np.repeat(weights, 2),
        )

    def predict_then_learn(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> NDArray[np.float64]:
        """Predict each sample, then learn from it: :meth:`partial_fit` that also says what it
        thought.

        Returns the predictions, each made by the model as it was just before that sample's
        batch. Of one population only.
        """
        self._check_together()
        return super().predict_then_learn(X, self._or_zeros(X, y), sample_weight)

    def learn_one(self, x: NDArray[np.float64], y: Any = 0.0) -> None:
        """Learn from one sample, without scikit-learn's validation.

        ``x`` is a 1-D array of finite numbers, ``y`` a finite number, or an array of as many as f
        has.
        """
        self._check_together()
        super().learn_one(x, y)

    def _or_zeros(self, X: Any, y: Any) -> Any:
        """Targets, or zeros, as many as f has outputs."""
        return _targets(X, y, self._n_targets if hasattr(self, "_state") else 1)

    def _check_together(self) -> None:
        if self._apart:
            raise ValueError(
                "this model learns from samples of two populations: call partial_fit with inner_X"
            )

    @property
    def tracker_(self) -> Any:
        """The estimate g of E[ inner(f(x)) ]: a number, or ``n_tracked`` numbers."""
        self._fitted()
        return float(self._tracked[0]) if self.n_tracked is None else self._tracked.copy()

    @property
    def nbytes_(self) -> int:
        """Bytes held by the model, spare capacity and unfinished batch included."""
        return super().nbytes_ + self._tracked.nbytes

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_tracked"):  # joblib may have mapped it read-only
            self._tracked = np.array(self._tracked)

    def _extra_header(self) -> dict[str, Any]:
        return {
            **super()._extra_header(),
            "functions": list(_FUNCTIONS),
            "tracked": self._tracked.tolist(),
            "apart": self._apart,
        }

    def _restore_extra(self, header: dict[str, Any]) -> None:
        super()._restore_extra(header)
        self._tracked = np.array(header["tracked"], dtype=np.float64)
        self._apart = bool(header["apart"])
        if self._tracked.shape != (self.n_tracked or 1,):
            raise ValueError("what is tracked contradicts n_tracked")

    @classmethod
    def _from_document(cls, document: storage.Document, **functions: Any) -> Self:
        parameters = {**document.header["parameters"], **functions}
        header = {**document.header, "parameters": parameters}
        return super()._from_document(document._replace(header=header))

    def _start(self, X: Any, rows: Rows) -> None:
        super()._start(X, rows)
        self._apart = False
        self._tracked = np.zeros(self.n_tracked or 1)

    def _overflow_cure(self) -> str:
        return (
            f"a function given to CompositionalLearner is not finite there, or the step size "
            f"eta0={self.eta0} is too large for it. Choose a smaller eta0, or bound its "
            "derivatives."
        )

    def _pass(self) -> Callable[..., tuple[int, int]]:
        functions = self.inner, self.inner_derivative, self.outer_derivative
        single = self._n_targets == 1
        learn = make_pass(*functions, self.n_tracked is None, single, bool(self._apart))

        def compositional_pass(*given: Any) -> tuple[int, int]:
            state, program, rows = State(*given[:8]), Program(*given[9:15]), Rows(*given[15:20])
            targets, weights, extra, first, predictions = given[20:]
            targets = targets[:, None] if single else np.ascontiguousarray(extra)
            current, past = np.split(state.weights, [self._projected])
            with np.errstate(invalid="ignore", over="ignore"):  # such a step is refused
                if state.status[0]["steps"] == 0 and len(targets):
                    try:
                        check_functions(*functions, self.n_tracked, rows, targets)
                    except ValueError:
                        del self._state  # so that parameters can be mended
                        raise
                return learn(
                    state._replace(weights=current), past, given[8], program, rows, targets,
                    weights, first, predictions, self._tracked,
                )  # fmt: skip

        return compositional_pass


def _targets(X: Any, y: Any, each: int = 1) -> Any:
    """y, or zeros where there are none."""
    if y is not None:
        return y
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    return np.zeros(n if each == 1 else (n, each))
