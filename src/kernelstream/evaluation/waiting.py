"""Samples that a run holds back, and how a file holds them."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from kernelstream.evaluation.labels import Labels

_SPARSE = ("data", "indices", "indptr")


class Waiting(NamedTuple):
    """Rows and their targets."""

    X: Any  # (n, p) array or CSR
    y: NDArray[Any]

    def followed_by(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        """These and others below."""
        targets = np.append(self.y, y)
        if issparse(self.X) or issparse(X):
            return vstack([csr_array(self.X), csr_array(X)], format="csr"), targets
        return np.concatenate([self.X, X]), targets

    def state(self, labelled: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """A note for JSON, and arrays. Labels have numbers of their own: they may be new."""
        X, y = self
        note: dict[str, Any] = {"shape": list(X.shape), "sparse": issparse(X), "labels": None}
        if labelled:
            labels = Labels()
            y = labels.encode(y)
            note["labels"] = labels.to_config()
        parts = {name: getattr(X, name) for name in _SPARSE} if issparse(X) else {"X": X}
        return note, {"y": y, **parts}

    @classmethod
    def restore(cls, note: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """What :meth:`state` described."""
        y = arrays["y"].copy()
        if note["labels"] is not None:
            labels = Labels()
            labels.set_config(note["labels"])
            y = labels.decode(y)
        if not note["sparse"]:
            return cls(arrays["X"].copy(), y)
        parts = tuple(arrays[name] for name in _SPARSE)
        return cls(csr_array(parts, shape=tuple(note["shape"])), y)
