"""DualSGD: gradient steps on points; those that leave live on in random features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.dual_space import DualState, dual_pass, move_smallest
from kernelstream.core.kernel import Rows
from kernelstream.expansion import expand
from kernelstream.models import _parameters as p
from kernelstream.models._classifier import with_another_output
from kernelstream.models._linear_features import (
    InverseSteps,
    LinearOnFeaturesClassifier,
    LinearOnFeaturesRegressor,
)
from kernelstream.models._random_features import frequencies
from kernelstream.parameters import Whole
from kernelstream.registry import Method, register
from kernelstream.rows import dense_matrix


class _DualSGD(InverseSteps):
    """What classification and regression share.

    Notes
    -----
    For sample t, with the loss l and random features z of the kernel [1]_::

        f(x) = sum_j w_j k(d_j, x) + v.z(x)
        f <- (1 - 1/t) f
        if l'(f(x), y) is not 0:
            if there are max_points points: the ``moved`` of the smallest |w_j| leave, and
                v <- v + w_j z(d_j) for each of them
            x becomes a point of weight -l'(f(x), y) / (alpha t)

    So points that leave are approximated instead of forgotten, and the newest, largest weights
    need no approximation. Definition as in the authors' program, with two differences: it stores
    samples without a gradient too, and draws the frequencies with the deviation 2 gamma, where the
    Gaussian kernel has sqrt(2 gamma).

    References
    ----------
    .. [1] T. Le, T. D. Nguyen, V. Nguyen, D. Phung, "Dual space gradient descent for online
       learning", NIPS 2016.
    """

    max_points: Annotated[int, Whole(1, 10_000), "Points that are stored at most."] = 100
    moved: Annotated[int, Whole(1, 10_000), "Points that leave at a time (k in the paper)."] = 10
    n_frequencies: Annotated[
        int, Whole(1, 10_000), "Frequencies (D in the paper): each gives two random features."
    ] = 100

    _arrays = DualState
    _lasting = (*InverseSteps._lasting, "n_frequencies")

    def _shapes(self, features: int, outputs: int, most: int) -> dict[str, tuple[int, ...]]:
        D = self.n_frequencies
        return {
            "points": (features, most), "square_norms": (most,), "absolute_norms": (most,),
            "weights": (outputs, most), "frequencies": (features, D),
            "feature_weights": (2 * outputs, D),
        }  # fmt: skip

    def _kind(self) -> int:
        return 0  # it has a pass of its own

    def _pass(self) -> Callable[..., tuple[int, int]]:
        return dual_pass  # type: ignore[no-any-return]

    def _settings(self) -> NDArray[Any]:
        settings = super()._settings()
        settings[0]["moved"] = self.moved
        return settings

    def _fill(self, state: Any, seed: int) -> None:
        super()._fill(state, seed)
        state.frequencies[:] = frequencies(
            self.kernel_, seed, self.n_frequencies, self.n_features_in_
        )

    def _resize(self, most: int) -> None:
        old = self._state
        if old.order > most:
            move_smallest(*old, np.int64(old.order - most))
        n, new = old.order, self._allocate(most)
        for name in ("points", "square_norms", "absolute_norms", "weights"):
            getattr(new, name)[..., :n] = getattr(old, name)[..., :n]
        for name in ("frequencies", "feature_weights", "status"):
            getattr(new, name)[:] = getattr(old, name)
        self._state = new

    def _values(self, rows: Rows) -> NDArray[np.float64]:
        state, outputs = self._state, self._outputs
        scale = state.status[0]["scale"]
        values = expand(self.kernel_, rows, state, scale * state.weights[:, : state.order].T)
        phases = dense_matrix(rows) @ state.frequencies
        weights = state.feature_weights * (scale / np.sqrt(phases.shape[1]))
        values += np.cos(phases) @ weights[:outputs].T + np.sin(phases) @ weights[outputs:].T
        return values

    def _check_read(self, state: Any) -> None:
        super()._check_read(state)
        n = state.order
        with np.errstate(over="ignore"):
            agree = np.allclose(
                state.square_norms[:n], (state.points[:, :n] ** 2).sum(axis=0), 1e-6
            )
        if not agree or np.abs(state.feature_weights).max(initial=0.0) > 1e150:
            raise ValueError("the state's parts contradict one another")


class DualSGDClassifier(_DualSGD, LinearOnFeaturesClassifier):
    """Gradient steps on points; what leaves at the cap lives on in random features.

    See Also
    --------
    BSGDClassifier : what leaves is removed, projected or merged.
    RandomFeatureClassifier : random features alone.

    Examples
    --------
    >>> from kernelstream import DualSGDClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = DualSGDClassifier(gamma=2.0, random_state=0).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    def _add_output(self, place: int, before: int) -> None:
        state = self._state
        self._state = state._replace(
            weights=with_another_output(state.weights, 1, place, before),
            feature_weights=with_another_output(state.feature_weights, 2, place, before),
        )
        self._note_new_class(place)


class DualSGDRegressor(_DualSGD, LinearOnFeaturesRegressor):
    """Gradient steps on points; what leaves at the cap lives on in random features.

    The first steps are huge: the default is a loss whose derivative is bounded.

    See Also
    --------
    RandomFeatureRegressor : random features alone.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import DualSGDRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (2000, 1))
    >>> model = DualSGDRegressor(gamma=1.0, alpha=0.01, random_state=0)
    >>> bool(model.partial_fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.9)
    True
    """

    loss: p.NumberLoss = field(default="huber", kw_only=False)


register(
    Method(
        name="dualsgd",
        title="DualSGD",
        description="Pegasos' steps on points; those that leave go into random features",
        paper="Le et al., NIPS 2016",
        classifier=DualSGDClassifier,
        regressor=DualSGDRegressor,
        try_first=("gamma", "alpha", "max_points"),
    )
)
