"""The compiled step of an agent against a student's network, and against POLK."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream import POLKClassifier, POLKRegressor
from kernelstream.core.state import pack
from kernelstream.losses import Loss
from kernelstream.network import Agent, Coupling, LocalEngine
from tests.core.tools import size
from tests.naive import kernels
from tests.naive.network import network

NEIGHBOURS = {"a": ["b", "c"], "b": ["a"], "c": ["a", "d"], "d": ["c"]}


def streams(loss, outputs, rounds, batch, seed=0):
    """Batches per round: of different sizes, with duplicates, and an agent without samples."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(rounds):
        batches = {}
        for place, name in enumerate(NEIGHBOURS):
            if name == "d" and number % 3 == 1:
                continue
            n = batch + (place == 2 and batch > 1)
            X = random.normal(size=(n, 2)).round(1)
            signal = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * place
            if Loss(loss).for_regression:
                y = signal
            elif outputs == 1:
                y = (signal > 0.0).astype(float)
            else:
                y = np.digitize(signal, [-0.5, 0.7]).astype(float)
            batches[name] = X, y
        made.append(batches)
    return made


def test_any_penalty_is_stable_both_ways():
    coupling = Coupling("consensus", penalty=1e3, two_way=True)
    rounds = streams("log_loss", 3, size(80, 10), 4)
    agents, _ = learn(rounds, "log_loss", 3, coupling, eta0=2.0, compression_error=0.1)
    for agent in agents.values():
        assert np.abs(agent.model.dual_coef_).max() < 100.0


def learn(rounds, loss, outputs, coupling, silent=(), sparse=False, **settings):
    """The engine's agents after the rounds, and the records of every round."""
    settings = {"loss": loss, "gamma": 0.7, "random_state": 0, **settings}
    classes = None if Loss(loss).for_regression else np.arange(max(2, outputs))
    agents = {
        name: Agent(name, settings, NEIGHBOURS[name], coupling, features=2, classes=classes)
        for name in NEIGHBOURS
    }
    records = []
    for number, batches in enumerate(rounds):
        requests = {
            name: agents[name].open_round(number, csr_array(X) if sparse else X, y)
            for name, (X, y) in batches.items()
        }
        answers = {
            name: {j: agents[j].answer(request) for j in NEIGHBOURS[name] if j not in silent}
            for name, request in requests.items()
        }
        records.append(
            {name: agents[name].close_round(number, answers.get(name, {})) for name in agents}
        )
    return agents, records


CASES = [
    ("log_loss", 3, 1, {"penalty": 0.3}),
    ("log_loss", 1, 3, {"penalty": 0.3, "normalised": False}),
    ("hinge", 3, 3, {"penalty": 2.0, "two_way": True}),
    ("squared_error", 1, 2, {"penalty": 0.5, "silent": ("c",)}),
    ("log_loss", 3, 2, {"tolerance": 0.05}),
    ("hinge", 1, 1, {"tolerance": 0.01, "two_way": True}),
    ("squared_error", 1, 3, {"tolerance": 0.0, "fading": 0.5, "normalised": False}),
    ("huber", 1, 2, {"tolerance": 0.1, "fading": 0.5, "two_way": True, "silent": ("b",)}),
]


