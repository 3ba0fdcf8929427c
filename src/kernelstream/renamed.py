"""Parameters that had other names before version 0.2.

An old name raises an error that says the new one; files of old versions are read with the new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: Old name -> new names: the first one that a class has is meant.
RENAMED = {
    "epsilon": ("compression_error",),
    "parsimony": ("compression_error",),
    "beta": ("tracking_rate", "exact_probability"),
    "rho": ("exact_decay",),
    "budget": ("max_points",),
}
#: What else to say of a name, or of a value that is no longer accepted.
_HINTS = {
    "parsimony": "Parsimony(0.1), on the command line parsimony:0.1, is what 0.1 was",
    "average": "a number is given as average_horizon, with average=True",
}


def hint(name: str) -> str:
    """The end of an error about this name or its value."""
    return f"; {_HINTS[name]}" if name in _HINTS else ""


def new_names(old: str, known: Iterable[str]) -> str:
    """The new name of a parameter, where these are known; all of them where none is."""
    return next((new for new in RENAMED[old] if new in known), " or ".join(RENAMED[old]))


def refuse_old_names(owner: str, known: Iterable[str], given: Iterable[str]) -> None:
    """Raise a TypeError that says the new name."""
    for name in given:
        if name in RENAMED and name not in known:
            new = new_names(name, known)
            raise TypeError(f"{owner} has no parameter {name}: it is {new} now{hint(name)}")


def with_new_names(parameters: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Parameters as a file holds them, under the names of a class that knows these.

    >>> with_new_names({"parsimony": 0.1, "epsilon": None, "average": 50}, ["compression_error"])
    {'average': True, 'average_horizon': 50, 'compression_error': {'parsimony': [0.1, 1.5]}}
    """
    found = dict(parameters)
    number, share = (
        None if name in known else found.pop(name, None) for name in ("epsilon", "parsimony")
    )  # some methods have an epsilon of their own
    if type(found.get("average")) in (int, float):  # not a truth value
        found["average_horizon"], found["average"] = found["average"], True
    if share is not None:
        form = [1.0, 2.0] if share == "square" else [share, 1.5]
        found["compression_error"] = {"parsimony": form}
    if number not in (None, "none"):  # it overruled the other
        found["compression_error"] = number
    return {
        name if name in known or name not in RENAMED else new_names(name, known): value
        for name, value in found.items()
    }
