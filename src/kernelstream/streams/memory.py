"""Arrays in memory, and the `.npz` files that hold them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from kernelstream.streams.batch import Batch, Column, RowSource, Text, slice_rows
from kernelstream.streams.errors import StreamError
from kernelstream.streams.formats import Format, Reading, register
from kernelstream.streams.raw_bytes import open_file


class ArraySource(RowSource):
    """Rows of `X` and `y`; see `open_stream`."""

    def __init__(
        self, X: Any, y: Any, reading: Reading, name: str = "the arrays", format: str = "arrays"
    ) -> None:
        super().__init__(name, format, reading)
        self._X = csr_array(X) if issparse(X) else np.asarray(X)
        self._y = None if y is None else np.asarray(y)
        self._check()
        reading.check_unnamed(name, has_target=y is not None)
        self.matrix_width = self._X.shape[1]
        self.schema = {} if self._y is None else {"target": self._kind(self._y)}

    def _check(self) -> None:
        X, y = self._X, self._y
        if X.ndim != 2:
            raise StreamError(f"{self.name}: X must have rows and columns, its shape is {X.shape}.")
        if X.dtype.kind not in "biuf":
            raise StreamError(f"{self.name}: X must hold numbers, not {X.dtype}.")
        if y is not None and y.shape != (X.shape[0],):
            raise StreamError(
                f"{self.name}: y must hold one value for each of the {X.shape[0]} rows of X, "
                f"its shape is {y.shape}."
            )
        if X.shape[0] == 0:
            raise StreamError(f"{self.name}: X has no rows: there is nothing to read.")

    def _kind(self, y: NDArray[Any]) -> str:
        kinds = dict.fromkeys("biuf", "number") | dict.fromkeys("UO", "text") | {"M": "date"}
        if y.dtype.kind not in kinds:
            raise StreamError(f"{self.name}: y must hold numbers, strings or dates.")
        return kinds[y.dtype.kind]

    def __next__(self) -> Batch:
        start, stop = self._row, min(self._row + self._batch_rows, self._X.shape[0])
        if start >= stop:
            raise StopIteration
        matrix = slice_rows(self._X, start, stop).astype(np.float64, copy=False)
        columns: dict[str, Column] = {}
        if self._y is not None:
            columns["target"] = _column(self._y[start:stop], self.schema["target"])
        self._row = stop
        truth = self._y is not None and self._y.dtype.kind == "b"
        truths = frozenset(["target"] if truth else [])
        return Batch(columns, matrix, np.arange(start, stop), truths=truths)


def open_npz(path: str, format: str, reading: Reading) -> ArraySource:
    """The arrays `X, y` of a file, or its train part `X_train, y_train`."""
    open_file(path).close()
    with npz_arrays(path) as arrays:
        suffix = next((end for end in ("", "_train") if f"X{end}" in arrays), None)
        if suffix is None:
            held = ", ".join(arrays.files)
            raise StreamError(f"{path} holds neither 'X, y' nor 'X_train, y_train' but: {held}.")
        X, y = arrays[f"X{suffix}"], arrays.get(f"y{suffix}")
    return ArraySource(X, y, reading, path, format)


@contextmanager
def npz_arrays(path: str | os.PathLike[str]) -> Iterator[Any]:
    """The arrays of a file by name; one that is damaged, or something else, is a StreamError."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            yield arrays
    except (StreamError, MemoryError):
        raise
    except Exception:
        # zipfile, zlib and NumPy raise errors of all kinds, which do not name the file; NumPy's
        # words would recommend to load it unsafely.
        raise StreamError(
            f"{os.fspath(path)} is no .npz file of plain arrays, or damaged. "
            "Write it with numpy.savez(path, X=X, y=y)."
        ) from None


def _column(values: Any, kind: str) -> Column:
    if kind == "number":
        return values.astype(np.float64, copy=False)
    if kind == "date":
        return values.astype("datetime64[us]", copy=False)
    places: dict[str, int] = {}
    codes = [
        -1 if value is None or value != value else places.setdefault(str(value), len(places))
        for value in values.tolist()
    ]
    return Text(np.array(codes, np.int32), list(places))


register(Format("npz", (".npz",), open_npz))
