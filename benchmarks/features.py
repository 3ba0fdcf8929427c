"""Kernel features: the experiments of OK-FEB, its bound, memory, and real drift."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.data import folder
from benchmarks.tables import show
from kernelstream import AVMClassifier, AVMRegressor
from kernelstream.cli.display import resident_bytes
from kernelstream.evaluation import RiseDetector
from kernelstream.features import (
    KernelFeatures,
    OnlineKernelFeatureClassifier,
    OnlineKernelFeatureRegressor,
    OnlineKernelFeatures,
)
from kernelstream.streams import load_dataset, make_spheres, make_turning_ellipsoid

PICTURES = Path("docs/images")
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#555555"


def _save(figure: Any, name: str) -> None:
    path = PICTURES / f"{name}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"\nPicture: {path}")


# ---- Section VII-A: two spheres ---------------------------------------------------------------

#: Where the curves are measured.
_LOOKS = (50, 100, 200, 500, 1000, 1500, 2500, 5000)
#: Name, stored samples per feature, solver, step and basis.
_SOLVERS: tuple[tuple[str, int | None, str, str, str], ...] = (
    ("Algorithm 2: parametric", None, "parametric", "inverse", "orthonormal"),
    ("Algorithm 3: nonparametric", None, "nonparametric", "inverse", "orthonormal"),
    ("B = 5r, parametric", 5, "parametric", "inverse", "orthonormal"),
    ("B = 5r, nonparametric", 5, "nonparametric", "inverse", "orthonormal"),
    ("B = 5r, nonparametric, 1/|q|, as printed", 5, "nonparametric", "tracking", "printed"),
    ("B = 2r, parametric", 2, "parametric", "inverse", "orthonormal"),
    ("B = 2r, nonparametric", 2, "nonparametric", "inverse", "orthonormal"),
)


def spheres() -> None:
    """Batch and online solvers on the spheres, and the grid of r and B."""
    X, _ = make_spheres(5000, random_state=0)
    with threadpool_limits(1):
        curves: dict[float, dict[str, list[float]]] = {}
        show(
            "Two spheres, r = 7: average LS fit of 5000 samples",
            ["gamma", "solver", "learned", "stored", "LS fit", "over batch", "us per sample"],
            _sphere_rows(X, curves),
        )
        show(
            "LS fit of OK-FEB for choices of r and B, gamma 0.5, n = 5000",
            ["r", "batch", *(f"B = {factor:g} r" for factor in _FACTORS), "no budget"],
            _grid_rows(X),
        )
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 5.0), layout="constrained")
    for axis, (gamma, lines) in zip(axes, curves.items(), strict=True):
        styles = {None: "-", 5: "--", 2: ":"}
        for name, budget, solver, step, _ in _SOLVERS:
            color = _BLUE if solver == "parametric" else _ORANGE
            color = color if step == "inverse" else _GREEN
            line = lines[name]
            axis.loglog(_LOOKS[: len(line)], line, styles[budget], color=color, label=name)
        axis.loglog(_LOOKS, lines["batch"], "-", color="black", linewidth=2.0, label="batch")
        axis.set(title=f"gamma {gamma:g}", xlabel="samples n", ylabel="average LS fit")
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    _save(figure, "features_spheres")


def _sphere_rows(X: Any, curves: dict[float, dict[str, list[float]]]) -> Iterator[tuple[Any, ...]]:
    for gamma in (0.5, 0.01):
        lines = curves[gamma] = {"batch": []}
        for n in _LOOKS:
            start = time.perf_counter()
            batch = KernelFeatures(7, gamma=gamma, random_state=0).fit(X[:n])
            seconds = time.perf_counter() - start
            lines["batch"].append(float(batch.inverse_fit_error(X[:n]).mean()))
        best = lines["batch"][-1]
        each = seconds / len(X) * 1e6
        yield gamma, "Algorithm 1, batch", len(X), len(X), f"{best:.4g}", 1.0, each
        for name, factor, solver, step, basis in _SOLVERS:
            model = OnlineKernelFeatures(
                7, gamma=gamma, max_points=factor and 7 * factor, solver=solver, step_size=step,
                basis=basis, random_state=0,
            )  # fmt: skip
            clone(model).partial_fit(X[:100])  # compile
            lines[name], seconds, before = [], 0.0, 0
            for n in _LOOKS:
                start = time.perf_counter()
                model.partial_fit(X[before:n])
                seconds += time.perf_counter() - start
                before = n
                lines[name].append(float(model.inverse_fit_error(X[:n]).mean()))
            error = float(model.inverse_fit_error(X).mean())
            yield (
                gamma, name, before, len(model.dictionary_), f"{error:.4g}", error / best,
                seconds / before * 1e6,
            )  # fmt: skip


_FACTORS = (1.5, 2.0, 3.0, 5.0, 10.0)


def _grid_rows(X: Any) -> Iterator[tuple[Any, ...]]:
    for r in (3, 7, 15, 30):
        batch = KernelFeatures(r, gamma=0.5, random_state=0).fit(X[:2500])
        row: list[Any] = [r, f"{batch.inverse_fit_error(X).mean():.3f}"]
        for factor in (*_FACTORS, None):
            budget = None if factor is None else round(factor * r)
            model = OnlineKernelFeatures(
                r, gamma=0.5, max_points=budget, random_state=0,
                solver="nonparametric" if budget else "parametric",
            )  # fmt: skip
            row.append(f"{model.partial_fit(X).inverse_fit_error(X).mean():.3f}")
        yield tuple(row)


# ---- Section VII-B: the ellipsoid that turns --------------------------------------------------

#: Ways to discard samples.
TRACKERS: dict[str, dict[str, Any]] = {
    "beta = 1": {"removal": "greedy"},
    "beta = 0.9": {"removal": "recency", "forgetting": 0.9},
    "first in, first out": {"removal": "fifo"},
}
#: Stretches of the stream in which errors are averaged.
_STRETCHES = ((500, 1000), (1000, 1100), (1100, 1200), (1200, 1500), (1500, 2000))
_SEEDS = 10


def tracking() -> None:
    """An ellipsoid that turns: how fast ways to discard samples follow."""
    streams = [make_turning_ellipsoid(random_state=seed)[0] for seed in range(_SEEDS)]
    errors: dict[tuple[str, int], Any] = {}
    with threadpool_limits(1):
        show(
            f"Ellipsoid that turns after 1000 samples, r = 10, gamma 0.5: LS error, mean of "
            f"{_SEEDS} draws",
            ["method", "B", *(f"{first + 1}-{end}" for first, end in _STRETCHES)],
            _tracking_rows(streams, errors),
        )
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained", sharey=True)
    for axis, budget in zip(axes, (20, 50), strict=True):
        for (name, of), color in zip(
            [key for key in errors if key[1] in (budget, 0)],
            (_BLUE, _ORANGE, _GREEN, "black"),
            strict=True,
        ):
            smooth = np.convolve(np.nanmean(errors[name, of], axis=0), np.ones(100) / 100, "valid")
            axis.plot(np.arange(len(smooth)) + 100, smooth, color=color, label=name)
        axis.axvline(1000, color=_GREY, linewidth=0.8, linestyle=":")
        axis.set(title=f"B = {budget}", xlabel="sample", ylabel="LS error, mean of 100")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    _save(figure, "features_tracking")


def _tracking_rows(
    streams: list[Any], errors: dict[tuple[str, int], Any]
) -> Iterator[tuple[Any, ...]]:
    for budget in (20, 50):
        for name, settings in TRACKERS.items():
            runs = []
            for seed, X in enumerate(streams):
                model = OnlineKernelFeatures(
                    10, gamma=0.5, max_points=budget, solver="parametric", step_size="tracking",
                    basis="printed", random_state=seed, **settings,
                )  # fmt: skip
                runs.append(model.partial_fit_errors(X))
            errors[name, budget] = np.array(runs)
            yield name, budget, *_stretches(errors[name, budget])
    batch = [
        KernelFeatures(10, gamma=0.5, random_state=0).fit(X).inverse_fit_error(X) for X in streams
    ]
    errors["batch", 0] = np.array(batch)
    yield "batch, all 2000 samples", "", *_stretches(errors["batch", 0])


def _stretches(errors: Any) -> list[str]:
    return [f"{np.nanmean(errors[:, first:end]):.3f}" for first, end in _STRETCHES]


# ---- Proposition 4 ----------------------------------------------------------------------------


def proposition4() -> None:
    """The bound on |K - K^|_F / N, in measurement."""
    with threadpool_limits(1):
        show(
            "Proposition 4: |K - K^|_F / N and its bound (N = 2000, confidence 99 %)",
            ["data", "gamma", "r", "B", "mean LS error", "measured", "bound", "bound / measured"],
            _bound_rows(),
        )


def _bound_rows() -> Iterator[tuple[Any, ...]]:
    streams = {
        "spheres": make_spheres(2000, random_state=0)[0],
        "ellipsoid": make_turning_ellipsoid(2000, random_state=0)[0],
    }
    for name in ("elec2", "cadata"):
        real = standardised(name)
        if real is None:
            print(f"(data not present: {name})")
            continue
        streams[name] = real[0][:2000]
    for name, X in streams.items():
        for gamma in (0.01, 0.5):
            for r in (5, 20):
                model = OnlineKernelFeatures(
                    r, gamma=gamma, max_points=3 * r, solver="nonparametric", random_state=0
                ).partial_fit(X)
                errors = model.inverse_fit_error(X)
                measured = np.linalg.norm(model.kernel_(X) - model.kernel_approximation(X)) / len(X)
                slack = np.sqrt(np.log(2.0 / 0.01) / (2.0 * len(X)))  # 1 - 2 exp(-2 N t^2)
                root = np.sqrt(errors.mean() + slack)
                bound = root * (root + 2.0)  # (27)
                yield (
                    name, gamma, r, 3 * r, f"{errors.mean():.4g}", f"{measured:.4g}",
                    f"{bound:.4g}", f"{bound / measured:.3g}",
                )  # fmt: skip


def standardised(name: str) -> tuple[Any, Any] | None:
    """A data set of the folder in its order, standardised, and its targets."""
    place = folder()
    if place is None or not (place / f"{name}.npz").exists():
        return None
    data = load_dataset(name, place)
    X = data.X_train.reshape(len(data.X_train), -1).astype(np.float64)
    return StandardScaler().fit_transform(X), data.y_train


# ---- Section VII-D: learning on the features as they come -------------------------------------


def online() -> None:
    """Features and a linear learner together, against a learner without budget."""
    measured: dict[tuple[str, str], Any] = {}
    with threadpool_limits(1):
        show(
            "One pass, predict then learn",
            ["data", "method", "stored", "error", "s in all", "us per sample, last tenth"],
            _online_rows(measured),
        )
    if not measured:
        return
    names = list(dict.fromkeys(name for name, _ in measured))
    figure, axes = plt.subplots(2, len(names), figsize=(10.0, 6.5), layout="constrained")
    for column, name in enumerate(names):
        for (of, method), (counts, error, seconds) in measured.items():
            if of == name:
                color = _BLUE if "budget" not in method else _ORANGE
                axes[0, column].plot(counts, error, color=color, label=method)
                axes[1, column].plot(counts, seconds, color=color, label=method)
        what = "mistakes, %" if name == "a9a" else "RMSE / deviation of the target"
        axes[0, column].set(title=name, ylabel=what)
        axes[1, column].set(xlabel="samples", ylabel="seconds")
        axes[0, column].legend(fontsize=8)
        for axis in axes[:, column]:
            axis.grid(alpha=0.3)
    _save(figure, "features_online")


def _online_rows(measured: dict[tuple[str, str], Any]) -> Iterator[tuple[Any, ...]]:
    for name in ("a9a", "cadata"):
        place = folder()
        if place is None or not (place / f"{name}.npz").exists():
            yield name, "data not present", "", "", "", ""
            continue
        data = load_dataset(name, place)
        order = np.random.default_rng(0).permutation(len(data.y_train))
        X, y = data.X_train[order].astype(np.float64), data.y_train[order]
        if name == "a9a":
            labels = np.unique(y, return_inverse=True)[1]
            yield from _run_online(name, csr_array(X), labels, _classifiers(), measured)
        else:
            X = StandardScaler().fit_transform(X)
            y = (y - y.mean()) / y.std()
            yield from _run_online(name, X, y, _regressors(), measured)


def _classifiers() -> dict[str, Any]:
    return {
        "OK-FEB r = 50, B = 60 + Pegasos": OnlineKernelFeatureClassifier(
            50, max_points=60, gamma=1 / 20, censoring="auto", random_state=0
        ),
        "the same, every sample learned": OnlineKernelFeatureClassifier(
            50, max_points=60, gamma=1 / 20, random_state=0
        ),
        "kernel Pegasos, no budget": AVMClassifier(
            gamma=1 / 20,
            delta=1e-6,
            alpha=1e-4,
            average=True,
            average_horizon=0.5,
            max_points=None,
            random_state=0,
        ),
    }


def _regressors() -> dict[str, Any]:
    return {
        "OK-FEB r = 5, B = 8 + LMS": OnlineKernelFeatureRegressor(
            5, max_points=8, gamma=1 / 8, censoring="auto", random_state=0
        ),
        "OK-FEB r = 50, B = 75 + LMS": OnlineKernelFeatureRegressor(
            50, max_points=75, gamma=1 / 8, censoring="auto", random_state=0
        ),
        "kernel LMS, no budget": AVMRegressor(
            gamma=1 / 8,
            delta=1e-6,
            alpha=1e-2,
            average=True,
            average_horizon=0.5,
            max_points=None,
            random_state=0,
        ),
    }


def _run_online(
    name: str, X: Any, y: Any, models: dict[str, Any], measured: dict[tuple[str, str], Any]
) -> Iterator[tuple[Any, ...]]:
    classes = {"classes": [0, 1]} if y.dtype.kind == "i" else {}
    for method, model in models.items():
        clone(model).predict_then_learn(X[:300], y[:300], **classes)  # compile
        counts, seconds, said, spent = [], [], [], 0.0
        for first in range(0, len(y), 500):
            start = time.perf_counter()
            part = slice(first, first + 500)
            said.append(model.predict_then_learn(X[part], y[part], **classes))
            spent += time.perf_counter() - start
            counts.append(min(first + 500, len(y)))
            seconds.append(spent)
        wrong = (np.concatenate(said) != y) if classes else (np.concatenate(said) - y) ** 2
        mean = np.cumsum(wrong) / np.arange(1, len(y) + 1)
        error = (100.0 * mean if classes else np.sqrt(mean))[np.array(counts) - 1]
        measured[name, method] = counts, error, seconds
        tenth = len(counts) * 9 // 10
        late = (seconds[-1] - seconds[tenth - 1]) / (counts[-1] - counts[tenth - 1]) * 1e6
        unit = " %" if classes else ""
        yield (
            name, method, _stored(model), f"{error[-1]:.4g}{unit}", f"{seconds[-1]:.2f}",
            f"{late:.1f}",
        )  # fmt: skip


def _stored(model: Any) -> int:
    return len(model.dictionary_)


# ---- memory and speed -------------------------------------------------------------------------


def memory() -> None:
    """200,000 samples of 50 features in memory that does not grow."""
    settings = {"n_components": 20, "max_points": 60, "gamma": 1 / 50, "random_state": 0}
    with threadpool_limits(1):
        show(
            "200,000 x 50, r = 20, B = 60, learned in blocks of 1,000",
            ["samples", "extractor, kB", "process, MB above the start", "samples per second"],
            _memory_rows(settings),
        )
        show(
            "A censored sample and an updated one (us per sample, budget used up)",
            ["solver", "basis", "updated", "censored", "censored / updated"],
            _censoring_rows(settings),
        )
    print(
        f"\nThe kernel matrix that kernel PCA needs for these rows: {8 * 200_000**2 / 1e9:.0f} GB."
    )


def _gaussian_blocks(count: int) -> Iterator[Any]:
    """Samples around twenty centres that move slowly, never held together."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(20, 50))
    for _ in range(count):
        centres += 0.02 * random.normal(size=centres.shape)
        yield centres[random.integers(20, size=1000)] + 0.3 * random.normal(size=(1000, 50))


