"""Arrays of several parts in one document: each part's names begin with its own prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def prefixed(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays of a part, as a document names them.

    >>> import numpy as np
    >>> both = prefixed("a/", {"x": np.zeros(1)}) | prefixed("b/", {"x": np.ones(1)})
    >>> both
    {'a/x': array([0.]), 'b/x': array([1.])}
    >>> part_of("b/", both)
    {'x': array([1.])}
    """
    return {prefix + name: array for name, array in arrays.items()}


def part_of(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays of that part of a document, by their own names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
