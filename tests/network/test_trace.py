"""The course of a network: records of its agents, in memory that stays small."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream.network import LocalEngine
from kernelstream.network import _trace as trace_module
from tests.network.tools import consensus, proximity, stream


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


def test_names_in_the_trace_do_not_collide():
    X, y = stream()
    names = ["1", 1, "1 '1'", "1 1"]
    network = proximity(nx.relabel_nodes(nx.complete_graph(4), dict(enumerate(names))))
    columns = network.run((X, y), batch=5).trace_columns()
    assert sum(name.startswith("points ") for name in columns) == 4
    assert sum(name.startswith("multiplier ") for name in columns) == 12
    for name, agent in network.agents_.items():
        assert columns[f"points {name!r}"][-1] == agent.model.model_order_
