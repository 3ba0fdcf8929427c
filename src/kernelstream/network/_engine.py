"""What runs the rounds of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelstream.network._agent import Agent, Name, RoundRecord


class Engine(Protocol):
    """Holds the agents and carries their messages.

    All engines run the same :class:`Agent`, so that the same rounds give the same bits.
    """

    def start(self, agents: Mapping[Name, Agent]) -> None:
        """Take over these agents, in place of any others; they may have learned already."""

    def round(self, round: int, batches: Mapping[Name, tuple[Any, Any]]) -> dict[Name, RoundRecord]:
        """One round: agents with a batch open it, neighbours answer, all agents close it.

        No answer may come from an agent that has closed the round. If an agent refuses its batch
        no agent closes the round: nothing has changed, and it can be tried again. Answers that
        do not come are left out. Returns the record of every agent.
        """

    def agents(self) -> dict[Name, Agent]:
        """Copies of the agents as they are now."""

    def predict(self, name: Name, X: Any) -> NDArray[np.float64]:
        """(n, outputs): what agent ``name`` says."""

    def close(self) -> None:
        """Let go of the agents."""
