"""Options that several commands share: what each of them means is said here, once."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kernelstream.cli.methods import option

RUN = "The run"
ROWS = "How rows are read and prepared"

# The texts of options that do not stand in the same box of every command's help.
TASK = "classification or regression; by default what the target's first rows suggest."
DROP = "A column to leave out; may be repeated."
COLUMN = (
    "What a column is, where its first rows would suggest something else: NAME=number, NAME=text "
    "or NAME=date; may be repeated."
)
FORMAT = "The file's format, if its name does not say."
DELIMITER = "Between fields of text."
HEADER = "The first line names the columns."

File = Annotated[
    str, typer.Argument(help="CSV, TSV, LIBSVM, Parquet, Arrow or .npz; - is standard input.")
]
Report = Annotated[
    Optional[Path],
    typer.Option(help="Where to write the report, one HTML file.", rich_help_panel=RUN),
]
Drop = Annotated[Optional[list[str]], typer.Option(help=DROP, rich_help_panel=ROWS)]
Kinds = Annotated[
    Optional[list[str]], typer.Option(help=COLUMN, rich_help_panel=ROWS, metavar="NAME=KIND")
]
Buckets = Annotated[
    int, typer.Option(min=1, help="Hashed inputs for text columns.", rich_help_panel=ROWS)
]
Standardise = Annotated[bool, typer.Option(help="Standardise numbers.", rich_help_panel=ROWS)]
Format = Annotated[Optional[str], typer.Option(help=FORMAT, rich_help_panel=ROWS)]
Delimiter = Annotated[Optional[str], typer.Option(help=DELIMITER, rich_help_panel=ROWS)]
Header = Annotated[bool, typer.Option(help=HEADER, rich_help_panel=ROWS)]
Width = Annotated[
    Optional[int],
    typer.Option(min=1, help="Width of LIBSVM rows from standard input.", rich_help_panel=ROWS),
]
# The same in commands whose help has no boxes.
PlainFormat = Annotated[Optional[str], typer.Option(help=FORMAT)]
PlainDelimiter = Annotated[Optional[str], typer.Option(help=DELIMITER)]
PlainHeader = Annotated[bool, typer.Option(help=HEADER)]
BatchRows = Annotated[int, typer.Option(min=1, help="Rows read at a time.", rich_help_panel=ROWS)]
AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No live display.")]


def add_method_options(command: Any, texts: Mapping[str, str], panel: str) -> None:
    """Put the parameters of methods into the signature, which is what typer reads.

    They take the place of ``**parameters``, in a box of the help that is named ``panel``.
    """
    signature = inspect.signature(command, eval_str=True)
    kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                Optional[str],
                typer.Option(option(name), help=text, rich_help_panel=panel, metavar="VALUE"),
            ],
        )
        for name, text in texts.items()
    ]
    command.__signature__ = signature.replace(parameters=[*kept, *added])
    command.__annotations__ = {
        parameter.name: parameter.annotation for parameter in [*kept, *added]
    }
