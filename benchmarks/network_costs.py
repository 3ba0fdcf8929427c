"""Bytes and seconds of a network's round: measured, predicted, and at ten thousand agents."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import networkx
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.tables import show
from kernelstream import make_multidist
from kernelstream.network import Agent, Coupling, LocalEngine
from kernelstream.network.costs import CostModel, NetworkSize, simulate

PICTURE = Path("docs/images/network_costs.png")
#: Agents, degree, batch, points, features, outputs: the model is fitted to these ...
FITTED = [
    NetworkSize(*numbers)
    for numbers in (
        (2, 1, 1, 20, 2), (8, 2, 1, 20, 2), (8, 7, 1, 20, 2), (16, 8, 2, 30, 5),
        (20, 2, 1, 50, 5), (12, 6, 8, 20, 5), (20, 10, 4, 100, 10), (8, 2, 16, 20, 2),
        (8, 2, 64, 20, 5), (6, 2, 128, 50, 5), (4, 3, 64, 200, 10), (8, 4, 32, 100, 5),
        (4, 2, 8, 50, 20), (8, 2, 4, 200, 50), (5, 4, 16, 300, 20, 5), (6, 4, 32, 200, 100),
        (10, 4, 1, 100, 100), (16, 4, 16, 20, 20), (10, 2, 2, 300, 10), (20, 6, 1, 200, 30),
    )
]  # fmt: skip
#: ... and foretells these.
FORETOLD = [
    NetworkSize(*numbers)
    for numbers in (
        (3, 2, 16, 30, 3), (10, 3, 32, 100, 20), (12, 4, 16, 150, 30), (20, 4, 8, 250, 60),
        (30, 6, 4, 60, 10), (40, 4, 1, 50, 8, 3), (50, 2, 32, 50, 5), (50, 4, 8, 100, 20),
        (50, 8, 2, 200, 10),
    )
]  # fmt: skip
REPEATS = 9
AGENTS = (10, 100, 1000, 10_000)
#: Seconds of a message on its way, and bytes per second of a link: a data centre's, assumed.
LATENCY, BANDWIDTH = 1e-4, 1.25e8
RAY_AGENTS = (2, 4, 8)
RAY_ROUNDS = 100


def main() -> None:
    """Print the tables and draw the picture; one thread."""
    with threadpool_limits(1):
        seconds = [simulate(size, repeats=REPEATS).seconds for size in FITTED]
        model = CostModel.fit(FITTED, seconds)
        units = [f"{name}: {value:.3g}" for name, value in model._asdict().items()]
        print(f"\nSeconds, fitted to {len(FITTED)} networks: {', '.join(units)}")
        fits = [model.seconds(size) for size in FITTED]
        worst = max(abs(fit / true - 1.0) for fit, true in zip(fits, seconds, strict=True))
        print(f"Largest relative error at these: {100 * worst:.0f} %")
        found: list[tuple[float, float]] = []
        show(
            "Networks that the model was not fitted to, local engine",
            ["agents", "degree", "batch", "points", "features", "outputs", "messages", "bytes",
             "the same as counted", "processor ms a round", "predicted", "error %"],
            _predicted(model, found),
        )  # fmt: skip
    show(
        "A round, degree 4, batch 32, 100 points, 20 features, 2 classes: extrapolated",
        ["agents", "messages", "MB", "one processor, s",
         f"one processor each, link {BANDWIDTH * 8 / 1e9:g} Gbit/s, s"],
        _extrapolated(model),
    )  # fmt: skip
    _draw(model, list(zip(fits, seconds, strict=True)), found)
    print(f"\nPicture: {PICTURE}")
    show(
        "Ray on this machine, batch 8, 2 features, 30 points: wall time",
        ["agents", "local engine, ms a round", "Ray, ms a round", "Ray, ms an agent"],
        _ray(),
    )


def _predicted(model: CostModel, found: list[tuple[float, float]]) -> Iterator[tuple[Any, ...]]:
    for size in FORETOLD:
        measured = simulate(size, repeats=REPEATS)
        guess = model.seconds(size)
        found.append((guess, measured.seconds))
        exact = size.bytes == measured.bytes and size.messages == measured.messages
        error = f"{100 * (guess / measured.seconds - 1.0):+.0f}"
        yield (*size, size.messages, size.bytes, exact, 1e3 * measured.seconds, 1e3 * guess, error)


def _extrapolated(model: CostModel) -> Iterator[tuple[Any, ...]]:
    for agents in AGENTS:
        size = NetworkSize(agents, 4, 32, 100, 20)
        alone = model.seconds(size)
        each = model.seconds(size, agents, LATENCY, BANDWIDTH)
        yield agents, size.messages, size.bytes / 1e6, alone, each


def _ray() -> Iterator[tuple[Any, ...]]:
    try:
        from kernelstream.network import RayEngine
        from kernelstream.network._ray_session import ray_session

        with ray_session():
            for number in RAY_AGENTS:
                local, remote = (_rounds(engine, number) for engine in (LocalEngine(), RayEngine()))
                yield number, 1e3 * local, 1e3 * remote, 1e3 * remote / number
    except ImportError as error:
        yield str(error), "", "", ""


def _rounds(engine: Any, number: int) -> float:
    """Seconds of a round."""
    graph = networkx.cycle_graph(number)
    settings = {"gamma": 1.0, "compression_error": 0.1, "max_points": 30, "random_state": 0}
    coupling = Coupling("consensus", penalty=0.5)
    agents = {
        name: Agent(name, settings, list(graph[name]), coupling, features=2, classes=range(5))
        for name in graph
    }
    X, y = make_multidist(8 * number * (RAY_ROUNDS + 5), random_state=0)
    X, y = X.reshape(-1, number, 8, 2), y.reshape(-1, number, 8)
    engine.start(agents)
    for r in range(RAY_ROUNDS + 5):
        if r == 5:  # warm
            start = time.perf_counter()
        engine.round(r, {name: (X[r, name], y[r, name]) for name in graph})
    seconds = (time.perf_counter() - start) / RAY_ROUNDS
    engine.close()
    return seconds


def _draw(
    model: CostModel, fitted: list[tuple[float, float]], predicted: list[tuple[float, float]]
) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.2), layout="constrained")
    for pairs, color, label in ((fitted, "#999999", "fitted"), (predicted, "#0072B2", "predicted")):
        guesses, truths = (1e3 * np.array(values) for values in zip(*pairs, strict=True))
        left.plot(truths, guesses, "o", color=color, label=label)
    ends = np.array([1e3 * min(true for _, true in fitted), 1e3 * max(t for _, t in predicted)])
    left.plot(ends, ends, color="#444444", linewidth=0.8)
    left.set(xlabel="measured, ms a round", ylabel="model, ms a round")
    left.legend(frameon=False)
    agents = np.array([2, 5, 10, 20, 50, 100, 1000, 10_000])
    for degree, color in ((2, "#56B4E9"), (4, "#0072B2"), (16, "#D55E00")):
        possible = agents[agents > degree]
        sizes = [NetworkSize(int(number), degree, 32, 100, 20) for number in possible]
        right.plot(possible, [model.seconds(size) for size in sizes], color=color,
                   label=f"degree {degree}: one processor")  # fmt: skip
        each = [model.seconds(s, s.agents, LATENCY, BANDWIDTH) for s in sizes]
        right.plot(possible, each, "--", color=color, label="one each")
    right.axvspan(2, 50, color="#F0F0F0", zorder=0)
    right.text(2.3, 0.02, "measured sizes", transform=right.get_xaxis_transform(), fontsize=8)
    right.set(xlabel="agents", ylabel="s a round")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(color="#E6E6E6", linewidth=0.7)
    figure.savefig(PICTURE, dpi=130)
    plt.close(figure)
