"""AVM: the paper's a9a line, speed against the naive twin, sparse input, and Theorem 15."""

from __future__ import annotations

import itertools
import math
import resource
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from scipy.special import zeta
from sklearn.preprocessing import MinMaxScaler
from threadpoolctl import threadpool_limits

from benchmarks.data import whole_stream
from benchmarks.tables import show
from benchmarks.timing import best
from kernelstream import AVMClassifier, Coverage
from tests.naive import avm as twin

#: The paper's a9a and w8a: gamma, lambda N and delta; the last iterate predicts.
PAPER = {
    "a9a": {"gamma": 2.0**-4, "delta": 7.0},
    "w8a": {"gamma": 2.0**-4, "delta": 13.0},
}
_LOSSES = ("hinge", "log_loss")
THEOREM_15_PICTURE = Path("docs/images/avm_theorem15.png")


def main() -> None:
    """Everything about AVM, one thread."""
    with threadpool_limits(1):
        a9a()
        speed()
        theorem_15()
        endurance()


def speed() -> None:
    """Against the naive twin, sparse against dense, and KDD Cup 1999: one thread."""
    with threadpool_limits(1):
        against_twin()
        sparse()
        kdd()


def _model(name: str, samples: int, loss: str, **parameters: Any) -> AVMClassifier:
    return AVMClassifier(
        loss, alpha=16.0 / samples, average=False, max_points=None, random_state=0,
        **{**PAPER[name], **parameters},
    )  # fmt: skip


