"""Shards as they come, pairs of arrays, iterables or files, in portions that can be learned."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelstream.network._runners import Runner
from kernelstream.streams import Batch, StreamError, Text, open_stream

#: Rows read at once from a file.
_FILE_ROWS = 8192


class Samples:
    """A portion of samples that travel."""

    place = None

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = X, y

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        yield self.X, self.y


@dataclass
class FileRows:
    """A portion of rows that are read where they are learned."""

    path: str
    target: str | None
    labels: bool  # targets are classes
    names: list[str] | None = None
    place: Any = None  # where to begin, then where to go on; None: at the beginning, at the end
    rows: int | None = None

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        left = self.rows
        while left is None or left > 0:
            size = _FILE_ROWS if left is None else min(_FILE_ROWS, left)
            position, schema = self.place or (None, None)
            stream = open_stream(
                self.path, target=self.target, batch_rows=size, position=position, schema=schema
            )
            try:
                for batch in stream:
                    self.place = stream.position, stream.schema
                    yield self._matrix(batch)
                    if left is not None:
                        left -= len(batch)
                        if left < size:
                            break  # on with smaller batches
                else:
                    self.place = None
                    return
            finally:
                stream.close()

    def column_names(self) -> list[str] | None:
        """Of the columns beside the target."""
        with closing(open_stream(self.path, target=self.target, batch_rows=1)) as stream:
            next(stream, None)
            return [name for name in stream.schema if name != self._target_name] or None

    @property
    def _target_name(self) -> str:
        return "target" if self.target is None else self.target

    def _matrix(self, batch: Batch) -> tuple[Any, Any]:
        """A batch as X and y."""
        if self._target_name not in batch.columns:
            raise StreamError(
                f"{self.path} has no column {self._target_name!r}: name the target's with target=."
            )
        names = [name for name in batch.columns if name != self._target_name]
        if self.names is not None and names:
            _check_names(names, self.names, self.path)
            names = self.names
        texts = [name for name in names if not _is_number(batch.columns[name])]
        if texts:
            raise StreamError(
                f"{self.path}: column {texts[0]!r} does not hold numbers; fit_sharded takes "
                "prepared columns. Write numbers, or learn with StreamModel."
            )
        column = batch.columns[self._target_name]
        y = np.array(column.values)[column.codes] if isinstance(column, Text) else column
        parts = [batch.columns[name][:, None] for name in names]  # type: ignore[index]
        if batch.matrix is not None:
            parts = [batch.matrix, *parts]
        X = parts[0] if len(parts) == 1 else np.hstack(parts)
        return X, _whole(y) if self.labels else y


class _Shard:
    """Where samples come from, a portion after the other."""

    names: list[str] | None = None  # of the columns, in the order that all shards follow
    plain = False  # no names for the model: rows of files come without
    place: Any = None  # where to go on in a file


class _MemoryShard(_Shard):
    """Batches of arrays, one after the other."""

    def __init__(self, batches: Iterable[tuple[Any, Any]], shard: int) -> None:
        self.batches, self.shard = iter(batches), shard
        self.rest: tuple[Any, Any] | None = None  # the next batch, or what is left of it

    def own_names(self, runner: Runner) -> list[str] | None:
        """Those of the first batch."""
        self.rest = self._next()
        return None if self.rest is None else _column_names(self.rest[0])

    def portions(self, rows: int | None) -> Iterator[Samples]:
        """The next samples, at most so many, batch by batch."""
        left = math.inf if rows is None else rows
        while left > 0 and (batch := self._next()) is not None:
            X, y = batch
            if len(y) > left:
                self.rest = _cut(X, y, int(left), len(y))
                X, y = _cut(X, y, 0, int(left))
            left -= len(y)
            if len(y):
                yield Samples(_ordered(X, self), y)

    def _next(self) -> tuple[Any, Any] | None:
        if self.rest is not None:
            batch, self.rest = self.rest, None
            return batch
        for batch in self.batches:
            return self._pair(batch)
        return None

    def _pair(self, batch: Any) -> tuple[Any, Any]:
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise TypeError(
                f"shard {self.shard}: every batch of an iterable must be a pair (X, y), got "
                f"{type(batch).__name__}"
            )
        X, y = batch
        if y is None:
            raise ValueError(f"shard {self.shard}: y is missing")
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if len(y) != rows:
            raise ValueError(f"shard {self.shard}: X has {rows} rows, y has {len(y)}")
        return X, y


class _FileShard(_Shard):
    """Rows of a file."""

    def __init__(self, path: str, target: str | None, labels: bool) -> None:
        self.all = FileRows(path, target, labels)
        self.started = False

    def own_names(self, runner: Runner) -> list[str] | None:
        """Of the columns beside the target; looked up where files are read."""
        return runner.fetch(runner.submit(FileRows.column_names, self.all))  # type: ignore[no-any-return]

    def portions(self, rows: int | None) -> Iterator[FileRows]:
        """The next rows, at most so many, as one portion."""
        if not self.started or self.place is not None:
            self.started = True
            yield replace(self.all, names=self.names, place=self.place, rows=rows)


Shard = _MemoryShard | _FileShard


def make_shard(shard: Any, target: str | None, place: int, labels: bool) -> Shard:
    """The shard that was given in this place; ``labels``: targets of files are classes."""
    if isinstance(shard, str | os.PathLike):
        return _FileShard(os.path.abspath(shard), target, labels)
    # A list of two may also be one of two batches, which are pairs and no matrices.
    if (isinstance(shard, tuple) and len(shard) == 2) or (
        isinstance(shard, list) and len(shard) == 2 and getattr(shard[0], "ndim", 0) == 2
    ):
        return _MemoryShard([tuple(shard)], place)
    if isinstance(shard, Iterable) and not isinstance(shard, np.ndarray):
        return _MemoryShard(shard, place)
    raise TypeError(
        f"shard {place} must be (X, y), an iterable of such pairs or the name of a file, got "
        f"{type(shard).__name__}"
    )


def share_names(runner: Runner, sources: list[Shard]) -> None:
    """Let all shards follow the first one whose columns have names."""
    for first in sources:
        names = first.own_names(runner)
        if names is not None:
            files = any(isinstance(source, _FileShard) for source in sources)
            for source in sources:
                source.names, source.plain = names, files
            return


def _column_names(X: Any) -> list[str] | None:
    names = list(getattr(X, "columns", []))
    return names if names and all(isinstance(name, str) for name in names) else None


def _ordered(X: Any, source: _MemoryShard) -> Any:
    """A data frame with its columns as in the first shard; arrays have no names."""
    found = _column_names(X)
    if source.names is None or found is None:
        return X
    if found != source.names:
        _check_names(found, source.names, f"shard {source.shard}")
        X = X[source.names]
    return X.to_numpy() if source.plain else X


def _check_names(found: list[str], names: list[str], where: str) -> None:
    for what, wrong in (
        ("does not have", [name for name in names if name not in found]),
        ("also has", [name for name in found if name not in names]),
    ):
        if wrong:
            raise ValueError(
                f"{where} {what} column {wrong[0]!r}: all shards must have the columns of the "
                f"first one, {names}"
            )


def _cut(X: Any, y: Any, first: int, last: int) -> tuple[Any, Any]:
    def rows(data: Any) -> Any:
        return data.iloc[first:last] if hasattr(data, "iloc") else data[first:last]

    return rows(X), rows(y)


def _whole(y: Any) -> Any:
    """Labels 0, 1, ... as whole numbers: files of text only know numbers."""
    if y.dtype.kind == "f" and ((y == np.floor(y)) & (np.abs(y) < 2.0**53)).all():
        return y.astype(np.int64)
    return y


def _is_number(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind == "f"
