"""A subspace learned from a stream (OK-FE, OK-FEB): its parameters, its files, what it knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import storage
from kernelstream.core import feature_budget, feature_state, feature_steps
from kernelstream.core import features as core
from kernelstream.core.kernel import Rows
from kernelstream.docstrings import documented
from kernelstream.expansion import KernelExpansion, expand
from kernelstream.features._parameters import FeatureParameters
from kernelstream.kernels import Kernel, first_gamma, make_kernel
from kernelstream.models._base import KernelEstimator
from kernelstream.rows import plain_matrix, slice_rows

#: Stored samples for each component that the first subspace is made of.
_EARLY = 5
#: Stored samples whose kernel values a file must have right.
_CHECKED = 500
#: Condition of a basis beyond which there is none.
_WORST_ROOT = 1e15


class FeatureLearner(FeatureParameters):
    """A subspace learned from a stream: what the transformer and the joint learners share.

    Notes
    -----
    The subspace is spanned by the columns of Phi_S A, S the stored samples. A sample's
    coefficients are q = (A'KA + alpha I)^-1 A'k(S, x) (11b), its fit error the squared distance
    |phi(x) - Phi_S A q|^2 in the RKHS, and its features z = (A'KA)^(1/2) q, so that z.z'
    approximates k(x, x') (Remark 4, in r dimensions instead of B) [1]_.

    S starts with the first r samples (those that the ones before do not span to eight digits) and
    A = I. The paper's start, one row, has rank one: q lies in the row space of A, and only
    rounding, which grows by 1 + mu |residual|^2 / alpha a step, opens other directions. When 5r
    samples are stored (or as many as the budget holds; half of it for the nonparametric solver), A
    becomes their principal directions (kernel PCA), and the steps go on from there;
    ``basis="printed"`` leaves that out. A direction that dies out (a sensor that is stuck, and
    ``fifo``) is opened again by the next sample outside the span.

    As printed, A may grow without bound while q shrinks, or on a budget sink until alpha
    outweighs it. An orthonormal basis avoids both. ``basis="printed"`` leaves A as the recursion
    gives it, with a common power of two apart; with ``steps="printed"`` as well these are the
    paper's iterates.

    References
    ----------
    .. [1] F. Sheikholeslami, D. Berberidis, G. B. Giannakis, "Large-scale kernel-based feature
       extraction via low-rank subspace tracking on a budget", IEEE Transactions on Signal
       Processing 66 (2018).
    """

    _multiplies = True
    _lasting: ClassVar[tuple[str, ...]] = (
        "n_components", "max_points", "kernel", "gamma", "degree", "coef0", "solver", "basis",
    )  # fmt: skip
    batch_size = 1
    _waits = False
    average = False
    align = False

    _unlisted: ClassVar[tuple[str, ...]] = ("n_waiting_",)
    _fit_errors = 1
    _state: Any = field(init=False)

    # ---- what the base class asks for -------------------------------------------------

    def _make_kernel(self, rows: Rows) -> Kernel:
        return make_kernel(self.kernel, first_gamma(self.gamma, rows), self.degree, self.coef0)

    @property
    def _keeps_gram(self) -> bool:
        """The parametric solver without a budget never looks at the kernel matrix."""
        return self.max_points is not None or self._solver == "nonparametric"

    def _capacity_limit(self, features: int, outputs: int | None = None) -> int:
        return int(np.iinfo(np.int32).max) if self._most_points is None else self._most_points + 1

    def _allocate(self, features: int, capacity: int, seed: int) -> Any:
        return feature_state.allocate(
            features, self.n_components, self._outputs, capacity, self._keeps_gram
        )

    def _resize(self, capacity: int) -> None:
        self._state = feature_state.resize(self._state, capacity)

    def _note_new_outputs(self, halved: bool) -> None:
        pass

    def _overflow_cure(self) -> str:
        return (
            f"a step of step_size={self.step_size!r} as the paper prints it is too long here. "
            "Use steps='bounded', or a smaller step_constant."
        )

    def _pass(self) -> Callable[..., tuple[int, int]]:
        return core.feature_pass

    def _learner(self) -> tuple[Any, ...]:
        """Loss, its number, regularisation and steps of the linear learner."""
        return 0, 0.0, 0.0, 0, 0.0, 0.0

    @property
    def _early(self) -> int:
        """Stored samples whose principal directions are the first subspace; 0: none are."""
        if not self._orthonormal:
            return 0
        many = _EARLY * self.n_components
        if self._most_points is None:
            return many
        # Samples that come later get short rows from (19): they need places that are free.
        return min(
            many, self._most_points if self._solver == "parametric" else self._most_points // 2
        )

    def _settings(self, outputs: int, most: int) -> NDArray[Any]:
        most = core.UNLIMITED if self._most_points is None else self._most_points
        values = (
            self._orthonormal, self._early, float(self.alpha), most,
            # The codes have the names of the choices.
            getattr(feature_steps, self._solver.upper()),
            getattr(feature_steps, self.step_size.upper()),
            self._step_constant, self._bounded, getattr(feature_budget, self.removal.upper()),
            float(self.forgetting), *self._censoring(), bool(self.align), *self._learner(), outputs,
        )  # fmt: skip
        return np.array([values], feature_state.FEATURE_SETTINGS)

    def _predict_then_learn(
        self, rows: Rows, targets: Any, weights: Any, beside: int = 0
    ) -> NDArray[np.float64]:
        found = self._learn_and_predict(rows, targets, weights, beside)
        return np.delete(found, self._outputs, axis=1)

    def _learn_and_predict(
        self, rows: Rows, targets: Any, weights: Any, beside: int = 0
    ) -> NDArray[np.float64]:
        """Learn, and return (n, outputs + 1): predictions from just before, and fit errors."""
        outputs = self._outputs
        out = np.zeros((len(targets), outputs + 1 + beside))
        if weights is None or (weights != 0.0).all():
            self._learn(rows, targets, weights, out)
            return out
        for i in range(len(targets)):  # a sample of weight zero is predicted and not learned
            part, here = slice_rows(rows, i, i + 1), slice(i, i + 1)
            out[i, :outputs], out[i, outputs] = self._values(part)[0], self._errors(part)[0]
            self._judge(out[here])
            self._learn(part, targets[here], weights[here])
        return out

    # ---- files ------------------------------------------------------------------------

    @staticmethod
    def _pack(state: Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return feature_state.pack(state)

    def _unpack(self, arrays: Mapping[str, NDArray[Any]], status: dict[str, Any]) -> Any:
        return feature_state.unpack(dict(arrays), status)

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        model = super()._from_document(document)
        state = model._state
        if not state.order and model._keeps_gram:  # nothing says whether there is a matrix
            side = state.capacity
            model._state = state = state._replace(gram=np.zeros((side, side)))
        most = state.order if model._most_points is None else model._most_points
        matrix = (len(state.gram) > 0) == model._keeps_gram
        if state.weights.shape[1] != model.n_components or state.order > most or not matrix:
            raise ValueError("the parameters contradict the state")
        if model._keeps_gram:
            few = slice(min(state.order, _CHECKED))
            true = model.kernel_(state.points.T[few])
            if not np.allclose(state.gram[few, few], true, rtol=1e-6, atol=1e-12):
                raise ValueError("the kernel matrix contradicts the stored samples")
        model._check_basis()
        return model

    def _check_basis(self) -> None:
        """Refuse a file whose basis is not that of its factor."""
        state, status, rank = self._state, self._state.status[0], self.rank_
        live = (slice(rank), slice(rank))
        M, unit = state.inner[live], np.eye(rank)
        right = np.allclose(state.rotation.T @ state.rotation, np.eye(len(state.rotation)))
        if self._keeps_gram:
            A = state.factor[: state.order, :rank]
            K = state.gram[: state.order, : state.order]
            right &= np.allclose(A.T @ K @ A, M, rtol=0.0, atol=1e-3 * max(np.trace(M), 1e-300))
        if self._orthonormal and status["updates"]:
            right &= np.array_equal(M, unit) and np.array_equal(state.root[live], unit)
            right &= 0.99 <= status["ridge"] / max(self.alpha, 1e-14 * rank) <= 1.01
        if self.align and rank and np.linalg.cond(state.root[live]) > _WORST_ROOT:
            right = False  # features are computed with its inverse
        if not right:
            raise ValueError("the basis contradicts the factor")

    # ---- what was learned -------------------------------------------------------------

    nbytes_ = documented(
        KernelEstimator.nbytes_,
        """Bytes held: 8 (c (p + r + 4 + c) + r (4 r + C) + 2000) plus a record, where the capacity
        c is at most max(16, 2 B + 2) and at most max_points + 1, and C counts the outputs of a
        joint learner. The parametric solver without a budget needs no kernel matrix: then without
        the last c.""",
    )

    def _fitted(self) -> Any:
        return super()._fitted()

    @property
    def _in_order(self) -> NDArray[np.int64]:
        state = self._fitted()
        return np.argsort(state.numbers[: state.order], kind="stable")

    @property
    def dictionary_(self) -> NDArray[np.float64]:
        """(B, p): the stored samples, oldest first."""
        return np.ascontiguousarray(self._fitted().points.T[self._in_order])

    @property
    def dictionary_numbers_(self) -> NDArray[np.int64]:
        """(B,): which samples of the stream they were, counting from 0."""
        return self._fitted().numbers[self._in_order]

    @property
    def factor_(self) -> NDArray[np.float64]:
        """(B, r): the factor A, a row for each stored sample."""
        state = self._fitted()
        exponent = min(int(state.status[0]["exponent"]), 500)
        return np.ldexp(state.factor[self._in_order], exponent)

    @property
    def rank_(self) -> int:
        """Directions in use: n_components, once as many independent samples have come."""
        return int(self._fitted().status[0]["rank"])

    @property
    def fit_errors_(self) -> NDArray[np.float64]:
        """(m,): the last fit errors, up to 1000, each from before its sample was learned."""
        return self._last(self._fitted().errors)

    @property
    def fit_error_numbers_(self) -> NDArray[np.int64]:
        """(m,): which samples of the stream they belong to, counting from 0."""
        return self._last(self._fitted().places)

    def _last(self, ring: NDArray[Any]) -> NDArray[Any]:
        recorded = int(self._state.status[0]["recorded"])
        places = np.arange(max(0, recorded - len(ring)), recorded)
        return ring[places % len(ring)]

    @property
    def censoring_rate_(self) -> float:
        """The part of the samples that did not change the subspace, those S started with apart."""
        status = self._fitted().status[0]
        return float(status["censored"] / max(1, status["candidates"]))

    @property
    def n_updates_(self) -> int:
        """Samples that changed the subspace, those S started with apart."""
        return int(self._fitted().status[0]["updates"])

    @property
    def n_forced_(self) -> int:
        """Samples discarded because of the budget."""
        return int(self._fitted().status[0]["removed"])

    def _live_inner(self) -> tuple[int, float, NDArray[np.float64]]:
        """Rank, ridge, and M = A'KA in the units of the state."""
        state, rank = self._fitted(), self.rank_
        return rank, float(state.status[0]["ridge"]), state.inner[:rank, :rank]

    @property
    def _live_weights(self) -> NDArray[np.float64]:
        """(B, outputs): f = v'M q as an expansion on the stored samples."""
        rank, ridge, M = self._live_inner()
        state = self._state
        inside = np.linalg.solve(M + ridge * np.eye(rank), M @ state.weights[:, :rank].T)
        return state.factor[: state.order, :rank] @ inside

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """(outputs, B): the weights of the stored samples."""
        return self._live_weights[self._in_order].T.copy()

    @property
    def expansion_(self) -> KernelExpansion:
        """The learned function as a value."""
        weights = self.dual_coef_.T
        return KernelExpansion(
            self.kernel_, self.dictionary_, weights[:, 0] if self._outputs == 1 else weights
        )

    def _times(self, rows: Rows, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """k(x, S) times a matrix with a row for each stored sample."""
        return expand(self.kernel_, rows, self._state, matrix)

    def _features(self, rows: Rows) -> NDArray[np.float64]:
        """(n, r): z = W q with W'W = M."""
        rank, ridge, M = self._live_inner()
        state = self._state
        if self.align:  # root and rotation of the basis that was carried along
            rotation = state.rotation[:, :rank]
            W = rotation @ np.linalg.inv(state.root[:rank, :rank]).T
        else:
            values, vectors = np.linalg.eigh(M)
            W = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        solved = np.linalg.solve(M + ridge * np.eye(rank), W.T)
        matrix = np.zeros((state.order, self.n_components))
        matrix[:, : solved.shape[1]] = state.factor[: state.order, :rank] @ solved
        return self._times(rows, matrix)

    def _errors(self, rows: Rows) -> NDArray[np.float64]:
        rank, ridge, M = self._live_inner()
        state = self._state
        c = self._times(rows, np.ascontiguousarray(state.factor[: state.order, :rank]))
        q = np.linalg.solve(M + ridge * np.eye(rank), c.T).T
        k_xx = np.ones(len(c))
        if not self.kernel_.unit:
            k_xx = self.kernel_.diagonal(plain_matrix(rows))
        return np.maximum(k_xx - (c * q).sum(axis=1) - ridge * (q * q).sum(axis=1), 0.0)
