"""
Agents that learn together
==========================

Twelve agents on a random graph, each with a stream of its own of which it sees two classes only.
Alone they know nothing of the other three. Coupled both ways, they learn from their neighbours'
answers what none of them has seen a label of.
"""

import networkx as nx
import numpy as np

from kernelstream import make_multidist
from kernelstream.evaluation import plot_agent_surfaces, plot_network, plot_network_trace
from kernelstream.network import ConsensusNetwork

X, y, X_test, y_test = make_multidist(12_000, n_test=2000, random_state=6)
graph = nx.connected_watts_strogatz_graph(12, 4, 0.3, seed=1)


def stream(agent):
    """Every twelfth sample, of two classes only."""
    rows = np.arange(agent, len(y), 12)
    rows = rows[np.isin(y[rows], [agent % 5, (agent + 1) % 5])]
    return X[rows], y[rows]


streams = {agent: stream(agent) for agent in graph.nodes}


def learn(penalty):
    """The same agents with another penalty."""
    network = ConsensusNetwork(
        graph,
        penalty=penalty,
        two_way=True,
        gamma=1 / 1.2,
        eta0=2.0,
        compression_error=0.1,
        random_state=0,
    ).run(streams, batch=5)
    errors = network.errors(X_test, y_test)
    sent = network.trace_["bytes"].iloc[-1] / 1e6 if penalty else 0.0
    print(f"penalty {penalty}: mean test error {np.mean(list(errors.values())):.1%}, {sent:.1f} MB")
    return network, errors


# %%
alone, errors_alone = learn(penalty=0.0)
together, errors_together = learn(penalty=0.3)

# %%
# Every agent by its error, coupled.
ax = plot_network(together, errors_together)

# %%
# How the agents came closer to one another.
figure = plot_network_trace(together)

# %%
# Two agents and the mean of all: alone ...
figure = plot_agent_surfaces(alone, X[:600], y[:600], [0, 2])

# %%
# ... and coupled.
figure = plot_agent_surfaces(together, X[:600], y[:600], [0, 2])
