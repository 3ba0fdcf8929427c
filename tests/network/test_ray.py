"""Agents as Ray actors: the same bits as in one process, whatever is killed."""

import os
import signal
import sys

import networkx
import numpy as np
import pytest

from kernelstream import POLKClassifier, fit_sharded, make_multidist, storage
from kernelstream.network import Agent, ConsensusNetwork, Coupling, LocalEngine
from kernelstream.network._networks import make_engine
from kernelstream.network._ray_session import ray_session
from kernelstream.network.ray_engine import RayEngine, _Host

pytestmark = pytest.mark.slow

SETTINGS = {"loss": "hinge", "gamma": 1.0, "epsilon": 0.3, "max_points": 30, "random_state": 0}
BATCH = 4


@pytest.fixture(scope="module")
def ray():
    """One Ray for all tests of this file."""
    with ray_session(processors=2) as ray:
        yield ray


def make_agents(number, kind="consensus", two_way=False, **settings):
    graph = networkx.cycle_graph(number)
    graph.add_edge(0, number // 2)
    coupling = Coupling(kind, penalty=0.5, tolerance=0.1, two_way=two_way)
    return {
        name: Agent(
            name, {**SETTINGS, **settings}, list(graph[name]), coupling, features=2,
            classes=range(5),
        )
        for name in graph
    }  # fmt: skip


def make_batches(agents, rounds, size=BATCH):
    """A mini-batch per agent and round; now and then an agent has none."""
    X, y = make_multidist(size * rounds * len(agents), random_state=3)
    X, y = X.reshape(rounds, len(agents), size, 2), y.reshape(rounds, len(agents), size)
    return [
        {name: (X[r, i], y[r, i]) for i, name in enumerate(agents) if (r + i) % 7}
        for r in range(rounds)
    ]


def run(engine, batches, first=0, before_round=lambda r: None):
    records = []
    for r, batch in enumerate(batches, first):
        before_round(r)
        records.append(engine.round(r, batch))
    return records


def fingerprints(engine):
    return {name: agent.fingerprint() for name, agent in engine.agents().items()}


def pid(ray, engine, name):
    return ray.get(engine._actors[name].pid.remote())


class Twins:
    """The same agents in both engines, which go through the same rounds."""

    def __init__(self, agents):
        self.local, self.remote = LocalEngine(), RayEngine()
        for engine in (self.local, self.remote):
            engine.start(agents)
        self.batches = make_batches(agents, 100)
        self.next = 0

    def run(self, rounds, before_round=lambda r: None):
        """Some rounds more, in which records and models are the same."""
        first, self.next = self.next, self.next + rounds
        chosen = self.batches[first : self.next]
        expected = run(self.local, chosen, first)
        assert run(self.remote, chosen, first, lambda r: before_round(r - first)) == expected
        assert fingerprints(self.remote) == fingerprints(self.local)


def test_the_same_bits_as_the_local_engine_whatever_is_killed(ray, monkeypatch):
    # One test for all that eight agents go through: eight processes take a while to start.
    twins = Twins(make_agents(8, "proximity", two_way=True))
    remote, random = twins.remote, np.random.default_rng(1)
    twins.run(50)
    X = random.normal(size=(20, 2))
    assert np.array_equal(twins.local.predict(3, X), remote.predict(3, X))

    ways = {  # to lose an agent between two rounds
        2: lambda name: os.kill(pid(ray, remote, name), signal.SIGKILL),
        9: lambda name: ray.kill(remote._actors[name], no_restart=False),
        16: lambda name: ray.kill(remote._actors[name]),
    }

    def kill(r):
        if r in ways:
            ways[r](int(random.integers(8)))

    twins.run(20, kill)

    # An agent is lost that has opened its round and answered, but not closed it.
    def kill_after_answers(round, now, requests):
        answer(round, now, requests)
        if round == killed:
            os.kill(pid(ray, remote, 5), signal.SIGKILL)

    answer, killed = remote._answer, twins.next + 1
    monkeypatch.setattr(remote, "_answer", kill_after_answers)
    twins.run(3)

    # An agent does not answer, and is restarted.
    remote.timeout = 5.0
    stopped = pid(ray, remote, 6)
    os.kill(stopped, signal.SIGSTOP)
    twins.run(3)
    assert pid(ray, remote, 6) != stopped
    remote.timeout = None

    # Refused samples change nothing.
    bad = {0: (np.zeros((1, 2)), [1]), 4: (np.full((1, 2), np.nan), [1])}
    with pytest.raises(ValueError, match=r"agent 4: .*NaN"):
        remote.round(twins.next, bad)
    assert fingerprints(remote) == fingerprints(twins.local)
    twins.run(1)

    remote.close()
    assert ray.is_initialized()  # it was not the engine's


def test_an_agent_that_does_not_answer_is_declared_dead(ray):
    agents = make_agents(2)
    batches = make_batches(agents, 5)
    remote = RayEngine(on_timeout="dead")
    remote.start(agents)
    run(remote, batches[:2])
    remote.timeout = 5.0
    os.kill(pid(ray, remote, 1), signal.SIGSTOP)
    records = run(remote, batches[2:], 2)
    assert remote.dead == {1: 2}
    assert [list(record) for record in records] == [[0]] * 3
    assert [record[0].samples for record in records] == [BATCH] * 3
    assert not any(record[0].differences for record in records)
    assert {name: agent.round for name, agent in remote.agents().items()} == {0: 5, 1: 2}
    assert remote.predict(1, np.zeros((1, 2))).shape == (1, 5)
    remote.close()


def test_rounds_since_an_old_checkpoint_are_learned_again(ray, tmp_path):
    # Enough points for products that BLAS computes, with as many threads as here.
    agents = make_agents(2, gamma=20.0, epsilon=0.0, max_points=200)
    local, remote = LocalEngine(), RayEngine(folder=tmp_path, checkpoint_every=4)
    batches = make_batches(agents, 7, 60)
    for engine in (local, remote):
        engine.start(agents)

    def kill(r):
        if r == 6:  # two rounds to learn again
            assert Agent.restore(*storage.read(tmp_path / "agent-1.ks")[1:]).round == 4
            os.kill(pid(ray, remote, 1), signal.SIGKILL)

    assert run(local, batches) == run(remote, batches, before_round=kill)
    assert fingerprints(local) == fingerprints(remote)
    remote.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent-0.ks", "agent-1.ks"]


def test_shards_on_ray(ray):
    X, y = make_multidist(900, random_state=0)
    shards = [(X[i::3], y[i::3]) for i in range(3)]
    model = POLKClassifier(random_state=0)
    settings = {"max_points": 20, "merge_every": 200}
    local = fit_sharded(model, shards, **settings)
    assert fit_sharded(model, shards, engine="ray", **settings).fingerprint() == local.fingerprint()
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fit_sharded(model, shards, engine="ray", **settings)


def test_a_message_delivered_twice_counts_once(tmp_path):
    agents = make_agents(2, "proximity")
    batches = make_batches(agents, 4)
    once, twice = LocalEngine(), {}
    once.start(agents)
    run(once, batches)
    for name, agent in agents.items():
        storage.write(tmp_path / f"{name}.ks", "Agent", *agent.state())
        twice[name] = _Host(str(tmp_path / f"{name}.ks"), 1, 1)
    for r, batch in enumerate(batches):
        requests, answers = {}, {}
        for _ in range(2):
            requests |= {name: twice[name].open(r, batch[name])[1] for name in batch}
        for _ in range(2):
            for name in requests:
                reply = twice[1 - name].answer(r, batch.get(1 - name), requests[name])
                answers[name] = ([1 - name], reply[1])
        for _ in range(2):
            for name, host in twice.items():
                host.close(r, batch.get(name), *answers.get(name, ([],)))
        for name, (_, reply) in answers.items():  # even after the round
            again = twice[1 - name].answer(r, batch.get(1 - name), requests[name])[1]
            assert np.array_equal(again.values, reply.values)
    expected = fingerprints(once)
    for name, host in twice.items():
        assert Agent.restore(*host.state(4)).fingerprint() == expected[name]
        assert _Host(str(tmp_path / f"{name}.ks"), 1, 1)._agent.fingerprint() == expected[name]


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    X, y = make_multidist(60, random_state=0)
    with pytest.raises(ImportError, match=r"pip install 'kernelstream\[ray\]'"):
        fit_sharded(POLKClassifier(), [(X, y)], engine="ray")
    with pytest.raises(ImportError, match=r"pip install 'kernelstream\[ray\]'"):
        RayEngine().start(make_agents(2))
    assert fit_sharded(POLKClassifier(), [(X, y)]).n_seen_ == 60
    network = ConsensusNetwork(networkx.path_graph(2), penalty=0.2).run((X, y), batch=10)
    assert network.round_ == 3


def test_by_name():
    assert isinstance(make_engine("ray"), RayEngine)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"checkpoint_every": 0}, "checkpoint_every must be"),
        ({"timeout": 0.0}, "timeout must be"),
        ({"on_timeout": "ignore"}, "'restart' or 'dead'"),
        ({"restarts": -1}, "restarts must be"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        RayEngine(**parameters)
