"""Arrays in memory, and the `.npz` files that hold them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from kernelstream.streams.bad_rows import BadRows
from kernelstream.streams.batch import Batch, Column, Text, slice_rows
from kernelstream.streams.errors import StreamError
from kernelstream.streams.raw_bytes import open_file

TARGET = "target"


class ArraySource:
    """Rows of `X` and `y`; see `open_stream`."""

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        target: str | None,
        batch_rows: int,
        position: dict[str, Any] | None,
        name: str = "the arrays",
        format: str = "arrays",
    ) -> None:
        self.name = name
        self.format = format
        self.bad = BadRows(name)
        self._batch_rows = batch_rows
        self._row = position["row"] if position else 0
        self._X = csr_array(X) if issparse(X) else np.asarray(X)
        self._y = None if y is None else np.asarray(y)
        self._check(target)
        self.matrix_width: int | None = self._X.shape[1]
        self.schema = {} if self._y is None else {TARGET: self._kind()}

    def _check(self, target: str | None) -> None:
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
        check_matrix_target(self.name, target, y is not None)

    def _kind(self) -> str:
        kind = self._y.dtype.kind  # type: ignore[union-attr]
        if kind in "biuf":
            return "number"
        if kind in "UO":
            return "text"
        if kind == "M":
            return "date"
        raise StreamError(f"{self.name}: y must hold numbers, strings or dates.")

    @property
    def position(self) -> dict[str, Any]:
        """After the batches handed out so far, as JSON can hold it."""
        return {"format": self.format, "row": self._row}

    def __iter__(self) -> ArraySource:
        return self

    def __next__(self) -> Batch:
        start, stop = self._row, min(self._row + self._batch_rows, self._X.shape[0])
        if start >= stop:
            raise StopIteration
        matrix = slice_rows(self._X, start, stop).astype(np.float64, copy=False)
        columns: dict[str, Column] = {}
        if self._y is not None:
            columns[TARGET] = _column(self._y[start:stop], self.schema[TARGET])
        self._row = stop
        return Batch(columns, matrix, np.arange(start, stop))

    def close(self) -> None:
        """Nothing is open."""


def open_npz(path: str, **options: Any) -> ArraySource:
    """The arrays `X, y` of a file, or its train part `X_train, y_train`."""
    open_file(path).close()
    with npz_arrays(path) as arrays:
        suffix = next((end for end in ("", "_train") if f"X{end}" in arrays), None)
        if suffix is None:
            held = ", ".join(arrays.files)
            raise StreamError(f"{path} holds neither 'X, y' nor 'X_train, y_train' but: {held}.")
        X, y = arrays[f"X{suffix}"], arrays.get(f"y{suffix}")
    return ArraySource(X, y, name=path, format="npz", **options)


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


def check_matrix_target(name: str, target: str | None, has_target: bool = True) -> None:
    """Sources without column names have one target, of a fixed name."""
    if target not in (None, TARGET):
        raise StreamError(f"{name} has no column names: its target is {TARGET!r}, not {target!r}.")
    if target is not None and not has_target:
        raise StreamError(f"{name} has features X but no target y.")


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
