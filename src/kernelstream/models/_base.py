"""What every estimator on a kernel expansion shares: data in, state, prediction, files.

A method adds its parameters, its settings and its compiled pass; the loop over samples, the
unfinished batch, new classes, memory and files are here.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from kernelstream import storage
from kernelstream._version import __version__
from kernelstream.compression import komp
from kernelstream.core.kernel import Rows, first_bad_entry
from kernelstream.core.komp import BLOCK, GREEDY, prune_block
from kernelstream.core.polk import DIVERGED, DONE, FULL, UNUSABLE
from kernelstream.core.state import (
    SMALLEST_CAPACITY,
    State,
    allocate,
    largest_capacity,
    pack,
    resize,
    state_bytes,
    unpack,
)
from kernelstream.errors import DivergenceError
from kernelstream.expansion import KernelExpansion, expand
from kernelstream.kernels import Kernel, kernel_from_config, make_kernel
from kernelstream.losses import Loss, make_loss
from kernelstream.models import _validation as check
from kernelstream.rows import LARGEST_ENTRY, as_rows, count_rows, dense_rows

#: Samples handed to the compiled pass at once when ``fit`` reorders them.
_FIT_BLOCK = 4096

#: No predictions are wanted.
_NO_ROOM = np.empty((0, 1))

#: Estimators by the name under which their files are marked.
_KINDS: dict[str, type[KernelEstimator]] = {}


class KernelEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators that learn a kernel expansion from a stream."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    _foretold: NDArray[np.float64] | None = None  # room for predictions, see _foretell
    _state: State  # absent until something was learned
    _call: Any = None  # what learn_one calls, see _prepare_call
    _pending: tuple[Rows, NDArray[np.float64], NDArray[np.float64]] | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not cls.__name__.startswith("_"):
            _KINDS[cls.__name__] = cls

    # ---- what a method supplies -------------------------------------------------------

    def _settings(self, outputs: int, most: int) -> tuple[Any, ...]:
        """The numbers its compiled pass takes between the state and the kernel."""
        raise NotImplementedError

    def _batch_pass(self) -> Callable[..., tuple[int, int]]:
        """Takes state, settings, kernel, samples, targets, weights and where to begin."""
        raise NotImplementedError

    def _single_pass(self) -> Callable[..., tuple[int, int]]:
        """The same for steps of one sample; also takes room for the predictions made before."""
        raise NotImplementedError

    # ---- state ------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_call": None}  # no compiled function in a pickle

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_state"):  # joblib may have mapped the arrays read-only
            self._state = State(*(np.array(part) for part in self._state))
        if self._pending is not None:
            rows, targets, weights = self._pending
            self._pending = _copy(rows), np.array(targets), np.array(weights)

    def __copy__(self) -> Self:
        """Arrays of its own: learning changes them in place."""
        return copy.deepcopy(self)

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, as everywhere in scikit-learn; the next sample is learned with them."""
        self._call = None
        return super().set_params(**parameters)  # type: ignore[no-any-return]

    @property
    def _outputs(self) -> int:
        return 1

    @property
    def _columns(self) -> int:
        return self._outputs * (2 if self.average else 1)

    def _check_parameters(self, anew: bool = False) -> None:
        """Refuse unusable parameters; cheap when nothing changed since the last call."""
        names = self._parameter_constraints
        given = tuple(getattr(self, name) for name in names)
        checked = None if anew else getattr(self, "_checked", None)
        if checked is not None and all(a is b for a, b in zip(given, checked, strict=True)):
            return
        self._validate_params()
        self._check_combination()
        if hasattr(self, "_state") and not anew:
            for name in ("kernel", "gamma", "degree", "coef0"):
                before = checked[list(names).index(name)] if checked else None
                if checked and getattr(self, name) != before:
                    raise ValueError(
                        f"{name} cannot change once the model has learned something (it was "
                        f"{before!r}); use fit, or a fresh model"
                    )
            if self._state.weights.shape[1] != self._columns:
                raise ValueError("average cannot be switched once the model has learned")
        self._checked = given
        self._call = None

    def _check_combination(self) -> None:
        """Checks that involve more than one parameter."""

    def _start(self, X: Any, rows: Rows) -> None:
        """An empty state for samples like these."""
        self.kernel_ = make_kernel(self.kernel, self._first_gamma(rows), self.degree, self.coef0)
        check.check_kernel_range(self.kernel_, rows)
        check.note_features(self, X)
        features = rows.dense.shape[1]
        capacity = min(SMALLEST_CAPACITY + self.batch_size, self._capacity_limit(features))
        seed = int(_random(self.random_state).randint(np.iinfo(np.int32).max))
        self._state = allocate(features, self._columns, capacity, seed)
        self._pending = None
        self._call = None

    def _first_gamma(self, rows: Rows) -> float:
        features = rows.dense.shape[1]
        if self.gamma == "scale":
            values = rows.data if rows.sparse else rows.dense
            count = count_rows(rows) * features
            mean = values.sum() / count
            variance = float((values**2).sum() / count - mean**2)
            return 1.0 / (features * variance) if variance > 0.0 else 1.0
        return 1.0 / features if self.gamma == "auto" else float(self.gamma)

    def _capacity_limit(self, features: int, outputs: int | None = None) -> int:
        """Points that may ever be held, those of an unfinished step included."""
        batch = self.batch_size
        outputs = self._outputs if outputs is None else outputs
        columns = outputs * (2 if self.average else 1)
        limit = np.iinfo(np.int32).max if self.max_points is None else self.max_points + batch
        if self.max_bytes is not None:
            waiting = (batch - 1) * (12 * features + 24) + 8  # dense, or sparse without zeros
            fits = largest_capacity(self.max_bytes - waiting, features, columns)
            if fits < batch + 1:
                least = state_bytes(batch + 1, features, columns) + waiting
                raise ValueError(
                    f"max_bytes={self.max_bytes} does not hold a single point: {features} "
                    f"features, {outputs} outputs and batches of {batch} need at least "
                    f"{least} bytes"
                )
            limit = min(limit, fits)
        return int(limit)

    # ---- learning ---------------------------------------------------------------------

    def _learn(self, rows: Rows, targets: NDArray[np.float64], weights: Any) -> None:
        """Consume the samples in order; an unfinished batch waits for the next call."""
        if weights is None:
            weights = np.ones(len(targets))
        else:
            used = weights != 0.0  # a sample of weight zero is a sample that never came
            if not used.all():
                rows, targets, weights = _take(rows, used), targets[used], weights[used]
        batch = self.batch_size
        if self._pending is not None and len(self._pending[1]) >= batch:
            self.flush()  # batches have become smaller
        if batch == 1:
            self._run(rows, targets, weights)
            return
        first = 0
        if self._pending is not None:
            first = min(batch - len(self._pending[1]), len(targets))
            self._push(_slice(rows, 0, first), targets[:first], weights[:first])
            if len(self._pending[1]) < batch:
                return
            self.flush()
        whole = first + (len(targets) - first) // batch * batch
        self._run(_slice(rows, first, whole), targets[first:whole], weights[first:whole])
        if whole < len(targets):
            self._push(_slice(rows, whole, len(targets)), targets[whole:], weights[whole:])

    def _foretell(self, rows: Rows, targets: Any, weights: Any) -> NDArray[np.float64]:
        """Learn, and return what the model said of each sample just before: (n, outputs)."""
        out = np.zeros((len(targets), self._outputs))
        if self.batch_size == 1 and (weights is None or (weights != 0.0).all()):
            self._foretold = out
            try:
                self._learn(rows, targets, weights)
            finally:
                self._foretold = None
            return out
        first = 0
        while first < len(targets):  # up to the end of the batch, all with the same model
            waiting = 0 if self._pending is None else len(self._pending[1])
            end = min(first + self.batch_size - waiting, len(targets))
            part = _slice(rows, first, end)
            out[first:end] = self._values(part)
            self._learn(part, targets[first:end], None if weights is None else weights[first:end])
            first = end
        return out

    def _push(self, rows: Rows, targets: Any, weights: Any) -> None:
        if self._pending is None:
            self._pending = _copy(rows), targets.copy(), weights.copy()
            return
        old_rows, old_targets, old_weights = self._pending
        self._pending = (
            _stack(old_rows, rows),
            np.concatenate([old_targets, targets]),
            np.concatenate([old_weights, weights]),
        )

    def flush(self) -> Self:
        """Learn from the samples of an unfinished batch now, as a smaller batch."""
        pending, self._pending = getattr(self, "_pending", None), None
        if pending is not None:
            self._run(*pending)
        return self

    def _run(self, rows: Rows, targets: Any, weights: Any) -> None:
        """Whole passes inside compiled code; back here only to grow or to check the factor."""
        features = self._state.points.shape[0]
        limit = self._capacity_limit(features)
        self._shrink(limit)
        settings = self._settings(self._outputs, limit - self.batch_size)
        single = self.batch_size == 1
        compiled_pass = self._single_pass() if single else self._batch_pass()
        room = (self._foretold if self._foretold is not None else _NO_ROOM,) if single else ()
        done = 0
        while True:
            reason, done = compiled_pass(
                *self._state, *settings, *self.kernel_.program, *rows, targets, weights, done,
                *room,
            )  # fmt: skip
            if reason == DONE:
                break
            if reason == FULL:
                wanted = max(2 * self._state.capacity, self._state.order + self.batch_size)
                self._state = resize(self._state, min(wanted, limit))
            elif reason == UNUSABLE:
                raise ValueError(f"Sample {done} of this call has NaN, infinite or huge entries.")
            elif reason == DIVERGED:
                raise DivergenceError(
                    f"Sample {done} of this call would make the weights overflow: the step size "
                    f"eta0={self.eta0} is too large for this kernel and these targets. Choose a "
                    "smaller eta0, scale the data and the target, or use a loss with a bounded "
                    "derivative such as 'huber'. What was learned before it is kept."
                )
            else:
                komp.watch(self._state, self.kernel_, self._outputs)
        needed = max(SMALLEST_CAPACITY, self._state.order) + self.batch_size
        if self._state.capacity > 4 * needed:
            self._state = resize(self._state, min(2 * needed, limit))

    def _shrink(self, limit: int) -> None:
        """Give up what a cap no longer allows: it was lowered, or new outputs need room."""
        most = limit - self.batch_size
        if self._state.order > most:
            prune_block(self._state, self._outputs, 0.0, 0.0, most, GREEDY, BLOCK)
        if self._state.capacity > limit:
            self._state = resize(self._state, limit)

    # ---- what was learned -------------------------------------------------------------

    def _fitted(self) -> State:
        if not hasattr(self, "_state"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or "
                "'partial_fit' with some samples before using this method."
            )
        return self._state

    @property
    def _live_weights(self) -> NDArray[np.float64]:
        """(M, outputs): the averaged weights where there are any, else the current ones."""
        state, outputs = self._fitted(), self._outputs
        weights = state.weights[: state.order]
        if weights.shape[1] > outputs:
            return weights[:, outputs:].copy()
        return weights * state.status[0]["scale"]

    @property
    def dictionary_(self) -> NDArray[np.float64]:
        """(M, p): the stored points."""
        state = self._fitted()
        return state.points[:, : state.order].T.copy()

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """(outputs, M): the weights of the stored points."""
        return self._live_weights.T.copy()

    @property
    def model_order_(self) -> int:
        """Number of stored points, M."""
        return self._fitted().order

    @property
    def n_seen_(self) -> int:
        """Samples consumed, those of an unfinished batch not included."""
        return int(self._fitted().status[0]["seen"])

    @property
    def nbytes_(self) -> int:
        """Bytes held by the model, spare capacity and unfinished batch included."""
        waiting = 0
        if self._pending is not None:
            rows, targets, weights = self._pending
            arrays = [part for part in rows if isinstance(part, np.ndarray)]
            waiting = sum(array.nbytes for array in [*arrays, targets, weights])
        return self._fitted().nbytes + waiting

    @property
    def error_spent_(self) -> float:
        """Sum over all steps of the Hilbert norm error made by compression."""
        return float(self._fitted().status[0]["error_spent"])

    @property
    def n_forced_(self) -> int:
        """Points removed beyond the error budget, because of ``max_points`` or ``max_bytes``."""
        return int(self._fitted().status[0]["forced"])

    @property
    def residual_(self) -> float:
        """max |S S^T K - I|: how far the factor of the inverse Gram matrix is from exact."""
        return komp.residual(self._fitted(), self.kernel_)

    @property
    def expansion_(self) -> KernelExpansion:
        """The learned function as a value."""
        weights = self._live_weights
        if self._outputs == 1:
            weights = weights[:, 0]
        return KernelExpansion(self.kernel_, self.dictionary_, weights)

    def _evaluate(self, X: Any) -> NDArray[np.float64]:
        """(n, outputs): the function's values."""
        self._fitted()
        rows = check.check_rows(self, X)
        check.check_kernel_range(self.kernel_, rows)
        return self._values(rows)

    def _values(self, rows: Rows) -> NDArray[np.float64]:
        state = self._state
        return expand(
            self.kernel_, rows, state.points, state.square_norms, state.absolute_norms,
            state.order, self._live_weights,
        )  # fmt: skip

    # ---- one sample at a time, lean ---------------------------------------------------

    def _learn_one(self, x: NDArray[np.float64], target: float) -> None:
        """One sample without scikit-learn's validation."""
        if self._call is None:
            self._prepare_call()
        compiled_pass, rest, (targets, weights, row) = self._call
        if x.shape != row.shape[1:]:
            raise ValueError(
                f"learn_one takes an array of {row.shape[1]} features, got shape {x.shape}"
            )
        targets[0] = target
        row[0] = x
        if compiled_pass is None:
            rows = check.check_rows(self, row)
            check.check_kernel_range(self.kernel_, rows)
            self._learn(rows, targets, None)
        elif compiled_pass(*self._state, *rest)[0] != DONE:
            self._run(dense_rows(row), targets, weights)

    def _prepare_call(self) -> None:
        """What does not change from one sample to the next."""
        self._check_parameters()
        features = self._state.points.shape[0]
        targets, weights, row = np.empty(1), np.ones(1), np.empty((1, features))
        settings = self._settings(self._outputs, self._capacity_limit(features) - 1)
        rest = (
            *settings, *self.kernel_.program, *dense_rows(row), targets, weights, 0, _NO_ROOM,
        )  # fmt: skip
        lean = self.batch_size == 1 and self.kernel_.isotropic
        self._call = self._single_pass() if lean else None, rest, (targets, weights, row)

    # ---- files ------------------------------------------------------------------------

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state = self._fitted()
        arrays, status = pack(state)
        header: dict[str, Any] = {
            "version": __version__,
            "parameters": {name: _plain(value) for name, value in self.get_params().items()},
            "kernel": self.kernel_.to_config(),
            "features": self.n_features_in_,
            "names": list(getattr(self, "feature_names_in_", [])) or None,
            "status": status,
            "pending": None,
            **self._extra_header(),
        }
        if self._pending is not None:
            rows, targets, weights = self._pending
            header["pending"] = {"sparse": rows.sparse}
            for name, part in rows._asdict().items():
                if isinstance(part, np.ndarray):
                    arrays[f"pending_{name}"] = part
            arrays["pending_targets"], arrays["pending_weights"] = targets, weights
        return header, arrays

    def _extra_header(self) -> dict[str, Any]:
        return {}

    def _restore_extra(self, header: dict[str, Any]) -> None:
        pass

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: plain data, checksummed, replaced atomically."""
        header, arrays = self._document()
        storage.write(path, type(self).__name__, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model written by :meth:`save`; learning goes on where it stopped."""
        model = load(path)
        if not isinstance(model, cls):
            raise storage.ModelFileError(
                f"{os.fspath(path)} holds a {type(model).__name__}, not a {cls.__name__}"
            )
        return model

    def fingerprint(self) -> str:
        """SHA-256 of everything the model holds: equal if and only if the models are."""
        header, arrays = self._document()
        return hashlib.sha256(storage.dumps(type(self).__name__, header, arrays)).hexdigest()

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        header, arrays = document.header, document.arrays
        parameters = {name: _unplain(value) for name, value in header["parameters"].items()}
        model = cls(**parameters)
        model.kernel_ = kernel_from_config(header["kernel"])
        state = unpack(arrays, header["status"])
        if state.points.shape[0] != header["features"]:
            raise ValueError("the number of features contradicts the points")
        model.n_features_in_ = header["features"]
        if header["names"] is not None:
            if [type(name) for name in header["names"]] != [str] * model.n_features_in_:
                raise ValueError("the names of the features are not names")
            model.feature_names_in_ = np.array(header["names"], dtype=object)
        model._restore_extra(header)
        model._pending = None
        if header["pending"]:
            model._pending = _restore_pending(header["pending"], arrays, model)
        model._check_parameters()
        if state.weights.shape[1] != model._columns:
            raise ValueError("the number of outputs contradicts the weights")
        largest = max(np.abs(state.points).max(initial=0.0), np.abs(state.weights).max(initial=0.0))
        if largest > LARGEST_ENTRY:
            raise ValueError("the points or the weights are too large")
        limit = model._capacity_limit(model.n_features_in_)
        capacity = max(state.order, min(state.order + SMALLEST_CAPACITY, limit))
        model._state = resize(state, capacity)
        model._call = None
        return model


