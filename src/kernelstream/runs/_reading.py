"""What every run has: batches that come, a look at the first, and a way to stop."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse, vstack

from kernelstream.categories import NAMING
from kernelstream.preparation import Preparation
from kernelstream.runs._waiting import StopWaitingError, Waiting
from kernelstream.streams import open_stream
from kernelstream.streams.bad_rows import counted
from kernelstream.streams.batch import Batch, Source, Text
from kernelstream.streams.columns import check_present
from kernelstream.streams.decimals import WRITTEN
from kernelstream.targets import MOST_WHOLE_CLASSES, names_of

#: How messages write a parameter, alone or with a value: in Python's words or as an option.
Spelling = Callable[..., str]


#: How rows are read, as open_stream has it.
READING: dict[str, Any] = {
    "schema": None, "drop": None, "on_bad": "raise", "quarantine": None, "batch_rows": 8192,
    "format": None, "delimiter": None, "header": True, "n_features": None, "decimal": None,
}  # fmt: skip


#: How rows become features, as Preparation has it.
PREPARING = ("units", "warm_up", "buckets", "standardise")


class RunError(ValueError):
    """A run cannot begin or go on: what is wrong, and what to do about it."""

    def __init__(self, problem: str, cure: str) -> None:
        super().__init__(f"{problem}; {cure}")


def in_python(name: str, value: Any = None) -> str:
    """A parameter as it is written in Python.

    >>> in_python("warm_up"), in_python("drop", ["x"])
    ('warm_up', "drop=['x']")
    """
    return name if value is None else f"{name}={value!r}"


class StreamRun:
    """Batches of a source, one after the other, until they are over or the run is stopped."""

    source: Source
    #: What the error of a bad row suggests, where it is not the source's own words.
    bad_rows_cure = ""

    def __init__(
        self, given: Any, target: Any, reading: Mapping[str, Any], spelling: Spelling
    ) -> None:
        if unknown := set(reading) - set(READING):
            raise TypeError(f"{type(self).__name__} has no parameter {unknown.pop()!r}")
        plain = isinstance(given, str | os.PathLike)
        #: The source as messages name it.
        self.name = os.fspath(given) if plain else type(given).__name__
        self.stopping = False  # stop() was called: the run ends after this batch
        self.stopped_by: str | None = None  # why it ended early, once it did
        self._given = given
        self._reading = {"target": target, **READING, **reading}
        self._reading["schema"] = dict(self._reading["schema"] or {})
        self._reading["drop"] = list(self._reading["drop"] or [])
        self._reading["quarantine"] = text_of(self._reading["quarantine"])
        self._spelling = spelling
        self._reason = ""
        self._first: Batch | None = None  # read, but not handed out
        self._position: Any = None  # see read
        self._waiting = Waiting() if self.name == "-" else None
        self._noted: list[str] = []

    # ---- the beginning ----------------------------------------------------------------

    def _open(self, like: Preparation | None = None, **place: Any) -> None:
        """Open the source, with the columns of a preparation where there is one.

        ``place`` is a position and its schema, to go on from.
        """
        reading = {**self._reading, **place}
        if like is not None:
            reading["schema"] = like.schema
            reading["decimal"] = reading["decimal"] or like.decimal
            reading["n_features"] = reading["n_features"] or like.matrix_width
        self.source = open_stream(self._given, **reading)
        self.source.bad.cure = self.bad_rows_cure or self.source.bad.cure
        if not place:
            with self._closing_on_error():
                for name in self._reading["schema"]:
                    check_present(self.name, name, list(self.source.schema))

    @contextlib.contextmanager
    def _closing_on_error(self) -> Any:
        try:
            yield
        except BaseException:
            self.source.close()
            raise

    def _look(self) -> Batch:
        """The first batch, which :meth:`read` will hand out; notes on its columns."""
        batch = self._first = next(self.source, None)
        if batch is None:
            raise RunError(
                f"{self.name} has no row that fits: {self.source.bad.count:,} were refused",
                f"look at them with {self._spelling('on_bad', 'raise')}",
            )
        if batch.commas and self._reading["decimal"] is None:
            self._noted.append(
                "numbers with a decimal comma were found: 5,5 is read as 5.5 "
                f"({self._spelling('decimal', '.')} leaves such columns texts)"
            )
        self._noted += _odd_texts(batch, self.source.schema, self._spelling)
        self._noted += _names_of_rows(batch, self._reading["target"], self._noted, self._spelling)
        self._noted += self._unnamed_columns(batch)
        return batch

    def _unnamed_columns(self, batch: Batch) -> list[str]:
        """Notes about columns without a name, such as the index that pandas writes."""
        notes, target = [], self._reading["target"]
        targets = [] if target is None else names_of(target)
        for name, column in batch.columns.items():
            nameless = name in self.source.unnamed
            if name in targets or not (nameless or _PANDAS.fullmatch(name)):
                continue
            called = f"a column has no name in the header and is called {name!r}"
            counts = not isinstance(column, Text) and _counts_rows(column)
            if counts:
                subject = f"{called}: it" if nameless else f"column {name!r}"
                cure = f"leave it out ({self._spelling('drop', [name])})"
                notes.append(f"{subject} looks like a row number, which says nothing; {cure}")
            elif nameless:
                notes.append(called)
        return notes

    def _refuse_numbers_as_texts(self, target: str, column: Any) -> None:
        """Many texts that are numbers but for marks, currencies or units are no classes."""
        if not isinstance(column, Text) or len(column.values) <= MOST_WHOLE_CLASSES:
            return
        marked = [text for text in column.values if not _is_number(text)]
        grouped = all(_GROUPED.match(text) for text in column.values)
        if marked and (grouped or any(_around_numbers(column.values) or ())):
            raise RunError(
                f"{self.name}: each {target!r} is a text such as {marked[0]!r:.40}, a class of its "
                "own",
                "write numbers alone, without marks between thousands, currencies or units; or "
                f"{self._spelling('task', 'classification')}",
            )

    def _prepared(
        self, first: Batch, ignore: list[str], settings: Mapping[str, Any], alone: bool = False
    ) -> Preparation:
        """What makes features of rows, begun with the first batch.

        ``alone``: the target needs no columns beside it.
        """
        chosen = {name: settings[name] for name in PREPARING}
        width, schema = self.source.matrix_width, self.source.schema
        preparation = Preparation(schema, ignore=ignore, matrix_width=width, **chosen, alone=alone)
        return preparation.start(first)

    # ---- batches ----------------------------------------------------------------------

    def read(self) -> Batch | None:
        """The next rows; None when there are no more, or when :meth:`stop` ended the waiting.

        Only standard input can keep us waiting. What it gives after the last batch is not known
        to have been used when the waiting ends, so that the place to go on from is noted before.
        """
        batch, self._first = self._first, None
        if batch is not None:
            return batch
        if self.stopping:
            return None
        if self._waiting is None:
            return next(self.source, None)
        self._position, waiting = self.source.position, self._waiting
        self.source.wait_with(lambda file: waiting.until_ready(file, lambda: self.stopping))
        try:
            with waiting.hearing_signals():
                batch = next(self.source, None)
        except StopWaitingError:
            return None
        self._position = None
        return batch

    def stop(self, reason: str = "stop()") -> None:
        """End the run after the batch it is at.

        May be called from another thread, or from a signal handler: also waiting for standard
        input ends.
        """
        self._reason = reason
        self.stopping = True
        if self._waiting is not None:
            self._waiting.wake()

    def close(self) -> None:
        """Give back the file."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: Any) -> None:
        self.close()

    def _bad_rows_note(self) -> list[str]:
        bad = self.source.bad
        if not bad.count:
            return []
        line, reason = bad.first[0]
        refused = f"{counted(bad.count)} refused ({self._reading['on_bad']})"
        return [f"{refused}, the first on line {line}: {reason}"]