@pytest.mark.parametrize(
    ("loss", "outputs", "batch", "way", "sparse"),
    [(*case, False) for case in CASES] + [(*case, True) for case in CASES[2:5]],
)
def test_equals_the_naive_network(loss, outputs, batch, way, sparse):
    rounds = streams(loss, outputs, size(25, 8), batch)
    way = dict(way)
    silent = way.pop("silent", ())
    coupling = Coupling(
        "consensus" if "penalty" in way else "proximity",
        penalty=way.get("penalty", 0.0),
        tolerance=way.get("tolerance", 0.0),
        dual_regularisation=way.get("fading", 0.0),
        normalised=way.get("normalised", True),
        two_way=way.get("two_way", False),
    )
    agents, records = learn(
        rounds, loss, outputs, coupling, silent, sparse, eta0=0.8, alpha=0.01, compression_error=0.1
    )
    signed = outputs == 1 and not Loss(loss).for_regression
    targets = [
        {name: (X, 2.0 * y - 1.0 if signed else y) for name, (X, y) in batches.items()}
        for batches in rounds
    ]
    nodes, differences = network(
        kernels.gaussian(0.7), NEIGHBOURS, targets, 2, loss, Loss(loss).number, outputs, 0.8, 0.01,
        0.1, silent=silent, **way,
    )  # fmt: skip
    for name, agent in agents.items():
        model, node = agent.model, nodes[name]
        order = np.lexsort(model.dictionary_.T)
        twin = np.lexsort(node.points.T)
        np.testing.assert_array_equal(model.dictionary_[order], node.points[twin])
        np.testing.assert_allclose(
            model.dual_coef_.T[order], node.weights[twin], rtol=1e-6, atol=1e-8
        )
        expected = [node.multipliers[j] for j in agent.neighbours]
        np.testing.assert_allclose(agent.multipliers, expected, rtol=1e-7, atol=1e-10)
    for told, found in zip(records, differences, strict=True):
        for name, record in told.items():
            for j, difference in record.differences.items():
                assert difference == pytest.approx(found[name, j], rel=1e-6, abs=1e-12)
        assert sum(len(record.differences) for record in told.values()) == len(found)
    if "tolerance" in way:
        assert max(agent.multipliers.max() for agent in agents.values()) > 0.0


@pytest.mark.parametrize(
    ("loss", "outputs", "batch", "average"),
    [("log_loss", 3, 4, False), ("hinge", 1, 3, True), ("squared_error", 1, 1, False)],
)
def test_without_penalty_agents_are_polk_bit_for_bit(loss, outputs, batch, average):
    rounds = streams(loss, outputs, size(60, 6), batch)
    settings = {"eta0": 0.8, "compression_error": 0.05, "average": average}
    agents, _ = learn(rounds, loss, outputs, Coupling("consensus"), **settings)
    for name, agent in agents.items():
        regression = Loss(loss).for_regression
        # Batches of one: POLK has a step of its own for them, with other rounding.
        model = (POLKRegressor if regression else POLKClassifier)(
            loss, gamma=0.7, random_state=0, batch_size=batch + 1, **settings
        )
        extra = {} if regression else {"classes": np.arange(max(2, outputs))}
        for X, y in (batches[name] for batches in rounds if name in batches):
            model.partial_fit(X, y, **extra).flush()
        arrays, status = pack(model._state)
        found, found_status = pack(agent.model._state)
        assert status == found_status
        for part in arrays:
            np.testing.assert_array_equal(arrays[part], found[part])


def test_an_explicit_pull_never_overshoots():
    # A multiplier far beyond 1 / eta, with a kernel whose k(x, x) is not 1.
    coupling = Coupling("proximity", tolerance=0.0, normalised=False)
    for kernel, self_kernel in (("rbf", 1.0), ("poly", 125.0)):
        agents = {
            name: Agent(
                name, {"loss": "absolute_error", "kernel": kernel, "gamma": 1.0, "eta0": 0.5},
                [other], coupling, features=1,
            )
            for name, other in (("a", "b"), ("b", "a"))
        }  # fmt: skip
        engine = LocalEngine()
        agents["a"].multipliers[:] = agents["b"].multipliers[:] = 1e6
        engine.start(agents)
        x = np.array([[2.0]])
        for number in range(30):
            engine.round(number, {"a": (x, [1.0]), "b": (x, [-1.0])})
        values = [abs(engine.predict(name, x)).max() for name in agents]
        assert max(values) <= 30 * 0.5 * self_kernel * 1.01  # what the loss alone can do


