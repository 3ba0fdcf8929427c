"""Kernel logistic regression by L-BFGS."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kernelstream.expansion import KernelExpansion
from kernelstream.kernels import Kernel, first_gamma, make_kernel
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.parameters import Number, Parameters, Whole
from kernelstream.rows import count_rows, dense_matrix

#: Points are left out whose squared distance to the span of the others is below this part of k.
_SPANNED = 1e-10


class LogisticProblem(NamedTuple):
    """(1/n) sum_i -log p(y_i | x_i) + (alpha / 2) sum_c |f_c|^2, p the softmax of f_1 .. f_C."""

    codes: NDArray[np.int64]  # (n,) of the labels
    classes: int
    alpha: float

    def minimise(self, Z: Any, start: Any, max_iter: int, tol: float) -> tuple[Any, float, int]:
        """For f = Z V with |f_c| = |v_c|: V (q, C), the least value, and iterations."""
        n, wanted = len(self.codes), np.eye(self.classes)[self.codes]
        shape = Z.shape[1], self.classes

        def value(flat: Any) -> tuple[float, Any]:
            V = flat.reshape(shape)
            f = Z @ V
            risk = -log_softmax(f, axis=1)[np.arange(n), self.codes].mean()
            slope = Z.T @ (softmax(f, axis=1) - wanted) / n + self.alpha * V
            return risk + 0.5 * self.alpha * np.sum(V * V), slope.ravel()

        options = {"maxiter": max_iter, "gtol": tol, "ftol": 0.0, "maxfun": 10 * max_iter}
        found = minimize(value, start.ravel(), jac=True, method="L-BFGS-B", options=options)
        return found.x.reshape(shape), float(found.fun), int(found.nit)


class BatchLogistic(Parameters, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Parameters and predictions of logistic regression with a kernel."""

    kernel: p.Kernel = "rbf"
    gamma: p.Gamma = "auto"
    degree: p.Degree = 3
    coef0: p.Coef0 = 1.0
    alpha: Annotated[float, Number(above=0.0), "Regularisation (lambda in the paper)."] = 1e-3

    kernel_: Annotated[Kernel, "The kernel with all its numbers."] = field(init=False)
    classes_: Annotated[NDArray[Any], "The labels."] = field(init=False)
    dictionary_: Annotated[NDArray[np.float64], "(M, p): samples whose weights are not zero."] = (
        field(init=False)
    )
    weights_: Annotated[NDArray[np.float64], "(M, C): their weights, one column a class."] = field(
        init=False
    )
    objective_: Annotated[float, "The least value of the objective."] = field(init=False)

    def _prepare(self, X: Any, y: Any) -> tuple[NDArray[np.float64], LogisticProblem]:
        self._check_values()
        rows = check.check_rows(self, X, new=True)
        labels = check.check_labels(y, count_rows(rows))
        kernel = make_kernel(self.kernel, first_gamma(self.gamma, rows), self.degree, self.coef0)
        check.check_kernel_range(kernel, rows)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}: two at least are needed")
        check.note_features(self, X)
        self.kernel_ = kernel
        return dense_matrix(rows), LogisticProblem(codes, len(self.classes_), self.alpha)

    @property
    def model_order_(self) -> int:
        """Samples whose weights are not zero."""
        check_is_fitted(self)
        return len(self.dictionary_)

    @property
    def expansion_(self) -> KernelExpansion:
        """The functions f_1 .. f_C as a value."""
        check_is_fitted(self)
        return KernelExpansion(self.kernel_, self.dictionary_, self.weights_)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """(n, C): f_c(x); with two classes (n,): that of the second, less the first's."""
        check_is_fitted(self)
        f = self.kernel_(dense_matrix(check.check_rows(self, X)), self.dictionary_) @ self.weights_
        return f[:, 1] - f[:, 0] if len(self.classes_) == 2 else f  # type: ignore[no-any-return]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(n, C): probabilities, in the order of ``classes_``."""
        f = self.decision_function(X)
        if f.ndim == 1:
            f = np.stack([-0.5 * f, 0.5 * f], axis=1)
        return softmax(f, axis=1)  # type: ignore[no-any-return]

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class KernelLogisticRegression(BatchLogistic):
    """Logistic regression in the space of a kernel, of all samples, to the end.

    See Also
    --------
    ImportVectorMachine : the same problem on a few points.
    kernelstream.POLKClassifier : for streams, with ``loss="log_loss"``.

    Notes
    -----
    min (1/n) sum_i -log p(y_i | x_i) + (alpha / 2) sum_c |f_c|^2, p the softmax of f_1 .. f_C. The
    solution lies in the span of the samples. A pivoted Cholesky factor of their kernel matrix gives
    coordinates in which the norm is the Euclidean one, so that L-BFGS meets a well-conditioned
    problem, and leaves out samples which the others span to ten digits.

    References
    ----------
    .. [1] J. Zhu, T. Hastie, "Kernel logistic regression and the import vector machine", Journal of
       Computational and Graphical Statistics 14 (2005).
    .. [2] J. Nocedal, "Updating quasi-Newton matrices with limited storage", Mathematics of
       Computation 35 (1980).

    Examples
    --------
    >>> from kernelstream.batch import KernelLogisticRegression
    >>> from kernelstream.streams import make_multidist
    >>> X, y, X_test, y_test = make_multidist(500, n_test=500, random_state=1)
    >>> model = KernelLogisticRegression(gamma=2.0).fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    max_iter: Annotated[int, Whole(1), "Iterations of L-BFGS at most."] = 1000
    tol: Annotated[float, Number(above=0.0), "Largest entry of the gradient at the end."] = 1e-7

    n_iter_: Annotated[int, "Iterations made."] = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Minimise the objective."""
        rows, problem = self._prepare(X, y)
        K = self.kernel_(rows)
        factor, pivots, rank, _ = dpstrf(K, lower=1, tol=_SPANNED * K.diagonal().max())
        chosen = pivots[:rank] - 1
        L = np.empty((len(rows), rank))
        L[pivots - 1] = np.tril(factor)[:, :rank]  # K = L L', L[chosen] triangular
        start = np.zeros((rank, problem.classes))
        V, self.objective_, self.n_iter_ = problem.minimise(L, start, self.max_iter, self.tol)
        self.dictionary_ = rows[chosen]
        self.weights_ = solve_triangular(L[chosen], V, lower=True, trans="T")
        return self
