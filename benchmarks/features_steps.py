"""Kernel features: steps as the paper prints them against steps that cannot overshoot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import folder
from benchmarks.tables import show
from kernelstream.features import OnlineKernelFeatures
from kernelstream.streams import load_dataset, make_spheres, make_turning_ellipsoid

#: Stretches of the turning ellipsoid in which errors are averaged: it turns after sample 1000.
_STRETCHES = ((500, 1000), (1000, 1100), (1500, 2000))
_REMOVALS: dict[str, dict[str, Any]] = {
    "1": {"removal": "greedy"},
    "0.9": {"removal": "recency", "forgetting": 0.9},
}


def main() -> None:
    """The turning ellipsoid of Section VII-B, and the table that chose the default of ``steps``."""
    with threadpool_limits(1):
        show(
            "Turning ellipsoid, r = 10, B = 20, gamma 0.5, 1/|q|, printed basis: LS error before "
            "each sample, mean of ten draws",
            ["solver", "beta", "steps", *(f"{first + 1}-{end}" for first, end in _STRETCHES)],
            _ellipsoid_rows(),
        )
        show(
            "1/|q|, printed basis, r = 10, B = 20: mean LS error before each sample, second half",
            ["solver", "beta", "steps", "constant", *_streams()],
            _default_rows(),
        )


def _model(**parameters: Any) -> OnlineKernelFeatures:
    return OnlineKernelFeatures(
        10, max_points=20, step_size="tracking", basis="printed", **parameters
    )


def _ellipsoid_rows() -> Iterator[tuple[Any, ...]]:
    streams = [make_turning_ellipsoid(random_state=seed)[0] for seed in range(10)]
    for solver in ("nonparametric", "parametric"):
        for beta, removal in _REMOVALS.items():
            for steps in ("printed", "bounded"):
                errors = [
                    _model(gamma=0.5, solver=solver, steps=steps, **removal).partial_fit_errors(X)
                    for X in streams
                ]
                means = np.mean(errors, axis=0)
                yield solver, beta, steps, *(f"{means[a:b].mean():.3f}" for a, b in _STRETCHES)


def _streams() -> dict[str, tuple[Any, float]]:
    """Samples and gamma of each."""
    found: dict[str, tuple[Any, float]] = {
        "ellipsoid": (make_turning_ellipsoid(random_state=0)[0], 0.5),
        "spheres": (make_spheres(5000, random_state=0)[0], 0.5),
    }
    place = folder()
    for name, gamma in (("elec2", 1 / 8), ("a9a", 1 / 20)):
        if place is not None and (place / f"{name}.npz").exists():
            X = load_dataset(name, place).X_train[:10_000]
            if name == "elec2":
                X = (X - X.mean(axis=0)) / X.std(axis=0)
            found[name] = X, gamma
    return found


def _default_rows() -> Iterator[tuple[Any, ...]]:
    streams = _streams()
    for solver in ("nonparametric", "parametric"):
        for beta, removal in _REMOVALS.items():
            for steps in ("printed", "bounded"):
                for constant in (0.3, 1.0, 3.0):
                    yield (
                        solver, beta, steps, constant,
                        *(
                            _late_error(X, solver=solver, steps=steps, gamma=gamma,
                                        step_constant=constant, **removal)
                            for X, gamma in streams.values()
                        ),
                    )  # fmt: skip


def _late_error(X: Any, **parameters: Any) -> str:
    errors = _model(**parameters).partial_fit_errors(X)
    return f"{errors[X.shape[0] // 2 :].mean():.3f}"
