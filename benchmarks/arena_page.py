"""Results of the arena as files, pictures and pages.

``python -m benchmarks arena-page`` writes them from what has been measured so far; what has not
been measured here comes from ``benchmarks/recorded``, where the cells behind the page are. The text
between the marks of ``docs/arena.md`` and ``docs/which_method.md`` is written here; so no number,
nor any sentence that follows from numbers, is typed by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import arena
from benchmarks.arena_methods import contestants, titles
from benchmarks.arena_pictures import draw_ranks, draw_sheet, draw_stream
from benchmarks.arena_statistics import Comparison, compare
from benchmarks.arena_streams import ORDERS, sources
from benchmarks.share import share

DOCS, RECORDED = Path("docs"), Path("benchmarks", "recorded")
#: What makes a cell.
CELL = ["stream", "order", "method", "budget"]
BEGIN, END = "<!-- arena: written by python -m benchmarks arena -->", "<!-- end of arena -->"
KINDS = {False: ("classes", "mistakes, %"), True: ("numbers", "RMSE, deviations of the target")}
#: Looked at one by one in the verdict.
OURS = ("auto", "polk", "avm")
#: Within so much of the best error counts as best.
CLOSE = 1.02


def main() -> None:
    """Write results, pictures and the text of the pages."""
    frame = measured()
    if frame.empty:
        print("Nothing has been measured yet: python -m benchmarks arena")
        return
    for path in write_results(frame):
        print(f"Results: {path}")
    mean = over_orders(frame)
    draw(mean, frame.order.nunique())
    pages = {"arena.md": "\n".join(report(frame, mean)), "which_method.md": "\n".join(choice(mean))}
    for name, text in pages.items():
        if (DOCS / name).exists():
            _put(DOCS / name, text)
        else:
            print(text)


def measured() -> pd.DataFrame:
    """One row a cell, the newest; of the methods and streams that there are now."""
    frame = pd.DataFrame(list(arena.stored()))
    if not frame.empty:
        frame["parameters"] = frame.parameters.map(json.dumps)
    if recorded().exists():
        frame = pd.concat([pd.read_parquet(recorded()), frame], ignore_index=True)
    if frame.empty:
        return frame
    known = {*contestants(False), *contestants(True), *arena.BASELINES}
    frame = frame[frame.method.isin(known) & frame.stream.isin(list(sources()))]
    return frame.drop_duplicates(CELL, keep="last").sort_values(CELL, ignore_index=True)


def recorded() -> Path:
    """The cells behind the page in ``docs``."""
    return RECORDED / arena.results("parquet").name


def write_results(frame: pd.DataFrame) -> Iterator[Path]:
    """All cells, as CSV and Parquet; those of an arena in all orders also beside the page."""
    paths = [arena.results("csv"), arena.results("parquet")]
    if RECORDED.exists() and arena.plan().orders == ORDERS:
        paths.append(recorded())
    paths[0].parent.mkdir(exist_ok=True)
    for path in paths:
        if path.suffix == ".csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path, index=False)
        yield path


def over_orders(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the orders of cells that have them all; a run that failed makes its infinite."""
    cells = frame.groupby(["stream", "numbers", "method", "budget"], sort=False)
    mean = cells[["error", "us", "points", "bytes"]].mean()
    with np.errstate(invalid="ignore"):  # of failed runs
        mean["spread"] = cells.error.std() / mean.error
    return mean[cells.order.nunique() == frame.order.nunique()].reset_index()


def learned(mean: pd.DataFrame, numbers: bool) -> pd.DataFrame:
    """What methods did, without the baselines."""
    return mean[(mean.numbers == numbers) & ~mean.method.isin(arena.BASELINES)]


def errors(mean: pd.DataFrame, budget: int) -> pd.DataFrame:
    """Streams x methods at a budget: streams that all methods have seen."""
    part = mean[mean.budget == budget]
    return part.pivot(index="stream", columns="method", values="error").dropna()


def comparison(table: pd.DataFrame) -> Comparison:
    """Ranks and tests over the streams of a table."""
    return compare(list(table.columns), table.to_numpy())


