"""The commands: where each is defined, what it does, an example; none is imported for that."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Command:
    """A command, before it is imported."""

    function: str  #: ``module.function`` in this folder.
    summary: str  #: The first line of the function's docstring.
    example: str  #: Shown by --help, and run by a test: those of datasets, then in this order.

    @property
    def epilog(self) -> str:
        """The last line of its help."""
        return f"Example: {self.example}"

    def summarised(self, name: str) -> Any:
        """A command with a name and a summary, for lists."""
        from typer.core import TyperCommand

        return TyperCommand(name, help=self.summary)

    def load(self, name: str) -> Any:
        """The command itself."""
        import typer

        from kernelstream.cli.starting import import_scikit_learn

        import_scikit_learn()
        module, _, function = self.function.partition(".")
        home = typer.Typer(add_completion=False, rich_markup_mode="rich")
        found = getattr(importlib.import_module(f"kernelstream.cli.{module}"), function)
        home.command(name, epilog=self.epilog)(found)
        return typer.main.get_command(home)


#: By name, in the order in which they are listed; polk.ks is a model of ``learn --model polk``.
COMMANDS = {
    "learn": Command(
        "learn.learn",
        "Learn from a stream: every row is predicted first, then learned from.",
        "kernelstream learn market.csv --target direction --out model.ks --report report.html",
    ),
    "tune": Command(
        "tune.tune",
        "Search for good parameters of one method, many candidates in one pass over the stream.",
        "kernelstream tune market.csv --target direction --model polk --trials 9 --rows 5000",
    ),
    "compare": Command(
        "compare.compare",
        "Programs side by side: one pass, each predicts every row first, then learns it.",
        "kernelstream compare market.csv --target direction --models auto,polk,avm "
        "--rows 5000 --report compare.html",
    ),
    "diameter": Command(
        "diameter.diameter",
        "Error and size of AVM for cells of several diameters: what to give as --delta.",
        "kernelstream diameter market.csv --target direction --rows 5000 --out delta.png",
    ),
    "features": Command(
        "features.features",
        "Learn features from a stream and write them, row by row, in memory that never grows.",
        "kernelstream features market.csv --target direction --out features.parquet "
        "--report features.html",
    ),
    "predict": Command(
        "predict.predict",
        "Predict raw rows, one line of CSV for each: where it came from and what is predicted.",
        "kernelstream predict model.ks market.csv --keep time --out predictions.csv",
    ),
    "evaluate": Command(
        "predict.evaluate",
        "Measure a trained model on labelled rows, without learning from them.",
        "kernelstream evaluate model.ks market.parquet --metrics accuracy,kappa",
    ),
    "inspect": Command(
        "model.inspect",
        "What a model file holds: what it is, its points or experts, and which inputs matter.",
        "kernelstream inspect model.ks --report model.html",
    ),
    "export": Command(
        "export.export",
        "Write what a model predicts, for places without kernelstream: it learns no more there.",
        "kernelstream export model.ks --to numpy --out model.py",
    ),
    "compress": Command(
        "model.compress",
        "The same model with fewer points, and what that costs.",
        "kernelstream compress polk.ks --max-points 20 --out small.ks",
    ),
    "merge": Command(
        "model.merge",
        "The mean function of several models, compressed: one model for all of them.",
        "kernelstream merge polk.ks small.ks --max-points 50 --out merged.ks",
    ),
    "policy": Command(
        "policy.policy",
        "Learn what every state is worth under the policy that made a log, step by step.",
        "kernelstream policy market.csv --reward demand --drop time --drop zone --drop direction "
        "--drop temperature --drop wind --discount 0.9 --values values.csv",
    ),
    "demo": Command(
        "demo.demo",
        "Learn two generated streams: a drifting electricity market, and POLK's multidist.",
        "kernelstream demo --out demo-output",
    ),
    "datasets list": Command(
        "data.list_all",
        "What can be generated, and the data sets of a folder.",
        "kernelstream datasets list",
    ),
    "datasets generate": Command(
        "data.generate",
        "Write a generated stream.",
        "kernelstream datasets generate market --rows 20000 --out market.csv",
    ),
    "datasets convert": Command(
        "data.convert",
        "Write a stream in another format.",
        "kernelstream datasets convert market.csv --out market.parquet",
    ),
}
