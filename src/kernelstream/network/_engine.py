"""What runs the rounds of a network, and the engine in this process."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kernelstream.network._agent import Agent
from kernelstream.network._coupling import Coupling
from kernelstream.network._messages import Name, RoundRecord
from kernelstream.network.ray_engine import RayEngine


@runtime_checkable
class Engine(Protocol):
    """Holds the agents and carries their messages.

    All engines run the same :class:`Agent`, so that the same rounds give the same bits.
    """

    @property
    def dead(self) -> Mapping[Name, int]:
        """Agents that were given up, and in which round: they predict, but do nothing else."""

    def start(self, agents: Mapping[Name, Agent]) -> None:
        """Take over these agents, in place of any others; they may have learned already.

        Those that are behind the others died in that round, and stay dead.
        """

    def round(self, round: int, batches: Mapping[Name, tuple[Any, Any]]) -> dict[Name, RoundRecord]:
        """One round: agents with a batch open it, neighbours answer, all agents close it.

        No answer may come from an agent that has closed the round. All or nothing: if an agent
        refuses its batch, or anything else is raised, every agent abandons the round: nothing
        has changed, and it can be tried again. Answers that do not come are left out, batches
        of dead agents too. Returns the record of every agent that lives.
        """

    def change(
        self, ties: Mapping[Name, tuple[list[Name], Coupling]], new: Mapping[Name, Agent]
    ) -> dict[Name, Agent]:
        """Between rounds: the agents are those of ``ties``, with these neighbours and couplings.

        Those of ``new`` are taken over; they may have been here before. Dead ones stay dead unless
        they are new. Returns the agents that have left.
        """

    def agents(self) -> dict[Name, Agent]:
        """Copies of the agents as they are now."""

    def predict(self, name: Name, X: Any) -> NDArray[np.float64]:
        """(n, outputs): the values of agent ``name``."""

    def close(self) -> None:
        """Let go of the agents."""


class LocalEngine:
    """All agents in this process, one after the other: see :class:`Engine`.

    Examples
    --------
    >>> import networkx as nx
    >>> from kernelstream import make_multidist
    >>> from kernelstream.network import ConsensusNetwork, LocalEngine
    >>> network = ConsensusNetwork(nx.path_graph(3), penalty=0.1, gamma=1.0, engine=LocalEngine())
    >>> network.run(make_multidist(300, random_state=0), batch=10).round_
    10
    """

    def __init__(self) -> None:
        self._agents: dict[Name, Agent] = {}
        self.dead: dict[Name, int] = {}

    def start(self, agents: Mapping[Name, Agent]) -> None:
        """Take over copies of these agents."""
        self._agents = copy.deepcopy(dict(agents))
        latest = max((agent.round for agent in agents.values()), default=0)
        self.dead = {name: agent.round for name, agent in agents.items() if agent.round < latest}

    def round(self, round: int, batches: Mapping[Name, tuple[Any, Any]]) -> dict[Name, RoundRecord]:
        """One round of all agents."""
        living = {name: agent for name, agent in self._agents.items() if name not in self.dead}
        undecided = [agent for agent in living.values() if agent.round == round]
        try:
            requests = {
                name: living[name].open_round(round, X, y)
                for name, (X, y) in batches.items()
                if name in living
            }
            answers = {
                name: {
                    neighbour: living[neighbour].answer(request)
                    for neighbour in living[name].neighbours
                    if neighbour in living
                }
                for name, request in requests.items()
            }
            return {
                name: agent.close_round(round, answers.get(name, {}))
                for name, agent in living.items()
            }
        except BaseException:  # an interrupt, too, must not leave some a round ahead of others
            for agent in undecided:
                agent.abandon_round(round)
            raise

    def change(
        self, ties: Mapping[Name, tuple[list[Name], Coupling]], new: Mapping[Name, Agent]
    ) -> dict[Name, Agent]:
        """Other agents, or other neighbours."""
        left = {name: agent for name, agent in self._agents.items() if name not in ties}
        held = {**self._agents, **copy.deepcopy(dict(new))}
        for name, (neighbours, coupling) in ties.items():
            held[name].tie(neighbours, coupling)
        self._agents = {name: held[name] for name in ties}
        self.dead = {
            name: round for name, round in self.dead.items() if name in ties and name not in new
        }
        return left

    def agents(self) -> dict[Name, Agent]:
        """Copies of the agents as they are now."""
        return copy.deepcopy(self._agents)

    def predict(self, name: Name, X: Any) -> NDArray[np.float64]:
        """(n, outputs): the values of agent ``name``."""
        return self._agents[name].predict(X)

    def close(self) -> None:
        """Let go of the agents."""
        self._agents, self.dead = {}, {}


def make_engine(engine: str | Engine) -> Engine:
    """The engine that the parameter names."""
    if isinstance(engine, str):
        return LocalEngine() if engine == "local" else RayEngine()
    return engine
