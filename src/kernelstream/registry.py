"""Methods: each registers itself where it is defined, those of other packages by an entry point.

The command line, the pages and the tests take their lists from here.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

#: What other packages name in their entry points: ``rbp = "their.module"``, a module that
#: registers its methods when it is imported.
GROUP = "kernelstream.methods"

#: Where this package's own methods are.
_HOMES = ("kernelstream.models", "kernelstream.features", "kernelstream.network")

#: What the command line takes where no method is named.
DEFAULT = "auto"

_METHODS: dict[str, Method] = {}
_complete = False


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method: its estimators, and how pages describe it."""

    name: str  #: As ``--model`` takes it.
    title: str  #: As pages call it.
    description: str  #: In one line, for people who choose.
    paper: str = ""
    classifier: type[Any] | None = None
    regressor: type[Any] | None = None
    names: tuple[str, ...] = ()  #: Other public names of it, within this package.
    command: str = ""  #: The command that uses it, where ``--model`` does not.
    try_first: tuple[str, ...] = ()  #: Parameters to change where it does badly.
    without_risk: str = ""  #: The method to compare with, of one that is sensitive to risk.

    @property
    def estimators(self) -> tuple[type[Any], ...]:
        """Its classifier and its regressor, as far as there are."""
        return tuple(kind for kind in (self.classifier, self.regressor) if kind is not None)

    @property
    def is_model(self) -> bool:
        """Whether ``--model`` offers it."""
        return bool(self.estimators) and not self.command


def looks_back(model: Any) -> bool:
    """Whether an estimator, or a method by its name, looks at earlier targets."""
    if isinstance(model, str):
        return model in models() and all(map(looks_back, models()[model].estimators))
    return hasattr(model, "labels_delayed")


def register(method: Method) -> Method:
    """Make a method known. A name can be taken once."""
    other = _METHODS.get(method.name)
    if other is not None and list(map(_origin, other.estimators)) != list(
        map(_origin, method.estimators)
    ):
        raise ValueError(
            f"there is a method {method.name!r} already, {other.title}: choose another name"
        )
    _METHODS[method.name] = method
    return method


def methods() -> Mapping[str, Method]:
    """All methods by name: the default one, other models, then the rest, each in order of names."""
    global _complete
    if not _complete:
        _complete = True
        for home in _HOMES:
            module = importlib.import_module(home)
            if hasattr(module, "import_all"):  # those of one method, one file
                module.import_all()
        for entry in entry_points(group=GROUP):
            try:
                entry.load()
            except Exception as error:  # a fault of another package must not stop this one
                warnings.warn(
                    f"the method {entry.name!r} of another package ({entry.value}) cannot be "
                    f"used: {error!r}",
                    RuntimeWarning,
                    stacklevel=2,
                )
    found = sorted(_METHODS.values(), key=_place)
    return {method.name: method for method in found}


def models() -> dict[str, Method]:
    """The methods that ``--model`` offers, by name."""
    return {name: method for name, method in methods().items() if method.is_model}


def method_of(kind: type[Any]) -> Method | None:
    """The method of an estimator, or of the nearest class that it is derived from."""
    owners = {each: method for method in methods().values() for each in method.estimators}
    return next((owners[base] for base in kind.__mro__ if base in owners), None)


def _place(method: Method) -> tuple[bool, bool, str]:
    return method.name != DEFAULT, not method.is_model, method.name


def _origin(kind: type[Any]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
