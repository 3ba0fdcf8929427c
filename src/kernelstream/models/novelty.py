"""Rows unlike those before: the variance of a second-order learner, as an outlier detector."""

from __future__ import annotations

import copy
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from kernelstream import storage
from kernelstream.core.kernel import Rows
from kernelstream.core.threads import one_thread
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._auto._group import Group
from kernelstream.models._auto._tracker import Tracker, TrackerState
from kernelstream.models._auto._units import RowUnits
from kernelstream.models._experts import ExpertEstimator
from kernelstream.models._stream import as_before_on_error
from kernelstream.parameters import Number, Whole
from kernelstream.parts import part_of, prefixed
from kernelstream.registry import Method, register
from kernelstream.rows import count_rows, slice_rows

#: Scores of the latest rows that quantiles are taken of, and rows between two copies of the state.
LATEST = 1024
#: Rows after which the state is copied before there are so many.
_COPIES = {1 << power for power in range(LATEST.bit_length())}
#: Rows scored at once.
_BLOCK = 4096


class NoveltyDetector(OutlierMixin, ExpertEstimator):  # type: ignore[misc]
    """Which samples of a stream are unlike those before, in memory that never grows.

    scikit-learn's contract for outliers: ``predict`` says 1 for what is usual and -1 for the rest,
    ``decision_function`` is negative there, ``score_samples`` is lower the more unusual a sample
    is. It learns from any samples, a few unusual ones among them do no harm.

    The threshold is a quantile of the scores of the latest 1024, each taken by the detector as it
    was up to 1024 samples before: neighbours in a stream are alike, so that a detector that does
    not learn on finds usual rows less usual than one that has just learned the row before. A
    column that runs on (a counter) does not make samples unusual, and neither does one that has
    held a single value so far: it has no unit.

    See Also
    --------
    KRLSTRegressor : the learner whose variance this is.

    Notes
    -----
    The score is the variance, with the sign reversed, that a Gaussian process with the kernel
    exp(-gamma r^2) + 1 has at a sample, given noisy values at all samples so far:
    k(x, x) - k(x)^T (K + noise I)^-1 k(x). It does not depend on the values, so that there are
    none to learn: it is small where samples were frequent. KRLS-T [1]_ keeps it on the latest
    samples that the others did not span.

    References
    ----------
    .. [1] S. Van Vaerenbergh, M. Lazaro-Gredilla, I. Santamaria, "Kernel recursive least-squares
       tracker for time-varying regression", IEEE TNNLS 23 (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import NoveltyDetector
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(2000, 2))
    >>> detector = NoveltyDetector(contamination=0.01).partial_fit(X)
    >>> detector.predict([[0.0, 0.5], [5.0, -5.0]])
    array([ 1, -1])
    >>> bool(detector.novelty([[5.0, -5.0]])[0] > 0.99)  # more than 99 % of the latest
    True
    """

    gamma: Annotated[
        float | Literal["auto"],
        Number(above=0.0, most=1e9),
        "Of the kernel, in the units that rows are measured in; ``auto`` is 1 / (2 features).",
    ] = "auto"
    noise: Annotated[
        float,
        Number(least=1e-6, most=1e6),
        "Variance of the noise: the more, the more samples make a place usual.",
    ] = 0.1
    contamination: Annotated[
        float,
        Number(above=0.0, most=0.5),
        "The part of the stream that is to be called unusual.",
    ] = 0.1
    forget: Annotated[
        float,
        Number(above=0.0, most=1.0),
        "What is left of the past after each sample; 1 never forgets.",
        "Scores of the latest samples are compared: they should know about as many.",
    ] = 0.999
    max_points: Annotated[int, Whole(1, 10_000), "Points that are stored at most."] = 128
    max_bytes: p.MaxBytes = None
    standardize: Annotated[
        bool,
        "Whether columns are measured in units that move with the stream.",
        "False for rows that are prepared already.",
    ] = True

    shuffle: ClassVar[bool] = False  # type: ignore[misc]
    _numbers = True
    _known = 1  # type: ignore[assignment]
    _lasting = ("gamma", "standardize")
    _state: TrackerState = field(init=False)
    _latest: NDArray[np.float64] = field(init=False)  # variances of the latest samples
    _earlier: TrackerState | None = field(init=False, default=None)  # what they were taken with

    # ---- state ------------------------------------------------------------------------

    def _most(self) -> int:
        width = RowUnits(self.n_features_in_, False).width

        def nbytes(most: int) -> int:  # also of the copy
            return 2 * TrackerState.nbytes_for(width, 1, True, most)

        need = [nbytes(most) for most in (1, self.max_points)]
        if self.max_bytes is None or need[1] <= self.max_bytes:
            return self.max_points
        if need[0] > self.max_bytes:
            raise ValueError(
                f"max_bytes={self.max_bytes} does not hold a single point: for "
                f"{self.n_features_in_} features it must be {need[0]} at least"
            )
        low, high = 1, self.max_points
        while low < high:
            middle = (low + high + 1) // 2
            fits = nbytes(middle) <= self.max_bytes
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    def _new_state(self, seed: int) -> TrackerState:
        width = RowUnits(self.n_features_in_, False).width
        scale = 0.5 if self.gamma == "auto" else self.gamma * width
        group = Group(width, 1, self._most(), scale, True, seed, rates=())
        group.state.status["amplitude"] = 1.0
        self._latest, self._earlier = np.empty(0), None
        tracker = Tracker(group, self.forget, self.noise, False)
        return TrackerState(self.n_features_in_, True, self.standardize, tracker)

    def _make_room(self, outputs: int) -> None:
        tracker, most = self._state.experts, self._most()
        tracker.follow(self.forget, self.noise)
        if most != tracker.group.state.status[0]["most"]:
            tracker.group.resize(most)
            self._earlier = None  # of another size

    @property
    def nbytes_(self) -> int:
        """Bytes held by the detector."""
        return super().nbytes_ + (0 if self._earlier is None else self._earlier.nbytes)

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = super()._document()
        if self._earlier is not None:
            header["earlier"], earlier = self._earlier.to_document()
            arrays |= prefixed("earlier_", earlier)
        return header, arrays

    def _read_state(self, header: Any, arrays: Any) -> TrackerState:
        return TrackerState.from_document(
            header, arrays, self.n_features_in_, self.forget, self.noise, False
        )

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        result = super()._from_document(document)
        if document.header.get("earlier") is not None:
            earlier = part_of("earlier_", document.arrays)
            result._earlier = result._read_state(document.header["earlier"], earlier)
        return result

    def _extra_header(self) -> dict[str, Any]:
        return {"latest": self._latest.tolist()}

    def _restore_extra(self, header: dict[str, Any]) -> None:
        latest = np.array(header["latest"], dtype=np.float64)
        if latest.ndim != 1 or len(latest) > LATEST or not (latest >= 0.0).all():
            raise ValueError("the latest scores are not scores")
        self._latest = latest

    # ---- learning ---------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from scratch, in the order of the samples; ``y`` is not looked at."""
        with as_before_on_error(self):
            self._check_parameters(fresh=True)
            rows = check.check_rows(self, X, new=True)
            self._start(X, rows)
        self._score_then_learn(rows)
        last = slice_rows(rows, max(0, count_rows(rows) - LATEST), count_rows(rows))
        self._latest = self._scored(last, self._state)  # of samples that are all known
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the next samples of the stream; any chunking gives the same detector."""
        self.score_then_learn(X)
        return self

    def learn_one(self, x: NDArray[np.float64]) -> None:
        """Learn from one sample."""
        self.partial_fit(np.asarray(x)[None])

    def score_then_learn(self, X: Any) -> NDArray[np.float64]:
        """:meth:`score_samples` of each sample just before it is learned."""
        self._check_parameters()
        new = not hasattr(self, "_state")
        rows = check.check_rows(self, X, new=new)
        if new:
            with as_before_on_error(self):
                self._start(X, rows)
        return -self._score_then_learn(rows)

    @one_thread()
    def _score_then_learn(self, rows: Rows) -> NDArray[np.float64]:
        if not self._sized:
            self._make_room(1)
            self._sized = True
        state, tracker, n = self._state, self._state.experts, count_rows(rows)
        found, apart, first = np.empty(n), np.empty(n), 0
        while first < n:
            end = min(n, first + tracker.room(), first + LATEST - tracker.seen % LATEST)
            some = slice_rows(rows, first, end)
            part = state.rows.measure(some, learning=True)
            _, deviations = tracker.run(part, np.zeros(end - first), np.ones(end - first))
            found[first:end] = self._variances(deviations)
            apart[first:end] = found[first:end]
            if self._earlier is not None:
                apart[first:end] = self._scored(some, self._earlier)
            if tracker.seen % LATEST == 0 or tracker.seen in _COPIES:
                self._earlier = copy.deepcopy(state)
            first = end
        self._latest = np.concatenate([self._latest, apart])[-LATEST:]
        return found

    def _variances(self, deviations: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(np.square(deviations) - self.noise, 0.0)

    # ---- scores -----------------------------------------------------------------------

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """(n,) scores: the lower, the more unusual."""
        self._fitted()
        return -self._scored(check.check_rows(self, X), self._state)

    @one_thread()
    def _scored(self, rows: Rows, state: TrackerState) -> NDArray[np.float64]:
        found = np.empty(count_rows(rows))
        for first in range(0, len(found), _BLOCK):
            end = min(len(found), first + _BLOCK)
            part = state.rows.measure_apart(slice_rows(rows, first, end))
            _, deviations = state.experts.run(part, np.empty(0), np.ones(end - first))
            found[first:end] = self._variances(deviations)
        return found

    @property
    def offset_(self) -> float:
        """The score below which samples are unusual: a quantile of those of the latest."""
        self._fitted()
        return -float(np.quantile(self._latest, 1.0 - self.contamination))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """(n,): negative for unusual samples."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """(n,): -1 for unusual samples, 1 for the others."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def novelty(self, X: Any) -> NDArray[np.float64]:
        """(n,): which part of the latest samples was less unusual, from 0 to 1."""
        scores = -self.score_samples(X)
        return np.searchsorted(np.sort(self._latest), scores) / len(self._latest)


register(
    Method(
        name="novelty",
        title="Novelty detector",
        description="which rows of a stream are unlike those before, by the variance of KRLS-T",
        names=("NoveltyDetector",),
    )
)
