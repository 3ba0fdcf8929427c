"""Networks: rounds, streams, faults, traces, files."""

import copy
import sys

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import kernelstream
from kernelstream import (
    DivergenceError,
    ModelFileError,
    POLKClassifier,
    POLKRegressor,
    make_multidist,
    merge,
)
from kernelstream.network import ConsensusNetwork, LocalEngine, ProximityNetwork
from kernelstream.network import _trace as trace_module

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


@pytest.mark.parametrize("make", NETWORKS)
def test_the_same_rounds_give_the_same_bits(make):
    X, y = stream()
    whole = make().run((X, y), batch=5)
    again = make().run({i: (X[i::4], y[i::4]) for i in range(4)}, batch=5)
    assert prints(whole) == prints(again)
    # In two calls, from iterators, or round by round: the same.
    split = make(classes=range(5))
    split.run([(X[i::4][:30], y[i::4][:30]) for i in range(4)], batch=5)
    split.run([(X[i::4][30:], y[i::4][30:]) for i in range(4)], batch=5)
    assert prints(split) == prints(whole)
    piece = [[(X[i::4][k : k + 5], y[i::4][k : k + 5]) for k in range(0, 60, 5)] for i in range(4)]
    streamed = make(classes=range(5)).run([iter(parts) for parts in piece])
    assert prints(streamed) == prints(whole)
    rounds = make(classes=range(5))
    for k in range(12):
        rounds.partial_fit_round([piece[i][k] for i in range(4)])
    assert prints(rounds) == prints(whole)
    assert prints(make(random_state=7).run((X, y), batch=5)) != prints(whole)


def test_coupling_matters_and_brings_agents_together():
    X, y = stream(2000)
    alone = consensus(penalty=0.0).run((X, y), batch=5).trace_
    together = consensus(penalty=1.0).run((X, y), batch=5).trace_
    near = proximity(tolerance=0.0).run((X, y), batch=5).trace_
    apart, coupled, tied = (t["disagreement"].iloc[-20:].mean() for t in (alone, together, near))
    assert coupled < apart / 3
    assert tied < apart / 3


@pytest.mark.parametrize("two_way", [False, True])
@pytest.mark.parametrize("graph", [nx.path_graph(2), nx.star_graph(3), nx.cycle_graph(4)])
def test_no_penalty_makes_agents_overshoot(graph, two_way):
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (len(graph), 150, 1))
    y = np.sin(2.0 * X[:, :, 0]) + 0.1 * random.normal(size=X.shape[:2])
    said = {}
    for penalty in (0.0, 10.0, 1e6, 1e12, 1e308):
        network = ConsensusNetwork(
            graph, penalty=penalty, two_way=two_way, loss="squared_error", gamma=0.1, eta0=0.5,
            random_state=0,
        ).run(list(zip(X, y, strict=True)))  # fmt: skip
        said[penalty] = network.decision_function(X[0], agent=0)
        assert np.abs(said[penalty]).max() < 3.0
    # No penalty is so large that the coupling is gone.
    np.testing.assert_allclose(said[1e308], said[1e12], rtol=1e-6, atol=1e-6)
    assert np.abs(said[1e308] - said[0.0]).max() > 1e-3


def test_explicit_penalties_leave_room_for_the_loss():
    x = np.zeros((1, 1))
    common = {
        "loss": "squared_error",
        "gamma": 1.0,
        "alpha": 0.0,
        "eta0": 1.0,
        "compression_error": 0.0,
    }
    for penalty, good in ((0.49, True), (0.51, False), (1e308, False)):
        network = ConsensusNetwork(
            nx.path_graph(2), penalty=penalty, coupling="explicit", random_state=0, **common
        )
        if good:
            for _ in range(300):
                network.partial_fit_round({0: (x, [1.0]), 1: (x, [-1.0])})
            assert np.abs(network.decision_function(x, agent=0)).max() < 3.0
        else:
            with pytest.raises(ValueError, match="is not below 2: neighbours would overshoot"):
                network.partial_fit_round({0: (x, [1.0]), 1: (x, [-1.0])})


