"""Graphs that change between rounds: edges and agents that come, leave and return."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelstream.network._agent import Agent, settings_known
from kernelstream.network._graph import check_graph, own_graph
from kernelstream.network._messages import Name


def change_graph(network: Any, graph: Any) -> None:
    """Let the next round of a network take place on another graph; all or nothing."""
    check_graph(graph, network.allow_disconnected)
    before = network.graph, network._names, network._settings
    known = {*network._settings, *network._names, *network._away}
    network.graph, network._names = own_graph(graph), list(graph.nodes)
    first_time = [name for name in network._names if name not in known]
    network._settings = {
        **network._settings,
        **{
            name: network._settings_of(name, number)
            for number, name in enumerate(first_time, len(known))
        },
    }
    try:
        if network._started:
            _change_agents(network)
        else:
            network._check_agents()
    except BaseException:
        network.graph, network._names, network._settings = before
        raise


def check_schedule(network: Any, graphs: Any) -> dict[int, Any]:
    """Graphs by the number of the round that is the first on them."""
    if not isinstance(graphs, Mapping):
        raise TypeError(f"graphs must be a dict of round to graph, got {type(graphs).__name__}")
    for round, graph in graphs.items():
        if isinstance(round, bool) or not isinstance(round, int | np.integer):
            raise TypeError(f"graphs: rounds are whole numbers, got {round!r}")
        if round < network.round_:
            raise ValueError(
                f"graphs names round {round}, but {network.round_} rounds are over; rounds are "
                "counted from the first one on, as in round_"
            )
        check_graph(graph, network.allow_disconnected)
    return {int(round): graphs[round] for round in sorted(graphs)}


def _change_agents(network: Any) -> None:
    engine, round = network._engine, network.round_
    agents = engine.agents()
    new: dict[Name, Agent] = {}
    ties = {}
    for name in network._names:
        neighbours = list(network.graph.neighbors(name))
        coupling = network._coupling_of(name)
        if name not in agents:
            if name in network._away:
                new[name] = copy.deepcopy(network._away[name])
            else:
                new[name] = _fresh(network, next(iter(agents.values())), name, neighbours, coupling)
            new[name].join(round)
        # On a copy first: what is refused is refused before anything has changed.
        (new if name in new else agents)[name].tie(neighbours, coupling)
        ties[name] = neighbours, coupling
    left = engine.change(ties, new)
    network._away = {
        name: agent for name, agent in {**network._away, **left}.items() if name not in ties
    }


def _fresh(network: Any, like: Agent, name: Name, neighbours: list[Name], coupling: Any) -> Agent:
    """An agent that knows nothing yet, for samples like those of the others."""
    settings = network._settings[name]
    if settings.get("gamma") == "scale":  # it was fixed by the first round of all
        settings = {**settings, "gamma": like.model.gamma}
    return Agent(
        name, settings, neighbours, coupling, features=like.model.n_features_in_,
        classes=getattr(like.model, "classes_", None),
    )  # fmt: skip


def settings_of(agent: Agent) -> dict[str, Any]:
    """The parameters of an agent's model, for others like it."""
    known = settings_known(type(agent.model))
    return {name: getattr(agent.model, name) for name in known if name != "random_state"}
