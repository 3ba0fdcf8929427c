"""Graphs, arguments and samples that networks refuse: nothing changes anywhere."""

import copy
import sys

import networkx as nx
import numpy as np
import pytest

import kernelstream
from kernelstream import (
    DivergenceError,
)
from kernelstream.network import ConsensusNetwork
from tests.network.tools import NETWORKS, consensus, prints, proximity, stream


@pytest.mark.parametrize("make", NETWORKS)
def test_a_bad_sample_anywhere_changes_nothing_everywhere(make):
    X, y = stream()
    network, reference = make(classes=range(5)), make(classes=range(5))
    bad = X[:5].copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"agent 3: .*NaN at row 3, column 1"):
        network.partial_fit_round([(X[:5], y[:5])] * 3 + [(bad, y[:5])])
    with pytest.raises(RuntimeError, match="learned nothing yet"):
        network.predict(X)
    for _ in range(3):
        for learner in (network, reference):
            learner.partial_fit_round([(X[:5], y[:5])] * 4)
        before = prints(network)
        with pytest.raises(ValueError, match="agent 3: "):
            network.partial_fit_round([(X[:5], y[:5])] * 3 + [(bad, y[:5])])
        with pytest.raises(ValueError, match=r"agent 2: .*1 features"):
            network.partial_fit_round({0: (X[:5], y[:5]), 2: (X[:5, :1], y[:5])})
        assert prints(network) == before
        assert network.round_ == reference.round_
    assert prints(network) == prints(reference)
    assert network.trace_.equals(reference.trace_)


def test_a_step_that_would_overflow_changes_nothing_anywhere(tmp_path):
    x = np.ones((2, 1))
    good = [(x, [1.0, 1.0]), (x, [1.0, 1.0]), None]
    network, reference = (
        ConsensusNetwork(
            nx.path_graph(3), penalty=0.5, loss="squared_error", gamma=1.0, eta0=0.5, random_state=0
        )
        for _ in range(2)
    )
    for learner in (network, reference):
        learner.partial_fit_round(good)
    before = prints(network)
    with pytest.raises(DivergenceError, match="agent 2"):
        network.partial_fit_round([*good[:2], (x, [1e80, 1e80])])
    assert prints(network) == before
    network.save(tmp_path / "network.ks")
    assert prints(kernelstream.load(tmp_path / "network.ks")) == before
    for learner in (network, reference):
        learner.partial_fit_round([(2.0 * x, [0.0, 1.0]), None, None])
    assert prints(network) == prints(reference)
    assert network.trace_.equals(reference.trace_)


def test_a_retry_learns_nothing_of_the_refused_round():
    X, y = stream()
    bad = np.full((5, 2), np.nan)
    for two_way in (False, True):
        network, reference = (consensus(classes=range(5), two_way=two_way) for _ in range(2))
        for learner in (network, reference):
            learner.partial_fit_round([(X[:5], y[:5])] * 4)
        with pytest.raises(ValueError, match="agent 3: "):
            network.partial_fit_round({0: (X[5:10], y[5:10]), 3: (bad, y[:5])})
        for learner in (network, reference):
            learner.partial_fit_round({1: (X[10:15], y[10:15])})
        assert prints(network) == prints(reference)
        assert network.trace_["samples"].tolist() == [20.0, 25.0]


@pytest.mark.parametrize("make", NETWORKS)
def test_the_graph_cannot_be_changed(make, tmp_path):
    X, y = stream(80)
    network = make().run((X, y), batch=5)
    network.save(tmp_path / "network.ks")
    for one in (
        network,
        make(),
        copy.deepcopy(network),
        kernelstream.load(tmp_path / "network.ks"),
    ):
        for change in (
            lambda graph: graph.add_edge(0, 2),
            lambda graph: graph.remove_node(3),
            lambda graph: graph.add_edges_from([(0, 2)]),
            lambda graph: graph.clear(),
        ):
            with pytest.raises(nx.NetworkXError, match=r"change a copy, networkx\.Graph\(network"):
                change(one.graph)
        assert set(one.graph.edges) == set(nx.cycle_graph(4).edges)
    free = nx.Graph(network.graph)
    free.add_edge(0, 2)
    assert make(free).run((X, y), batch=5).agents_[0].neighbours == [1, 3, 2]


def test_a_run_that_was_refused_fixes_no_classes():
    X, y = stream()
    network = consensus()
    bad = np.full((5, 2), np.nan)
    with pytest.raises(ValueError, match="agent 1: "):
        network.run([(X[:5], [7, 8, 9, 7, 8]), (bad, y[:5])] * 2, batch=5)
    network.run((X, y), batch=5)
    assert network.classes_.tolist() == [0, 1, 2, 3, 4]
    assert prints(network) == prints(consensus().run((X, y), batch=5))