def test_without_penalty_agents_are_alone():
    X, y = stream()
    network = consensus(penalty=0.0).run((X, y), batch=3)
    for i in range(4):
        model = POLKClassifier(
            "log_loss", batch_size=3, gamma=0.8, eta0=1.0, compression_error=0.05, random_state=i
        ).partial_fit(X[i::4], y[i::4], classes=range(5))
        np.testing.assert_array_equal(network.model(i).dual_coef_, model.dual_coef_)
        np.testing.assert_array_equal(network.model(i).dictionary_, model.dictionary_)


def test_regression_and_binary_classes():
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (600, 1))
    y = np.sin(2.0 * X[:, 0])
    graph = nx.path_graph(3)
    numbers = ConsensusNetwork(graph, loss="squared_error", eta0=0.5, random_state=0)
    numbers.run((X, y), batch=2)
    assert numbers.predict(X).shape == (600,)
    assert np.mean((numbers.predict(X) - y) ** 2) < 0.05
    assert isinstance(numbers.model(0), POLKRegressor)
    with pytest.raises(AttributeError, match="no classes"):
        numbers.classes_  # noqa: B018
    labels = np.where(y > 0.0, "up", "down")
    binary = ConsensusNetwork(graph, loss="hinge", eta0=0.5, random_state=0)
    binary.run((X, labels), batch=2)
    assert binary.classes_.tolist() == ["down", "up"]
    assert binary.decision_function(X).shape == (600,)
    assert np.mean(binary.predict(X) == labels) > 0.95
    errors = binary.errors(X, labels)
    assert errors[1] == np.mean(binary.predict(X, agent=1) != labels)
    # The network says what the mean of the functions says.
    mean = np.mean([binary.decision_function(X, agent=i) for i in range(3)], axis=0)
    np.testing.assert_array_equal(binary.predict(X), np.where(mean > 0.0, "up", "down"))


def test_classes_are_shared_and_sorted():
    X, y = stream()
    # Every agent sees one class only.
    single = {i: (X[y == i][:10], y[y == i][:10]) for i in range(4)}
    network = consensus().run(single, batch=2)
    assert network.classes_.tolist() == [0, 1, 2, 3]
    assert all(m.model.classes_.tolist() == [0, 1, 2, 3] for m in network.agents_.values())
    first = consensus()
    with pytest.raises(ValueError, match="only the class 2: name all"):
        first.partial_fit_round({0: (X[y == 2][:3], y[y == 2][:3])})
    first.partial_fit_round({0: (X[:9], y[:9])})
    before = prints(first)
    with pytest.raises(ValueError, match=r"agent 1: .*99.* at row 1"):
        first.partial_fit_round({0: (X[:2], y[:2]), 1: (X[:2], [y[0], 99])})
    assert prints(first) == before
    with pytest.raises(ValueError, match="texts as labels, others numbers"):
        consensus().partial_fit_round({0: (X[:2], [1, 2]), 1: (X[:2], ["a", "b"])})


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


def test_streams_of_unequal_length():
    X, y = stream()
    network = consensus(classes=range(5))
    network.run([(X[:40], y[:40]), (X[:8], y[:8]), (X[:40], y[:40]), (X[:20], y[:20])], batch=4)
    assert network.round_ == 10
    seen = [agent.model.n_seen_ for agent in network.agents_.values()]
    assert seen == [40, 8, 40, 20]
    # The one that has ended still answers: 2 requests and 2 answers of either learning neighbour.
    assert np.diff(network.trace_["messages"])[-1] == 8
    short = consensus(classes=range(5)).run([(X[:8], y[:8])] * 4, rounds=1, batch=4)
    assert short.round_ == 1
    with pytest.raises(ValueError, match="no agent has samples"):
        short.partial_fit_round({})
    with pytest.raises(ValueError, match="no agent has samples"):
        short.partial_fit_round([None] * 4)


