"""The automatic model: nothing to choose."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import storage
from kernelstream._version import __version__
from kernelstream.core import ahead
from kernelstream.core.experts.group import group_pass
from kernelstream.core.kernel import Rows
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._auto._committee import Sizes, plan
from kernelstream.models._auto._state import AutoState
from kernelstream.models._auto._told import expert_shares, history_of, in_a_sentence, slopes_of
from kernelstream.models._auto._units import RowUnits
from kernelstream.models._classifier import StreamClassifier
from kernelstream.models._files import restore_names
from kernelstream.models._regressor import StreamRegressor
from kernelstream.models._stream import StreamEstimator, random_numbers
from kernelstream.parameters import Whole
from kernelstream.registry import Method, register
from kernelstream.rows import take_rows

#: Experts that a line names.
_SHOWN = 5
#: Weights of samples beyond count as this much.
LARGEST_WEIGHT = 1e6


class _Auto(StreamEstimator):
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
        "By default at most 600, as far as the memory allows.",
    ] = None
    max_bytes: Annotated[
        int | None,
        Whole(1),
        "Never hold more memory than this.",
        "Dictionaries become smaller where it is little.",
    ] = 4_000_000
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

    n_epochs: ClassVar[int] = 1
    batch_size: ClassVar[int] = 1
    _lasting = ("standardize", "labels_delayed", "forget")
    _measures_targets = True
    _numbers: ClassVar[bool]
    _state: AutoState
    _sized: bool = field(init=False, default=False)  # whether sizes are those of the caps

    # ---- state ------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_state"):  # joblib may have mapped the arrays read-only
            self._state = copy.deepcopy(self._state)

    def _forget_plan(self) -> None:
        super()._forget_plan()
        self._sized = False

    @property
    def _known(self) -> int:
        """Outputs of the experts: one per class, or one number."""
        raise NotImplementedError

    def _sizes(self, outputs: int) -> Sizes:
        width = RowUnits(self.n_features_in_, False).width
        return plan(
            width, outputs, self._numbers, self.labels_delayed, self.max_points, self.max_bytes
        )

    def _start(self, X: Any, rows: Rows) -> None:
        if not ahead.is_cached(group_pass):
            ahead.explain()
        check.note_features(self, X)
        seed = int(random_numbers(self.random_state).randint(np.iinfo(np.int32).max))
        self._state = AutoState(
            self.n_features_in_, self._known, self._numbers, self.standardize,
            self._sizes(self._known), self.labels_delayed, self.forget, seed,
        )  # fmt: skip
        self._forget_plan()

    def _check_room(self, outputs: int) -> None:
        self._sizes(max(outputs, self._known))

    def _make_room(self, outputs: int) -> None:
        """Sizes for so many outputs and the caps as they are now."""
        sizes, committee = self._sizes(outputs), self._state.committee
        if sizes._replace(diagonal=False) != committee.sizes._replace(diagonal=False):
            committee.resize(sizes)

    @property
    def model_order_(self) -> int:
        """Points stored in all dictionaries."""
        return self._fitted().order  # type: ignore[no-any-return]

    @property
    def n_seen_(self) -> int:
        """Samples learned from."""
        return int(self._fitted().committee.seen)

    @property
    def n_forced_(self) -> int:  # type: ignore[override]
        """Always 0: dictionaries are as large as the caps allow from the beginning."""
        return 0

    @property
    def nbytes_(self) -> int:
        """Bytes held by the model."""
        return self._fitted().nbytes  # type: ignore[no-any-return]

    # ---- what it did ------------------------------------------------------------------

    @property
    def experts_(self) -> dict[str, float]:
        """Experts by name with their shares over the last 512 samples or so, largest first."""
        return expert_shares(self._fitted().committee)

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """``rows``, and the shares of each family of experts at them: at most 129 records."""
        return history_of(self._fitted().committee)

    @property
    def drifts_(self) -> NDArray[np.int64]:
        """Samples (counted from 1) at which predictions became worse at once; the last 50."""
        return self._fitted().committee.history.marks.copy()  # type: ignore[no-any-return]

    @property
    def column_importances_(self) -> NDArray[np.float64]:
        """(p,): how strongly predictions react to each column, as parts of 1."""
        state = self._fitted()
        return state.rows.spread(slopes_of(state.committee))  # type: ignore[no-any-return]

    def _what_it_did(self, importances: Mapping[str, float]) -> str:
        return in_a_sentence(self._fitted().committee, importances)

    def _facts(self) -> dict[str, Any]:
        if not hasattr(self, "_state"):
            return {}
        return {"experts": self.experts_, "drifts": self.drifts_.tolist()}

    def _facts_in_words(self) -> dict[str, str]:
        facts = self._facts()
        if not facts:
            return {}
        shown = [f"{name} {100.0 * share:.0f} %" for name, share in facts["experts"].items()]
        return {
            "experts": ", ".join([*shown[:_SHOWN], *(["..."] if len(shown) > _SHOWN else [])]),
            "drifts": ", ".join(f"{row:,}" for row in facts["drifts"]) or "none",
        }

    def _forced_facts(self) -> dict[str, int]:
        return {}

    # ---- samples ----------------------------------------------------------------------

    def _learn(
        self, rows: Rows, targets: NDArray[np.float64], weights: Any, predictions: Any = None
    ) -> None:
        if weights is None:
            weights = np.ones(len(targets))
        else:
            used = weights != 0.0  # a sample of weight zero is a sample that never came
            if not used.all():
                rows, targets, weights = take_rows(rows, used), targets[used], weights[used]
            weights = np.minimum(weights, LARGEST_WEIGHT)
        if not self._sized:
            self._make_room(self._known)
            self._sized = True
        if predictions is None:
            self._state.learn(rows, targets, weights)
        else:
            made = np.empty((len(targets), self._known))
            self._state.learn(rows, targets, weights, made)
            predictions[:] = self._as_values(made)

    def _learn_one(self, x: NDArray[np.float64], target: float) -> None:
        x = np.asarray(x)
        if x.shape != (self.n_features_in_,):
            raise ValueError(
                f"learn_one takes an array of {self.n_features_in_} features, got shape {x.shape}"
            )
        self._check_parameters()
        self._call = True
        self._learn(check.check_rows(self, x[None]), np.array([target]), None)

    def _as_values(self, made: NDArray[np.float64]) -> NDArray[np.float64]:
        """What experts say as outputs of the estimator."""
        return made

    def _values(self, rows: Rows) -> NDArray[np.float64]:
        return self._as_values(self._state.predict(rows))

    def _values_next(self, rows: Rows) -> NDArray[np.float64]:
        return self._as_values(self._state.predict(rows, following=True))

    # ---- files ------------------------------------------------------------------------

    def _stored_arrays(self) -> dict[str, NDArray[Any]]:
        return self._fitted().to_document()[1]  # type: ignore[no-any-return]

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state = self._fitted()
        self._check_parameters()
        header, arrays = state.to_document()
        return {
            "version": __version__,
            "parameters": self._plain_parameters(),
            "features": self.n_features_in_,
            "names": list(getattr(self, "feature_names_in_", [])) or None,
            "state": header,
            **self._extra_header(),
        }, arrays

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        header, arrays = document.header, document.arrays
        model: Self = cls._with_parameters(header["parameters"])
        if type(header["features"]) is not int or not 1 <= header["features"] < 2**31:
            raise ValueError("the number of features is not one")
        restore_names(model, header["names"], header["features"])
        model._restore_extra(header)
        state = AutoState.from_document(header["state"], arrays, model.n_features_in_)
        if (state.targets is not None) != cls._numbers or state.committee.outputs != model._known:
            raise ValueError("the outputs contradict the state")
        model._state = state
        model._check_parameters()
        return model


class AutoClassifier(_Auto, StreamClassifier):
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

    _numbers = False

    @property
    def _known(self) -> int:
        return max(1, len(self.classes_))

    def _check_room(self, outputs: int) -> None:
        super()._check_room(2 if outputs == 1 and self._known < 2 else outputs)

    def _add_output(self, place: int, before: int) -> None:
        if before:
            self._make_room(before + 1)
            self._state.add_class(place)

    def _as_values(self, made: NDArray[np.float64]) -> NDArray[np.float64]:
        if made.shape[1] == 1:
            return np.zeros((len(made), 1))
        logs = np.log(made)
        return logs[:, 1:] - logs[:, :1] if made.shape[1] == 2 else logs


class AutoRegressor(_Auto, StreamRegressor):
    """A regressor without anything to choose, for raw columns and streams that change.

    See Also
    --------
    AutoClassifier : the same for classes.
    KRLSTRegressor : its second-order expert alone.

    Examples
    --------
    >>> from kernelstream import AutoRegressor, make_regression_outliers
    >>> X, y = make_regression_outliers(3000, random_state=0)
    >>> model = AutoRegressor(random_state=0).partial_fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _numbers = True

    @property
    def _known(self) -> int:
        return 1


register(
    Method(
        name="auto",
        title="Automatic model",
        description="no parameter to choose: experts of many kinds, mixed as the stream goes",
        classifier=AutoClassifier,
        regressor=AutoRegressor,
    )
)