class SteppedRun(StreamRun):
    """A run in which several models take turns: each step, one of them goes on by some rows."""

    over: bool
    _steps: Iterator[None]  # supplied by the run

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Self:
        """One of the models goes on by some rows."""
        try:
            next(self._steps)
        except StopIteration:
            raise
        except BaseException:
            self.over = True
            self.close()
            raise
        return self


#: Texts of so many rows, and the part of them that differs, of a column that only names rows.
_FEWEST, _DISTINCT = 50, 0.95


def _odd_texts(batch: Batch, schema: Mapping[str, str], spelling: Spelling) -> list[str]:
    """Notes about text columns that look like dates, or like numbers with a few exceptions."""
    notes = []
    for name, column in batch.columns.items():
        if schema.get(name) != "text" or not isinstance(column, Text) or not len(column):
            continue
        numeric = np.array([_is_number(value) for value in column.values])
        odd = [value for value in column.values if not _is_number(value)]
        known = column.codes[column.codes >= 0]
        dates = np.array([_DATE.match(value) is not None for value in column.values])
        if len(known) and dates[known].mean() >= 0.9:
            notes.append(
                f"column {name!r} is taken as text: dates are read where they are written as in "
                "2024-03-01, 2024-03-01 08:00 or (in text files) 01.03.2024 08:00, and not as in "
                f"{column.values[known[0]]!r:.40}; write them so (pandas.to_datetime reads most "
                f"forms){_leave_out(batch, name, spelling)}"
            )
        elif odd and all(_GROUPED.match(value) for value in column.values):
            cure = "write the numbers without marks between thousands"
            if all(re.match(WRITTEN, value.strip()) for value in column.values):
                cure = f"if it is decimal, {spelling('decimal', ',')} reads numbers; else {cure}"
            notes.append(
                f"column {name!r} is taken as text: the comma in {odd[0]!r:.40} may be a decimal "
                f"mark or stand between thousands; {cure}"
            )
        elif odd and len(known) and numeric[known].mean() >= 0.9:
            notes.append(
                f"column {name!r} is taken as text because of values like {odd[0]!r:.40}; "
                f"{spelling('schema', {name: 'number'})} refuses those rows instead, and what is "
                "missing is an empty field or NA"
            )
        elif len(odd) > 1 and any(around := _around_numbers(column.values) or ()):
            marks = " and ".join(repr(mark) for mark in around if mark)
            notes.append(
                f"column {name!r} is taken as text because of {marks} in {odd[0]!r:.40}: if these "
                "are numbers, write them alone"
            )
    return notes


