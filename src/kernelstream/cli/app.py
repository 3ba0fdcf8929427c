"""All commands under one roof."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kernelstream._version import __version__
from kernelstream.cli import (
    compare,
    data,
    demo,
    diameter,
    export,
    features,
    learn,
    model,
    predict,
    tune,
)
from kernelstream.cli.errors import UserError, describe
from kernelstream.cli.methods import option
from kernelstream.cli.terminal import complain, print_json, visible
from kernelstream.errors import DivergenceError, IllConditionedError, naming
from kernelstream.renamed import RENAMED, hint
from kernelstream.storage import ModelFileError
from kernelstream.streams import StreamError

#: What typer raises about words on the command line.
_UsageError: Any = typer.BadParameter.__base__


class _Commands(TyperGroup):
    """The commands; what was typed, by a shell from names of files perhaps, is made visible."""

    def make_context(self, *words: Any, **options: Any) -> Any:
        with _visible_complaints():
            return super().make_context(*words, **options)

    def invoke(self, ctx: Any) -> Any:
        with _visible_complaints():
            return super().invoke(ctx)


@contextlib.contextmanager
def _visible_complaints() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        error.message = visible(error.message)
        old = getattr(error, "option_name", "").removeprefix("--").replace("-", "_")
        if old in RENAMED:
            new = " or ".join(map(option, RENAMED[old]))
            error.message = f"{error.option_name} is {new} now{hint(old)}"
            error.possibilities = None
        raise


app = typer.Typer(
    name="kernelstream",
    cls=_Commands,
    help="Kernel machines for endless streams: learn from a file or a pipe, row by row, in memory "
    "that never grows.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_STREAM = "kernelstream datasets generate market --rows 20000 --out market.csv"

#: Shown by --help and run, in this order, by a test; polk.ks is a model of ``learn --model polk``.
EXAMPLES = {
    "datasets list": "kernelstream datasets list",
    "datasets generate": _STREAM,
    "datasets convert": "kernelstream datasets convert market.csv --out market.parquet",
    "learn": "kernelstream learn market.csv --target direction --out model.ks --report report.html",
    "tune": "kernelstream tune market.csv --target direction --model polk --trials 9 --rows 5000",
    "compare": "kernelstream compare market.csv --target direction --models auto,polk,avm "
    "--rows 5000 --report compare.html",
    "diameter": "kernelstream diameter market.csv --target direction --rows 5000 --out delta.png",
    "features": "kernelstream features market.csv --target direction --out features.parquet "
    "--report features.html",
    "predict": "kernelstream predict model.ks market.csv --keep time --out predictions.csv",
    "evaluate": "kernelstream evaluate model.ks market.parquet --metrics accuracy,kappa",
    "inspect": "kernelstream inspect model.ks --report model.html",
    "export": "kernelstream export model.ks --to numpy --out model.py",
    "compress": "kernelstream compress polk.ks --max-points 20 --out small.ks",
    "merge": "kernelstream merge polk.ks small.ks --max-points 50 --out merged.ks",
    "demo": "kernelstream demo --out demo-output",
}


def _add(home: typer.Typer, prefix: str, *commands: Callable[..., None]) -> None:
    """Commands by the names of their functions, each with its example."""
    for command in commands:
        name = command.__name__.removesuffix("_all")
        home.command(name, epilog=f"Example: {EXAMPLES[prefix + name]}")(command)


_add(app, "", learn.learn, tune.tune, compare.compare, diameter.diameter, features.features)
_add(app, "", predict.predict, predict.evaluate, model.inspect, export.export, model.merge)
_add(app, "", model.compress, demo.demo)
datasets = typer.Typer(no_args_is_help=True)
_add(datasets, "datasets ", data.list_all, data.generate, data.convert)
app.add_typer(datasets, name="datasets", help="Streams to try things on: list, generate, convert.")


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
    ValueError, ImportError, MemoryError,
)  # fmt: skip


def run() -> None:
    """Run the command given; every expected error is one line and exit code 2.

    A reader of our output that goes away (``| head -1``) is no error: it ends in silence.
    """
    try:
        _take_missing_descriptors()
        if sys.stdout is None:
            raise UserError("standard output is closed", "send it somewhere: > /dev/null")
        try:
            app(prog_name="kernelstream")
        except SystemExit:
            _flush()
            raise
    except _EXPECTED as error:
        if os.environ.get("KERNELSTREAM_DEBUG"):
            raise
        problem = describe(error)
        with contextlib.suppress(OSError):
            if "--json" in sys.argv:
                print_json({"error": problem, "type": type(error).__name__})
            _flush()
        complain(problem)
        sys.exit(2)


def _take_missing_descriptors() -> None:
    """Where a stream is closed, a file opened later would take its number and get its text."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free


def _flush() -> None:
    """Write what waits in standard output: when the interpreter does, errors are too late."""
    if sys.stdout is None:
        return
    try:
        with naming("standard output"):
            sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for that later try
        if error.errno == errno.EPIPE:
            sys.exit(1)
        raise