def test_graphs_that_cannot_be():
    loop = nx.cycle_graph(3)
    loop.add_edge(1, 1)
    isolated = nx.path_graph(2)
    isolated.add_node("x")
    parts = nx.disjoint_union(nx.path_graph(2), nx.path_graph(2))
    for graph, error, message in (
        (nx.DiGraph([(0, 1)]), ValueError, "undirected"),
        (nx.MultiGraph([(0, 1)]), ValueError, "undirected"),
        (nx.Graph(), ValueError, "no nodes"),
        (loop, ValueError, "agent 1 is its own neighbour"),
        (nx.Graph([((0, 0), (0, 1))]), ValueError, "strings or integers"),
        (isolated, ValueError, "2 parts .*agent 'x' has no neighbour"),
        (parts, ValueError, "2 parts that never hear of one another: add edges"),
        ([(0, 1)], TypeError, "networkx.Graph, got list"),
    ):
        with pytest.raises(error, match=message):
            ConsensusNetwork(graph)
    X, y = stream(60)
    apart = consensus(isolated, allow_disconnected=True).run((X, y), batch=5)
    assert apart.agents_["x"].neighbours == []
    assert apart.round_ == 4
    one = nx.Graph()
    one.add_node("only")
    assert consensus(one).run((X, y), batch=5).predict(X).shape == (60,)


def test_arguments_that_cannot_be():
    X, y = stream(60)
    for parameters, error, message in (
        (
            {"coupling": "loose"},
            ValueError,
            "one of 'normalised', 'explicit', 'printed'; got 'loose'",
        ),
        ({"engine": "steam"}, ValueError, "one of 'local', 'ray' or an Engine"),
        ({"step": 1.0}, TypeError, "'step' is not a parameter of a network's agents"),
        ({"batch_size": 4}, TypeError, "'batch_size' is not a parameter"),
        ({"agent_settings": {9: {}}}, ValueError, "names 9, which is not in the graph"),
        ({"agent_settings": {1: {"loss": "huber"}}}, ValueError, "agent 1: .* all agents learn"),
        ({"eta0": -1.0}, ValueError, "agent 0: .*eta0"),
        ({"agent_settings": {1: {"eta0": 1.0, "alpha": 2.0}}}, ValueError, "agent 1: .*eta0"),
    ):
        with pytest.raises(error, match=message):
            consensus(**parameters)
    for parameters, message in (
        ({"tolerance": -1.0}, "tolerance of the edge .* must be a finite number >= 0"),
        ({"dual_regularisation": -0.1}, "dual_regularisation must be a number of at least 0"),
        ({"dual_regularisation": "much"}, "dual_regularisation must be a number"),
        ({"dual_regularisation": 0.3, "eta0": 2.0}, "agent 0: .*eta0\\*\\*2 must be below 1"),
    ):
        with pytest.raises(ValueError, match=message):
            proximity(**parameters)
    network = consensus()
    for streams, message in (
        ({0: (3.0, 1)}, r"agent 0: X must be 2-D, got shape \(\)"),
        ({0: (X[:1], 1)}, "agent 0: y must have an entry per sample, got 1"),
        ({7: (X, y)}, r"names the agent 7, which is not in the graph \(0, 1, 2, 3\)"),
        ([(X, y)], "list of 4 .* got 1 of them"),
        ({0: X}, "agent 0: expected \\(X, y\\)"),
        ({0: (X, y), 1: (X[:, :1], y)}, "agents 0 and 1 have 2 and 1 features"),
        ({0: (X[0], y[:1])}, "agent 0: X must be 2-D"),
    ):
        with pytest.raises(ValueError, match=message):
            network.partial_fit_round(streams)
    with pytest.raises(ValueError, match="batch must be a whole number"):
        network.run((X, y), batch=0)
    with pytest.raises(ValueError, match="agent 0: X has 60 rows, y has 59"):
        network.run([(X, y[:-1])] * 4)
    with pytest.raises(ValueError, match=r"^the stream: X has 60 rows, y has 59"):
        network.run((X, y[:-1]))
    with pytest.raises(RuntimeError, match="learned nothing yet"):
        network.agents_  # noqa: B018
    network.run((X, y))
    with pytest.raises(ValueError, match="no agent 'q'"):
        network.model("q")
    with pytest.raises(ValueError, match="no agent 'q'"):
        network.predict(X, agent="q")
    with pytest.raises(ValueError, match="is not below 2"):
        consensus(coupling="explicit", penalty=1.0).run((X, y))


def test_without_networkx_the_error_says_what_to_install(monkeypatch):
    graph = nx.path_graph(2)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"kernelstream\[network\]"):
        ConsensusNetwork(graph)
