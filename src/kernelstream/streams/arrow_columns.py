"""Arrow arrays as the columns of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.batch import Column, Text
from kernelstream.streams.decimals import with_points
from kernelstream.streams.errors import require

#: What stands for a missing value in text; the point is Stata's and SAS', the question mark that of
#: many old data sets.
MISSING = (
    "", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", ".", "?",
)  # fmt: skip
_NO_DATE = np.iinfo(np.int64).min  # how NumPy writes a missing date
_TRUTH = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}

#: A date with dots (day, month, year) or slashes (year, month, day), and perhaps a time.
_WRITTEN = r"^(\d{1,2}\.\d{1,2}\.\d{4}|\d{4}/\d{1,2}/\d{1,2})([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?)?$"
#: A time of day, 9:05 or 11:38:36, and one with AM or PM.
_TIME = r"^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?$"
_TWELVE = r"^(0?[1-9]|1[0-2])(:[0-5]\d){1,2} ?([AaPp][Mm])$"
_ANY_TIME = f"{_TIME}|{_TWELVE}"
#: What makes the former of the latter: 12 AM is midnight.
_TO_24 = tuple(
    (rf"^0?{hour}(:[\d:]+) ?[{half}][Mm]$", rf"{hour % 12 + more:02d}\1")
    for half, more in (("Aa", 0), ("Pp", 12))
    for hour in range(1, 13)
)
#: What makes ISO 8601 of such a date: two digits everywhere, then the order. A time of day is one
#: of the first day of 1970.
_TO_ISO = (
    (r"^(\d):", r"0\1:"), (r"^(\d\d:\d\d(:\d\d(\.\d+)?)?)$", r"1970-01-01 \1"),
    (r"^(\d)\.", r"0\1."), (r"^(\d\d)\.(\d)\.", r"\1.0\2."), (r"[ T](\d):", r" 0\1:"),
    (r"^(\d\d)\.(\d\d)\.(\d{4})", r"\3-\2-\1"),
    (r"^(\d{4})/(\d)/", r"\1/0\2/"), (r"^(\d{4}/\d\d)/(\d)($|[ T])", r"\1/0\2\3"),
    (r"^(\d{4})/(\d\d)/(\d\d)", r"\1-\2-\3"),
)  # fmt: skip

#: What is still in Arrow's hands: text is encoded batch by batch.
BlockColumn = Any  # NDArray or pyarrow string array


def kind_of(arrow_type: Any) -> str | None:
    """The kind of column that holds such values, None where there is none."""
    types = require("pyarrow", "Reading columns").types
    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if types.is_null(arrow_type) or any(is_type(arrow_type) for is_type in numbers):
        return "number"
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    if any(is_type(arrow_type) for is_type in texts):
        return "text"
    dates = (types.is_date, types.is_timestamp, types.is_time)
    return "date" if any(is_type(arrow_type) for is_type in dates) else None


def is_truth(arrow_type: Any) -> bool:
    """Whether such values are true and false."""
    return bool(require("pyarrow", "Reading columns").types.is_boolean(arrow_type))


def are_written_dates(values: Any) -> bool:
    """Whether strings, of which there are some, are all dates like 1.3.2024 or 2024/03/01 08:00."""
    return _all_match(values, _WRITTEN)


def are_times(values: Any) -> bool:
    """Whether strings, of which there are some, are all times of day: 9:05, 11:38:36, 9:05 PM."""
    return _all_match(values, _ANY_TIME)


def times_of_day(values: Any) -> list[int]:
    """Which strings are times of day."""
    compute = require("pyarrow.compute", "Reading dates")
    found = compute.match_substring_regex(values, _ANY_TIME)
    return compute.indices_nonzero(found).to_pylist()  # type: ignore[no-any-return]


def _all_match(values: Any, form: str) -> bool:
    compute = require("pyarrow.compute", "Reading dates")
    known = values.drop_null()
    matches = compute.match_substring_regex(known, form)
    return len(known) > 0 and bool(compute.all(matches).as_py())


def _iso(values: Any) -> Any:
    """Strings with dates that have dots or slashes, or times, as ISO 8601; others stay."""
    compute = require("pyarrow.compute", "Reading dates")
    twelve = compute.any(compute.match_substring_regex(values, _TWELVE)).as_py()
    for pattern, replacement in (*(_TO_24 if twelve else ()), *_TO_ISO):
        values = compute.replace_substring_regex(values, pattern, replacement)
    return values


def block_column(values: Any, kind: str, commas: bool = False) -> BlockColumn:
    """A (chunked) Arrow array as numbers, dates or plain strings; ArrowInvalid if one is not.

    ``commas``: numbers are strings with a decimal comma.
    """
    arrow = require("pyarrow", "Reading columns")
    if arrow.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if kind == "text":
        values = values.cast(arrow.string())
        return values.combine_chunks() if isinstance(values, arrow.ChunkedArray) else values
    if kind == "date":
        if arrow.types.is_string(values.type):
            values = _iso(values)
        if arrow.types.is_time(values.type):  # of the first day of 1970
            values = values.cast(arrow.time64("us"), safe=False).cast(arrow.int64())
        zone = getattr(values.type, "tz", None)
        values = values.cast(arrow.timestamp("us", zone), safe=False)
        return _numbers(values.cast(arrow.int64()), _NO_DATE).view("M8[us]")
    if commas:
        values = with_points(values)
    if not arrow.types.is_float64(values.type):
        values = values.cast(arrow.float64(), safe=False)
    return _numbers(values, np.nan)


def _numbers(values: Any, missing: float) -> NDArray[Any]:
    """Numbers of an Arrow array. Its own ``to_numpy`` imports pandas, which takes its time."""
    if hasattr(values, "combine_chunks"):
        values = values.combine_chunks()
    valid, held = values.buffers()
    if not len(values) or held is None:
        return np.full(len(values), missing, values.type.to_pandas_dtype())
    place = slice(values.offset, values.offset + len(values))
    numbers = np.frombuffer(held, values.type.to_pandas_dtype())[place]
    if valid is None or not values.null_count:
        return numbers
    is_valid = np.unpackbits(np.frombuffer(valid, np.uint8), count=place.stop, bitorder="little")
    return np.where(is_valid[place], numbers, numbers.dtype.type(missing))


def slice_column(column: BlockColumn, start: int, stop: int) -> Column:
    """Rows of a column as a batch holds them; the distinct strings in order of appearance."""
    if isinstance(column, np.ndarray):
        return column[start:stop]
    encoded = column[start:stop].dictionary_encode()
    codes = _numbers(encoded.indices, -1)
    return Text(codes.astype(np.int32, copy=False), encoded.dictionary.to_pylist())


def convert_strings(values: Any, kind: str, commas: bool = False) -> tuple[BlockColumn, list[int]]:
    """Binary values converted one by one where need be, and the rows that do not: missing."""
    arrow = require("pyarrow", "Reading columns")
    encoded = values.dictionary_encode()
    codes = _numbers(encoded.indices, -1)
    strings, bad = _convert_each(encoded.dictionary, [_cast_text], None)
    if kind == "text":
        column = arrow.array(strings[codes].tolist(), arrow.string())
    else:
        trimmed = arrow.array([text and text.strip(" \t") for text in strings[:-1]], arrow.string())
        trimmed = with_points(trimmed) if commas else trimmed
        distinct, failed = _convert_each(trimmed, *_CASTS[kind])
        column, bad = distinct[codes], bad | failed
    return column, np.flatnonzero(bad[codes]).tolist()


def _convert_each(
    values: Any, casts: list[Callable[[Any], NDArray[Any]]], missing: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """What one of the casts can convert, and what none can; both end with a missing value."""
    out = np.full(len(values) + 1, missing, object if missing is None else None)
    failed = np.zeros(len(values) + 1, bool)

    def convert(start: int, stop: int) -> None:
        if start == stop:
            return
        for cast in casts:
            try:
                out[start:stop] = cast(values[start:stop])
                return
            except ValueError:  # Arrow's own errors are ValueErrors
                continue
        if stop - start == 1:
            failed[start] = True
            return
        middle = (start + stop) // 2
        convert(start, middle)
        convert(middle, stop)

    convert(0, len(values))
    return out, failed


def _cast_text(values: Any) -> NDArray[Any]:
    return np.array(values.cast("string").to_pylist(), object)


def _truth(values: Any) -> NDArray[np.float64]:
    try:
        return np.array([_TRUTH[text] for text in values.to_pylist()])
    except KeyError:
        raise ValueError from None


def _cast_number(values: Any) -> NDArray[np.float64]:
    return values.cast("float64").to_numpy(zero_copy_only=False)


def _cast_date(unit: str, zone: str | None) -> Callable[[Any], NDArray[Any]]:
    def cast(values: Any) -> NDArray[Any]:
        arrow = require("pyarrow", "Reading dates")
        dates = (
            _iso(values)
            .cast(arrow.timestamp(unit, zone))
            .cast(arrow.timestamp("us", zone), safe=False)
        )
        return dates.to_numpy(zero_copy_only=False)

    return cast


_CASTS: dict[str, tuple[list[Callable[[Any], NDArray[Any]]], Any]] = {
    "number": ([_cast_number, _truth], np.nan),
    "date": (
        [_cast_date(unit, zone) for zone in (None, "UTC") for unit in ("us", "ns")],
        np.datetime64("NaT", "us"),
    ),
}
