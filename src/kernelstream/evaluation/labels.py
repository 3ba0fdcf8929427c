"""Class labels as numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.buffer import Buffer
from kernelstream.models._validation import LABEL_DTYPES

Codes = NDArray[np.int64]
#: What labels may be in a file; objects are those of models of other packages, None before any.
_DTYPES = {*LABEL_DTYPES, "|O", None}


class Labels:
    """Class labels as numbers 0, 1, ... in the order in which they came."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}
        self.dtype: str | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def encode(self, labels: NDArray[Any]) -> Codes:
        """The labels' numbers; new labels get new ones."""
        found, first, places = np.unique(labels, return_index=True, return_inverse=True)
        names = found.tolist()
        for place in np.argsort(first):
            self.codes.setdefault(names[place], len(self.codes))
        kind = labels.dtype.kind
        if self.dtype is None or kind == "U":
            self.dtype = "U" if kind == "U" else labels.dtype.str
        elif self.dtype != labels.dtype.str and self.dtype != "U":
            self.dtype = np.result_type(self.dtype, labels.dtype).str
        return np.array([self.codes[name] for name in names], dtype=np.int64)[places]

    def decode(self, codes: Codes) -> NDArray[Any]:
        """The labels of these numbers."""
        return np.array(list(self.codes), dtype=self.dtype)[codes]

    def sorted_codes(self) -> Codes:
        """The numbers in the order of their labels."""
        return np.array([self.codes[label] for label in sorted(self.codes)], dtype=np.int64)

    def to_config(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"names": list(self.codes), "dtype": self.dtype}

    def set_config(self, config: dict[str, Any]) -> None:
        """Go on from what :meth:`to_config` returned."""
        names, dtype = config["names"], config["dtype"]
        texts = sum(isinstance(name, str) for name in names)
        if dtype not in _DTYPES or texts not in (0, len(names)) or None in names:
            raise ValueError("the labels of a run are not labels")
        self.codes = {name: code for code, name in enumerate(names)}
        self.dtype = dtype


def buffer_state(held: Buffer, labelled: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A note for JSON, and arrays. Labels have numbers of their own: they may be new."""
    note: dict[str, Any] = {
        "shape": list(held.matrix.shape),
        "sparse": held.rows.sparse,
        "labels": None,
    }
    if labelled:
        labels = Labels()
        held = replace(held, targets=labels.encode(held.targets))
        note["labels"] = labels.to_config()
    return note, held.to_arrays()


def buffer_from_state(note: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Buffer:
    """What :func:`buffer_state` described."""
    kind = np.float64 if note["labels"] is None else np.int64
    several = arrays.get("targets", np.empty(0))  # version 0.1 had another name, and one number
    held = Buffer.from_arrays(
        arrays, note["sparse"] is True, note["shape"][1], targets=kind,
        each=several.shape[1] if several.ndim == 2 else 1,
    )  # fmt: skip
    if note["labels"] is None:
        return held
    labels = Labels()
    labels.set_config(note["labels"])
    return replace(held, targets=labels.decode(held.targets))