# ---- pictures --------------------------------------------------------------------------------


def draw(mean: pd.DataFrame, orders: int) -> None:
    """A picture per stream in ``build/``; sheets and diagrams for the page."""
    names = titles()
    images = DOCS / "images" if (DOCS / "images").exists() else Path("build")
    for numbers, (kind, what) in KINDS.items():
        part = learned(mean, numbers)
        for stream, runs in part.groupby("stream"):
            draw_stream(Path("build") / "arena" / f"{stream}.png", stream, runs, what, names)
        for cost, word in (("us", "time"), ("bytes", "memory")):
            draw_sheet(images / f"arena_{kind}_{word}.png", part, cost, names)
        table = errors(part, arena.plan().usual)
        if len(table) > 1:
            title = f"{kind}, budget {arena.plan().usual}: mean ranks over {len(table)} streams, "
            title += "one order" if orders == 1 else f"{orders} orders of each"
            draw_ranks(images / f"arena_{kind}_ranks.png", comparison(table), title, names)


# ---- the page of the arena -------------------------------------------------------------------


def report(frame: pd.DataFrame, mean: pd.DataFrame) -> Iterator[str]:
    """What was measured, ranks, tests, pictures and the verdict."""
    today, count = arena.plan(), frame.order.nunique()
    orders = "one order" if count == 1 else f"{count} orders"
    size = "the whole arena" if share() >= 1.0 else f"a smaller arena, share {share():g}"
    yield (
        f"*These are results of {size}: {frame.stream.nunique()} streams of at most "
        f"{today.rows:,} rows, each in {orders}, budgets {', '.join(map(str, today.budgets))}, "
        f"{today.trials} trials a method in each order on the first {today.first:,} rows (a "
        f"quarter of short streams), which are not scored; {len(frame):,} cells.*\n"
    )
    for numbers, (kind, what) in KINDS.items():
        part = learned(mean, numbers)
        table = errors(part, arena.plan().usual)
        if len(table) < 2:
            continue
        found = comparison(table)
        yield f"## {kind.capitalize()}: {what}\n"
        yield (
            f"{len(found.names)} methods on {found.streams} streams; an error is the mean over "
            f"{orders}. That all methods are alike has p = {found.friedman:.1g} (Friedman, budget "
            f"{today.usual}); mean ranks {found.distance:.1f} apart differ by Nemenyi's test at "
            "5 %.\n"
        )
        yield from _table(*_rank_table(part, mean, numbers))
        yield f"![Mean ranks, {kind}](images/arena_{kind}_ranks.png)\n"
        yield from _verdict(table)
        yield f"![Error against time, {kind}](images/arena_{kind}_time.png)\n"
        yield f"![Error against memory, {kind}](images/arena_{kind}_memory.png)\n"
    failed = frame[frame.failed != ""]
    if len(failed):
        times = failed.method.map(titles()).value_counts()
        counts = ", ".join(f"{name} {count}" for name, count in times.items())
        yield f"Runs that ended with an error and count as last: {counts} (of {len(frame)} runs).\n"


def _rank_table(
    part: pd.DataFrame, mean: pd.DataFrame, numbers: bool
) -> tuple[list[str], Iterable[Sequence[str]]]:
    budgets = sorted(part.budget.unique())
    tables = {budget: errors(part, budget) for budget in budgets}
    ranks = {
        b: dict(zip((c := comparison(t)).names, c.ranks, strict=True)) for b, t in tables.items()
    }
    usual = tables[arena.plan().usual]
    ratio = usual.div(usual.min(axis=1), axis=0).median()
    close = (usual.le(CLOSE * usual.min(axis=1), axis=0)).sum()
    idle = mean[(mean.numbers == numbers) & mean.method.isin(arena.BASELINES)]
    idle = idle.pivot(index="stream", columns="method", values="error").min(axis=1)
    behind = usual.gt(idle.reindex(usual.index), axis=0).sum()
    at_usual = part[part.budget == arena.plan().usual].groupby("method")
    cost = at_usual[["us", "bytes", "spread"]].median()
    columns = [
        "method", *(f"rank at {b}" for b in budgets), "best or within 2 %",
        "error / best, median", "orders differ by, %", "worse than no model", "µs a row", "bytes",
    ]  # fmt: skip

    def lines() -> Iterator[Sequence[str]]:
        for name in sorted(usual.columns, key=lambda n: ranks[arena.plan().usual][n]):
            yield [
                titles().get(name, name), *(f"{ranks[b][name]:.1f}" for b in budgets),
                f"{close[name]}", f"{ratio[name]:.2f}", f"{100.0 * cost.spread[name]:.1f}",
                f"{behind[name]}",
                f"{cost.us[name]:.1f}", f"{cost.bytes[name]:,.0f}",
            ]  # fmt: skip

    return columns, lines()


