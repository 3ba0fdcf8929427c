"""BSGD against BudgetedSVM, whose mistakes are in ``benchmarks/recorded/budgetedsvm.json``.

Steps and merging are the same. Three things differ, and decide which points leave: BudgetedSVM
gives the first sample the weight 1 instead of 1 / lambda; of weights that are equal but for
rounding it takes the smallest, ours the oldest; and it merges points of different sides as well,
into one beyond them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.outside import BUDGET, RECORDED, STREAMS, mistakes, stream
from benchmarks.tables import show
from kernelstream import BSGDClassifier


def runs() -> list[dict[str, Any]]:
    """What BudgetedSVM did."""
    text = (RECORDED / "budgetedsvm.json").read_text("utf-8")
    return json.loads(text)["runs"]  # type: ignore[no-any-return]


def ours(run: dict[str, Any], policy: str) -> int | str:
    """Our mistakes in the same run, from the second sample on."""
    samples = stream(run["stream"])
    if samples is None:
        return "data not present"
    # It has an output for each of the two classes: a margin of twice the function.
    model = BSGDClassifier(
        gamma=STREAMS[run["stream"]]["gamma"], alpha=0.5 * run["lambda"], policy=policy,
        search="golden", max_points=BUDGET,
    )  # fmt: skip
    return int(mistakes(model, *samples)[1:].sum())


def main() -> None:
    """Mistakes of BudgetedSVM and of ours."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for run in runs():
            start = run["stream"], run["lambda"]
            yield *start, run["policy"], run["mistakes"], ours(run, run["policy"])
            if run["policy"] == "merging":
                yield *start, "projection", "it has none", ours(run, "projection")

    show(
        f"Mistakes of BudgetedSVM and of ours at {BUDGET} points",
        ["stream", "lambda", "policy", "BudgetedSVM", "ours"],
        rows(),
    )
