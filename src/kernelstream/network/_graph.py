"""The graph that agents are on, and numbers that belong to its edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelstream.network._messages import Name


def import_networkx() -> Any:
    """networkx, or an error that says how to get it."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError("networks need networkx: pip install 'kernelstream[network]'") from error
    return networkx


def check_graph(graph: Any, allow_disconnected: bool) -> None:
    """Refuse what is no network of agents."""
    networkx = import_networkx()
    if not isinstance(graph, networkx.Graph):
        raise TypeError(f"graph must be a networkx.Graph, got {type(graph).__name__}")
    if graph.is_directed() or graph.is_multigraph():
        raise ValueError(
            "graph must be undirected, with at most one edge between two agents: answers go both "
            "ways; networkx.Graph(graph) makes one"
        )
    if not len(graph):
        raise ValueError("graph has no nodes: a network needs at least one agent")
    for name in graph.nodes:
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise ValueError(
                f"agents are named by strings or integers, got {name!r}; "
                "networkx.convert_node_labels_to_integers(graph) renames them"
            )
    loops = list(networkx.selfloop_edges(graph))
    if loops:
        raise ValueError(
            f"agent {loops[0][0]!r} is its own neighbour: it agrees with itself anyway; remove "
            "such edges with graph.remove_edges_from(networkx.selfloop_edges(graph))"
        )
    parts = networkx.number_connected_components(graph)
    if parts > 1 and not allow_disconnected:
        alone = [name for name in graph.nodes if graph.degree(name) == 0]
        hint = f" (agent {alone[0]!r} has no neighbour)" if alone else ""
        raise ValueError(
            f"graph falls into {parts} parts that never hear of one another{hint}: add edges, or "
            "say allow_disconnected=True"
        )


def own_graph(graph: Any) -> Any:
    """A copy that refuses changes: agents know their neighbours, and must be told of others."""
    own = graph.copy()
    known = set(vars(own))
    import_networkx().freeze(own)
    for name in set(vars(own)) - known - {"frozen"}:
        setattr(own, name, _refuse_change)  # networkx's own refusal names no way out
    return own


def _refuse_change(*_: Any, **__: Any) -> None:
    raise import_networkx().NetworkXError(
        "a network's graph cannot be changed from outside, its agents know their neighbours: "
        "change a copy, networkx.Graph(network.graph), and give it to network.change_graph"
    )


def per_edge(graph: Any, what: str, given: Any, name: Name) -> dict[Name, float]:
    """A number per neighbour from one number, a dict by edge, or an attribute of the edges."""
    numbers = {}
    for other in graph.neighbors(name):
        value = given
        if isinstance(given, str):
            value = graph.edges[name, other].get(given)
        elif isinstance(given, Mapping):
            value = given.get((name, other), given.get((other, name)))
        numbers[other] = as_strength(f"{what} of the edge {name!r} - {other!r}", value)
    return numbers


def by_edge(given: Mapping[Name, Any]) -> float | dict[tuple[Name, Name], float]:
    """One number if it is the same everywhere, else a number per edge and direction."""
    numbers = {
        (name, other): number for name, own in given.items() for other, number in own.items()
    }
    different = set(numbers.values())
    return numbers if len(different) > 1 else different.pop() if different else 0.0


def as_strength(what: str, value: Any) -> float:
    """A strength: finite, and not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{what} must be a number, got {value!r}")
    if not 0.0 <= value < np.inf:
        raise ValueError(f"{what} must be a finite number >= 0, got {value}")
    return float(value)
