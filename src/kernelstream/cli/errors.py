"""What went wrong, in one line with the cure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

#: What errors of the library add to an option: its name in Python.
_IN_PYTHON = re.compile(r"(--[a-z-]+(?: \w+)*) \(\w+=\)")


_Given = TypeVar("_Given", str, str | None)


class UserError(Exception):
    """Something the user can put right: what is wrong, and what to do about it."""

    def __init__(self, problem: str, cure: str = "") -> None:
        super().__init__(f"{problem}; {cure}" if cure else problem)


def not_accepted(
    option: str, given: object, words: Sequence[str], other: Sequence[str] = (), needed: str = ""
) -> UserError:
    """The refusal of a value: what was given, what is accepted, and the word probably meant.

    Accepted are ``words`` and ``other``, described; all of them have what is ``needed``.

    >>> print(not_accepted("--kernel", "lapla", ["linear", "laplacian"]))
    --kernel lapla is not accepted; did you mean laplacian? Use one of: linear, laplacian
    >>> print(not_accepted("--eta0", -1, [], ["a number above 0"]))
    --eta0 -1 is not accepted; use a number above 0
    """
    accepted = [*words, *other]
    cure = f"{'use' if len(accepted) == 1 else 'use one of:'} {', '.join(accepted)}"
    from kernelstream.streams.columns import nearest  # not before something is wrong

    near = nearest(str(given), words)
    if near is not None:
        cure = f"did you mean {near}? {cure.capitalize()}"
    reason = f": it takes {needed}" if needed else ""
    return UserError(f"{option} {given} is not accepted{reason}", cure)


def checked(option: str, given: _Given, words: Sequence[str]) -> _Given:
    """The value of an option that takes one of these words; None, where it is not given, too."""
    if given is not None and given not in words:
        raise not_accepted(option, given, words)
    return given


def describe(error: Exception) -> str:
    """An error in one line.

    >>> describe(FileNotFoundError(2, "No such file or directory", "rows.csv"))
    'rows.csv: no such file or directory'
    >>> describe(ValueError("Name the column to predict: --target (target=)."))
    'Name the column to predict: --target.'
    """
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        reason = error.strerror[:1].lower() + error.strerror[1:]
        return f"{os.fsdecode(error.filename)}: {reason}"
    if isinstance(error, MemoryError):
        return f"out of memory ({error}); use smaller --max-points, --batch-rows or --window"
    return _IN_PYTHON.sub(r"\1", " ".join(str(error).split())) or type(error).__name__


def check_outputs(outputs: Mapping[str, Path | None], *inputs: str | Path) -> None:
    """Refuse places that cannot be written, or are ``inputs``, before any work is done for them.

    ``outputs`` are files by option, None where it is not given.
    """
    taken = {os.path.realpath(name): f"the file {name} that is read" for name in inputs}
    for option, place in outputs.items():
        if place is None:
            continue
        folder = place.absolute().parent
        if place.is_dir():
            raise UserError(f"{option} {place} is a folder", "name a file")
        if place.exists() and not place.is_file():
            raise UserError(f"{option} {place} is no regular file", "name one, or a new one")
        if not folder.is_dir():
            raise UserError(f"{option} {place}: there is no folder {folder}", "make it first")
        if not os.access(folder, os.W_OK):
            raise UserError(f"{option} {place}: the folder {folder} cannot be written to",
                            "choose another one")  # fmt: skip
        real = os.path.realpath(place)
        if real in taken:
            raise UserError(f"{option} {place} would replace {taken[real]}", "choose another name")
        taken[real] = f"what another option writes to {place}"
