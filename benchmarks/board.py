"""Boards of 8 x 8 fields that change: the automatic model, forests and neighbours."""

from __future__ import annotations

from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.auto import measure
from benchmarks.auto_programs import Program, capymoa, programs
from benchmarks.auto_streams import Stream
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream.streams import make_changing_board

ROWS = 50_000
OTHERS = ("automatic", "CapyMOA HAT", "CapyMOA kNN", "CapyMOA SAMkNN")
#: The second is the one that the model was designed for, as far as the mistakes of forests and
#: neighbours on that one tell.
BOARDS: dict[str, dict[str, Any]] = {
    "a quarter of the fields, every 2,000 rows": {},
    "all fields, every 10,000 rows": {"period": 10_000, "changed": 1.0},
}


def main() -> None:
    """Mistakes of each program on each board, after 20,000 rows and in the end."""
    found = [each for each in programs() if each.name in OTHERS]
    if len(found) > 1:
        found.append(Program("CapyMOA ARF(30)", _forest, None))
    with threadpool_limits(1):
        show(
            "Mistakes in % on boards of 8 x 8 fields and four classes, and microseconds a row",
            ["what changes", "rows", *(program.name for program in found)],
            (
                _line(name, settings, int(share() * rows), found)
                for name, settings in BOARDS.items()
                for rows in (2 * ROWS // 5, ROWS)
            ),
        )


def _forest(stream: Stream) -> Any:
    name = "AdaptiveRandomForestClassifier"
    return capymoa("capymoa.classifier", name, stream, ensemble_size=30)


def _line(name: str, settings: dict[str, Any], rows: int, found: list[Program]) -> list[str]:
    X, y = make_changing_board(rows, random_state=0, **settings)
    cells = [measure(program, Stream(name, X, y, False)) for program in found]
    return [name, f"{rows:,}", *(f"{cell['error']:.2f}, {cell['us']:.0f} us" for cell in cells)]
