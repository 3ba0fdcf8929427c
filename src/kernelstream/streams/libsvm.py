"""LIBSVM text: a target and the features that are not zero, on each line."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelstream.limits import LARGEST_ENTRY
from kernelstream.streams.errors import StreamError
from kernelstream.streams.formats import Format, Reading, register
from kernelstream.streams.raw_bytes import ByteStream
from kernelstream.streams.records import Block, BlockReader
from kernelstream.streams.text_source import Parsed, TextSource

_COMMENT = re.compile(rb"#[^\r\n]*")
_NUMBER = rb"[-+]?[.\d][-+.\deE]*"
_LINE = re.compile(rb"%b(\s+qid:\d+)?(\s+\d+:%b)+" % (_NUMBER, _NUMBER))
_LARGEST = 2**31 - 1  # column numbers of a CSR matrix
_DIGITS = 10  # of the largest
_BLANKS = np.frombuffer(b" \t\r\n\v\f", np.uint8)


class LibsvmSource(TextSource):
    """Rows of a LIBSVM file; see `open_stream`."""

    def __init__(self, path: str, format: str, reading: Reading) -> None:
        reading.check_unnamed(path)
        reading.check_position(format)
        width = reading.n_features
        if width is None:
            width = reading.position["n_features"] if reading.position else _find_width(path)
        super().__init__(path, format, reading, None)
        self._begin("is empty")
        self.schema = {"target": "number"}
        self.matrix_width = self._width = width
        self.bad = self._bad_rows(reading)

    @property
    def position(self) -> dict[str, Any]:
        return super().position | {"n_features": self._width}

    def _parse(self, block: Block) -> Parsed:
        lines = block.data.splitlines() if b"#" in block.data else None
        plain = lines is None or not any(line.lstrip().startswith(b"#") for line in lines)
        if plain and b"_" not in block.data:  # scikit-learn would take 1_0 for ten
            loaded = self._load(block.data)
            if loaded is not None and len(loaded[1]) == block.n_records:
                return Parsed({"target": loaded[1]}, loaded[0])
        return self._parse_each(block)

    def _load(self, data: bytes) -> tuple[csr_array, NDArray[np.float64]] | None:
        """All rows if each of them is as it should be."""
        from sklearn.datasets import load_svmlight_file

        try:
            X, y = load_svmlight_file(
                io.BytesIO(data), n_features=self._width, zero_based=False, dtype=np.float64
            )
        except (ValueError, OverflowError):
            return None
        if not (np.abs(X.data) <= LARGEST_ENTRY).all() or (np.abs(y) > LARGEST_ENTRY).any():
            return None
        return csr_array(X), y

    def _parse_each(self, block: Block) -> Parsed:
        """Keep the good rows, and say what is wrong with each of the others."""
        rows: list[int] = []
        bad: list[tuple[int, str]] = []
        parsed: list[tuple[float, list[int], list[float]]] = []
        for record in range(block.n_records):
            fields = _COMMENT.sub(b"", block.raw(record)).split()
            if not fields:
                continue
            try:
                parsed.append(self._parse_line(fields))
                rows.append(record)
            except _BadLineError as error:
                bad.append((record, str(error)))
        labels = np.array([label for label, _, _ in parsed])
        indptr = np.cumsum([0, *(len(places) for _, places, _ in parsed)])
        indices = np.array([place for _, places, _ in parsed for place in places], np.int32)
        values = np.array([value for _, _, numbers in parsed for value in numbers], np.float64)
        matrix = csr_array((values, indices, indptr), shape=(len(rows), self._width))
        return Parsed({"target": labels}, matrix, np.array(rows, np.intp), bad)

    def _parse_line(self, fields: list[bytes]) -> tuple[float, list[int], list[float]]:
        label = _number(fields[0], "the target", gap=True)
        if len(fields) > 1 and fields[1].startswith(b"qid:"):
            fields = fields[1:]
        places, numbers = [], []
        previous = 0
        for field in fields[1:]:
            index, colon, value = field.partition(b":")
            if not colon or not index.isdigit():
                raise _BadLineError(f"{_show(field)} is not of the form index:value")
            digits = index.lstrip(b"0") or b"0"  # Python refuses to read thousands of them
            place = int(digits) if len(digits) <= _DIGITS else _LARGEST + 1
            if place == 0:
                raise _BadLineError("indices begin at 1, not at 0")
            if place <= previous:
                raise _BadLineError(f"index {place} follows {previous}: indices must increase")
            if place > _LARGEST:
                raise _BadLineError(f"index {_show(index)} is larger than {_LARGEST}")
            if place > self._width:
                raise _BadLineError(f"index {place} is beyond the {self._width} features")
            numbers.append(_number(value, f"feature {place}"))
            places.append(place - 1)
            previous = place
        return label, places, numbers


def looks_like_libsvm(line: bytes) -> bool:
    """Whether a line is a number followed by index:value, which no header is.

    >>> looks_like_libsvm(b"-1 3:0.5 7:1"), looks_like_libsvm(b"time 10:30,load")
    (True, False)
    """
    return _LINE.fullmatch(_COMMENT.sub(b"", line).strip()) is not None


class _BadLineError(Exception):
    """Why a line is refused."""


def _number(text: bytes, what: str, gap: bool = False) -> float:
    """A number that a model takes, or NaN where there may be a gap."""
    try:
        number = float(text) if b"_" not in text else None
    except ValueError:
        number = None
    if number is None:
        raise _BadLineError(f"{what} is {_show(text)}, not a number")
    if not abs(number) <= LARGEST_ENTRY and not (gap and number != number):
        most = f"{LARGEST_ENTRY:.0e}"
        raise _BadLineError(f"{what} is {_show(text)}, not a finite number of at most {most}")
    return number


def _show(text: bytes) -> str:
    return repr(text[:40].decode(errors="replace"))


def _find_width(path: str) -> int:
    """The largest index of the file, by one quick pass over it."""
    if path == "-":
        raise StreamError(
            "LIBSVM text from standard input needs --n-features (n_features=): "
            "the largest index is known only at its end."
        )
    scan = ByteStream(path)
    try:
        reader = BlockReader(scan, 1, None)
        width = 0
        while (block := reader.next_block()) is not None:
            width = max(width, largest_index(block.data))
    finally:
        scan.close()
    return width


def largest_index(data: bytes) -> int:
    """The largest of the whole numbers before a colon, 0 if there is none.

    >>> largest_index(b"1 3:0.5 7:1 # 9:1"), largest_index(b"1 2:1.77:1 x8:1")
    (7, 2)
    """
    if b"#" in data:
        data = _COMMENT.sub(b"", data)
    characters = np.frombuffer(b" " * (_DIGITS + 1) + data, np.uint8)
    places = np.flatnonzero(characters == ord(":"))
    numbers = np.zeros(len(places), np.int64)
    is_number = np.ones(len(places), bool)
    is_field = np.zeros(len(places), bool)
    for power in range(_DIGITS + 1):
        before = characters[places - power - 1]
        is_digit = (before >= ord("0")) & (before <= ord("9"))
        is_field |= is_number & ~is_digit & np.isin(before, _BLANKS)  # not the end of another
        is_number &= is_digit
        numbers[is_number] += (before[is_number].astype(np.int64) - ord("0")) * 10**power
    numbers = numbers[is_field & (numbers <= _LARGEST)]
    return int(numbers.max(initial=0))


register(Format("libsvm", (".libsvm", ".svm"), LibsvmSource, is_text=True))