def _leave_out(batch: Batch, name: str, spelling: Spelling) -> str:
    """That a column may be left out; nothing where there is only the target beside it."""
    if len(batch.columns) <= 2 and batch.matrix is None:
        return ""
    return f", or leave the column out ({spelling('drop', [name])})"


def _counts_rows(column: Any) -> bool:
    """Whether numbers run from 0 or 1 on by steps of 1; rows that were refused are left out."""
    if column.dtype.kind != "f" or len(column) < 2 or column[0] not in (0.0, 1.0):
        return False
    return bool((np.diff(column) == 1.0).all())


def _names_of_rows(
    batch: Batch, target: Any, noted: Sequence[str], spelling: Spelling
) -> list[str]:
    """Notes about inputs whose texts are hardly ever the same, if nothing was noted of them."""
    notes = []
    for name, column in batch.columns.items():
        if name == target or not isinstance(column, Text):  # several targets are numbers
            continue
        if any(note.startswith(f"column {name!r} is taken as text") for note in noted):
            continue
        known = column.codes[column.codes >= 0]
        if len(known) >= _FEWEST and len(np.unique(known)) >= _DISTINCT * len(known):
            notes.append(naming_note(name, spelling))
    return notes


def naming_note(name: str, spelling: Spelling) -> str:
    """About an input whose texts are hardly ever the same."""
    return (
        f"column {name!r} differs in (nearly) every row, so that it cannot help, and after "
        f"{NAMING} texts it weighs nothing: leave it out ({spelling('drop', [name])})"
    )


#: What pandas calls a column without a name.
_PANDAS = re.compile(r"Unnamed: \d+")

#: Dates in forms whose order of day and month cannot be known, or with names of months.
_DATE = re.compile(
    r"\s*(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}"
    r"|\d{1,2}[ .-]*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ .,-]*\d{2,4}"
    r"|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ .]*\d{1,2}[ ,.]+\d{4})\b",
    re.IGNORECASE,
)


#: Whole numbers, those with a decimal comma, and those with marks between thousands, if large.
_GROUPED = re.compile(r"\s*[+-]?(\d*(,\d+)?|\d{1,3}(,\d{3})*(\.\d+)?|\d{1,3}(\.\d{3})+(,\d+)?)\s*$")


#: A currency or nothing, a number, a unit or nothing.
_MEASURED = re.compile(
    r"\s*([^\w\s+-]{1,3}|[A-Za-z]{1,4}(?=\s)|)\s*[+-]?\d[\d.,]*\s*([^\d\s]{0,4})\s*"
)


def _around_numbers(texts: Sequence[str]) -> tuple[str, str] | None:
    """What stands before and after all numbers, if it is always the same; None if it is not.

    >>> _around_numbers(["€ 1,105.20", "€ 5"]), _around_numbers(["5.5%", "7%"])
    (('€', ''), ('', '%'))
    >>> _around_numbers(["5 kg", "7 g"]), _around_numbers(["5 kg", "K-7"])
    (None, None)
    """
    first = None
    for text in texts:
        found = _MEASURED.fullmatch(text)
        if found is None or first not in (None, found.groups()):
            return None
        first = found.group(1), found.group(2)
    return first


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def join(upper: Any, lower: Any) -> Any:
    """Prepared rows, or their targets, one below the other."""
    if issparse(upper):
        return vstack([upper, lower], format="csr")
    return np.concatenate([upper, lower])


def text_of(path: str | os.PathLike[str] | None) -> str | None:
    """A path as a file holds it."""
    return None if path is None else os.fspath(path)
