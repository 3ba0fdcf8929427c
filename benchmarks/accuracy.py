"""What POLK reaches: against a batch SVM, on the papers' streams, on MNIST, untuned."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn import datasets
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.data import folder, whole_stream
from benchmarks.settings import STREAMS
from benchmarks.tables import show
from kernelstream import (
    AVMClassifier,
    AVMRegressor,
    CapWarning,
    Parsimony,
    POLKClassifier,
    POLKRegressor,
    make_multidist,
)
from kernelstream.streams import load_dataset

GAMMA = 1 / 1.2  # bandwidth^2 0.6, POLK Section 5.4


def stability() -> None:
    """The paper's step size on ten draws: close to a batch SVM, and the factor intact."""
    _against_svm(
        "multidist, hinge, mini-batch 32, eta 6, parsimony 1e-4 (last iterate)",
        {"gamma": GAMMA, "eta0": 6.0, "compression_error": Parsimony(1e-4), "batch_size": 32},
    )
    _against_svm(
        "the same, averaged",
        {
            "gamma": GAMMA,
            "eta0": 6.0,
            "compression_error": Parsimony(1e-4),
            "batch_size": 32,
            "average": True,
        },
    )


def parsimony() -> None:
    """As few points as possible, close to a batch SVM."""
    for most in (16, 20):
        _against_svm(
            f"multidist, log loss averaged, eta 4, compression_error 0.6, at most {most} points",
            {
                "gamma": GAMMA, "loss": "log_loss", "eta0": 4.0, "compression_error": 0.6,
                "max_points": most, "average": True,
            },
        )  # fmt: skip
    _against_svm(
        "multidist, hinge, last iterate, eta 0.5, compression_error 0.3",
        {"gamma": GAMMA, "eta0": 0.5, "compression_error": 0.3},
    )


def _against_svm(title: str, settings: dict[str, Any]) -> None:
    gaps, orders = [], []

    def rows() -> Iterator[tuple[Any, ...]]:
        for draw in range(10):
            X, y, X_test, y_test = make_multidist(5000, 2500, random_state=draw)
            svm = SVC(gamma=GAMMA, C=100).fit(X, y)
            model = POLKClassifier(random_state=0, **settings).partial_fit(X, y).flush()
            errors = [100 * (1 - m.score(X_test, y_test)) for m in (svm, model)]
            gaps.append(errors[1] - errors[0])
            orders.append(model.model_order_)
            yield (
                draw, errors[0], len(svm.support_), errors[1], orders[-1], gaps[-1],
                model.residual_,
            )  # fmt: skip
        yield "mean", "", "", "", float(np.mean(orders)), float(np.mean(gaps)), ""
        yield "worst", "", "", "", max(orders), max(gaps), ""

    show(
        title,
        ["draw", "SVC error %", "SVC points", "POLK error %", "points", "gap", "residual"],
        rows(),
    )


def streams() -> None:
    """One pass over training and test part, predict then learn, three random orders."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for name, settings in STREAMS.items():
            for seed in range(3):
                stream = whole_stream(name, seed)
                if stream is None:
                    yield name, seed, "data not present", "", "", "", ""
                    continue
                X = csr_array(stream.X) if np.mean(stream.X[:1000] != 0) < 0.3 else stream.X
                model = POLKClassifier(max_points=None, random_state=0, **settings)
                start = time.perf_counter()
                said = model.predict_then_learn(X, stream.y, np.unique(stream.y))
                each = (time.perf_counter() - start) / len(stream.y) * 1e6
                error = 100.0 * float(np.mean(said != stream.y))
                text = ", ".join(f"{key} {value:.4g}" for key, value in settings.items())
                yield name, seed, error, model.model_order_, each, model.residual_, text

    show(
        "One pass, predict then learn, hinge",
        ["data", "order", "mistakes %", "points", "us per sample", "residual", "settings"],
        rows(),
    )


#: Label, settings, epochs.
MNIST_RUNS: list[tuple[str, dict[str, Any], int]] = [
    ("plain, accurate", {"gamma": 1 / 32, "eta0": 24.0, "compression_error": 2.0}, 1),
    ("plain, small", {"gamma": 1 / 32, "eta0": 24.0, "compression_error": 3.0}, 1),
    (
        "averaged, at most 300",
        {
            "gamma": 1 / 32,
            "eta0": 64.0,
            "compression_error": 3.0,
            "max_points": 300,
            "average": True,
        },
        1,
    ),
    (
        "averaged, at most 1086",
        {
            "gamma": 1 / 50,
            "eta0": 64.0,
            "compression_error": 2.0,
            "max_points": 1086,
            "average": True,
        },
        4,
    ),
]


def _digits() -> tuple[Any, ...] | None:
    """Training and test digits, once the code is compiled; None where they are not present."""
    if folder() is None:
        print("\nmnist: data not present")
        return None
    data = load_dataset("mnist", folder())
    X, X_test = (Z.reshape(len(Z), -1) / 255.0 for Z in (data.X_train, data.X_test))
    small = POLKClassifier(gamma=1 / 32, batch_size=32)
    small.partial_fit(X[:320], data.y_train[:320], classes=np.arange(10))
    return X, data.y_train, X_test, data.y_test


def mnist() -> None:
    """The paper's digits: mini-batches of 32."""
    if (digits := _digits()) is None:
        return
    X, y, X_test, y_test = digits

    def rows() -> Iterator[tuple[Any, ...]]:
        for label, settings, epochs in MNIST_RUNS:
            model = POLKClassifier(
                batch_size=32, random_state=0, **{"max_points": None, **settings}
            )
            rng = np.random.default_rng(0)
            for epoch in range(1, epochs + 1):
                order = rng.permutation(len(y))
                start = time.perf_counter()
                model.partial_fit(X[order], y[order], classes=np.arange(10)).flush()
                seconds = time.perf_counter() - start
                error = 100 * (1 - model.score(X_test, y_test))
                text = ", ".join(f"{key} {value:.4g}" for key, value in settings.items())
                yield label, epoch, error, model.model_order_, seconds, model.residual_, text

    show(
        "MNIST, hinge, mini-batch 32",
        ["run", "epoch", "test error %", "points", "seconds", "residual", "settings"],
        rows(),
    )


