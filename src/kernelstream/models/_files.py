"""Model files: everything an estimator holds, as a JSON header and plain arrays."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream import models, registry, renamed, storage
from kernelstream._version import __version__
from kernelstream.buffer import Buffer
from kernelstream.compression import komp
from kernelstream.compression.coverage import Coverage
from kernelstream.core.passes import PROBE_EVERY
from kernelstream.core.state import SMALLEST_CAPACITY, State, pack, unpack
from kernelstream.expansion import KernelExpansion
from kernelstream.kernels import Kernel, kernel_from_config
from kernelstream.limits import LARGEST_ENTRY
from kernelstream.losses import Loss, make_loss
from kernelstream.parameters import parameters_of
from kernelstream.parts import part_of, prefixed
from kernelstream.schedules import Parsimony, Steps

#: Points of more features are not given room before they come.
_WIDE = 2**16

#: Models by the name under which their files are marked.
_KINDS: dict[str, type[Saved]] = {}


class Saved:
    """A model that is a file and back; a subclass says what its document is."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not cls.__name__.startswith("_"):
            _KINDS[cls.__name__] = cls

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        raise NotImplementedError

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: plain data, checksummed, replaced atomically."""
        header, arrays = self._document()
        storage.write(path, type(self).__name__, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **functions: Any) -> Self:
        """Read a model written by :meth:`save`; learning goes on where it stopped.

        ``functions`` are those that the model was given, by the names of its parameters: files hold
        data only.
        """
        model = load(path, **functions)
        if not isinstance(model, cls):
            raise storage.ModelFileError(
                f"{os.fspath(path)} holds a {type(model).__name__}, not a {cls.__name__}"
            )
        return model

    def fingerprint(self) -> str:
        """SHA-256 of everything the model holds: equal if and only if the models are."""
        header, arrays = self._document()
        return hashlib.sha256(storage.dumps(type(self).__name__, header, arrays)).hexdigest()


class SavedModel(Saved):
    """What all estimators write and read in the same way."""

    # Supplied by the estimator.
    get_params: Any
    _fitted: Any
    _check_parameters: Any
    #: What files without these parameters were made with, where the default is another one now.
    _before: ClassVar[dict[str, Any]] = {}

    def _stored_arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds of what was learned."""
        raise NotImplementedError

    def _plain_parameters(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in self.get_params().items()}

    @classmethod
    def _with_parameters(cls, parameters: Mapping[str, Any]) -> Any:
        given = cls._before | renamed.with_new_names(parameters, parameters_of(cls))
        return cls(**{name: _unplain(value) for name, value in given.items()})

    def _extra_header(self) -> dict[str, Any]:
        return {}

    def _restore_extra(self, header: dict[str, Any]) -> None:
        pass


