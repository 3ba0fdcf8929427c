"""Tables as people read them in a terminal and in Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a Markdown table, row by row as the rows come."""
    print(f"\n## {title}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns), flush=True)
    for row in rows:
        print("| " + " | ".join(_text(cell) for cell in row) + " |", flush=True)


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 0.01 and cell else f"{cell:.2f}"
    return str(cell)
