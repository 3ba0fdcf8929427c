"""Rows that do not fit: refused with an error, skipped, or put aside in a file."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from kernelstream.errors import naming
from kernelstream.streams.errors import StreamError

POLICIES = ("raise", "skip", "quarantine")
REMEMBERED = 10


def counted(rows: int) -> str:
    """In words: "1 row", "1,200 rows"."""
    return f"{rows:,} row{'s' if rows != 1 else ''}"


class BadRow(NamedTuple):
    """Why one row is refused."""

    line: int  # where it begins, from 1
    reason: str
    raw: bytes  # as it stands in the file


class BadRows:
    """What was refused so far, and what is done about it.

    Parameters
    ----------
    name : str
        The source, for messages.
    policy : {"raise", "skip", "quarantine"}
    path : path or None
        The quarantine file; rows are added at its end.
    header : bytes
        Written first to a quarantine file that is empty.
    state : dict or None
        `state` of an earlier run to go on from.

    Attributes
    ----------
    count : int
    first : list of (line, reason)
        The first ten.
    cure : str
        What an error suggests.
    """

    cure = "--on-bad skip or quarantine (on_bad=)"

    def __init__(
        self,
        name: str,
        policy: str = "raise",
        path: str | os.PathLike[str] | None = None,
        header: bytes = b"",
        state: dict[str, Any] | None = None,
    ) -> None:
        state = state or {}
        self.name = name
        self.policy = policy
        try:  # what a file says may be anything
            self.count: int = state.get("count", 0)
            self.first: list[tuple[int, str]] = [
                (line, f"{why}") for line, why in state.get("first", [])
            ]
            possible = type(self.count) is int and min(self.count, REMEMBERED) == len(self.first)
        except (AttributeError, TypeError, ValueError):
            possible = False
        if not possible:
            raise StreamError(f"The position in {name} contradicts itself: start again.")
        self._path = os.fspath(path) if policy == "quarantine" and path is not None else None
        self._header = header
        self._length = 0
        if self._path is not None:
            self._length = os.path.getsize(self._path) if os.path.exists(self._path) else 0
            if state.get("quarantine_bytes", self._length) < self._length:
                # What the earlier run put aside after its checkpoint will come again.
                self._length = state["quarantine_bytes"]
                os.truncate(self._path, self._length)

    def start_file_again(self) -> None:
        """Forget what the quarantine file held before this run."""
        if self._path is not None and self._length:
            os.truncate(self._path, 0)
            self._length = 0

    def refuse(self, rows: list[BadRow]) -> None:
        """Count the rows and put them aside, or raise for the first."""
        if not rows:
            return
        if self.policy == "raise":
            raise StreamError(
                f"{self.name}, line {rows[0].line}: {rows[0].reason}. "
                f"Use {self.cure} to go on without such rows."
            )
        self.count += len(rows)
        room = REMEMBERED - len(self.first)
        self.first += [(row.line, row.reason) for row in rows[:room]]
        if self._path is not None:
            self._put_aside(self._path, rows)

    def _put_aside(self, path: str, rows: list[BadRow]) -> None:
        with naming(path), open(path, "ab") as file:
            if self._length == 0:
                file.write(_with_line_end(self._header))
            file.writelines(_with_line_end(row.raw) for row in rows)
            self._length = file.tell()

    @property
    def state(self) -> dict[str, Any]:
        """As JSON can hold it."""
        state: dict[str, Any] = {"count": self.count, "first": [list(row) for row in self.first]}
        if self._path is not None:
            state["quarantine_bytes"] = self._length
        return state


def _with_line_end(raw: bytes) -> bytes:
    return raw if not raw or raw.endswith((b"\n", b"\r")) else raw + b"\n"
