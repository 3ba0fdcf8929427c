"""A word on the terminal while the first call compiles, and only there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from kernelstream.core.jit import INTERPRETED

CODE = """
from kernelstream import POLKClassifier
for _ in range(2):
    POLKClassifier().partial_fit([[0.0], [1.0]], [0, 1])
"""


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_a_terminal_shows_once_why_the_first_call_takes_long(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = []
    for _ in range(2):  # the second process finds the code in the cache
        reader, writer = pty.openpty()
        subprocess.run([sys.executable, "-c", CODE], stderr=writer, env=environment, check=True)
        os.close(writer)
        with open(reader, "rb", buffering=0) as terminal:
            try:
                said.append(terminal.read(10_000) or b"")
            except OSError:  # nothing was written, and nobody is left to write
                said.append(b"")
    assert said[0].count(b"compiling for this machine") == 1
    assert said[1] == b""
