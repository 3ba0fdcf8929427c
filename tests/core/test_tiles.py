"""Inner products in tiles: right, and the same bits however samples come together."""

import numpy as np
import pytest

from kernelstream.core.tiles import BLOCK, products
from tests.core.tools import from_python, rows_of

compute = from_python(products)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 33, 50])
@pytest.mark.parametrize("spare", [0, 3, 40])
@pytest.mark.parametrize("features", [0, 1, 2, 5, 17])
def test_products_are_right_and_do_not_depend_on_company(n, spare, features):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(9, features)) * 10.0 ** rng.integers(-3, 4, (9, features))
    X[rng.random(X.shape) < 0.4] = 0.0
    X[2:3] = 0.0  # no entries at all
    points = rng.normal(size=(features, n + spare))
    points[:, n:] = np.nan  # what lies behind the points is nobody's business
    exact = X @ points[:, :n]
    scale = np.abs(X) @ np.abs(points[:, :n])
    together, by_entries = np.full((2, BLOCK, n + spare), np.nan)
    alone, entries_alone = np.full((2, 1, n + spare), np.nan)
    dense, sparse = rows_of(X), rows_of(X, sparse=True)
    for first in range(9 - BLOCK + 1):
        compute(dense, first, BLOCK, points, n, together)
        compute(sparse, first, BLOCK, points, n, by_entries)
        assert np.array_equal(together[:, :n], by_entries[:, :n])
        for r in range(BLOCK):
            i = first + r
            compute(dense, i, 1, points, n, alone)
            compute(sparse, i, 1, points, n, entries_alone)
            assert np.array_equal(together[r, :n], alone[0, :n])
            assert np.array_equal(alone[0, :n], entries_alone[0, :n])
            assert (np.abs(alone[0, :n] - exact[i]) <= 1e-14 * scale[i]).all()


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
                compute(rows_of(X), 0, count, points, n, out)
                values.add(out[0, place])
    assert len(values) == 1
