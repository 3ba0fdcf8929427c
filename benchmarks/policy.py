"""Policy evaluation: against a value function in closed form, over a million transitions, and
against Monte Carlo returns in a Gymnasium environment."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_discrete_lyapunov
from threadpoolctl import threadpool_limits

from benchmarks.tables import show
from kernelstream import DivergenceError, KernelPolicyEvaluation
from kernelstream.streams import transitions

#: x <- A x + noise, a damped rotation; the reward is -|x|^2 / 10.
A = 0.95 * np.array([[0.9, 0.2], [-0.2, 0.9]])
NOISE = 0.15 * np.eye(2)
COST = 0.1 * np.eye(2)
DISCOUNT = 0.9
SETTINGS: dict[str, Any] = {
    "discount": DISCOUNT, "gamma": 0.1, "compression_error": 0.005, "average": True,
    "random_state": 0,
}  # fmt: skip
#: What is compared: method, beta.
METHODS = (
    ("corrected", "auto"), ("corrected", 0.001), ("corrected", 0.1), ("gradient", 0.01),
    ("gradient", 0.1), ("scalar", 0.01), ("scalar", 0.1), ("scalar", 1.0),
)  # fmt: skip

#: MountainCar-v0: push in the direction of motion. One reward of -1 per step.
CAR_DISCOUNT = 0.99
CAR_SETTINGS: dict[str, Any] = {
    "discount": CAR_DISCOUNT, "gamma": 4.0, "eta0": 0.5, "random_state": 0,
}  # fmt: skip

#: Method, beta, error budget: steps along the tracked difference begin smaller by beta, and a
#: larger budget would undo all of them.
CAR_METHODS = (
    ("corrected", "auto", 0.02), ("corrected", 0.001, 0.02), ("corrected", 0.1, 0.02),
    ("gradient", 0.1, 0.001), ("scalar", 0.1, 0.001), ("scalar", 1.0, 0.001),
)  # fmt: skip


def main() -> None:
    """All three; one thread."""
    with threadpool_limits(1):
        show(
            "A linear-Gaussian system with quadratic reward, 100,000 transitions, three seeds",
            ["order of transitions", "method", "tracking_rate", "relative error, %",
             "error / deviation of V, %", "points"],
            _closed_form(),
        )  # fmt: skip
        show(
            "The same system, one million transitions",
            ["transitions", "points", "relative error, %", "CPU us per transition"],
            _million(),
        )
        show(
            "MountainCar-v0, values of 5,000 states against their Monte Carlo returns",
            ["method", "tracking_rate", "transitions learned", "RMSE", "R2", "points"],
            _mountain_car(),
        )


def walks() -> None:
    """Episodes that end, without a discount."""
    with threadpool_limits(1):
        show(
            "A random walk on five places, 5,000 episodes, discount 1, three seeds: largest error "
            "of a value, relative to its truth",
            ["method", "tracking", "tracking_rate", "largest relative error, %"],
            _walks(),
        )
        show(
            "The rate of the tracker, method corrected: errors in percent on a chain of five "
            "states, random walks of five and nine places, and the linear-Gaussian system in order "
            "and shuffled (60,000 transitions), two seeds; and whether V stays finite off-policy",
            ["tracking_rate", "schedule", "chain", "walk of 5", "walk of 9", "in order",
             "shuffled", "off-policy"],
            _schedules(),
        )  # fmt: skip


def random_walk(episodes: int, seed: int, places: int = 5) -> tuple[NDArray[Any], ...]:
    """A step to either side until the walk is beyond the first or the last; the latter pays 1."""
    random = np.random.default_rng(seed)
    path: list[tuple[int, int]] = []
    for _ in range(episodes):
        here = int(random.integers(1, places + 1))
        while 0 < here <= places:
            there = here + (1 if random.random() < 0.5 else -1)
            path.append((here, there))
            here = there
    states, following = np.array(path).T
    unit = places + 1.0
    ends = (following == 0) | (following == places + 1)
    return states[:, None] / unit, 1.0 * (following == unit), following[:, None] / unit, ends


def _walks() -> Iterator[tuple[Any, ...]]:
    truth = np.arange(1, 6) / 6.0
    for method, rates in (
        ("corrected", ("auto", 1e-3, 0.1)),
        ("gradient", (0.01, 0.1)),
        ("scalar", (0.1,)),
    ):
        for rate in rates:
            for tracking in ("average", "momentum") if method == "scalar" else ("average",):
                wrong = []
                for seed in range(3):
                    given = {"method": method, "tracking": tracking, "tracking_rate": rate}
                    wrong.append(_walk_error(random_walk(5000, seed), truth, given))
                yield method, tracking, _rate(rate), _spread(wrong)


def _walk_error(walked: tuple[NDArray[Any], ...], truth: NDArray[Any], given: Any) -> float:
    """The largest, relative, in percent."""
    model = KernelPolicyEvaluation(
        1.0, gamma=30.0, eta0=0.03, compression_error=1e-4, average=True, random_state=0, **given
    ).partial_fit(*walked)
    return float(100.0 * np.abs(model.predict(truth[:, None]) / truth - 1.0).max())


def _chain_error(seed: int, given: Any) -> float:
    """Five states in a row that drift to the right, 1 per step; a table of values. In percent."""
    random = np.random.default_rng(seed)
    places = random.integers(5, size=20_000)
    following = places + (random.random(20_000) < 0.7)
    truth = np.zeros(6)
    for s in range(4, -1, -1):
        truth[s] = (1.0 + 0.9 * 0.7 * truth[s + 1]) / (1.0 - 0.9 * 0.3)
    table = np.eye(6)[:, :5]
    model = KernelPolicyEvaluation(
        0.9, kernel="linear", alpha=0.0, compression_error=0.0, eta0=0.1, average=True, **given
    ).partial_fit(table[places], np.ones(20_000), table[following], following == 5)
    return float(100.0 * np.abs(model.predict(table[:5]) / truth[:5] - 1.0).max())


def _off_policy(given: Any) -> str:
    """From x = 1 always to y = 2, where V(y) = 2 V(x): temporal differences alone diverge."""
    once, rewards = np.ones((5000, 1)), np.append(1.0, np.zeros(4999))
    model = KernelPolicyEvaluation(
        0.95, kernel="linear", alpha=0.0, compression_error=0.0, eta0=0.1, **given
    )
    try:
        model.partial_fit(once, rewards, 2.0 * once)
    except DivergenceError:
        return "diverges"
    return "finite"


#: tracking_rate, tracking_schedule; those that fall have the decay 1.
SCHEDULES = (
    (0.1, "constant"), (1e-2, "constant"), (1e-3, "constant"), (1e-4, "constant"),
    (1e-5, "constant"), (1e-6, "constant"), (0.1, "inverse_sqrt"), (1e-2, "inverse_sqrt"),
    (1e-3, "inverse_sqrt"), (1e-2, "inverse_time"),
)  # fmt: skip


def _schedules() -> Iterator[tuple[Any, ...]]:
    paths = [walk(60_000, np.random.default_rng(seed)) for seed in range(2)]
    orders = [np.random.default_rng(seed).permutation(60_000) for seed in range(2)]
    states = visited(2000, np.random.default_rng(5))
    for rate, schedule in SCHEDULES:
        given = {"tracking_rate": rate, "tracking_schedule": schedule, "tracking_decay": 1.0}
        row = [float(np.mean([_chain_error(seed, given) for seed in range(2)]))]
        for places, episodes in ((5, 5000), (9, 4000)):
            truth = np.arange(1, places + 1) / (places + 1.0)
            walks = [random_walk(episodes, seed, places) for seed in range(2)]
            row.append(float(np.mean([_walk_error(walked, truth, given) for walked in walks])))
        for shuffled in (False, True):
            found = []
            for path, order in zip(paths, orders, strict=True):
                taken = tuple(part[order] for part in path) if shuffled else path
                model = KernelPolicyEvaluation(**SETTINGS, **given).partial_fit(*taken)
                found.append(errors(model, states)[0])
            row.append(float(np.mean(found)))
        yield f"{rate:g}", schedule, *(f"{number:.1f}" for number in row), _off_policy(given)


def value(states: NDArray[np.float64]) -> NDArray[np.float64]:
    """V(x) = -x^T P x - c, where P = COST + discount A^T P A (Lyapunov) and
    c = discount / (1 - discount) trace(P NOISE)."""
    P = solve_discrete_lyapunov(np.sqrt(DISCOUNT) * A.T, COST)
    constant = DISCOUNT / (1.0 - DISCOUNT) * np.trace(P @ NOISE)
    return -np.einsum("ij,jk,ik->i", states, P, states) - constant


def visited(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """States as the system visits them in the long run."""
    return rng.multivariate_normal(np.zeros(2), solve_discrete_lyapunov(A, NOISE), n)


def walk(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], ...]:
    """One trajectory: states, rewards, next states."""
    path = rng.multivariate_normal(np.zeros(2), NOISE, n + 1)
    path[0] = visited(1, rng)[0]
    for t in range(n):
        path[t + 1] += A @ path[t]
    return path[:-1], -np.einsum("ij,jk,ik->i", path[:-1], COST, path[:-1]), path[1:]


def errors(model: Any, states: NDArray[np.float64]) -> tuple[float, float]:
    """Of the values, root mean square: relative to V, and to V's own deviation; in percent."""
    truth = value(states)
    wrong = np.sqrt(np.mean((model.predict(states) - truth) ** 2))
    return 100.0 * wrong / np.sqrt(np.mean(truth**2)), 100.0 * wrong / np.std(truth)


