"""How rows are read, and the formats of files: each is registered by the module that reads it."""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kernelstream.streams.bad_rows import POLICIES
from kernelstream.streams.columns import KINDS, check_present
from kernelstream.streams.decimals import MARKS
from kernelstream.streams.errors import StreamError


@dataclass(frozen=True)
class Reading:
    """What a source is asked for; see `open_stream`."""

    target: str | Sequence[str] | None
    batch_rows: int
    on_bad: str
    quarantine: str | os.PathLike[str] | None
    position: dict[str, Any] | None
    schema: dict[str, str]
    columns: list[str] | None
    drop: Sequence[str]
    delimiter: str | None
    header: bool
    n_features: int | None
    live: bool = False
    decimal: str | None = None

    def __post_init__(self) -> None:
        rows, on_bad = self.batch_rows, self.on_bad
        if not (isinstance(rows, int) and rows >= 1):
            raise StreamError(f"batch_rows must be a whole number of at least 1, not {rows!r}.")
        if on_bad not in POLICIES:
            raise StreamError(f"on_bad must be one of {', '.join(POLICIES)}, not {on_bad!r}.")
        if on_bad == "quarantine" and self.quarantine is None:
            raise StreamError(
                "Quarantine needs a file for the rows: name it with --quarantine (quarantine=)."
            )
        if self.decimal not in (None, *MARKS):
            raise StreamError(f"decimal must be one of {' '.join(MARKS)} and not {self.decimal!r}.")
        for name, kind in self.schema.items():
            if kind not in KINDS:
                raise StreamError(
                    f"schema: column {name!r} must be one of {', '.join(KINDS)}, not {kind!r}."
                )

    def choose_columns(self, source: str, names: list[str]) -> list[str]:
        """The columns asked for and the target, in the order of the source."""
        columns = self.columns
        targets = self.targets
        if twice := [name for place, name in enumerate(names) if name in names[:place]]:
            raise StreamError(f"{source} has the column {twice[0]!r} twice. Rename one of them.")
        cure = " Name the column to predict: --target (target=)."
        if columns is not None:  # those of a model, which has a target
            cure = " It is the target: give the column that holds it this name."
        for target in targets:
            check_present(source, target, names, cure)
        for name in (*(columns or ()), *self.drop):
            check_present(source, name, names)
        if dropped := [target for target in targets if target in self.drop]:
            raise StreamError(f"The target {dropped[0]!r} cannot be left out.")
        read = names if columns is None else [*columns, *targets]
        return [name for name in names if name in read and name not in self.drop]

    def check_position(self, format: str) -> None:
        """Refuse a position of other data, or one that cannot be."""
        if self.position is not None and not isinstance(self.position, dict):
            raise StreamError("The position is none in a stream: start again.")
        position = self.position or {"format": format}
        for name in {"offset", "line", "rows", "row", "n_features"} & set(position):
            if type(position[name]) is not int or not 0 <= position[name] < 2**62:
                raise StreamError(f"The position has no valid {name}: start again.")
        commas = position.get("commas", [])
        if not isinstance(commas, list) or not all(isinstance(name, str) for name in commas):
            raise StreamError("The position has no valid commas: start again.")
        if position.get("format") != format:
            raise StreamError(
                f"The position is one in {position.get('format')!r} data, this is {format!r}. "
                "Resume with the source that was read before."
            )

    @property
    def targets(self) -> list[str]:
        """The columns to predict by name."""
        return [self.target] if isinstance(self.target, str) else list(self.target or ())

    def check_unnamed(self, source: str, has_target: bool = True) -> None:
        """For sources without column names, which have one target, of a fixed name."""
        if self.drop:
            raise StreamError(f"{source} has no column names: {self.drop[0]!r} cannot be left out.")
        for name in self.targets:
            if name != "target":
                raise StreamError(
                    f"{source} has no column names: its target is 'target', not {name!r}."
                )
        if self.target is not None and not has_target:
            raise StreamError(f"{source} has features X but no target y.")


@dataclass(frozen=True)
class Format:
    """A format of files: how their names end, and what opens a path, given the format's name."""

    name: str
    suffixes: tuple[str, ...]
    open: Callable[[str, str, Reading], Any]  # path, name of the format, reading -> Source
    is_text: bool = False  # may be compressed, and come from standard input


_FORMATS: dict[str, Format] = {}


def register(*formats: Format) -> None:
    """Make formats known."""
    _FORMATS.update({format.name: format for format in formats})


@functools.cache
def _import_all() -> None:
    import kernelstream.streams as home

    for module in pkgutil.iter_modules(home.__path__, f"{home.__name__}."):
        importlib.import_module(module.name)


def formats() -> dict[str, Format]:
    """All formats by name, text first; whatever module of this folder registers some is found."""
    _import_all()
    # By where they are defined: the order of imports does not show.
    found = sorted(_FORMATS.values(), key=lambda each: (not each.is_text, each.open.__module__))
    return {format.name: format for format in found}
