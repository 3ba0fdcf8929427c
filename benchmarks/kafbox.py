"""Filters against the Kernel Adaptive Filtering Toolbox, run for run.

Needs Octave and the toolbox (github.com/steven2358/kafbox), whose folder ``lib`` the environment
names: ``KAFBOX=.../lib python -m benchmarks kafbox``. What the toolbox predicted is kept in
``benchmarks/recorded/kafbox.npz``, which ``kafbox-compare`` and the tests compare with.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import folder
from benchmarks.tables import show
from kernelstream import (
    FixedBudgetKRLSRegressor,
    KLMSRegressor,
    KNLMSRegressor,
    KRLSRegressor,
    QKLMSRegressor,
    SlidingKRLSRegressor,
)
from kernelstream.core.experts.tracker import tracker_pass
from kernelstream.models._auto._group import Group

RECORDED = Path(__file__).parent / "recorded" / "kafbox.npz"
GAMMA, ROWS, LAGS = 0.5, 400, 6
AMPLITUDE, FORGET, NOISE = 1.0, 0.99, 0.1  # of KRLS-T
#: The stream of KRLS-T: on others the toolbox's explicit inverse fails, with a warning, unless much
#: jitter is added, and here rows that the points span become no points.
APART = "far apart"

Run = tuple[Any, Any]  # predictions, points


def _tracker(X: Any, y: Any) -> Run:
    """KRLS-T on rows and targets as they are, with so much room that no point has to leave: which
    one leaves is another rule here."""
    group = Group(X.shape[1], 1, len(y), GAMMA * X.shape[1], True, 0, rates=())
    group.state.status["amplitude"], group.state.status["interval"] = AMPLITUDE, 0
    out, points = np.empty((len(y), 1, 1)), np.empty(len(y))
    for t in range(len(y)):
        now = slice(t, t + 1)
        tracker_pass(
            group.state, FORGET, NOISE, np.ones(1), 1, X[now], y[now, None], np.ones(1), out[now],
            np.empty((1, 1)),
        )  # fmt: skip
        points[t] = group.order
    # The toolbox predicts before it forgets, ours, as the paper's steps are, after it.
    return out[:, 0, 0] / np.sqrt(FORGET), points


def _filter(model: Any) -> Callable[[Any, Any], Run]:
    def run(X: Any, y: Any) -> Run:
        points, predictions = np.empty(len(y)), np.empty(len(y))
        for t in range(len(y)):
            predictions[t] = model.predict_then_learn(X[t : t + 1], y[t : t + 1])[0]
            points[t] = model.model_order_
        return predictions, points

    return run


#: Name in the toolbox -> its settings in Octave's words, title, ours.
FILTERS: dict[str, tuple[str, str, Callable[[], Callable[[Any, Any], Run]]]] = {
    "klms": (
        "struct('eta', .3, 'M', 10000)", "KLMS",
        lambda: _filter(KLMSRegressor(gamma=GAMMA, eta0=0.3, max_points=10_000)),
    ),
    "qklms": (
        "struct('eta', .3, 'epsu', .6)", "QKLMS",
        lambda: _filter(QKLMSRegressor(gamma=GAMMA, eta0=0.3, radius=0.6, max_points=1000)),
    ),
    "knlms": (
        "struct('eta', .4, 'mu0', .8, 'eps', .02)", "KNLMS",
        lambda: _filter(
            KNLMSRegressor(gamma=GAMMA, eta0=0.4, coherence=0.8, ridge=0.02, max_points=1000)
        ),
    ),
    "krls": (
        "struct('nu', .01, 'M', 60)", "KRLS-ALD",
        lambda: _filter(KRLSRegressor(gamma=GAMMA, novelty=0.01, max_points=60)),
    ),
    "swkrls": (
        "struct('c', .05, 'M', 50)", "Sliding-window KRLS",
        lambda: _filter(SlidingKRLSRegressor(gamma=GAMMA, ridge=0.05, max_points=50)),
    ),
    "fbkrls": (
        "struct('lambda', .05, 'M', 50)", "Fixed-budget KRLS",
        lambda: _filter(FixedBudgetKRLSRegressor(gamma=GAMMA, ridge=0.05, max_points=50)),
    ),
    "krlst": (
        f"struct('lambda', {FORGET}, 'sn2', {NOISE}, 'M', 10000, 'jitter', 1e-12, 'kerneltype', "
        f"'sum', 'kernelpar', struct('a', {AMPLITUDE}, 'ktype1', 'gauss', 'kpar1', width, 'b', 1, "
        "'ktype2', 'poly', 'kpar2', [0 0]))", "KRLS-T, no point leaving",
        lambda: _tracker,
    ),
}  # fmt: skip


def streams() -> Iterator[tuple[str, Any, Any]]:
    """Generated streams, one with rows far apart, and two series where they are stored."""
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, 3))
    yield "generated", X, np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * random.normal(size=ROWS)
    X = random.uniform(-9.0, 9.0, (ROWS, 3))
    yield APART, X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * random.normal(size=ROWS)
    if folder() is not None:
        with np.load(f"{folder()}/timeseries.npz", allow_pickle=False) as file:
            for name in ("santafe_laser", "lorenz"):
                series = file[name][: 2 * ROWS + LAGS].astype(np.float64)
                series = 2.0 * (series - series.mean()) / series.std()
                windows = np.lib.stride_tricks.sliding_window_view(series, LAGS + 1)
                yield name, windows[:, :-1].copy(), windows[:, -1].copy()


def main() -> None:
    """Run the toolbox, keep what it predicted, compare."""
    library, octave = os.environ.get("KAFBOX"), shutil.which("octave-cli")
    if library is None or octave is None:
        sys.exit("kafbox needs Octave, and KAFBOX=<folder lib of the toolbox> in the environment")
    found = list(streams())
    kept: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        for name, X, y in found:
            np.savetxt(f"{place}/{name}.csv", np.column_stack([X, y]), "%.17g", ",")
            kept[f"{name}/X"], kept[f"{name}/y"] = X, y
        listed = "; ".join(f"'{name}', {words}" for name, (words, _, _) in FILTERS.items())
        names = ", ".join(f"'{name}'" for name, _, _ in found)
        script = (
            f"GAMMA = {GAMMA}; width = 1 / sqrt(2 * GAMMA); FILTERS = {{{listed}}};"
            f"STREAMS = {{{names}}}; APART = '{APART}';\n"
            + Path(__file__).with_suffix(".m").read_text()
        )
        Path(place, "run.m").write_text(script)
        copied = shutil.copytree(library, f"{place}/lib")
        base = Path(copied, "base", "base_estimator.m")  # Octave has no matlab.mixin.Copyable
        base.write_text(base.read_text().replace("matlab.mixin.Copyable", "handle"))
        subprocess.run([octave, "--no-gui", f"{place}/run.m", copied, place], check=True)
        for name, _, _ in found:
            for method in FILTERS if name == APART else list(FILTERS)[:-1]:
                kept[f"{name}/{method}"] = np.loadtxt(f"{place}/{name}.{method}.csv", delimiter=",")
    np.savez_compressed(RECORDED, **kept)
    compare()


def compare() -> None:
    """What was recorded beside what this package predicts now."""
    columns = ["method", "stream", "their error", "ours", "their points", "ours", "difference"]
    show("RMSE over all samples, and the largest difference of two predictions", columns, rows())


def rows() -> Iterator[list[Any]]:
    """One a method and stream."""
    with np.load(RECORDED, allow_pickle=False) as recorded:
        for name in dict.fromkeys(key.partition("/")[0] for key in recorded):
            X, y = recorded[f"{name}/X"], recorded[f"{name}/y"]
            for method, (_, title, make) in FILTERS.items():
                if f"{name}/{method}" not in recorded:
                    continue
                theirs, their_points = recorded[f"{name}/{method}"].T
                ours, points = make()(X, y)
                errors = [float(np.sqrt(np.mean((made - y) ** 2))) for made in (theirs, ours)]
                yield [
                    title, name, f"{errors[0]:.6f}", f"{errors[1]:.6f}", int(their_points[-1]),
                    int(points[-1]), f"{np.abs(ours - theirs).max():.1e}",
                ]  # fmt: skip
