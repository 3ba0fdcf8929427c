"""POLK paper, Figures 4 to 6: boundaries on `multidist`, and error and points along the stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from kernelstream import NPBSGDClassifier, Parsimony, POLKClassifier, make_multidist

GAMMA = 1.0 / 1.2
SAMPLES, TESTED, STEP = 5000, 2500, 100
#: The draw that is shown.
DRAW = 1
IMAGES = Path("docs/images")
LOSSES = {"hinge": "Multi-KSVM", "log_loss": "Multi-Logistic"}
#: Parsimony constants of Figures 5 and 6, and caps that keep their numbers of points.
PARSIMONY = {16: 0.03, 75: 0.001}


def main() -> None:
    """Both pictures."""
    X, y, X_test, y_test = make_multidist(SAMPLES, n_test=TESTED, random_state=DRAW)
    IMAGES.mkdir(parents=True, exist_ok=True)
    _boundaries(X, y)
    _along(X, y, X_test, y_test)


def polk(loss: str, points: int) -> POLKClassifier:
    """The paper's settings, with a cap at its number of points."""
    return POLKClassifier(
        loss, gamma=GAMMA, eta0=6.0, alpha=1e-6, batch_size=32, max_points=points,
        compression_error=Parsimony(PARSIMONY[points]),
    )  # fmt: skip


def _boundaries(X: Any, y: Any) -> None:
    figure, places = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    grid = np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300))
    plane = np.column_stack([each.ravel() for each in grid])
    for axes, (loss, title) in zip(places, LOSSES.items(), strict=True):
        model = polk(loss, 16).partial_fit(X, y)
        regions = model.predict(plane).reshape(grid[0].shape)
        colours = plt.get_cmap("tab10").colors[: len(np.unique(y))]
        levels = np.arange(len(colours) + 1) - 0.5
        axes.contourf(*grid, regions, levels=levels, colors=colours, alpha=0.3)
        axes.contour(*grid, regions, levels=np.arange(0.5, 4.0), colors="k", linewidths=0.6)
        axes.scatter(*X[::5].T, c=[colours[label] for label in y[::5]], s=3)
        axes.plot(*model.dictionary_.T, "ko", markersize=6)
        axes.set_title(f"POLK, {title}: {model.model_order_} points", fontsize=9)
    _save(figure, "multidist_boundaries.png")


def _along(X: Any, y: Any, X_test: Any, y_test: Any) -> None:
    figure, places = plt.subplots(2, 2, figsize=(9.0, 5.6), layout="constrained", sharex=True)
    learned = np.arange(STEP, SAMPLES + 1, STEP)
    for column, points in enumerate(PARSIMONY):
        models = {
            "POLK": polk("log_loss", points),
            "NPBSGD": NPBSGDClassifier(
                "log_loss", gamma=GAMMA, alpha=1e-4, initial_points=points, max_points=None,
                growth_delay=45.0 / 70.0 * SAMPLES, random_state=0,
            ),
        }  # fmt: skip
        for name, model in models.items():
            errors, orders = [], []
            for end in learned:
                part = slice(end - STEP, end)
                model.partial_fit(X[part], y[part], classes=np.unique(y))
                errors.append(100.0 * (1.0 - model.score(X_test, y_test)))
                orders.append(model.model_order_)
            places[0, column].plot(learned, errors, label=name)
            places[1, column].plot(learned, orders, label=name)
        places[0, column].set(title=f"logistic loss, from {points} points", yscale="log")
        places[1, column].set(xlabel="samples")
    places[0, 0].set_ylabel("test error, %")
    places[1, 0].set_ylabel("points")
    places[0, 0].legend(frameon=False)
    _save(figure, "multidist_along.png")


def _save(figure: Any, name: str) -> None:
    figure.savefig(IMAGES / name, dpi=120)
    plt.close(figure)
    print(f"\nPicture: {IMAGES / name}")
