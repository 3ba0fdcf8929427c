"""CSV and TSV text: parsed by Arrow, block by block, with types that stay."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.limits import LARGEST_ENTRY
from kernelstream.streams.arrow_columns import (
    MISSING,
    BlockColumn,
    block_column,
    convert_strings,
    kind_of,
)
from kernelstream.streams.bad_rows import BadRows
from kernelstream.streams.columns import check_schema, choose_columns
from kernelstream.streams.errors import StreamError, require
from kernelstream.streams.libsvm import looks_like_libsvm
from kernelstream.streams.raw_bytes import ByteStream
from kernelstream.streams.records import Block, count_fields, ends_inside_quotes, fields_at
from kernelstream.streams.text_source import Parsed, TextSource


class DelimitedSource(TextSource):
    """Rows of a CSV or TSV file; see `open_stream`."""

    def __init__(
        self,
        path: str,
        *,
        format: str,
        delimiter: str | None,
        header: bool,
        target: str | None,
        columns: list[str] | None,
        drop: Sequence[str],
        schema: dict[str, str] | None,
        batch_rows: int,
        on_bad: str,
        quarantine: str | os.PathLike[str] | None,
        position: dict[str, Any] | None,
    ) -> None:
        self._csv = require("pyarrow.csv", "Reading CSV")
        self._arrow = require("pyarrow", "Reading CSV")
        self.format = format
        self._delimiter = delimiter or ("\t" if format == "tsv" else ",")
        if len(self._delimiter) != 1 or self._delimiter in '"\r\n' or ord(self._delimiter) > 127:
            raise StreamError(f"delimiter must be one ASCII character, not {delimiter!r}.")
        given = check_schema(schema)
        super().__init__(ByteStream(path), batch_rows, self._delimiter, position)

        raw_header = self._read_header() if header else self._count_columns()
        selected = choose_columns(self.name, self._names, target, columns, drop)
        block = self._begin(position)
        if block is None and position is None:
            raise self._empty("has a header and no rows")
        if position is not None and not set(selected) <= set(given):
            raise StreamError(f"Resuming {self.name} needs the schema of its first batch.")
        self.schema = {name: given.get(name, "number") for name in selected}
        self._types = dict.fromkeys(selected, self._arrow.float64())
        if block is not None:
            self._settle_types(block, given)
        self.bad = BadRows(
            self.name, on_bad, quarantine, raw_header, position and position.get("bad")
        )

    def _read_header(self) -> bytes:
        """Take the names of the columns; return the line itself."""
        block = self._reader.take_record()
        if block is None:
            raise self._reader.failure or self._empty("is empty")
        try:
            block.data.decode()
        except UnicodeDecodeError:
            raise StreamError(
                f"{self.name}, line {block.line}: the header is not UTF-8 text. "
                "Convert the file: iconv -f LATIN1 -t UTF-8."
            ) from None
        if b"\0" in block.data:
            raise StreamError(
                f"{self.name}, line {block.line}: the header holds a NUL byte, so this is no text "
                "file, or UTF-16 text. Convert that: iconv -f UTF-16 -t UTF-8."
            )
        if looks_like_libsvm(block.data):
            raise StreamError(
                f"{self.name} begins with a row of LIBSVM text, not with a header. "
                "Name the format: --format libsvm (format=)."
            )
        generic = self._generic_names(block)
        types = dict.fromkeys(generic, self._arrow.string())
        fields = self._read(block.data, generic, types).to_pylist()[0]
        self._names = [(fields[name] or "").strip() or name for name in generic]
        twice = [name for place, name in enumerate(self._names) if name in self._names[:place]]
        if twice:
            raise StreamError(
                f"{self.name}: the header names the column {twice[0]!r} twice. Rename one of them."
            )
        return block.raw(0)

    def _count_columns(self) -> bytes:
        """Name the columns of a file without a header."""
        block = self._reader.peek_record()
        if block is None:
            raise self._reader.failure or self._empty("is empty")
        self._names = self._generic_names(block)
        return b""

    def _generic_names(self, block: Block) -> list[str]:
        width = count_fields(block.data, block.index, self._delimiter)[0]
        return [f"c{place}" for place in range(width)]

    def _settle_types(self, block: Block, given: dict[str, str]) -> None:
        """Find the kinds of columns, and how they are written, in the first batch."""
        first = block.head(self._batch_rows)
        fits = self._fits(first, self._misfits(first))
        if not fits.any():
            return
        data = first.select(fits)
        found = self._read(data, self._names, {}, list(self.schema)).schema
        for name in self.schema:
            arrow_type = found.field(name).type
            self.schema[name] = given.get(name) or kind_of(arrow_type) or "text"
            self._types[name] = self._written_type(self.schema[name], arrow_type)
        if self._parse_at_once(first) is None:
            # Arrow guesses that 0x1F is a number, and then does not convert it.
            _, failed = self._convert_each(data)
            for name in set(failed) - set(given):
                if not all(_is_number(value) for _, value in failed[name]):
                    self.schema[name] = "text"
                    self._types[name] = self._arrow.string()

    def _written_type(self, kind: str, found: Any) -> Any:
        """What Arrow should parse a column as: the quick way, which may fail."""
        arrow = self._arrow
        if kind == "text":
            return arrow.string()
        if kind == "number":
            return found if arrow.types.is_boolean(found) else arrow.float64()
        unit = "ns" if getattr(found, "unit", "us") == "ns" else "us"
        return arrow.timestamp(unit, getattr(found, "tz", None))

    def _parse(self, block: Block) -> Parsed:
        columns = self._parse_at_once(block)
        return self._parse_each(block) if columns is None else Parsed(columns)

    def _parse_at_once(self, block: Block) -> dict[str, BlockColumn] | None:
        """The columns if all rows are as they should be."""
        if block.is_last and ends_inside_quotes(block.data, self._delimiter):
            return None
        if b"\0" in block.data:
            return None
        try:
            table = self._read(block.data, self._names, self._types, list(self.schema))
        except self._arrow.ArrowInvalid:
            return None
        if len(table) != block.n_records:
            return None
        columns = {name: block_column(table[name], kind) for name, kind in self.schema.items()}
        usable = not any(
            _unusable(columns[name]).any() for name, kind in self.schema.items() if kind == "number"
        )
        return columns if usable else None

    def _parse_each(self, block: Block) -> Parsed:
        """Keep the good rows, and say what is wrong with each of the others."""
        reasons = self._misfits(block)
        fits = self._fits(block, reasons)
        rows = np.flatnonzero(fits)
        columns: dict[str, BlockColumn] = {}
        if len(rows):
            columns, failed = self._convert_each(block.select(fits))
            for name, values in failed.items():
                for row, value in values:
                    reasons.setdefault(int(rows[row]), _complaint(name, self.schema[name], value))
        is_good = ~np.isin(rows, list(reasons))
        columns = {
            name: column[is_good] if isinstance(column, np.ndarray) else column.filter(is_good)
            for name, column in columns.items()
        }
        return Parsed(columns, records=rows[is_good], bad=sorted(reasons.items()))

    def _misfits(self, block: Block) -> dict[int, str]:
        """Records without the right number of fields, or with bytes that no text has."""
        width = len(self._names)
        counts = count_fields(block.data, block.index, self._delimiter)
        reasons = {
            int(record): f"the row has {_plural(int(counts[record]))}, not {width}"
            for record in np.flatnonzero(counts != width)
        }
        if block.is_last and ends_inside_quotes(block.data, self._delimiter):
            reasons[len(counts) - 1] = "a quote is never closed"
        if b"\0" in block.data:
            reasons = self._with_nul(block) | reasons
        return reasons

    def _with_nul(self, block: Block) -> dict[int, str]:
        """Records with a NUL byte in a column that is read: some programs end a value there."""
        places = np.flatnonzero(np.frombuffer(block.data, np.uint8) == 0)
        records, fields = fields_at(block.data, block.index, self._delimiter, places)
        read = np.array([name in self.schema for name in self._names])
        keep = (fields < len(read)) & read[np.minimum(fields, len(read) - 1)]
        records, first = np.unique(records[keep], return_index=True)
        names = (self._names[field] for field in fields[keep][first])
        return {
            int(record): f"column {name!r} holds a NUL byte, which no text has"
            for record, name in zip(records, names, strict=True)
        }

    def _fits(self, block: Block, misfits: dict[int, str]) -> NDArray[np.bool_]:
        fits = np.ones(block.n_records, bool)
        fits[list(misfits)] = False
        return fits

    def _convert_each(
        self, data: bytes
    ) -> tuple[dict[str, BlockColumn], dict[str, list[tuple[int, bytes]]]]:
        """The columns, and for some of them the rows and values that do not convert."""
        raw = dict.fromkeys(self._names, self._arrow.binary())
        table = self._read(data, self._names, raw, list(self.schema))
        columns, failed = {}, {}
        for name, kind in self.schema.items():
            values = table[name].combine_chunks()
            columns[name], rows = convert_strings(values, kind)
            if kind == "number":
                rows = sorted({*rows, *np.flatnonzero(_unusable(columns[name])).tolist()})
            if rows:
                failed[name] = [(row, values[row].as_py()) for row in rows]
        return columns, failed

    def _read(
        self,
        data: bytes,
        names: list[str],
        types: dict[str, Any],
        selected: list[str] | None = None,
    ) -> Any:
        """An Arrow table; `types` that are not given are guessed."""
        if data.startswith(codecs.BOM_UTF8):
            data = b"\n" + data  # Arrow would drop these bytes, which belong to a field here
        return self._csv.read_csv(
            self._arrow.BufferReader(self._own(data)),
            # One thread, one piece: threads save no time with blocks of this size, and each
            # keeps memory of its own.
            read_options=self._csv.ReadOptions(
                column_names=names, block_size=len(data) + 1, use_threads=False
            ),
            parse_options=self._csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=b'"' in data
            ),
            convert_options=self._csv.ConvertOptions(
                column_types=types,
                include_columns=selected,
                null_values=list(MISSING),
                strings_can_be_null=True,
            ),
            # Arrow's own allocator keeps more and more for threads that come and go.
            memory_pool=self._arrow.system_memory_pool(),
        )

    def _own(self, data: bytes) -> Any:
        """A copy that Arrow owns.

        Its threads may let go of the input after the table is there; to free an object of an
        interpreter that is about to exit can abort the process (apache/arrow, issue 34314).
        """
        buffer = self._arrow.allocate_buffer(len(data))
        np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(data, np.uint8)
        return buffer


def _unusable(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Infinite numbers, and those that no model takes; not the missing ones."""
    return np.abs(numbers) > LARGEST_ENTRY


def _plural(n_fields: int) -> str:
    return "1 field" if n_fields == 1 else f"{n_fields} fields"


def _complaint(name: str, kind: str, value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return (
            f"column {name!r} holds {value[:40]!r}, which is not UTF-8 text; "
            "convert the file with iconv -f LATIN1 -t UTF-8"
        )
    shown = text if len(text) <= 40 else text[:37] + "..."
    if kind == "number" and _is_number(value):
        most = f"{LARGEST_ENTRY:.0e}"
        return f"column {name!r} holds {shown!r}, not a finite number of at most {most}"
    return (
        f"column {name!r} holds {shown!r}, not a {kind}; columns keep the type of the first batch"
    )


def _is_number(text: bytes) -> bool:
    """Whether what was refused is a number, though one that no model takes."""
    try:
        return abs(float(text)) > LARGEST_ENTRY  # smaller ones are Python's, such as 1_000
    except ValueError:
        return False