class KernelClassifier(ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    """Classes as outputs: one for two classes, one per class for more."""

    @property
    def _outputs(self) -> int:
        return _outputs_for(len(self.classes_))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch, ``n_epochs`` times over the samples.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) labels
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out.
        """
        with _as_before_on_error(self):
            self._check_parameters(anew=True)
            rows = check.check_rows(self, X, new=True)
            labels = check.check_labels(y, count_rows(rows))
            weights = check.check_sample_weight(sample_weight, len(labels), some=True)
            self.classes_, targets = np.unique(labels, return_inverse=True)
            self._fixed_classes = False
            self._start(X, rows)
        _epochs(self, rows, targets.astype(np.float64), weights)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the next samples of the stream, in order.

        Any chunking of the same samples gives the same model, bit for bit (with
        ``gamma="scale"`` the first chunk decides gamma). If anything is wrong with the input
        the model stays as it was.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) labels
        classes : array, optional
            All classes there will be; a label outside them is then an error. Without it a
            new class may appear at any time and adds an output.
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out.
        """
        self._consume(X, y, classes, sample_weight, self._learn)
        return self

    def predict_then_learn(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> NDArray[Any]:
        """Predict each sample, then learn from it: :meth:`partial_fit` that also says what it
        thought.

        Returns the predicted labels, each made by the model as it was just before that
        sample (with ``batch_size`` > 1: before that sample's batch). The first call needs
        ``classes``, or a model that has learned something.
        """
        if classes is None and not hasattr(self, "classes_"):
            raise ValueError("predict_then_learn needs classes= on the first call")
        said: list[Any] = []
        surprises: list[tuple[int, Any]] = []

        def learn(*samples: Any) -> None:
            said.append(self._labels(self._foretell(*samples)))

        def meet(sample: Rows) -> None:
            place = sum(len(part) for part in said)
            surprises.append((place, self._labels(self._values(sample))[0]))

        self._consume(X, y, classes, sample_weight, learn, meet)
        labels = np.concatenate(said)
        for place, label in surprises:
            labels[place] = label
        return labels

    def _consume(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        learn: Callable[..., None],
        meet: Callable[[Rows], None] = lambda sample: None,
    ) -> None:
        """Check everything, then hand the samples to ``learn`` in order, between new classes.

        ``meet`` gets the first sample of each new class while the class is not known yet.
        """
        self._check_parameters()
        new = not hasattr(self, "_state")
        rows = check.check_rows(self, X, new=new)
        labels = check.check_labels(y, count_rows(rows))
        weights = check.check_sample_weight(sample_weight, len(labels))
        known = self.classes_ if not new else np.array([], dtype=labels.dtype)
        fixed = not new and self._fixed_classes
        if classes is not None:
            given = np.unique(check.check_labels(classes, len(classes), "classes"))
            if fixed and not np.array_equal(given, known):
                raise ValueError(f"classes={given!r} differ from those of earlier calls, {known!r}")
            known = np.union1d(known, given) if len(known) else given
            fixed = True
        arrivals = _arrivals(labels, known, fixed)
        with _as_before_on_error(self):
            self._fixed_classes = fixed
            if new:
                self.classes_ = known
                self._start(X, rows)
            check.check_kernel_range(self.kernel_, rows)
            self._capacity_limit(self.n_features_in_, _outputs_for(len(known) + len(arrivals)))
        if not new and known is not self.classes_:
            for label in np.setdiff1d(known, self.classes_):
                self._add_class(label)
        # A new class adds its output exactly when its first sample comes, in any chunking.
        edges = [*(row for row, _ in arrivals), len(labels)]
        for number, (first, end) in enumerate(itertools.pairwise([0, *edges])):
            if number:
                meet(_slice(rows, first, first + 1))
                self._add_class(arrivals[number - 1][1])
            if first < end:
                targets = np.searchsorted(self.classes_, labels[first:end]).astype(np.float64)
                part = None if weights is None else weights[first:end]
                learn(_slice(rows, first, end), targets, part)

    def learn_one(self, x: NDArray[np.float64], y: Any) -> None:
        """Learn from one sample, without scikit-learn's validation.

        ``x`` is a 1-D array of finite numbers. A batch is kept waiting as in ``partial_fit``.
        """
        if getattr(self, "_call", None) is None:
            self._places = {
                label: float(place)
                for place, label in enumerate(getattr(self, "classes_", np.empty(0)).tolist())
            }
        place = self._places.get(y)
        if place is None:  # the first sample, or a new class
            self.partial_fit(np.asarray(x)[None], [y])
        else:
            self._learn_one(x, place)

    def _add_class(self, label: Any) -> None:
        """Room for one more class; what was learned about the others stays."""
        place = int(np.searchsorted(self.classes_, label))
        before, average = len(self.classes_), bool(self.average)
        self.classes_ = np.insert(
            self.classes_.astype(np.result_type(self.classes_, np.asarray(label))), place, label
        )
        state, outputs = self._state, _outputs_for(before)
        parts = [state.weights[:, :outputs]]
        if average:
            parts.append(state.weights[:, outputs:])
        if before == 2:  # f becomes (-f/2, f/2): the margin between the two is what it was
            parts = [np.concatenate([-0.5 * part, 0.5 * part], axis=1) for part in parts]
        if before >= 2:
            parts = [np.insert(part, place, 0.0, axis=1) for part in parts]
        elif before == 1 and place == 0:  # the class so far becomes the positive one
            parts = [-part for part in parts]
        weights = np.ascontiguousarray(np.concatenate(parts, axis=1))
        self._state = state._replace(weights=weights)
        self._state.status[0]["cheapest"] = 0.0
        self._shrink(self._capacity_limit(self.n_features_in_))
        if self._pending is not None:
            targets = self._pending[1]
            targets[targets >= place] += 1.0
        self._call = None

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The function's values: (n,) for two classes, positive for the second; else (n, C)."""
        values = self._evaluate(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of each sample."""
        return self._labels(self._evaluate(X))

    def _labels(self, values: NDArray[np.float64]) -> NDArray[Any]:
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(values))
        if values.shape[1] == 1:
            return self.classes_[(values[:, 0] > 0.0).astype(int)]
        return self.classes_[np.argmax(values, axis=1)]

    def _extra_header(self) -> dict[str, Any]:
        kind = self.classes_.dtype.kind
        return {
            "classes": self.classes_.tolist(),
            "dtype": kind if kind in "OU" else self.classes_.dtype.str,
            "fixed": self._fixed_classes,
        }

    def _restore_extra(self, header: dict[str, Any]) -> None:
        labels, dtype = header["classes"], np.dtype(header["dtype"])
        plain = all(isinstance(label, str | bool | int | float) for label in labels)
        if not labels or not plain or dtype.kind not in "biufUO" or dtype.itemsize > 16:
            raise ValueError("the classes are not labels")
        self.classes_ = np.array(labels, dtype=dtype)
        if not np.array_equal(np.unique(self.classes_), self.classes_):
            raise ValueError("the classes are not sorted, or not distinct")
        self._fixed_classes = bool(header["fixed"])


class KernelRegressor(RegressorMixin, KernelEstimator):  # type: ignore[misc]
    """A number as output."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch, ``n_epochs`` times over the samples.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) numbers
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out.
        """
        with _as_before_on_error(self):
            self._check_parameters(anew=True)
            rows = check.check_rows(self, X, new=True)
            targets = check.check_numbers(y, count_rows(rows))
            weights = check.check_sample_weight(sample_weight, len(targets), some=True)
            self._start(X, rows)
        _epochs(self, rows, targets, weights)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the next samples of the stream, in order.

        Any chunking of the same samples gives the same model, bit for bit (with
        ``gamma="scale"`` the first chunk decides gamma). If anything is wrong with the input
        the model stays as it was.

        Parameters
        ----------
        X : (n, p) array, CSR matrix or data frame
        y : (n,) numbers
        sample_weight : (n,) array, optional
            Not negative. Multiplies the sample's gradient; 0 leaves the sample out.
        """
        self._learn(*self._admit(X, y, sample_weight))
        return self

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> NDArray[np.float64]:
        """Predict each sample, then learn from it: :meth:`partial_fit` that also says what it
        thought.

        Returns the predictions, each made by the model as it was just before that sample
        (with ``batch_size`` > 1: before that sample's batch).
        """
        return self._foretell(*self._admit(X, y, sample_weight))[:, 0]

    def _admit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Any, Any]:
        """Check everything; an empty state where there is none."""
        self._check_parameters()
        new = not hasattr(self, "_state")
        rows = check.check_rows(self, X, new=new)
        targets = check.check_numbers(y, count_rows(rows))
        weights = check.check_sample_weight(sample_weight, len(targets))
        if new:
            with _as_before_on_error(self):
                self._start(X, rows)
        else:
            check.check_kernel_range(self.kernel_, rows)
        return rows, targets, weights

    def learn_one(self, x: NDArray[np.float64], y: float) -> None:
        """Learn from one sample, without scikit-learn's validation.

        ``x`` is a 1-D array of finite numbers, ``y`` a finite number.
        """
        if not hasattr(self, "_state"):
            self.partial_fit(np.asarray(x)[None], [y])
            return
        if not abs(y) <= LARGEST_ENTRY:
            raise ValueError(f"learn_one: the target must be a finite number, got {y}")
        self._learn_one(x, float(y))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted number for each sample."""
        return self._evaluate(X)[:, 0]


def load(path: str | os.PathLike[str]) -> Any:
    """Read any model or function that this package saved.

    Raises
    ------
    ModelFileError
        If the file is not one of ours, or was damaged.
    """
    document = storage.read(path)
    if document.kind == "KernelExpansion":
        return KernelExpansion._from_document(document)
    if document.kind not in _KINDS:
        raise storage.ModelFileError(f"{os.fspath(path)} holds an unknown {document.kind!r:.80}")
    try:
        return _KINDS[document.kind]._from_document(document)
    except (
        KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError,
    ) as error:  # fmt: skip
        raise storage.ModelFileError(
            f"{os.fspath(path)} is not a valid {document.kind}: {error}"
        ) from error


@contextmanager
def _as_before_on_error(model: Any) -> Iterator[None]:
    """Whatever raises in here leaves the model with the attributes it had."""
    before = vars(model).copy()
    try:
        yield
    except Exception:
        vars(model).clear()
        vars(model).update(before)
        raise


def _random(seed: Any) -> np.random.RandomState:
    """Random numbers; without a seed they are not NumPy's global ones but its own."""
    return check_random_state(secrets.randbits(32) if seed is None else seed)


def _epochs(model: Any, rows: Rows, targets: NDArray[np.float64], weights: Any) -> None:
    """All epochs of ``fit``, each in a random order, as far as the parameters say."""
    random = _random(model.random_state)
    n = len(targets)
    for _ in range(model.n_epochs):
        order = random.permutation(n) if model.shuffle else np.arange(n)
        for first in range(0, n, _FIT_BLOCK):
            chosen = order[first : first + _FIT_BLOCK]
            part = None if weights is None else weights[chosen]
            model._learn(_take(rows, chosen), targets[chosen], part)
    model.flush()


def _outputs_for(classes: int) -> int:
    """One output tells two classes apart."""
    return 1 if classes <= 2 else classes


def _arrivals(labels: Any, known: NDArray[Any], fixed: bool) -> list[tuple[int, Any]]:
    """Labels not known yet, with the row where each first appears, in that order."""
    if len(known) and known.dtype == labels.dtype and known.dtype.kind in "iubU":
        places = np.minimum(known.searchsorted(labels), len(known) - 1)
        if (known[places] == labels).all():
            return []
    kinds = known.dtype.kind + labels.dtype.kind
    if len(known) and "O" not in kinds and kinds.count("U") == 1:
        raise ValueError(
            f"y holds labels of type {labels.dtype}, but the classes so far are of type "
            f"{known.dtype}"
        )
    found, first = np.unique(labels, return_index=True)
    unknown = ~np.isin(found, known)
    if fixed and unknown.any():
        row = int(first[unknown].min())
        raise ValueError(f"y contains the label {labels[row]!r} at row {row}, not in classes")
    return sorted(
        ((int(row), label) for row, label in zip(first[unknown], found[unknown], strict=True)),
        key=lambda arrival: arrival[0],
    )


def _slice(rows: Rows, first: int, end: int) -> Rows:
    """Consecutive samples, without a copy."""
    if rows.sparse:
        return rows._replace(indptr=rows.indptr[first : end + 1])
    return rows._replace(dense=rows.dense[first:end])


def _take(rows: Rows, chosen: NDArray[Any]) -> Rows:
    """Some samples, by mask or by index."""
    if rows.sparse:
        return as_rows(_matrix(rows)[np.flatnonzero(chosen) if chosen.dtype == bool else chosen])
    return dense_rows(rows.dense[chosen])


def _copy(rows: Rows) -> Rows:
    """The samples in arrays of their own, without those before and after."""
    return as_rows(_matrix(rows).copy()) if rows.sparse else dense_rows(rows.dense.copy())


def _stack(upper: Rows, lower: Rows) -> Rows:
    """Samples of both, in the form of the lower."""
    if not upper.sparse and not lower.sparse:
        return dense_rows(np.concatenate([upper.dense, lower.dense]))
    both = [_matrix(rows) for rows in (upper, lower)]
    stacked = vstack(both, format="csr")
    return as_rows(stacked if lower.sparse else stacked.toarray())


def _matrix(rows: Rows) -> Any:
    if not rows.sparse:
        return csr_array(rows.dense)
    first, end = rows.indptr[0], rows.indptr[-1]
    return csr_array(
        (rows.data[first:end], rows.indices[first:end], rows.indptr - first),
        shape=(count_rows(rows), rows.dense.shape[1]),
    )


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, Kernel):
        return {"kernel": value.to_config()}
    if isinstance(value, Loss):
        return {"loss": [value.name, value.number]}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return None  # a generator given as random_state: the file keeps no generator


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        if "kernel" in value:
            return kernel_from_config(value["kernel"])
        return make_loss(Loss(*value["loss"]))
    return value


