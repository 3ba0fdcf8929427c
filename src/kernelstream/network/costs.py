"""What a round of a network costs: bytes exactly, seconds by a model fitted to simulated rounds."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from kernelstream.network._engine import LocalEngine
from kernelstream.network._graph import import_networkx
from kernelstream.network._messages import Name
from kernelstream.network._networks import ConsensusNetwork

_BYTES = 8  # of a number


class NetworkSize(NamedTuple):
    """A network and its rounds, as far as they cost something.

    Parameters
    ----------
    agents : int
    degree : float
        Neighbours of an agent, in the mean.
    batch : int
        Samples of an agent in a round.
    points : int
        Stored by an agent, at its cap: every sample that comes in drives one out.
    features : int
    outputs : int, default=1
        Two classes have one, k classes k.

    Examples
    --------
    >>> from kernelstream.network.costs import NetworkSize
    >>> NetworkSize(agents=20, degree=4, batch=10, points=30, features=2).messages
    160
    """

    agents: int
    degree: float
    batch: int
    points: int
    features: int
    outputs: int = 1

    @property
    def messages(self) -> int:
        """Of a round: a request to every neighbour, and its answer."""
        return round(2 * self.agents * self.degree)

    @property
    def bytes(self) -> int:
        """Of a round: the samples to every neighbour, its values at them back."""
        numbers = self.batch * (self.features + self.outputs)
        return round(self.agents * self.degree * numbers * _BYTES)

    @property
    def work(self) -> tuple[float, ...]:
        """What seconds are made of: see :class:`CostModel`."""
        learned = self.agents * self.batch
        values = (self.degree + 1) * learned * self.points  # of the kernel: own, neighbours'
        return (
            self.agents,
            self.agents * self.degree,
            learned,
            values,
            values * (self.features + self.outputs),
            learned * (self.points + self.batch) ** 2,  # a round's samples come before others go
        )


class Measured(NamedTuple):
    """What rounds took: means over them."""

    seconds: float  # of one processor at work, whoever else uses the machine
    messages: float
    bytes: float


class CostModel(NamedTuple):
    """Seconds of a round on one processor, a sum of six terms.

    Parameters
    ----------
    per_agent, per_answer, per_sample : float
        Seconds that an agent, an answer and a sample learned from take whatever their size.
    per_value : float
        For each value of the kernel: a sample and a stored point, its own or a neighbour's.
    per_feature : float
        For each feature and output at each of these values.
    per_projection : float
        For each sample and pair of points, stored or new: taking it in and driving one out.

    Examples
    --------
    >>> from kernelstream.network.costs import CostModel, NetworkSize
    >>> size = NetworkSize(agents=10_000, degree=4, batch=32, points=100, features=20)
    >>> f"{size.bytes:,}"
    '215,040,000'
    >>> model = CostModel(4e-4, 5e-5, 6e-6, 1e-8, 5e-10, 2e-9)
    >>> round(model.seconds(size), 1)
    22.4
    >>> round(model.seconds(size, processors=1000, bandwidth=1e8), 3)
    0.027
    """

    per_agent: float
    per_answer: float
    per_sample: float
    per_value: float
    per_feature: float
    per_projection: float

    @classmethod
    def fit(cls, sizes: Sequence[NetworkSize], seconds: Sequence[float]) -> CostModel:
        """The non-negative terms whose relative errors have the least squares."""
        work = np.array([size.work for size in sizes]) / np.asarray(seconds)[:, None]
        scale = work.max(axis=0)
        return cls(*(nnls(work / scale, np.ones(len(sizes)))[0] / scale).tolist())

    def seconds(
        self,
        size: NetworkSize,
        processors: int = 1,
        latency: float = 0.0,
        bandwidth: float = math.inf,
    ) -> float:
        """Of a round, the agents spread evenly.

        Parameters
        ----------
        size : NetworkSize
        processors : int
            A round takes as long as the one with most agents.
        latency : float
            Seconds of a message on its way; a round waits for two, request and answer.
        bandwidth : float
            Bytes per second that a processor's link carries. All messages cross it: no two
            neighbours share a processor.
        """
        share = math.ceil(size.agents / processors) / size.agents
        compute = float(np.dot(self, size.work)) * share
        # Every message leaves one link and arrives at another.
        return compute + 2.0 * latency + 2.0 * size.bytes * share / bandwidth


def simulate(size: NetworkSize, rounds: int = 5, repeats: int = 3, seed: int = 0) -> Measured:
    """Rounds on a random regular graph in this process; the quickest of some repetitions.

    Agents begin with a round of ``points`` samples, and from then on stay at that many points.

    Examples
    --------
    >>> from kernelstream.network.costs import NetworkSize, simulate
    >>> size = NetworkSize(agents=4, degree=2, batch=5, points=10, features=2)
    >>> measured = simulate(size, rounds=2, repeats=1)
    >>> measured.messages == size.messages, measured.bytes == size.bytes
    (True, True)
    """
    graph = import_networkx().random_regular_graph(int(size.degree), size.agents, seed=seed)
    random = np.random.default_rng(seed)
    engine = LocalEngine()
    network = ConsensusNetwork(
        graph, penalty=0.1, gamma=1.0 / size.features, compression_error=0.0, eta0=0.1,
        max_points=size.points, classes=range(max(2, size.outputs)), allow_disconnected=True,
        engine=engine, random_state=0,
    )  # fmt: skip

    def batches(number: int) -> dict[Name, tuple[np.ndarray, np.ndarray]]:
        X = random.normal(size=(size.agents, number, size.features))
        y = random.integers(max(2, size.outputs), size=(size.agents, number))
        return dict(zip(graph, zip(X, y, strict=True), strict=True))

    network.partial_fit_round(batches(size.points))
    found: list[Measured] = []
    for repeat in range(repeats + 1):  # the first one warms up
        first = 1 + repeat * rounds
        given = [batches(size.batch) for _ in range(rounds)]
        began = time.process_time()
        closed = [engine.round(first + r, given[r]) for r in range(rounds)]
        seconds = (time.process_time() - began) / rounds
        records = [record for each in closed for record in each.values()]
        messages = sum(record.messages for record in records) / rounds
        found.append(Measured(seconds, messages, sum(record.bytes for record in records) / rounds))
    return min(found[1:])
