"""The import vector machine: kernel logistic regression on points chosen one by one."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import softmax

from kernelstream.batch.logistic import BatchLogistic, LogisticProblem
from kernelstream.models._stream import random_numbers
from kernelstream.parameters import Nothing, Number, RandomState, Whole

#: A sample whose squared distance to the span of the points is below this part of k is none.
_SPANNED = 1e-8
#: Iterations at most, and the largest entry of the gradient.
_ON_THE_WAY, _AT_THE_END = (200, 1e-5), (1000, 1e-7)


class ImportVectorMachine(BatchLogistic):
    """Kernel logistic regression on a few samples, each the one that helps most.

    See Also
    --------
    KernelLogisticRegression : on all samples.

    Notes
    -----
    ::

        S <- no points
        repeat: for each sample x outside S: the least objective H(x) of a function on S and x
            S <- S and the x of least H(x)
        until there are max_points, or H falls by less than tol of itself

    The objective is that of :class:`KernelLogisticRegression`, for any number of classes on one
    set of points. ``search="exact"`` minimises it for each x, the paper's basic algorithm;
    ``search="newton"`` takes for each x one Newton step along the part of k(x, .) that S does not
    span, and minimises for the chosen x alone: the paper's shortcut is a Newton step as well, of
    all weights. The paper stops by the change over several steps.

    References
    ----------
    .. [1] J. Zhu, T. Hastie, "Kernel logistic regression and the import vector machine", Journal of
       Computational and Graphical Statistics 14 (2005).

    Examples
    --------
    >>> from kernelstream.batch import ImportVectorMachine
    >>> from kernelstream.streams import make_multidist
    >>> X, y, X_test, y_test = make_multidist(500, n_test=500, random_state=1)
    >>> model = ImportVectorMachine(gamma=2.0, max_points=16).fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.9), model.model_order_
    (True, 16)
    """

    max_points: Annotated[int, Whole(1), "Points at most."] = 100
    search: Annotated[
        Literal["newton", "exact"], "How the next point is found; exact takes far longer."
    ] = "newton"
    candidates: Annotated[
        int | None, Whole(1), Nothing(), "Samples tried in a step, drawn at random; None: all."
    ] = None
    tol: Annotated[
        float, Number(least=0.0), "Stop where a point lowers the objective by less of itself."
    ] = 0.0
    random_state: Annotated[Any, RandomState(), "For ``candidates``."] = None

    path_: Annotated[NDArray[np.float64], "The objective after each point."] = field(init=False)
    support_: Annotated[NDArray[np.int64], "The chosen samples, in their order."] = field(
        init=False
    )

    def fit(self, X: Any, y: Any) -> Self:
        """Choose points until there are enough."""
        rows, problem = self._prepare(X, y)
        diagonal, random = self.kernel_.diagonal(rows), random_numbers(self.random_state)
        n, floor = len(rows), _SPANNED * diagonal
        chosen: list[int] = []
        path: list[float] = []
        Z = np.empty((n, 0))  # f = Z V, with orthonormal coordinates of the points
        V = np.empty((0, problem.classes))
        left = diagonal.copy()  # squared distances of the samples to the span
        while len(chosen) < self.max_points:
            able = np.flatnonzero(left > floor)
            if not len(able):
                break
            if self.candidates is not None and len(able) > self.candidates:
                able = np.sort(random.choice(able, self.candidates, replace=False))
            directions = self.kernel_(rows, rows[able]) - Z @ Z[able].T
            directions /= np.sqrt(left[able])
            grown = np.vstack([V, np.zeros((1, problem.classes))])
            if self.search == "newton":
                place = int(np.argmax(_gains(problem, Z @ V, directions)))
            else:
                values = [problem.minimise(_beside(Z, d), grown, *_ON_THE_WAY)[1]
                          for d in directions.T]  # fmt: skip
                place = int(np.argmin(values))
            Z = _beside(Z, directions[:, place])
            V, value, _ = problem.minimise(Z, grown, *_ON_THE_WAY)
            chosen.append(int(able[place]))
            left = np.maximum(left - directions[:, place] ** 2, 0.0)
            left[chosen[-1]] = 0.0
            path.append(value)
            if len(path) > 1 and path[-2] - value < self.tol * value:
                break
        V, path[-1], _ = problem.minimise(Z, V, *_AT_THE_END)
        self.support_, self.path_ = np.array(chosen), np.array(path)
        self.objective_, self.dictionary_ = path[-1], rows[chosen]
        factor = cholesky(self.kernel_(self.dictionary_), lower=True)
        self.weights_ = solve_triangular(factor, V, lower=True, trans="T")
        return self


def _beside(Z: Any, column: Any) -> NDArray[np.float64]:
    return np.column_stack([Z, column])


def _gains(problem: LogisticProblem, f: Any, directions: Any) -> Any:
    """How much a Newton step along each of the new directions, class by class, lowers H."""
    n, probabilities = len(f), softmax(f, axis=1)
    slopes = directions.T @ (probabilities - np.eye(problem.classes)[problem.codes]) / n
    curvatures = (directions**2).T @ (probabilities * (1.0 - probabilities)) / n + problem.alpha
    return (0.5 * slopes**2 / curvatures).sum(axis=1)
