"""Inner products of sets by counting: the same bits as by multiplying."""

import numpy as np
import pytest

from kernelstream.core import counts, kernel
from tests.core.tools import KERNELS, from_python, rows_of, sets

only_sets = from_python(counts.only_sets)
make_table = from_python(counts.make_table)
enter = from_python(counts.enter)
count_common = from_python(counts.count_common)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 127, 128, 129, 300])
@pytest.mark.parametrize("features", [1, 5, 255])
def test_counts_are_right(n, features):
    X, points = sets(6, features), np.full((features, n + 3), np.nan)
    points[:, :n] = sets(n + 2, features, seed=1)[:n].T
    rows = rows_of(X, sparse=True)
    table = make_table(True, points, n // 2, n + 3)
    assert not table[:, n // 2 :].any()
    found = np.full((1, table.shape[1]), 99, np.uint8)
    others = rows_of(points[:, :n].T, sparse=True)
    for j in range(n // 2, n):
        enter(others, j, j, table)
    assert np.array_equal(table[:, :n], points[:, :n])
    table[:, n:] = 77  # whatever stands behind the points does not matter
    for i in range(len(X)):
        count_common(rows, i, table, n, found)
        assert np.array_equal(found[0, :n], X[i] @ points[:, :n])


def test_what_is_a_set():
    X, points = sets(40, 20), sets(6, 20, seed=1).T.copy()
    rows, last = rows_of(X, sparse=True), len(X)
    assert only_sets(rows, 0, last, points, 6)
    assert only_sets(rows, 0, last, points, 0)
    assert not only_sets(rows_of(X), 0, last, points, 6)  # dense
    assert not only_sets(rows, last - 3, last, points, 6)  # too few for a table to pay
    assert not only_sets(rows, 0, 5, points, 6)
    for number in (2.0, -1.0, 0.5, 1.0 + 1e-15, np.nan):
        changed = points.copy()
        changed[3, 4] = number
        assert not only_sets(rows, 0, last, changed, 6)
        assert only_sets(rows, 0, last, changed, 4)
        other = rows_of(X, sparse=True)
        other.data[rows.indptr[7]] = number
        assert not only_sets(other, 0, last, points, 6)
        assert only_sets(other, 8, last, points, 6)
    wide = np.ones((40, 256))  # a count of 256 would not fit
    assert not only_sets(rows_of(wide, sparse=True), 0, 40, wide[:1].T.copy(), 1)
    assert only_sets(rows_of(wide[:, 1:], sparse=True), 0, 40, wide[:1, 1:].T.copy(), 1)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_values_have_the_same_bits(name):
    X, Z = sets(60, 20), sets(25, 20, seed=1)
    points, squares = Z.T.copy(), Z.sum(axis=1)
    rows = rows_of(X, sparse=True)
    assert only_sets(rows, 0, 60, points, 25)
    whole, alone = np.empty((2, 60, 25))
    norms, norms_alone = np.empty((2, 60, 2))
    program = KERNELS[name][0]
    kernel.kernel_rows(program, rows, 0, 60, points, squares, squares, 25, whole, norms)
    for i in range(60):  # one sample is not worth a table
        kernel.kernel_rows(
            program, rows, i, 1, points, squares, squares, 25, alone[i : i + 1],
            norms_alone[i : i + 1],
        )  # fmt: skip
    assert np.array_equal(whole, alone)
    assert np.array_equal(norms, norms_alone)
