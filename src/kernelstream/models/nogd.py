"""NOGD: online gradient descent on Nystroem features."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from kernelstream.core.kernel import Rows
from kernelstream.core.linear_features import GATHERING, NYSTROEM
from kernelstream.core.threads import one_thread
from kernelstream.expansion import expand
from kernelstream.kernels import Points, kernel_matrix
from kernelstream.models._linear_features import (
    ConstantSteps,
    LinearOnFeaturesClassifier,
    LinearOnFeaturesRegressor,
)
from kernelstream.parameters import Number
from kernelstream.registry import Method, register
from kernelstream.rows import dense_rows
from kernelstream.search import Choices

#: Eigenvalues below this part of the largest are no features.
_SMALLEST = 1e-8
#: Entries of a map that are larger were not computed from a kernel matrix.
_LARGEST = 1e50


class _NOGD(ConstantSteps):
    """What classification and regression share.

    Notes
    -----
    Samples with a gradient become points of a kernel expansion until there are ``max_points`` (B).
    Then the kernel matrix of the points, K = V D V', gives a map to its k largest eigenvalues,
    z(x) = D_k^(-1/2) V_k' k(x); the function becomes linear in these features, with the weights
    that the expansion has there, and takes gradient steps. Points never change again [1]_.

    References
    ----------
    .. [1] J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu, "Large scale online kernel learning",
       Journal of Machine Learning Research 17 (2016).
    """

    rank: Annotated[
        float,
        Number(above=0.0, most=1.0),
        Choices(0.25, 0.5, 1.0),
        "Features as a part of the points, k / B: those of the largest eigenvalues.",
    ] = 0.2

    _lasting = (*ConstantSteps._lasting, "rank")
    _needs_its_points = "its features belong to these points"

    def _shapes(self, features: int, outputs: int, most: int) -> dict[str, tuple[int, ...]]:
        return {
            "points": (features, most), "square_norms": (most,), "absolute_norms": (most,),
            "weights": (outputs, most), "projection": (most, most),
        }  # fmt: skip

    def _kind(self) -> int:
        return NYSTROEM if self._state.status[0]["features"] else GATHERING

    @one_thread()
    def _between(self) -> bool:
        """Enough points are there: the map, and the expansion's weights on its features."""
        state, size = self._state, self._size(self._state)
        if state.status[0]["features"] or state.order < size:
            return False
        rows = dense_rows(np.ascontiguousarray(state.points.T))
        K = kernel_matrix(
            self.kernel_, rows, Points(state.points, state.square_norms, state.absolute_norms, size)
        )
        count = max(1, round(self.rank * size))
        values, vectors = eigh(0.5 * (K + K.T), subset_by_index=(size - count, size - 1))
        used = values > _SMALLEST * values[-1]
        roots, vectors = np.sqrt(values[used])[::-1], vectors[:, used][:, ::-1]
        state.projection[: len(roots)] = vectors.T / roots[:, None]
        weights = (state.weights @ vectors) * roots
        state.weights[:] = 0.0
        state.weights[:, : len(roots)] = weights
        state.status[0]["features"] = len(roots)
        return True

    def _on_points(self) -> NDArray[np.float64]:
        """(outputs, M): the weights of the points, in true units."""
        state = self._state
        count, n = int(state.status[0]["features"]), state.order
        weights = state.weights[:, :n] * state.status[0]["scale"]
        return weights[:, :count] @ state.projection[:count] if count else weights  # type: ignore[no-any-return]

    def _values(self, rows: Rows) -> NDArray[np.float64]:
        return expand(self.kernel_, rows, self._state, self._on_points().T)

    def _resize(self, most: int) -> None:
        """Points that weigh most stay; they are gathered again until there are enough."""
        old, weights = self._state, self._on_points()
        largest = np.argsort(-np.abs(weights).sum(axis=0), kind="stable")
        kept = np.sort(largest[:most])
        new = self._allocate(most)
        self._fill(new, int(old.status[0]["random"]))
        for name in ("points", "square_norms", "absolute_norms"):
            getattr(new, name)[..., : len(kept)] = getattr(old, name)[..., kept]
        new.weights[:, : len(kept)] = weights[:, kept]
        new.status[0]["order"], new.status[0]["seen"] = len(kept), old.status[0]["seen"]
        new.status[0]["forced"] = old.status[0]["forced"] + old.order - len(kept)
        self._state = new

    def _check_read(self, state: Any) -> None:
        super()._check_read(state)
        n = state.order
        points = state.points[:, :n]
        with np.errstate(over="ignore"):
            agree = np.allclose(state.square_norms[:n], (points**2).sum(axis=0), 1e-6, 0.0)
            agree &= np.allclose(state.absolute_norms[:n], np.abs(points).sum(axis=0), 1e-6, 0.0)
        agree &= np.abs(state.projection).max(initial=0.0) <= _LARGEST
        if not agree or (state.status[0]["features"] and n < self._size(state)):
            raise ValueError("the state's parts contradict one another")


class NOGDClassifier(_NOGD, LinearOnFeaturesClassifier):
    """Online gradient descent on Nystroem features of the first support vectors.

    See Also
    --------
    FOGDClassifier : features drawn at random, without points.

    Examples
    --------
    >>> from kernelstream import NOGDClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = NOGDClassifier(gamma=2.0, max_points=100).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.9), model.model_order_
    (True, 100)
    """


class NOGDRegressor(_NOGD, LinearOnFeaturesRegressor):
    """Online gradient descent on Nystroem features of the first samples.

    See Also
    --------
    FOGDRegressor : features drawn at random, without points.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import NOGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = NOGDRegressor(gamma=1.0, max_points=50).partial_fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.95)
    True
    """


register(
    Method(
        name="nogd",
        title="NOGD",
        description="gradient steps on Nystroem features of the first points",
        paper="Lu et al., JMLR 2016",
        classifier=NOGDClassifier,
        regressor=NOGDRegressor,
        try_first=("gamma", "eta0", "rank", "max_points"),
    )
)
