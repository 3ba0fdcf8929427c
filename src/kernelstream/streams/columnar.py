"""Tables with typed columns: Parquet, Arrow IPC, Feather and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernelstream.streams.arrow_columns import block_column, is_truth, kind_of, slice_column
from kernelstream.streams.batch import Batch, RowSource
from kernelstream.streams.errors import StreamError, require
from kernelstream.streams.formats import Format, Reading, register
from kernelstream.streams.raw_bytes import open_file

#: Tables of any size, in order, from a row on; only the columns named.
Tables = Callable[[int, list[str]], Iterator[Any]]


class TableSource(RowSource):
    """Batches of exactly `batch_rows` rows, cut from Arrow tables; see `open_stream`."""

    def __init__(
        self,
        name: str,
        format: str,
        reading: Reading,
        names: list[str],  # all columns there are
        tables: Tables,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name, format, reading)
        self._arrow = require("pyarrow", "Reading columns")
        self._close = close
        selected = reading.choose_columns(name, names)
        self._tables = tables(self._row, selected)
        self._waiting = self._next_table()
        if self._waiting is None and reading.position is None:
            raise StreamError(f"{name} has no rows: there is nothing to read.")
        if self._waiting is not None:
            self._waiting = self._fill(self._waiting)
        self.schema = {
            column: reading.schema.get(column) or self._kind(column, reading.position)
            for column in selected
        }

    def _kind(self, column: str, position: dict[str, Any] | None) -> str:
        if self._waiting is None or position is not None:
            raise StreamError(f"Resuming {self.name} needs the schema of its first batch.")
        arrow_type = self._waiting.schema.field(column).type
        kind = kind_of(arrow_type)
        if kind is None:
            raise StreamError(
                f"{self.name}: column {column!r} holds {arrow_type}, neither numbers, text nor "
                "dates. Leave it out with --drop (columns=), or convert it."
            )
        return kind

    def __next__(self) -> Batch:
        if self._waiting is None:
            raise StopIteration
        table = self._fill(self._waiting)
        n_rows = min(self._batch_rows, len(table))
        head = table.slice(0, n_rows)
        columns = {
            name: slice_column(self._convert(head[name], name, kind), 0, n_rows)
            for name, kind in self.schema.items()
        }
        rest = table.slice(n_rows)
        self._waiting = rest if len(rest) else self._next_table()
        self._row += n_rows
        truths = frozenset(name for name in columns if is_truth(head[name].type))
        return Batch(columns, None, np.arange(self._row - n_rows, self._row), truths=truths)

    def _convert(self, values: Any, name: str, kind: str) -> Any:
        arrow = self._arrow
        try:
            return block_column(values, kind)
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, arrow.ArrowTypeError) as error:
            raise StreamError(
                f"{self.name}, rows from {self._row}: column {name!r} does not convert to "
                f"{kind}: {_reason(error)}"
            ) from None

    def _next_table(self) -> Any:
        """The next table that has rows, or None."""
        try:
            table = next((table for table in self._tables if len(table)), None)
            if table is not None:
                # Arrow believes what a file says of its bytes, and crashes where that is wrong.
                table.validate(full=True)
            return table
        except (self._arrow.ArrowException, OSError) as error:
            if isinstance(error, MemoryError):
                raise
            problem, cure = "is damaged", "Fetch or write the file again"
            if self.format == "frame":
                problem, cure = "cannot be read", "Convert the column, or leave it out"
            raise StreamError(
                f"{self.name} {problem} after row {self._row} ({_reason(error)}). {cure}."
            ) from None

    def _fill(self, table: Any) -> Any:
        """Add tables until a batch is there, or no more come."""
        parts = [table]
        n_rows = len(table)
        while n_rows < self._batch_rows and (part := self._next_table()) is not None:
            parts.append(part)
            n_rows += len(part)
        return table if len(parts) == 1 else self._arrow.concat_tables(parts)

    def close(self) -> None:
        """Give back the file."""
        self._close()


def open_parquet(path: str, format: str, reading: Reading) -> TableSource:
    """Row groups piece by piece; those before the position are not read."""
    arrow = require("pyarrow", "Reading Parquet")
    parquet = require("pyarrow.parquet", "Reading Parquet")
    open_file(path).close()
    try:
        # Pages are read through a small buffer: else a row group is held as a whole.
        file = parquet.ParquetFile(path, buffer_size=1 << 20)
    except (arrow.ArrowException, OSError) as error:
        raise _unreadable(path, "Parquet", error) from None

    def tables(row: int, selected: list[str]) -> Iterator[Any]:
        groups = file.metadata.num_row_groups
        sizes = [file.metadata.row_group(group).num_rows for group in range(groups)]
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        first = max(0, int(np.searchsorted(starts, row, side="right")) - 1)
        wanted = list(range(first, groups))
        batches = file.iter_batches(
            reading.batch_rows, row_groups=wanted, columns=selected, use_threads=True
        )
        skip = row - int(starts[first])
        return _skip_rows((arrow.Table.from_batches([batch]) for batch in batches), skip)

    return TableSource(path, format, reading, file.schema_arrow.names, tables, file.close)


def open_ipc(path: str, format: str, reading: Reading) -> TableSource:
    """Record batches one by one, of the file format or the stream format."""
    arrow = require("pyarrow", "Reading Arrow files")
    open_file(path).close()
    file = arrow.OSFile(path)
    try:
        try:
            reader = arrow.ipc.open_file(file)
            count = reader.num_record_batches
            batches = (reader.get_batch(place) for place in range(count))
        except arrow.ArrowInvalid:
            file.seek(0)
            reader = arrow.ipc.open_stream(file)
            batches = iter(reader)
    except (arrow.ArrowException, OSError) as error:
        raise _unreadable(path, "Arrow IPC", error) from None

    def tables(row: int, selected: list[str]) -> Iterator[Any]:
        whole = (arrow.Table.from_batches([batch]).select(selected) for batch in batches)
        return _skip_rows(whole, row)

    return TableSource(path, format, reading, reader.schema.names, tables, file.close)


def open_frame(frame: Any, reading: Reading) -> TableSource:
    """A data frame of any library that narwhals knows."""
    narwhals = require("narwhals", "Reading data frames")
    require("pyarrow", "Reading data frames")
    try:
        eager = narwhals.from_native(frame, eager_only=True)
    except TypeError:
        raise StreamError(
            "A stream is opened from a path, '-', arrays (X, y) or a data frame, "
            f"not from {type(frame).__name__}."
        ) from None
    names = [str(name) for name in eager.columns]
    given = dict(zip(names, eager.columns, strict=True))  # pandas has names that are numbers, too
    step = reading.batch_rows

    def tables(row: int, selected: list[str]) -> Iterator[Any]:
        chosen = eager.select([narwhals.col(given[name]) for name in selected])
        for start in range(row, len(chosen), step):
            yield chosen[start : start + step].to_arrow().select(selected)

    return TableSource("the data frame", "frame", reading, names, tables)


def _skip_rows(tables: Iterator[Any], n_rows: int) -> Iterator[Any]:
    for table in tables:
        skipped = min(n_rows, len(table))
        n_rows -= skipped
        yield table.slice(skipped)


def _unreadable(path: str, format: str, error: Exception) -> StreamError:
    if isinstance(error, MemoryError):  # Arrow has one that is both
        raise error
    return StreamError(
        f"{path} is no {format} file ({_reason(error)}). Name its format with --format (format=)."
    )


def _reason(error: Exception) -> str:
    """The first line of what Arrow says, which may be nothing."""
    return next(iter(str(error).splitlines()), type(error).__name__)


register(
    Format("parquet", (".parquet",), open_parquet),
    Format("arrow", (".arrow",), open_ipc),
    Format("feather", (".feather",), open_ipc),
)
