"""Estimators whose state is a few arrays of a size that the caps fix from the beginning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import storage
from kernelstream._version import __version__
from kernelstream.core import ahead
from kernelstream.core.kernel import Rows
from kernelstream.core.passes import DIVERGED, UNUSABLE
from kernelstream.core.threads import one_thread
from kernelstream.errors import DivergenceError
from kernelstream.kernels import Kernel, first_gamma, kernel_from_config, make_kernel
from kernelstream.models import _parameters as p
from kernelstream.models import _validation as check
from kernelstream.models._files import restore_names
from kernelstream.models._stream import StreamEstimator, random_numbers
from kernelstream.parameters import Whole
from kernelstream.rows import take_rows

#: Weights of samples lie between its inverse and this; what lies beyond counts as if it did not.
LARGEST_WEIGHT = 1e6

_NONE = np.empty((0, 1))

MaxPoints = Annotated[int, Whole(1, 10_000), "Points that are stored at most."]


class FlatEstimator(StreamEstimator):
    """Rows, caps and files of an estimator with such a state.

    A method supplies the arrays and their shapes, a compiled pass with its settings, and what it
    gives up where a cap is lowered.
    """

    kernel: p.IsotropicKernel = "rbf"
    gamma: p.Gamma = "auto"
    max_points: MaxPoints = 128
    max_bytes: p.MaxBytes = None
    n_epochs: p.Epochs = 5
    shuffle: p.Shuffle = True

    kernel_: Annotated[Kernel, "The kernel with all its numbers."] = field(init=False)

    batch_size: ClassVar[int] = 1
    slack: ClassVar[int] = 0
    _lasting: ClassVar[tuple[str, ...]] = ("kernel", "gamma")
    _arrays: ClassVar[type[Any]]  # a named tuple of arrays; the last one is the status
    _status: ClassVar[np.dtype[Any]]
    _state: Any
    _sized: bool = field(init=False, default=False)  # whether the state is as large as the caps say

    # ---- what a method supplies -------------------------------------------------------

    def _shapes(self, features: int, outputs: int, most: int) -> dict[str, tuple[int, ...]]:
        """Of all arrays but the status, for so many points."""
        raise NotImplementedError

    def _pass(self) -> Callable[..., tuple[int, int]]:
        """The compiled pass."""
        raise NotImplementedError

    def _settings(self) -> NDArray[Any]:
        """What the pass does with each sample."""
        raise NotImplementedError

    def _size(self, state: Any) -> int:
        """Points that the state has room for."""
        raise NotImplementedError

    def _fill(self, state: Any, seed: int) -> None:
        """What a state holds before it has learned anything; zeros where nothing is said."""

    def _resize(self, most: int) -> None:
        """The state for another cap, without what no longer fits."""
        raise NotImplementedError

    def _check_read(self, state: Any) -> None:
        """ValueError if a state from a file contradicts itself."""

    def _between(self) -> bool:
        """What a pass came back for; False where there was nothing to do."""
        return False

    def _overflow_cure(self) -> str:
        """Why numbers would overflow, and what to do about it."""
        raise NotImplementedError

    # ---- state ------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_state"):  # joblib may have mapped the arrays read-only
            self._state = type(self._state)(*(np.array(part) for part in self._state))

    def _forget_plan(self) -> None:
        super()._forget_plan()
        self._sized = False

    def _allocate(self, most: int) -> Any:
        shapes = self._shapes(self.n_features_in_, self._outputs, most)
        arrays = [np.zeros(shape) for shape in shapes.values()]
        return self._arrays(*arrays, np.zeros(1, self._status))

    def _bytes(self, outputs: int, most: int) -> int:
        """Of a state, in closed form."""
        shapes = self._shapes(self.n_features_in_, outputs, most).values()
        return 8 * sum(int(np.prod(shape)) for shape in shapes) + self._status.itemsize

    def _most(self, outputs: int) -> int:
        """Points that fit into the caps."""
        if self.max_bytes is None:
            return self.max_points
        low, high = 0, self.max_points
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._bytes(outputs, middle) <= self.max_bytes
            low, high = (middle, high) if fits else (low, middle - 1)
        if low == 0:
            raise ValueError(
                f"max_bytes={self.max_bytes} does not hold a single point: for "
                f"{self.n_features_in_} features and {outputs} outputs it must be "
                f"{self._bytes(outputs, 1)} at least"
            )
        return low

    def _capacity_limit(self, features: int) -> int:
        return self._most(self._outputs) + self.batch_size

    def _check_room(self, outputs: int) -> None:
        self._most(outputs)

    def _check_range(self, rows: Rows) -> None:
        check.check_kernel_range(self.kernel_, rows)

    def _start(self, X: Any, rows: Rows) -> None:
        if not ahead.is_cached(self._pass()):
            ahead.explain()
        check.note_features(self, X)
        self.kernel_ = make_kernel(self.kernel, first_gamma(self.gamma, rows), 1, 1.0)
        self._state = self._allocate(self._most(self._outputs))
        self._fill(
            self._state, int(random_numbers(self.random_state).randint(np.iinfo(np.int32).max))
        )
        self._forget_plan()

    @property
    def model_order_(self) -> int:
        """Points stored."""
        return int(self._fitted().status[0]["order"])

    @property
    def n_seen_(self) -> int:
        """Samples learned from."""
        return int(self._fitted().status[0]["seen"])

    @property
    def n_forced_(self) -> int:  # type: ignore[override]
        """How often ``max_points`` or ``max_bytes`` left no choice."""
        return int(self._fitted().status[0]["forced"])

    @property
    def nbytes_(self) -> int:
        """Bytes held by the model."""
        return sum(array.nbytes for array in self._fitted())

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
            weights = np.clip(weights, 1.0 / LARGEST_WEIGHT, LARGEST_WEIGHT)
        if not self._sized:
            if self._size(self._state) != self._most(self._outputs):
                self._resize(self._most(self._outputs))
            self._sized = True
        if predictions is None and self._follows:
            predictions = np.empty((len(targets), self._outputs))
        compiled_pass, table = self._pass(), targets if targets.ndim > 1 else targets[:, None]
        room, settings, done = _NONE if predictions is None else predictions, self._settings(), 0
        while True:
            first = done
            with one_thread():
                reason, done = compiled_pass(
                    *self._state, settings, *self._program, *rows, table, weights, done, room
                )
            if self._follows:
                self._follow(room[first:done], targets[first:done], weights[first:done])
            if reason == UNUSABLE:
                raise ValueError(f"Sample {done} of this call has NaN, infinite or huge entries.")
            if reason == DIVERGED:
                raise DivergenceError(
                    f"Sample {done} of this call would make the weights overflow: "
                    f"{self._overflow_cure()} What was learned before it is kept."
                )
            if not self._between():
                return
            settings = self._settings()

    @property
    def _follows(self) -> bool:
        """Whether predictions are looked at once their targets are known."""
        return False

    def _follow(self, made: NDArray[np.float64], targets: Any, weights: Any) -> None:
        """Look at predictions, each from just before its sample's step."""

    @property
    def _program(self) -> Any:
        return self.kernel_.program

    def _learn_one(self, x: NDArray[np.float64], target: float) -> None:
        x = np.asarray(x)
        if x.shape != (self.n_features_in_,):
            raise ValueError(
                f"learn_one takes an array of {self.n_features_in_} features, got shape {x.shape}"
            )
        self._check_parameters()
        self._call = True
        self._learn(check.check_rows(self, x[None]), np.asarray(target, float)[None], None)

    # ---- files ------------------------------------------------------------------------

    def _stored_arrays(self) -> dict[str, NDArray[Any]]:
        state = self._fitted()
        return {name: getattr(state, name).copy() for name in state._fields[:-1]}

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state = self._fitted()
        self._check_parameters()
        return {
            "version": __version__,
            "parameters": self._plain_parameters(),
            "kernel": self.kernel_.to_config(),
            "features": self.n_features_in_,
            "names": list(getattr(self, "feature_names_in_", [])) or None,
            "size": self._size(state),
            "status": {name: state.status[0][name].item() for name in self._status.names or ()},
            **self._extra_header(),
        }, self._stored_arrays()

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        header = document.header
        model: Self = cls._with_parameters(header["parameters"])
        model.kernel_ = kernel_from_config(header["kernel"])
        if type(header["features"]) is not int or not 1 <= header["features"] < 2**31:
            raise ValueError("the number of features is not one")
        restore_names(model, header["names"], header["features"])
        model._restore_extra(header)
        if type(header["size"]) is not int or not 1 <= header["size"] <= 10_000:
            raise ValueError("the size of the state is out of range")
        model._state = model._read(header, document.arrays)
        model._check_read(model._state)
        model._check_parameters()
        return model

    def _read(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
        """The arrays of a file, of the shapes that the size demands, and the status."""
        shapes = self._shapes(header["features"], self._outputs, header["size"])
        for name, shape in shapes.items():
            array = arrays[name]
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"the array {name!r} is not finite float64 of shape {shape}")
        status = np.zeros(1, self._status)
        for name in self._status.names or ():
            value, kind = header["status"][name], self._status[name].kind
            number = type(value) is int or (type(value) is float and kind == "f")
            if not number or not 0 <= value < {"u": 2**64, "i": 2**62, "f": np.inf}[kind]:
                raise ValueError(f"{name} is not a number that a state can hold")
            status[0][name] = value
        if status[0]["order"] > header["size"]:
            raise ValueError("the state's parts contradict one another")
        return self._arrays(*(arrays[name].copy() for name in shapes), status)
