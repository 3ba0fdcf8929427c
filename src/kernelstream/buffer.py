"""Samples that wait: for their batch to be full, for the unit of their target, for their label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelstream.core.kernel import Rows, first_bad_entry
from kernelstream.limits import LARGEST_ENTRY
from kernelstream.rows import (
    as_rows,
    copy_rows,
    dense_rows,
    rows_matrix,
    slice_rows,
    stack_rows,
)

#: Arrays of sparse rows in a file, and their types.
_SPARSE = {"data": ("float64",), "indices": ("int32",), "indptr": ("int64", "int32")}
#: Names that files of version 0.1 have for some of them.
_OLD = {"X": "dense", "rows": "dense", "y": "targets"}


@dataclass(frozen=True)
class Buffer:
    """Samples in their order; a buffer that was taken note of never changes.

    Examples
    --------
    >>> first = Buffer.of([[0.0], [1.0]], [5.0, 6.0])
    >>> both = first.followed_by(Buffer.of([[2.0]], [7.0]))
    >>> len(both), both.since(1).matrix.tolist(), both.nbytes
    (3, [[1.0], [2.0]], 56)
    """

    rows: Rows
    targets: NDArray[Any]  # (n,), or (n, q)
    weights: NDArray[np.float64] | None = None  # (n,)

    @classmethod
    def of(cls, X: Any, targets: Any) -> Self:
        """A matrix and its targets, copied."""
        return cls(as_rows(X), np.asarray(targets)).copy()

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def matrix(self) -> Any:
        """The rows as an array, or as a CSR array that scikit-learn takes: with 32-bit indices."""
        if not self.rows.sparse:
            return self.rows.dense
        found = rows_matrix(self.rows)
        places = found.indices.astype(np.int32), found.indptr.astype(np.int32)
        return csr_array((found.data, *places), shape=found.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [*self.rows, self.targets, self.weights]
        return sum(part.nbytes for part in arrays if isinstance(part, np.ndarray))

    def copy(self) -> Self:
        """The same in arrays of its own."""
        weights = None if self.weights is None else np.array(self.weights)
        return type(self)(copy_rows(self.rows), np.array(self.targets), weights)

    def followed_by(self, later: Buffer) -> Self:
        """These samples and later ones, in the form of the later ones."""
        weights = self.weights
        if weights is not None and later.weights is not None:
            weights = np.concatenate([weights, later.weights])
        targets = np.concatenate([self.targets, later.targets])
        return type(self)(stack_rows(self.rows, later.rows), targets, weights)

    def since(self, first: int) -> Self:
        """All but the first ones, without a copy."""
        weights = None if self.weights is None else self.weights[first:]
        rows = slice_rows(self.rows, first, len(self))
        return type(self)(rows, self.targets[first:], weights)

    # ---- files ------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, by name; whether the rows are sparse is to be noted."""
        arrays = {"targets": self.targets}
        if self.weights is not None:
            arrays["weights"] = self.weights
        if not self.rows.sparse:
            return {"dense": self.rows.dense, **arrays}
        matrix = as_rows(rows_matrix(self.rows))
        return {**{name: getattr(matrix, name) for name in _SPARSE}, **arrays}

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        sparse: bool,
        width: int,
        *,
        weighted: bool = False,
        targets: Any = np.float64,
        each: int = 1,
    ) -> Self:
        """What :meth:`to_arrays` described; nothing in it is trusted.

        Parameters
        ----------
        arrays : dict
        sparse : bool
        width : int
            Features of a sample.
        weighted : bool, default=False
            Whether there are weights.
        targets : dtype, default=float64
        each : int, default=1
            Targets of a sample.
        """
        found = {_OLD.get(name, name): array for name, array in arrays.items()}
        values, weights = found["targets"], found["weights"] if weighted else None
        columns = [values] if weights is None else [values, weights]
        wanted = (len(values),) if each == 1 else (len(values), each)
        flat = weights is None or weights.ndim == 1
        if values.dtype != targets or not len(values) or values.shape != wanted or not flat:
            raise ValueError("the samples that wait have no targets")
        if sparse:
            parts = [found[name] for name in _SPARSE]
            if any(p.dtype.name not in _SPARSE[n] for n, p in zip(_SPARSE, parts, strict=True)):
                raise ValueError("the samples that wait are not numbers")
            rows = as_rows(csr_array(tuple(parts), shape=(len(values), width)))
        else:
            dense = found["dense"]
            if dense.dtype != np.float64 or dense.shape != (len(values), width):
                raise ValueError("the samples that wait are not rows of features")
            rows = dense_rows(dense)
        if weights is not None and not (
            weights.dtype == np.float64 and weights.shape == wanted[:1] and (weights >= 0.0).all()
        ):
            raise ValueError("the weights of the samples that wait are not weights")
        finite = all((np.abs(column) <= LARGEST_ENTRY).all() for column in columns)
        if not finite or first_bad_entry(rows, LARGEST_ENTRY)[0] >= 0:
            raise ValueError("the samples that wait are not finite")
        return cls(rows, values, weights).copy()
