"""What a child process runs. Imported beforehand by the server from which children are forked."""

import os
import sys
import warnings

import matplotlib  # noqa: F401  an old one warns about a new pyparsing
import pandas  # noqa: F401
import pyarrow.csv  # noqa: F401

import kernelstream.cli.app  # noqa: F401
from kernelstream import POLKClassifier
from kernelstream.cli import main

# The machine code is loaded once for all children.
POLKClassifier().partial_fit([[0.0], [1.0]], [0, 1]).predict([[0.0]])


def run(folder: str, words: list[str], log: str, stdin: str | None) -> None:
    """The tool, as a shell would start it."""
    os.chdir(folder)
    places = [
        (0, stdin or os.devnull, os.O_RDONLY),
        (1, f"{log}.out", os.O_WRONLY | os.O_CREAT),
        (2, f"{log}.err", os.O_WRONLY | os.O_CREAT),
    ]
    for number, place, flags in places:
        os.dup2(os.open(place, flags, 0o644), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    sys.argv = ["kernelstream", *words]
    warnings.simplefilter("error")
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
