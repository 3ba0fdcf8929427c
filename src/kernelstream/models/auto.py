"""The automatic model: nothing to choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from kernelstream.core import ahead
from kernelstream.core.experts.group import group_pass
from kernelstream.core.kernel import Rows
from kernelstream.models import _parameters as p
from kernelstream.models._auto._sizes import Sizes, plan
from kernelstream.models._auto._state import AutoState
from kernelstream.models._auto._told import expert_shares, history_of, in_a_sentence, slopes_of
from kernelstream.models._auto._units import RowUnits
from kernelstream.models._experts import ExpertClassifier, ExpertEstimator, ExpertRegressor
from kernelstream.parameters import Whole
from kernelstream.registry import Method, register

#: Bytes at most by default.
_USUAL_BYTES = 4_000_000
#: Experts that a line names.
_SHOWN = 5


class _Auto(ExpertEstimator):
    """What classification and regression share.

    Notes
    -----
    Kernel experts at three length scales, each on a bounded dictionary, learn side by side: one of
    second order (kernel recursive least squares [1]_, with softmax by implicit steps [4]_) and
    three of first order, which follow a stream that changes. Scales of the columns are learned
    along, length scales move where the data ask for it, and where the stream does not change the
    best one gets more points. Linear experts and experts that look at the last labels alone compete
    with them. All are mixed online: by shares that follow their likelihood [2]_ and remember who
    was good before [3]_, and by a learned geometric mean (for numbers: least squares).

    Columns are measured in units that move with the stream, values far out are compressed, and a
    target of numbers is predicted from the second row on.

    Several targets of numbers share all experts: their points, the covariance (with the geometric
    mean of the noises) and, as inputs of the linear experts that look at it, the last row's
    targets. Each has its own unit, its own mixture and its own intervals. Experts that know nothing
    are tried, and stay, by the likelihood of all targets together; shares (``experts_``,
    ``history_``) are means over the targets.

    ``predict(X, return_std=True)`` of the regressor gives the deviation of its latest errors, the
    same for all rows; ``predict_interval`` follows what the errors really are, and covers as asked
    for also where they are not normal or begin to grow.

    References
    ----------
    .. [1] S. Van Vaerenbergh, M. Lazaro-Gredilla, I. Santamaria, "Kernel recursive least-squares
       tracker for time-varying regression", IEEE TNNLS 23 (2012).
    .. [2] M. Herbster, M. K. Warmuth, "Tracking the best expert", Machine Learning 32 (1998).
    .. [3] O. Bousquet, M. K. Warmuth, "Tracking a small set of experts by mixing past posteriors",
       JMLR 3 (2002).
    .. [4] B. Kulis, P. L. Bartlett, "Implicit online learning", ICML 2010.
    """

    max_points: Annotated[
        int | None,
        Whole(3, 100_000),
        "Never hold more points than this, in all dictionaries together.",
        "By default at most 656, as far as the memory allows.",
    ] = None
    max_bytes: Annotated[
        int | Literal["auto"] | None,
        Whole(1),
        "Never hold more memory than this.",
        """Dictionaries become smaller where it is little. ``auto`` is 4,000,000.""",
    ] = "auto"
    standardize: Annotated[
        bool,
        "Whether columns are measured in units that move with the stream.",
        "False for rows that are prepared already.",
    ] = True
    labels_delayed: Annotated[
        bool,
        "Whether the label of a row may be unknown when the next row is predicted.",
        "Experts that look at the last label are then left out.",
    ] = False
    forget: Annotated[
        bool | Literal["auto"],
        'Whether the stream changes: "auto" finds out, and keeps looking.',
    ] = "auto"
    shuffle: p.Shuffle = True

    _needs_its_points = "it is many experts that share their points, not one function"
    n_epochs = 3  # of fit: the first one only learns which columns matter
    _lasting = ("standardize", "labels_delayed", "forget")
    _state: AutoState

    # ---- state ------------------------------------------------------------------------

    def _sizes(self, outputs: int, lags: bool = True, trees: Any = None) -> Sizes:
        width = RowUnits(self.n_features_in_, False).width
        shape = width, outputs, self._numbers, self.labels_delayed
        most = _USUAL_BYTES if self.max_bytes == "auto" else self.max_bytes
        return plan(*shape, self.max_points, most, lags and self.forget is not True, trees)

    def _new_state(self, seed: int) -> AutoState:
        return AutoState(
            self.n_features_in_, self._known, self._numbers, self.standardize,
            self._sizes(self._known), self.labels_delayed, self.forget, seed,
        )  # fmt: skip

    def _start(self, X: Any, rows: Rows) -> None:
        if not ahead.is_cached(group_pass):
            ahead.beside("kernelstream.models._auto._ahead", f"compile_last({self._numbers})")
        super()._start(X, rows)

    def _check_room(self, outputs: int) -> None:
        self._sizes(max(outputs, self._known))

    def _make_room(self, outputs: int) -> None:
        """Sizes for so many outputs and the caps as they are now."""
        experts = self._state.experts
        known = experts.established.sizes
        # What went before does not come back.
        sizes = self._sizes(outputs, known.lags, (known.leaves, known.columns))
        if sizes._replace(whole=min(sizes.whole, known.whole)) != known:
            experts.resize(sizes)

    def _begin_again(self) -> None:
        self._state.begin_again()

    def _read_state(self, header: Any, arrays: Any) -> AutoState:
        return AutoState.from_document(header, arrays, self.n_features_in_)

    # ---- what it did ------------------------------------------------------------------

    @property
    def experts_(self) -> dict[str, float]:
        """Experts by name with their shares over the last 512 samples or so, largest first."""
        return expert_shares(self._fitted().committee)

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """``rows``, and the shares of each family of experts at them: at most 129 records."""
        return history_of(self._fitted().experts)

    @property
    def drifts_(self) -> NDArray[np.int64]:
        """Samples (counted from 1) at which predictions became much worse at once; the last ones.

        Much: far beyond how good and bad stretches of the stream usually differ.
        """
        return self._fitted().experts.history.told  # type: ignore[no-any-return]

    @property
    def restarts_(self) -> int:
        """How often experts that knew nothing took over, because the stream had changed."""
        return self._fitted().experts.began

    @property
    def column_importances_(self) -> NDArray[np.float64]:
        """(p,): how strongly predictions react to each column, as parts of 1."""
        state = self._fitted()
        return state.rows.spread(slopes_of(state.experts))  # type: ignore[no-any-return]

    def _what_it_did(self, importances: Mapping[str, float]) -> str:
        return in_a_sentence(self._fitted().experts, importances)

    def _facts(self) -> dict[str, Any]:
        if not hasattr(self, "_state"):
            return {}
        return {
            "experts": self.experts_,
            "drifts": self.drifts_.tolist(),
            "restarts": self.restarts_,
        }

    def _facts_in_words(self) -> dict[str, str]:
        facts = self._facts()
        if not facts:
            return {}
        shown = [f"{name} {100.0 * share:.0f} %" for name, share in facts["experts"].items()]
        return {
            "experts": ", ".join([*shown[:_SHOWN], *(["..."] if len(shown) > _SHOWN else [])]),
            "drifts": ", ".join(f"{row:,}" for row in facts["drifts"]) or "none",
            "restarts": str(facts["restarts"]),
        }

    def _forced_facts(self) -> dict[str, int]:
        return {}


class AutoClassifier(_Auto, ExpertClassifier):
    """A classifier without anything to choose, for raw columns and streams that change.

    See Also
    --------
    AutoRegressor : the same for a target of numbers.
    KRLSTClassifier : its second-order expert alone.

    Examples
    --------
    >>> from kernelstream import AutoClassifier, make_multidist
    >>> X, y, X_test, y_test = make_multidist(5000, n_test=2500, random_state=1)
    >>> model = AutoClassifier(random_state=0).partial_fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """


class AutoRegressor(_Auto, ExpertRegressor):
    """A regressor without anything to choose, for raw columns and streams that change.

    See Also
    --------
    AutoClassifier : the same for classes.
    KRLSTRegressor : its second-order expert alone.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import AutoRegressor
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, (3000, 2))
    >>> y = 50.0 * np.sin(X[:, 0]) + X[:, 1]
    >>> model = AutoRegressor(random_state=0).partial_fit(X[:2000], y[:2000])
    >>> bool(model.score(X[2000:], y[2000:]) > 0.99)
    True

    Several targets at once, in any units:

    >>> Y = np.column_stack([y, 1e-3 * X[:, 0] * X[:, 1]])
    >>> model = AutoRegressor(random_state=0).partial_fit(X[:2000], Y[:2000])
    >>> bool(model.score(X[2000:], Y[2000:]) > 0.99)
    True
    >>> model.predict_interval(X[2000:]).shape
    (1000, 2, 2)
    """

    def _standard_deviations(self, deviations: Any) -> Any:
        intervals = self._state.intervals
        assert intervals is not None
        predictors = range(len(intervals.state.scale))[-self._known :]
        each = np.array([intervals.deviation(predictor) for predictor in predictors])
        return deviations * (each[0] if self._known == 1 else each)


register(
    Method(
        name="auto",
        title="Automatic model",
        description="no parameter to choose: experts of many kinds, mixed as the stream goes",
        classifier=AutoClassifier,
        regressor=AutoRegressor,
    )
)
