"""Streams of which bad rows can be skipped, but not put aside: all commands but ``learn``."""

from __future__ import annotations

from typing import Any

from kernelstream.cli.errors import checked
from kernelstream.cli.terminal import complain
from kernelstream.streams import Source, open_stream


def open_rows(file: str, *, on_bad: str, **reading: Any) -> Source:
    """The stream, whose errors suggest what these commands have."""
    checked("--on-bad", on_bad, ["raise", "skip"])
    source = open_stream(file, on_bad=on_bad, **reading)
    source.bad.cure = "--on-bad skip"
    return source


def warn_of_bad_rows(source: Source) -> None:
    """Say on standard error how many rows were skipped, and why the first."""
    if source.bad.count:
        line, reason = source.bad.first[0]
        complain(f"{source.bad.count:,} rows refused, the first on line {line}: {reason}")
