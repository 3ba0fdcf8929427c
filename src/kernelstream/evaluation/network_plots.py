"""Pictures of a network: who errs, how far agents are apart, what each of them sees."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kernelstream.evaluation import drawing
from kernelstream.evaluation.drawing import CURVE_COLOR, INK, PALETTE, VALUE_COLORS
from kernelstream.evaluation.plots import plot_decision_surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Agents beyond this many are drawn without their names.
_MOST_NAMES = 60


def plot_network(
    network: Any,
    errors: Mapping[Any, float],
    *,
    positions: Mapping[Any, ArrayLike] | None = None,
    label: str = "test error",
    ax: Axes | None = None,
) -> Axes:
    """Draw the graph with every agent coloured by its error.

    Parameters
    ----------
    network : ConsensusNetwork or ProximityNetwork
    errors : dict of agent to float
        For example ``network.errors(X_test, y_test)``. An agent without one is white.
    positions : dict of agent to (x, y), optional
        Where the agents are; by default networkx places neighbours near one another.
    label : str
        What the colours mean.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import networkx as nx
    >>> from kernelstream.evaluation import plot_network
    >>> from kernelstream.network import ConsensusNetwork
    >>> network = ConsensusNetwork(nx.cycle_graph(5))
    >>> ax = plot_network(network, {name: 0.1 * name for name in range(5)})
    >>> len(ax.texts)
    5
    """
    plt = drawing.import_pyplot()
    graph = network.graph
    if positions is None:
        try:
            import networkx
        except ImportError as error:
            raise ImportError(
                "without positions networkx places the agents: pip install 'kernelstream[network]'"
            ) from error
        positions = networkx.spring_layout(graph, seed=0)
    places = {name: np.asarray(positions[name], dtype=float) for name in graph.nodes}
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
    for first, second in graph.edges:
        ends = np.array([places[first], places[second]])
        ax.plot(ends[:, 0], ends[:, 1], color="#B5B5B5", linewidth=1.0, zorder=1)
    spots = np.array([places[name] for name in graph.nodes])
    colors = np.array([errors.get(name, np.nan) for name in graph.nodes], dtype=float)
    size = 420.0 if len(places) <= 25 else 10_000.0 / len(places)
    blank = np.isnan(colors)
    common: dict[str, Any] = {"s": size, "edgecolors": INK, "linewidths": 0.9, "zorder": 2}
    ax.scatter(spots[blank, 0], spots[blank, 1], c="white", **common)
    shown = ax.scatter(
        spots[~blank, 0], spots[~blank, 1], c=colors[~blank], cmap=VALUE_COLORS, **common
    )
    if len(places) <= _MOST_NAMES:
        middle = np.nanmean(colors) if not blank.all() else 0.0
        for name, spot in places.items():
            dark = errors.get(name, np.inf) <= middle  # viridis is dark where it is low
            ax.text(
                spot[0], spot[1], str(name), ha="center", va="center", fontsize=8, zorder=3,
                color="white" if dark else INK,
            )  # fmt: skip
    ax.figure.colorbar(shown, ax=ax, label=label, shrink=0.8)
    ax.set_axis_off()
    return ax


def plot_network_trace(network: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw loss, disagreement, constraint violation, and points or multipliers over the rounds.

    Parameters
    ----------
    network : ConsensusNetwork or ProximityNetwork
    path : path-like, optional
        Where to save the picture; the suffix chooses the format.

    Examples
    --------
    >>> import networkx as nx
    >>> from kernelstream import make_multidist
    >>> from kernelstream.evaluation import plot_network_trace
    >>> from kernelstream.network import ConsensusNetwork
    >>> X, y = make_multidist(300, random_state=0)
    >>> network = ConsensusNetwork(nx.path_graph(3), penalty=0.1, gamma=1.0).run((X, y), batch=10)
    >>> len(plot_network_trace(network).axes)
    3
    """
    plt = drawing.import_pyplot()
    columns = network.trace_columns()
    if not columns:
        raise ValueError("The network has no rounds yet, there is nothing to plot")
    rounds = columns["round"] + 1
    multipliers = [name for name in columns if name.startswith("multiplier ")]
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(8.0, 7.2), layout="constrained")
    loss, apart, size = axes
    _smooth(loss, rounds, columns["loss"], PALETTE[0], "loss")
    loss.set_ylabel("mean loss")
    _smooth(apart, rounds, columns["disagreement"], CURVE_COLOR, "disagreement")
    if multipliers:
        violation = columns["average_violation"] / len(multipliers)
        apart.plot(rounds, violation, color=INK, linewidth=1.3, label="violation, mean so far")
    apart.set(yscale="log", ylabel="|f_i - f_j|²")
    if apart.get_legend_handles_labels()[0]:  # agents without neighbours disagree with nobody
        apart.legend(frameon=False, fontsize=9)
    for name in multipliers or [name for name in columns if name.startswith("points ")]:
        size.plot(rounds, columns[name], color=PALETTE[2], linewidth=0.8, alpha=0.6)
    size.set(ylabel="multipliers" if multipliers else "points of every agent", xlabel="rounds")
    for ax in axes:
        drawing.clean_axes(ax)
        drawing.grid_lines(ax)
    return drawing.saved(figure, path)


def plot_agent_surfaces(
    network: Any,
    X: ArrayLike,
    y: ArrayLike,
    agents: Sequence[Any] | None = None,
    *,
    resolution: int = 200,
) -> Figure:
    """Draw what single agents decide in the plane beside what the network decides.

    Parameters
    ----------
    network : network of classifiers with 2 features
    X, y : samples to draw
    agents : sequence of agents, optional
        By default the first two.
    resolution : int
        Grid points along the longer axis.

    Examples
    --------
    >>> import networkx as nx
    >>> from kernelstream import make_multidist
    >>> from kernelstream.evaluation import plot_agent_surfaces
    >>> from kernelstream.network import ConsensusNetwork
    >>> X, y = make_multidist(300, random_state=0)
    >>> network = ConsensusNetwork(nx.path_graph(3), penalty=0.1, gamma=1.0).run((X, y), batch=10)
    >>> len(plot_agent_surfaces(network, X, y, resolution=20).axes)
    3
    """
    plt = drawing.import_pyplot()
    if network.loss.for_regression:
        raise ValueError(
            "plot_agent_surfaces draws the decisions of classifiers; this network learns numbers"
        )
    chosen = list(network.graph.nodes)[:2] if agents is None else list(agents)
    if not chosen:
        raise ValueError("agents is empty: name at least one, or leave it out")
    figure, axes = plt.subplots(
        1, len(chosen) + 1, figsize=(4.3 * (len(chosen) + 1), 4.0), layout="constrained"
    )
    for name, ax in zip([*chosen, None], axes, strict=True):
        model = network if name is None else network.model(name)
        plot_decision_surface(model, X, y, ax=ax, resolution=resolution, show_legend=False)
        title = "the network's mean" if name is None else f"agent {name}"
        ax.set_title(title, loc="left", fontsize=11)
    return figure  # type: ignore[no-any-return]


def _smooth(ax: Axes, rounds: Any, values: Any, color: str, label: str) -> None:
    """The rows as they are, pale, and their running mean over a fortieth of all rows."""
    width = max(1, len(values) // 40)
    known = ~np.isnan(values)
    rounds, values = rounds[known], values[known]
    ax.plot(rounds, values, color=color, linewidth=0.6, alpha=0.35)
    if len(values) >= width:
        mean = np.convolve(values, np.full(width, 1.0 / width), mode="valid")
        ax.plot(rounds[width - 1 :], mean, color=color, linewidth=1.8, label=label)
