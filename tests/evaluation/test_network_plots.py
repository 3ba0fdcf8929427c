"""Pictures of networks."""

import sys

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest

from kernelstream import make_multidist
from kernelstream.evaluation import plot_agent_surfaces, plot_network, plot_network_trace
from kernelstream.network import ConsensusNetwork, ProximityNetwork

mpl.use("Agg")


@pytest.fixture(scope="module")
def networks():
    X, y = make_multidist(120, random_state=0)
    common = {"gamma": 0.8, "eta0": 1.0, "random_state": 0}
    graph = nx.path_graph(3)
    return (
        ConsensusNetwork(graph, **common).run((X, y), batch=4),
        ProximityNetwork(graph, **common).run((X, y), batch=4),
        X,
        y,
    )


@pytest.fixture(autouse=True)
def closed():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def test_agents_are_coloured_by_their_error(networks):
    network, _, X, y = networks
    errors = network.errors(X, y)
    ax = plot_network(network, errors, positions={0: (0, 0), 1: (1, 0), 2: (1, 1)})
    blank, shown = ax.collections
    assert len(blank.get_offsets()) == 0
    np.testing.assert_array_equal(shown.get_offsets(), [[0, 0], [1, 0], [1, 1]])
    np.testing.assert_array_equal(shown.get_array(), [errors[0], errors[1], errors[2]])
    assert len(ax.lines) == 2  # edges
    ax = plot_network(network, {0: 0.5})
    assert len(ax.collections[0].get_offsets()) == 2  # without an error: white


def test_the_course_of_a_network(networks, tmp_path):
    for network in networks[:2]:
        figure = plot_network_trace(network, tmp_path / "trace.png")
        assert (tmp_path / "trace.png").stat().st_size > 10_000
        lines = figure.axes[2].lines
        trace = network.trace_
        prefix = "multiplier " if isinstance(network, ProximityNetwork) else "points "
        names = [name for name in trace if name.startswith(prefix)]
        assert len(lines) == len(names)
        np.testing.assert_array_equal(lines[0].get_ydata(), trace[names[0]])
    with pytest.raises(ValueError, match="no rounds yet"):
        plot_network_trace(ConsensusNetwork(nx.path_graph(2)))


def test_agents_beside_the_network(networks):
    network, _, X, y = networks
    figure = plot_agent_surfaces(network, X, y, [2, 0], resolution=30)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["agent 2", "agent 0", "the network's mean"]
    images = [ax.images[0].get_array() for ax in figure.axes]
    assert any((images[0] != image).any() for image in images[1:])


def test_pictures_that_cannot_be(networks, monkeypatch):
    network, _, X, y = networks
    with pytest.raises(ValueError, match="agents is empty"):
        plot_agent_surfaces(network, X, y, [])
    numbers = ConsensusNetwork(nx.path_graph(2), loss="squared_error", gamma=1.0)
    numbers.run((X, y.astype(float)), batch=10)
    with pytest.raises(ValueError, match="this network learns numbers"):
        plot_agent_surfaces(numbers, X, y)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"kernelstream\[network\]"):
        plot_network(network, {})


def test_the_course_of_an_agent_without_neighbours(networks):
    _, _, X, y = networks
    alone = nx.Graph()
    alone.add_node("only")
    network = ConsensusNetwork(alone, gamma=0.8, random_state=0).run((X, y), batch=10)
    figure = plot_network_trace(network)  # without a warning of an empty legend
    assert figure.axes[1].get_legend() is None
