"""``kernelstream export``: a model for places without kernelstream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kernelstream.cli.display import size
from kernelstream.cli.errors import UserError, check_outputs, checked
from kernelstream.cli.model import load_taught
from kernelstream.cli.options import AsJson
from kernelstream.cli.predict import ModelFile
from kernelstream.cli.terminal import print_json, say
from kernelstream.storage import replacing


def export(
    model: ModelFile,
    to: Annotated[
        str,
        typer.Option(
            help="onnx: for onnxruntime. c: one header without dependencies. numpy: one Python "
            "file that needs NumPy alone."
        ),
    ],
    out: Annotated[
        Optional[Path],
        typer.Option("--out", "-o", help="The file; by default named like the model."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write what a model predicts, for places without kernelstream: it learns no more there.

    Units, texts, dates and missing values are part of what is written.
    """
    from kernelstream.export import FORMATS, as_bytes, describe

    checked("--to", to, tuple(FORMATS))
    path = model.with_suffix(FORMATS[to]) if out is None else out
    check_outputs({"--out": path}, model)
    learned = load_taught(model)
    try:
        content = as_bytes(learned, to, name=path.stem)
    except (TypeError, NotImplementedError) as error:
        raise UserError(f"{model} cannot be exported: {error}", "learn with --model auto") from None
    with replacing(path) as file:
        file.write(content)
    inputs = {given.name: given.kind for given in describe(learned).inputs}
    if as_json:
        print_json({"out": str(path), "to": to, "bytes": len(content), "inputs": inputs})
        return
    listed = ", ".join(f"{name} ({kind})" for name, kind in inputs.items())
    say(f"{path}: {size(float(len(content)))}; inputs: {listed}")
