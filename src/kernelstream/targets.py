"""The target column: which task it asks for, and what learns from it is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.limits import LARGEST_ENTRY
from kernelstream.raw_columns import column_of, kind_of
from kernelstream.streams.batch import Batch, Column, Text

#: Whole numbers as targets are classes if there are at most so many.
MOST_WHOLE_CLASSES = 20
#: Characters of a class at most: arrays of labels take as much for every row as for the longest.
LONGEST_CLASS = 1000


class Targets(NamedTuple):
    """The targets of some rows."""

    values: NDArray[Any]  # (n,) texts, truth values, whole or other numbers; or (n, q) numbers
    known: NDArray[np.bool_]  # (n,) which rows have one
    kind: str  # "number" or "text"


def names_of(target: str | Sequence[str]) -> list[str]:
    """The columns to predict, one or several.

    >>> names_of("load"), names_of(["north", "south"])
    (['load'], ['north', 'south'])
    """
    several = isinstance(target, Iterable) and not isinstance(target, str)
    names: list[Any] = list(target) if several else [target]
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"target must be the name of a column, or of several, as text; got {target!r:.80}"
        )
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise ValueError(f"the target {twice[0]!r} is named twice")
    return names


def as_given(names: Sequence[str]) -> str | list[str]:
    """The reverse: one column by its name."""
    return names[0] if len(names) == 1 else list(names)


def guess_task(column: Column) -> str:
    """The task that a target column asks for, by its first rows.

    Texts and at most 20 distinct whole numbers are classes, other numbers are to be predicted.

    Examples
    --------
    >>> import numpy as np
    >>> guess_task(np.array([0.0, 1.0, np.nan]))
    'classification'
    >>> guess_task(np.array([0.5, 1.0]))
    'regression'
    """
    if isinstance(column, Text):
        return "classification"
    if kind_of(column) == "date":
        raise ValueError("the target holds dates: neither classes nor numbers")
    values = np.asarray(column, dtype=np.float64)
    values = np.unique(values[~np.isnan(values)])
    if not len(values):
        raise ValueError("the target has no value in the first rows: say which task it is")
    whole = np.isfinite(values).all() and bool((values == np.rint(values)).all())
    return "classification" if whole and len(values) <= MOST_WHOLE_CLASSES else "regression"


def read_several(batch: Batch, names: Sequence[str], kind: str | None) -> Targets:
    """(n, q) numbers; a row has a target where it has all of them."""
    found = [read_targets(batch, name, "regression", kind, False) for name in names]
    values = np.column_stack([each.values for each in found])
    return Targets(values, np.all([each.known for each in found], axis=0), "number")


def read_targets(batch: Batch, name: str, task: str, kind: str | None, truth: bool) -> Targets:
    """Targets as an estimator takes them.

    ``kind`` is what the column held before, None where nothing is known of it, and ``truth``
    whether its labels were true and false.
    """
    column = column_of(batch, name)
    found = kind_of(column)
    if found == "date" or (task == "regression" and found == "text"):
        raise ValueError(f"the target {name!r} holds {found}s, not fit for {task}")
    if kind not in (None, found):
        raise ValueError(
            f"the target {name!r} holds {found}s here, but {kind}s when learning "
            "began; open the stream with the schema it had then"
        )
    if isinstance(column, Text):
        return _texts(batch, name, column)
    values = np.array(column, dtype=np.float64)
    known = ~np.isnan(values)
    usable = np.abs(values) <= LARGEST_ENTRY
    hint = f"numbers up to {LARGEST_ENTRY:.0e} are taken; leave the row out, or the entry empty"
    if task == "classification":
        usable = (np.abs(values) < 2.0**53) & (values == np.rint(values))
        hint = "classes are whole numbers or texts; for other numbers use regression"
    bad = np.flatnonzero(known & ~usable)
    if len(bad):
        raise ValueError(
            f"line {batch.lines[bad[0]]}, target {name!r} is {values[bad[0]]:.6g}: {hint}"
        )
    if task == "regression":
        return Targets(values, known, found)
    labels = np.where(known, values, 0.0).astype(np.int64)
    if (truth or name in batch.truths) and ((labels == 0) | (labels == 1)).all():
        return Targets(labels.astype(np.bool_), known, found)
    return Targets(labels, known, found)


def nothing_like(targets: NDArray[Any]) -> Any:
    """In place of a target that is missing, or of a class when none is known."""
    return {"U": "", "b": None}.get(targets.dtype.kind, np.nan)


def _texts(batch: Batch, name: str, column: Text) -> Targets:
    places, codes = np.unique(column.codes, return_inverse=True)
    if len(places) and not -1 <= places[0] <= places[-1] < len(column.values):
        raise ValueError(f"the target {name!r} has codes without a text")
    # A missing text is written "", like one that is there and empty.
    texts = ["" if place < 0 else column.values[place] for place in places.tolist()]
    for place in np.flatnonzero(["\0" in text for text in texts])[:1]:
        # NumPy drops it from the end of a text: two classes could become one.
        line = batch.lines[np.flatnonzero(codes == place)[0]]
        raise ValueError(f"line {line}, target {name!r} holds a NUL character")
    for place in np.flatnonzero([len(text) > LONGEST_CLASS for text in texts])[:1]:
        line = batch.lines[np.flatnonzero(codes == place)[0]]
        raise ValueError(
            f"line {line}, target {name!r} is a text of {len(texts[place]):,} characters; classes "
            f"have {LONGEST_CLASS:,} at most: is it the right column?"
        )
    return Targets(np.array(texts, dtype=np.str_)[codes], column.codes >= 0, "text")
