"""Networks: rounds, streams, coupling and settings."""

import networkx as nx
import numpy as np
import pytest

import kernelstream
from kernelstream import (
    POLKClassifier,
    POLKRegressor,
    merge,
)
from kernelstream.network import ConsensusNetwork, LocalEngine, ProximityNetwork
from tests.network.tools import COMMON, NETWORKS, consensus, prints, proximity, stream


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
    X = random.uniform(-2.0, 2.0, (len(graph), 60, 1))
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
