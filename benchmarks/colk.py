"""COLK's experiments: outliers (Section V, Figs. 2 and 3) and what risk terms do to the tail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from benchmarks.data import folder
from benchmarks.rbf_network import RBFNetwork
from benchmarks.tables import show
from kernelstream import (
    COLKRegressor,
    DivergenceError,
    Loss,
    POLKRegressor,
    make_regression_outliers,
)
from kernelstream.evaluation import LossDistribution
from kernelstream.streams import load_dataset

BOXES = Path("docs/images/colk_boxes.png")
LIDAR = Path("docs/images/colk_lidar.png")

#: The paper's loss is (f - y)^2, ours half of it. With targets times sqrt(2) the two are equal,
#: moments included; the paper's step a and budget e are then 2 a and sqrt(2) e.
UNIT = np.sqrt(2.0)
BANDWIDTH = 0.06
GAMMA = 1.0 / (2.0 * BANDWIDTH**2)
SETS = 20
#: The paper's: COLK 5 a^2 at a = 0.02, POLK 0.09 a^2 at a = 0.5.
EQUAL_STEP, EQUAL_BUDGET = 0.02, 0.002
POLK_STEP, POLK_BUDGET = 0.5, 0.0225
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25)
#: Training sets on which the best step is looked for.
SEARCHED = 5


def _colk(step: float, budget: float, **parameters: Any) -> Any:
    return COLKRegressor(
        gamma=GAMMA, eta0=2.0 * step, compression_error=UNIT * budget, tracking_rate=0.01,
        random_state=0,
        **{"risk_weight": 0.1, **parameters},
    )  # fmt: skip


def _polk(step: float, budget: float, loss: Loss) -> Any:
    return POLKRegressor(
        loss, gamma=GAMMA, eta0=2.0 * step, compression_error=UNIT * budget, random_state=0
    )


#: Every method as a function of the paper's step and budget.
METHODS: dict[str, Any] = {
    "COLK, moments 2-4": lambda a, e: _colk(a, e, risk="moments"),
    "COLK, variance": lambda a, e: _colk(a, e, risk="variance"),
    "COLK, CVaR 0.9": lambda a, e: _colk(a, e, risk="cvar"),
    "POLK, batches of 2": lambda a, e: _colk(a, e, risk_weight=0.0),
    "POLK": lambda a, e: _polk(a, e, Loss("squared_error")),
    "RBF network, 50 centres": lambda a, e: RBFNetwork(radius=BANDWIDTH, eta0=2.0 * a),
    "POLK, Huber 0.5": lambda a, e: _polk(a, e, Loss("huber", 0.5)),
    "POLK, absolute": lambda a, e: _polk(a, e, Loss("absolute_error")),
    "POLK, quantile 0.5": lambda a, e: _polk(a, e, Loss("quantile", 0.5)),
}
#: Without what keeps outliers from blowing up the steps: only in the paper's setting.
NOT_CUT = "COLK, moments 2-4, not cut"


class Measured(NamedTuple):
    """A method with a setting, on all training sets."""

    setting: str
    method: str
    step: float
    errors: NDArray[np.float64]  # mean square distance to the curve; infinite where it diverged
    points: list[int]


def main() -> None:
    """Outliers: the paper's experiment in three settings; then the tail."""
    measured: list[Measured] = []
    show(
        f"y = 2 x + 3 sin(6 x) with outliers, {SETS} training sets of 2400",
        ["setting", "method", "step", "clean test error", "median", "points"],
        _outlier_rows(measured),
    )
    _draw_boxes(measured)
    print(f"\nPicture: {BOXES}")
    show(
        "Skewed noise, 20,000 samples, losses of 50,000 others, five seeds; relative to POLK",
        ["model", "mean", "deviation", "semideviation", "CVaR 0.9", "CVaR 0.99"],
        _tail_rows(),
    )


# ---- outliers -------------------------------------------------------------------------


def training_sets() -> tuple[list[tuple[NDArray[Any], NDArray[Any]]], NDArray[Any], NDArray[Any]]:
    """20 times half of 4800 samples, and the curve at 1200 others."""
    X, y, clean = make_regression_outliers(6000, random_state=0, return_clean=True)
    rng = np.random.default_rng(0)
    chosen = [rng.permutation(4800)[:2400] for _ in range(SETS)]
    return [(X[rows], UNIT * y[rows]) for rows in chosen], X[4800:], clean[4800:]


