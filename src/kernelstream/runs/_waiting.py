"""Waiting for standard input, which a signal or another thread can end at any moment."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any


class StopWaitingError(Exception):
    """There is nothing to wait for any more."""


class Waiting:
    """Waits until a file has something to read, or until somebody calls :meth:`wake`.

    Python runs a signal's handler when the system call is over in which the main thread is: a
    signal that comes just before a read would be noticed when the next rows are there, if ever.
    What is waited for is therefore the file or a pipe of our own, into which a byte is written by
    ``wake``, and by Python itself as soon as a signal comes (``signal.set_wakeup_fd``).
    """

    def __init__(self) -> None:
        self._out, self._in = os.pipe()
        for end in (self._out, self._in):
            os.set_blocking(end, False)
            weakref.finalize(self, os.close, end)

    def wake(self) -> None:
        """End the waiting, now or when it begins; safe in handlers and in other threads."""
        with contextlib.suppress(BlockingIOError):  # full of bytes: it wakes up without this one
            os.write(self._in, b"\0")

    @contextlib.contextmanager
    def hearing_signals(self) -> Iterator[None]:
        """Within, signals wake up, too, unless a program has signals wake up something else."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        if before != -1:
            signal.set_wakeup_fd(before)
        try:
            yield
        finally:
            if before == -1:
                signal.set_wakeup_fd(-1)

    def until_ready(self, file: Any, is_over: Callable[[], bool]) -> None:
        """Return when the file can be read; StopWaitingError as soon as ``is_over``."""
        while not is_over():
            try:
                ready = select.select([file, self._out], [], [])[0]
            except (OSError, ValueError):  # not a pipe, or not on this system: it is just read
                return
            if file in ready and not is_over():
                return
            with contextlib.suppress(BlockingIOError):  # what woke us up is heard
                os.read(self._out, 4096)
        raise StopWaitingError
