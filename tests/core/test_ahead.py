"""First use: a word on the terminal while it compiles, and what a second process compiles."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys

import numpy as np
import pytest

from kernelstream import POLKClassifier
from kernelstream.core import ahead
from kernelstream.core.calibration import calibrate
from kernelstream.core.grow.block import _take_in_pair, enter, take_in_block
from kernelstream.core.grow.span import take_in
from kernelstream.core.jit import INTERPRETED
from kernelstream.core.kernel import kernel_rows
from kernelstream.core.reduce.komp import _prune, prune_block

WORD = b"compiling for this machine"
FIT = "from kernelstream import {0}\nfor _ in range(2): {0}().partial_fit([[0.0], [1.0]], [0, 1])"

compiled_only = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")


def start(kind, **environment):
    """Two models of a kind learn; the process, and what it says to a terminal."""
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", FIT.format(kind)], stderr=writer, start_new_session=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    os.close(writer)
    return process, open(reader, "rb", buffering=0)


def read(terminal):
    try:
        return terminal.read(10_000) or b""
    except OSError:  # nobody is left to write
        return b""


@compiled_only
def test_it_is_said_before_anything_is_compiled(tmp_path):
    process, terminal = start("POLKClassifier", NUMBA_CACHE_DIR=str(tmp_path))
    with terminal:
        assert WORD in read(terminal)
    os.killpg(process.pid, signal.SIGKILL)  # and the process that compiles ahead
    process.wait()
    assert not [*tmp_path.rglob("*.pursuit_pass*")]


@compiled_only
def test_a_process_that_finds_the_code_says_nothing():
    POLKClassifier().partial_fit([[0.0], [1.0]], [0, 1])  # now it is in the cache
    process, terminal = start("POLKClassifier")
    with terminal:
        assert b"".join(iter(lambda: read(terminal), b"")) == b""
    assert process.wait() == 0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_it_is_said_once_and_only_to_a_terminal(monkeypatch):
    for stream, times in ((Terminal(), 1), (io.StringIO(), 0)):
        monkeypatch.setattr(sys, "stderr", stream)
        ahead.explain.cache_clear()
        for _ in range(2):
            ahead.explain()
        assert stream.getvalue().count(WORD.decode()) == times
    monkeypatch.setattr(sys, "stderr", None)  # a program without a window for it
    ahead.explain.cache_clear()
    ahead.explain()


@compiled_only
def test_what_is_compiled_ahead_is_what_passes_call():
    """For the same types of arguments: or else it would be compiled twice."""
    X, y = np.array([[0.0], [1.0], [0.1]]), [0, 1, 0]
    for batch_size in (1, 2):
        POLKClassifier(batch_size=batch_size).partial_fit(X, y).predict_proba(X)
    for kind in ("samples", "blocks", "kernel of blocks", "others"):
        ahead.compile(kind)
    points = take_in, _prune, enter, prune_block, take_in_block, _take_in_pair
    for function in (*points, kernel_rows, calibrate):
        signatures = {signature for signature, *_ in function._cache._cache_file._load_index()}
        assert len(signatures) == 1, function