def a9a() -> None:
    """Mistakes of predict-then-learn over ten permutations (Table 4)."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for cells, loss in itertools.product(("as they come", "built before"), _LOSSES):
            rates, orders = [], []
            for seed in range(10):
                stream = whole_stream("a9a", seed)
                if stream is None:
                    yield cells, loss, "data not present", "", "", "", ""
                    break
                model = _model("a9a", len(stream.y), loss)
                if cells == "built before":  # every sample has a cell, as the paper counts them
                    model.set_params(coverage=Coverage(delta=7.0).fit(stream.X))
                said = model.predict_then_learn(stream.X, stream.y, classes=[0, 1])
                rates.append(100.0 * (said != stream.y).mean())
                orders.append(model.model_order_)
            else:
                paper = {"hinge": "17.46 ± 0.12", "log_loss": "17.33 ± 0.16"}[loss]
                spread = f"{np.mean(rates):.2f} ± {np.std(rates):.2f}"
                yield cells, loss, spread, paper, float(np.mean(orders)), min(orders), max(orders)

    show(
        "a9a online, ten permutations, gamma 2^-4, alpha 16/N, delta 7",
        ["cells", "loss", "mistakes, %", "paper", "points", "fewest", "most"],
        rows(),
    )


def against_twin() -> None:
    """The compiled pass against the twin on the same samples."""

    def rows() -> Iterator[tuple[Any, ...]]:
        stream = whole_stream("a9a", 0)
        if stream is None:
            yield "a9a", "data not present", "", "", ""
            return
        X, y = stream.X, stream.y
        options = {"regularisation": 16.0 / len(y), "delta": 7.0}
        for loss in _LOSSES:
            naive = best(
                partial(twin.avm, twin.gaussian(2.0**-4), X, 2.0 * y - 1.0, loss, **options), 2
            )

            def learn(loss: str = loss) -> AVMClassifier:
                return _model("a9a", len(y), loss).partial_fit(X, y)

            compiled = best(learn, 5)
            per_sample = 1e6 / len(y)
            order = learn().model_order_
            yield loss, order, naive * per_sample, compiled * per_sample, naive / compiled

    show(
        "a9a dense, one pass of 48,842 samples",
        ["loss", "points", "twin in NumPy, us per sample", "compiled, us", "ratio"],
        rows(),
    )


def sparse() -> None:
    """CSR against the same rows made dense: zeros and ones, which are counted, and other numbers.

    With halves for the ones, and gamma and delta to match, the model is the same.
    """

    def rows() -> Iterator[tuple[Any, ...]]:
        for (name, setting), factor in itertools.product(PAPER.items(), (1.0, 0.5)):
            label = name if factor == 1.0 else f"{name}, halved"
            stream = whole_stream(name, 0)
            if stream is None:
                yield label, "", "data not present", "", "", ""
                continue
            scaled = {"gamma": setting["gamma"] / factor**2, "delta": setting["delta"] * factor}
            dense, y = factor * stream.X, stream.y
            matrix = csr_array(dense)
            for loss in _LOSSES:
                model = _model(name, len(y), loss, **scaled).partial_fit(matrix, y)
                rounds = [  # in turns: the machine is not the same at all times
                    [best(partial(model.partial_fit, X, y), 1) for X in (dense, matrix)]
                    for _ in range(10)
                ]
                times = [min(series) / len(y) * 1e6 for series in zip(*rounds, strict=True)]
                yield label, loss, model.model_order_, *times, times[0] / times[1]

    show(
        "partial_fit, once the points are there",
        ["data", "loss", "points", "dense us", "CSR us", "ratio"],
        rows(),
    )


def kdd() -> None:
    """KDD Cup 1999, the tenth: samples per second, mistakes on the way."""

    def rows() -> Iterator[tuple[Any, ...]]:
        stream = whole_stream("kddcup99_10pct", 0)
        if stream is None:
            yield "data not present", "", "", ""
            return
        X, y = MinMaxScaler().fit_transform(stream.X), stream.y
        for loss in ("hinge", "margin_log_loss"):
            model = AVMClassifier(
                loss, gamma=1.0, alpha=1.0 / len(y), delta=2.7, average=False, random_state=0
            )
            said = model.predict_then_learn(X, y, classes=np.unique(y))
            seconds = best(partial(model.partial_fit, X, y), 3)
            yield loss, model.model_order_, 100.0 * (said != y).mean(), len(y) / seconds

    show(
        "KDD Cup 1999, 10 %: 494,021 samples, 41 features scaled to [0, 1], 23 classes",
        ["loss", "points", "mistakes, %", "samples per second"],
        rows(),
    )


def theorem_15() -> None:
    """Theorem 15: E[S_T] <= sum_t q_t + E[M_T], q_t = min(1, beta / t^rho); with its picture."""
    samples = 20_000
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, (samples, 3))
    y = (np.sin(3.0 * X[:, 0]) * X[:, 1] > 0.0).astype(int)
    measured: list[tuple[float, ...]] = []

    def rows() -> Iterator[tuple[Any, ...]]:
        for beta in (0.0, 1.0, 10.0):
            for rho in (0.5, 1.0, 1.5):
                models = [
                    AVMClassifier(
                        "log_loss",
                        delta=0.6,
                        exact_probability=beta,
                        exact_decay=rho,
                        max_points=None,
                        random_state=s,
                    ).partial_fit(X, y)
                    for s in range(5)
                ]
                order = float(np.mean([model.model_order_ for model in models]))
                cells = float(np.mean([model.n_cells_ for model in models]))
                t = np.arange(1, samples + 1)
                exact = float(np.minimum(1.0, beta / t**rho).sum()) + cells
                closed = _closed_form(beta, rho, samples) + cells
                measured.append((beta, rho, order, cells, exact, closed))
                yield measured[-1]

    show(
        f"Theorem 15, {samples} samples, log loss (every sample has a derivative), five seeds",
        [
            "exact_probability",
            "exact_decay",
            "points",
            "cells",
            "sum q_t + cells",
            "closed form + cells",
        ],
        rows(),
    )
    _draw_theorem_15(measured)


def _draw_theorem_15(measured: list[tuple[float, ...]]) -> None:
    figure, axes = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    betas, rhos, orders, _, exact, closed = (
        np.array(column) for column in zip(*measured, strict=True)
    )
    places = np.arange(len(measured))
    axes.plot(places, orders, "o", color="#0072B2", label="points, mean of five runs")
    axes.plot(places, exact, "_", color="#1A1A1A", markersize=22, label="bound, sum of q_t")
    axes.plot(places, closed, "_", color="#D55E00", markersize=22, label="bound, closed form")
    axes.set_yscale("log")
    labels = [f"beta {beta:g}\nrho {rho:g}" for beta, rho in zip(betas, rhos, strict=True)]
    axes.set_xticks(places, labels)
    axes.set_ylabel("points")
    axes.legend(frameon=False)
    figure.savefig(THEOREM_15_PICTURE, dpi=130)
    plt.close(figure)
    print(f"\nPicture: {THEOREM_15_PICTURE}")


def _closed_form(beta: float, rho: float, samples: int) -> float:
    """The bounds ii) to iv) of the theorem."""
    if rho == 1.0:
        return beta * (math.log(samples) + 1.0)
    if rho < 1.0:
        return beta * samples ** (1.0 - rho) / (1.0 - rho)
    return float(beta * zeta(rho))


def endurance() -> None:
    """A million samples: memory, points and time per sample."""
    random = np.random.default_rng(0)
    model = AVMClassifier(delta=2.0, random_state=0)

    def rows() -> Iterator[tuple[Any, ...]]:
        for tenth in range(10):
            X = random.uniform(-2.0, 2.0, (100_000, 4))
            y = (X[:, 0] * X[:, 1] > 0.0).astype(int)
            start = time.perf_counter()
            model.partial_fit(X, y)
            seconds = time.perf_counter() - start
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            yield tenth + 1, seconds * 10, model.model_order_, model.nbytes_, peak

    show(
        "One million samples in four dimensions",
        ["tenth", "us per sample", "points", "bytes", "peak RSS MiB"],
        rows(),
    )
