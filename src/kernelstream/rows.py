"""Samples on their way into the compiled loops."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from kernelstream.core.kernel import Rows, first_bad_entry
from kernelstream.limits import LARGEST_ENTRY

_NO_DATA = np.empty(0)
_NO_INDICES = np.empty(0, np.int32)
_NO_INDPTR = np.zeros(1, np.int64)


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
        array = np.asarray(X)
        if array.ndim != 2 or array.dtype.kind == "c":
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
        raise ValueError(f"the entry at row {row}, column {column} is NaN, infinite or too large")
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


def rows_matrix(rows: Rows) -> Any:
    """The samples as a CSR array."""
    if not rows.sparse:
        return csr_array(rows.dense)
    first, end = rows.indptr[0], rows.indptr[-1]
    return csr_array(
        (rows.data[first:end], rows.indices[first:end], rows.indptr - first),
        shape=(count_rows(rows), rows.dense.shape[1]),
    )