def _memory_rows(settings: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    model = OnlineKernelFeatures(
        **settings, solver="parametric", step_size="tracking", basis="printed"
    )
    blocks = _gaussian_blocks(200)
    first = next(blocks)
    model.partial_fit(first)
    model.transform(first)
    base, seconds, learned = resident_bytes(), 0.0, 0
    for number, X in enumerate(blocks, 2):
        start = time.perf_counter()
        model.partial_fit(X)
        seconds += time.perf_counter() - start
        learned += len(X)
        if number in (10, 50, 100, 150, 200):
            yield (
                f"{1000 * number:,}", f"{model.nbytes_ / 1e3:.1f}",
                f"{(resident_bytes() - base) / 1e6:.1f}", f"{learned / seconds:,.0f}",
            )  # fmt: skip


def _censoring_rows(settings: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    X = np.concatenate(list(_gaussian_blocks(10)))
    for solver, basis in itertools.product(
        ("parametric", "nonparametric"), ("orthonormal", "printed")
    ):
        times = {}
        for name, censoring in (("updated", None), ("censored", 1e9)):
            model = OnlineKernelFeatures(**settings, solver=solver, basis=basis)
            model.partial_fit(X[:1000])
            model.set_params(censoring=censoring).partial_fit(X[:100])
            start = time.perf_counter()
            model.partial_fit(X)
            times[name] = (time.perf_counter() - start) / len(X) * 1e6
        ratio = times["censored"] / times["updated"]
        yield solver, basis, f"{times['updated']:.1f}", f"{times['censored']:.1f}", f"{ratio:.2f}"


# ---- real drift -------------------------------------------------------------------------------


def drift() -> None:
    """A real stream that drifts; features that follow it and features that do not."""
    figure, axis = plt.subplots(figsize=(8.0, 3.6), layout="constrained")
    with threadpool_limits(1):
        show(
            "elec2, r = 20, B = 60: features that follow the stream, and features frozen after "
            "20 % of it; the last 80 %",
            ["learner", "features", "mean LS error", "rises noticed", "accuracy, %"],
            _drift_rows(axis),
        )
    axis.set(xlabel="sample", ylabel="LS error, mean of 500", title="elec2")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
    _save(figure, "features_drift")


#: Old samples fade slowly: the price of electricity has a rhythm of days and weeks.
_FOLLOWING: dict[str, Any] = {
    "max_points": 60, "gamma": 1 / 8, "solver": "parametric", "step_size": "tracking",
    "basis": "printed", "removal": "recency", "forgetting": 0.999, "random_state": 0,
}  # fmt: skip


def _drift_rows(axis: Any) -> Iterator[tuple[Any, ...]]:
    real = standardised("elec2")
    if real is None:
        yield "data not present", "", "", "", ""
        return
    X, y = real[0], np.unique(real[1], return_inverse=True)[1]
    late = len(X) // 5
    for learner, follow in (
        ("joint (Section VI)", _joint),
        ("outside, aligned features", _outside),
    ):
        for label, frozen, color in (("following", False, _BLUE), ("frozen", True, _ORANGE)):
            errors, right = follow(X, y, frozen)
            detector = RiseDetector()
            detector.update(errors)
            if follow is _joint:
                smooth = np.convolve(errors, np.ones(500) / 500, "valid")
                axis.plot(np.arange(len(smooth)) + 500, smooth, color=color, lw=0.9, label=label)
                for change in () if frozen else detector.changes:
                    axis.axvline(change.sample, color=_GREY, linewidth=0.6, linestyle=":")
            yield (
                learner, label, f"{errors[late:].mean():.4f}", len(detector.changes),
                f"{100.0 * right[late:].mean():.2f}",
            )  # fmt: skip


def _joint(X: Any, y: Any, frozen: bool) -> tuple[Any, Any]:
    """Fit errors, and whether the classifier that learns with the features was right."""
    model = OnlineKernelFeatureClassifier(
        20, loss="log_loss", learning_rate="constant", eta0=4.0, **_FOLLOWING
    )
    errors, right = [], []
    for first in range(0, len(y), 500):
        if frozen and first >= len(y) // 5:
            model.set_params(censoring=1e9)  # no sample changes the subspace any more
        part = slice(first, first + 500)
        right.append(model.predict_then_learn(X[part], y[part], classes=[0, 1]) == y[part])
        new = model.fit_errors_[-len(y[part]) :]
        errors.append(np.concatenate([np.zeros(len(y[part]) - len(new)), new]))
    return np.concatenate(errors), np.concatenate(right)


def _outside(X: Any, y: Any, frozen: bool) -> tuple[Any, Any]:
    """The same with a linear classifier that only sees features, fifty at a time."""
    extractor = OnlineKernelFeatures(20, align=True, **_FOLLOWING)
    linear = SGDClassifier(
        loss="log_loss", alpha=1e-5, learning_rate="constant", eta0=4.0, random_state=0
    )
    errors, right = [], []
    for first in range(0, len(y), 50):
        part = slice(first, first + 50)
        learning = not frozen or first < len(y) // 5
        fit = extractor.partial_fit_errors if learning else extractor.inverse_fit_error
        errors.append(fit(X[part]))
        Z = extractor.transform(X[part])
        right.append(linear.predict(Z) == y[part] if first else np.zeros(len(Z), bool))
        linear.partial_fit(Z, y[part], classes=[0, 1])
    return np.concatenate(errors), np.concatenate(right)
