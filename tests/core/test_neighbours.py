"""The most similar of the latest rows, against a sorted list."""

import numpy as np
import pytest

from kernelstream.core.experts.neighbours import NeighbourState, first_counts, neighbour_pass
from kernelstream.models._auto._latest import Latest
from tests.naive.experts import SimilarRows

N, KEPT = 120, 32


def rows_of(kind, random):
    if kind == "apart":
        return random.normal(size=(N, 3))
    if kind == "equal":  # many rows are equally far away: the latest of them counts
        return random.integers(-1, 2, size=(N, 3)).astype(float)
    if kind == "constant":
        return np.full((N, 3), 2.0)
    return 1e3 * random.integers(-1, 2, size=(N, 3)).astype(float)  # as far out as rows may be


@pytest.mark.parametrize("kind", ["apart", "equal", "constant", "far"])
@pytest.mark.parametrize("classes", [0, 1, 2, 4])
def test_similar_rows(kind, classes):
    random = np.random.default_rng(classes)
    X, scales = rows_of(kind, random), np.array([2.0, 0.25, 0.0])
    y = random.integers(classes, size=N) if classes else random.normal(size=N)
    y = y.astype(float)
    latest = Latest(3, 1, not classes, KEPT, True)
    latest.follow_scales(scales)
    twin = SimilarRows(scales, KEPT, classes)
    made, first = [], 0
    for size in (1, 2, 40, 7, 70):  # in chunks of any size
        part = slice(first, first + size)
        made.append(latest.run(X[part], y[part, None], max(1, classes))[0])
        first += size
    expected = np.array([twin.step(*row) for row in zip(X, y, strict=True)])
    found = np.concatenate(made)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-9, atol=1e-12)
    if classes:
        np.testing.assert_allclose(found.sum(axis=2), 1.0)
    new = random.normal(size=(1, 3))
    alone = latest.run(new, np.empty((0, 1)), max(1, classes))[0]  # predicted, not kept
    np.testing.assert_allclose(alone[0].reshape(expected[0].shape), twin.step(new[0]))
    rows, targets = latest.last(5)
    np.testing.assert_array_equal(rows, X[-5:])
    np.testing.assert_array_equal(targets, y[-5:])


def test_other_scales_and_sizes_are_the_same_as_from_the_beginning():
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(50, 3)), random.normal(size=(50, 2))
    latest, again = Latest(3, 2, True, 40, True), Latest(3, 2, True, 16, True)
    latest.run(X, Y, 2)
    latest = latest.resize(16)
    scales = np.array([1.0, 3.0, 0.5])
    again.follow_scales(scales)
    latest.follow_scales(scales)
    again.run(X[-16:], Y[-16:], 2)
    latest.change_units(np.array([1.0, 0.0]), np.array([2.0, 3.0]))
    new = random.normal(size=(4, 3)), np.empty((0, 2))
    expected = (again.run(*new, 2)[0] + np.array([1.0, 0.0])) * np.array([2.0, 3.0])
    np.testing.assert_allclose(latest.run(*new, 2)[0], expected, rtol=1e-12)
    wider = latest.widened(1)
    wide = np.column_stack([new[0], np.zeros(4)])
    np.testing.assert_array_equal(wider.run(wide, new[1], 2)[0], latest.run(*new, 2)[0])


def test_rows_that_only_are_kept():
    state = NeighbourState(
        np.zeros(1, np.int64), np.zeros((2, 4)), np.zeros(4), np.zeros((4, 1)), np.ones(2),
        first_counts(), np.zeros(2),
    )  # fmt: skip
    rows = np.arange(10.0).reshape(5, 2)
    neighbour_pass(state, True, rows, rows[:, :1], np.empty((0, 2, 1)), np.empty(5))
    assert state.written[0] == 5
    np.testing.assert_array_equal(state.targets[:, 0], [8.0, 2.0, 4.0, 6.0])


def test_a_row_that_is_unlike_the_last():
    random = np.random.default_rng(0)
    keys = np.repeat(np.arange(10) % 2 * 10.0, 12)[:, None]
    rows = keys + 0.1 * random.normal(size=(120, 2))
    latest = Latest(2, 1, True, 32, True)
    found = [latest.run(row[None], row[None, :1], 1)[1][0] for row in rows]
    again = Latest(2, 1, True, 32, True).run(rows, rows[:, :1], 1)[1]
    np.testing.assert_array_equal(found, again)
    np.testing.assert_array_equal(np.flatnonzero(found), np.arange(12, 120, 12))
    assert not Latest(2, 1, True, 32, False).run(rows, rows[:, :1], 1)[1].any()
