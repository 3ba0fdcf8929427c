"""Kernel features learned from a stream, on a budget (OK-FE, OK-FEB)."""

from __future__ import annotations

from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from kernelstream.core.kernel import Rows
from kernelstream.features._base import FeatureLearner
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._stream import as_before_on_error
from kernelstream.rows import count_rows


class OnlineKernelFeatures(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,  # type: ignore[misc]
    FeatureLearner,
):
    """Nonlinear features of a stream, in r dimensions and, on a budget, bounded memory.

    Inner products of the features approximate the kernel: a linear learner behind them is a
    kernel machine. An incremental kernel PCA without centring.

    See Also
    --------
    KernelFeatures : the same for data that fits in memory.
    OnlineKernelFeatureClassifier, OnlineKernelFeatureRegressor : features and a linear learner.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import OnlineKernelFeatures
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(2000, 2))
    >>> features = OnlineKernelFeatures(8, max_points=24, gamma=0.1)
    >>> for start in range(0, 2000, 500):  # the stream arrives in pieces
    ...     features = features.partial_fit(X[start : start + 500])
    >>> features.transform(X[:5]).shape
    (5, 8)
    >>> bool(features.inverse_fit_error(X).mean() < 0.02)
    True
    >>> K = features.kernel_(X[:100])
    >>> bool(np.abs(features.kernel_approximation(X[:100]) - K).mean() < 0.01)
    True
    """

    align: Annotated[
        bool,
        "Turn the basis after every update so that it moves least.",
        """When the subspace moves, features of old and new samples live in different bases. True
        turns the new one (orthogonal Procrustes against the basis before), for a linear learner
        behind the features that has learned with older ones. Costs a singular value decomposition
        of r x r per update.""",
    ] = False
    random_state: Annotated[p.Seed, "Nothing is random here; accepted as everywhere."] = None

    _lasting = (*FeatureLearner._lasting, "align")
    # There is no function beside the subspace.
    _unlisted = ("dual_coef_", "error_spent_", "expansion_", "n_waiting_")

    @property
    def _outputs(self) -> int:
        return 0

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from scratch, in one pass over the samples in their order.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : ignored
        """
        with as_before_on_error(self):
            self._check_parameters(fresh=True)
            rows = check.check_rows(self, X, new=True)
            self._start(X, rows)
        self._learn(rows, np.zeros(count_rows(rows)), None)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the next samples of the stream, in order.

        Any chunking of the same samples gives the same model, bit for bit (with
        ``gamma="scale"`` the first chunk decides gamma). If anything is wrong with the input
        the model stays as it was.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : ignored
        """
        rows = self._admit(X)
        self._learn(rows, np.zeros(count_rows(rows)), None)
        return self

    def partial_fit_errors(self, X: Any) -> NDArray[np.float64]:
        """:meth:`partial_fit` that returns each sample's fit error from before it was learned."""
        rows = self._admit(X)
        return self._learn_and_predict(rows, np.zeros(count_rows(rows)), None)[:, -1]

    def _admit(self, X: Any) -> Rows:
        """Check everything; an empty state where there is none."""
        self._check_parameters()
        new = not hasattr(self, "_state")
        rows = check.check_rows(self, X, new=new)
        if new:
            with as_before_on_error(self):
                self._start(X, rows)
        else:
            check.check_kernel_range(self.kernel_, rows)
        return rows

    def transform(self, X: Any) -> NDArray[np.float64]:
        """(n, r): the features z, in the basis of the subspace as it is now."""
        return self._features(self._usable(X))

    def inverse_fit_error(self, X: Any) -> NDArray[np.float64]:
        """(n,): the squared distance of each sample to its image in the subspace, in the RKHS."""
        return self._errors(self._usable(X))

    def kernel_approximation(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """(n, m): z.z' for all pairs, the approximation of k(x, y); Y defaults to X."""
        Z = self.transform(X)
        return Z @ (Z if Y is None else self.transform(Y)).T
