"""Synthetic streams that change: targets of numbers, and categories that appear late.

As in ``drifting.py`` a longer stream begins with the shorter one where ``random_state`` is an int.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.synthetic import (
    RandomState,
    _check_count,
    _check_not_negative,
    _check_share,
)

Numbers = tuple[NDArray[np.float64], NDArray[np.float64]]


def make_changing_relevance(
    n_samples: int = 20_000,
    *,
    n_features: int = 12,
    n_relevant: int = 3,
    period: int = 5000,
    noise: float = 0.1,
    random_state: RandomState = None,
) -> Numbers:
    """A curve over a few columns among many, and other columns after every ``period``.

    y is the sum of sin(2 x) over the relevant columns, with random signs, over the root of their
    number, plus the product of two of them.

    Parameters
    ----------
    n_samples : int, default=20_000
    n_features : int, default=12
    n_relevant : int, default=3
        Columns that the target depends on; at each change new ones are drawn.
    period : int, default=5000
        Samples between two changes.
    noise : float, default=0.1
        Standard deviation of the Gaussian noise.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, n_features) float64, standard normal
    y : (n_samples,) float64

    Examples
    --------
    >>> from kernelstream.streams import make_changing_relevance
    >>> X, y = make_changing_relevance(1000, random_state=0)
    >>> X.shape, y.shape
    ((1000, 12), (1000,))
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_features", n_features, 2)
    _check_count("n_relevant", n_relevant, 2)
    if n_relevant > n_features:
        raise ValueError(
            f"n_relevant must be at most n_features ({n_features}), got {n_relevant!r}."
        )
    _check_count("period", period, 1)
    _check_not_negative("noise", noise)
    choice_rng, place_rng, noise_rng = np.random.default_rng(random_state).spawn(3)
    X = place_rng.normal(size=(n_samples, n_features))
    y = noise_rng.normal(scale=noise, size=n_samples)
    for first in range(0, n_samples, period):
        part = slice(first, first + period)
        chosen = choice_rng.permutation(n_features)[:n_relevant]
        signs = choice_rng.choice([-1.0, 1.0], size=n_relevant)
        y[part] += X[part, chosen[0]] * X[part, chosen[1]]
        for column, sign in zip(chosen, signs, strict=True):
            y[part] += sign * np.sin(2.0 * X[part, column]) / np.sqrt(n_relevant)
    return X, y


def make_random_walk(
    n_samples: int = 20_000, *, n_lags: int = 3, step: float = 1.0, random_state: RandomState = None
) -> Numbers:
    """A sum of independent steps: the last value is the best prediction of the next.

    Parameters
    ----------
    n_samples : int, default=20_000
    n_lags : int, default=3
        The columns are the last so many values, the newest first.
    step : float, default=1.0
        Standard deviation of a step, which is Gaussian.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, n_lags) float64
    y : (n_samples,) float64
        The next value.

    Examples
    --------
    >>> from kernelstream.streams import make_random_walk
    >>> X, y = make_random_walk(1000, random_state=0)
    >>> bool((X[1:, 0] == y[:-1]).all())
    True
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_lags", n_lags, 1)
    _check_not_negative("step", step)
    rng = np.random.default_rng(random_state)
    return _lagged(np.cumsum(rng.normal(scale=step, size=n_samples + n_lags)), n_lags)


def make_seasonal(
    n_samples: int = 20_000,
    *,
    season: int = 48,
    trend: float = 0.002,
    noise: float = 0.2,
    n_lags: int = 3,
    random_state: RandomState = None,
) -> Numbers:
    """A series with a season and a trend: a level that rises for ever, and so does the clock.

    Parameters
    ----------
    n_samples : int, default=20_000
    season : int, default=48
        Samples of a cycle, which consists of a sine wave and half of its first overtone.
    trend : float, default=0.002
        Rise per sample.
    noise : float, default=0.2
        Standard deviation of the Gaussian noise.
    n_lags : int, default=3
        How many of the last values are columns.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    X : (n_samples, 2 + n_lags) float64
        The number of the sample, its place in the season, and the last values, the newest first.
    y : (n_samples,) float64
        The next value.

    Examples
    --------
    >>> from kernelstream.streams import make_seasonal
    >>> X, y = make_seasonal(1000, random_state=0)
    >>> X[48, :2].tolist()
    [48.0, 0.0]
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("season", season, 2)
    if not np.isfinite(trend):
        raise ValueError(f"trend must be a finite number, got {trend!r}.")
    _check_not_negative("noise", noise)
    _check_count("n_lags", n_lags, 1)
    rng = np.random.default_rng(random_state)
    time = np.arange(-n_lags, n_samples)
    angle = 2.0 * np.pi * time / season
    wave = np.sin(angle) + 0.5 * np.sin(2.0 * angle)
    series = trend * time + wave + rng.normal(scale=noise, size=len(time))
    lags, y = _lagged(series, n_lags)
    now = time[n_lags:]
    return np.column_stack([now, now % season, lags]), y


