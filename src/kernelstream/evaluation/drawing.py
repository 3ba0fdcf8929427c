"""How the pictures look: colours, axes, legends, files.

Matplotlib is imported when a picture is asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelstream.errors import naming

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can distinguish. Their black is left to the
# dictionary; sky blue and yellow come last, being close to blue and faint on white.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
SAMPLE_COLOR = "#56B4E9"
CURVE_COLOR = "#D55E00"
INK = "#1A1A1A"
VALUE_COLORS = "viridis"


def import_pyplot() -> Any:
    """Matplotlib, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Plots need Matplotlib, which is not installed: pip install kernelstream[plot]"
        ) from error
    return plt


def marker_size(n_samples: int) -> float:
    """Smaller where there are many."""
    return float(np.clip(9000 / n_samples, 4, 26))


def legend_marker(label: str, *, marker: str, color: Any, size: float) -> Any:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker=marker, color=color, ms=size, label=label)


def legend_outside(ax: Axes, handles: list[Any]) -> None:
    """To the right of the axes."""
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    ax.legend(handles=handles, frameon=False, fontsize=9, borderaxespad=0.2, **place)


def grid_lines(ax: Axes) -> None:
    """Pale lines behind what is drawn."""
    ax.grid(color="#E6E6E6", linewidth=0.7)
    ax.set_axisbelow(True)


def right_axis(ax: Axes) -> Axes:
    """A second scale, on the right."""
    other = ax.twinx()
    clean_axes(other)
    other.spines["left"].set_visible(False)
    other.spines["right"].set_visible(True)
    return other  # type: ignore[no-any-return]


def saved(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    """The figure, which is saved where a path is given."""
    if path is not None:
        with naming(path):
            figure.savefig(path, dpi=150)
    return figure


def clean_axes(ax: Axes) -> None:
    """Two pale axes."""
    ax.tick_params(length=3, color="#9A9A9A", labelsize=9, labelcolor="#4D4D4D")
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#9A9A9A")
