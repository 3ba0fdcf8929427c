"""KRLS-T: kernel recursive least squares that forgets, with a fixed number of points."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from kernelstream.models import _parameters as p
from kernelstream.models._auto._group import Group
from kernelstream.models._auto._tracker import Tracker, TrackerState
from kernelstream.models._auto._units import RowUnits
from kernelstream.models._experts import ExpertClassifier, ExpertEstimator, ExpertRegressor
from kernelstream.models._validation import check_rows
from kernelstream.parameters import Number, Whole
from kernelstream.registry import Method, register
from kernelstream.search import Choices, LogRange


class _KRLST(ExpertEstimator):
    """What classification and regression share.

    Notes
    -----
    A Gaussian process with the kernel A exp(-gamma r^2) + 1, of which the posterior at a bounded
    number of stored points is kept: their values mu, with covariance Sigma. Each sample that the
    points do not span becomes a point, and when there are too many the one whose removal changes
    the function least leaves. Before each sample the model forgets a little, towards what it was
    before it had learned anything (back to the prior):
    Sigma <- lambda Sigma + (1 - lambda) K, mu <- sqrt(lambda) mu. A step takes time in proportion
    to the square of the points, however many samples there were.

    Three things differ from the paper. The variance of the noise is learned along; the change
    of the function is measured in its norm, not at the point that leaves; and mu and Sigma are held
    in orthonormal coordinates of the points' span, where rounding does not add up. Classes are not
    in the paper: one function each, one Sigma for all, moved by implicit steps of the softmax loss.

    ``predict(X, return_std=True)`` of the regressor gives the posterior's deviations, noise
    included; ``predict_interval`` corrects them by how large the latest errors really were.

    Of several numbers each is measured in a unit of its own, and has a mu. They share the points
    and Sigma, which depends on the targets through the noise alone: it is the mean of theirs.
    Deviations and intervals take the noise and the errors of each by itself.

    References
    ----------
    S. Van Vaerenbergh, M. Lazaro-Gredilla, I. Santamaria: Kernel recursive least-squares tracker
    for time-varying regression. IEEE Transactions on Neural Networks and Learning Systems, 2012.
    """

    gamma: Annotated[
        float | Literal["auto"],
        Number(above=0.0, most=1e9),
        LogRange(1 / 16, 16.0, unit="gamma"),
        "Of the kernel, in the units that rows are measured in; ``auto`` is 1 / features.",
    ] = "auto"
    amplitude: Annotated[
        float | Literal["auto"],
        Number(least=1e-6, most=1e9),
        LogRange(0.1, 100.0),
        "Variance of the function before anything is learned (A of the kernel).",
        "``auto`` is 1, in variances of the target, and 10 for classes.",
    ] = "auto"
    forget: Annotated[
        float,
        Number(above=0.0, most=1.0),
        Choices(1.0, 0.99999, 0.9999, 0.999, 0.99),
        "What is left of the past after each sample (lambda in the paper); 1 never forgets.",
        "Samples weigh half after log(2) / (1 - forget) others: 7000 of them by default.",
    ] = 0.9999
    max_points: Annotated[int, Whole(1, 10_000), "Points that are stored at most."] = 128
    max_bytes: p.MaxBytes = None
    learn_scales: Annotated[
        bool,
        Choices(False, True),
        "Whether columns that matter more get finer length scales as the stream goes.",
    ] = False
    standardize: Annotated[
        bool,
        "Whether columns are measured in units that move with the stream.",
        "False for rows that are prepared already.",
    ] = True

    _lasting = ("gamma", "amplitude", "learn_scales", "standardize")
    _state: TrackerState

    @property
    def _noise(self) -> float:
        return 0.0

    def _most(self, outputs: int) -> int:
        """Points that fit into the caps."""
        width = RowUnits(self.n_features_in_, False).width
        if self.max_bytes is None:
            return self.max_points
        low, high = 0, self.max_points
        while low < high:
            middle = (low + high + 1) // 2
            need = TrackerState.nbytes_for(width, outputs, self._numbers, middle)
            low, high = (middle, high) if need <= self.max_bytes else (low, middle - 1)
        if low == 0:
            least = TrackerState.nbytes_for(width, outputs, self._numbers, 1)
            raise ValueError(
                f"max_bytes={self.max_bytes} does not hold a single point: for "
                f"{self.n_features_in_} features and {outputs} outputs it must be {least} at least"
            )
        return low

    def _new_state(self, seed: int) -> TrackerState:
        width = RowUnits(self.n_features_in_, False).width
        scale = 1.0 if self.gamma == "auto" else self.gamma * width
        most = self._most(self._known)
        group = Group(width, self._known, most, scale, self._numbers, seed, rates=())
        group.state.status["amplitude"] = self._amplitude
        tracker = Tracker(group, self.forget, self._noise, self.learn_scales)
        return TrackerState(self.n_features_in_, self._numbers, self.standardize, tracker)

    @property
    def _amplitude(self) -> float:
        if self.amplitude != "auto":
            return self.amplitude
        return 1.0 if self._numbers else 10.0

    def _predict_means(self, X: Any) -> NDArray[np.float64]:
        """What the functions alone predict, in a fraction of the time: see ``importances.py``.

        Numbers, or probabilities that are not less for being uncertain.
        """
        return self._fitted().means(check_rows(self, X))  # type: ignore[no-any-return]

    def _check_room(self, outputs: int) -> None:
        self._most(max(outputs, self._known))

    def _make_room(self, outputs: int) -> None:
        tracker, most = self._state.experts, self._most(outputs)
        tracker.follow(self.forget, self._noise)
        if most != tracker.group.state.status[0]["most"]:
            tracker.group.resize(most)

    def _read_state(self, header: Any, arrays: Any) -> TrackerState:
        return TrackerState.from_document(
            header, arrays, self.n_features_in_, self.forget, self._noise, self.learn_scales
        )


class KRLSTClassifier(_KRLST, ExpertClassifier):
    """A classifier of second order on a fixed number of points, which forgets.

    See Also
    --------
    KRLSTRegressor : the same for a target of numbers.
    AutoClassifier : such models at several length scales, mixed with others.

    Examples
    --------
    >>> from kernelstream import KRLSTClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(3000, n_test=1000, random_state=1)
    >>> model = KRLSTClassifier(max_points=64).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    def _predict_means(self, X: Any) -> NDArray[np.float64]:
        return self._probabilities(super()._predict_means(X))


