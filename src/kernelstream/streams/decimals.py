"""Numbers that are written with a decimal comma."""

from __future__ import annotations

import re
from typing import Any

from kernelstream.streams.errors import require

MARKS = (",", ".")

#: A whole number, or one with a decimal comma.
WRITTEN = r"^[+-]?(\d+|\d*,\d+)([eE][+-]?\d+)?$"
#: What may as well be a whole number with commas between its thousands: 1,234.
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"


def are_decimals(values: Any) -> bool:
    """Whether strings are all numbers as above, some of them with a comma."""
    known = _trimmed(values.drop_null())
    matches = _compute().match_substring_regex(known, WRITTEN)
    return bool(_compute().all(matches).as_py()) and count_of(",", known) > 0


def are_certain(values: Any) -> bool:
    """Whether one of such strings cannot be a whole number with commas between its thousands."""
    compute, known = _compute(), _trimmed(values.drop_null())
    with_comma = compute.filter(known, compute.match_substring(known, ","))
    either = compute.match_substring_regex(with_comma, THOUSANDS)
    return not compute.all(either).as_py()


def count_of(mark: str, values: Any) -> int:
    """How many of some strings hold a mark."""
    return int(_compute().sum(_compute().match_substring(values, mark)).as_py() or 0)


def with_points(values: Any) -> Any:
    """Strings with a point in place of their comma; no number where there is a point already."""
    compute, arrow = _compute(), require("pyarrow", "Reading numbers")
    values = _trimmed(values)
    pointed = compute.replace_substring(values, ",", ".")
    return compute.if_else(
        compute.match_substring(values, "."), arrow.scalar("a point", arrow.string()), pointed
    )


def _trimmed(values: Any) -> Any:
    return _compute().ascii_trim(values, " \t")


def _compute() -> Any:
    return require("pyarrow.compute", "Reading numbers")


def is_of_other_mark(text: str, commas: bool) -> bool:
    """Whether a text would be a number with the other decimal mark."""
    mark = "." if commas else ","
    return mark in text and re.match(WRITTEN, text.strip(" \t").replace(mark, ",")) is not None
