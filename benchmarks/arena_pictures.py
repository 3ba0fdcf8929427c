"""Pictures of the arena: what is on the Pareto front of each stream, and who differs from whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from benchmarks.arena_statistics import Comparison

#: Methods of the five papers, of this package's own, and all others.
COLOURS = {"polk": "#D55E00", "avm": "#0072B2", "auto": "#009E73", "colk": "#CC79A7"}
OTHERS = "#B0B0B0"
COSTS = {"us": "µs per row", "bytes": "bytes"}


def front(costs: Any, errors: Any) -> list[int]:
    """Places of the runs that no other run beats in both, from the cheapest to the dearest."""
    found: list[int] = []
    for place in np.lexsort((errors, costs)):
        if np.isfinite(errors[place]) and (not found or errors[place] < errors[found[-1]]):
            found.append(int(place))
    return found


def draw_front(axes: Axes, runs: Any, cost: str, titles: dict[str, str]) -> None:
    """Error against a cost; ``runs`` are rows of a frame with method, error and costs."""
    runs = runs[np.isfinite(runs.error) & (runs[cost] > 0)]
    if runs.empty:
        return
    for method, group in runs.groupby("method"):
        colour, above = COLOURS.get(method, OTHERS), method in COLOURS
        axes.plot(
            group[cost], group.error, "o", ms=4.5 if above else 3, color=colour, zorder=2 + above,
            label=titles.get(method, method) if above else None,
        )  # fmt: skip
    costs, errors = runs[cost].to_numpy(), runs.error.to_numpy()
    places = front(costs, errors)
    axes.step(costs[places], errors[places], where="post", color="#404040", lw=0.9, zorder=2)
    named = set()
    for place in places:
        method = runs.method.iloc[place]
        if method not in named:
            named.add(method)
            axes.annotate(
                titles.get(method, method), (costs[place], errors[place]), fontsize=6,
                xytext=(2, 3), textcoords="offset points",
            )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter(NullFormatter())  # 2 and 3 times a power run into one another
    # What is far worse than most would squeeze the rest into a line.
    low, high = errors.min(), np.quantile(errors, 0.9)
    margin = 0.08 * (high - low) or 0.01
    axes.set_ylim(max(0.0, low - margin), high + 2 * margin)
    axes.grid(color="#E6E6E6", linewidth=0.7)
    axes.tick_params(labelsize=7)


def draw_stream(path: Path, stream: str, runs: Any, what: str, titles: dict[str, str]) -> None:
    """A picture of its own: error against time and against memory."""
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    for place, (cost, label) in zip(axes, COSTS.items(), strict=True):
        draw_front(place, runs, cost, titles)
        place.set_xlabel(label)
        place.set_ylabel(what)
    axes[0].legend(frameon=False, fontsize=7)
    figure.suptitle(stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_sheet(path: Path, frame: Any, cost: str, titles: dict[str, str]) -> None:
    """All streams of a frame in one picture."""
    streams = list(dict.fromkeys(frame.stream))
    columns = 4
    lines = -(-len(streams) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(11.0, 2.3 * lines), layout="constrained", squeeze=False
    )
    for place, axis in enumerate(axes.flat):
        if place >= len(streams):
            axis.axis("off")
            continue
        draw_front(axis, frame[frame.stream == streams[place]], cost, titles)
        axis.set_title(streams[place], fontsize=8)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False, fontsize=8)
    figure.supxlabel(COSTS[cost], fontsize=9)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw_ranks(path: Path, found: Comparison, title: str, titles: dict[str, str]) -> None:
    """A critical-difference diagram: methods at their mean ranks, bars join what is alike."""
    k = len(found.names)
    half = (k + 1) // 2
    bars = found.groups
    top = 0.8 + 0.22 * len(bars)
    figure, axes = plt.subplots(figsize=(9.5, 0.9 + 0.24 * half + 0.2 * len(bars)))
    low, high = 1.0, float(max(np.ceil(found.ranks.max()), 2.0))
    axes.set_xlim(low - 0.32 * (high - low), high + 0.32 * (high - low))
    axes.set_ylim(-(top + 0.55 * half + 0.2), 1.6)
    axes.axis("off")
    axes.hlines(0.0, low, high, color="black", lw=1.0)
    for tick in np.arange(1, int(high) + 1, max(1, int(high) // 12)):
        axes.vlines(tick, 0.0, 0.15, color="black", lw=1.0)
        axes.text(tick, 0.25, f"{tick:g}", ha="center", fontsize=7)
    for place, (name, rank) in enumerate(zip(found.names, found.ranks, strict=True)):
        left = place < half
        level = -(top + 0.55 * (place if left else k - 1 - place))
        edge = low - 0.02 * (high - low) if left else high + 0.02 * (high - low)
        colour = COLOURS.get(name, "black")
        axes.plot([rank, rank, edge], [0.0, level, level], color=colour, lw=0.8)
        axes.text(
            edge, level, f" {titles.get(name, name)} ({rank:.1f}) ", va="center", fontsize=7,
            ha="right" if left else "left", color=colour,
        )  # fmt: skip
    for place, (first, last) in enumerate(bars):
        level = -(0.35 + 0.22 * place)
        axes.hlines(level, found.ranks[first] - 0.04, found.ranks[last] + 0.04, lw=2.6, color="k")
    axes.hlines(1.0, low, min(high, low + found.distance), color="#606060", lw=1.4)
    axes.text(low, 1.15, f"Nemenyi {found.distance:.1f}", fontsize=7, color="#606060")
    axes.set_title(title, fontsize=9)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
