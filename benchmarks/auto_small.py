"""Short files: the automatic model after its first rows, and against batch models."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from benchmarks.data import folder
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import AutoClassifier, AutoRegressor

CUTS = (200, 500, 1000)
FIRST = 20  # rows that do not count
STREAMS = ("2CDT", "2CHT", "keystroke")
BUNDLED = {
    "iris": datasets.load_iris, "wine classes": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer, "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}  # fmt: skip


class Table(NamedTuple):
    """Rows in the order of their file; bundled ones, sorted by class, in a random one."""

    name: str
    X: Any
    y: Any
    numbers: bool


def main() -> None:
    """Both tables."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        show(
            "Short tables from row 20 on: R2 to the running mean, or mistakes and the majority's",
            ["table", *(f"{cut} rows, {what}" for cut in CUTS for what in ("ours", "baseline"))],
            ([table.name, *_prequential(table)] for table in _tables()),
        )
        show(
            "Five folds of the whole table: R2, or % right",
            ["table", "rows", "ours", "SVM", "gradient boosting", "behind the best"],
            ([table.name, *_folds(table)] for table in _tables()),
        )


def _tables() -> Iterator[Table]:
    place = folder()
    if place is not None:
        with np.load(place / "uci_tables.npz") as held:
            for name in sorted({key[:-2] for key in held.files}):
                yield Table(name, held[f"{name}_X"] * 1.0, held[f"{name}_y"].ravel() * 1.0, True)
        with np.load(place / "streams_souza.npz") as held:
            for name in STREAMS:
                yield Table(name, held[f"{name}_X"] * 1.0, held[f"{name}_y"], False)
    for name, load in BUNDLED.items():
        X, y = load(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        yield Table(name, X[order], y[order], name == "diabetes")


def _prequential(table: Table) -> Iterator[str]:
    for cut in CUTS:
        if cut > CUTS[0] and len(table.y) < cut:
            yield from ("", "")
            continue
        X, y = table.X[:cut], table.y[:cut]
        before = np.arange(1, len(y))
        if table.numbers:
            made = AutoRegressor(random_state=0).predict_then_learn(X, y)
            mean = np.concatenate([[0.0], np.cumsum(y)[:-1] / before])
            ratio = _square(made - y) / _square(mean - y)
            yield from (f"{1.0 - ratio:.3f}", "0")
        else:
            classes, codes = np.unique(y, return_inverse=True)
            made = AutoClassifier(random_state=0).predict_then_learn(X, y, classes=classes)
            counts = np.cumsum(np.eye(len(classes))[codes], axis=0)[:-1].argmax(axis=1)
            usual = np.concatenate([[0], counts])
            wrong, of_majority = (100.0 * np.mean(w[FIRST:]) for w in (made != y, usual != codes))
            yield from (f"{wrong:.1f} %", f"{of_majority:.1f} %")


def _square(errors: Any) -> float:
    return float(np.square(errors[FIRST:]).sum())


def _folds(table: Table) -> list[str]:
    rows = max(200, int(share() * len(table.y)))
    X, y = table.X[:rows], table.y[:rows]
    folds = KFold if table.numbers else StratifiedKFold
    models: list[Any]
    if table.numbers:
        scaled = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        models = [AutoRegressor(random_state=0), make_pipeline(StandardScaler(), scaled)]
        models.append(HistGradientBoostingRegressor(random_state=0))
    else:
        models = [AutoClassifier(random_state=0), make_pipeline(StandardScaler(), SVC())]
        models.append(HistGradientBoostingClassifier(random_state=0))
    cv = folds(5, shuffle=True, random_state=0)
    scores = [cross_val_score(model, X, y, cv=cv).mean() for model in models]
    behind = max(0.0, max(scores) - scores[0])
    unit = 1.0 if table.numbers else 100.0
    text = "{:.3f}" if table.numbers else "{:.1f}"
    return [f"{rows:,}", *(text.format(unit * score) for score in (*scores, behind))]
