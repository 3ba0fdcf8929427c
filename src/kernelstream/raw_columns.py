"""Raw columns, one by one: what they hold, and how they become numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import murmurhash3_32

from kernelstream.limits import LARGEST_ENTRY
from kernelstream.streams.batch import Batch, Column, Text

#: Circles on which a date lies, and how many places each has.
CIRCLES = (("hour", 1440), ("weekday", 7), ("day of year", 366))
#: Hashes of texts that are kept at hand; when there are more, all are forgotten.
_MOST_HASHES = 2**16


def unnamed(place: int, sparse: bool) -> str:
    """What a feature without name is called."""
    return f"feature {place + 1}" if sparse else f"matrix[{place}]"


def kind_of(column: Column) -> str:
    """ "number", "text" or "date"."""
    if isinstance(column, Text):
        return "text"
    kind = np.asarray(column).dtype.kind
    if kind not in "fiubM":
        raise ValueError(
            f"a column must hold numbers, dates or Text, got {np.asarray(column).dtype}"
        )
    return "date" if kind == "M" else "number"


def column_of(batch: Batch, name: str) -> Column:
    """The column of that name, as long as the batch."""
    if name not in batch.columns:
        raise ValueError(
            f"the batch has no column {name!r}, it has {list(batch.columns)!r:.300}; name the "
            "columns as they were when learning began"
        )
    column = batch.columns[name]
    if len(column) != len(batch):
        raise ValueError(f"column {name!r} has {len(column)} rows, its batch {len(batch)}")
    return column


def refusal(value: float, line: Any, column: str) -> str:
    """Why a number cannot be taken."""
    if np.isnan(value):
        return f"line {line}, {column} is NaN: sparse features cannot be missing, leave them out"
    what = "infinite" if np.isinf(value) else f"too large, {value:.3g}"
    return (
        f"line {line}, {column} is {what}: at most {LARGEST_ENTRY:.0e} is allowed; leave the row "
        "out, or leave the entry empty"
    )


def _circle(steps: int) -> NDArray[np.float64]:
    angle = 2.0 * np.pi * np.arange(steps) / steps
    return np.stack([np.sin(angle), np.cos(angle)])


# Tables, because vectorised sines may differ in the last bit with the place in the array.
_POINTS = tuple(_circle(steps) for _, steps in CIRCLES)


def on_circles(column: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(6, n) sines and cosines, and which dates are missing."""
    missing = np.isnat(column)
    moments = np.where(missing, np.datetime64(0, "us"), column).astype("datetime64[us]")
    microseconds = moments.view(np.int64)
    days = microseconds // 86_400_000_000
    new_year = moments.astype("datetime64[Y]").astype("datetime64[D]").view(np.int64)
    places = (
        microseconds // 60_000_000 % 1440,
        (days + 3) % 7,  # the first of January 1970 was a Thursday
        days - new_year,
    )
    points = [circle[:, place] for circle, place in zip(_POINTS, places, strict=True)]
    return np.where(missing, 0.0, np.concatenate(points)), missing


def as_csr(dense: NDArray[np.float64]) -> Any:
    """A (width, n) table as n sparse rows."""
    width, n = dense.shape
    rows = np.ascontiguousarray(dense.T)
    kept = rows != 0.0
    starts = np.zeros(n + 1, np.int32)
    np.cumsum(np.count_nonzero(kept, axis=1), out=starts[1:])
    places = np.broadcast_to(np.arange(width, dtype=np.int32), (n, width))[kept]
    return csr_array((rows[kept], places, starts), shape=(n, width))


class HashedTexts:
    """Texts as places among ``buckets``, by "column=value"."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self._known: dict[str, int] = {}

    def buckets_of(self, name: str, text: Text) -> NDArray[np.int32]:
        """The bucket of each row; a missing text is one more value."""
        used = np.zeros(len(text.values) + 1, bool)
        used[text.codes] = True  # -1, missing, is the last
        buckets = np.zeros(len(used), np.int32)
        for place in np.flatnonzero(used[:-1]):
            buckets[place] = self._bucket(f"{name}={text.values[place]}")
        if used[-1]:
            buckets[-1] = self._bucket(f"{name}\0missing")
        return buckets[text.codes]

    def _bucket(self, token: str) -> int:
        bucket = self._known.get(token)
        if bucket is None:
            if len(self._known) >= _MOST_HASHES:
                self._known.clear()
            code = murmurhash3_32(token.encode("utf-8", "surrogatepass"), positive=True)
            bucket = self._known[token] = int(code) % self.buckets
        return bucket
