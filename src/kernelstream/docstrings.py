"""Docstrings in numpydoc's form, put together from what classes declare."""

from __future__ import annotations

import inspect
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np

#: The order of numpydoc.
SECTIONS = ("Parameters", "Attributes", "See Also", "Notes", "References", "Examples")
WIDTH = 96


def split(text: str) -> tuple[str, dict[str, str]]:
    """A docstring as what stands before all sections, and its sections by title."""
    lines = inspect.cleandoc(text).splitlines()
    parts: dict[str, list[str]] = {"": []}
    title = ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line in SECTIONS and set(below) == {"-"}:
            title = line
            parts[title] = []
        elif not (title and not parts[title] and set(line) == {"-"}):
            parts[title].append(line)
    texts = {title: "\n".join(body).strip("\n") for title, body in parts.items()}
    return texts.pop(""), texts


def join(summary: str, sections: Mapping[str, str]) -> str:
    """The docstring of a summary and sections, in the order that numpydoc wants.

    >>> print(join("One line.", {"Notes": "Some.", "Parameters": "x : int"}))
    One line.
    <BLANKLINE>
    Parameters
    ----------
    x : int
    <BLANKLINE>
    Notes
    -----
    Some.
    <BLANKLINE>
    """
    parts = [summary]
    parts += [
        f"{title}\n{'-' * len(title)}\n{sections[title]}"
        for title in SECTIONS
        if sections.get(title)
    ]
    return "\n\n".join(parts) + "\n"


def extended(text: str | None, base: str | None) -> str | None:
    """A docstring whose parameters and attributes are followed by those of a base class."""
    if text is None or base is None:  # Python may run without docstrings (-OO)
        return text
    summary, sections = split(text)
    for title, body in split(base)[1].items():
        sections[title] = "\n".join(filter(None, [sections.get(title), body]))
    return join(summary, sections)


def entry(name: str, kind: str, text: str) -> str:
    """A parameter or an attribute."""
    body = textwrap.fill(
        " ".join(text.split()), WIDTH, initial_indent="    ", subsequent_indent="    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return f"{name} : {kind}\n{body}" if kind else f"{name}\n{body}"


def attribute_entries(cls: type, declared: Mapping[str, Any], unlisted: Iterable[str]) -> list[str]:
    """What can be read from a fitted object: learned attributes and properties.

    Their names end in an underscore. A text that begins with a shape, "(M, p): the points.", makes
    it a part of the type.
    """
    found: dict[str, tuple[Any, str]] = {}
    for base in reversed(cls.__mro__):
        for name in inspect.get_annotations(base):
            if _is_learned(name) and get_origin(declared.get(name)) is Annotated:
                kind, *texts = get_args(declared[name])
                found[name] = kind, " ".join(texts)
        for name, attribute in vars(base).items():
            if _is_learned(name) and isinstance(attribute, property) and attribute.__doc__:
                kind = typing.get_type_hints(attribute.fget).get("return", Any)
                found[name] = kind, attribute.__doc__
    left_out = set(unlisted)
    return [_attribute(name, *found[name]) for name in found if name not in left_out]


def documented(attribute: Any, text: str) -> Any:
    """A property of a base class with another text."""
    return property(attribute.fget, doc=text)


def _is_learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _attribute(name: str, kind: Any, text: str) -> str:
    text, words = " ".join(text.split()), _kind(kind)
    if text.startswith("("):
        shape, _, text = text.partition("): ")
        words = f"{shape}) {words}"
    return entry(name, words, text[:1].upper() + text[1:])


def _kind(kind: Any) -> str:
    """A type in words."""
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_kind(part) for part in get_args(kind))
    if get_origin(kind) is np.ndarray or kind is np.ndarray:
        return "array"
    return "" if kind is Any else getattr(get_origin(kind) or kind, "__name__", str(kind))