class SavedExpansion(SavedModel):
    """What makes an estimator on a kernel expansion a document and back."""

    # Supplied by the estimator.
    _state: State
    _pending: Any
    _factored: ClassVar[bool]
    _waits: ClassVar[bool]
    kernel_: Kernel
    n_features_in_: int

    def _document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state = self._fitted()
        self._check_parameters()  # never write what cannot be read again
        arrays, status = self._pack(state)
        header: dict[str, Any] = {
            "version": __version__,
            "parameters": self._plain_parameters(),
            "kernel": self.kernel_.to_config(),
            "features": self.n_features_in_,
            "names": list(getattr(self, "feature_names_in_", [])) or None,
            "status": status,
            "pending": None,
            **self._extra_header(),
        }
        if self._pending is not None:
            header["pending"] = {"sparse": self._pending.rows.sparse}
            arrays |= prefixed("pending_", self._pending.to_arrays())
        return header, arrays

    @staticmethod
    def _pack(state: Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return pack(state)

    def _unpack(self, arrays: Mapping[str, NDArray[Any]], status: dict[str, Any]) -> Any:
        state = unpack(dict(arrays), status, self._factored)
        komp.check_read(state, self.kernel_)
        if not self._factored and state.status[0]["changes"] >= PROBE_EVERY:
            raise ValueError("a state without a factor has nothing to be probed")
        return state

    def _stored_arrays(self) -> dict[str, NDArray[Any]]:
        return self._pack(self._fitted())[0]

    @classmethod
    def _from_document(cls, document: storage.Document) -> Self:
        header, arrays = document.header, document.arrays
        model = cls._with_parameters(header["parameters"])
        model.kernel_ = kernel_from_config(header["kernel"])
        state = model._unpack(arrays, header["status"])
        if state.points.shape[0] != header["features"]:
            raise ValueError("the number of features contradicts the points")
        restore_names(model, header["names"], header["features"])
        model._restore_extra(header)
        model._pending = None
        if header["pending"]:
            model._pending = _restore_pending(header["pending"], arrays, model)
        model._check_parameters()
        if len(state.weights) != model._columns:
            raise ValueError("the number of outputs contradicts the weights")
        largest = max(np.abs(arrays[name]).max(initial=0.0) for name in ("points", "weights"))
        if largest > 1e3 * LARGEST_ENTRY:  # learn_one bounds only the norm
            raise ValueError("the points or the weights are too large")
        limit = model._capacity_limit(model.n_features_in_)
        spare = SMALLEST_CAPACITY if model.n_features_in_ <= _WIDE else 1
        capacity = max(state.extent, min(state.order + spare, limit))
        model._state = state
        model._resize(capacity)
        return model  # type: ignore[no-any-return]


def _kind(name: str) -> type[Saved] | None:
    """The class of a file's name; where none here has it, other packages are asked."""
    if name not in _KINDS and name in models.__all__:
        getattr(models, name)
    if name not in _KINDS:
        registry.methods()
    return _KINDS.get(name)


def stored_bytes(model: Any) -> int:
    """The size of a model: bytes of all that its file holds of points, weights and factor.

    Unlike ``nbytes_``, which also counts room for more points, it is the same after saving and
    loading.
    """
    return sum(array.nbytes for array in model._stored_arrays().values())


def restore_names(model: Any, names: Any, features: int) -> None:
    """The width of the samples, and the names of the features where a header holds them."""
    model.n_features_in_ = features
    if names is not None:
        if not isinstance(names, list) or [type(name) for name in names] != [str] * features:
            raise ValueError("the names of the features are not names")
        model.feature_names_in_ = np.array(names, dtype=object)


def embed(model: Any, prefix: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """An estimator as a part of a larger document, also one that has learned nothing yet."""
    fitted = hasattr(model, "_state")
    if fitted:
        header, arrays = model._document()
    else:
        model._check_parameters()
        header, arrays = {"parameters": model._plain_parameters()}, {}
    note = {"kind": type(model).__name__, "fitted": fitted, "header": header}
    return note, {prefix + name: array for name, array in arrays.items()}


def rebuild(note: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], prefix: str) -> Any:
    """The estimator that :func:`embed` was given; errors as of a file of its own."""
    kind = _kind(note["kind"])
    if kind is None or not issubclass(kind, SavedModel):
        raise ValueError(f"unknown estimator {note['kind']!r:.80}")
    if note["fitted"]:
        own = {
            name[len(prefix) :]: part for name, part in arrays.items() if name.startswith(prefix)
        }
        return kind._from_document(storage.Document(kind.__name__, note["header"], own))
    model = kind._with_parameters(note["header"]["parameters"])
    model._check_parameters()
    return model


def load(path: str | os.PathLike[str], **functions: Any) -> Any:
    """Read any model or function that this package saved.

    Parameters
    ----------
    path : str or path-like
    **functions
        The functions of a model that was given some, by the names of its parameters. Files hold
        data, and functions are code: a file only notes that it needs them.

    Raises
    ------
    ModelFileError
        If the file is not one of ours, or was damaged, or needs functions that are not given.

    Examples
    --------
    >>> import os, tempfile
    >>> import kernelstream
    >>> X, y = kernelstream.make_multidist(200, random_state=0)
    >>> model = kernelstream.POLKClassifier(random_state=0).partial_fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.ks"))
    ...     again = kernelstream.load(os.path.join(folder, "model.ks"))
    >>> again.fingerprint() == model.fingerprint()
    True
    """
    document = storage.read(path)
    kind: Any = KernelExpansion if document.kind == "KernelExpansion" else _kind(document.kind)
    if kind is None:
        raise storage.ModelFileError(f"{os.fspath(path)} holds an unknown {document.kind!r:.80}")
    _check_functions(path, document, functions)
    with storage.believing(path, document):
        return kind._from_document(document, **functions)


def _check_functions(
    path: str | os.PathLike[str], document: storage.Document, functions: Mapping[str, Any]
) -> None:
    """Refuse a document without the functions that it needs, or with others."""
    noted = document.header.get("functions", [])
    needed = [name for name in noted if isinstance(name, str)] if isinstance(noted, list) else []
    if missing := [name for name in needed if name not in functions]:
        again = ", ".join(f"{name:.80}=..." for name in missing[:8])
        raise storage.ModelFileError(
            f"{os.fspath(path)} holds a {document.kind} with functions of its user's own, which "
            f"are code and not in the file. Give the same ones again: load(path, {again})"
        )
    if unknown := [name for name in functions if name not in needed]:
        raise TypeError(
            f"{os.fspath(path)} holds a {document.kind} that was saved without {unknown[0]}: it "
            "takes none now"
        )


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, Kernel):
        return {"kernel": value.to_config()}
    if isinstance(value, Loss):
        return {"loss": [value.name, value.number]}
    if isinstance(value, Parsimony):
        return {"parsimony": [float(value.factor), float(value.power)]}
    if isinstance(value, Steps):
        return {"steps": value.to_config()}
    if isinstance(value, Coverage):
        return {"coverage": value.to_config()}
    if isinstance(value, dict):  # of classes, which JSON would turn into texts
        return {"class_weight": [[_plain(k), float(weight)] for k, weight in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return None  # a generator given as random_state: the file keeps no generator


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        if "kernel" in value:
            return kernel_from_config(value["kernel"])
        if "coverage" in value:
            return Coverage.from_config(value["coverage"])
        if "parsimony" in value:
            return Parsimony(*value["parsimony"])
        if "steps" in value:
            return Steps(value["steps"])
        if "class_weight" in value:
            return dict(value["class_weight"])
        return make_loss(Loss(*value["loss"]))
    return value


def _restore_pending(note: dict[str, Any], arrays: dict[str, Any], model: Any) -> Buffer:
    """An unfinished batch; it may be longer than a batch if batches have become smaller."""
    if not model._waits:
        raise ValueError("this kind of model has no unfinished batch")
    held, width = part_of("pending_", arrays), model.n_features_in_
    found = Buffer.from_arrays(
        held, bool(note["sparse"]), width, weighted=True, each=model._numbers_each
    )
    known = np.arange(len(getattr(model, "classes_", ())))
    if len(known) and not np.isin(found.targets, known).all():
        raise ValueError("the unfinished batch holds unknown classes")
    return found
