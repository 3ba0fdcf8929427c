"""Synthetic streams of classes whose rule changes, each in another way.

All take the number of samples and ``random_state``; an int makes a stream reproducible, and a
longer one begins with the shorter. A concept lasts for ``period`` samples where changes are sudden.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.synthetic import (
    RandomState,
    _check_count,
    _check_not_negative,
    _check_positive,
    _check_share,
)

Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]


def make_transient_chessboard(
    n_samples: int = 20_000,
    *,
    n_fields: int = 8,
    n_classes: int = 8,
    period: int = 500,
    random_state: RandomState = None,
) -> Labelled:
    """A chessboard that is shown one field at a time, and then as a whole [1]_.

    For ``period`` samples one field is shown, drawn at random; after four fields the whole board
    is, for another ``period``. What was learned about a field stays true: who forgets it fails
    when the whole board returns.

    Parameters
    ----------
    n_samples : int, default=20_000
    n_fields : int, default=8
        Fields along one side.
    n_classes : int, default=8
        Field (i, j) has class (i + j) modulo this number.
    period : int, default=500
        Samples of a field, and of the whole board. The paper gives no number.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, 2) float64, in [0, 1]
    y : (n_samples,) int64, 0 .. n_classes - 1

    References
    ----------
    .. [1] V. Losing, B. Hammer, H. Wersing. KNN classifier with self adjusting memory for
       heterogeneous concept drift. ICDM 2016.

    Examples
    --------
    >>> from kernelstream.streams import make_transient_chessboard
    >>> X, y = make_transient_chessboard(2500, random_state=0)
    >>> [len(set(y[first : first + 500].tolist())) for first in range(0, 2500, 500)]
    [1, 1, 1, 1, 8]
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_fields", n_fields, 1)
    _check_count("n_classes", n_classes, 2)
    _check_count("period", period, 1)
    place_rng, field_rng = np.random.default_rng(random_state).spawn(2)
    X = place_rng.uniform(size=(n_samples, 2))
    stage, n_stages = _stages(n_samples, period)
    fields = field_rng.integers(n_fields, size=(n_stages, 2))
    narrow = (stage % 5 < 4)[:, None]
    field = np.where(narrow, fields[stage], (X * n_fields).astype(np.int64))
    X = np.where(narrow, (field + X) / n_fields, X)
    return X, field.sum(axis=1) % n_classes


