"""A synthetic electricity market that changes under the model's feet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.streams.synthetic import RandomState, _check_count

_HALF_HOURS = 48  # a day
_START = np.datetime64("2020-01-01T00:00:00", "us")


def make_drifting_market(
    n_samples: int = 45_000, *, random_state: RandomState = None
) -> dict[str, NDArray[Any]]:
    """Half-hourly records of an invented electricity market: will the price rise?

    The shape of a real one: cycles over the day, the week and the year, demand that follows the
    weather, wind, an interconnector to a neighbour, sensors that fail, and a price whose rule
    drifts slowly and changes at once when the interconnector is rebuilt, halfway. Nothing in it is
    measured anywhere: the data are made by this function and free of any licence.

    Parameters
    ----------
    n_samples : int, default=45000
        About two and a half years.
    random_state : int, SeedSequence, Generator or None, default=None
        An int makes the data reproducible.

    Returns
    -------
    dict of column name to (n_samples,) array
        ``time`` (datetime64), ``demand``, ``temperature`` and ``wind`` (with gaps, NaN),
        ``neighbour`` (its demand), ``zone`` (texts), ``direction``: "up" or "down", whether the
        price is above what was agreed for that day.

    Examples
    --------
    >>> from kernelstream.streams import make_drifting_market
    >>> columns = make_drifting_market(1000, random_state=0)
    >>> list(columns)
    ['time', 'demand', 'temperature', 'wind', 'neighbour', 'zone', 'direction']
    >>> sorted(set(columns["direction"].tolist()))
    ['down', 'up']
    """
    from scipy.signal import lfilter  # takes longer to import than the whole of this package

    _check_count("n_samples", n_samples, 1)
    random = np.random.default_rng(random_state)
    n = n_samples
    t = np.arange(n)
    day, year = 2.0 * np.pi * t / _HALF_HOURS, 2.0 * np.pi * t / (_HALF_HOURS * 365.25)
    weekend = (t // _HALF_HOURS + 2) % 7 >= 5  # the first day is a Wednesday

    def wandering(memory: float) -> NDArray[np.float64]:
        """An autoregression of unit variance."""
        steps = random.normal(size=n) * np.sqrt(1.0 - memory**2)
        return lfilter([1.0], [1.0, -memory], steps)

    temperature = 14.0 - 9.0 * np.cos(year) - 4.0 * np.cos(day - 0.6) + 3.0 * wandering(0.995)
    peaks = np.maximum(np.sin(day - 1.9), 0.0) + 0.7 * np.maximum(np.sin(2.0 * day - 2.4), 0.0)
    demand = 6.0 + 2.2 * peaks + 0.08 * np.abs(temperature - 18.0) - 0.8 * weekend
    demand += 0.3 * wandering(0.97)
    wind = np.exp(0.6 * wandering(0.99))
    neighbour = 4.0 + 1.5 * np.roll(peaks, 3) + 0.4 * wandering(0.98)
    zone = np.array(["north", "coast", "city"])[(t // (_HALF_HOURS * 3)) % 3]

    rebuilt = t >= n // 2
    pull = 0.6 + 0.4 * np.sin(2.0 * np.pi * t / max(n, 1) * 1.5)  # of the wind: drifts slowly
    scarcity = np.exp(0.55 * (demand - 8.0)) - pull * wind * np.where(zone == "coast", 1.6, 1.0)
    scarcity += np.where(rebuilt, 0.9 * (neighbour - 5.0), -0.3 * (neighbour - 5.0))
    price = scarcity + 0.4 * random.normal(size=n)
    above = price > 0.3 + 0.5 * np.sin(2.0 * np.pi * t / max(n, 1) * 2.5)  # drifts, too

    temperature, wind = temperature.copy(), wind.copy()
    temperature[random.uniform(size=n) < 0.02] = np.nan
    wind[_outages(random, n)] = np.nan
    return {
        "time": _START + t * np.timedelta64(30 * 60 * 1_000_000, "us"),
        "demand": demand,
        "temperature": temperature,
        "wind": wind,
        "neighbour": neighbour,
        "zone": zone,
        "direction": np.where(above, "up", "down"),
    }


def _outages(random: np.random.Generator, n: int) -> NDArray[np.bool_]:
    """Where a sensor is silent: now and then, for half a day."""
    begins = (random.uniform(size=n) < 1.0 / 800.0).astype(float)
    return np.convolve(begins, np.ones(_HALF_HOURS // 2))[:n] > 0.0
