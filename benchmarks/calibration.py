"""How far probabilities of models with the hinge loss are off, in predict-then-learn order."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.data import folder
from benchmarks.tables import show
from kernelstream import AVMClassifier, COLKClassifier, POLKClassifier
from kernelstream.streams import load_dataset

#: Streams and a gamma that suits them; elec2 in its own order.
STREAMS = {"a9a": 1 / 16, "cod-rna": 1 / 8, "elec2": 1 / 8}
MODELS = {"POLK": POLKClassifier, "AVM": AVMClassifier, "COLK": COLKClassifier}
#: Intervals of the probability.
BINS = 15


def calibration_error(probability: Any, happened: Any, bins: int = BINS) -> float:
    """The expected calibration error: how far means of probabilities are from frequencies."""
    place = np.minimum((probability * bins).astype(int), bins - 1)
    gaps = np.bincount(place, probability - happened, minlength=bins)
    return float(np.abs(gaps).sum() / len(probability))


def stream(name: str) -> tuple[Any, Any]:
    """Rows and labels 0 and 1; independent rows in random order."""
    data = load_dataset(name, folder())
    X, y = data.X_train.astype(np.float64), np.unique(data.y_train, return_inverse=True)[1]
    if name != "a9a":
        X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(0).permutation(len(y)) if name != "elec2" else np.arange(len(y))
    return X[order], y[order]


def main() -> None:
    """Errors of the second class's probability, and of that of the predicted class."""
    if folder() is None:
        print("No data sets: set KERNELSTREAM_DATA.")
        return
    rows = []  # shown when all are there: warnings would be in between
    for name, gamma in STREAMS.items():
        X, y = stream(name)
        shown = []
        for kind in MODELS.values():
            model = kind(gamma=gamma, random_state=0)
            found = model.predict_proba_then_learn(X, y, classes=[0, 1])
            second = calibration_error(found[:, 1], y == 1)
            predicted = found.argmax(axis=1)
            sure = calibration_error(found.max(axis=1), predicted == y)
            shown.append(f"{second:.3f}, {sure:.3f}")
        rows.append([name, *shown])
    title = "Expected calibration error: of the second class, and of the predicted one"
    show(title, ["stream", *MODELS], rows)
