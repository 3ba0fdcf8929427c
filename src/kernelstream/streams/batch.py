"""What every source hands out: some rows of a stream, column by column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelstream.streams.bad_rows import BadRows
from kernelstream.streams.formats import Reading


@dataclass(frozen=True)
class Text:
    """A column of strings, each distinct string held once.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.streams import Batch, Text
    >>> zone = Text(np.array([0, 1, 0, -1], np.int32), ["north", "coast"])  # the last is missing
    >>> len(Batch({"zone": zone, "wind": np.ones(4)}, lines=np.arange(4)))
    4
    """

    codes: NDArray[np.int32]  # (n,) places in ``values``; -1: missing
    values: list[str]

    def __len__(self) -> int:
        return len(self.codes)


#: float64 (NaN: missing), datetime64[us] (NaT: missing) or text.
Column = NDArray[Any] | Text


@dataclass(frozen=True)
class Batch:
    """Rows ``[0, n)``: named columns, features without names, or both."""

    columns: dict[str, Column]
    matrix: Any = None  # (n, p) float64 array or CSR matrix: LIBSVM text, .npz, arrays
    lines: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    #: (n,) where each row came from: its line in a text file from 1, else its row from 0
    bounded: bool = False  # whether the source has refused infinite and huge numbers
    truths: frozenset[str] = frozenset()  # columns of numbers that are true (1) and false (0)
    small: frozenset[str] = frozenset()  # of the truths those that are written in small letters
    commas: bool = False  # whether there are numbers written with a decimal comma

    def __len__(self) -> int:
        return len(self.lines)

    def part(self, start: int, stop: int) -> Batch:
        """Some of its rows."""
        columns = {
            name: Text(column.codes[start:stop], column.values)
            if isinstance(column, Text)
            else column[start:stop]
            for name, column in self.columns.items()
        }
        matrix = None if self.matrix is None else slice_rows(self.matrix, start, stop)
        held = self.bounded, self.truths, self.small, self.commas
        return Batch(columns, matrix, self.lines[start:stop], *held)


def slice_rows(matrix: Any, start: int, stop: int) -> Any:
    """Rows of an array or a CSR matrix, without a copy."""
    if isinstance(matrix, np.ndarray):
        return matrix[start:stop]
    first, last = matrix.indptr[start], matrix.indptr[stop]
    rows = csr_array((stop - start, matrix.shape[1]), dtype=matrix.dtype)
    # Set one by one: the constructor would copy parts that are small beside the whole.
    rows.data, rows.indices = matrix.data[first:last], matrix.indices[first:last]
    rows.indptr = matrix.indptr[start : stop + 1] - first
    return rows


def plain(column: Column) -> NDArray[Any]:
    """A column as one array: strings with None where one is missing, numbers or dates."""
    if isinstance(column, Text):
        return np.array([*column.values, None], dtype=object)[column.codes]
    return column


class Source(ABC):
    """An iterator of batches that can go on from a position.

    Column types are those of the first batch, and stay. A subclass sets `schema` and, where rows
    can be bad, `bad`.
    """

    matrix_width: int | None = None  # features without names
    schema: dict[str, str]  # column -> "number" | "text" | "date"
    unnamed: frozenset[str] = frozenset()  # columns without a name in the header

    def __init__(self, name: str, format: str, reading: Reading) -> None:
        reading.check_position(format)
        self.name = name  # for messages
        self.format = format
        self.bad = BadRows(name)  # the rows refused so far
        self._batch_rows = reading.batch_rows

    @property
    @abstractmethod
    def position(self) -> dict[str, Any]:
        """After the batches handed out so far, as JSON can hold it."""

    def __iter__(self) -> Self:
        return self

    @abstractmethod
    def __next__(self) -> Batch: ...

    def wait_with(self, wait: Callable[[Any], None]) -> None:  # noqa: B027  (most never wait)
        """Call ``wait`` with the file before each read that may have to wait for more."""

    def close(self) -> None:  # noqa: B027  (most have nothing open)
        """Give back the file."""


class RowSource(Source):
    """A source whose position is the number of the next row."""

    def __init__(self, name: str, format: str, reading: Reading) -> None:
        super().__init__(name, format, reading)
        self._row: int = reading.position["row"] if reading.position else 0

    @property
    def position(self) -> dict[str, Any]:
        return {"format": self.format, "row": self._row}
