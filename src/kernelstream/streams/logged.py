"""Transitions from a log: rows of a file, each a step of a policy."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.batch import Batch, Column, Source, Text
from kernelstream.streams.columns import check_present
from kernelstream.streams.environments import Transitions
from kernelstream.streams.errors import StreamError
from kernelstream.streams.opening import open_stream

#: How texts say yes and no.
_FLAGS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}


class LoggedTransitions:
    """The steps of a policy as a file holds them, batch by batch, in bounded memory.

    Every row has the state, the reward of the step that was taken there and, where episodes end,
    whether this one ended it. Where the step led is either in the same row (``next_prefix``) or in
    the next row of the same episode. A step that leads nowhere known, because its episode was cut
    short there, is left out.

    Parameters
    ----------
    source : path, data frame or anything else that :func:`~kernelstream.open_stream` takes
    reward : str
        The column of the rewards.
    terminal : str, optional
        The column that says whether nothing follows: 0 and 1, or texts such as "true".
    episode : str, optional
        The column that has the same entry in all rows of an episode. Without it a row that is not
        terminal is followed by the next one.
    next_prefix : str, optional
        "next_", say: column ``next_x`` is the x of the state that the step led to.
    drop : sequence of str
        Columns that are no part of the state. All others must hold numbers.
    **reading
        Further parameters of :func:`~kernelstream.open_stream`.

    Examples
    --------
    >>> from kernelstream.streams import LoggedTransitions
    >>> log = {"game": [1, 1, 2, 2], "x": [0.0, 0.5, 0.1, 0.4], "paid": [0.0, 1.0, 0.0, 0.0],
    ...        "over": [0, 1, 0, 0]}
    >>> import pandas as pd
    >>> steps = LoggedTransitions(pd.DataFrame(log), "paid", terminal="over", episode="game")
    >>> [part] = steps  # the last row's next state is not known
    >>> part.states.ravel(), part.next_states.ravel(), part.terminal
    (array([0. , 0.5, 0.1]), array([0.5, 0.5, 0.4]), array([False,  True, False]))
    """

    def __init__(
        self,
        source: Any,
        reward: str,
        terminal: str | None = None,
        episode: str | None = None,
        next_prefix: str | None = None,
        drop: Any = (),
        **reading: Any,
    ) -> None:
        self.name = str(source) if isinstance(source, str | os.PathLike) else "the log"
        self.reward, self.terminal, self.episode = reward, terminal, episode
        self.next_prefix = next_prefix
        self._again = lambda: open_stream(source, drop=list(drop), **reading)
        self._opened: Source | None = self._again()  # for the first reading: a pipe has no other
        names = list(self._opened.schema)
        for wanted in (reward, terminal, episode):
            if wanted is not None:
                check_present(self.name, wanted, names)
        others = {reward, terminal, episode}
        if next_prefix is not None:
            others |= {name for name in names if name.startswith(next_prefix)}
        #: The columns of a state.
        self.columns = [name for name in names if name not in others]
        self._check_kinds(self._opened)

    def _open(self) -> Any:
        opened, self._opened = self._opened, None
        return contextlib.closing(opened or self._again())

    def _check_kinds(self, opened: Source) -> None:
        if not self.columns:
            raise StreamError(f"{self.name} has no column left for the states.")
        following = []
        if self.next_prefix is not None:
            following = [self.next_prefix + name for name in self.columns]
            for name in following:
                check_present(self.name, name, list(opened.schema))
        for name in [self.reward, *self.columns, *following]:
            if opened.schema[name] != "number":
                raise StreamError(
                    f"{self.name}: column {name!r} holds {opened.schema[name]}s; states and "
                    "rewards are numbers. Leave it out: --drop (drop=)."
                )

    def states(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Where every row came from, and its state."""
        with self._open() as opened:
            for batch in opened:
                yield batch.lines, self._numbers(batch, self.columns)

    def __iter__(self) -> Iterator[Transitions]:
        held: Transitions | None = None  # the last row, whose next state has not come yet
        episode: Any = None
        with self._open() as opened:
            for batch in opened:
                if not len(batch):
                    continue
                rows, names = self._rows(batch), self._episodes(batch)
                if self.next_prefix is not None:
                    yield rows
                    continue
                if held is not None:
                    rows = _joined(held, rows)
                    names = np.concatenate([np.array([episode], names.dtype), names])
                followed = np.append(names[:-1] == names[1:], False)
                led = np.flatnonzero(followed & ~rows.terminal)
                rows.next_states[led] = rows.states[led + 1]
                whole = followed | rows.terminal
                yield _some(rows, whole)
                held, episode = None, names[-1]
                if not rows.terminal[-1]:
                    held = _some(rows, slice(-1, None))

    def _rows(self, batch: Batch) -> Transitions:
        """The rows of a batch; where a step led, if that is in the same row, else the state."""
        states = self._numbers(batch, self.columns)
        rewards = self._numbers(batch, [self.reward])[:, 0]
        terminal = np.zeros(len(batch), bool)
        if self.terminal is not None:
            terminal = self._flags(batch, batch.columns[self.terminal])
        following = states.copy()
        if self.next_prefix is not None:
            names = [self.next_prefix + name for name in self.columns]
            following = np.column_stack([np.asarray(batch.columns[name]) for name in names])
            following[terminal] = states[terminal]  # nothing is there, perhaps no numbers either
            self._refuse_missing(batch, following, names)
        return Transitions(states, rewards, following, terminal, terminal)

    def _numbers(self, batch: Batch, names: list[str]) -> NDArray[np.float64]:
        numbers = np.column_stack([np.asarray(batch.columns[name]) for name in names])
        self._refuse_missing(batch, numbers, names)
        return numbers

    def _refuse_missing(self, batch: Batch, numbers: Any, names: list[str]) -> None:
        missing = np.argwhere(np.isnan(numbers))
        if len(missing):
            row, column = missing[0]
            raise StreamError(
                f"{self.name}, line {batch.lines[row]}: {names[column]!r} is missing; states and "
                "rewards need every number. Fill it, or leave the column out: --drop (drop=)."
            )

    def _flags(self, batch: Batch, column: Column) -> NDArray[np.bool_]:
        if isinstance(column, Text):
            known = [_FLAGS.get(value.strip().lower()) for value in column.values]
            flags = np.array([None if c < 0 else known[c] for c in column.codes], dtype=object)
        else:
            flags = np.array([{0.0: False, 1.0: True}.get(v) for v in column], dtype=object)
        bad = np.flatnonzero([flag is None for flag in flags])
        if len(bad):
            raise StreamError(
                f"{self.name}, line {batch.lines[bad[0]]}: {self.terminal!r} says neither yes nor "
                "no; write 0 and 1, or true and false."
            )
        return flags.astype(bool)

    def _episodes(self, batch: Batch) -> NDArray[Any]:
        if self.episode is None:
            return np.zeros(len(batch))
        column = batch.columns[self.episode]
        if isinstance(column, Text):
            return np.array([None if c < 0 else column.values[c] for c in column.codes], object)
        return np.asarray(column)


def _some(rows: Transitions, chosen: Any) -> Transitions:
    parts: Any = (part[chosen] for part in rows)
    return Transitions(*parts)


def _joined(first: Transitions, second: Transitions) -> Transitions:
    parts: Any = map(np.concatenate, zip(first, second, strict=True))
    return Transitions(*parts)