def test_the_pull_alone_brings_agents_together():
    # A loss without slope inside its tube: only the coupling moves the functions.
    for coupling in (
        Coupling("consensus", penalty=100.0),
        Coupling("consensus", penalty=100.0, two_way=True),
        Coupling("consensus", penalty=0.9, normalised=False),
    ):
        settings = {
            "loss": Loss("epsilon_insensitive", 5.0), "gamma": 1.0, "eta0": 1.0,
            "compression_error": 0.0,
        }  # fmt: skip
        names = ["a", "b"]
        agents = {
            name: Agent(name, settings, [other], coupling, features=1)
            for name, other in itertools.permutations(names)
        }
        x = np.array([[0.0]])
        agents["a"].model.partial_fit(x, [8.0])
        assert agents["a"].predict(x)[0, 0] == 1.0
        engine = LocalEngine()
        engine.start(agents)
        for number in range(10):
            engine.round(number, {"a": (x, [0.0])})
        gap = float(abs(engine.predict("a", x) - engine.predict("b", x)).max())
        assert gap < 1e-2


LITERAL = [
    ("squared_error", 1, 2, {"penalty": 0.5}),
    ("log_loss", 3, 3, {"penalty": 0.3}),
    ("squared_error", 1, 1, {"tolerance": 0.02, "fading": 0.5}),
    ("log_loss", 3, 2, {"tolerance": 0.05, "fading": 0.1}),
]


@pytest.mark.parametrize(("loss", "outputs", "batch", "way"), LITERAL)
def test_equations_17_and_19_to_20_as_they_are_printed(loss, outputs, batch, way):
    """Twenty runs each. The kernel is narrow and the samples are rounded, so that no two of them
    are nearly equal and no condition comes near 1e8, where rounding decides what is removed."""
    largest = 0.0
    for seed in range(size(20, 3)):
        rounds = streams(loss, outputs, 8, batch, seed)
        coupling = Coupling(
            "consensus" if "penalty" in way else "proximity", way.get("penalty", 0.0),
            way.get("tolerance", 0.0), way.get("fading", 0.0), normalised=False, limited=False,
        )  # fmt: skip
        agents, _ = learn(
            rounds, loss, outputs, coupling, eta0=0.4, alpha=0.01, compression_error=0.02,
            gamma=4.0,
        )  # fmt: skip
        nodes, _ = network(
            kernels.gaussian(4.0), NEIGHBOURS, rounds, 2, loss, Loss(loss).number, outputs, 0.4,
            0.01, 0.02, printed=True, **way,
        )  # fmt: skip
        grid = np.random.default_rng(7).normal(size=(20, 2))
        for name, agent in agents.items():
            node = nodes[name]
            expected = kernels.matrix(kernels.gaussian(4.0), grid, node.points) @ node.weights
            np.testing.assert_allclose(agent.predict(grid), expected, rtol=0.0, atol=1e-9)
            multipliers = [node.multipliers[j] for j in agent.neighbours]
            np.testing.assert_allclose(agent.multipliers, multipliers, rtol=0.0, atol=1e-9)
            largest = max(largest, *multipliers)
    assert (largest > 0.0) == ("tolerance" in way)


def test_a_printed_pull_is_neither_divided_nor_cut_nor_refused():
    rounds = streams("squared_error", 1, 3, 2)
    for way in ({"penalty": 50.0}, {"tolerance": 0.0}):
        kind = "consensus" if "penalty" in way else "proximity"
        coupling = Coupling(kind, **way, normalised=False, limited=False)
        agents, _ = learn(rounds, "squared_error", 1, coupling, eta0=2.0, compression_error=0.0)
        nodes, _ = network(
            kernels.gaussian(0.7), NEIGHBOURS, rounds, 2, "squared_error", eta=2.0, budget=0.0,
            regularisation=1e-6, printed=True, **way,
        )  # fmt: skip
        points = rounds[0]["a"][0]
        for name, agent in agents.items():
            expected = [nodes[name].value(kernels.gaussian(0.7), x) for x in points]
            np.testing.assert_allclose(agent.predict(points), expected, rtol=1e-6, atol=1e-6)
