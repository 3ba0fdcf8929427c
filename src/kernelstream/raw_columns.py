"""Raw columns, one by one: what they hold, and how they become numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from kernelstream.limits import LARGEST_ENTRY
from kernelstream.streams.batch import Batch, Column, Text

#: Circles on which a date lies, and how many places each has.
CIRCLES = (("hour", 1440), ("weekday", 7), ("day of year", 366))

#: The feature that shows gaps in columns without an indicator of their own.
MISSING = "missing elsewhere"


def unnamed(place: int, sparse: bool) -> str:
    """What a feature without name is called."""
    return f"feature {place + 1}" if sparse else f"matrix[{place}]"


def kind_of(column: Column) -> str:
    """ "number", "text" or "date"."""
    if isinstance(column, Text):
        return "text"
    kind = np.asarray(column).dtype.kind
    if kind not in "fiubM":
        raise ValueError(
            f"a column must hold numbers, dates or Text, got {np.asarray(column).dtype}"
        )
    return "date" if kind == "M" else "number"


def column_of(batch: Batch, name: str) -> Column:
    """The column of that name, as long as the batch."""
    if name not in batch.columns:
        raise ValueError(
            f"the batch has no column {name!r}, it has {list(batch.columns)!r:.300}; name the "
            "columns as they were when learning began"
        )
    column = batch.columns[name]
    if len(column) != len(batch):
        raise ValueError(f"column {name!r} has {len(column)} rows, its batch {len(batch)}")
    return column


def matrix_of(batch: Batch, width: int, sparse: bool) -> Any:
    """The features without names: float64, CSR in canonical form if sparse."""
    matrix = batch.matrix
    if matrix is None:
        raise ValueError(
            f"the batch lacks the {width} features without names that were there when learning "
            "began"
        )
    if matrix.shape != (len(batch), width):
        raise ValueError(
            f"the features without names are {matrix.shape[0]} x {matrix.shape[1]}, expected "
            f"{len(batch)} rows of {width}; give the source the same width"
        )
    if issparse(matrix) != sparse:
        was, now = ("sparse", "dense") if sparse else ("dense", "sparse")
        raise ValueError(f"the features without names were {was} and are {now} here: convert")
    if not sparse:
        return np.asarray(matrix, dtype=np.float64)
    matrix = csr_array(matrix, dtype=np.float64)
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if batch.bounded:
        return matrix
    bad = np.flatnonzero(~(np.abs(matrix.data) <= LARGEST_ENTRY))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        column = unnamed(matrix.indices[bad[0]], sparse)
        raise ValueError(refusal(matrix.data[bad[0]], batch.lines[row], column))
    return matrix


def refusal(value: float, line: Any, column: str) -> str:
    """Why a number cannot be taken."""
    if np.isnan(value):
        return f"line {line}, {column} is NaN: sparse features cannot be missing, leave them out"
    what = "infinite" if np.isinf(value) else f"too large, {value:.3g}"
    return (
        f"line {line}, {column} is {what}: at most {LARGEST_ENTRY:.0e} is allowed; leave the row "
        "out, or leave the entry empty"
    )


def _circle(steps: int) -> NDArray[np.float64]:
    angle = 2.0 * np.pi * np.arange(steps) / steps
    return np.stack([np.sin(angle), np.cos(angle)])


# Tables, because vectorised sines may differ in the last bit with the place in the array.
_POINTS = tuple(_circle(steps) for _, steps in CIRCLES)


def on_circles(column: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(6, n) sines and cosines, and which dates are missing."""
    missing = np.isnat(column)
    moments = np.where(missing, np.datetime64(0, "us"), column).astype("datetime64[us]")
    microseconds = moments.view(np.int64)
    days = microseconds // 86_400_000_000
    new_year = moments.astype("datetime64[Y]").astype("datetime64[D]").view(np.int64)
    places = (
        microseconds // 60_000_000 % 1440,
        (days + 3) % 7,  # the first of January 1970 was a Thursday
        days - new_year,
    )
    points = [circle[:, place] for circle, place in zip(_POINTS, places, strict=True)]
    return np.where(missing, 0.0, np.concatenate(points)), missing


def in_days(column: NDArray[Any]) -> NDArray[np.float64]:
    """Days since 1970; NaN: missing."""
    moments = column.astype("datetime64[us]")
    days = moments.view(np.int64) / 86_400_000_000.0
    return np.where(np.isnat(moments), np.nan, days)


def as_csr(dense: NDArray[np.float64]) -> Any:
    """A (width, n) table as n sparse rows."""
    width, n = dense.shape
    rows = np.ascontiguousarray(dense.T)
    kept = rows != 0.0
    starts = np.zeros(n + 1, np.int32)
    np.cumsum(np.count_nonzero(kept, axis=1), out=starts[1:])
    places = np.broadcast_to(np.arange(width, dtype=np.int32), (n, width))[kept]
    return csr_array((rows[kept], places, starts), shape=(n, width))


def refuse_huge(table: NDArray[np.float64], names: list[str], batch: Batch) -> None:
    """Refuse infinite and huge numbers in a (columns, n) table; the first columns have names."""
    if not table.size or np.fmax.reduce(np.abs(table), axis=None) <= LARGEST_ENTRY:
        return
    for row, place in np.argwhere(np.abs(table.T) > LARGEST_ENTRY)[:1]:
        dense = unnamed(place - len(names), sparse=False)
        column = f"column {names[place]!r}" if place < len(names) else dense
        raise ValueError(refusal(table[place, row], batch.lines[row], column))


def ones_at(places: NDArray[np.int32], width: int) -> Any:
    """(n, width) sparse rows with a 1 at each place of a row; none for a place of -1."""
    starts = np.arange(0, places.size + 1, places.shape[1], dtype=np.int32)
    held = places.ravel()
    data = (held >= 0).astype(float), np.maximum(held, 0), starts
    ones = csr_array(data, shape=(len(places), width))
    ones.sum_duplicates()
    if (held < 0).any():
        ones.eliminate_zeros()
    return ones


def whole(name: str, value: Any, most: int) -> int:
    """A number of a parameter's that must be whole, from 1 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise ValueError(f"{name} must be a whole number from 1 to {most}, got {value!r:.80}")
    return int(value)
