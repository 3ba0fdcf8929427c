"""All commands under one roof."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kernelstream._version import __version__
from kernelstream.cli.commands import COMMANDS
from kernelstream.cli.errors import UserError, describe
from kernelstream.cli.spelling import option
from kernelstream.cli.terminal import complain, print_json, visible
from kernelstream.errors import naming
from kernelstream.renamed import RENAMED, hint

#: What typer raises about words on the command line.
_UsageError: Any = typer.BadParameter.__base__


class _Commands(TyperGroup):
    """The commands, each imported when it is called; a list of them needs none.

    What was typed, by a shell from names of files perhaps, is made visible.
    """

    prefix = ""  # of the names that it has in the table

    def list_commands(self, ctx: Any) -> list[str]:
        own = [name.removeprefix(self.prefix) for name in COMMANDS if name.startswith(self.prefix)]
        return [*(name for name in own if " " not in name), *self.commands]

    def get_command(self, ctx: Any, name: str) -> Any:
        entry = COMMANDS.get(self.prefix + name)
        if entry is None:
            return super().get_command(ctx, name)
        return entry.summarised(name) if self._listing else entry.load(name)

    _listing = False

    def format_help(self, *where: Any) -> None:
        self._listing = True
        try:
            super().format_help(*where)
        finally:
            self._listing = False

    def make_context(self, *words: Any, **options: Any) -> Any:
        with _visible_complaints():
            return super().make_context(*words, **options)

    def invoke(self, ctx: Any) -> Any:
        with _visible_complaints():
            return super().invoke(ctx)


class _Datasets(_Commands):
    prefix = "datasets "


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


app.add_typer(
    typer.Typer(cls=_Datasets, no_args_is_help=True),
    name="datasets",
    help="Streams to try things on: list, generate, convert.",
)


def _expected() -> tuple[type[BaseException], ...]:
    """What a user can put right: shown without a traceback."""
    from kernelstream.errors import DivergenceError, IllConditionedError
    from kernelstream.storage import ModelFileError
    from kernelstream.streams.errors import StreamError

    return (
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
    except Exception as error:
        if os.environ.get("KERNELSTREAM_DEBUG") or not isinstance(error, _expected()):
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