def _outlier_rows(measured: list[Measured]) -> Iterator[tuple[Any, ...]]:
    for setting, method, step, budget in _settings():
        measured.append(_measure(setting, method, step, budget))
        errors = measured[-1].errors
        finite = errors[np.isfinite(errors)]
        lost = f" ({len(errors) - len(finite)} diverged)" if len(finite) < len(errors) else ""
        yield (
            setting, method, f"{step:g}",
            f"{finite.mean():.3f} ± {finite.std():.3f}{lost}" if len(finite) else lost.strip(" ()"),
            f"{np.median(errors):.3f}", f"{np.mean(measured[-1].points):.0f}",
        )  # fmt: skip


def _settings() -> Iterator[tuple[str, str, float, float]]:
    yield "paper", "COLK, moments 2-4", EQUAL_STEP, EQUAL_BUDGET
    yield "paper", NOT_CUT, EQUAL_STEP, EQUAL_BUDGET
    yield "paper", "POLK", POLK_STEP, POLK_BUDGET
    yield "paper", "RBF network, 50 centres", EQUAL_STEP, EQUAL_BUDGET
    for method in METHODS:
        yield "equal steps", method, EQUAL_STEP, EQUAL_BUDGET
    for method in METHODS:
        tried = [_measure("", method, step, EQUAL_BUDGET, SEARCHED).errors.mean() for step in STEPS]
        yield "best step", method, STEPS[int(np.argmin(tried))], EQUAL_BUDGET


def _measure(setting: str, method: str, step: float, budget: float, sets: int = SETS) -> Measured:
    training, X_test, clean = training_sets()
    errors, points = [], []
    for X, y in training[:sets]:
        model = (
            _colk(step, budget, risk="moments", clip=None)
            if method == NOT_CUT
            else METHODS[method](step, budget)
        )
        try:
            with np.errstate(all="ignore"):
                said = model.partial_fit(X, y).predict(X_test) / UNIT
            error = np.mean((said - clean) ** 2)
        except DivergenceError:
            error = np.inf
        errors.append(error if np.isfinite(error) else np.inf)
        points.append(model.model_order_)
    return Measured(setting, method, step, np.array(errors), points)


def _draw_boxes(measured: list[Measured]) -> None:
    settings = list(dict.fromkeys(one.setting for one in measured))
    figure, axes = plt.subplots(
        1, 3, figsize=(11.0, 4.6), layout="constrained", sharey=True,
        gridspec_kw={"width_ratios": [3, 9, 9]},
    )  # fmt: skip
    for ax, setting in zip(axes, settings, strict=True):
        shown = [one for one in measured if one.setting == setting and one.method != NOT_CUT]
        boxes = ax.boxplot(
            [one.errors[np.isfinite(one.errors)] for one in shown], widths=0.6, patch_artist=True,
            medianprops={"color": "black"},
        )  # fmt: skip
        for box, one in zip(boxes["boxes"], shown, strict=True):
            box.set_facecolor(_color(one.method))
        labels = [f"{one.method}\n{one.step:g}" for one in shown]
        ax.set_xticks(range(1, len(shown) + 1), labels, rotation=60, ha="right", fontsize=8)
        ax.set_yscale("log")
        ax.set_title({"paper": "the paper's steps"}.get(setting, setting), fontsize=11)
        ax.grid(axis="y", color="#E6E6E6", linewidth=0.7)
        ax.set_axisbelow(True)
    axes[0].set_ylabel("mean square distance to the curve")
    BOXES.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(BOXES, dpi=130)
    plt.close(figure)


def _color(method: str) -> str:
    if method.startswith("COLK"):
        return "#0072B2"
    return {
        "POLK": "#D55E00",
        "POLK, batches of 2": "#D55E00",
        "RBF network, 50 centres": "#999999",
    }.get(method, "#009E73")


# ---- the tail -------------------------------------------------------------------------

#: Models whose steps are alike; the first is risk-neutral: COLK's step with weight 0.
TAILS: dict[str, dict[str, Any]] = {
    "POLK, batches of 2": {"risk_weight": 0.0},
    "COLK, variance": {"risk": "variance", "risk_weight": 0.5},
    "COLK, semivariance": {"risk": "semivariance", "risk_weight": 0.5},
    "COLK, moments 2-4": {"risk": "moments", "risk_weight": 0.1},
    "COLK, CVaR 0.9": {"risk": "cvar", "risk_weight": 1.0, "level": 0.9},
}


