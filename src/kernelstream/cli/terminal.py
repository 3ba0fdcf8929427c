"""What the tool writes to standard output and standard error.

Labels, names of columns and of files come from anyone: a control character in them never reaches
a terminal, which would act on it.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import sys
from collections.abc import Mapping
from typing import IO, Any

import rich.console
from rich.text import Text

from kernelstream.errors import naming

_OUT = "standard output"


def visible(text: str, keep: str = "") -> str:
    r"""Text with the characters that cannot be printed as Python writes them, but for ``keep``.

    >>> visible("yes\x1b[2J\n")
    'yes\\x1b[2J\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


class Console(rich.console.Console):
    """Rich's, for which every text is made visible; markup in it is still markup."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        with naming("standard error" if self.stderr else _OUT):
            super().print(*objects, **options)


def say(text: str) -> None:
    """A line on standard output."""
    with naming(_OUT):
        print(visible(text), flush=True)


def complain(text: str) -> None:
    """A line on standard error."""
    if sys.stderr is not None:  # where there is none, print would use standard output
        with contextlib.suppress(OSError):  # nobody is left to read it
            print(f"kernelstream: {visible(text)}", file=sys.stderr)


def print_json(values: Mapping[str, Any]) -> None:
    """One line of strict JSON, in ASCII: what is not a finite number is null."""
    with naming(_OUT):
        print(json.dumps(_finite(values), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


def data_text() -> IO[str]:
    """Standard output for CSV: data as they are, but visible on a terminal."""
    if not _is_terminal():
        return sys.stdout
    shown: Any = _Shown()
    return io.TextIOWrapper(shown, encoding="utf-8", newline="", write_through=True)


def data_bytes() -> Any:
    """The same for writers of bytes, in UTF-8."""
    return _Shown() if _is_terminal() else sys.stdout.buffer


def _is_terminal() -> bool:
    # While Rich draws, standard output is a proxy, which before Rich 15 never says yes.
    return bool(getattr(sys.stdout, "rich_proxied_file", sys.stdout).isatty())


class _Shown(io.RawIOBase):
    """Takes text in UTF-8 and shows it on the terminal that standard output is."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        sys.stdout.write(visible(self._decoder.decode(data), keep="\n\t"))
        return memoryview(data).nbytes
