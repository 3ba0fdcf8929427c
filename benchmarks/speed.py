"""How fast: per sample, per call, at first use, on sparse data, over a million samples."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks.data import whole_stream
from benchmarks.settings import STREAMS
from benchmarks.tables import show
from benchmarks.timing import best
from kernelstream import Parsimony, POLKClassifier, make_multidist

_FIRST_USE = """
import time; start = time.perf_counter()
import kernelstream, numpy as np
imported = time.perf_counter() - start
X = np.random.default_rng(0).normal(size=(200, 3)); y = (X[:, 0] > 0).astype(int)
kernelstream.POLKClassifier().partial_fit(X, y).predict(X)
print(imported, time.perf_counter() - start)
"""


def calls() -> None:
    """Inside one call, per call, and at first use."""

    def rows() -> Iterator[tuple[Any, ...]]:
        X, y = make_multidist(200_000, random_state=1)
        model = POLKClassifier(gamma=1 / 1.2, compression_error=0.3)
        model.partial_fit(X[:1000], y[:1000], classes=range(5))
        inside = best(lambda: model.partial_fit(X, y)) / len(y) * 1e6
        yield f"one partial_fit of {len(y)} samples, {model.model_order_} points", inside, ""
        few = range(2000)
        single = best(lambda: [model.partial_fit(X[i : i + 1], y[i : i + 1]) for i in few])
        yield "partial_fit, one sample a call", single / 2000 * 1e6, single / 2000 * 1e6 - inside
        lean = best(lambda: [model.learn_one(X[i], y[i]) for i in few])
        yield "learn_one", lean / 2000 * 1e6, lean / 2000 * 1e6 - inside

    with threadpool_limits(1):
        show("multidist, hinge, one thread", ["what", "us per sample", "us overhead"], rows())

    def first() -> Iterator[tuple[Any, ...]]:
        with tempfile.TemporaryDirectory() as cache:
            for label in ("empty cache", "warm cache"):
                done = subprocess.run(
                    [sys.executable, "-c", _FIRST_USE],
                    env={**os.environ, "NUMBA_CACHE_DIR": cache},
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                yield label, *map(float, done.stdout.split())

    show("A new process", ["", "import, s", "first model and prediction, s"], first())


def sparse() -> None:
    """CSR against the same rows made dense."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for name in ("a9a", "w8a"):
            stream = whole_stream(name, 0)
            if stream is None:
                yield name, "data not present", "", "", ""
                continue
            matrix = csr_array(stream.X)
            models = []
            for X in (stream.X, matrix):
                models.append(POLKClassifier(max_points=None, random_state=0, **STREAMS[name]))
                models[-1].partial_fit(X[:20_000], stream.y[:20_000])
            dense, by_csr = (model.decision_function(matrix[:5000]) for model in models)
            times = [
                best(partial(models[1].decision_function, X)) / X.shape[0] * 1e6
                for X in (stream.X[:20_000], matrix[:20_000])
            ]
            difference = float(np.abs(dense - by_csr).max())
            yield name, models[1].model_order_, difference, *times, times[0] / times[1]

    for threads in (1, None):
        with threadpool_limits(threads):
            show(
                f"decision_function, {'one thread' if threads else 'all threads'}",
                ["data", "points", "largest difference of the two models", "dense us", "CSR us",
                 "ratio"],
                rows(),
            )  # fmt: skip


def endurance() -> None:
    """A million samples at constant step: memory, order, time per sample, residual."""
    X, y = make_multidist(1_000_000, random_state=0)
    runs = {
        "hinge, eta 0.5, compression_error 0.1, alpha 1e-4": {
            "eta0": 0.5, "compression_error": 0.1, "alpha": 1e-4,
        },
        "hinge, mini-batch 32, eta 6, parsimony 1e-4": {
            "eta0": 6.0, "compression_error": Parsimony(1e-4), "batch_size": 32,
        },
    }  # fmt: skip
    for title, settings in runs.items():
        model = POLKClassifier(gamma=1 / 1.2, random_state=0, **settings)
        model.partial_fit(X[:64], y[:64], classes=range(5))
        times: list[float] = []

        def rows(model: Any = model, times: list[float] = times) -> Iterator[tuple[Any, ...]]:
            for tenth in range(10):
                parts = []
                for first in range(tenth * 100_000, (tenth + 1) * 100_000, 5_000):
                    start = time.perf_counter()
                    model.partial_fit(X[first : first + 5_000], y[first : first + 5_000])
                    parts.append(time.perf_counter() - start)
                times.append(20.0 * float(np.median(parts)))  # others use this machine, too
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                yield (
                    tenth + 1, times[-1] * 10, model.model_order_, model.nbytes_, peak,
                    model.residual_,
                )  # fmt: skip

        show(
            f"One million samples of multidist: {title}",
            ["tenth", "us per sample", "points", "bytes", "peak RSS MiB", "residual"],
            rows(),
        )
        print(f"\nlast tenth / second tenth: {times[-1] / times[1]:.2f}")