def test_messages_and_bytes_are_counted():
    X, y = stream()
    path = nx.path_graph(3)  # degrees 1, 2, 1
    trace = consensus(path, classes=range(5)).run([(X[:6], y[:6])] * 3, batch=3).trace_
    # A round: 4 directed edges, each a request of 3 x 2 and an answer of 3 x 5 numbers.
    assert trace["messages"].tolist() == [8.0, 16.0]
    assert trace["bytes"].tolist() == [4 * (6 + 15) * 8, 8 * (6 + 15) * 8]
    assert trace["samples"].tolist() == [9.0, 18.0]
    both = consensus(path, classes=range(5), two_way=True).run([(X[:3], y[:3])] * 3, batch=3)
    # ... and a lesson: the 3 x 5 values at the other's own samples, and its strength.
    assert both.trace_["bytes"].tolist() == [4 * (6 + 15 + 15 + 1) * 8]
    sparse = consensus(path, classes=range(5)).run([(csr_array(X[:3]), y[:3])] * 3, batch=3)
    assert sparse.trace_["bytes"].tolist() == [4 * (6 * 8 + 6 * 4 + 4 * 8 + 15 * 8)]


def test_the_trace_has_the_records_of_the_agents():
    X, y = stream()
    network = proximity(tolerance={(0, 1): 0.0, (2, 1): 0.5, (2, 3): 0.0, (0, 3): 0.0})
    network.run((X, y), batch=5)
    trace, agents = network.trace_, network.agents_
    last = trace.iloc[-1]
    assert last["round"] == 11
    for name, agent in agents.items():
        assert last[f"points {name}"] == agent.model.model_order_
        for neighbour, multiplier in zip(agent.neighbours, agent.multipliers, strict=True):
            assert last[f"multiplier {name} {neighbour}"] == multiplier >= 0.0
    assert last["points"] == np.mean([a.model.model_order_ for a in agents.values()])
    assert last["multiplier 1 2"] < last["multiplier 1 0"]
    assert trace["largest_multiplier"].iloc[-1] == max(a.multipliers.max() for a in agents.values())
    # The mean violation, by its definition, from one more network's records.
    engine = LocalEngine()
    twin = proximity(tolerance=network.tolerance, engine=engine, classes=range(5))
    sums = {}
    for k in range(0, 60, 5):
        batches = {i: (X[i::4][k : k + 5], y[i::4][k : k + 5]) for i in range(4)}
        twin.partial_fit_round(batches)
        for name, agent in engine.agents().items():
            for j, value in agent.close_round(twin.round_ - 1, {}).violations.items():
                sums[name, j] = sums.get((name, j), 0.0) + value
    expected = sum(max(0.0, value) for value in sums.values()) / 12
    assert trace["average_violation"].iloc[-1] == pytest.approx(expected, rel=1e-12)


def test_the_trace_stays_short(monkeypatch):
    X, y = stream()
    long = consensus().run((X, y))  # 60 rounds
    monkeypatch.setattr(trace_module, "MOST_ROWS", 8)
    short = consensus().run((X, y))
    assert len(short.trace_) < 16 <= len(long.trace_)
    rows = long.trace_
    for end, row in enumerate(short.trace_.to_dict("records")):
        part = rows.iloc[4 * end : 4 * end + 4]
        assert row["loss"] == pytest.approx(part["loss"].mean())
        assert row["bytes"] == part["bytes"].iloc[-1]
        assert row["round"] == part["round"].iloc[-1]


def test_the_trace_without_an_agent_that_is_gone():
    class Losing(LocalEngine):
        def round(self, round, batches):
            records = super().round(round, batches)
            return {name: record for name, record in records.items() if name != 3 or round < 2}

    X, y = stream()
    trace = proximity(engine=Losing()).run((X[:80], y[:80]), batch=5).trace_
    assert trace["points 3"].notna().tolist() == [True, True, False, False]
    assert trace["multiplier 3 0"].notna().tolist() == [True, True, False, False]
    assert trace["points 0"].notna().all()
    assert trace["messages"].tolist() == [16.0, 32.0, 44.0, 56.0]


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


