"""What commands that read a stream to its end share: signals, and messages in the tool's words."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from kernelstream.cli.errors import UserError, checked
from kernelstream.cli.terminal import Console, complain
from kernelstream.streams import Source, open_stream
from kernelstream.streams.bad_rows import counted

if TYPE_CHECKING:  # predict has no run, and is to answer at once
    from kernelstream.runs._reading import StreamRun

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Ctrl-C or SIGTERM: finish the batch, then stop. A second Ctrl-C stops at once.

    After the last row they stop nothing: what there is to write and to print is soon done.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._run: StreamRun | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Within, both signals stop the run that is watched, once there is one: to the very end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with contextlib.suppress(ImportError):
            import pyarrow

            # Its own would cancel the reading of a block, whose rows would then be missing.
            pyarrow.enable_signal_handlers(False)
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def watch(self, run: Any, console: Console, quiet: bool) -> None:
        """Compile what the run needs; from now on a signal stops it."""
        shown = console.status("compiling, once per machine ...")
        with contextlib.nullcontext() if quiet else shown:
            run.compile()
        self._run = run
        if self.signal is not None:  # in the meantime
            run.stop(signal.Signals(self.signal).name)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal == number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number
        if os.isatty(2):
            again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
            os.write(2, f"\nstopping after this batch{again}\n".encode())
        if self._run is not None:
            self._run.stop(signal.Signals(number).name)

    def exit(self, run: StreamRun) -> None:
        """End with the code of the signal, if that is what ended the run."""
        if run.stopped_by is not None and self.signal is not None:
            raise typer.Exit(128 + self.signal)


@contextlib.contextmanager
def in_words_of_the_tool() -> Iterator[None]:
    """Within, what is wrong with a run is the user's to put right."""
    from kernelstream.runs import RunError

    try:
        yield
    except RunError as error:
        raise UserError(str(error)) from error


def command_typed(*left_out: str) -> str:
    """The command, as it could be typed again without some of its words."""
    return "kernelstream " + shlex.join(word for word in sys.argv[1:] if word not in left_out)


def open_rows(file: str, *, on_bad: str, **reading: Any) -> Source:
    """The stream, of which bad rows can be skipped, but not put aside: not for ``learn``."""
    checked("--on-bad", on_bad, ["raise", "skip"])
    source = open_stream(file, on_bad=on_bad, **reading)
    source.bad.cure = "--on-bad skip"
    return source


def warn_of_bad_rows(source: Source) -> None:
    """Say on standard error how many rows were skipped, and why the first."""
    if source.bad.count:
        line, reason = source.bad.first[0]
        complain(f"{counted(source.bad.count)} refused, the first on line {line}: {reason}")
