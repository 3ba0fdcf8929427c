"""Rows as Python has them: data frames, a dict, a list of dicts, columns, arrays."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from kernelstream.streams.batch import Batch, Column, Text
from kernelstream.streams.columns import nearest
from kernelstream.streams.errors import StreamError, require

#: What rows may be, for messages.
ACCEPTED = "a data frame, a dict, a list of dicts, or a dict of columns"


def as_batch(
    rows: Any, schema: Mapping[str, str | None] | None = None, *, unnamed: bool = False
) -> tuple[Batch, dict[str, str]]:
    """Rows as every source hands them out, and the kinds of their columns.

    Parameters
    ----------
    rows : data frame, dict, list of dicts, dict of columns, array, (X, y)
        A dict with one value for each column is one row. In a list of dicts a key that a row
        lacks is a missing value. Arrays, or sparse matrices, are features without names, and
        ``y`` is then the column ``target``.
    schema : dict of str to {"number", "text", "date"}, optional
        The columns to take, and what they hold (None: what their values say); others are not
        looked at. Without it all are taken.
    unnamed : bool, default=False
        Whether features without names are wanted.

    Examples
    --------
    >>> batch, schema = as_batch([{"load": 1.5, "city": "Ulm"}, {"load": None, "city": "Bonn"}])
    >>> batch.columns["load"], schema
    (array([1.5, nan]), {'load': 'number', 'city': 'text'})
    """
    matrix, given = None, dict[str, Any]()
    if isinstance(rows, list) and not rows and schema is not None:
        given = {name: [] for name in schema}  # no rows, of these columns
    elif not is_unnamed(rows):
        given = _columns(rows)
    elif isinstance(rows, tuple):
        matrix, given = rows[0], {"target": rows[1]}
    else:
        matrix, given = rows, {}
    n = _length(given, matrix) if given or matrix is not None else _rows_without_columns(rows)
    if matrix is not None and not unnamed:
        raise StreamError(
            f"the columns have names, and an array has none: give {ACCEPTED}; for an array X, "
            "dict(zip(names, X.T))"
        )
    if matrix is None and unnamed:
        raise StreamError(
            "the features have no names: give an array or a sparse matrix of them, or (X, y)"
        )
    columns, kinds, truths = {}, {}, set()
    for name in given if schema is None else schema:
        called = name if name in given else _unnamed_as(name, given)
        wanted = None if schema is None else schema[name]
        columns[name], kinds[name], truth = _Values(name, given[called]).column(wanted)
        if truth:
            truths.add(name)
    if matrix is not None:
        matrix = _matrix(matrix)
    return Batch(columns, matrix, np.arange(n), truths=frozenset(truths)), kinds


def _matrix(X: Any) -> Any:
    if X.ndim != 2:
        raise StreamError(f"features without names are rows and columns, not of shape {X.shape}")
    if X.dtype.kind not in "biuf":
        raise StreamError(f"features without names are numbers, not {X.dtype}")
    return csr_array(X, dtype=np.float64) if issparse(X) else X.astype(np.float64, copy=False)


# ---- rows into columns --------------------------------------------------------------------


def is_unnamed(rows: Any) -> bool:
    """Whether these are features without names: X, or (X, y)."""
    X = rows[0] if isinstance(rows, tuple) and len(rows) == 2 else rows
    return issparse(X) or isinstance(X, np.ndarray)


def _columns(rows: Any) -> dict[str, Any]:
    """Values by the name of their column."""
    if isinstance(rows, Mapping):
        return _of_mapping(rows)
    if isinstance(rows, list | tuple | Iterator):
        return _of_rows(list(rows))
    if getattr(rows, "ndim", None) == 1 and hasattr(rows, "to_dict"):  # one row of pandas
        return _of_mapping(rows.to_dict())
    return _of_frame(rows)


def _of_mapping(rows: Mapping[Any, Any]) -> dict[str, Any]:
    """Columns; or one row, where no value is a sequence."""
    names = _names(rows)
    if not any(_is_sequence(value) for value in rows.values()):
        values = (value[()] if isinstance(value, np.ndarray) else value for value in rows.values())
        return {name: [value] for name, value in zip(names, values, strict=True)}
    for name, value in rows.items():
        if not _is_sequence(value):
            raise StreamError(
                f"column {str(name)!r} is the single value {value!r:.40}, where others are "
                "sequences: give one value for each row"
            )
    return dict(zip(names, rows.values(), strict=True))


def _names(given: Iterable[Any]) -> list[str]:
    """Names of columns as texts, which they may not be: pandas has 0, 1, 2 where none are given."""
    names: dict[str, Any] = {}
    for name in given:
        if str(name) in names:
            raise StreamError(
                f"the columns {names[str(name)]!r} and {name!r} have the same name as texts: "
                "rename one of them"
            )
        names[str(name)] = name
    return list(names)


def _is_sequence(value: Any) -> bool:
    if isinstance(value, str | bytes | np.generic) or getattr(value, "ndim", None) == 0:
        return False
    return isinstance(value, Sequence) or hasattr(value, "__array__") or hasattr(value, "to_list")


def _of_rows(rows: list[Any]) -> dict[str, Any]:
    names: dict[Any, None] = {}
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise StreamError(f"row {place} is a {type(row).__name__}, not a dict: give {ACCEPTED}")
        names |= dict.fromkeys(row)
    texts = _names(names)
    return {text: [row.get(name) for row in rows] for text, name in zip(texts, names, strict=True)}


def _of_frame(rows: Any) -> dict[str, Any]:
    narwhals = require("narwhals", "Reading data frames", "frames")
    try:
        frame = narwhals.from_native(rows, eager_only=True)
        names = list(frame.columns)
    except TypeError:
        lazy = "; collect() it first" if hasattr(rows, "collect") else ""
        raise StreamError(f"rows are {ACCEPTED}, not a {type(rows).__name__}{lazy}") from None
    except narwhals.exceptions.NarwhalsError as error:
        raise StreamError(f"the data frame cannot be read: {error}") from None
    columns = (frame.get_column(name) for name in names)
    return dict(zip(_names(names), columns, strict=True))


def _rows_without_columns(rows: Any) -> int:
    return 1 if isinstance(rows, Mapping) else len(rows)


def _length(columns: Mapping[str, Any], matrix: Any) -> int:
    """The rows that all columns have."""
    lengths = {name: len(values) for name, values in columns.items()}
    if matrix is not None:
        lengths = {"X": matrix.shape[0], **lengths}
    for name, length in lengths.items():
        first = next(iter(lengths))
        if length != lengths[first]:
            raise StreamError(
                f"column {name!r} has {length} rows, {first!r} {lengths[first]}: give one value "
                "for each row"
            )
    return next(iter(lengths.values()), 0)


#: What a file's column without a name is called here; see ``delimited``.
_PLACE = re.compile(r"c(\d+)")


def _unnamed_as(name: str, given: Mapping[str, Any]) -> str:
    """What a data frame calls a column that has no name in a file, such as an index."""
    if place := _PLACE.fullmatch(name):
        for other in (f"Unnamed: {place[1]}", ""):  # pandas, polars
            if other in given:
                return other
    raise StreamError(_without(name, list(given)))


def _without(name: str, names: list[str]) -> str:
    same = [other for other in names if other.lower() == name.lower()]
    near = same[0] if same else nearest(name, names)
    hint = f" Did you mean {near!r}?" if near else ""
    return (
        f"the rows have no column {name!r}, which the model looks at.{hint} They have: "
        f"{', '.join(names) or 'none'}. Give every column by the name it had when learning began, "
        "with None where a value is not known; further columns are passed over."
    )


# ---- values into columns ------------------------------------------------------------------


class _Values:
    """The values of one column, whatever holds them."""

    def __init__(self, name: str, values: Any) -> None:
        self.name = name
        self._values = values
        if hasattr(values, "to_native"):  # a series of narwhals
            self._values = _plain_series(values)
        elif isinstance(values, np.ma.MaskedArray):
            self._values = values.tolist()  # None where it is masked
        elif not isinstance(values, np.ndarray | list):
            self._values = values.tolist() if hasattr(values, "tolist") else list(values)
        if isinstance(self._values, np.ndarray) and self._values.ndim != 1:
            raise StreamError(
                f"column {name!r} is an array of shape {self._values.shape}: give one value for "
                "each row"
            )

    def column(self, kind: str | None) -> tuple[Column, str, bool]:
        """The column, its kind (where none is wanted: as found), and whether it holds truth."""
        values = self._values
        if isinstance(values, np.ndarray) and values.dtype.kind in "biufM":
            found = "date" if values.dtype.kind == "M" else "number"
            if kind in (None, found):
                dtype = "datetime64[us]" if found == "date" else np.float64
                return values.astype(dtype), found, values.dtype.kind == "b"
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            listed = list(values)
        known = [value for value in listed if not _is_missing(value)]
        kind = kind or self._kind(known)
        if kind == "text":
            return _texts(listed), kind, False
        convert, nothing = _CONVERT[kind]
        column = np.array([nothing] * len(listed), np.float64 if kind == "number" else "M8[us]")
        for row, value in enumerate(listed):
            if _is_missing(value):
                continue
            try:
                column[row] = convert(value)
            except (TypeError, ValueError, ArithmeticError):
                raise StreamError(
                    f"row {row}: column {self.name!r} holds {value!r:.60}, and it holds {kind}s: "
                    "convert it, or give None where the value is not known"
                ) from None
        truth = bool(known) and all(isinstance(value, bool | np.bool_) for value in known)
        return column, kind, truth

    def _kind(self, known: list[Any]) -> str:
        """What the values are, all of them."""
        kinds = {_kind_of(value): value for value in known} or {"number": None}
        if len(kinds) == 1 and (kind := next(iter(kinds))) is not None:
            return kind
        odd = kinds.get(None, next(iter(kinds.values())))
        held = "texts and numbers, or dates" if None not in kinds else type(odd).__name__
        raise StreamError(
            f"column {self.name!r} holds {held} ({odd!r:.40}): numbers, truth values, texts or "
            "dates are taken, one kind in a column; convert it, or leave it out"
        )


def _plain_series(series: Any) -> NDArray[Any] | list[Any]:
    """An array of numbers or moments where that is all there is, else a list."""
    narwhals = require("narwhals", "Reading data frames", "frames")
    dtype = series.dtype
    if isinstance(dtype, narwhals.Datetime) and dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    whole = not series.is_null().any()
    if whole and (dtype.is_integer() or dtype.is_float() or dtype == narwhals.Boolean):
        array = np.asarray(series.to_numpy())
        if array.dtype.kind in "biuf":
            return array
    if isinstance(dtype, narwhals.Datetime):
        array = np.asarray(series.to_numpy())
        if array.dtype.kind == "M":
            return array
    return [None if missing else value for value, missing in
            zip(series.to_list(), series.is_null().to_list(), strict=True)]  # fmt: skip


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # pandas' missing value says neither
        return type(value).__name__ == "NAType"


def _kind_of(value: Any) -> str | None:
    if isinstance(value, str):
        return "text"
    if isinstance(value, datetime.date | datetime.time | np.datetime64):  # a datetime is a date
        return "date"
    if isinstance(value, Real | np.bool_) or type(value).__name__ == "Decimal":
        return "number"
    return None


def _number(value: Any) -> float:
    if isinstance(value, str):
        return float(value) if value.strip() else np.nan
    if _kind_of(value) != "number":
        raise TypeError
    return float(value)


#: A date with dots: always day.month.year, and perhaps a time.
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(|[ T]\d\d:.*)")
#: One with slashes: always year/month/day.
_SLASHED = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(|[ T]\d\d:.*)")
#: A time of day, that of the first day of 1970; with AM or PM it has no fractions of seconds.
_TIME = re.compile(r"(\d{1,2})(:\d\d(?::\d\d)?)(?:(\.\d+)| ?([AaPp][Mm]))?")


#: An hour of one digit after a day.
_HOUR = re.compile(r"([ T])(\d:\d\d)")


def _date(value: Any) -> np.datetime64:
    if isinstance(value, str) and value.strip():
        value, forms = _HOUR.sub(r"\g<1>0\2", value.strip()), (_DOTTED, _SLASHED, _TIME)
        dotted, slashed, time = (form.fullmatch(value) for form in forms)
        if time:
            hour, half = int(time[1]), (time[4] or "").lower()
            if half and not 1 <= hour <= 12:
                raise ValueError
            hour = hour % 12 + 12 * (half == "pm") if half else hour
            value = f"1970-01-01T{hour:02d}{time[2]}{time[3] or ''}"
        elif dotted:
            value = f"{dotted[3]}-{dotted[2]:0>2}-{dotted[1]:0>2}{dotted[4]}"
        elif slashed:
            value = f"{slashed[1]}-{slashed[2]:0>2}-{slashed[3]:0>2}{slashed[4]}"
        value = datetime.datetime.fromisoformat(value.strip())
    elif isinstance(value, str):
        return np.datetime64("NaT")
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:  # it is another time in UTC, by how much depends on the day
            raise ValueError
        value = datetime.datetime.combine(datetime.date(1970, 1, 1), value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if _kind_of(value) != "date":
        raise TypeError
    return np.datetime64(value, "us")


_CONVERT: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "number": (_number, np.nan),
    "date": (_date, np.datetime64("NaT")),
}


def _texts(values: Iterable[Any]) -> Text:
    """Whole numbers without a fraction: a gap among them makes pandas write 3.0 for 3.

    The empty text is a missing value, as it is in files.
    """
    places: dict[str, int] = {}
    codes = []
    for value in values:
        missing = _is_missing(value) or value == ""
        codes.append(-1 if missing else places.setdefault(_text(value), len(places)))
    return Text(np.array(codes, np.int32), list(places))


def _text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53
    return str(int(value)) if whole else str(value)