class KRLSTRegressor(_KRLST, ExpertRegressor):
    """A regressor of second order on a fixed number of points, which forgets.

    See Also
    --------
    KRLSTClassifier : the same for classes.
    AutoRegressor : such models at several length scales, mixed with others.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KRLSTRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-3.0, 3.0, (2000, 1))
    >>> y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=2000)
    >>> model = KRLSTRegressor()
    >>> low, high = model.predict_interval_then_learn(X, y, coverage=0.9).T
    >>> bool(0.87 < np.mean((low <= y) & (y <= high)) < 0.93)
    True
    >>> prediction, std = model.predict([[0.5], [30.0]], return_std=True)
    >>> bool(abs(prediction[0] - np.sin(1.0)) < 0.1), bool(std[1] > 3.0 * std[0])
    (True, True)
    """

    noise: Annotated[
        float | Literal["auto"],
        Number(least=1e-8, most=1e6),
        "Variance of the noise, in variances of the target; ``auto`` learns it.",
    ] = "auto"

    @property
    def _noise(self) -> float:
        return 0.0 if self.noise == "auto" else self.noise

    def _predict_means(self, X: Any) -> NDArray[np.float64]:
        return self._flat(super()._predict_means(X))


register(
    Method(
        name="krlst",
        title="KRLS-T",
        description="kernel recursive least squares that forgets, on a fixed number of points, "
        "with deviations and intervals",
        paper="Van Vaerenbergh et al., IEEE TNNLS 2012",
        classifier=KRLSTClassifier,
        regressor=KRLSTRegressor,
        try_first=("gamma", "forget", "max_points"),
    )
)
