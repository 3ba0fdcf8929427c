"""The streams of the arena: stored ones where they are, generated ones always, in three orders.

A file whose order means nothing is shuffled; of one in time order three stretches are taken, which
may overlap; a generator gets three seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from benchmarks import auto_streams as known
from benchmarks.auto_programs import in_units, target_units
from benchmarks.data import folder
from kernelstream import streams

ROWS = 20_000  # of each stream at most
ORDERS = 3
LAGS = known.LAGS
Samples = tuple[Any, Any]

SHUFFLED = ("a9a", "w8a", "cod-rna", "ijcnn1", "kddcup99_10pct", "poker_partial", "mnist")
IN_ORDER = ("elec2", "covtype", "stream_hyp0", "stream_interchangingRBF")
NUMBERS = ("casp", "cadata", "kin8nm", "abalone", "concrete", "lidar")
TABLES = (
    "yacht", "autompg", "energy", "forest", "airfoil", "housing", "stock", "pendulum", "wine",
    "skillcraft", "sml", "parkinsons", "pumadyn32nm",
)  # fmt: skip
SOUZA = ("2CDT", "2CHT", "keystroke")
SERIES = (
    "santafe_laser", "mackey_glass_t17", "mackey_glass_t30", "lorenz", "sunspots_monthly",
    "mimo_testbed",
)  # fmt: skip
#: Entries from 0 to this: divided by it, and kept sparse. All others come in units that move.
SPARSE = {"a9a": 1.0, "w8a": 1.0, "mnist": 255.0}


class Source(NamedTuple):
    """Where a stream comes from."""

    numbers: bool  # whether the target is a number
    drifts: bool  # whether its order means something
    read: Callable[[int], Samples]  # of an order, (X, y); stored ones ignore it


class Contest(NamedTuple):
    """A stream as the methods meet it."""

    raw: Any  # (n, p) for methods that measure columns and targets themselves
    X: Any  # (n, p) in units that move, or CSR
    y: Any  # (n,) numbers, or labels 0 .. classes - 1
    center: Any  # (n,) of the target before each row; numbers only
    scale: Any  # (n,)
    numbers: bool

    @property
    def features(self) -> int:
        """Columns."""
        return int(self.X.shape[1])

    def first(self, rows: int) -> Contest:
        """Its beginning."""
        return self._replace(
            raw=self.raw[:rows], X=self.X[:rows], y=self.y[:rows], center=self.center[:rows],
            scale=self.scale[:rows],
        )  # fmt: skip


def _file(name: str, order: int) -> Samples:
    with np.load(f"{folder()}/{name}.npz", allow_pickle=False) as file:
        if "X" in file:
            return file["X"], file["y"]
        return tuple(np.concatenate([file[f"{k}_train"], file[f"{k}_test"]]) for k in "Xy")  # type: ignore[return-value]


def _table(name: str, table: str, order: int) -> Samples:
    with np.load(f"{folder()}/{name}.npz", allow_pickle=False) as file:
        return file[f"{table}_X"], file[f"{table}_y"]


def _series(name: str, order: int) -> Samples:
    """The next value from the last ones; of a channel, its output from its last inputs."""
    with np.load(f"{folder()}/timeseries.npz", allow_pickle=False) as file:
        series = file[name]
    if series.ndim == 2:
        windows = np.lib.stride_tricks.sliding_window_view(series[:, 0], LAGS)
        return windows, series[LAGS - 1 :, 1]
    windows = np.lib.stride_tricks.sliding_window_view(series, LAGS + 1)
    return windows[:, :-1], windows[:, -1]


def _generated(make: Callable[..., Samples], order: int) -> Samples:
    return make(ROWS, random_state=order)


def _multidist(order: int) -> Samples:
    return streams.make_multidist(ROWS, n_test=1, random_state=order)[:2]


def sources() -> dict[str, Source]:
    """All streams by name; of stored ones those that are here."""
    found: dict[str, Source] = {}
    where = folder()

    def here(name: str) -> bool:
        return where is not None and (where / f"{name}.npz").exists()

    for names, numbers, drifts in (
        (SHUFFLED, False, False),
        (IN_ORDER, False, True),
        (NUMBERS, True, False),
    ):
        found |= {n: Source(numbers, drifts, partial(_file, n)) for n in names if here(n)}
    if here("streams_souza"):
        found |= {n: Source(False, True, partial(_table, "streams_souza", n)) for n in SOUZA}
    if here("uci_tables"):
        found |= {n: Source(True, False, partial(_table, "uci_tables", n)) for n in TABLES}
    if here("timeseries"):
        found |= {n: Source(True, True, partial(_series, n)) for n in SERIES}
    found["multidist"] = Source(False, False, _multidist)
    for name, make in known.GENERATED.items():
        found[name] = Source(False, True, partial(_generated, make))
    for name, number in known.GENERATED_NUMBERS.items():
        found[name] = Source(True, True, partial(_generated, number))
    return found


def prepared(name: str, order: int, rows: int) -> Contest:
    """A stream in one of its orders, as the methods meet it."""
    source = sources()[name]
    X, y = source.read(order)
    rows = min(rows, len(y))
    if source.drifts:  # a stretch; generated streams are as long as asked for
        stretch = min(rows, int(np.ceil(0.8 * len(y))))
        start = (len(y) - stretch) * order // (ORDERS - 1)
        chosen = np.arange(start, start + stretch)
    else:
        chosen = np.random.default_rng(order).permutation(len(y))[:rows]
    X, y = np.ascontiguousarray(X[chosen], dtype=np.float64), y[chosen]
    if name in SPARSE:
        raw = kept = csr_array(X / SPARSE[name])
    else:
        raw, kept = X, in_units(X)
    if not source.numbers:
        nothing = np.zeros(len(y))
        codes = np.unique(y, return_inverse=True)[1]
        return Contest(raw, kept, codes, nothing, nothing, False)
    y = y.astype(np.float64)
    return Contest(raw, kept, y, *target_units(y), True)
