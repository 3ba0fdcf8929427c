"""What all sources of text lines share: batches out of blocks, bad rows, positions."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.arrow_columns import BlockColumn, slice_column
from kernelstream.streams.bad_rows import BadRow, BadRows
from kernelstream.streams.batch import Batch, Source, slice_rows
from kernelstream.streams.errors import StreamError
from kernelstream.streams.formats import Reading
from kernelstream.streams.raw_bytes import ByteStream
from kernelstream.streams.records import Block, BlockReader


@dataclass(frozen=True)
class Parsed:
    """The good rows of a block, and why the others are not."""

    columns: dict[str, BlockColumn]
    matrix: Any = None
    records: NDArray[np.intp] | None = None  # the record of each row; None: all records are rows
    bad: list[tuple[int, str]] = field(default_factory=list)  # (record, reason), in order


class TextSource(Source):
    """Batches of `batch_rows` records each, less those that are bad.

    A subclass parses blocks, sets `schema`, `bad` and `matrix_width`, and calls `_begin`.
    """

    def __init__(self, path: str, format: str, reading: Reading, delimiter: str | None) -> None:
        self._stream = ByteStream(path)
        super().__init__(self._stream.name, format, reading)
        # Blocks end after a multiple of so many records; batches of a block are cut below.
        self._live = reading.live
        step = 1 if reading.live else reading.batch_rows
        self._reader = BlockReader(self._stream, step, delimiter)
        self._start = reading.position
        self._rows = self._start["rows"] if self._start else 0
        self._block: Block | None = None
        self._parsed = Parsed({})
        self._lines = np.empty(0, np.int64)
        self._record = 0  # the next one of the block
        self._place = (0, 1)  # offset and line after the blocks before this one
        self._truths: frozenset[str] = frozenset()  # see Batch
        self._small: frozenset[str] = frozenset()
        self._commas: frozenset[str] = frozenset()  # columns of numbers with a decimal comma

    @abstractmethod
    def _parse(self, block: Block) -> Parsed: ...

    def _begin(self, without: str) -> Block | None:
        """Read the first block; a new stream must have one, or is described by `without`."""
        if self._start is not None:
            self._reader.skip_to(self._start["offset"], self._start["line"])
        self._place = self._reader.place
        self._block = self._reader.next_block()
        if self._block is None and (self._reader.failure or self._start is None):
            raise self._nothing(without)
        return self._block

    def _bad_rows(self, reading: Reading, header: bytes = b"") -> BadRows:
        state = (reading.position or {}).get("bad")
        return BadRows(self.name, reading.on_bad, reading.quarantine, header, state)

    def _nothing(self, without: str) -> StreamError:
        nothing = StreamError(f"{self.name} {without}: there is nothing to read.")
        return self._reader.failure or nothing

    def wait_with(self, wait: Callable[[Any], None]) -> None:
        """Call ``wait`` with the file before each read that may have to wait for more."""
        self._stream.wait = wait

    @property
    def position(self) -> dict[str, Any]:
        offset, line = self._place
        if self._block is not None and self._record:
            offset, line = self._block.place_after(self._record)
        return {
            "format": self.format,
            "offset": offset,
            "line": line,
            "rows": self._rows,
            "bad": self.bad.state,
            **({"commas": sorted(self._commas)} if self._commas else {}),
        }

    def __next__(self) -> Batch:
        while self._block is not None:
            if self._record == 0:
                self._parsed = self._parse(self._block)
                self._lines = self._block.lines()
            if self._record < self._block.n_records:
                batch = self._next_records(self._block)
                if len(batch):
                    return batch
            else:
                self._place = self._block.place_after(self._record)
                self._block, self._parsed, self._record = None, Parsed({}), 0
                self._block = self._reader.next_block()
        if self._reader.failure is not None:
            raise self._reader.failure
        raise StopIteration

    def _next_records(self, block: Block) -> Batch:
        start, stop = self._record, min(self._record + self._batch_rows, block.n_records)
        parsed = self._parsed
        records = [record for record, _ in parsed.bad]
        bad = parsed.bad[bisect_left(records, start) : bisect_left(records, stop)]
        lines = self._lines
        if bad and self._live and self.bad.policy == "raise" and bad[0][0] > start:
            bad, stop = [], bad[0][0]  # the rows before it are wanted at once
        self.bad.refuse([BadRow(int(lines[place]), why, block.raw(place)) for place, why in bad])
        self._record = stop
        if parsed.records is not None:
            start, stop = np.searchsorted(parsed.records, [start, stop]).tolist()
            lines = lines[parsed.records[start:stop]]
        else:
            lines = lines[start:stop]
        self._rows += stop - start
        return Batch(
            {name: slice_column(column, start, stop) for name, column in parsed.columns.items()},
            None if parsed.matrix is None else slice_rows(parsed.matrix, start, stop),
            lines,
            bounded=True,  # _parse puts such rows aside, to be refused as on_bad says
            truths=self._truths,
            small=self._small,
            commas=bool(self._commas),
        )

    def close(self) -> None:
        self._stream.close()
