"""What a network is given: batches and streams of each agent, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from kernelstream.models import _validation as check
from kernelstream.network._messages import Name


def by_name(given: Any, names: Sequence[Name], what: str) -> dict[Name, Any]:
    """A dict by agent, or a list in the order of the agents, as a dict in that order."""
    if isinstance(given, Mapping):
        strangers = [name for name in given if name not in names]
        if strangers:
            raise ValueError(
                f"{what} names the agent {strangers[0]!r}, which is not in the graph "
                f"({', '.join(map(repr, names[:5]))}"
                f"{', ...' if len(names) > 5 else ''})"
            )
        return {name: given[name] for name in names if name in given}
    if not isinstance(given, Sequence) or len(given) != len(names):
        found = f"{len(given)} of them" if isinstance(given, Sequence) else f"a {type(given)}"
        raise ValueError(
            f"{what} must be a dict by agent, or a list of {len(names)} in the order of "
            f"the graph's nodes; got {found}"
        )
    return dict(zip(names, given, strict=True))


def deal(stream: tuple[Any, Any], names: Sequence[Name]) -> dict[Name, tuple[Any, Any]]:
    """One stream for all: sample t goes to agent t modulo their number."""
    X, y = as_pair("the stream", stream)
    y = np.asarray(y)
    number = len(names)
    return {name: (X[i::number], y[i::number]) for i, name in enumerate(names)}


def as_pair(owner: str, batch: Any) -> tuple[Any, Any]:
    """(X, y), X a matrix and as long as y, or an error that names whose they are."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise ValueError(f"{owner}: expected (X, y), got a {type(batch).__name__}")
    X, y = batch
    X = X.tocsr() if issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"{owner}: X must be 2-D, got shape {X.shape}")
    if not np.ndim(y):
        raise ValueError(f"{owner}: y must have an entry per sample, got {y!r}")
    if X.shape[0] != len(y):
        raise ValueError(f"{owner}: X has {X.shape[0]} rows, y has {len(y)}")
    return X, y


def in_pieces(X: Any, y: Any, batch: int) -> Iterator[tuple[Any, Any]]:
    """(X, y) by ``batch`` samples."""
    y = np.asarray(y)
    for first in range(0, len(y), batch):
        yield X[first : first + batch], y[first : first + batch]


def distinct_labels(y: Any, name: str) -> NDArray[Any]:
    """The different labels, sorted."""
    return np.unique(check.check_labels(y, len(y), name))


def all_labels(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All labels, sorted: the order of the classes in every agent."""
    if len({part.dtype.kind == "U" for part in parts}) > 1:
        raise ValueError("some agents have texts as labels, others numbers")
    return np.unique(np.concatenate(parts))
