"""What every estimator of a stream shares: parameters, checks, and the order of things."""

from __future__ import annotations

import copy
import itertools
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from operator import attrgetter, is_
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from kernelstream.core.kernel import Rows
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._files import SavedModel
from kernelstream.models._words import InWords
from kernelstream.parameters import Parameters
from kernelstream.renamed import refuse_old_names
from kernelstream.rows import slice_rows, take_rows

#: Samples handed to the compiled pass at once when ``fit`` reorders them.
_FIT_BLOCK = 4096


class StreamEstimator(Parameters, InWords, SavedModel, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators that learn from a stream, whatever they hold."""

    random_state: p.Seed = None

    n_features_in_: Annotated[int, "Features of a sample."] = field(init=False)
    feature_names_in_: Annotated[
        NDArray[np.object_], "(p,): their names, where the first samples had names."
    ] = field(init=False)

    _lasting: ClassVar[tuple[str, ...]] = ()  # parameters that cannot change on the way
    _measures_targets: ClassVar[bool] = False  # whether numbers may come in any units
    _decides_once: ClassVar[bool] = False  # whether the first epoch alone decides a parameter
    _state: Any = field(init=False)  # absent until something was learned
    _length: ClassVar[int | None] = None  # how many samples fit will learn from, while it does
    _call: Any = field(init=False, default=None)  # what learn_one has at hand

    # ---- what a method supplies -------------------------------------------------------

    def _start(self, X: Any, rows: Rows) -> None:
        """An empty state for samples like these."""
        raise NotImplementedError

    def _learn(
        self, rows: Rows, targets: NDArray[np.float64], weights: Any, predictions: Any = None
    ) -> None:
        """Learn in order; ``predictions`` (n, outputs) receives those from just before each."""
        raise NotImplementedError

    def _values(self, rows: Rows) -> NDArray[np.float64]:
        """(n, outputs): what the model says of any rows."""
        raise NotImplementedError

    def _values_next(self, rows: Rows) -> NDArray[np.float64]:
        """The same for the next rows of the stream."""
        return self._values(rows)

    def _learn_one(self, x: NDArray[np.float64], target: float) -> None:
        """One sample without scikit-learn's validation."""
        raise NotImplementedError

    def _check_room(self, outputs: int) -> None:
        """Refuse more outputs than the memory allows."""

    def _check_range(self, rows: Rows) -> None:
        """Refuse samples that no arithmetic can take."""

    def _check_against_state(self) -> None:
        """Refuse parameters that contradict what was learned."""

    def _begin_again(self) -> None:
        """Another epoch of ``fit`` begins."""

    def _forget_predictions(self) -> None:
        """Learning starts from scratch: what was noted of predictions no longer counts."""

    def _take_predictions(self, models: list[Any], shares: NDArray[np.float64]) -> None:
        """What models noted of their predictions, for one that is made of them."""

    def _note_new_class(self, place: int) -> None:
        """There is one more class."""

    def _judge(self, predictions: NDArray[np.float64]) -> None:
        """Fill the columns of ``predictions`` beside the function's values, where there are any."""

    def _flush_whole(self) -> None:
        """Learn from what waits if that is a whole batch."""

    @property
    def _outputs(self) -> int:
        return 1

    def flush(self) -> Self:
        """Learn from what waits; here nothing ever does."""
        return self

    @property
    def n_waiting_(self) -> int:
        """Samples that nothing was learned from yet."""
        return 0

    # ---- parameters and state ---------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __copy__(self) -> Self:
        """Arrays of its own: learning changes them in place."""
        return copy.deepcopy(self)

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, as everywhere in scikit-learn; the next sample is learned with them."""
        refuse_old_names(type(self).__name__, self._parameters, parameters)
        self._forget_plan()
        return super().set_params(**parameters)  # type: ignore[no-any-return]

    def _check_parameters(self, fresh: bool = False) -> None:
        """Refuse unusable parameters; cheap when nothing changed since the last call."""
        given = _reader(type(self))(self)  # type: ignore[arg-type]
        checked = None if fresh else getattr(self, "_checked", None)
        if checked is not None and all(map(is_, given, checked)):
            return
        self._check_values()
        self._check_combination()
        if hasattr(self, "_state") and not fresh:
            for name in self._lasting:
                before = checked[list(self._parameters).index(name)] if checked else None
                if checked and getattr(self, name) != before:
                    raise ValueError(
                        f"{name} cannot change once the model has learned something (it was "
                        f"{before!r}); use fit, or a fresh model"
                    )
            self._check_against_state()
        self._checked = given
        self._forget_plan()

    def _forget_plan(self) -> None:
        """Parameters, outputs or what waits have changed."""
        self._call = None

    def _check_combination(self) -> None:
        """Checks that involve more than one parameter."""

    def _fitted(self) -> Any:
        if not hasattr(self, "_state"):
            ways = "'fit' or 'partial_fit'" if hasattr(self, "fit") else "'partial_fit'"
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call {ways} with some "
                "samples before using this method."
            )
        return self._state

    # ---- samples ----------------------------------------------------------------------

    def _evaluate(self, X: Any) -> NDArray[np.float64]:
        """(n, outputs): the function's values."""
        self._fitted()
        rows = check.check_rows(self, X)
        self._check_range(rows)
        return self._values(rows)

    def _value_of_next(self, x: Any) -> NDArray[np.float64]:
        """(1, outputs): what the model says of one sample, the next of the stream."""
        self._fitted()
        row = np.asarray(x)
        if row.ndim != 1:
            raise ValueError(f"predict_one takes the features of one sample, got shape {row.shape}")
        rows = check.check_rows(self, row[None])
        self._check_range(rows)
        return self._values_before(rows)

    def _values_before(self, rows: Rows) -> NDArray[np.float64]:
        """(n, outputs): what the model would say of each of the rows if that came next.

        The bits are those of ``predict_then_learn``.
        """
        return self._values_next(rows)

    def _predict_then_learn(
        self, rows: Rows, targets: Any, weights: Any, beside: int = 0
    ) -> NDArray[np.float64]:
        """Learn, and return (n, outputs): the predictions made just before each step.

        ``beside``: so many more columns, which :meth:`_judge` fills.
        """
        self._flush_whole()
        out = np.zeros((len(targets), self._outputs + beside))
        weights = np.ones(len(targets)) if weights is None else weights
        for part, counts in stretches(weights):
            some = slice_rows(rows, part.start, part.stop)
            if counts:
                self._learn(some, targets[part], weights[part], out[part])
            else:
                out[part, : self._outputs] = self._values_next(some)
                self._judge(out[part])
        return out


@cache
def _reader(kind: type[StreamEstimator]) -> attrgetter[tuple[Any, ...]]:
    """What reads all parameters of a model at once."""
    return attrgetter(*kind._parameters)


def stretches(weights: NDArray[np.float64]) -> Iterator[tuple[slice, bool]]:
    """Samples in order that are all learned from, or all of weight zero: predicted alone."""
    edges = [0, *(np.flatnonzero(np.diff(weights != 0.0)) + 1).tolist(), len(weights)]
    for first, end in itertools.pairwise(edges):
        yield slice(first, end), first == end or weights[first] != 0.0


@contextmanager
def as_before_on_error(model: Any) -> Iterator[None]:
    """Whatever raises in here leaves the model with the attributes it had."""
    before = vars(model).copy()
    try:
        yield
    except Exception:
        vars(model).clear()
        vars(model).update(before)
        raise


def random_numbers(seed: Any) -> np.random.RandomState:
    """Random numbers; without a seed they are not NumPy's global ones but its own."""
    return check_random_state(secrets.randbits(32) if seed is None else seed)


def learn_epochs(model: Any, rows: Rows, targets: NDArray[np.float64], weights: Any) -> None:
    """All epochs of ``fit``, each in a random order, as far as the parameters say."""
    random = random_numbers(model.random_state)
    n = len(targets)
    used = n if weights is None else int(np.count_nonzero(weights))
    model._length = model.n_epochs * used
    try:
        _learn_in_epochs(model, rows, targets, weights, random)
    finally:
        del model._length
        model._forget_plan()


def _learn_in_epochs(
    model: Any, rows: Rows, targets: NDArray[np.float64], weights: Any, random: Any
) -> None:
    n = len(targets)
    for epoch in range(model.n_epochs):
        if epoch:
            model._begin_again()
        order = random.permutation(n) if model.shuffle else np.arange(n)
        for first in range(0, n, _FIT_BLOCK):
            chosen = order[first : first + _FIT_BLOCK]
            part = None if weights is None else weights[chosen]
            model._learn(take_rows(rows, chosen), targets[chosen], part)
        if model._decides_once:  # samples decide, not their repetitions
            model.flush()
    model.flush()
