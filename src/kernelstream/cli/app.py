"""All commands under one roof."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from kernelstream._version import __version__
from kernelstream.cli import data, demo, diameter, features, learn, model, predict
from kernelstream.cli.errors import UserError, describe, print_json
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
_STREAM = "kernelstream datasets generate market --rows 20000 --out market.csv"
_LEARN = "kernelstream learn market.csv --target direction --eta0 1 --epsilon 0.2 --alpha 1e-3"

#: Shown by --help and run, in this order, by a test.
EXAMPLES = {
    "datasets list": "kernelstream datasets list",
    "datasets generate": _STREAM,
    "datasets convert": "kernelstream datasets convert market.csv --out market.parquet",
    "learn": f"{_LEARN} --out model.ks --report report.html",
    "diameter": "kernelstream diameter market.csv --target direction --rows 5000 --out delta.png",
    "features": "kernelstream features market.csv --target direction --out features.parquet "
    "--report features.html",
    "predict": "kernelstream predict model.ks market.csv --keep time --out predictions.csv",
    "evaluate": "kernelstream evaluate model.ks market.parquet --metrics accuracy,kappa",
    "inspect": "kernelstream inspect model.ks --points 5",
    "compress": "kernelstream compress model.ks --max-points 20 --out small.ks",
    "merge": "kernelstream merge model.ks small.ks --max-points 50 --out merged.ks",
    "demo": "kernelstream demo --out demo-output",
}


def _epilog(name: str) -> str:
    return f"Example: {EXAMPLES[name]}"


app.command("learn", epilog=_epilog("learn"))(learn.learn)
app.command("diameter", epilog=_epilog("diameter"))(diameter.diameter)
app.command("features", epilog=_epilog("features"))(features.features)
app.command("predict", epilog=_epilog("predict"))(predict.predict)
app.command("evaluate", epilog=_epilog("evaluate"))(predict.evaluate)
app.command("inspect", epilog=_epilog("inspect"))(model.inspect)
app.command("merge", epilog=_epilog("merge"))(model.merge)
app.command("compress", epilog=_epilog("compress"))(model.compress)
app.command("demo", epilog=_epilog("demo"))(demo.demo)
datasets = typer.Typer(no_args_is_help=True)
datasets.command("list", epilog=_epilog("datasets list"))(data.list_all)
datasets.command("generate", epilog=_epilog("datasets generate"))(data.generate)
datasets.command("convert", epilog=_epilog("datasets convert"))(data.convert)
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

    A reader of our output that goes away (``| head -1``) is no error: click ends in silence.
    """
    try:
        app(prog_name="kernelstream")
    except _EXPECTED as error:
        if os.environ.get("KERNELSTREAM_DEBUG"):
            raise
        problem = describe(error)
        if "--json" in sys.argv:
            print_json({"error": problem, "type": type(error).__name__})
        print(f"kernelstream: {problem}", file=sys.stderr)
        sys.exit(2)