def test_names_in_the_trace_do_not_collide():
    X, y = stream()
    names = ["1", 1, "1 '1'", "1 1"]
    network = proximity(nx.relabel_nodes(nx.complete_graph(4), dict(enumerate(names))))
    columns = network.run((X, y), batch=5).trace_columns()
    assert sum(name.startswith("points ") for name in columns) == 4
    assert sum(name.startswith("multiplier ") for name in columns) == 12
    for name, agent in network.agents_.items():
        assert columns[f"points {name!r}"][-1] == agent.model.model_order_


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


def test_models_stand_alone(tmp_path):
    X, y = stream(800)
    network = consensus().run((X, y), batch=5)
    model = network.model(2)
    before = prints(network)
    model.partial_fit(X[:50], y[:50])
    model.save(tmp_path / "model.ks")
    assert kernelstream.load(tmp_path / "model.ks").fingerprint() == model.fingerprint()
    assert prints(network) == before
    joined = merge([network.model(i) for i in range(4)], max_points=40)
    assert joined.model_order_ <= 40
    assert np.mean(joined.predict(X) == network.predict(X)) > 0.97


def test_agents_have_the_defaults_of_the_estimators():
    X, y = stream(60)
    for loss, estimator in (("log_loss", POLKClassifier), ("squared_error", POLKRegressor)):
        network = ConsensusNetwork(nx.path_graph(2), loss=loss, random_state=3).run((X, y))
        expected = estimator(kernelstream.losses.Loss(loss), random_state=4).get_params()
        assert network.model(1).get_params() == expected


def test_a_network_of_ones_own():
    class Loose(ConsensusNetwork):
        """Another default."""

        penalty: kernelstream.network.ConsensusNetwork._declared["penalty"] = 0.01

    X, y = stream(60)
    own = Loose(nx.cycle_graph(4), **COMMON).run((X, y), batch=5)
    assert prints(own) == prints(consensus(penalty=0.01).run((X, y), batch=5))
    assert "default=0.01" in Loose.__doc__


def test_settings_of_single_agents():
    X, y = stream()
    network = consensus(agent_settings={1: {"max_points": 5, "gamma": 2.0, "random_state": 9}})
    network.run((X, y), batch=5)
    assert network.model(1).model_order_ <= 5 < network.model(0).model_order_
    assert network.model(1).kernel_ != network.model(0).kernel_
    assert network.model(1).random_state == 9
    scaled = consensus(gamma="scale").partial_fit_round({0: (X[:50], y[:50]), 3: (X[50:], y[50:])})
    expected = 1.0 / (2.0 * X.var())
    for agent in scaled.agents_.values():
        assert agent.model.kernel_.gamma == pytest.approx(expected, rel=1e-12)


def test_penalties_by_edge():
    X, y = stream()
    graph = nx.path_graph(3)
    graph.edges[0, 1]["strength"], graph.edges[1, 2]["strength"] = 0.5, 0.0
    by_attribute = consensus(graph, penalty="strength").run((X, y), batch=5)
    by_edge = consensus(graph, penalty={(1, 0): 0.5, (1, 2): 0}).run((X, y), batch=5)
    assert prints(by_attribute) == prints(by_edge)
    for penalty, message in (
        ("weight", "penalty of the edge 0 - 1 must be a number, got None"),
        ({(0, 1): 1.0}, "edge 1 - 2 must be a number"),
        ({(0, 1): True, (1, 2): 1.0}, "got True"),
    ):
        with pytest.raises(ValueError, match=message):
            consensus(graph, penalty=penalty)
    for penalty in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="edge 0 - 1 must be a finite number >= 0"):
            consensus(graph, penalty=penalty)


def test_the_graph_is_the_networks_own():
    X, y = stream()
    graph = nx.cycle_graph(4)
    network = consensus(graph)
    graph.remove_edge(0, 1)
    graph.add_edge(1, 9)
    network.run((X, y), batch=5)
    assert prints(network) == prints(consensus().run((X, y), batch=5))
    assert 9 not in network.graph


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