def _lagged(series: NDArray[np.float64], n_lags: int) -> Numbers:
    """The last values before each, newest first, and the value."""
    windows = np.lib.stride_tricks.sliding_window_view(series, n_lags + 1)
    return windows[:, -2::-1].copy(), series[n_lags:].copy()


def make_late_categories(
    n_samples: int = 20_000,
    *,
    n_first: int = 5,
    n_later: int = 25,
    period: int = 500,
    noise: float = 0.05,
    random_state: RandomState = None,
) -> dict[str, NDArray[Any]]:
    """Columns with text: shops that open one after the other, each with a rule of its own.

    Whether an order is sent back depends on its amount: above the threshold of its shop, or below
    it. All shops that are open have the same number of orders, on average.

    Parameters
    ----------
    n_samples : int, default=20_000
    n_first : int, default=5
        Shops that are open from the beginning.
    n_later : int, default=25
        Shops that open later, one every ``period`` samples.
    period : int, default=500
    noise : float in [0, 1], default=0.05
        Share of targets that are inverted.
    random_state : int, SeedSequence, Generator or None, default=None

    Returns
    -------
    dict of str to (n_samples,) array
        ``amount``, a number; ``shop`` and ``payment``, texts, the second without use; and the
        target, ``returned``: "yes" or "no".

    Examples
    --------
    >>> from kernelstream.streams import make_late_categories
    >>> columns = make_late_categories(20_000, random_state=0)
    >>> list(columns), len(set(columns["shop"][:500])), len(set(columns["shop"]))
    (['amount', 'shop', 'payment', 'returned'], 5, 30)
    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_first", n_first, 1)
    _check_count("n_later", n_later, 0)
    _check_count("period", period, 1)
    _check_share("noise", noise)
    rule_rng, *rngs = np.random.default_rng(random_state).spawn(5)
    amount_rng, shop_rng, payment_rng, noise_rng = rngs
    threshold = rule_rng.uniform(20.0, 80.0, size=n_first + n_later)
    above = rule_rng.permutation(n_first + n_later) % 2 == 0
    amount = amount_rng.uniform(0.0, 100.0, size=n_samples).round(2)
    is_open = n_first + np.minimum(np.arange(n_samples) // period, n_later)
    shop = (shop_rng.uniform(size=n_samples) * is_open).astype(np.int64)
    payment = payment_rng.integers(3, size=n_samples)
    returned = (amount > threshold[shop]) == above[shop]
    returned ^= noise_rng.uniform(size=n_samples) < noise
    names = np.array([f"shop {number}" for number in range(1, n_first + n_later + 1)], dtype=object)
    return {
        "amount": amount,
        "shop": names[shop],
        "payment": np.array(["card", "cash", "transfer"], dtype=object)[payment],
        "returned": np.where(returned, "yes", "no").astype(object),
    }
