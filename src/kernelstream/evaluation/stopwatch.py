"""Time that a model takes, without the time in which machine code is made or loaded."""

from __future__ import annotations

from time import perf_counter
from types import TracebackType
from typing import Self

from numba.core.event import TimingListener, install_listener


class Stopwatch:
    """Measures what is done within: ``seconds``, not counting Numba's.

    A first run on a machine compiles on the way, for as long as some hundred thousand rows take.
    """

    seconds = 0.0

    def __enter__(self) -> Self:
        self._compiling = TimingListener()
        self._listening = install_listener("numba:compiler_lock", self._compiling)
        self._listening.__enter__()
        self._start = perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        elapsed = perf_counter() - self._start
        self._listening.__exit__(None, None, None)
        compiling = self._compiling.duration if self._compiling.done else 0.0
        self.seconds = max(0.0, elapsed - compiling)
