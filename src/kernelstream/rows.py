"""Samples on their way into the compiled loops."""

import re
from numbers import Number
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from kernelstream.core.kernel import Rows, first_bad_entry
from kernelstream.limits import LARGEST_ENTRY

_NO_DATA = np.empty(0)
_NO_INDICES = np.empty(0, np.int32)
_NO_INDPTR = np.zeros(1, np.int64)


#: How the types of columns that hold numbers begin, in pandas, Polars and Arrow.
_NUMBERS = re.compile(r"(sparse\[)?(u?int\d|float|double|halffloat|bool|complex|decimal|null)")
_TIMES = re.compile("date|time|duration|period")


def check_columns(X: Any) -> None:
    """Refuse a data frame that holds more than numbers, and name the column.

    NumPy would make numbers of dates, categories and numerals in text, or not: that depends on the
    library and on the columns beside them.
    """
    if isinstance(X, np.ndarray):
        return
    if hasattr(X, "column_names"):  # Arrow
        names, kinds = X.column_names, X.schema.types
    elif hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "shape"):
        names, kinds = X.columns, X.dtypes
    else:
        return
    for place, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        what = str(kind)
        if what.lower() == "object":
            column = X.iloc[:, place] if hasattr(X, "iloc") else X[name]
            other = next((value for value in column if not _is_number(value)), None)
            what = "" if other is None else type(other).__name__
        elif _NUMBERS.match(what.lower()):
            what = ""
        if what:
            cure = "encode it with sklearn.preprocessing.OneHotEncoder"
            if _TIMES.search(what.lower()):
                cure = "use days since a date"
            raise ValueError(
                f"X: column {name!r} holds {what:.80}, not numbers. Convert it ({cure}, for "
                "example), or leave it out. "
                "kernelstream.StreamModel prepares texts and dates by itself."
            )


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, Number | np.bool_)


def dense_rows(X: np.ndarray) -> Rows:
    """A C-contiguous float64 matrix as samples, without checks and without a copy."""
    return Rows(X, _NO_DATA, _NO_INDICES, _NO_INDPTR, False)


def plain_array(array: Any, dtype: Any) -> np.ndarray:
    """The array as the compiled loops are compiled for: contiguous, aligned, not read-only.

    The loops never write to their input, so a read-only one (a memory map, joblib) is passed
    on under another flag instead of being copied.
    """
    if type(array) is np.ndarray and array.dtype == dtype and array.flags.carray:
        return array
    plain = np.require(array, dtype=dtype, requirements=["C", "A"])
    return plain if plain.flags.writeable else np.asarray(_Unlocked(plain))


class _Unlocked:
    """A read-only array seen as a writeable one."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def as_rows(X: Any) -> Rows:
    """Dense or sparse 2-D numbers as samples.

    The input is copied only where its type or order requires it, and never modified.
    """
    if not issparse(X):
        check_columns(X)
        array = np.asarray(X)
        if array.ndim != 2 or array.dtype.kind not in "biufO":
            raise ValueError(
                f"expected real numbers with one row per sample, got {array.dtype} of shape "
                f"{array.shape}"
            )
        return dense_rows(plain_array(array, np.float64))
    matrix = csr_array(X)
    matrix.check_format(full_check=True)  # an index out of range would be a wild memory access
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return Rows(
        np.empty((0, matrix.shape[1])),
        plain_array(matrix.data, np.float64),
        plain_array(matrix.indices, np.int32),
        plain_array(matrix.indptr, np.int64),
        True,
    )


def as_finite_rows(X: Any) -> Rows:
    """The same, where nobody has looked at the entries yet."""
    rows = as_rows(X)
    row, column = first_bad_entry(rows, LARGEST_ENTRY)
    if row >= 0:
        raise ValueError(
            f"the entry at row {row}, column {column} is NaN, infinite or larger than "
            f"{LARGEST_ENTRY:.0e}"
        )
    return rows


def count_rows(rows: Rows) -> int:
    """How many samples there are."""
    return len(rows.indptr) - 1 if rows.sparse else len(rows.dense)


def slice_rows(rows: Rows, first: int, end: int) -> Rows:
    """Consecutive samples, without a copy."""
    if rows.sparse:
        return rows._replace(indptr=rows.indptr[first : end + 1])
    return rows._replace(dense=rows.dense[first:end])


def take_rows(rows: Rows, chosen: np.ndarray) -> Rows:
    """Some samples, by mask or by index."""
    if rows.sparse:
        return as_rows(
            rows_matrix(rows)[np.flatnonzero(chosen) if chosen.dtype == bool else chosen]
        )
    return dense_rows(rows.dense[chosen])


def copy_rows(rows: Rows) -> Rows:
    """The samples in arrays of their own, without those before and after."""
    return as_rows(rows_matrix(rows).copy()) if rows.sparse else dense_rows(rows.dense.copy())


def stack_rows(upper: Rows, lower: Rows) -> Rows:
    """Samples of both, in the form of the lower."""
    if not upper.sparse and not lower.sparse:
        return dense_rows(np.concatenate([upper.dense, lower.dense]))
    both = [rows_matrix(rows) for rows in (upper, lower)]
    stacked = vstack(both, format="csr")
    return as_rows(stacked if lower.sparse else stacked.toarray())


def plain_matrix(rows: Rows) -> Any:
    """The samples as they are: an array, or a CSR array."""
    return rows_matrix(rows) if rows.sparse else rows.dense


def dense_matrix(rows: Rows) -> np.ndarray:
    """The samples as an array: a view of them where they are dense."""
    return rows_matrix(rows).toarray() if rows.sparse else rows.dense


def rows_matrix(rows: Rows) -> Any:
    """The samples as a CSR array."""
    if not rows.sparse:
        return csr_array(rows.dense)
    first, end = rows.indptr[0], rows.indptr[-1]
    return csr_array(
        (rows.data[first:end], rows.indices[first:end], rows.indptr - first),
        shape=(count_rows(rows), rows.dense.shape[1]),
    )
