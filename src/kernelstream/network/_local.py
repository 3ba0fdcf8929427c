"""The engine in this process."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.network._agent import Agent, Name, RoundRecord


class LocalEngine:
    """All agents in this process, one after the other: see :class:`Engine`."""

    def __init__(self) -> None:
        self._agents: dict[Name, Agent] = {}

    def start(self, agents: Mapping[Name, Agent]) -> None:
        """Take over copies of these agents."""
        self._agents = copy.deepcopy(dict(agents))

    def round(self, round: int, batches: Mapping[Name, tuple[Any, Any]]) -> dict[Name, RoundRecord]:
        """One round of all agents."""
        requests = {
            name: self._agents[name].open_round(round, X, y) for name, (X, y) in batches.items()
        }
        answers = {
            name: {
                neighbour: self._agents[neighbour].answer(request)
                for neighbour in self._agents[name].neighbours
            }
            for name, request in requests.items()
        }
        return {
            name: agent.close_round(round, answers.get(name, {}))
            for name, agent in self._agents.items()
        }

    def agents(self) -> dict[Name, Agent]:
        """Copies of the agents as they are now."""
        return copy.deepcopy(self._agents)

    def predict(self, name: Name, X: Any) -> NDArray[np.float64]:
        """(n, outputs): what agent ``name`` says."""
        return self._agents[name].predict(X)

    def close(self) -> None:
        """Let go of the agents."""
        self._agents = {}
