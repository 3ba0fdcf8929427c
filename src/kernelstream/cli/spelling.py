"""Parameters as they are typed."""

from __future__ import annotations

import shlex
from typing import Any


def option(name: str) -> str:
    """A parameter as it is written on the command line."""
    return "--" + name.replace("_", "-")


def as_option(name: str, value: Any = None) -> str:
    """A parameter of a run, and its value, as they are typed.

    >>> as_option("warm_up"), as_option("schema", {"x": "number"}), as_option("resume", True)
    ('--warm-up', '--column x=number', '--resume')
    >>> print(as_option("drop", ["customer id"]))
    --drop 'customer id'
    """
    words = [option("column" if name == "schema" else name)]
    if isinstance(value, dict):
        words += [shlex.quote(f"{column}={kind}") for column, kind in value.items()]
    elif isinstance(value, list):
        words += [",".join(value)] if name == "metrics" else map(shlex.quote, value)
    elif value is not None and value is not True:
        words.append(str(value))
    return " ".join(words)
