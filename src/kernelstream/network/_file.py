"""Networks as files: the agents, those away too, the nodes and edges of the graph, and the trace.

The attributes of the graph are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream._version import __version__
from kernelstream.losses import Loss
from kernelstream.network._agent import Agent
from kernelstream.network._changes import settings_of
from kernelstream.network._graph import import_networkx, own_graph
from kernelstream.network._trace import NetworkTrace


def document(network: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """All that a network holds, as JSON values and arrays."""
    agents, dead, names = network.agents_, network._engine.dead, network._names
    late = [name for name in names if name not in dead and agents[name].round != network.round_]
    if late:
        raise RuntimeError(
            f"agent {late[0]!r} is in round {agents[late[0]].round}, the network in "
            f"{network.round_}: its last round was left half done"
        )
    if len(dead) == len(agents):
        raise RuntimeError("every agent is dead: there is no network left to save")
    columns = network._trace.state()
    arrays: dict[str, NDArray[Any]] = {"trace": np.array(list(columns.values()))}
    headers = []
    for place, name in enumerate(names):
        header, parts = agents[name].state()
        headers.append(header)
        arrays.update({f"agent{place}_{part}": array for part, array in parts.items()})
    away = []
    for place, agent in enumerate(network._away.values()):
        header, parts = agent.state()
        away.append(header)
        arrays.update({f"away{place}_{part}": array for part, array in parts.items()})
    return {
        "version": __version__,
        "loss": [network.loss.name, network.loss.number],
        "coupling": network.coupling,
        "two_way": network.two_way,
        "edges": [list(edge) for edge in network.graph.edges],
        "round": network.round_,
        "totals": network._totals,
        "violations": network._violations,
        "columns": list(columns),
        "every": network._trace.every,
        "open": network._trace.open,
        "dead": [name for name in names if name in dead],
        "agents": headers,
        "away": away,
        **_functions([*headers, *away]),
    }, arrays


def _functions(headers: list[dict[str, Any]]) -> dict[str, Any]:
    """What the file of a network needs beside its data, as its agents note it."""
    needed = sorted({name for header in headers for name in header.get("functions", [])})
    return {"functions": needed} if needed else {}


def _agents(
    notes: Any, arrays: Mapping[str, NDArray[Any]], prefix: str, constraint: Any
) -> dict[Any, Agent]:
    agents = {}
    for place, note in enumerate(notes):
        start = f"{prefix}{place}_"
        own = {n[len(start) :]: part for n, part in arrays.items() if n.startswith(start)}
        agents[note["name"]] = Agent.restore(note, own, constraint)
    return agents


def restore(
    network: Any,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    constraint: Any = None,
) -> None:
    """Make an empty network the one that :func:`document` was given, with the same constraint."""
    agents = _agents(header["agents"], arrays, "agent", constraint)
    away = _agents(header.get("away", []), arrays, "away", constraint)
    networkx = import_networkx()
    graph = networkx.Graph()
    graph.add_nodes_from(agents)
    graph.add_edges_from(header["edges"])
    latest, dead = header["round"], header["dead"]
    if (
        len(graph) != len(header["agents"])
        or latest not in {agent.round for agent in agents.values()}
        or any(
            set(agent.neighbours) != set(graph.neighbors(name))
            or not (agent.round == latest or (name in dead and agent.round < latest))
            for name, agent in agents.items()
        )
        or away.keys() & agents.keys()
        or any(agent.round > latest for agent in away.values())
    ):
        raise ValueError("the agents contradict the graph, or one another")
    network.graph = own_graph(graph)
    network.loss = Loss(*header["loss"])
    network.coupling, network.two_way = header["coupling"], bool(header["two_way"])
    network.allow_disconnected = not networkx.is_connected(graph)
    network._classes, network._settings, network._away = None, {}, away
    network._names = list(agents)
    first = next(iter(agents.values()))
    network._common = settings_of(first)
    network._seed = first.model.random_state or 0
    network._set_up("local")
    network.round_ = int(latest)
    network._totals = {name: float(header["totals"][name]) for name in network._totals}
    network._violations = {name: float(sum_) for name, sum_ in header["violations"].items()}
    rows = [dict(zip(header["columns"], row, strict=True)) for row in arrays["trace"].T.tolist()]
    network._trace = NetworkTrace(rows, int(header["every"]), int(header["open"]))
    network._recall({name: agent.coupling for name, agent in agents.items()})
    network._start(agents)
