"""Adaptive filters: what they share beside ``core/filters.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from kernelstream.core.filters import (
    DEPENDENCE,
    FILTER_SETTINGS,
    FILTER_STATUS,
    GROWING,
    IMPORTANCE,
    WINDOW,
    FilterState,
    filter_pass,
)
from kernelstream.core.gram import reflect_away
from kernelstream.core.kernel import Rows
from kernelstream.expansion import KernelExpansion, expand
from kernelstream.models._flat import FlatEstimator
from kernelstream.models._regressor import StreamRegressor
from kernelstream.models._words import CAP_COSTS, count_of
from kernelstream.parameters import Number
from kernelstream.search import LogRange

#: Which of a filter's rules keep a factor, targets, and the spread of least squares.
_FACTORED, _LABELLED, _SPREAD = (
    (DEPENDENCE, WINDOW, IMPORTANCE),
    (WINDOW, IMPORTANCE),
    (DEPENDENCE,),
)

Ridge = Annotated[
    float,
    Number(least=1e-8, most=1e6),
    LogRange(1e-4, 1.0),
    "Regularisation: added to the kernel matrix's diagonal (c in the paper).",
]


class KernelFilter(FlatEstimator, StreamRegressor):
    """A regressor that moves with every sample, whatever its error; a rule says how."""

    _arrays = FilterState
    _status = FILTER_STATUS
    _rule: ClassVar[int]  # see core/filters.py
    _at_the_cap: ClassVar[str]  # what happens there, in words
    _needs_its_points = "its points are part of how it learns"

    def _numbers(self) -> dict[str, float]:
        """The numbers of its rule, by their names in ``core/filters.py``."""
        raise NotImplementedError

    def _shapes(self, features: int, outputs: int, most: int) -> dict[str, tuple[int, ...]]:
        n, rule = most + 1, self._rule
        square = {True: (n, n), False: (0, 0)}
        return {
            "points": (features, n), "square_norms": (n,), "absolute_norms": (n,),
            "self_kernels": (n,), "weights": (outputs, n),
            "labels": (outputs, n * (rule in _LABELLED)),
            "factor": square[rule in _FACTORED], "diagonal": (n,),
            "spread": square[rule in _SPREAD],
        }  # fmt: skip

    def _pass(self) -> Callable[..., tuple[int, int]]:
        return filter_pass  # type: ignore[no-any-return]

    def _settings(self) -> NDArray[Any]:
        settings = np.zeros(1, FILTER_SETTINGS)
        values = {"rule": self._rule, "most": self._size(self._state), **self._numbers()}
        for name, value in values.items():
            settings[0][name] = value
        return settings

    def _size(self, state: Any) -> int:
        return len(state.diagonal) - 1

    def _values(self, rows: Rows) -> NDArray[np.float64]:
        state = self._state
        return expand(self.kernel_, rows, state, state.weights[:, : state.order].T)

    @property
    def dictionary_(self) -> NDArray[np.float64]:
        """(M, p): the stored points."""
        state = self._fitted()
        return state.points[:, : state.order].T.copy()  # type: ignore[no-any-return]

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """(outputs, M): the weights of the stored points."""
        state = self._fitted()
        return state.weights[:, : state.order].copy()  # type: ignore[no-any-return]

    @property
    def expansion_(self) -> KernelExpansion:
        """The learned function as a value."""
        return KernelExpansion(self.kernel_, self.dictionary_, self._flat(self.dual_coef_.T))

    # ---- another cap ------------------------------------------------------------------

    def _resize(self, most: int) -> None:
        old, n = self._state, self._state.order
        order = self._in_order_of_staying(most)
        kept = min(n, most)
        permuted = old._replace(
            **{name: getattr(old, name)[..., order] for name in ("points", "weights")},
            **{name: getattr(old, name)[order] for name in _VECTORS},
            labels=old.labels[:, order] if old.labels.size else old.labels,
            factor=old.factor[order] if old.factor.size else old.factor,
            spread=old.spread[order] if old.spread.size else old.spread,
            status=old.status.copy(),
        )
        while permuted.status[0]["order"] > kept:
            _drop_last(permuted)
        new = self._allocate(most)
        for name in (*_VECTORS, "points", "weights", "labels"):
            source, target = getattr(permuted, name), getattr(new, name)
            if target.size:
                target[..., :kept] = source[..., :kept]
        if new.factor.size:
            new.factor[:kept, :kept] = permuted.factor[:kept, :kept]
        if new.spread.size:  # as many columns as rows again, with the same products
            rows = permuted.spread[:kept, :n]
            new.spread[:kept, :kept] = qr(rows.T, mode="r")[0][:kept].T
        new.status[:] = permuted.status
        new.status[0]["oldest"] = 0
        self._state = new
        if self._rule in _LABELLED:  # least squares of what is left
            factor = new.factor[:kept, :kept]
            for weights, labels in zip(new.weights, new.labels, strict=True):
                weights[:kept] = factor @ (factor.T @ labels[:kept])

    def _in_order_of_staying(self, most: int) -> NDArray[np.int64]:
        """Points that stay under a cap, as they lie or in the order they came; then the others."""
        state, n = self._state, self._state.order
        if self._rule in (GROWING, WINDOW):
            newest = (state.status[0]["oldest"] + np.arange(n))[::-1] % max(n, 1)
            return np.concatenate([newest[:most][::-1], newest[most:]])
        size = np.sqrt((state.weights[:, :n] ** 2).sum(axis=0))
        if self._rule == IMPORTANCE:  # a posteriori errors
            size = size / state.diagonal[:n]
        elif self._rule == DEPENDENCE:  # how far the function moves
            size = size / np.sqrt(state.diagonal[:n])
        largest = np.argsort(-size, kind="stable")
        return np.concatenate([np.sort(largest[:most]), largest[most:]])

    def _check_read(self, state: Any) -> None:
        n = state.order
        if state.status[0]["oldest"] >= max(n, 1):
            raise ValueError("the state's parts contradict one another")
        with np.errstate(over="ignore"):
            points = state.points[:, :n]
            derived = {
                "square_norms": (points**2).sum(axis=0),
                "absolute_norms": np.abs(points).sum(axis=0),
                "self_kernels": np.ones(n),
            }
            if state.factor.size:
                derived["diagonal"] = (state.factor[:n, :n] ** 2).sum(axis=1)
        for name, right in derived.items():
            if not np.allclose(getattr(state, name)[:n], right, 1e-6, 0.0):
                raise ValueError("the state's parts contradict one another")

    # ---- words ------------------------------------------------------------------------

    def _overflow_cure(self) -> str:
        return "the target or the step is too large. Scale the target, or take a smaller step."

    def _cap_effect(self, cap: str) -> str:
        times = count_of(self.n_forced_, "time")
        return f"{cap} was reached, and {times} {self._at_the_cap}. {CAP_COSTS}"


_VECTORS = ("square_norms", "absolute_norms", "self_kernels", "diagonal")


def _drop_last(state: Any) -> None:
    """Without the last point: its part that the others span goes to them."""
    last = state.order - 1
    if state.factor.size:
        column, v = np.empty(last + 1), np.empty(last + 1)
        reflect_away(state.factor, state.diagonal, last + 1, last, v, column)
        state.weights[:, :last] -= column[:last] / column[last] * state.weights[:, last, None]
    state.status[0]["order"] = last
    state.status[0]["forced"] += 1
