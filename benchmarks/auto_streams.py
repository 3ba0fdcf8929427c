"""The streams on which the automatic model was developed, and generated ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data import folder
from kernelstream import streams

ROWS = 20_000  # of each stream; elec2 has all its rows
LAGS = 10
Rows = tuple[Any, Any]

IN_ORDER = {
    "hyp0": "stream_hyp0", "interchanging RBF": "stream_interchangingRBF", "covtype": "covtype"
}  # fmt: skip
SHUFFLED = {
    "a9a": "a9a", "cod-rna": "cod-rna", "ijcnn1": "ijcnn1", "KDD99": "kddcup99_10pct",
    "poker": "poker_partial",
}  # fmt: skip
SHUFFLED_NUMBERS = ("casp", "cadata", "kin8nm", "abalone", "concrete")
SERIES = {"laser": "santafe_laser", "mg30": "mackey_glass_t30", "sunspots": "sunspots_monthly"}
GENERATED = {
    "transient chessboard": streams.make_transient_chessboard,
    "moving squares": streams.make_moving_squares,
    "SEA": streams.make_sea,
    "rotating hyperplane": streams.make_rotating_hyperplane,
    "interchanging RBF, generated": streams.make_interchanging_rbf,
    "random trees": streams.make_random_trees,
    "changing board": streams.make_changing_board,
}
GENERATED_NUMBERS = {
    "changing relevance": streams.make_changing_relevance,
    "random walk": streams.make_random_walk,
    "season and trend": streams.make_seasonal,
}


class Stream(NamedTuple):
    """Samples in the order in which they come; labels are 0 .. classes - 1."""

    name: str
    X: Any  # (n, p) float64
    y: Any  # (n,)
    numbers: bool

    @property
    def classes(self) -> Any:
        """Of the whole stream."""
        return np.unique(self.y)

    def first(self, rows: int | None) -> Stream:
        """Its beginning, with classes counted again."""
        y = self.y[:rows]
        y = y if self.numbers else np.unique(y, return_inverse=True)[1]
        return self._replace(X=self.X[:rows], y=y)


def stored(name: str) -> Rows | None:
    """Training and test part of a file, one after the other; None where there is no such file."""
    where = folder()
    if where is None or not (where / f"{name}.npz").exists():
        return None
    with np.load(where / f"{name}.npz", allow_pickle=False) as file:
        if "X" in file:
            return file["X"], file["y"]
        parts = [[file[f"{key}_{part}"] for part in ("train", "test")] for key in "Xy"]
    return np.concatenate(parts[0]), np.concatenate(parts[1])


def _stored(name: str, shuffled: bool) -> Rows:
    """The first rows of a file that is there, in its order or in a random one."""
    found = stored(name)
    assert found is not None
    X, y = found
    chosen = np.random.default_rng(0).permutation(len(y)) if shuffled else np.arange(len(y))
    return X[chosen[:ROWS]], y[chosen[:ROWS]]


def _elec2(with_date: bool) -> Rows:
    with np.load(f"{folder()}/elec2.npz", allow_pickle=False) as file:
        return file["X"][:, 0 if with_date else 1 :], file["y"]


def _series(name: str) -> Rows:
    """The next value from the last ones."""
    with np.load(f"{folder()}/timeseries.npz", allow_pickle=False) as file:
        windows = np.lib.stride_tricks.sliding_window_view(file[name], LAGS + 1)
    return windows[:, :-1], windows[:, -1]


def _late_categories() -> Rows:
    """Texts as columns of zeros and ones, one for every value that ever comes."""
    columns = streams.make_late_categories(ROWS, random_state=0)
    texts = [columns[name].astype(str) for name in ("shop", "payment")]
    ones = [text[:, None] == np.unique(text) for text in texts]
    return np.column_stack([columns["amount"], *ones]), columns["returned"].astype(str)


def _rare_counts() -> Rows:
    """Claims, visits, strikes: mostly none, and how likely one is depends on the first input."""
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, 4))
    any_ = random.random(ROWS) < 1.0 / (1.0 + np.exp(3.5 - 1.5 * X[:, 0]))
    return X, np.where(any_, 1.0 + random.exponential(4.0 * np.exp(0.5 * X[:, 1])).round(), 0.0)


def _half_hours() -> Rows:
    """A load every half hour from the temperature alone: days and weeks are in the load itself."""
    random = np.random.default_rng(0)
    t = np.arange(ROWS)
    day, weekend = t % 48 * np.pi / 24.0, t // 48 % 7 > 4
    temperature = 10.0 - 5.0 * np.cos(day) + 0.1 * np.cumsum(random.normal(size=ROWS))
    load = np.where(weekend, 2.0, 3.0) - np.sin(day + 1.0) ** 3 + 0.003 * (temperature - 15.0) ** 2
    noise = np.zeros(ROWS)
    for k in range(1, ROWS):  # what it is off goes on for some hours
        noise[k] = 0.9 * noise[k - 1] + 0.03 * random.normal()
    return temperature[:, None], load + noise


def all_streams() -> dict[str, tuple[bool, Callable[[], Rows]]]:
    """Name -> whether the target is a number, and what reads it; stored ones where they are."""
    found: dict[str, tuple[bool, Callable[[], Rows]]] = {}
    where = folder()

    def add(name: str, numbers: bool, file: str | None, read: Callable[[], Rows]) -> None:
        if file is None or (where is not None and (where / f"{file}.npz").exists()):
            found[name] = numbers, read

    add("elec2", False, "elec2", lambda: _elec2(False))
    add("elec2 with date", False, "elec2", lambda: _elec2(True))
    for name, file in (IN_ORDER | SHUFFLED).items():
        add(name, False, file, lambda f=file, s=name in SHUFFLED: _stored(f, s))  # type: ignore[misc]
    for name, make in GENERATED.items():
        add(name, False, None, lambda m=make: m(ROWS, random_state=0))  # type: ignore[misc]
    add("late categories", False, None, _late_categories)
    for name in SHUFFLED_NUMBERS:
        add(name, True, name, lambda f=name: _stored(f, True))  # type: ignore[misc]
    for name, key in SERIES.items():
        add(name, True, "timeseries", lambda k=key: _series(k))  # type: ignore[misc]
    for name, number in GENERATED_NUMBERS.items():
        add(name, True, None, lambda m=number: m(ROWS, random_state=0))  # type: ignore[misc]
    add("rare counts", True, None, _rare_counts)
    add("half-hourly load", True, None, _half_hours)
    return found


def read(name: str) -> Stream:
    """A stream by its name."""
    numbers, rows = all_streams()[name]
    X, y = rows()
    y = y.astype(np.float64) if numbers else np.unique(y, return_inverse=True)[1]
    return Stream(name, np.ascontiguousarray(X, dtype=np.float64), y, numbers)
