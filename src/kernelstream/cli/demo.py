"""``kernelstream demo``: two streams learned, with their reports."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from kernelstream.cli import data
from kernelstream.cli.terminal import say

#: Name, rows, and the target: nothing else is given.
_STREAMS = (("market", 45_000, "direction"), ("multidist", 20_000, "label"))


def demo(
    out: Annotated[Path, typer.Option(help="A folder for the data, models and reports.")] = Path(
        "demo-output"
    ),
) -> None:
    """Learn two generated streams: a drifting electricity market, and POLK's multidist.

    Everything is made here, free of any licence; nothing is opened or downloaded.
    """
    from kernelstream.cli.app import app

    out.mkdir(parents=True, exist_ok=True)
    say("Compiling on first use takes up to half a minute; it is cached afterwards.")
    for name, rows, target in _STREAMS:
        file, report = out / f"{name}.csv", out / f"{name}.html"
        data.generate(name, str(file), rows, 6)
        words = ["learn", str(file), "--target", target, "--out", str(out / f"{name}.ks"),
                 "--report", str(report)]  # fmt: skip
        say("")
        say(f"$ kernelstream {shlex.join(words)}")
        sys.argv[1:] = words  # the report names the command
        if code := app(words, standalone_mode=False):  # stopped by a signal
            raise typer.Exit(code)
    reports = " and ".join(str(out / f"{name}.html") for name, _, _ in _STREAMS)
    say("")
    say(f"Reports: {reports}")
