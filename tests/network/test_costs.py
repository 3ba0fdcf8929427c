"""The cost model: bytes as agents count them, seconds of rounds that it was not fitted to."""

import math

import numpy as np
import pytest

from kernelstream.network.costs import CostModel, NetworkSize, simulate

SIZES = [
    NetworkSize(2, 1, 1, 5, 2),
    NetworkSize(6, 3, 4, 12, 7),
    NetworkSize(5, 4, 3, 8, 2, outputs=4),
]


@pytest.mark.parametrize("size", SIZES)
def test_bytes_are_what_agents_count(size):
    measured = simulate(size, rounds=1, repeats=1)
    assert measured.bytes == size.bytes
    assert measured.messages == size.messages
    assert measured.seconds > 0.0


def test_known_costs_are_found():
    true = CostModel(4e-4, 5e-5, 6e-6, 1e-8, 5e-10, 2e-9)
    random = np.random.default_rng(0)
    numbers = [2 ** random.integers(0, 7, size=5) for _ in range(40)]
    sizes = [NetworkSize(*map(int, each)) for each in numbers]
    found = CostModel.fit(sizes, [true.seconds(size) for size in sizes])
    assert np.allclose(found, true, rtol=1e-6)


def test_costs_are_never_negative():
    sizes = [NetworkSize(2**k, 2, 4, 10, 3) for k in range(1, 7)]
    noise = np.random.default_rng(1).uniform(0.5, 2.0, len(sizes))
    found = CostModel.fit(sizes, noise)
    assert min(found) >= 0.0


def test_processors_and_links():
    model = CostModel(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    size = NetworkSize(10, 2, 1, 1, 1)
    assert model.seconds(size) == 10.0
    assert model.seconds(size, processors=4) == 3.0  # one of them has three agents
    assert model.seconds(size, processors=10, latency=0.25) == 1.5
    each = size.bytes / 10
    assert math.isclose(model.seconds(size, processors=10, bandwidth=each), 3.0)
