"""Standard input is waited for, and the waiting ends whenever a signal or a thread says so."""

import io
import os
import select
import signal
import sys
import threading

import pytest

from kernelstream import Run
from kernelstream.runs._waiting import StopWaitingError, Waiting


@pytest.fixture
def pipe(monkeypatch):
    """Standard input, and the end that it is fed from."""
    out, feed = os.pipe()
    with open(out) as stdin, open(feed, "wb", buffering=0) as file:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield file


@pytest.fixture(autouse=True)
def _in_time():
    """What waits for ever fails: an alarm raises, also inside of a system call."""

    def give_up(number, frame):
        raise TimeoutError("it waits for ever")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def begun(pipe):
    """A run that has read the only row there is."""
    pipe.write(b"a,target\n0,no\n")
    run = Run("-", model="polk", batch_rows=1)
    assert len(run.read()) == 1
    return run


class _Early:
    """``select`` where a signal comes after all checks, just before the system call begins.

    Python notes it, and runs the handler only when the call is over.
    """

    def __init__(self, before):
        self._before = before
        self.calls = 0

    def select(self, *sets):
        self.calls += 1
        if self.calls == 1 and sets[3:] != (0,):
            self._before()
        return select.select(*sets)


def without_handlers(number):
    """What the operating system does on a signal, without what Python does between two lines."""
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    if wakeup != -1:
        os.write(wakeup, bytes([number]))


def test_a_signal_just_before_the_wait_ends_it(pipe, monkeypatch):
    run = begun(pipe)
    stopped = []

    def late():  # the handler comes when the call is over
        without_handlers(signal.SIGTERM)
        stopped.append(True)

    early = _Early(late)
    monkeypatch.setattr("kernelstream.runs._waiting.select", early)
    real = os.read

    def read(number, size):  # the first line after the call
        if stopped and not run.stopping:
            run.stop("SIGTERM")
        return real(number, size)

    monkeypatch.setattr("kernelstream.runs._waiting.os.read", read)
    assert run.read() is None
    assert early.calls == 1
    assert run._position["rows"] == 1
    run.close()


def test_a_signal_at_any_moment(pipe):
    """Many real ones, sent to the process while it begins to wait, waits and stops waiting."""
    for pause in (0.0, 1e-5, 1e-4, 1e-3, 1e-2) * 10:
        run = begun(pipe)
        before = signal.signal(signal.SIGUSR1, lambda *_, run=run: run.stop("SIGUSR1"))
        sender = threading.Timer(pause, os.kill, (os.getpid(), signal.SIGUSR1))
        sender.start()
        assert run.read() is None
        sender.join()
        signal.signal(signal.SIGUSR1, before)
        assert run.stopping
        run.close()


def test_another_thread_ends_it_too(pipe):
    run = begun(pipe)
    threading.Timer(0.01, run.stop).start()
    assert run.read() is None
    run.close()


def test_rows_that_come_are_read(pipe):
    run = begun(pipe)
    threading.Timer(0.01, pipe.write, (b"2,no\n",)).start()
    assert len(run.read()) == 1
    assert run._position is None
    run.close()


def test_a_program_keeps_its_own_wakeup():
    """Of asyncio, say: then only what calls ``wake`` is heard."""
    out, end = os.pipe()
    os.set_blocking(end, False)
    before = signal.set_wakeup_fd(end)
    waiting = Waiting()
    with waiting.hearing_signals():
        assert signal.set_wakeup_fd(end) == end
    assert signal.set_wakeup_fd(before) == end
    waiting.wake()
    over = []
    with open(out) as file, pytest.raises(StopWaitingError):
        waiting.until_ready(file, lambda: bool(over) or over.append(1))
    os.close(end)


def test_what_is_no_pipe_is_not_waited_for(tmp_path):
    (tmp_path / "rows").write_text("1")
    with (tmp_path / "rows").open() as file:
        Waiting().until_ready(file, lambda: False)
    Waiting().until_ready(io.BytesIO(), lambda: False)


def test_being_woken_more_often_than_a_pipe_holds():
    waiting = Waiting()
    for _ in range(100_000):
        waiting.wake()
