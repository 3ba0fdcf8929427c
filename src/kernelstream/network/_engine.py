"""What runs the rounds of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kernelstream.network._agent import Agent
from kernelstream.network._local import LocalEngine
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

    def agents(self) -> dict[Name, Agent]:
        """Copies of the agents as they are now."""

    def predict(self, name: Name, X: Any) -> NDArray[np.float64]:
        """(n, outputs): the values of agent ``name``."""

    def close(self) -> None:
        """Let go of the agents."""


def make_engine(engine: str | Engine) -> Engine:
    """The engine that the parameter names."""
    if isinstance(engine, str):
        return LocalEngine() if engine == "local" else RayEngine()
    return engine