def _closed_form() -> Iterator[tuple[Any, ...]]:
    KernelPolicyEvaluation(**SETTINGS).partial_fit(np.zeros((1, 2)), [0.0], np.ones((1, 2)))
    for shuffled in (False, True):
        for method, beta in METHODS:
            measured = []
            for seed in range(3):
                rng = np.random.default_rng(seed)
                met = walk(100_000, rng)
                if shuffled:
                    order = rng.permutation(len(met[1]))
                    met = tuple(part[order] for part in met)
                model = KernelPolicyEvaluation(**SETTINGS, method=method, tracking_rate=beta)
                model.partial_fit(*met)
                measured.append((*errors(model, visited(5000, rng)), model.model_order_))
            relative, centred, points = zip(*measured, strict=True)
            yield (
                "shuffled" if shuffled else "one trajectory", method, _rate(beta),
                _spread(relative), _spread(centred), _range(points),
            )  # fmt: skip


def _million() -> Iterator[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    met, states = walk(1_000_000, rng), visited(5000, rng)
    model = KernelPolicyEvaluation(**SETTINGS)
    for first in range(0, 1_000_000, 100_000):
        start = time.process_time()
        model.partial_fit(*(part[first : first + 100_000] for part in met))
        each = (time.process_time() - start) * 10.0
        yield f"{model.n_seen_:,}", model.model_order_, errors(model, states)[0], each


def _mountain_car() -> Iterator[tuple[Any, ...]]:
    try:
        import gymnasium
    except ImportError:
        yield "gymnasium is not installed", "", "", "", "", ""
        return
    environment = gymnasium.make("MountainCar-v0")
    met = transitions(environment, _push, 100_000, seed=0)
    test = transitions(environment, _push, 5_000, seed=1)
    returns = test.returns(CAR_DISCOUNT)
    known = np.isfinite(returns)
    mean, unit = met.states.mean(axis=0), met.states.std(axis=0)
    for method, beta, error in CAR_METHODS:
        model = KernelPolicyEvaluation(
            **CAR_SETTINGS, method=method, tracking_rate=beta, compression_error=error
        )
        done = 0
        for end in (20_000, 100_000):
            part = slice(done, end)
            model.partial_fit(
                (met.states[part] - mean) / unit, met.rewards[part] / 10.0,
                (met.next_states[part] - mean) / unit, met.terminal[part],
            )  # fmt: skip
            done = end
            wrong = 10.0 * model.predict((test.states[known] - mean) / unit) - returns[known]
            square = np.mean(wrong**2)
            yield (
                method, _rate(beta), f"{end:,}", np.sqrt(square),
                1.0 - square / np.var(returns[known]), model.model_order_,
            )  # fmt: skip


def _push(state: NDArray[np.float64]) -> int:
    return 2 if state[1] >= 0.0 else 0


def _rate(given: float | str) -> str:
    return given if isinstance(given, str) else f"{given:g}"


def _spread(numbers: Any) -> str:
    return f"{np.mean(numbers):.1f} ± {np.std(numbers):.1f}"


def _range(numbers: Any) -> str:
    return f"{min(numbers)}-{max(numbers)}"