def test_input_forms_give_the_same_bits():
    pd = pytest.importorskip("pandas")
    X, y = stream(60)
    dense = consensus().run([(X, y)] * 4, batch=5)
    frame = pd.DataFrame(X)
    assert prints(consensus().run([(frame, pd.Series(y))] * 4, batch=5)) == prints(dense)
    assert prints(consensus().run([(X.tolist(), y.tolist())] * 4, batch=5)) == prints(dense)


def test_an_engine_of_ones_own_and_its_end():
    X, y = stream(60)
    engine = LocalEngine()
    with consensus(engine=engine) as network:
        network.run((X, y), batch=5)
        assert set(engine.agents()) == {0, 1, 2, 3}
    assert engine.agents() == {}
    for call in (
        lambda: network.run((X, y)),
        lambda: network.partial_fit_round({0: (X, y)}),
        lambda: network.predict(X),
    ):
        with pytest.raises(RuntimeError, match="was closed, its agents are gone"):
            call()


def test_an_iterator_may_pause():
    X, y = stream(60)
    parts = [(X[:5], y[:5]), None, None, (X[5:10], y[5:10])]
    network = consensus(classes=range(5)).run({0: iter(parts), 1: iter(parts[::-1])})
    assert network.trace_["samples"].tolist() == [10.0, 20.0]
    other = consensus(classes=range(5)).run({0: iter(parts), 1: iter(parts[:1] * 4)})
    assert other.trace_["samples"].tolist() == [10.0, 15.0, 20.0, 30.0]


def test_errors_are_of_one_target_per_sample():
    X, y = stream(60)
    network = consensus().run((X, y), batch=5)
    with pytest.raises(ValueError, match=r"shape \(60,\), got \(60, 1\)"):
        network.errors(X, y[:, None])


def test_without_networkx_the_error_says_what_to_install(monkeypatch):
    graph = nx.path_graph(2)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"kernelstream\[network\]"):
        ConsensusNetwork(graph)


def test_agents_may_have_losses_of_their_own(tmp_path):
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (3, 100, 1))
    streams = [(X[i], np.sin(X[i, :, 0])) for i in range(3)]
    common = {"loss": "squared_error", "gamma": 1.0, "eta0": 0.3, "random_state": 0}
    own = {1: {"loss": kernelstream.Loss("huber", 0.1)}, 2: {"loss": "absolute_error"}}
    network = ConsensusNetwork(nx.path_graph(3), penalty=0.0, agent_settings=own, **common)
    network.run(streams, batch=2)
    for name, loss in ((0, "squared_error"), (1, own[1]["loss"]), (2, "absolute_error")):
        alone = kernelstream.POLKRegressor(
            batch_size=2, **{**common, "random_state": name, "loss": loss}
        ).partial_fit(*streams[name])
        assert np.array_equal(network.predict(X[0], agent=name), alone.predict(X[0]))
    network.save(tmp_path / "network.ks")
    loaded = kernelstream.load(tmp_path / "network.ks")
    assert prints(loaded.run(streams, batch=2)) == prints(network.run(streams, batch=2))


def test_agents_that_mind_a_risk_are_colk_without_a_pull(tmp_path):
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (2, 60, 1))
    streams = [(X[i], np.sin(X[i, :, 0]) + random.exponential(size=60)) for i in range(2)]
    common = {"loss": "squared_error", "gamma": 1.0, "eta0": 0.2, "risk": "semivariance",
              "risk_weight": 0.5, "compression_error": 0.01}  # fmt: skip
    alone = ConsensusNetwork(nx.path_graph(2), penalty=0.0, random_state=0, **common)
    alone.run(streams, batch=2)
    for name in range(2):
        model = kernelstream.COLKRegressor(random_state=name, **common).partial_fit(*streams[name])
        assert np.array_equal(alone.predict(X[0], agent=name), model.predict(X[0]))
        assert alone.model(name).tracker_ == model.tracker_
    # Together: both pull, and the risk acts.
    for two_way in (False, True):
        options = {"penalty": 0.5, "two_way": two_way, "random_state": 0}
        averse = ConsensusNetwork(nx.path_graph(2), **options, **common).run(streams, batch=2)
        neutral = ConsensusNetwork(nx.path_graph(2), **options, **{**common, "risk_weight": 0.0})
        neutral.run(streams, batch=2)
        for other in (alone, neutral):
            assert np.abs(averse.predict(X[0]) - other.predict(X[0])).max() > 0.01
        averse.save(tmp_path / "network.ks")
        loaded = kernelstream.load(tmp_path / "network.ks")
        assert prints(loaded.run(streams, batch=2)) == prints(averse.run(streams, batch=2))


