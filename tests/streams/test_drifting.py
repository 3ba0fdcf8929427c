"""Synthetic streams that change: seeds, shapes, and that what was learned becomes wrong."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from kernelstream import streams

#: Columns and classes of each; 0 classes: numbers.
SHAPES = {
    "transient_chessboard": (2, 8),
    "moving_squares": (2, 4),
    "sea": (3, 2),
    "rotating_hyperplane": (10, 2),
    "interchanging_rbf": (2, 15),
    "random_trees": (10, 2),
    "changing_board": (2, 4),
    "changing_relevance": (12, 0),
    "random_walk": (3, 0),
    "seasonal": (5, 0),
}
CLASSES = [name for name, (_, classes) in SHAPES.items() if classes]
#: Where the first concept ends, and where another begins and ends.
BEFORE_AND_AFTER = {
    "transient_chessboard": (500, 2000, 2500),
    "moving_squares": (100, 600, 700),
    "sea": (5000, 10_000, 15_000),
    "rotating_hyperplane": (1000, 9000, 10_000),
    "interchanging_rbf": (3000, 45_000, 48_000),
    "random_trees": (5000, 5000, 10_000),
    "changing_board": (2000, 8000, 10_000),
    "changing_relevance": (5000, 5000, 10_000),
    "seasonal": (5000, 15_000, 20_000),
}


def make(name, n_samples, **options):
    return getattr(streams, f"make_{name}")(n_samples, **options)


def parts_of(made):
    return list(made.values()) if isinstance(made, dict) else list(made)


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    features, classes = SHAPES[name]
    X, y = make(name, 6000, random_state=1)
    assert X.shape == (6000, features)
    assert y.shape == (6000,)
    assert X.dtype == np.float64
    assert y.dtype == (np.int64 if classes else np.float64)
    assert np.isfinite(X).all()
    if classes:
        assert np.unique(y).tolist() == list(range(classes))


@pytest.mark.parametrize("name", [*SHAPES, "late_categories"])
class TestSeeds:
    def test_the_same_seed_gives_the_same_samples(self, name):
        first, again = (parts_of(make(name, 300, random_state=5)) for _ in range(2))
        other = parts_of(make(name, 300, random_state=6))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))

    def test_a_longer_stream_begins_with_the_shorter_one(self, name):
        # Beyond a change of concept, and not at its end.
        short, long = (parts_of(make(name, n, random_state=5)) for n in (7001, 12_000))
        assert all(np.array_equal(a, b[:7001]) for a, b in zip(short, long, strict=True))

    def test_errors_name_the_parameter(self, name):
        with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
            make(name, 0)


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("transient_chessboard", "n_fields", 0),
        ("moving_squares", "travel", 0.0),
        ("sea", "noise", 1.1),
        ("sea", "period", 0),
        ("rotating_hyperplane", "n_drifting", 11),
        ("rotating_hyperplane", "reversal", -0.1),
        ("interchanging_rbf", "spread", float("nan")),
        ("random_trees", "depth", 17),
        ("changing_board", "changed", "all"),
        ("changing_relevance", "n_relevant", 13),
        ("random_walk", "step", -1.0),
        ("seasonal", "trend", float("inf")),
        ("late_categories", "n_first", 0),
    ],
)
def test_a_bad_parameter_is_named(name, parameter, value):
    with pytest.raises(ValueError, match=f"^{parameter} must be"):
        make(name, 10, **{parameter: value})


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_what_was_learned_becomes_wrong(name):
    end, first, last = BEFORE_AND_AFTER[name]
    X, y = make(name, last, random_state=0)
    kind = ExtraTreesClassifier if SHAPES[name][1] else ExtraTreesRegressor
    # Every fifth sample of the first concept is left out to compare with.
    held = np.arange(end) % 5 == 0
    model = kind(50, random_state=0).fit(X[:end][~held], y[:end][~held])
    before, after = model.score(X[:end][held], y[:end][held]), model.score(X[first:], y[first:])
    assert before > 0.75
    # SEA moves its threshold by one of twenty; five weights of ten move the hyperplane.
    assert after < before - {"sea": 0.03, "rotating_hyperplane": 0.1}.get(name, 0.2)


def test_the_chessboard_is_shown_field_by_field():
    X, y = streams.make_transient_chessboard(5000, random_state=3)
    assert (y == (X * 8).astype(int).sum(axis=1) % 8).all()
    fields = [len(np.unique((X[a : a + 500] * 8).astype(int), axis=0)) for a in range(0, 5000, 500)]
    assert fields[:4] == fields[5:9] == [1] * 4
    assert min(fields[4], fields[9]) > 60


def test_squares_do_not_overlap_within_the_horizon():
    X, y = streams.make_moving_squares(6000, random_state=0)
    left = [X[first : first + 120] for first in range(0, 6000, 120)]
    for rows, labels in zip(left, y.reshape(-1, 120), strict=True):
        sides = [(rows[labels == c, 0].min(), rows[labels == c, 0].max()) for c in range(4)]
        assert all(a[1] < b[0] for a, b in pairwise(sides))
    # They turn: twenty horizons later all is where it was.
    position = X[:, 0] - 2 * y
    assert abs(position[:100].mean() - position[2400:2500].mean()) < 0.3
    assert position.max() > 10.5


def test_more_and_more_gaussians_change_places():
    X, y = streams.make_interchanging_rbf(60_000, random_state=0)
    means = np.array([
        [X[a : a + 3000][y[a : a + 3000] == c].mean(axis=0) for c in range(15)]
        for a in range(0, 60_000, 3000)
    ])  # fmt: skip
    moved = (np.abs(np.diff(means, axis=0)).max(axis=2) > 0.1).sum(axis=1)
    assert moved.tolist() == [*range(2, 15), *[15] * 6]


def test_a_part_of_the_board_changes():
    X, y = streams.make_changing_board(6000, n_fields=4, random_state=0, changed=0.5)
    field = (X * 4).astype(int) @ [4, 1]
    boards = [[set(y[a : a + 2000][field[a : a + 2000] == f]) for f in range(16)]
              for a in (0, 2000, 4000)]  # fmt: skip
    assert all(len(labels) == 1 for board in boards for labels in board)
    changed = [sum(a != b for a, b in zip(boards[i], boards[i + 1], strict=True)) for i in (0, 1)]
    assert all(3 <= count <= 13 for count in changed)


def test_the_last_value_of_a_walk_predicts_best():
    X, y = streams.make_random_walk(5000, random_state=0)
    steps = y - X[:, 0]
    assert steps.std() == pytest.approx(1.0, rel=0.05)
    assert np.abs(np.corrcoef(np.column_stack([steps, *-np.diff(X).T]).T)[0, 1:]).max() < 0.05
    assert np.array_equal(X[2:], np.column_stack([y[1:-1], y[:-2], X[1:-1, 1]]))


def test_shops_open_one_after_the_other():
    columns = streams.make_late_categories(20_000, noise=0.0, random_state=0)
    assert columns["shop"].dtype == columns["returned"].dtype == object
    first = np.sort([np.argmax(columns["shop"] == shop) for shop in set(columns["shop"])])
    opened = 500 * np.arange(1, 26)
    assert (first[:5] < 100).all()
    assert ((first[5:] >= opened) & (first[5:] < opened + 400)).all()
    for shop in set(columns["shop"]):  # one threshold decides
        of_shop = columns["shop"] == shop
        in_order = columns["returned"][of_shop][np.argsort(columns["amount"][of_shop])]
        assert np.sum(in_order[1:] != in_order[:-1]) == 1
