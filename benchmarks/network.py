"""Networks of agents: what coupling costs and brings, and the rates of Koppel et al. (2020)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from benchmarks.tables import show
from kernelstream import POLKClassifier, make_multidist
from kernelstream.evaluation import plot_decision_surface
from kernelstream.network import ConsensusNetwork, ProximityNetwork

AGENTS = 20
SAMPLES = 100_000
TEST = 5000
#: Of all learners: the kernel, and the error that a step may make.
COMMON = {"loss": "log_loss", "gamma": 1.0 / 1.2, "compression_error": 0.1, "random_state": 0}
#: Of agents in rounds of ten samples, and of rounds of one.
BATCH, STEP, SINGLE_STEP = 10, 4.0, 1.0
SURFACES_PICTURE = Path("docs/images/network_surfaces.png")
RATES_PICTURE = Path("docs/images/network_rates.png")
PROXIMITY_PICTURE = Path("docs/images/network_proximity.png")

Stream = tuple[NDArray[Any], NDArray[Any]]


def main() -> None:
    """Central, together, alone; and the regimes where coupling pays."""
    with threadpool_limits(1):
        show(
            f"{AGENTS} agents, {SAMPLES:,} samples of multidist, logistic loss, rounds of {BATCH}",
            ["draw", "learner", *_COLUMNS],
            _against_central(),
        )
        show(
            f"Where coupling pays: {AGENTS} agents, means over three draws",
            ["stream", "coupling", *_COLUMNS],
            _regimes(),
        )
        surfaces()


_COLUMNS = (
    "test error, mean of the agents, %",
    "worst agent, %",
    "mean function, %",
    "disagreement",
    "points per agent",
    "MB sent",
)


def _graph(seed: int, agents: int = AGENTS, share: float = 0.2) -> Any:
    """The first connected one of a row of random graphs."""
    for attempt in range(1000):
        graph = nx.gnp_random_graph(agents, share, seed=1000 * seed + attempt)
        if nx.is_connected(graph):
            return graph
    raise RuntimeError("no connected graph was found")


def _numbers(network: Any, X_test: Any, y_test: Any) -> tuple[float, ...]:
    """What the tables show of a network that has learned."""
    errors = list(network.errors(X_test, y_test).values())
    trace = network.trace_columns()
    tail = max(1, len(trace["disagreement"]) // 10)
    return (
        100.0 * float(np.mean(errors)),
        100.0 * max(errors),
        100.0 * float((network.predict(X_test) != y_test).mean()),
        float(np.nanmean(trace["disagreement"][-tail:])),
        float(trace["points"][-1]),
        float(trace["bytes"][-1]) / 1e6,
    )


def _against_central() -> Iterator[tuple[Any, ...]]:
    for draw in range(3):
        X, y, X_test, y_test = make_multidist(SAMPLES, TEST, random_state=draw)
        central = POLKClassifier(eta0=STEP, batch_size=BATCH, **COMMON).partial_fit(X, y)
        error = 100.0 * (1.0 - central.score(X_test, y_test))
        yield draw, "one central POLK", error, error, error, "-", central.model_order_, "-"
        for name, penalty in (("alone", 0.0), ("network, c = 0.1", 0.1)):
            network = ConsensusNetwork(_graph(draw), penalty=penalty, eta0=STEP, **COMMON)
            network.run((X, y), batch=BATCH)
            numbers = _numbers(network, X_test, y_test)
            yield draw, name, *numbers[:5], numbers[5] if penalty else "-"


def _regimes() -> Iterator[tuple[Any, ...]]:
    ways: tuple[tuple[str, dict[str, Any]], ...] = (
        ("none", {"penalty": 0.0}),
        ("c = 0.3", {"penalty": 0.3}),
        ("c = 0.3, two-way", {"penalty": 0.3, "two_way": True}),
    )
    for stream, batch, step in (
        ("30 samples per agent", 1, SINGLE_STEP),
        ("100 samples per agent", 1, SINGLE_STEP),
        ("400 samples per agent", 5, 0.5 * STEP),
        ("400 samples per agent, 30 % of the labels drawn again", 5, 0.5 * STEP),
        ("400 samples per agent, two of the five classes each", 5, 0.5 * STEP),
    ):
        for way, parameters in ways:
            runs = []
            for draw in range(3):
                streams, X_test, y_test = _streams(stream, draw)
                network = ConsensusNetwork(_graph(draw), eta0=step, **COMMON, **parameters)
                network.run(streams, batch=batch)
                runs.append(_numbers(network, X_test, y_test))
            means = np.mean(runs, axis=0).tolist()
            yield stream, way, *means[:5], means[5] if parameters["penalty"] else "-"


def _streams(name: str, draw: int) -> tuple[dict[int, Stream], Any, Any]:
    """A stream per agent, and a test set of all classes with true labels."""
    each = int(name.split()[0])
    X, y, X_test, y_test = make_multidist(10 * AGENTS * each, TEST, random_state=draw)
    random = np.random.default_rng(draw)
    streams = {}
    for agent in range(AGENTS):
        rows = np.arange(agent, len(y), AGENTS)
        if "classes" in name:
            rows = rows[np.isin(y[rows], [agent % 5, (agent + 1) % 5])]
        rows = rows[:each]
        labels = y[rows].copy()
        if "drawn again" in name:
            noisy = random.random(len(rows)) < 0.3
            labels[noisy] = random.integers(5, size=int(noisy.sum()))
        streams[agent] = X[rows], labels
    return streams, X_test, y_test


def surfaces() -> None:
    """What two agents that see two classes each decide, alone and coupled both ways."""
    streams, X_test, y_test = _streams("400 samples per agent, two of the five classes each", 6)
    figure, axes = plt.subplots(2, 3, figsize=(10.0, 6.6), layout="constrained")
    for row, strength in zip(axes, (0.0, 0.3), strict=True):
        network = ConsensusNetwork(
            _graph(0), penalty=strength, two_way=True, eta0=0.5 * STEP, **COMMON
        ).run(streams, batch=5)
        for ax, agent in zip(row, (0, 2, None), strict=True):
            model = network if agent is None else network.model(agent)
            plot_decision_surface(
                model, X_test[:600], y_test[:600], ax=ax, resolution=200, show_legend=False
            )
            who = "mean of all agents" if agent is None else f"agent {agent}"
            wrong = (network.predict(X_test, agent=agent) != y_test).mean()
            how = "coupled" if strength else "alone"
            ax.set_title(f"{who}, {how}: error {100.0 * wrong:.1f} %", loc="left", fontsize=10)
    figure.savefig(SURFACES_PICTURE, dpi=110)
    plt.close(figure)


def penalty() -> None:
    """Larger penalties, smaller disagreement."""
    with threadpool_limits(1):
        show(
            "The penalty: 10 agents, 1000 samples each, rounds of 2, eta0 0.5, "
            "compression_error 0.03, means over three draws",
            ["c", "coupling", *_COLUMNS, "disagreement, of the uncoupled"],
            _penalties(),
        )


def _penalties() -> Iterator[tuple[Any, ...]]:
    uncoupled = 0.0
    common = {**COMMON, "compression_error": 0.03, "eta0": 0.5}
    for coupling, strengths in (
        ("normalised", (0.0, 0.03, 0.1, 0.3, 1.0, 10.0)),
        ("explicit", (0.03, 0.1, 0.2)),  # up to what eta0 (2 c degree + 1/2) < 2 allows
    ):
        for strength in strengths:
            runs = []
            for draw in range(3):
                X, y, X_test, y_test = make_multidist(10_000, TEST, random_state=draw)
                network = ConsensusNetwork(
                    _graph(draw, 10, 0.4), penalty=strength, coupling=coupling, **common
                ).run((X, y), batch=2)
                runs.append(_numbers(network, X_test, y_test))
            means = np.mean(runs, axis=0).tolist()
            uncoupled = uncoupled or means[3]
            sent = means[5] if strength else "-"
            yield strength, coupling, *means[:5], sent, means[3] / uncoupled


SEEDS = 5
#: (method, penalty or tolerance, two-way): all of them, and some for targets that differ more.
_ALL = [("alone", 0.0, False)] + [
    (method, number, two_way)
    for two_way in (False, True)
    for method, numbers in (
        ("consensus", (0.03, 0.1, 0.3, 1.0, 10.0)),
        ("proximity", (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)),
    )
    for number in numbers
]
_SOME = [case for case in _ALL if case[2] and case[1] in (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)]


def proximity() -> None:
    """Agents with related targets: proximity, consensus, isolation."""
    with threadpool_limits(1):
        rows = _turned_table(60.0, _ALL)
        _draw_proximity(rows)
        _turned_table(180.0, [_ALL[0], *_SOME])


def _turned_table(turn: float, cases: list[tuple[str, float, bool]]) -> list[tuple[Any, ...]]:
    rows = list(_proximities(turn, cases))
    show(
        f"10 agents in a row, class means turned by up to {turn:g} degrees, 200 samples each, "
        f"means over {SEEDS} seeds; every agent is tested on its own target",
        ["method", "number", "two-way", "test error, %", "(deviation)", "disagreement",
         "better than alone in"],
        rows,
    )  # fmt: skip
    return rows


def _proximities(turn: float, cases: list[tuple[str, float, bool]]) -> Iterator[tuple[Any, ...]]:
    alone: list[float] = []
    for method, number, two_way in cases:
        errors, apart = [], []
        for seed in range(SEEDS):
            streams, tests = _turned(seed, turn)
            graph = nx.path_graph(len(streams))
            common = {**COMMON, "eta0": SINGLE_STEP, "two_way": two_way}
            network: Any
            if method == "proximity":
                network = ProximityNetwork(graph, tolerance=number, **common)
            else:
                network = ConsensusNetwork(graph, penalty=number, **common)
            network.run(streams)
            wrong = [
                (network.predict(X, agent=agent) != y).mean() for agent, (X, y) in tests.items()
            ]
            errors.append(100.0 * float(np.mean(wrong)))
            trace = network.trace_columns()
            apart.append(float(np.mean(trace["disagreement"][-40:])))
        alone = alone or errors
        wins = sum(error < other for error, other in zip(errors, alone, strict=True))
        yield (
            method, number, "yes" if two_way else "no", float(np.mean(errors)),
            float(np.std(errors)), float(np.mean(apart)), f"{wins} of {SEEDS}",
        )  # fmt: skip


def _turned(
    seed: int, degrees: float, agents: int = 10, each: int = 200
) -> tuple[dict[int, Stream], Any]:
    """The mixture of multidist, turned about the origin a little more for every agent."""
    X, y, X_test, y_test = make_multidist(agents * each, 2000, random_state=seed)
    streams, tests = {}, {}
    for agent in range(agents):
        angle = np.deg2rad(degrees * agent / (agents - 1))
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        streams[agent] = X[agent::agents] @ turn, y[agent::agents]
        tests[agent] = X_test @ turn, y_test
    return streams, tests


def _draw_proximity(rows: list[tuple[Any, ...]]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained", sharey=True)
    for ax, two_way in zip(axes, ("no", "yes"), strict=True):
        for method, color, name in (
            ("proximity", "#0072B2", "proximity, over the tolerance"),
            ("consensus", "#D55E00", "consensus, over the penalty"),
        ):
            chosen = [row for row in rows if row[0] == method and row[2] == two_way and row[1] > 0]
            # Without bars: most of the deviation is that of the draws, which all methods share.
            numbers, errors = ([row[i] for row in chosen] for i in (1, 3))
            ax.plot(numbers, errors, "o-", color=color, label=name)
        ax.axhline(rows[0][3], color="#7A7A7A", linestyle="--", label="alone")
        ax.set_xscale("log")
        ax.set_xlabel("tolerance or penalty")
        ax.set_title("two-way" if two_way == "yes" else "as printed: (17), (19)", fontsize=10)
        ax.grid(color="#E6E6E6", linewidth=0.7)
    axes[0].set_ylabel("test error on one's own target, %")
    axes[1].legend(frameon=False, fontsize=9)
    figure.savefig(PROXIMITY_PICTURE, dpi=130)
    plt.close(figure)


#: Rounds of the runs of (21), and how many runs of each.
HORIZONS = (100, 200, 400, 800, 1600, 3200)
REPEATS = 5
TOLERANCE = 0.05


def rates() -> None:
    """Sub-optimality and constraint violation against T, step 1 / sqrt(T), budget 1 / T (21)."""
    with threadpool_limits(1):
        rows = list(_rates())
        gaps, violations = ([row[i] for row in rows] for i in (1, 2))
        show(
            f"5 agents with shifted curves, squared error, tolerance {TOLERANCE}; "
            f"step 2 / sqrt(T), budget 1 / T, means over {REPEATS} runs",
            ["T", "average sub-optimality", "average constraint violation", "largest multiplier",
             "smallest multiplier", "points per agent"],
            ((T, *(f"{number:.4f}" for number in numbers), points) for T, *numbers, points in rows),
        )  # fmt: skip
    slopes = [np.polyfit(np.log(HORIZONS), np.log(values), 1)[0] for values in (gaps, violations)]
    print(f"\nfitted slopes: sub-optimality {slopes[0]:.2f}, violation {slopes[1]:.2f}")
    _draw_rates(gaps, violations)


def _curves(agent: int, X: NDArray[Any]) -> Any:
    """Related targets: the same curve, shifted by 0.2 per agent."""
    return np.sin(2.0 * X[:, 0]) + 0.2 * agent


NOISE = 0.2
SETTINGS: dict[str, Any] = {"loss": "squared_error", "gamma": 1.0, "alpha": 1e-3}


#: How often in a run the agents' norms are looked at.
LOOKS = 20


def _run(horizon: int, seed: int, network: Any) -> tuple[float, dict[str, Any]]:
    """Mean over rounds and agents of what (18) sums up, l + alpha / 2 |f|^2; and the trace."""
    random = np.random.default_rng([seed, horizon])
    streams = []
    for agent in range(5):
        X = random.uniform(-2.0, 2.0, (horizon, 1))
        y = _curves(agent, X) + NOISE * random.normal(size=horizon)
        streams.append(zip(np.split(X, horizon), np.split(y, horizon), strict=True))
    squares = []
    for _ in range(LOOKS):
        network.run(streams, rounds=horizon // LOOKS)
        agents = network.agents_.values()
        squares.append(np.mean([agent.model.expansion_.norm() ** 2 for agent in agents]))
    trace = network.trace_columns()
    return float(np.mean(trace["loss"]) + 0.5 * SETTINGS["alpha"] * np.mean(squares)), trace


def _optimum() -> float:
    """The least mean of l + alpha / 2 |f|^2 over functions within the tolerance, (18).

    In the eigenfunctions of the kernel under uniform x, of which 400 places give enough, f has
    coefficients a with |f|^2 = sum a^2 / s. For given multipliers the Lagrangian is least where
    (1 + alpha / s) a + 2 L a = y, L the graph's Laplacian with the multipliers as weights: one
    equation for the five agents per eigenfunction. The multipliers maximise what is left.
    """
    places = np.linspace(-2.0, 2.0, 400)[:, None]
    K = np.exp(-SETTINGS["gamma"] * (places - places.T) ** 2) / len(places)
    sizes, functions = np.linalg.eigh(K)
    kept = sizes > 1e-12
    targets = np.stack([_curves(agent, places) for agent in range(5)]) / np.sqrt(len(places))
    y = targets @ functions[:, kept]  # (agents, eigenfunctions)
    shrink = SETTINGS["alpha"] / sizes[kept]
    edges = np.array(nx.cycle_graph(5).edges)
    left_out = np.sum(targets**2) - np.sum(y**2)

    def dual(multipliers: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        laplacian = np.zeros((5, 5))
        for (i, j), mu in zip(edges, multipliers, strict=True):
            laplacian[[i, j], [i, j]] += mu
            laplacian[[i, j], [j, i]] -= mu
        a = np.stack(
            [np.linalg.solve((1.0 + shrink[m]) * np.eye(5) + 2.0 * laplacian, y[:, m])
             for m in range(len(shrink))], axis=1,
        )  # fmt: skip
        apart = np.sum((a[edges[:, 0]] - a[edges[:, 1]]) ** 2, axis=1) - TOLERANCE
        value = 0.5 * (np.sum((a - y) ** 2) + np.sum(shrink * a**2) + left_out)
        return -(value + multipliers @ apart), -apart

    found = minimize(dual, np.ones(5), jac=True, bounds=[(0.0, None)] * 5, method="L-BFGS-B")
    return float(-found.fun / 5.0 + 0.5 * NOISE**2)


def _rates() -> Iterator[tuple[Any, ...]]:
    best = _optimum()
    for horizon in HORIZONS:
        gaps, violations, largest, smallest, points = [], [], [], [], []
        for seed in range(REPEATS):
            network = ProximityNetwork(
                nx.cycle_graph(5), tolerance=TOLERANCE, eta0=2.0 / np.sqrt(horizon),
                compression_error=1.0 / horizon, random_state=0, **SETTINGS,
            )  # fmt: skip
            loss, trace = _run(horizon, seed, network)
            gaps.append(loss - best)
            violations.append(trace["average_violation"][-1] / 10.0)  # per directed edge
            every = [trace[name] for name in trace if name.startswith("multiplier ")]
            largest.append(np.max(every))
            smallest.append(np.min(every))
            points.append(trace["points"][-1])
        assert min(smallest) >= 0.0, "a multiplier is negative"
        yield (
            horizon, float(np.mean(gaps)), float(np.mean(violations)), float(max(largest)),
            float(min(smallest)), float(np.mean(points)),
        )  # fmt: skip


def _draw_rates(gaps: list[float], violations: list[float]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    horizons = np.array(HORIZONS, dtype=float)
    for ax, values, slope, name in (
        (axes[0], gaps, -0.5, "average sub-optimality"),
        (axes[1], violations, -0.25, "average constraint violation"),
    ):
        ax.loglog(horizons, values, "o-", color="#0072B2", label="measured")
        guide = values[0] * (horizons / horizons[0]) ** slope
        ax.loglog(horizons, guide, "--", color="#7A7A7A", label=f"slope {slope:g} of (21)")
        ax.set_xlabel("rounds T")
        ax.set_ylabel(name)
        ax.grid(color="#E6E6E6", linewidth=0.7, which="both")
        ax.legend(frameon=False)
    figure.savefig(RATES_PICTURE, dpi=130)
    plt.close(figure)
