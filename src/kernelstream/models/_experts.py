"""Estimators whose state learns in units that move: what they share."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import storage
from kernelstream._version import __version__
from kernelstream.core import ahead
from kernelstream.core.experts.group import group_pass
from kernelstream.core.kernel import Rows
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._auto._learning import UnitState
from kernelstream.models._classifier import StreamClassifier
from kernelstream.models._files import restore_names
from kernelstream.models._regressor import StreamRegressor
from kernelstream.models._stream import StreamEstimator, random_numbers, stretches
from kernelstream.parameters import Number
from kernelstream.rows import count_rows, slice_rows, take_rows

#: Weights of samples beyond count as this much.
LARGEST_WEIGHT = 1e6

_coverage = Number(above=0.0, below=1.0)


#: How arrays are laid out in memory: pickles hold them as they are, files do not.
_LAYOUT = 4


class ExpertEstimator(StreamEstimator):
    """Rows and files of an estimator with a :class:`UnitState`."""

    shuffle: p.Shuffle = True

    n_epochs: ClassVar[int] = 1
    batch_size: ClassVar[int] = 1
    _measures_targets = True
    _numbers: ClassVar[bool]
    _state: UnitState
    _sized: bool = field(init=False, default=False)  # whether sizes are those of the caps

    # ---- what a method supplies -------------------------------------------------------

    def _new_state(self, seed: int) -> UnitState:
        """A state that has learned nothing."""
        raise NotImplementedError

    def _read_state(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
        """The state in a file."""
        raise NotImplementedError

    def _make_room(self, outputs: int) -> None:
        """Follow parameters that changed; sizes for so many outputs."""
        raise NotImplementedError

    # ---- state ------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_layout": _LAYOUT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if state.pop("_layout", None) != _LAYOUT and "_state" in state:
            raise ValueError(
                f"this pickle of a {type(self).__name__} is of another version of kernelstream, "
                "which held its numbers otherwise: save(path) writes files that later ones read"
            )
        super().__setstate__(state)
        if hasattr(self, "_state"):  # joblib may have mapped the arrays read-only
            self._state = copy.deepcopy(self._state)

    def _forget_plan(self) -> None:
        super()._forget_plan()
        self._sized = False

    @property
    def _known(self) -> int:
        """Outputs of the experts: one per class, or per number."""
        raise NotImplementedError

    def _start(self, X: Any, rows: Rows) -> None:
        if not ahead.is_cached(group_pass):
            ahead.explain()
        check.note_features(self, X)
        seed = int(random_numbers(self.random_state).randint(np.iinfo(np.int32).max))
        self._state = self._new_state(seed)
        self._forget_plan()

    @property
    def model_order_(self) -> int:
        """Points stored in all dictionaries."""
        return self._fitted().order  # type: ignore[no-any-return]

    @property
    def n_seen_(self) -> int:
        """Samples learned from."""
        return self._fitted().seen  # type: ignore[no-any-return]

    @property
    def n_forced_(self) -> int:  # type: ignore[override]
        """Always 0: dictionaries are as large as the caps allow from the beginning."""
        return 0

    @property
    def nbytes_(self) -> int:
        """Bytes held by the model."""
        return self._fitted().nbytes  # type: ignore[no-any-return]

    # ---- samples ----------------------------------------------------------------------

    def _learn(
        self, rows: Rows, targets: NDArray[np.float64], weights: Any, predictions: Any = None,
        halves: Any = None, coverage: float = 0.9,
    ) -> None:  # fmt: skip
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
            self._state.learn(rows, targets, weights, made, halves, coverage)
            predictions[:] = self._as_values(made)

    def _learn_one(self, x: NDArray[np.float64], target: Any) -> None:
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
        return self._as_values(self._state.predict(rows)[0])

    def _values_next(self, rows: Rows) -> NDArray[np.float64]:
        return self._as_values(self._state.predict(rows, following=True)[0])

    def _values_before(self, rows: Rows) -> NDArray[np.float64]:
        parts = [slice_rows(rows, i, i + 1) for i in range(count_rows(rows))]
        made = [self._state.predict_first(part) for part in parts]
        return self._as_values(np.concatenate(made) if made else np.empty((0, self._known)))

    def _point_votes(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Stored points and what each adds to the outputs of each row: see ``_auto/_votes.py``."""
        from kernelstream.models._auto._votes import point_votes  # rarely asked for

        return point_votes(self._fitted(), check.check_rows(self, X))

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
        state = model._read_state(header["state"], arrays)
        if (state.targets is not None) != cls._numbers or state.experts.outputs != model._known:
            raise ValueError("the outputs contradict the state")
        model._state = state
        model._check_parameters()
        return model


class ExpertClassifier(ExpertEstimator, StreamClassifier):
    """Classes as outputs of experts, each with one output per class."""

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


class ExpertRegressor(ExpertEstimator, StreamRegressor):
    """A number as output, or several, with intervals."""

    _numbers = True

    @property
    def _known(self) -> int:
        return self._n_targets

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The predicted number for each sample; (n, q) where several were learned.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        return_std : bool
            Whether to return a pair, with standard deviations of the targets around the
            predictions, of the same shape.
        """
        values, deviations = self._predict(X)
        return (values, self._standard_deviations(deviations)) if return_std else values

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """(n, 2): from where to where the target of each sample should lie; of several (n, q, 2).

        Centred on the prediction. They are as wide as errors on the latest samples of the stream
        demand, and follow them where they grow or shrink; infinite before two targets differed.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        coverage : float
            How often the target should lie inside, between 0 and 1.
        """
        _check_coverage(coverage)
        values, deviations = self._predict(X)
        return _around(values, deviations * self._state.half_width(coverage))

    def predict_interval_then_learn(
        self, X: Any, y: Any, sample_weight: Any = None, *, coverage: float = 0.9
    ) -> NDArray[np.float64]:
        """:meth:`predict_then_learn` with (n, 2) intervals for predictions; of several (n, q, 2).

        Each is centred on the prediction that the model made just before it learned from that
        sample: how often they contain ``y`` is an honest measure.
        """
        _check_coverage(coverage)
        rows, targets, weights = self._admit(X, y, sample_weight)
        weights = np.ones(len(targets)) if weights is None else weights
        values, halves = np.empty((len(targets), self._known)), np.empty(targets.shape)
        for part, counts in stretches(weights):
            some = slice_rows(rows, part.start, part.stop)
            if counts:
                chosen = targets[part], weights[part], values[part], halves[part]
                self._learn(some, *chosen, coverage)
            else:
                values[part], deviations = self._state.predict(some, following=True)
                halves[part] = deviations * self._state.half_width(coverage, following=True)
        return _around(self._flat(values), halves)

    def _predict(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        self._fitted()
        rows = check.check_rows(self, X)
        values, deviations = self._state.predict(rows)
        return self._flat(values), deviations

    def _standard_deviations(self, deviations: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the targets, given what the experts expect."""
        return deviations


def _check_coverage(coverage: Any) -> None:
    if not _coverage.accepts(coverage):
        raise ValueError(f"coverage must be {_coverage.words}, got {coverage!r}")


def _around(values: NDArray[np.float64], halves: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([values - halves, values + halves], axis=-1)
