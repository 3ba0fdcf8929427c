"""Agents as Ray actors: the same bits as in one process, whatever is killed."""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack

import networkx
import numpy as np
import pytest

from kernelstream import POLKClassifier, fit_sharded, make_multidist, storage
from kernelstream.errors import DivergenceError
from kernelstream.network import (
    Agent,
    ConsensusNetwork,
    Coupling,
    LocalEngine,
    ProximityNetwork,
    _ray_session,
)
from kernelstream.network._engine import make_engine
from kernelstream.network._ray_host import Host, Refused, load_agent
from kernelstream.network._ray_session import ray_session
from kernelstream.network.ray_engine import RayEngine
from tests.network import test_changes as changes

pytestmark = pytest.mark.slow

SETTINGS = {
    "loss": "hinge",
    "gamma": 1.0,
    "compression_error": 0.3,
    "max_points": 30,
    "random_state": 0,
}
BATCH = 4


@pytest.fixture(scope="module")
def ray():
    """One Ray for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # or a busy machine lets its processes starve
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
    # One test for all that four agents go through: four processes take a while to start.
    twins = Twins(make_agents(4, "proximity", two_way=True))
    remote, random = twins.remote, np.random.default_rng(1)
    twins.run(50)
    X = random.normal(size=(20, 2))
    assert np.array_equal(twins.local.predict(3, X), remote.predict(3, X))

    # Agents are lost: two between rounds, and one that has opened its round and answered, but
    # not closed it.
    def kill(r):
        if r == 1:
            ray.kill(remote._actors[1], no_restart=False)
            ray.kill(remote._actors[0])

    def kill_after_answers(round, now, requests):
        answer(round, now, requests)
        if round == killed:
            os.kill(pid(ray, remote, 2), signal.SIGKILL)

    answer, killed = remote._answer, twins.next + 1
    monkeypatch.setattr(remote, "_answer", kill_after_answers)
    twins.run(3, kill)

    # An agent does not answer, and is restarted.
    remote.timeout = 4.0
    stopped = pid(ray, remote, 3)
    os.kill(stopped, signal.SIGSTOP)
    twins.run(2)
    remote.timeout = None
    assert pid(ray, remote, 3) != stopped

    # Refused samples change nothing, and are forgotten.
    bad = {0: (np.zeros((1, 2)), [1]), 3: (np.full((1, 2), np.nan), [1])}
    with pytest.raises(ValueError, match=r"agent 3: .*NaN"):
        remote.round(twins.next, bad)
    assert fingerprints(remote) == fingerprints(twins.local)
    twins.batches[twins.next].pop(0, None)
    twins.run(1)

    remote.close()
    assert ray.is_initialized()  # it was not the engine's
    with pytest.raises(RuntimeError, match="holds no agents"):
        remote.predict(3, X)


def test_old_checkpoints_errors_and_death(ray, tmp_path):
    # Enough points for products that BLAS computes, with as many threads as here.
    agents = make_agents(3, loss="squared_error", gamma=20.0, compression_error=0.0, max_points=200)
    local = LocalEngine()
    remote = RayEngine(folder=tmp_path, checkpoint_every=4, on_timeout="dead", timeout=0.001)
    batches = make_batches(agents, 12, 60)
    for engine in (local, remote):
        engine.start(agents)
    assert not remote.dead  # the start does not count
    remote.timeout = None
    with pytest.raises(RuntimeError, match="another engine keeps its agents in"):
        RayEngine(folder=tmp_path).start(agents)

    def kill(r):
        if r == 6:  # between rounds, with two of them to learn again
            assert Agent.restore(*storage.read(tmp_path / "agent-1.ks")[1:]).round == 4
            os.kill(pid(ray, remote, 1), signal.SIGKILL)

    assert run(local, batches[:7]) == run(remote, batches[:7], before_round=kill)
    expected = fingerprints(local)
    assert fingerprints(remote) == expected

    # An error of one agent leaves no agent changed, not even one that is restarted.
    X, y = make_multidist(60, random_state=1)
    diverging = {0: (X, y), 1: (X, 1e100 * (1.0 + y)), 2: (X, y)}
    for lost in (None, 2):
        with pytest.raises(DivergenceError, match="agent 1"):
            remote.round(7, diverging)
        if lost is not None:
            os.kill(pid(ray, remote, lost), signal.SIGKILL)
        assert fingerprints(remote) == expected
    again = {name: batches[7][name] for name in (1, 2)}
    assert remote.round(7, again) == local.round(7, again)
    expected = fingerprints(local)
    assert fingerprints(remote) == expected

    # An agent that does not answer is declared dead, and is what it was.
    os.kill(pid(ray, remote, 1), signal.SIGSTOP)
    remote.timeout = 5.0
    records = run(remote, batches[8:10], 8)
    assert remote.dead == {1: 8}
    assert [list(record) for record in records] == [[0, 2]] * 2
    assert not any(1 in record[0].differences for record in records)
    found = remote.agents()
    assert {name: agent.round for name, agent in found.items()} == {0: 10, 1: 8, 2: 10}
    assert found[1].fingerprint() == expected[1]
    assert remote.predict(1, X).shape == (60, 1)

    for name in (0, 2):
        os.kill(pid(ray, remote, name), signal.SIGSTOP)
    remote.timeout = 1.0
    for _ in range(2):  # in the round, and before the next
        with pytest.raises(RuntimeError, match="no agent lives"):
            remote.round(10, batches[10])
    remote.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["agent-0.ks", "agent-1.ks", "agent-2.ks"]


def test_a_constraint_of_ones_own(ray):
    """Functions that only this test knows, sent to other processes, and once more to a new one."""
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (2, 12, 1))
    streams = [(X[i], np.sin(X[i, :, 0]) - 0.5 * i) for i in range(2)]
    slope = 0.5
    networks = [
        ProximityNetwork(
            networkx.path_graph(2),
            constraint=(
                lambda own, other: slope * np.maximum(own - other, 0.0).sum(axis=1),
                lambda own, other: slope * (own > other),
            ),
            coupling="printed", tolerance=0.01, loss="squared_error", gamma=1.0, eta0=0.3,
            random_state=0, engine=engine,
        )
        for engine in ("local", "ray")
    ]  # fmt: skip
    local, remote = networks
    for network in networks:
        network.run(streams, batch=2)
    os.kill(pid(ray, remote._engine, 1), signal.SIGKILL)
    for network in networks:
        network.run(streams, batch=2)
    assert fingerprints(remote._engine) == fingerprints(local._engine)
    assert max(agent.multipliers.max() for agent in remote.agents_.values()) > 0.0
    for column, numbers in local.trace_columns().items():
        assert np.array_equal(remote.trace_columns()[column], numbers)
    other = (lambda own, other: own[:, 0], lambda own, other: own)
    ties = {i: ([1 - i], Coupling("proximity", limited=False, constraint=other)) for i in range(2)}
    with pytest.raises(ValueError, match="cannot get another constraint"):
        remote._engine.change(ties, {})
    remote.close()


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
        twice[name] = Host(str(tmp_path / f"{name}.ks"), 1, 1)
    for r, batch in enumerate(batches):
        requests, answers = {}, {}
        for _ in range(2):
            requests |= {name: twice[name].open(r, r, batch[name])[1] for name in batch}
        for _ in range(2):
            for name in requests:
                reply = twice[1 - name].answer(r, r, batch.get(1 - name), requests[name])
                answers[name] = ([1 - name], reply[1])
        for _ in range(2):
            for name, host in twice.items():
                host.close(r, r, batch.get(name), *answers.get(name, ([],)))
        for name, (_, reply) in answers.items():  # even after the round
            again = twice[1 - name].answer(r, r, batch.get(1 - name), requests[name])[1]
            assert np.array_equal(again.values, reply.values)
    expected = fingerprints(once)
    for name, host in twice.items():
        assert load_agent(host.state(3, 4)).fingerprint() == expected[name]
        assert Host(str(tmp_path / f"{name}.ks"), 1, 1)._agent.fingerprint() == expected[name]


def test_attempts_that_were_given_up_are_undone(tmp_path):
    agent = make_agents(2)[0]
    path = tmp_path / "agent.ks"
    storage.write(path, "Agent", *agent.state())
    host = Host(str(path), 1, 1)
    first, second = [batch[1] for batch in make_batches([0, 1], 2)]
    host.close(1, 0, first, [])
    before = host.state(1, 1)
    host.open(2, 1, second)
    # Refused as a value: of an error that nobody fetches Ray prints the traceback.
    assert isinstance(host.open(2, 1, (np.full((1, 2), np.nan), [1]))[0], Refused)
    assert host.state(3, 1) == before
    host.close(4, 1, None, [])  # not with the samples of the attempt before
    assert host.state(5, 1) == before
    host.close(6, 1, second, [])
    assert host.state(7, 1) == before
    host.close(6, 1, second, [])  # a call of an earlier turn, repeated by Ray
    assert host.state(7, 1) == before
    host.close(8, 1, second, [])
    restarted = Host(str(path), 1, 1)  # nobody has confirmed the round
    assert restarted.state(9, 1) == before


class FakeRay:
    """Counts its sessions."""

    def __init__(self):
        self.gcs_address, self.sessions = None, 0

    def is_initialized(self):
        return self.gcs_address is not None

    def get_runtime_context(self):
        return self

    def init(self, **options):
        self.sessions += 1
        self.gcs_address = f"127.0.0.1:{self.sessions}"

    def shutdown(self):
        self.gcs_address = None


@pytest.fixture
def fake(monkeypatch):
    ray = FakeRay()
    monkeypatch.setattr(_ray_session, "import_ray", lambda: ray)
    monkeypatch.setattr(_ray_session, "_started", None)
    monkeypatch.setattr(_ray_session, "_users", 0)
    return ray


def test_the_last_session_shuts_down_what_was_started_here(fake):
    first, second = ExitStack(), ExitStack()
    first.enter_context(ray_session())
    second.enter_context(ray_session())
    first.close()
    assert fake.is_initialized()
    second.close()
    assert not fake.is_initialized()


def test_what_the_user_started_stays(fake):
    with ray_session():
        fake.shutdown()  # by the user, who starts another one
        fake.init()
        with ray_session():
            pass
        assert fake.is_initialized()
    assert fake.is_initialized()


def test_an_engine_that_nobody_holds_leaves_nothing(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = RayEngine()
    engine.start({})
    assert len(list(tmp_path.iterdir())) == 1
    assert engine._end.atexit  # the same when Python ends
    del engine
    gc.collect()
    assert not list(tmp_path.iterdir())
    assert not fake.is_initialized()


@pytest.mark.skipif(not os.path.exists("/proc/self"), reason="processes are looked up in /proc")
def test_a_mark_of_a_process_that_has_ended(fake, tmp_path):
    mark = tmp_path / "engine.json"
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                           capture_output=True, text=True, check=True)  # fmt: skip
    mark.write_text(json.dumps({"host": socket.gethostname(), "process": int(ended.stdout)}))
    engine = RayEngine(folder=tmp_path)
    engine.start({})
    with pytest.raises(RuntimeError, match="another engine"):
        RayEngine(folder=tmp_path).start({})
    engine.close()
    mark.write_text(json.dumps({"host": "another machine", "process": 1}))
    with pytest.raises(RuntimeError, match=r"another machine.*delete .*engine\.json"):
        engine.start({})
    assert not fake.is_initialized()


def test_after_the_user_has_shut_ray_down(fake):
    engine = RayEngine()
    engine.start({})
    engine._actors[0] = None
    fake.shutdown()
    with pytest.raises(RuntimeError, match="was shut down"):
        engine.round(0, {})
    engine.close()  # there is nothing to kill
    with pytest.raises(RuntimeError, match="holds no agents"):
        engine.round(0, {})


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
        ({"on_timeout": "ignore"}, "'restart', 'dead'"),
        ({"restarts": -1}, "restarts must be"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        RayEngine(**parameters)


def test_the_same_bits_on_graphs_that_change(ray):
    """A ring that becomes a star midway, an agent that leaves and returns, one that is new; with
    an agent lost right at a change, and one between a change and the next checkpoint."""
    make, given, _ = changes.WAYS["proximity"]
    made = changes.rounds_of(changes.GRAPHS)
    local = changes.learn(make(changes.RING, two_way=True, **given, **changes.COMMON), made)
    engine = RayEngine(checkpoint_every=5)
    options = {"two_way": True, "engine": engine, **given, **changes.COMMON}
    with make(changes.RING, **options) as network:

        def kill(number):
            if number in (6, 15):
                ray.kill(engine._actors["a"], no_restart=False)

        changes.learn(network, made, kill)
        assert changes.fingerprints(network) == changes.fingerprints(local)
        for column, values in local.trace_columns().items():
            np.testing.assert_array_equal(network.trace_columns()[column], values)
        X = made[0][1]["a"][0]
        assert np.array_equal(network.predict(X), local.predict(X))