def make_moving_squares(
    n_samples: int = 20_000,
    *,
    horizon: int = 120,
    travel: float = 10.0,
    random_state: RandomState = None,
) -> Labelled:
    """Four squares in a row that move to and fro, each a class [1]_.

    The squares and the gaps between them are one wide. Their speed is such that after ``horizon``
    samples one begins to cover the place that its neighbour has left: samples younger than that
    are all that should be remembered.

    Parameters
    ----------
    n_samples : int, default=20_000
    horizon : int, default=120
        Samples in which the squares move by the width of a gap; the paper's number.
    travel : float, default=10.0
        How far they move before they turn, in widths.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, 2) float64
    y : (n_samples,) int64, 0 .. 3

    References
    ----------
    .. [1] V. Losing, B. Hammer, H. Wersing. KNN classifier with self adjusting memory for
       heterogeneous concept drift. ICDM 2016.

    Examples
    --------
    >>> from kernelstream.streams import make_moving_squares
    >>> X, y = make_moving_squares(1201, random_state=0)
    >>> float((X[-1, 0] - 2 * y[-1]).round()) >= 10.0
    True
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("horizon", horizon, 1)
    _check_positive("travel", travel)
    place_rng, label_rng = np.random.default_rng(random_state).spawn(2)
    X = place_rng.uniform(size=(n_samples, 2))
    y = label_rng.integers(4, size=n_samples)
    moved = np.arange(n_samples) / horizon % (2 * travel)
    X[:, 0] += 2.0 * y + np.minimum(moved, 2 * travel - moved)
    return X, y


#: Thresholds of the four concepts of SEA.
_SEA = np.array([8.0, 9.0, 7.0, 9.5])


def make_sea(
    n_samples: int = 20_000,
    *,
    period: int = 5000,
    noise: float = 0.1,
    random_state: RandomState = None,
) -> Labelled:
    """The SEA concepts: a threshold of x1 + x2 that jumps, and a third column without use [1]_.

    The class is 1 where x1 + x2 <= 8, then 9, 7, 9.5, and 8 again.

    Parameters
    ----------
    n_samples : int, default=20_000
        The paper has 60,000.
    period : int, default=5000
        Samples of a concept; the paper has 15,000.
    noise : float in [0, 1], default=0.1
        Share of labels that are inverted.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, 3) float64, in [0, 10]
    y : (n_samples,) int64, 0 or 1

    References
    ----------
    .. [1] W. N. Street, Y. Kim. A streaming ensemble algorithm (SEA) for large-scale
       classification. KDD 2001.

    Examples
    --------
    >>> from kernelstream.streams import make_sea
    >>> X, y = make_sea(20_000, noise=0.0, random_state=0)
    >>> [float(X[part][y[part] == 1, :2].sum(axis=1).max().round(1)) for part in
    ...  (slice(5000), slice(5000, 10_000), slice(10_000, 15_000), slice(15_000, None))]
    [8.0, 9.0, 7.0, 9.5]
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("period", period, 1)
    _check_share("noise", noise)
    place_rng, noise_rng = np.random.default_rng(random_state).spawn(2)
    X = place_rng.uniform(0.0, 10.0, size=(n_samples, 3))
    threshold = _SEA[_stages(n_samples, period)[0] % len(_SEA)]
    return X, _inverted(X[:, 0] + X[:, 1] <= threshold, noise, noise_rng)


