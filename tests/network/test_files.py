"""Networks in files: they go on as if they had never stopped."""

import networkx as nx
import numpy as np
import pytest

import kernelstream
from kernelstream import (
    ModelFileError,
)
from kernelstream.network import ConsensusNetwork, LocalEngine
from kernelstream.network import _trace as trace_module
from tests.network.tools import NETWORKS, consensus, prints, stream


@pytest.mark.parametrize("make", NETWORKS)
def test_a_saved_network_goes_on_as_if_never_stopped(make, tmp_path):
    X, y = stream()
    graph = nx.relabel_nodes(nx.cycle_graph(4), {0: "a", 1: "b", 2: 2, 3: "d"})
    network = make(graph, two_way=True).run((X[:120], y[:120]), batch=5)
    network.save(tmp_path / "network.ks")
    loaded = kernelstream.load(tmp_path / "network.ks")
    assert type(loaded) is type(network)
    assert prints(loaded) == prints(network)
    assert loaded.trace_.equals(network.trace_)
    assert set(loaded.graph.edges) == set(network.graph.edges)
    for learner in (network, loaded):
        learner.run((X[120:], y[120:]), batch=5)
    assert prints(loaded) == prints(network)
    assert loaded.trace_.equals(network.trace_)
    np.testing.assert_array_equal(loaded.predict(X), network.predict(X))
    assert type(network).load(tmp_path / "network.ks").fingerprint() != network.fingerprint()


@pytest.mark.parametrize("make", NETWORKS)
def test_a_loaded_network_has_its_parameters(make, tmp_path):
    X, y = stream(80)
    name = "penalty" if make is consensus else "tolerance"
    for given in (0.25, {(0, 1): 0.5, (1, 2): 0.0, (2, 3): 0.25, (3, 0): 1.0}):
        make(**{name: given}).run((X, y), batch=5).save(tmp_path / "network.ks")
        loaded = kernelstream.load(tmp_path / "network.ks")
        found = getattr(loaded, name)
        if isinstance(given, dict):
            assert found == {**given, **{edge[::-1]: value for edge, value in given.items()}}
        else:
            assert found == given
        for agent, held in loaded.agents_.items():
            coupling = loaded._coupling_of(agent)
            assert getattr(coupling, name) == getattr(held.coupling, name)
            assert coupling.dual_regularisation == held.coupling.dual_regularisation


def test_a_row_that_is_not_complete_is_saved(monkeypatch, tmp_path):
    monkeypatch.setattr(trace_module, "MOST_ROWS", 2)
    X, y = stream(400)
    network = consensus(classes=range(5))
    for first in range(0, 400, 20):
        network.run((X[first : first + 20], y[first : first + 20]), batch=5)
        network.save(tmp_path / "network.ks")
        loaded = kernelstream.load(tmp_path / "network.ks")
        assert loaded.trace_.equals(network.trace_)
        assert loaded.fingerprint() == network.fingerprint()
        network = loaded
    assert network.trace_.equals(consensus(classes=range(5)).run((X, y), batch=5).trace_)


class Dying(LocalEngine):
    """Agent 3 is given up in round 2."""

    def round(self, round, batches):
        if round == 2:
            self.dead[3] = round
        return super().round(round, batches)


@pytest.mark.parametrize("make", NETWORKS)
def test_a_network_with_a_dead_agent_is_saved_and_goes_on(make, tmp_path):
    X, y = stream()
    network = make(engine=Dying(), two_way=True).run((X[:120], y[:120]), batch=5)
    assert [agent.round for agent in network.agents_.values()] == [6, 6, 6, 2]
    network.save(tmp_path / "network.ks")
    loaded = kernelstream.load(tmp_path / "network.ks")
    for learner in (network, loaded):
        learner.run((X[120:], y[120:]), batch=5)
    assert [agent.round for agent in loaded.agents_.values()] == [12, 12, 12, 2]
    assert prints(loaded) == prints(network)
    assert loaded.trace_.equals(network.trace_)
    np.testing.assert_array_equal(loaded.predict(X), network.predict(X))
    loaded.save(tmp_path / "network.ks")
    header, arrays = network._document()
    for change in ({"dead": []}, {"dead": [0]}, {"round": 13}):
        kernelstream.storage.write(
            tmp_path / "bad.ks", type(network).__name__, {**header, **change}, arrays
        )
        with pytest.raises(ModelFileError):
            kernelstream.load(tmp_path / "bad.ks")


def test_rounds_that_are_half_done_are_not_saved(tmp_path):
    X, y = stream()
    engine = LocalEngine()
    network = consensus(engine=engine).run((X, y), batch=5)
    engine._agents[2].close_round(12, {})
    with pytest.raises(RuntimeError, match="agent 2 is in round 13, the network in 12"):
        network.save(tmp_path / "network.ks")


def test_files_that_make_no_sense(tmp_path):
    X, y = stream()
    network = consensus().run((X[:40], y[:40]), batch=5)
    header, arrays = network._document()
    for change in (
        {"edges": [[0, 1]]},
        {"round": 3},
        {"agents": header["agents"][:2]},
        {"loss": ["nonsense", 1.0]},
    ):
        kernelstream.storage.write(
            tmp_path / "bad.ks", "ConsensusNetwork", {**header, **change}, arrays
        )
        with pytest.raises(ModelFileError):
            ConsensusNetwork.load(tmp_path / "bad.ks")
