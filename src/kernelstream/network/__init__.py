"""Learning in a network of agents."""

from kernelstream.network._agent import Agent
from kernelstream.network._coupling import Coupling
from kernelstream.network._engine import Engine, LocalEngine
from kernelstream.network._messages import Message, RoundRecord
from kernelstream.network._networks import ConsensusNetwork, ProximityNetwork
from kernelstream.network.ray_engine import RayEngine
from kernelstream.network.sharding import fit_sharded

__all__ = [
    "Agent",
    "ConsensusNetwork",
    "Coupling",
    "Engine",
    "LocalEngine",
    "Message",
    "ProximityNetwork",
    "RayEngine",
    "RoundRecord",
    "fit_sharded",
]