def _verdict(table: pd.DataFrame) -> Iterator[str]:
    """Where the methods of the papers and the automatic model win, and where they do not."""
    best, names = table.min(axis=1), titles()
    for name in OURS:
        if name not in table:
            continue
        wins = sorted(table.index[table[name] <= CLOSE * best])
        losses = (table[name] / best).drop(wins).sort_values(ascending=False)
        losses = losses[losses > 1.1].head(4)
        told = ", ".join(
            f"{stream} ({table[name][stream]:.3g} against {best[stream]:.3g} of "
            f"{names.get(table.loc[stream].idxmin(), '')})"
            for stream in losses.index
        )  # fmt: skip
        won = f" ({', '.join(wins)})" if wins else ""
        yield (
            f"* **{names[name]}** is the best or within 2 % of it on {len(wins)} of {len(table)} "
            f"streams{won}. " + (f"It loses most on {told}." if told else "It loses nowhere.")
        )
    yield ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + " --- |" * len(columns)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


# ---- which method? ---------------------------------------------------------------------------


def choice(mean: pd.DataFrame) -> Iterator[str]:
    """For each situation the methods with the best mean ranks."""
    drifting = {name: source.drifts for name, source in sources().items()}
    yield from _table(
        [
            "you have",
            "streams",
            "first",
            "second",
            "third",
            "the quickest within 10 % of the first",
        ],
        _situations(mean, drifting),
    )


def _situations(mean: pd.DataFrame, drifting: dict[str, bool]) -> Iterator[Sequence[str]]:
    for numbers, (kind, _) in KINDS.items():
        part = learned(mean, numbers)
        cost = part.groupby("method")[["us", "bytes"]].median()
        for drifts, words in ((False, "in any order"), (True, "in time order, which may drift")):
            chosen = part[part.stream.map(drifting) == drifts]
            yield from _line(f"{kind}, {words}", chosen, cost)
        for column, words in (("us", "time"), ("bytes", "memory")):
            few = cost.index[cost[column] <= cost[column].quantile(1 / 3)]
            yield from _line(
                f"{kind}, and little {words} (the most frugal third of the methods)",
                part[part.method.isin(few)], cost,
            )  # fmt: skip


def _line(words: str, part: pd.DataFrame, cost: pd.DataFrame) -> Iterator[Sequence[str]]:
    table = errors(part, arena.plan().usual)
    if len(table) < 2 or table.shape[1] < 3:
        return
    found = comparison(table)
    names = titles()
    shown = [
        f"{names.get(n, n)} ({rank:.1f})"
        for n, rank in zip(found.names[:3], found.ranks, strict=False)
    ]
    near = table.div(table[found.names[0]], axis=0).median().le(1.1)  # 0 / 0 does not count
    quick = cost.us[near.index[near]].idxmin()
    yield [words, str(len(table)), *shown, f"{names.get(quick, quick)} ({cost.us[quick]:.1f} µs)"]


def _put(path: Path, text: str) -> None:
    """Between the marks of a page."""
    page = path.read_text(encoding="utf-8")
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    path.write_text(f"{page[:start]}\n\n{text.strip()}\n\n{page[end:]}", encoding="utf-8")
    print(f"Page: {path}")
