"""Sums have the order that the source gives them, whatever is compiled around them."""

import math

import numpy as np
import pytest

from kernelstream.core.jit import INTERPRETED, compiled
from kernelstream.core.lanes import dot, fma, lengths


@compiled
def row_product(left, i, right, j, begin, end):
    return dot(left, i, right, j, begin, end)


@compiled
def all_products(left, right, n, out):
    """The same sums in the middle of a loop that stores them."""
    for i in range(left.shape[0]):
        out[i] = dot(left, i, right, 0, 0, n)
        for j in range(right.shape[0]):
            right[j] *= 1.0


@compiled
def row_norms(array, i, begin, end):
    return lengths(array, i, begin, end)


@compiled
def multiply_add(a, b, c):
    return fma(a, b, c)


@pytest.mark.parametrize("begin", [0, 3])
def test_sums_of_every_length(begin):
    random = np.random.default_rng(0)
    left, right = random.normal(size=(3, 90)), random.normal(size=(2, 90))
    for end in range(begin, 80):
        a, b = left[2, begin:end], right[1, begin:end]
        exact, size = math.fsum(a * b), np.abs(a * b).sum()
        assert abs(row_product(left, 2, right, 1, begin, end) - exact) <= 1e-14 * size
        assert row_product(left, 2, right[1], 0, begin, end) == row_product(
            left, 2, right, 1, begin, end
        )
        square, absolute = row_norms(left, 2, begin, end)
        assert square == pytest.approx(math.fsum(a * a), rel=1e-14)
        assert absolute == pytest.approx(math.fsum(np.abs(a)), rel=1e-14)


def test_the_caller_changes_no_bit():
    random = np.random.default_rng(1)
    left, right, out = random.normal(size=(40, 75)), random.normal(size=75), np.empty(40)
    for n in range(75):
        all_products(left, right, n, out)
        alone = [row_product(left, i, right, 0, 0, n) for i in range(40)]
        assert np.array_equal(out, alone)


@pytest.mark.skipif(INTERPRETED, reason="plain Python rounds twice")
def test_one_rounding():
    tiny = 2.0**-30
    assert multiply_add(1.0 + tiny, 1.0 - tiny, -1.0) == -(tiny**2)


@pytest.mark.skipif(INTERPRETED, reason="the order of plain Python is another one")
def test_the_order_is_the_one_written():
    """Four vectors of four lanes, then vectors, then single numbers: exact in units of one."""
    huge = 2.0**60
    row = np.zeros(16 + 4 + 1)
    row[0], row[16] = huge, -huge  # the same lane of the first vector: they cancel there ...
    row[1], row[20] = 1.0, 1.0  # ... and nothing is lost of these
    assert row_product(row, 0, np.ones(21), 0, 0, 21) == 2.0
    row[0], row[4] = huge, -huge  # lanes of other vectors meet before they meet other lanes
    row[16] = 0.0
    assert row_product(row, 0, np.ones(21), 0, 0, 21) == 2.0
    row[4], row[2] = 0.0, -huge  # lanes 0 and 2 meet before lanes 1 and 3
    assert row_product(row, 0, np.ones(21), 0, 0, 21) == 2.0
    row[2], row[3] = 0.0, -huge  # lanes 0 and 3 meet last: the one in lane 1 is lost
    assert row_product(row, 0, np.ones(21), 0, 0, 21) == 1.0
