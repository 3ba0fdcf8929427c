"""Names and kinds of columns."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from kernelstream.streams.errors import StreamError

KINDS = ("number", "text", "date")


#: How alike names must be, from 0 to 1: less, and other names than the one that was meant follow.
_ALIKE = 0.6


def nearest(wanted: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant, if one is alike enough.

    >>> nearest("citty", ["load", "city"])
    'city'
    >>> nearest("returned", ["created_at", "amount"])
    """
    return next(iter(difflib.get_close_matches(wanted, names, n=1, cutoff=_ALIKE)), None)


def check_present(source: str, wanted: str, names: Sequence[str], cure: str = "") -> None:
    """Refuse a name that is none of these, with the nearest one."""
    if wanted in names:
        return
    near = None if wanted == "target" else nearest(wanted, names)  # that nobody may have named
    hint = cure if near is None else f" Did you mean {near!r}?"
    if any(sign in str(name) for name in names for sign in ";\t|"):
        hint = " Is there another --delimiter (delimiter=) between its fields?"
    raise StreamError(
        f"{source} has no column {wanted!r}.{hint} Its columns: {', '.join(map(str, names))}."
    )
