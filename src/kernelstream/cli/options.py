"""Options that several commands share: what each of them means is written here, once."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kernelstream.cli.errors import UserError, checked
from kernelstream.cli.spelling import option
from kernelstream.preparation import UNITS
from kernelstream.streams.columns import KINDS

RUN = "The run"
ROWS = "How rows are read and prepared"

TASK = "classification or regression; by default what the target's first rows suggest."

File = Annotated[
    str, typer.Argument(help="CSV, TSV, LIBSVM, Parquet, Arrow or .npz; - is standard input.")
]
AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No live display.")]

#: An option that is put into the signature of a command: what typer reads, and the default.
Added = tuple[Any, Any]


def added(panel: str, kind: Any, help: str, default: Any = None, *names: str, **more: Any) -> Added:
    """An option in a box of the help."""
    return Annotated[kind, typer.Option(*names, help=help, rich_help_panel=panel, **more)], default


of_rows, of_run = partial(added, ROWS), partial(added, RUN)
REPORT = of_run(Optional[Path], "Where to write the report, one HTML file.")

#: How a file is read, in all commands.
FILE = {
    "format": of_rows(Optional[str], "The file's format, if its name does not say."),
    "delimiter": of_rows(Optional[str], "Between fields of text, if the header leaves it open."),
    "header": of_rows(bool, "The first line names the columns.", True),
    "decimal": of_rows(
        Optional[str],
        "The decimal mark of numbers in text, if the first rows leave it open: , or .",
    ),
}
ON_BAD = of_rows(str, "Rows that do not fit: raise or skip.", "raise")

#: How rows become features, in commands that learn.
READING = {
    "drop": of_rows(Optional[list[str]], "A column to leave out; may be repeated."),
    "column": of_rows(
        Optional[list[str]],
        "What a column is, where its first rows would suggest something else: NAME=number, "
        "NAME=text or NAME=date; may be repeated.",
        metavar="NAME=KIND",
    ),
    "on_bad": ON_BAD,
    "units": of_rows(
        str, "Units of numbers: moving with the stream, or frozen after --warm-up rows.", "moving"
    ),
    "warm_up": of_rows(int, "Rows after which --units frozen are.", 1000, min=1),
    "buckets": of_rows(
        Optional[int],
        "Inputs for the values of all text columns; by default 128, or 256 where the first rows "
        "have many texts.",
        min=1,
    ),
    "standardise": of_rows(bool, "Standardise numbers.", True),
    **FILE,
    "n_features": of_rows(Optional[int], "Width of LIBSVM rows from standard input.", min=1),
    "batch_rows": of_rows(int, "Rows read at a time.", 8192, min=1),
}


def taken(given: Mapping[str, Any], *policies: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of ``READING`` as a run has them, and the parameters that were given.

    ``policies`` are what ``--on-bad`` accepts.
    """
    reading = {name: given[name] for name in READING if name in given}
    checked("--on-bad", reading["on_bad"], policies)
    checked("--units", reading["units"], UNITS)
    reading["schema"] = given_kinds(reading.pop("column") or [])
    parameters = {k: v for k, v in given.items() if k not in READING and v is not None}
    return reading, parameters


def given_kinds(columns: list[str]) -> dict[str, str]:
    """Column to kind."""
    kinds = {}
    for text in columns:
        name, _, kind = text.rpartition("=")
        if not name or kind not in KINDS:
            raise UserError(
                f"--column {text} does not say what a column is",
                f"write NAME=KIND with one of: {', '.join(KINDS)}",
            )
        kinds[name] = kind
    return kinds


def of_methods(texts: Mapping[str, str], panel: str) -> dict[str, Added]:
    """Parameters of methods as options, in a box of the help that is named ``panel``."""
    return {
        name: added(panel, Optional[str], text, None, option(name), metavar="VALUE")
        for name, text in texts.items()
    }


def add_options(command: Any, *options: Mapping[str, Added]) -> None:
    """Put options into the signature of a command in place of its ``**given``: typer reads it."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for group in options
        for name, (kind, default) in group.items()
    ]
    command.__signature__ = signature.replace(parameters=parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}