def skewed(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """A curve with one-sided errors that grow from left to right; their mean is 0."""
    x = rng.uniform(size=n)
    return x[:, None], np.sin(6.0 * x) + (0.2 + 0.8 * x) * (rng.exponential(size=n) - 1.0)


def _tail_rows() -> Iterator[tuple[Any, ...]]:
    neutral: list[NDArray[np.float64]] = []
    for name, parameters in TAILS.items():
        rows = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            model = COLKRegressor(
                gamma=20.0,
                eta0=0.05,
                compression_error=0.01,
                average=True,
                random_state=0,
                **parameters,
            )
            X, y = skewed(20_000, rng)
            model.partial_fit(X, y)
            X, y = skewed(50_000, rng)
            losses = LossDistribution()
            losses.update(0.5 * (model.predict(X) - y) ** 2)
            rows.append([
                losses.mean, losses.deviation, losses.semideviation, losses.cvar(0.9),
                losses.cvar(0.99),
            ])  # fmt: skip
        found = np.array(rows)
        if not neutral:
            neutral.append(found)
            yield (name, *(f"{value:.3f}" for value in found.mean(axis=0)))
            continue
        ratios = 100.0 * (found / neutral[0] - 1.0)
        middle, spread = ratios.mean(axis=0), ratios.std(axis=0)
        yield (name, *(f"{m:+.1f} ± {s:.1f} %" for m, s in zip(middle, spread, strict=True)))


# ---- lidar ----------------------------------------------------------------------------


def lidar() -> None:
    """The fitted curves over the data with added outliers, as in Fig. 3."""
    place = folder()
    if place is None or not (place / "lidar.npz").exists():
        print("\n## lidar\n\ndata not present")
        return
    data = load_dataset("lidar", place)
    X, y = np.asarray(data.X_train, dtype=np.float64), np.asarray(data.y_train, dtype=np.float64)
    X = (X - X.min()) / (X.max() - X.min())
    mean, unit = y.mean(), y.std()
    clean = (y - mean) / unit
    rng = np.random.default_rng(0)
    outlier = rng.random(len(y)) < 0.1
    targets = clean + np.where(outlier, 3.0 * rng.standard_t(2, size=len(y)), 0.0)
    common: dict[str, Any] = {
        "gamma": GAMMA, "compression_error": 0.01, "n_epochs": 20, "random_state": 0,
    }  # fmt: skip
    models = {
        "COLK, moments 2-4, step 0.04": COLKRegressor(
            risk="moments", risk_weight=0.1, tracking_rate=0.01, eta0=0.04, **common
        ),
        "POLK, step 1 (the paper's)": POLKRegressor(eta0=1.0, **common),
        "POLK, step 0.04": POLKRegressor(eta0=0.04, **common),
        "POLK, Huber 0.5, step 0.1": POLKRegressor(Loss("huber", 0.5), eta0=0.1, **common),
    }
    figure, axes = plt.subplots(2, 2, figsize=(10.0, 6.6), layout="constrained", sharey=True)
    grid = np.linspace(0.0, 1.0, 500)[:, None]
    rows = []
    for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
        model.fit(X, targets)
        wrong = model.predict(X)[~outlier] - clean[~outlier]
        rows.append((name, float(np.sqrt(np.mean(wrong**2))), model.model_order_))
        ax.plot(X[~outlier], targets[~outlier], ".", color="#999999", markersize=4)
        ax.plot(X[outlier], targets[outlier], "x", color="#D55E00", markersize=6)
        ax.plot(grid, model.predict(grid), color="#0072B2", linewidth=2.0)
        places = model.dictionary_
        ax.plot(places, model.predict(places), "o", color="black", markersize=4)
        ax.set_title(f"{name}: {rows[-1][1]:.2f} from the data, {rows[-1][2]} points", fontsize=10)
        ax.set_ylim(-5.0, 4.0)
        ax.set_xlabel("range, scaled")
    axes[0, 0].set_ylabel("log ratio, standardised")
    axes[1, 0].set_ylabel("log ratio, standardised")
    show(
        "lidar with 10 % outliers, 20 epochs: root mean square distance to the other samples",
        ["method", "distance", "points"],
        rows,
    )
    figure.savefig(LIDAR, dpi=130)
    plt.close(figure)
    print(f"\nPicture: {LIDAR}")
