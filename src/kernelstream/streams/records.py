"""Text cut into blocks of whole records, with the place of every record."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.errors import StreamError
from kernelstream.streams.raw_bytes import ByteStream

BLOCK_BYTES = 1 << 20
RECORD_LIMIT = 256 << 20
_HEADER_BYTES = 1 << 16
_SCAN_BYTES = 1 << 17  # what stays in a processor's cache
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34

Positions = NDArray[np.intp]


@dataclass(frozen=True)
class Index:
    """Where the records of a piece of text are; blank lines are no records."""

    starts: Positions
    ends: Positions  # after the line break
    lines: Positions  # line breaks before each start
    lines_after: Positions  # and before each end
    size: int  # bytes of whole records, blank lines included
    n_lines: int  # line breaks in these bytes


@dataclass(eq=False)
class Block:
    """Whole records, and where in the stream they are.

    Quotes count only at the start of a field; without a delimiter there are none.
    """

    data: bytes
    offset: int  # of the first byte
    line: int
    delimiter: str | None
    known_records: int | None = None  # how many, where that is known without an index
    is_last: bool = False  # whether the stream ends here

    @cached_property
    def index(self) -> Index:
        """Made when asked for: handing out whole batches of good rows does not need it."""
        return index_records(self.data, self.delimiter, final=True)

    @property
    def n_records(self) -> int:
        return len(self.index.starts) if self.known_records is None else self.known_records

    def lines(self) -> NDArray[np.int64]:
        """The line of each record, from 1."""
        if self.known_records is not None:
            return np.arange(self.line, self.line + self.known_records)
        return (self.index.lines + self.line).astype(np.int64)

    def raw(self, record: int) -> bytes:
        return self.data[self.index.starts[record] : self.index.ends[record]]

    def head(self, n_records: int) -> Block:
        """The first records alone."""
        if n_records >= self.n_records:
            return self
        data = self.data[: self.index.starts[n_records]]
        return Block(data, self.offset, self.line, self.delimiter)

    def select(self, keep: NDArray[np.bool_]) -> bytes:
        """Some of the records."""
        if keep.all():
            return self.data
        pairs = zip(self.index.starts[keep].tolist(), self.index.ends[keep].tolist(), strict=True)
        return b"".join([self.data[start:end] for start, end in pairs])

    def place_after(self, n_records: int) -> tuple[int, int]:
        """Offset and line where the first records end, at least one; blank lines come after."""
        if n_records == self.known_records:
            return self.end
        return (
            self.offset + int(self.index.ends[n_records - 1]),
            self.line + int(self.index.lines_after[n_records - 1]),
        )

    @property
    def end(self) -> tuple[int, int]:
        """Offset and line after all of it."""
        n_lines = self.index.n_lines if self.known_records is None else self.known_records
        if self.known_records and not self.data.endswith((b"\n", b"\r")):
            n_lines -= 1  # the last line has no end
        return self.offset + len(self.data), self.line + n_lines


class BlockReader:
    """Cuts a stream of bytes where a multiple of `batch_rows` records is complete.

    The same batches come after a resume, and none lies across two blocks.
    """

    def __init__(self, stream: ByteStream, batch_rows: int, delimiter: str | None) -> None:
        self._stream = stream
        self._batch_rows = batch_rows
        self.delimiter = delimiter
        self._carry = b""
        self._line = 1
        self._offset = stream.offset
        self._is_over = False
        self.failure: StreamError | None = None  # what ended the stream early

    @property
    def place(self) -> tuple[int, int]:
        """Offset and line of what comes next."""
        return self._offset, self._line

    def skip_to(self, offset: int, line: int) -> None:
        """Go on at a record that is known to begin there."""
        ahead = offset - self._offset
        if 0 <= ahead <= len(self._carry):
            self._carry = self._carry[ahead:]
        else:
            self._stream.skip_to(offset)
            self._carry, self._is_over = b"", False
        self._offset, self._line = offset, line

    def take_record(self) -> Block | None:
        """One record alone: a header."""
        return self._next_block(1, whole_batches=False)

    def peek_record(self) -> Block | None:
        """The next record, which stays the next."""
        return next(iter(self.peek_records(1)), None)

    def peek_records(self, most: int) -> list[Block]:
        """The next records, each alone, which stay the next."""
        found: list[Block] = []
        while len(found) < most and (block := self.take_record()) is not None:
            found.append(block)
        if found:
            self._carry = b"".join(block.data for block in found) + self._carry
            self._offset, self._line = found[0].offset, found[0].line
        return found

    def next_block(self) -> Block | None:
        return self._next_block(self._batch_rows, whole_batches=True)

    def _next_block(self, n_records: int, whole_batches: bool) -> Block | None:
        pieces = [self._carry]
        size = len(self._carry)
        n_breaks = self._carry.count(b"\n")
        tried = 0
        # What was read with the last record may do; of a pipe no more may ever come.
        if n_breaks and (not whole_batches or self._batch_rows == 1):
            block = self._cut(self._carry, n_records, whole_batches)
            if block is not None:
                return block
        while not self._is_over:
            piece = self._read(max(BLOCK_BYTES if whole_batches else _HEADER_BYTES, size))
            pieces.append(piece)
            size += len(piece)
            # Each try reads all again: only when it can succeed, or when twice as much is there.
            if len(piece) < BLOCK_BYTES:
                n_breaks += piece.count(b"\n")
            if self._is_over or n_breaks >= n_records or size >= 2 * tried:
                data = b"".join(pieces)
                pieces, tried = [data], size
                block = self._cut(data, n_records, whole_batches)
                if block is not None:
                    return block
        data = b"".join(pieces)
        return self._cut(data, n_records, whole_batches) if data else None

    def _read(self, size: int) -> bytes:
        try:
            piece = self._read_start(size) if self._stream.offset == 0 else self._stream.read(size)
        except StreamError as error:
            self.failure = error
            self._is_over = True
            return b""
        self._is_over = not piece
        return piece

    def _read_start(self, size: int) -> bytes:
        """The first bytes, without the mark that some programs put before UTF-8."""
        start = b""
        while len(start) < len(codecs.BOM_UTF8) and (piece := self._stream.read(size)):
            start += piece
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise StreamError(
                f"{self._stream.name} is UTF-16 text. Convert it: iconv -f UTF-16 -t UTF-8."
            )
        if start.startswith(codecs.BOM_UTF8):
            start = start[len(codecs.BOM_UTF8) :]
            self._offset = len(codecs.BOM_UTF8)
            return start or self._stream.read(size)
        return start

    def _cut(self, data: bytes, n_records: int, whole_batches: bool) -> Block | None:
        """Take whole records from the start of the data and carry the rest."""
        # The last record of a stream needs no line break, unless the stream was cut off.
        final = self._is_over and self.failure is None
        plain = _count_plain_lines(data, self.delimiter) if whole_batches and data else None
        if plain is not None:
            has_open_end = final and not data.endswith(b"\n")
            count = plain + has_open_end
            end = len(data) if has_open_end else data.rfind(b"\n") + 1
            surplus = 0 if self._is_over else count % n_records
            known: int | None = count - surplus
            end = _start_of_last(data, end, surplus)
        else:
            index = index_records(data, self.delimiter, final)
            count, end, known = len(index.starts), index.size, None
            wanted = count if self._is_over else count - count % n_records
            wanted = wanted if whole_batches else min(count, n_records)
            if wanted < count:
                end = int(index.starts[wanted])
            surplus = count - wanted
        if count == 0 and len(data) > RECORD_LIMIT:
            raise StreamError(
                f"{self._stream.name}, line {self._line}: no end of the row within "
                f"{RECORD_LIMIT >> 20} MiB. Is a quote never closed, or is this no text file?"
            )
        if count == surplus:
            self._carry = b"" if self._is_over else data
            return None
        block = Block(data[:end], self._offset, self._line, self.delimiter, known, self._is_over)
        self._carry = data[end:]
        self._offset, self._line = block.end
        return block


def _count_plain_lines(data: bytes, delimiter: str | None) -> int | None:
    """How many line breaks there are, if each of them ends a record."""
    if (delimiter is not None and b'"' in data) or data.startswith((b"\n", b"\r")):
        return None
    characters = np.frombuffer(data, np.uint8)
    has_returns = b"\r" in data
    count = 0
    for start in range(0, len(data), _SCAN_BYTES):
        piece = characters[start : start + _SCAN_BYTES + 1]  # one more: pairs of characters
        is_newline = piece == _NEWLINE
        follows, precedes = is_newline[1:], is_newline[:-1]
        if has_returns:
            is_return = piece == _RETURN
            if (is_return[:-1] & ~follows).any():
                return None  # a CR alone ends a line too
            follows = follows | is_return[1:]
        if (precedes & follows).any():
            return None  # a blank line is no record
        count += int(np.count_nonzero(is_newline[:_SCAN_BYTES]))
    return None if data.endswith(b"\r") else count


def _start_of_last(data: bytes, end: int, n: int) -> int:
    """Where the last n lines before `end` begin."""
    width = 1 << 16
    while n:
        start = max(0, end - width)
        breaks = np.flatnonzero(np.frombuffer(data, np.uint8, end - start, start) == _NEWLINE)
        if len(breaks) > n:
            return start + int(breaks[-n - 1]) + 1
        if start == 0:
            return 0
        width *= 4
    return end


def index_records(data: bytes, delimiter: str | None, final: bool) -> Index:
    """Find the records; what follows the last line break is one only if `final`."""
    characters = np.frombuffer(data, np.uint8)
    breaks = _line_breaks(characters, final)
    ends = _outside_quotes(data, delimiter, breaks) + 1
    if final and len(data) and (len(ends) == 0 or ends[-1] < len(data)):
        ends = np.append(ends, len(data))
    starts = np.concatenate([np.zeros(min(1, len(ends)), np.intp), ends[:-1]])
    size = int(ends[-1]) if len(ends) else 0
    lines = np.searchsorted(breaks, starts)
    length = ends - starts
    first = characters[starts]
    is_break = (first == _NEWLINE) | (first == _RETURN)
    is_blank = is_break & ((length == 1) | ((length == 2) & (first == _RETURN)))
    keep = ~is_blank
    lines_after = np.searchsorted(breaks, ends)
    n_lines = int(lines_after[-1]) if len(ends) else 0
    return Index(starts[keep], ends[keep], lines[keep], lines_after[keep], size, n_lines)


def count_fields(data: bytes, index: Index, delimiter: str) -> Positions:
    """How many fields each record has."""
    positions = _delimiters(data, delimiter)
    return np.searchsorted(positions, index.ends) - np.searchsorted(positions, index.starts) + 1


def fields_at(
    data: bytes, index: Index, delimiter: str, places: Positions
) -> tuple[Positions, Positions]:
    """The record and the field, both from 0, in which each of the places lies."""
    positions = _delimiters(data, delimiter)
    records = np.searchsorted(index.starts, places, side="right") - 1
    before = np.searchsorted(positions, index.starts[records])
    return records, np.searchsorted(positions, places) - before


def _delimiters(data: bytes, delimiter: str) -> Positions:
    """Those that separate fields."""
    positions = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(delimiter))
    return _outside_quotes(data, delimiter, positions)


def ends_inside_quotes(data: bytes, delimiter: str) -> bool:
    """Whether a quote is never closed."""
    return b'"' in data and not len(
        _outside_quotes(data + b"\n", delimiter, np.array([len(data)], np.intp))
    )


def _line_breaks(characters: NDArray[np.uint8], final: bool) -> Positions:
    """The last byte of every line break: LF, CR LF, or CR alone."""
    breaks = np.flatnonzero(characters == _NEWLINE)
    returns = np.flatnonzero(characters == _RETURN)
    if len(returns) == 0:
        return breaks
    if not final and returns[-1] == len(characters) - 1:
        returns = returns[:-1]  # an LF may follow
    followed = np.append(characters, 0)[returns + 1] == _NEWLINE
    return np.sort(np.concatenate([breaks, returns[~followed]]))


def _outside_quotes(data: bytes, delimiter: str | None, positions: Positions) -> Positions:
    """Those of the positions, of delimiters or line breaks, that separate fields."""
    if delimiter is None or b'"' not in data:
        return positions
    characters = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(characters == _QUOTE)
    if _quotes_come_in_pairs(characters, quotes, delimiter):
        return positions[np.searchsorted(quotes, positions) % 2 == 0]
    return positions[np.isin(positions, _separators(data, delimiter))]


def _quotes_come_in_pairs(characters: NDArray[np.uint8], quotes: Positions, delimiter: str) -> bool:
    """Whether quotes stand only around fields, doubled inside: then counting them is enough."""
    padded = np.concatenate([[_NEWLINE], characters, [_NEWLINE]])
    allowed = np.zeros(256, bool)
    allowed[[_NEWLINE, _RETURN, _QUOTE, ord(delimiter)]] = True
    before_opening, after_closing = padded[quotes[0::2]], padded[quotes[1::2] + 2]
    return bool(allowed[before_opening].all() and allowed[after_closing].all())


def _separators(data: bytes, delimiter: str) -> Positions:
    """The last byte of all that ends a field, where quotes stand anywhere."""
    mark = re.escape(delimiter).encode()
    field = re.compile(
        rb'(?:"(?:[^"]++|"")*+"?+)?+[^' + mark + rb"\r\n]*+(" + mark + rb"|\r\n|\n|\r|\Z)"
    )
    ends = [match.end() - 1 for match in field.finditer(data) if match.group(1)]
    return np.array(ends, np.intp)