def mnist_busy() -> None:
    """One epoch on a machine with nothing else to do, then beside processes that never rest."""
    if (digits := _digits()) is None:
        return
    X, y, _, _ = digits
    label, settings, _ = MNIST_RUNS[-1]

    def epoch() -> float:
        model = POLKClassifier(batch_size=32, random_state=0, **settings)
        start = time.perf_counter()
        model.partial_fit(X, y, classes=np.arange(10)).flush()
        return time.perf_counter() - start

    def rows() -> Iterator[tuple[Any, ...]]:
        idle = epoch()
        yield "alone", idle, 1.0
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            busy = epoch()
        finally:
            for loop in loops:
                loop.kill()
        yield "beside two busy loops", busy, busy / idle

    show(f"MNIST, mini-batch 32, {label}, one epoch", ["", "seconds", "ratio"], rows())


def defaults() -> None:
    """No parameter given: against scikit-learn's default SVM, and on streams."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for name in ("digits", "breast_cancer", "wine", "diabetes"):
            X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
            batch, ours = (SVR, POLKRegressor) if name == "diabetes" else (SVC, POLKClassifier)
            scores = [
                cross_val_score(make_pipeline(StandardScaler(), model()), X, y, cv=5).mean()
                for model in (batch, ours)
            ]
            order = ours().fit(StandardScaler().fit_transform(X), y).model_order_
            yield name, batch.__name__, float(scores[0]), float(scores[1]), order

    show(
        "Defaults after StandardScaler, 5-fold (accuracy; R2 for diabetes)",
        ["data", "batch", "its score", "POLK", "points"],
        rows(),
    )
    show(
        "Defaults on standardised streams of up to 20,000 samples: mistakes in %, or RMSE in "
        "standard deviations of the target, predicted before learned",
        [
            "stream",
            "no change",
            "majority or mean",
            "POLK",
            "points",
            "us per sample",
            "AVM",
            "points",
            "us per sample",
        ],
        _untuned_streams(),
    )


def _untuned_streams() -> Iterator[tuple[Any, ...]]:
    """Data sets in their order, or shuffled where the order says nothing."""
    where = folder()
    if where is None:
        return
    shuffled = ("a9a", "cod-rna", "ijcnn1", "casp", "cadata", "kin8nm")
    for name in ("elec2", "stream_hyp0", "stream_interchangingRBF", "covtype", *shuffled):
        data = load_dataset(name, where)
        X, y = data.X_train.astype(np.float64), data.y_train
        if name in shuffled:
            order = np.random.default_rng(0).permutation(len(y))
            X, y = X[order], y[order]
        X, y = StandardScaler().fit_transform(X[:20_000]), y[:20_000]
        numbers = name in ("casp", "cadata", "kin8nm")
        y = (y - y.mean()) / y.std() if numbers else np.unique(y, return_inverse=True)[1]
        yield (name, *_rules(y, numbers), *_untuned(X, y, numbers))


def _rules(y: Any, numbers: bool) -> tuple[float, float]:
    """The errors of no change, and of the majority or the mean."""
    if numbers:
        return float(np.sqrt(np.mean(np.diff(y) ** 2))), 1.0
    return 100.0 * np.mean(y[1:] != y[:-1]), 100.0 * (1.0 - np.bincount(y).max() / len(y))


def _untuned(X: Any, y: Any, numbers: bool) -> Iterator[float]:
    """Errors, points and times of the two learners, no parameter given."""
    for learner in (POLKRegressor, AVMRegressor) if numbers else (POLKClassifier, AVMClassifier):
        learner().partial_fit(X[:500], y[:500])  # compile
        model, start = learner(), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CapWarning)
            if numbers:
                error = float(np.sqrt(np.mean((model.predict_then_learn(X, y) - y) ** 2)))
            else:
                said = model.predict_then_learn(X, y, classes=np.unique(y))
                error = 100.0 * np.mean(said != y)
        each = 1e6 * (time.perf_counter() - start) / len(y)
        yield error
        yield model.model_order_
        yield each