def _restore_pending(note: dict[str, Any], arrays: dict[str, Any], model: Any) -> Any:
    parts = {name: arrays[f"pending_{name}"] for name in ("dense", "data", "indices", "indptr")}
    rows = Rows(**parts, sparse=bool(note["sparse"]))
    targets, weights = arrays["pending_targets"], arrays["pending_weights"]
    if rows.sparse:
        matrix = _matrix(rows)
        matrix.check_format(full_check=True)
        rows = as_rows(matrix)
    elif rows.dense.dtype != np.float64 or rows.dense.ndim != 2:
        raise ValueError("the unfinished batch is not a matrix of numbers")
    shapes = {count_rows(rows), *targets.shape, *weights.shape}
    numbers = targets.dtype == weights.dtype == np.float64
    if rows.dense.shape[1] != model.n_features_in_ or shapes != {len(targets)} or not numbers:
        raise ValueError("the unfinished batch contradicts the model")
    finite = np.isfinite(targets).all() and np.isfinite(weights).all() and (weights >= 0.0).all()
    if not finite or first_bad_entry(rows, LARGEST_ENTRY)[0] >= 0:
        raise ValueError("the unfinished batch is not finite")
    if hasattr(model, "classes_") and not np.isin(targets, np.arange(len(model.classes_))).all():
        raise ValueError("the unfinished batch holds unknown classes")
    return rows, targets, weights
