"""Graphs that change between rounds: against a student's network, in files, and what is refused."""

import networkx as nx
import numpy as np
import pytest

from kernelstream.network import ConsensusNetwork, ProximityNetwork
from tests.naive import kernels
from tests.naive.network import network as naive_network

COMMON = {
    "loss": "squared_error", "gamma": 2.0, "eta0": 0.4, "alpha": 0.01, "compression_error": 0.05,
    "random_state": 0,
}  # fmt: skip
NAMES = ["a", "b", "c", "d", "e"]
ROUNDS = 24
RING = nx.relabel_nodes(nx.cycle_graph(5), dict(enumerate(NAMES)))
STAR = nx.relabel_nodes(nx.star_graph(4), dict(enumerate(NAMES)))
WITHOUT_B = nx.Graph(STAR.subgraph(["a", "c", "d", "e"]))
LARGER = nx.Graph([*STAR.edges, ("b", "f")])
#: A ring that becomes a star midway, an agent that leaves and returns, one that is new.
GRAPHS = {6: STAR, 12: WITHOUT_B, 18: LARGER}
WAYS = {
    "consensus": (ConsensusNetwork, {"penalty": 0.5}, {"penalty": 0.5}),
    "proximity": (
        ProximityNetwork,
        {"tolerance": 0.01, "dual_regularisation": 0.5},
        {"tolerance": 0.01, "fading": 0.5},
    ),
}


def rounds_of(graphs, rounds=ROUNDS, batch=2, seed=0):
    """For every round the graph, and a batch for each of its agents."""
    random = np.random.default_rng(seed)
    graph, made = RING, []
    for number in range(rounds):
        graph = graphs.get(number, graph)
        batches = {}
        for name in [*NAMES, "f"]:
            X = random.normal(size=(batch, 2))
            y = np.sin(2.0 * X[:, 0]) + 0.2 * ord(name) - 20.0
            if name in graph:
                batches[name] = X, y
        made.append((graph, batches))
    return made


def learn(network, made, before_round=lambda number: None):
    for number, (graph, batches) in enumerate(made):
        before_round(number)
        if set(graph.edges) != set(network.graph.edges):
            network.change_graph(graph)
        network.partial_fit_round(batches)
    return network


def fingerprints(network):
    return {name: agent.fingerprint() for name, agent in network.agents_.items()}


