"""What a child process runs."""

import os
import sys
import warnings

from kernelstream.cli import main


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
