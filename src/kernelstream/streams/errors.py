"""What can be wrong with a source, as a type to catch."""

from __future__ import annotations

import importlib
from typing import Any


class StreamError(ValueError):
    """A source cannot be read: the message says where, why and what would help."""


def require(package: str, purpose: str, extra: str = "cli") -> Any:
    """Import an optional package, or say which extra brings it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        top = package.partition(".")[0]
        raise ImportError(f"{purpose} needs {top}: pip install 'kernelstream[{extra}]'") from None