@pytest.mark.parametrize("two_way", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_equals_the_naive_network_on_changing_graphs(way, two_way):
    make, given, naive = WAYS[way]
    made = rounds_of(GRAPHS)
    network = learn(make(RING, two_way=two_way, **given, **COMMON), made)
    nodes, _ = naive_network(
        kernels.gaussian(2.0), None, [batches for _, batches in made], 2, "squared_error", eta=0.4,
        regularisation=0.01, budget=0.05, two_way=two_way, **naive,
        graphs=[{name: list(graph[name]) for name in graph} for graph, _ in made],
    )  # fmt: skip
    grid = np.random.default_rng(9).normal(size=(30, 2))
    assert set(network.agents_) == set(nodes) == set(LARGER)
    for name, agent in network.agents_.items():
        node = nodes[name]
        expected = kernels.matrix(kernels.gaussian(2.0), grid, node.points) @ node.weights
        np.testing.assert_allclose(agent.predict(grid), expected, rtol=0.0, atol=1e-9)
        multipliers = [node.multipliers[j] for j in agent.neighbours]
        np.testing.assert_allclose(agent.multipliers, multipliers, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_a_schedule_is_the_same_as_calls(way):
    make, given, _ = WAYS[way]
    by_call = learn(make(RING, **given, **COMMON), rounds_of(GRAPHS))
    made = rounds_of(GRAPHS)
    streams = {
        name: iter([batches[name] for _, batches in made if name in batches])
        for name in [*NAMES, "f"]
    }
    scheduled = make(RING, **given, **COMMON).run(streams, graphs=GRAPHS)
    assert scheduled.round_ == ROUNDS
    assert fingerprints(scheduled) == fingerprints(by_call)


def test_an_agent_that_is_away_knows_what_it_knew(tmp_path):
    made = rounds_of(GRAPHS)
    network = learn(ConsensusNetwork(RING, penalty=0.5, **COMMON), made[:12])
    X = made[0][1]["a"][0]
    before = network.predict(X, agent="b")
    learn(network, [])
    for graph, batches in made[12:15]:
        network.change_graph(graph)
        network.partial_fit_round(batches)
    assert np.array_equal(network.predict(X, agent="b"), before)
    assert np.array_equal(network.model("b").predict(X), before)
    assert list(network.agents_) == ["a", "c", "d", "e"]
    mean = np.mean([network.predict(X, agent=name) for name in network.agents_], axis=0)
    np.testing.assert_array_equal(network.predict(X), mean)
    with pytest.raises(ValueError, match="'b', which is not in the graph"):
        network.partial_fit_round({"b": made[0][1]["b"]})
    # In a file, too; and it goes on with the same bits.
    network.save(tmp_path / "network.ks")
    loaded = ConsensusNetwork.load(tmp_path / "network.ks")
    assert np.array_equal(loaded.predict(X, agent="b"), before)
    for one in (network, loaded):
        one.change_graph(RING)
        for _, batches in rounds_of({}, rounds=3, seed=5):
            one.partial_fit_round(batches)
    assert fingerprints(loaded) == fingerprints(network)
    assert loaded.agents_["b"].round == network.round_ == 18
    assert not np.array_equal(network.predict(X, agent="b"), before)
    # Agents of a loaded network are like the first one.
    loaded.change_graph(nx.Graph([*RING.edges, ("a", "z")]))
    assert loaded.agents_["z"].model.eta0 == COMMON["eta0"]
    assert np.array_equal(loaded.predict(X, agent="z"), np.zeros(len(X)))


def test_the_graph_may_change_before_the_first_round():
    made = rounds_of({})
    early = ConsensusNetwork(RING, penalty=0.5, **COMMON).change_graph(STAR)
    fresh = ConsensusNetwork(STAR, penalty=0.5, **COMMON)
    for network in (early, fresh):
        for _, batches in made[:5]:
            network.partial_fit_round(batches)
    assert fingerprints(early) == fingerprints(fresh)


def test_a_stream_stands_still_while_its_agent_is_away():
    random = np.random.default_rng(0)
    streams = {name: (random.normal(size=(8, 2)), random.normal(size=8)) for name in NAMES}
    network = ConsensusNetwork(RING, penalty=0.5, **COMMON)
    network.run(streams, graphs={2: WITHOUT_B, 4: RING})
    assert network.round_ == 10  # b has two rounds to go when the others have ended
    assert {agent.model.n_seen_ for agent in network.agents_.values()} == {8}
    gone = ConsensusNetwork(RING, penalty=0.5, **COMMON).run(streams, graphs={2: WITHOUT_B})
    assert (gone.round_, gone.model("b").n_seen_) == (8, 2)


def test_gamma_of_later_agents_is_that_of_the_others():
    made = rounds_of({3: LARGER}, rounds=5)
    network = learn(ConsensusNetwork(RING, **{**COMMON, "gamma": "scale"}), made)
    assert len({agent.model.gamma for agent in network.agents_.values()}) == 1


def test_changes_that_are_refused_change_nothing():
    made = rounds_of({})
    penalties = dict.fromkeys(RING.edges, 0.1)
    network = ConsensusNetwork(RING, penalty=penalties, coupling="explicit", **COMMON)
    network = learn(network, made[:3])
    before = fingerprints(network)
    apart = nx.Graph([("a", "b"), ("c", "d")])
    for graph, message in (
        (apart, "falls into 2 parts"),
        (STAR, "penalty of the edge 'a' - 'c' must be a number, got None"),
    ):
        with pytest.raises(ValueError, match=message):
            network.change_graph(graph)
        assert set(network.graph.edges) == set(RING.edges)
    assert fingerprints(network) == before
    strong = ConsensusNetwork(RING, penalty=0.8, coupling="explicit", **COMMON)
    learn(strong, made[:3])
    before = fingerprints(strong)
    with pytest.raises(ValueError, match=r"agent 'a': .* would overshoot"):
        strong.change_graph(STAR)  # the centre of a star has four neighbours
    assert fingerprints(strong) == before
    learn(strong, made[3:5])
    for graphs, error, message in (
        ([STAR], TypeError, "a dict of round to graph"),
        ({"3": STAR}, TypeError, "rounds are whole numbers"),
        ({2: STAR}, ValueError, "5 rounds are over"),
        ({7: apart}, ValueError, "falls into 2 parts"),
    ):
        with pytest.raises(error, match=message):
            strong.run({}, graphs=graphs)
