"""All commands under one roof."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer

from kernelstream._version import __version__
from kernelstream.cli import data, demo, learn, model, predict
from kernelstream.cli.errors import UserError
from kernelstream.errors import DivergenceError, IllConditionedError
from kernelstream.storage import ModelFileError
from kernelstream.streams import StreamError

app = typer.Typer(
    name="kernelstream",
    help="Kernel machines for endless streams: learn from a file or a pipe, row by row, in memory "
    "that never grows.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("learn")(learn.learn)
app.command("predict")(predict.predict)
app.command("evaluate")(predict.evaluate)
app.command("inspect")(model.inspect)
app.command("merge")(model.merge)
app.command("compress")(model.compress)
app.add_typer(data.app, name="datasets")
app.command("demo")(demo.demo)


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


#: What a user can put right: shown without a traceback.
_EXPECTED = (
    UserError, StreamError, ModelFileError, DivergenceError, IllConditionedError, OSError,
    ValueError, ImportError,
)  # fmt: skip


def run() -> None:
    """Run the command given; every expected error is one line and exit code 2."""
    try:
        app(standalone_mode=True)
    except BrokenPipeError:  # the reader of our output went away: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except _EXPECTED as error:
        if os.environ.get("KERNELSTREAM_DEBUG"):
            raise
        problem = " ".join(str(error).split()) or type(error).__name__
        if "--json" in sys.argv:
            print(json.dumps({"error": problem, "type": type(error).__name__}))
        print(f"kernelstream: {problem}", file=sys.stderr)
        sys.exit(2)
