"""Which columns a source hands out, and as what."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from kernelstream.streams.errors import StreamError

KINDS = ("number", "text", "date")


def check_schema(schema: dict[str, str] | None) -> dict[str, str]:
    """The kinds that the caller fixes."""
    for name, kind in (schema or {}).items():
        if kind not in KINDS:
            raise StreamError(
                f"schema: column {name!r} must be one of {', '.join(KINDS)}, not {kind!r}."
            )
    return dict(schema or {})


def choose_columns(
    source: str,
    names: Sequence[str],
    target: str | None,
    columns: Sequence[str] | None,
    drop: Sequence[str] = (),
) -> list[str]:
    """The columns asked for and the target, in the order of the source."""
    if target is not None:
        check_present(source, target, names, " Name the column to predict: --target (target=).")
    for name in (*(columns or ()), *drop):
        check_present(source, name, names)
    if target in drop:
        raise StreamError(f"The target {target!r} cannot be left out.")
    names = [name for name in names if name not in drop]
    if columns is None:
        return list(names)
    return [name for name in names if name in columns or name == target]


def nearest(wanted: str, names: Sequence[str], likeness: float = 0.5) -> str | None:
    """The name that was probably meant, if one is alike enough (from 0, not at all, to 1).

    >>> nearest("citty", ["load", "city"])
    'city'
    """
    return next(iter(difflib.get_close_matches(wanted, names, n=1, cutoff=likeness)), None)


def check_present(source: str, wanted: str, names: Sequence[str], cure: str = "") -> None:
    """Refuse a name that is none of these, with the nearest one."""
    if wanted in names:
        return
    near = nearest(wanted, names)
    hint = cure if near is None else f" Did you mean {near!r}?"
    if len(names) == 1 and any(sign in str(names[0]) for sign in ";\t|"):
        hint = " Is there another --delimiter (delimiter=) between its fields?"
    raise StreamError(
        f"{source} has no column {wanted!r}.{hint} Its columns: {', '.join(map(str, names))}."
    )
