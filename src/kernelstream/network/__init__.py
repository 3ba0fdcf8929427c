"""Learning in a network of agents."""

from kernelstream.network._agent import Agent, Coupling, Message, RoundRecord
from kernelstream.network._engine import Engine
from kernelstream.network._local import LocalEngine

__all__ = ["Agent", "Coupling", "Engine", "LocalEngine", "Message", "RoundRecord"]