def make_rotating_hyperplane(
    n_samples: int = 20_000,
    *,
    n_features: int = 10,
    n_drifting: int = 5,
    magnitude: float = 0.001,
    reversal: float = 0.001,
    noise: float = 0.05,
    random_state: RandomState = None,
) -> Labelled:
    """A hyperplane through the middle of the unit cube that turns all the time [1]_.

    The class is 1 where w . x >= sum(w) / 2. With every sample the drifting weights change by
    ``magnitude``, each in a direction that is now and then inverted.

    Parameters
    ----------
    n_samples : int, default=20_000
    n_features, n_drifting : int, default=10 and 5
        Columns, and how many weights change: those of the first columns.
    magnitude : float, default=0.001
        Change of a weight per sample. At the beginning weights are between 0 and 1.
    reversal : float in [0, 1], default=0.001
        The probability that a weight changes its direction, per sample.
    noise : float in [0, 1], default=0.05
        Share of labels that are inverted.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, n_features) float64, in [0, 1]
    y : (n_samples,) int64, 0 or 1

    References
    ----------
    .. [1] G. Hulten, L. Spencer, P. Domingos. Mining time-changing data streams. KDD 2001.

    Examples
    --------
    >>> from kernelstream.streams import make_rotating_hyperplane
    >>> X, y = make_rotating_hyperplane(1000, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 10), [0, 1])
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_features", n_features, 1)
    _check_count("n_drifting", n_drifting, 0)
    if n_drifting > n_features:
        raise ValueError(f"n_drifting must be at most n_features ({n_features}), got {n_drifting}.")
    _check_not_negative("magnitude", magnitude)
    _check_share("reversal", reversal)
    _check_share("noise", noise)
    start_rng, place_rng, turn_rng, noise_rng = np.random.default_rng(random_state).spawn(4)
    X = place_rng.uniform(size=(n_samples, n_features))
    weights = np.tile(start_rng.uniform(size=n_features), (n_samples, 1))
    turned = turn_rng.uniform(size=(n_samples, n_drifting)) < reversal
    direction = 1.0 - 2.0 * (np.cumsum(turned, axis=0) % 2)
    weights[:, :n_drifting] += magnitude * np.cumsum(direction, axis=0)
    # Column by column: the same bits whatever the length of the stream.
    height = np.zeros(n_samples)
    for j in range(n_features):
        height += weights[:, j] * (X[:, j] - 0.5)
    return X, _inverted(height >= 0.0, noise, noise_rng)


def make_interchanging_rbf(
    n_samples: int = 60_000,
    *,
    n_classes: int = 15,
    period: int = 3000,
    spread: float = 0.15,
    random_state: RandomState = None,
) -> Labelled:
    """Gaussians that take one another's places, first two of them, in the end all [1]_.

    Each is a class, with a covariance matrix of its own. Every ``period`` samples some of them
    change places in a circle: two, then three, and so on up to all.

    Parameters
    ----------
    n_samples : int, default=60_000
        The paper has 200,000.
    n_classes : int, default=15
    period : int, default=3000
        Samples between two changes.
    spread : float, default=0.15
        Largest standard deviation of a Gaussian; their places are about one apart.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, 2) float64
    y : (n_samples,) int64, 0 .. n_classes - 1

    References
    ----------
    .. [1] V. Losing, B. Hammer, H. Wersing. KNN classifier with self adjusting memory for
       heterogeneous concept drift. ICDM 2016.

    Examples
    --------
    >>> from kernelstream.streams import make_interchanging_rbf
    >>> X, y = make_interchanging_rbf(3000, random_state=0)
    >>> X.shape, len(set(y.tolist()))
    ((3000, 2), 15)
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_classes", n_classes, 2)
    _check_count("period", period, 1)
    _check_not_negative("spread", spread)
    start_rng, change_rng, label_rng, place_rng = np.random.default_rng(random_state).spawn(4)
    side = int(np.ceil(np.sqrt(n_classes)))
    cells = start_rng.permutation(side * side)[:n_classes]
    jitter = start_rng.uniform(-0.2, 0.2, size=(n_classes, 2))
    places = np.column_stack([cells % side, cells // side]) + jitter
    axes = np.linalg.qr(start_rng.normal(size=(n_classes, 2, 2)))[0]
    axes = axes * start_rng.uniform(0.3, 1.0, size=(n_classes, 1, 2)) * spread
    stage, n_stages = _stages(n_samples, period)
    at = np.tile(np.arange(n_classes), (n_stages, 1))  # of each Gaussian, at each stage
    for change in range(1, n_stages):
        moving = change_rng.permutation(n_classes)[: min(change + 1, n_classes)]
        at[change] = at[change - 1]
        at[change, moving] = at[change - 1, np.roll(moving, 1)]
    y = label_rng.integers(n_classes, size=n_samples)
    normal = place_rng.normal(size=(n_samples, 2))
    apart = axes[y, :, 0] * normal[:, :1] + axes[y, :, 1] * normal[:, 1:]
    return places[at[stage, y]] + apart, y


def make_random_trees(
    n_samples: int = 20_000,
    *,
    n_features: int = 10,
    n_classes: int = 2,
    depth: int = 5,
    period: int = 5000,
    random_state: RandomState = None,
) -> Labelled:
    """Rules along the axes: the class is that of a leaf of a random tree, which is replaced [1]_.

    Every inner node compares a random column with a random number within the range that the nodes
    above have left; leaves have random classes. After ``period`` samples there is a new tree.

    Parameters
    ----------
    n_samples : int, default=20_000
    n_features, n_classes : int, default=10 and 2
    depth : int from 1 to 16, default=5
        Comparisons on the way to a leaf; all leaves are at this depth.
    period : int, default=5000
        Samples of a tree.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, n_features) float64, in [0, 1]
    y : (n_samples,) int64, 0 .. n_classes - 1

    References
    ----------
    .. [1] P. Domingos, G. Hulten. Mining high-speed data streams. KDD 2000.

    Examples
    --------
    >>> from kernelstream.streams import make_random_trees
    >>> X, y = make_random_trees(1000, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 10), [0, 1])
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_features", n_features, 1)
    _check_count("n_classes", n_classes, 2)
    _check_count("depth", depth, 1)
    if depth > 16:
        raise ValueError(f"depth must be at most 16, got {depth!r}: a tree has 2^depth leaves.")
    _check_count("period", period, 1)
    tree_rng, place_rng = np.random.default_rng(random_state).spawn(2)
    X = place_rng.uniform(size=(n_samples, n_features))
    y = np.empty(n_samples, dtype=np.int64)
    for first in range(0, n_samples, period):
        part = slice(first, first + period)
        y[part] = _random_tree(X[part], n_classes, depth, tree_rng)
    return X, y


def _random_tree(
    X: NDArray[np.float64], n_classes: int, depth: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The classes that a new tree has for the rows. Node i has the children 2 i and 2 i + 1."""
    inner = 2**depth
    column = rng.integers(X.shape[1], size=inner)
    share = rng.uniform(0.25, 0.75, size=inner)  # of the range that is left
    low, high = np.zeros((2 * inner, X.shape[1])), np.ones((2 * inner, X.shape[1]))
    threshold = np.empty(inner)
    for node in range(1, inner):
        j = column[node]
        threshold[node] = low[node, j] + share[node] * (high[node, j] - low[node, j])
        low[2 * node : 2 * node + 2], high[2 * node : 2 * node + 2] = low[node], high[node]
        high[2 * node, j] = low[2 * node + 1, j] = threshold[node]
    at = np.ones(len(X), dtype=np.int64)  # the root
    for _ in range(depth):
        at = 2 * at + (X[np.arange(len(X)), column[at]] > threshold[at])
    classes = rng.permutation(np.arange(inner) % n_classes)  # equally many leaves each
    return classes[at - inner]  # type: ignore[no-any-return]


def make_changing_board(
    n_samples: int = 20_000,
    *,
    n_fields: int = 8,
    n_classes: int = 4,
    period: int = 2000,
    changed: float = 0.25,
    random_state: RandomState = None,
) -> Labelled:
    """A board of fields with random classes, of which a part changes at once, again and again.

    Parameters
    ----------
    n_samples : int, default=20_000
    n_fields, n_classes : int, default=8 and 4
        Fields along one side, and classes.
    period : int, default=2000
        Samples between two changes.
    changed : float in [0, 1], default=0.25
        The probability that a field gets another class at a change.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, 2) float64, in [0, 1]
    y : (n_samples,) int64, 0 .. n_classes - 1

    Examples
    --------
    >>> from kernelstream.streams import make_changing_board
    >>> X, y = make_changing_board(1000, random_state=0)
    >>> X.shape, len(set(y.tolist()))
    ((1000, 2), 4)
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_fields", n_fields, 1)
    _check_count("n_classes", n_classes, 2)
    _check_count("period", period, 1)
    _check_share("changed", changed)
    board_rng, place_rng = np.random.default_rng(random_state).spawn(2)
    X = place_rng.uniform(size=(n_samples, 2))
    field = (X * n_fields).astype(np.int64)
    board = board_rng.integers(n_classes, size=(n_fields, n_fields))
    y = np.empty(n_samples, dtype=np.int64)
    for first in range(0, n_samples, period):
        part = field[first : first + period]
        y[first : first + period] = board[part[:, 0], part[:, 1]]
        other = board_rng.integers(1, n_classes, size=board.shape)
        swapped = board_rng.uniform(size=board.shape) < changed
        board = np.where(swapped, (board + other) % n_classes, board)
    return X, y


def _stages(n_samples: int, period: int) -> tuple[NDArray[np.int64], int]:
    """Which concept each sample belongs to, and how many there are."""
    stage = np.arange(n_samples) // period
    return stage, int(stage[-1]) + 1


def _inverted(
    labels: NDArray[np.bool_], noise: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Labels of two classes, a share of them wrong."""
    return (labels ^ (rng.uniform(size=len(labels)) < noise)).astype(np.int64)
