"""Which columns matter, learned along a stream in which that changes; and what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import StreamModel

#: Columns, those that matter in the first and in the second half, and rows after the change.
COLUMNS, FIRST, SECOND, SOON = 12, (0, 1, 2), (5, 7, 9), 2000
MODELS = ("auto", "krlst", "polk")
TASKS = {"two classes": True, "numbers": False}
_STEP = 250
#: Streams; the settings of ``kernelstream/importances.py`` were chosen on others.
SEEDS = range(300, 310)


def changing_rows(n: int, classes: bool, seed: int) -> dict[str, Any]:
    """Twelve columns of which three matter, other ones from the middle on."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, COLUMNS))
    y = np.concatenate([_target(X[: n // 2, FIRST]), _target(X[n // 2 :, SECOND])])
    y = y + 0.1 * random.normal(size=n)
    columns: dict[str, Any] = {f"x{k}": X[:, k] for k in range(COLUMNS)}
    return {**columns, "y": np.where(y > 0.0, "up", "down") if classes else y}


def _target(X: Any) -> Any:
    """Three terms of about the same variance, the last without any slope on average."""
    return 1.4 * np.sin(1.5 * X[:, 0]) + X[:, 1] + 1.6 * (np.abs(X[:, 2]) - 0.8)


def leading(model: StreamModel) -> set[str]:
    """The three columns that matter most."""
    return set(list(model.column_importances_)[:3])


def part_of(rows: dict[str, Any], first: int, end: int) -> dict[str, Any]:
    return {name: column[first:end] for name, column in rows.items()}


def follow(method: str, classes: bool, n: int, seed: int = 0) -> tuple[int | None, float, float]:
    """Rows after the change until the right three lead, in which part of what follows they do, and
    processor seconds.
    """
    rows = changing_rows(n, classes, seed)
    model = StreamModel.for_rows(rows, "y", method).follow_importances()
    since: int | None = None
    later: list[bool] = []
    seconds = 0.0
    for first in range(0, n, _STEP):
        part = part_of(rows, first, first + _STEP)
        start = time.process_time()
        model.learn(part)
        seconds += time.process_time() - start
        if first >= n // 2:
            right = leading(model) == {f"x{k}" for k in SECOND}
            if since is None and right:
                since = first + _STEP - n // 2
            if since is not None:
                later.append(right)
    return since, float(np.mean(later or [False])), seconds


def plain_seconds(method: str, classes: bool, n: int, seed: int = 0) -> float:
    """The processor seconds that learning alone takes."""
    rows = changing_rows(n, classes, seed)
    model = StreamModel.for_rows(rows, "y", method)
    seconds = 0.0
    for first in range(0, n, _STEP):
        part = part_of(rows, first, first + _STEP)
        start = time.process_time()
        model.learn(part)
        seconds += time.process_time() - start
    return seconds


def main() -> None:
    """Rows until the right columns lead after a change, and the cost."""
    n = max(4000, int(share() * 20_000))

    def lines() -> Iterator[list[Any]]:
        for method in MODELS:
            for task, classes in TASKS.items():
                plain_seconds(method, classes, 500)  # compiled by now
                found = [follow(method, classes, n, seed) for seed in SEEDS]
                alone, took = [], []
                for _ in range(3):  # by turns: what else the machine does changes
                    alone.append(plain_seconds(method, classes, n))
                    took.append(follow(method, classes, n)[2])
                since = sorted(n if rows is None else rows for rows, _, _ in found)
                steady = 100.0 * float(np.mean([later for _, later, _ in found]))
                cost = 100.0 * (min(took) / min(alone) - 1.0)
                yield [
                    method, task, f"{sum(rows <= SOON for rows in since)} of {len(since)}",
                    f"{since[len(since) // 2]:,}", f"{since[-1]:,}", f"{steady:.0f} %",
                    f"{cost:.0f} %",
                ]  # fmt: skip

    show(
        f"Three of {COLUMNS} columns matter, other three after {n // 2:,} of {n:,} rows: rows "
        f"until those three lead, looked at every 250 rows, in {len(SEEDS)} streams, and what "
        "following it costs",
        ("model", "target", f"within {SOON:,}", "median", "last", "of the time from then on",
         "more time"),
        lines(),
    )  # fmt: skip
