"""CSV and TSV text: parsed by Arrow, block by block, with types that stay."""

from __future__ import annotations

import codecs
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.limits import LARGEST_ENTRY
from kernelstream.streams import decimals
from kernelstream.streams.arrow_columns import (
    MISSING,
    BlockColumn,
    are_times,
    are_written_dates,
    block_column,
    convert_strings,
    is_truth,
    kind_of,
    times_of_day,
)
from kernelstream.streams.errors import StreamError, require
from kernelstream.streams.formats import Format, Reading, register
from kernelstream.streams.libsvm import looks_like_libsvm
from kernelstream.streams.records import Block, count_fields, ends_inside_quotes, fields_at
from kernelstream.streams.text_source import Parsed, TextSource

#: What stands between fields where it is no comma.
OTHERS = (";", "\t", "|")
#: What a column of names of rows is called, where the header does not name it.
ROW_NAMES = "row names"


class DelimitedSource(TextSource):
    """Rows of a CSV or TSV file; see `open_stream`."""

    def __init__(self, path: str, format: str, reading: Reading) -> None:
        self._csv = require("pyarrow.csv", "Reading CSV")
        self._arrow = require("pyarrow", "Reading CSV")
        delimiter = reading.delimiter or ("\t" if format == "tsv" else ",")
        one = isinstance(delimiter, str) and len(delimiter) == 1 and ord(delimiter) < 128
        if not one or delimiter in '"\r\n':
            raise StreamError(f"delimiter must be one ASCII character, not {delimiter!r}.")
        self._delimiter, self._decimal = delimiter, reading.decimal
        self._of_model = reading.columns is not None
        super().__init__(path, format, reading, delimiter)

        if reading.delimiter is None and format == "csv" and reading.header:
            self._find_delimiter()
        raw_header = self._read_header() if reading.header else self._count_columns()
        selected = reading.choose_columns(self.name, self._names)
        block = self._begin("has a header and no rows")
        if reading.position is not None and not set(selected) <= set(reading.schema):
            raise StreamError(f"Resuming {self.name} needs the schema of its first batch.")
        self.schema = {name: reading.schema.get(name, "number") for name in selected}
        self._types = dict.fromkeys(selected, self._arrow.float64())
        self._dated: set[str] = set()  # columns of dates, in which a time of day is a mistake
        if block is not None:
            self._settle_types(block, reading)
        self._truths = frozenset(name for name, each in self._types.items() if is_truth(each))
        self.bad = self._bad_rows(reading, raw_header)

    def _find_delimiter(self) -> None:
        """Another mark than the comma, where the header has that one and no comma."""
        block = self._reader.peek_record()
        if block is None or count_fields(block.data, block.index, ",")[0] > 1:
            return
        found = [mark for mark in OTHERS if count_fields(block.data, block.index, mark)[0] > 1]
        if len(found) == 1:
            self._delimiter = self._reader.delimiter = found[0]

    def _read_header(self) -> bytes:
        """Take the names of the columns; return the line itself."""
        block = self._reader.take_record()
        if block is None:
            raise self._nothing("is empty")
        try:
            block.data.decode()
        except UnicodeDecodeError:
            raise StreamError(
                f"{self.name}, line {block.line}: the header is not UTF-8 text. "
                f"Convert the file: iconv -f LATIN1 -t UTF-8 {self.name} > new.csv."
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
        if block.data.lstrip().startswith((b'{"', b"[{")):
            raise StreamError(
                f"{self.name} begins with JSON, which is not read here, and not with a header. "
                "Make CSV of it: pandas.read_json(file, lines=True).to_csv(new, index=False)."
            )
        generic = self._generic_names(block)
        types = dict.fromkeys(generic, self._arrow.string())
        fields = self._read(block.data, generic, types).to_pylist()[0]
        self._names = [(fields[name] or "").strip() or name for name in generic]
        self.unnamed = frozenset(name for name in generic if not (fields[name] or "").strip())
        if self._has_row_names():
            self._names = [ROW_NAMES, *self._names]
            self.unnamed |= {ROW_NAMES}
        return block.raw(0)

    def _has_row_names(self) -> bool:
        """Whether rows have a field before those that the header names, as R writes them.

        One row alone may have a comma too many, and rows that end with a delimiter have nothing
        there that is named.
        """
        width, found = 1 + len(self._names), self._reader.peek_records(1)
        if not self._all_have(found, width):  # only then more are waited for
            return False
        found = self._reader.peek_records(3)
        end = self._delimiter.encode()
        ends = all(each.data.rstrip(b"\r\n").endswith(end) for each in found)
        return len(found) > 1 and not ends and self._all_have(found, width)

    def _all_have(self, records: list[Block], width: int) -> bool:
        fields = (count_fields(each.data, each.index, self._delimiter)[0] for each in records)
        return bool(records) and set(fields) == {width}

    def _count_columns(self) -> bytes:
        """Name the columns of a file without a header."""
        block = self._reader.peek_record()
        if block is None:
            raise self._nothing("is empty")
        self._names = self._generic_names(block)
        return b""

    def _generic_names(self, block: Block) -> list[str]:
        width = count_fields(block.data, block.index, self._delimiter)[0]
        return [f"c{place}" for place in range(width)]

    def _settle_types(self, block: Block, reading: Reading) -> None:
        """Find the kinds of columns, and how they are written, in the first batch."""
        given, position = reading.schema, reading.position
        first = block.head(self._batch_rows)
        _, fits = self._misfits(first)
        if not fits.any():
            return
        data = first.select(fits)
        found = self._read(data, self._names, {}, list(self.schema))
        commas = None if position is None else position.get("commas", ())
        self._commas = frozenset(self._with_commas(found, given) if commas is None else commas)
        for name in self.schema:
            if name in self._commas:
                self.schema[name], self._types[name] = "number", self._arrow.string()
                continue
            arrow_type = found.schema.field(name).type
            kind, types = kind_of(arrow_type) or "text", self._arrow.types
            written = types.is_string(arrow_type) and are_written_dates(found[name])
            if written or (types.is_string(arrow_type) and are_times(found[name])):
                kind = "date"
            self.schema[name] = given.get(name) or kind
            if written or types.is_date(arrow_type) or types.is_timestamp(arrow_type):
                self._dated.add(name)
            self._types[name] = self._written_type(self.schema[name], arrow_type)
        if self._parse_at_once(first) is None:
            # Arrow guesses that 0x1F is a number, and then does not convert it.
            _, failed = self._convert_each(data)
            for name in set(failed) - set(given):
                if not all(_is_number(value) for _, value in failed[name]):
                    self.schema[name] = "text"
                    self._types[name] = self._arrow.string()
        truths = [name for name, each in self._types.items() if is_truth(each)]
        if truths:
            texts = dict.fromkeys(truths, self._arrow.string())
            words = self._read(data, self._names, texts, truths)
            self._small = frozenset(
                name for name in truths if {"true", "false"} & {*words[name].unique().to_pylist()}
            )

    def _with_commas(self, found: Any, given: dict[str, str]) -> set[str]:
        """Columns of numbers with a decimal comma; whole numbers may be some, if others are."""
        if self._decimal == ".":
            return set()
        types = self._arrow.types
        may_be = [name for name in self.schema if given.get(name, "number") == "number"]
        commas, points, whole = set(), set(), set()
        for name in may_be:
            values, arrow_type = found[name], found.schema.field(name).type
            if types.is_floating(arrow_type):
                points.add(name)
            elif types.is_integer(arrow_type) or types.is_null(arrow_type):
                whole.add(name)
            elif types.is_string(arrow_type) and decimals.are_decimals(values):
                commas.add(name)
            elif types.is_string(arrow_type) and self._decimal and name in given:  # bad rows too
                marks = [decimals.count_of(mark, values) for mark in decimals.MARKS]
                (commas if marks[0] >= marks[1] else points).add(name)
        certain = any(decimals.are_certain(found[name]) for name in commas)
        if self._decimal is None and (points or not certain):
            return set()
        return commas | (whole if commas or not points else set())

    def _written_type(self, kind: str, found: Any) -> Any:
        """What Arrow should parse a column as: the quick way, which may fail."""
        arrow = self._arrow
        if kind == "text":
            return arrow.string()
        if kind == "number":
            return found if arrow.types.is_boolean(found) else arrow.float64()
        if arrow.types.is_string(found) or arrow.types.is_time(found):
            return arrow.string()  # dates with dots and times, which Arrow does not read as dates
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
            columns = {
                name: block_column(table[name], kind, name in self._commas)
                for name, kind in self.schema.items()
            }
        except self._arrow.ArrowInvalid:
            return None
        if len(table) != block.n_records:
            return None
        written = (name for name in self._dated if self._arrow.types.is_string(table[name].type))
        if any(self.schema[name] == "date" and times_of_day(table[name]) for name in written):
            return None
        usable = not any(
            _unusable(columns[name]).any() for name, kind in self.schema.items() if kind == "number"
        )
        return columns if usable else None

    def _parse_each(self, block: Block) -> Parsed:
        """Keep the good rows, and say what is wrong with each of the others."""
        reasons, fits = self._misfits(block)
        rows = np.flatnonzero(fits)
        columns: dict[str, BlockColumn] = {}
        if len(rows):
            columns, failed = self._convert_each(block.select(fits))
            for name, values in failed.items():
                for row, value in values:
                    why = _complaint(name, self.schema[name], value, name in self._commas)
                    reasons.setdefault(int(rows[row]), why or self._misfit(name, value))
        is_good = ~np.isin(rows, list(reasons))
        columns = {
            name: column[is_good] if isinstance(column, np.ndarray) else column.filter(is_good)
            for name, column in columns.items()
        }
        return Parsed(columns, records=rows[is_good], bad=sorted(reasons.items()))

    def _misfits(self, block: Block) -> tuple[dict[int, str], NDArray[np.bool_]]:
        """Records without the right number of fields, or with bytes that no text has; the rest."""
        width = len(self._names)
        counts = count_fields(block.data, block.index, self._delimiter)
        reasons: dict[int, str] = {}
        for record in np.flatnonzero(counts != width).tolist():
            found = "1 field" if counts[record] == 1 else f"{counts[record]} fields"
            reasons[record] = f"the row has {found}, not {width}"
        if block.is_last and ends_inside_quotes(block.data, self._delimiter):
            reasons[len(counts) - 1] = "a quote is never closed"
        if b"\0" in block.data:
            reasons = self._with_nul(block) | reasons
        fits = np.ones(block.n_records, bool)
        fits[list(reasons)] = False
        return reasons, fits

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

    def _misfit(self, name: str, value: bytes) -> str:
        cure = (
            "columns keep the type of the first batch: "
            f"--column {name}=text (schema=) reads all of it as text"
        )
        if self._of_model:
            cure = "the model has learned so; an empty field or NA is a missing value"
        shown = _shortened(value.decode())
        return f"column {name!r} holds {shown!r}, not a {self.schema[name]}; {cure}"

    def _convert_each(
        self, data: bytes
    ) -> tuple[dict[str, BlockColumn], dict[str, list[tuple[int, bytes]]]]:
        """The columns, and for some of them the rows and values that do not convert."""
        raw = dict.fromkeys(self._names, self._arrow.binary())
        table = self._read(data, self._names, raw, list(self.schema))
        columns, failed = {}, {}
        for name, kind in self.schema.items():
            values = table[name].combine_chunks()
            columns[name], rows = convert_strings(values, kind, name in self._commas)
            if kind == "number":
                rows = sorted({*rows, *np.flatnonzero(_unusable(columns[name])).tolist()})
            elif kind == "date" and name in self._dated:
                rows = sorted({*rows, *times_of_day(values)})
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


def _complaint(name: str, kind: str, value: bytes, commas: bool) -> str | None:
    """What is wrong with a value; None where it is just of another kind than its column."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return (
            f"column {name!r} holds {value[:40]!r}, which is not UTF-8 text; "
            "convert the file with iconv -f LATIN1 -t UTF-8"
        )
    shown = _shortened(text)
    if kind == "number" and decimals.is_of_other_mark(text, commas):
        have, use = ("a comma", ".") if commas else ("a point", ",")
        return (
            f"column {name!r} holds {shown!r}, and numbers of this file have {have}, where they "
            f"have decimals; is it a decimal mark? --decimal {use} (decimal=) says so"
        )
    if kind == "number" and _is_number(value):
        most = f"{LARGEST_ENTRY:.0e}"
        return f"column {name!r} holds {shown!r}, not a finite number of at most {most}"
    return None


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _is_number(text: bytes) -> bool:
    """Whether what was refused is a number, though one that no model takes."""
    try:
        number = abs(float(text.replace(b",", b".")))
        return number > LARGEST_ENTRY  # smaller ones are Python's, such as 1_000
    except ValueError:
        return False


register(
    Format("csv", (".csv",), DelimitedSource, is_text=True),
    Format("tsv", (".tsv",), DelimitedSource, is_text=True),
)
