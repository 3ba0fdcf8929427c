"""How well rows of a class that was left out are told from the others, beside other programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from benchmarks.data import folder
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream import NoveltyDetector
from kernelstream.streams import load_dataset

#: Data sets, and which of their classes, sorted, are left out of what is learned, one at a time:
#: all that leave enough rows, of many classes some.
SETS = {
    "cod-rna": (0, 1), "kddcup99_10pct": (0,), "ijcnn1": (1,), "a9a": (0, 1), "covtype": (0, 1, 6),
    "mnist": (0, 4, 8), "w8a": (1,),
}  # fmt: skip
#: Points that the detector may hold, and rows that are tested.
POINTS, TESTED = 64, 2000


def without_a_class(name: str, place: Any, left_out: int, n: int) -> tuple[Any, Any, Any]:
    """n rows without the class, or those left; others with as many of it, and which are."""
    data = load_dataset(name, place)
    X, y = data.X_train, np.asarray(data.y_train)
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    strange = y == np.unique(y)[left_out]
    random = np.random.default_rng(0)
    usual = random.permutation(np.flatnonzero(~strange))
    others = random.permutation(np.flatnonzero(strange))[: TESTED // 2]
    n = min(n, len(usual) - TESTED // 2)
    tested = np.concatenate([usual[n : n + TESTED // 2], others])
    return X[usual[:n]], X[tested], strange[tested]


def main() -> None:
    """Area under the ROC curve, and bytes."""
    place = folder()
    if place is None:
        print("the data are not there: name their folder in KERNELSTREAM_DATA")
        return
    n = max(300, int(share() * 15_000))

    def lines() -> Iterator[list[Any]]:
        for name, left_out in ((name, each) for name, those in SETS.items() for each in those):
            learned, tested, strange = without_a_class(name, place, left_out, n)
            own = NoveltyDetector(random_state=0, max_points=POINTS).partial_fit(learned)
            units = StandardScaler().fit(learned)
            svm = OneClassSVM().fit(units.transform(learned))
            scores = [own.score_samples(tested), svm.score_samples(units.transform(tested))]
            areas = [float(roc_auc_score(strange, -score)) for score in scores]
            areas.append(float(roc_auc_score(strange, _trees(learned, tested))))
            size = svm.support_vectors_.nbytes + svm.dual_coef_.nbytes
            yield [
                name, left_out + 1, learned.shape[1], *(f"{area:.3f}" for area in areas),
                f"{own.nbytes_ / 1000:,.0f}", f"{size / 1000:,.0f}", f"{own.nbytes_ / size:.3f}",
            ]  # fmt: skip

    show(
        f"A class left out of {n:,} rows: area under the ROC curve on other rows, half of them of "
        f"that class; at most {POINTS} points, otherwise default settings",
        ("data", "class left out", "columns", "NoveltyDetector", "OneClassSVM", "HalfSpaceTrees",
         "KB", "OneClassSVM's KB", "ratio"),
        lines(),
    )  # fmt: skip


def _trees(learned: Any, tested: Any) -> list[float]:
    """River's, row by row, on columns scaled to 0 ... 1 as they ask for."""
    from river import anomaly, compose, preprocessing

    model = compose.Pipeline(preprocessing.MinMaxScaler(), anomaly.HalfSpaceTrees(seed=0))
    names = list(range(learned.shape[1]))
    for row in learned:
        model.learn_one(dict(zip(names, row.tolist(), strict=True)))
    return [model.score_one(dict(zip(names, row.tolist(), strict=True))) for row in tested]
