"""Small networks, and a stream for them."""

import networkx as nx

from kernelstream import (
    make_multidist,
)
from kernelstream.network import ConsensusNetwork, ProximityNetwork

COMMON = {"gamma": 0.8, "eta0": 1.0, "compression_error": 0.05, "random_state": 0}


def stream(n=240, seed=1):
    return make_multidist(n, random_state=seed)


def prints(network):
    return {name: agent.fingerprint() for name, agent in network.agents_.items()}


def consensus(graph=None, **parameters):
    return ConsensusNetwork(graph or nx.cycle_graph(4), **{**COMMON, **parameters})


def proximity(graph=None, **parameters):
    return ProximityNetwork(graph or nx.cycle_graph(4), **{**COMMON, **parameters})


NETWORKS = [consensus, proximity]
