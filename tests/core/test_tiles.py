"""Inner products in tiles: right, and the same bits however samples come together."""

import numpy as np
import pytest

from kernelstream.core.tiles import BLOCK, dense_products, sparse_products
from tests.core.tools import from_python, rows_of

dense = from_python(dense_products)
sparse = from_python(sparse_products)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 33])
@pytest.mark.parametrize("features", [1, 2, 5, 17])
def test_products_are_right_and_do_not_depend_on_company(n, features):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(9, features)) * 10.0 ** rng.integers(-3, 4, (9, features))
    X[rng.random(X.shape) < 0.4] = 0.0
    X[2] = 0.0  # no entries at all
    points = rng.normal(size=(features, n + 3))
    exact = X @ points
    scale = np.abs(X) @ np.abs(points)
    together = np.full((BLOCK, n + 3), np.nan)
    alone = np.full((1, n + 3), np.nan)
    by_entries = np.full((3, n + 3), np.nan)
    for first in range(9 - BLOCK + 1):
        dense(rows_of(X), first, BLOCK, points, n, together)
        for r in range(BLOCK):
            i = first + r
            dense(rows_of(X), i, 1, points, n, alone)
            sparse(rows_of(X, sparse=True), i, points, n, by_entries)
            assert np.array_equal(together[r, :n], alone[0, :n])
            assert np.array_equal(alone[0, :n], by_entries[0, :n])
            assert (np.abs(alone[0, :n] - exact[i, :n]) <= 1e-14 * scale[i, :n]).all()
    assert np.isnan(together[:, n:]).all()  # nothing is written beyond


def test_a_point_gives_the_same_bits_in_any_place():
    rng = np.random.default_rng(0)
    X, point = rng.normal(size=(BLOCK, 30)), rng.normal(size=30)
    values = set()
    for n in (1, 8, 20, 40):
        for place in range(n):
            points = rng.normal(size=(30, n))
            points[:, place] = point
            for count in (1, BLOCK):
                out = np.empty((BLOCK, n))
                dense(rows_of(X), 0, count, points, n, out)
                values.add(out[0, place])
    assert len(values) == 1