def test_a_constraint_of_ones_own(tmp_path):
    """The default one, written as functions, and another one against the equations."""
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (3, 40, 1))
    streams = [(X[i], np.sin(X[i, :, 0]) + 0.3 * i) for i in range(3)]
    common = {"loss": "squared_error", "gamma": 1.0, "eta0": 0.2, "coupling": "printed",
              "tolerance": 0.01, "compression_error": 0.01, "random_state": 0}  # fmt: skip

    def network(constraint):
        made = ProximityNetwork(nx.path_graph(3), constraint=constraint, **common)
        return made.run(streams, batch=2)

    squared = (lambda f, g: ((f - g) ** 2).sum(axis=1), lambda f, g: 2.0 * (f - g))
    ours, ready = network(squared), network(None)
    assert ours.predict(X[0]) == pytest.approx(ready.predict(X[0]), rel=1e-9, abs=1e-9)
    trace = ours.trace_columns()
    assert trace["violation"] == pytest.approx(ready.trace_columns()["violation"], abs=1e-9)
    # How far f_i is above f_j only: the agent with the lowest target is never pulled.
    above = (lambda f, g: np.maximum(f - g, 0.0).sum(axis=1), lambda f, g: 1.0 * (f > g))
    lopsided = network(above)
    alone = kernelstream.POLKRegressor(
        batch_size=2, gamma=1.0, eta0=0.2, compression_error=0.01, random_state=0
    ).partial_fit(*streams[0])
    # its target is the lowest, but noise in the first rounds may lift it for a moment
    assert np.abs(lopsided.predict(X[0], agent=0) - alone.predict(X[0])).mean() < 0.1
    assert np.abs(lopsided.predict(X[0], agent=2) - ready.predict(X[0], agent=2)).max() > 0.01
    # A file notes that there is a constraint, and is given it again.
    ours.save(tmp_path / "ours.ks")
    with pytest.raises(kernelstream.ModelFileError, match=r"load\(path, constraint=\.\.\.\)"):
        kernelstream.load(tmp_path / "ours.ks")
    with pytest.raises(kernelstream.ModelFileError, match="must be a pair of functions"):
        kernelstream.load(tmp_path / "ours.ks", constraint=squared[0])
    loaded = kernelstream.load(tmp_path / "ours.ks", constraint=squared)
    assert prints(loaded) == prints(ours)
    changed = nx.cycle_graph(4)  # an edge and an agent more, which the constraint holds for
    for each in (loaded, ours):
        each.run(streams, batch=2)
        each.change_graph(changed)
        each.run([*streams, streams[0]], batch=2)
    assert prints(loaded) == prints(ours)
    assert np.array_equal(loaded.trace_columns()["violation"], ours.trace_columns()["violation"])
    ready.save(tmp_path / "ready.ks")
    with pytest.raises(TypeError, match="saved without constraint"):
        kernelstream.load(tmp_path / "ready.ks", constraint=squared)
    with pytest.raises(ValueError, match=r"must return finite numbers of shape \(2, 1\)"):
        network((squared[0], lambda f, g: 1.0))
    with pytest.raises(ValueError, match="coupling='printed'"):
        ProximityNetwork(nx.path_graph(3), constraint=squared)
