"""Comparators against what other programs were seen to do: the same mistakes, sample by sample.

``benchmarks/recorded`` has what the other program said, and with which parameters.
"""

from __future__ import annotations

import json
import time
import warnings
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks.data import folder
from benchmarks.tables import show
from kernelstream import (
    BPASClassifier,
    CapWarning,
    ForgetronClassifier,
    KernelPerceptronClassifier,
    NOGDClassifier,
    OGDClassifier,
    ProjectronClassifier,
    ProjectronPlusClassifier,
    WindowedOGDClassifier,
    make_multidist,
)
from kernelstream.streams import load_dataset

RECORDED = Path(__file__).parent / "recorded"

#: The streams on which KOL was run; the first three are generated.
STREAMS: dict[str, dict[str, Any]] = {
    "multidist": {"gamma": 2.0, "samples": 2000},
    "sets": {"gamma": 0.125, "samples": 1500},
    "turning": {"gamma": 0.5, "samples": 1500},
    "a9a": {"gamma": 0.0625, "samples": 3000},
    "w8a": {"gamma": 0.125, "samples": 3000},
    "ijcnn1": {"gamma": 2.0, "samples": 3000},
}
BUDGET, ETA, ALPHA = 50, 0.25, 2.0**-10

#: Their names for methods, ours, and on which streams the definitions agree. KOL's Projectron also
#: stores samples that it has already, and divides by their distance, which is 0: w8a has many. The
#: costs by which BPA-S removes tie among sets, and rounding decides: with float KOL makes the
#: mistakes that we make, with double others.
_ALL, _NONE = tuple(STREAMS), ()
_NEW = tuple(name for name in STREAMS if name != "w8a")
_UNTIED = tuple(name for name in STREAMS if name != "sets")
METHODS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "Perceptron": (partial(KernelPerceptronClassifier, max_points=None), _ALL),
    "OGD": (partial(OGDClassifier, eta0=ETA, alpha=0.0, max_points=None), _ALL),
    "BOGD": (partial(WindowedOGDClassifier, eta0=ETA, alpha=ALPHA, max_points=BUDGET), _ALL),
    "Projectron": (partial(ProjectronClassifier, novelty=1e-12, max_points=BUDGET), _NEW),
    "Projectron++": (partial(ProjectronPlusClassifier, max_points=BUDGET), _NONE),
    "BPA-S": (partial(BPASClassifier, max_points=BUDGET), _UNTIED),
    "Forgetron": (partial(ForgetronClassifier, max_points=BUDGET), _NONE),
    "NOGD": (partial(NOGDClassifier, eta0=ETA, rank=1.0, max_points=BUDGET), _NONE),
}


def _sets(count: int) -> tuple[Any, Any]:
    """Zeros and ones, as in a9a and w8a: which of 40 members decide is the same throughout."""
    random = np.random.RandomState(0)
    X = (random.random_sample((count, 40)) < 0.2).astype(np.float64)
    scores = X @ random.standard_normal(40) + 0.5 * random.standard_normal(count)
    return X, np.where(scores > 0.0, 1, -1)


def _turning(count: int) -> tuple[Any, Any]:
    """A boundary that turns by half a circle in five dimensions, with mistakes among the labels."""
    random = np.random.RandomState(1)
    X, angle = random.standard_normal((count, 5)), np.pi * np.arange(count) / count
    side = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] * X[:, 2]
    return X, np.where((side > 0.0) != (random.random_sample(count) < 0.05), 1, -1)


_GENERATED = {"sets": _sets, "turning": _turning}


def stream(name: str, count: int | None = None) -> tuple[Any, Any] | None:
    """Samples in random order with labels -1 and 1; None where the data is not present."""
    count = count or STREAMS[name]["samples"]
    if name == "multidist":
        X, y = make_multidist(count, random_state=0)
        return X, np.where(y < 2, 1, -1)
    if name in _GENERATED:
        return _GENERATED[name](count)
    if folder() is None:
        return None
    data = load_dataset(name, folder())
    order = np.random.default_rng(0).permutation(len(data.y_train))[:count]
    X = data.X_train[order].astype(np.float64)
    return X, np.where(data.y_train[order] > 0, 1, -1)


def recorded(program: str) -> dict[str, Any]:
    """What a program said, by method and stream."""
    document = json.loads((RECORDED / f"{program}.json").read_text("utf-8"))
    runs = [run for run in document["runs"] if run["precision"] == "double"]
    return {(run["method"], run["stream"]): run for run in runs}


def mistakes(model: Any, X: Any, y: Any) -> Any:
    """Whether each sample was predicted wrongly, before it was learned from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapWarning)
        return model.predict_then_learn(csr_array(X), y, classes=[-1, 1]) != y


def where(wrong: Any) -> int:
    """A number that says which samples were mistakes."""
    return zlib.crc32(np.packbits(wrong).tobytes())


def kol() -> None:
    """Mistakes of LIBOL's kernel library and of ours."""
    found = recorded("kol")

    def rows() -> Iterator[tuple[Any, ...]]:
        for name, chosen in STREAMS.items():
            samples = stream(name)
            for method, (make, agree) in METHODS.items():
                theirs = found[method, name]
                if samples is None:
                    yield name, method, theirs["mistakes"], "data not present", ""
                    continue
                model = make(gamma=chosen["gamma"], random_state=0)
                wrong = mistakes(model, *samples)
                same = "the same" if where(wrong) == theirs["where"] else "others"
                why = "ties" if (method, name) == ("BPA-S", "sets") else "other definition"
                same += "" if name in agree else f" ({why})"
                yield name, method, theirs["mistakes"], int(wrong.sum()), same

    show(
        "Mistakes of LIBOL's KOL and of ours",
        ["stream", "method", "KOL", "ours", "at which samples"],
        rows(),
    )


def kol_speed() -> None:
    """Time of a sample, of LIBOL's kernel library and of ours: recorded together, and ours now."""
    runs = json.loads((RECORDED / "kol_speed.json").read_text("utf-8"))["runs"]

    def rows() -> Iterator[tuple[Any, ...]]:
        for run in runs:
            name, method = run["stream"], run["method"]
            samples, now = stream(name, 10**9), "data not present"
            if samples is not None:
                X, y = csr_array(samples[0]), samples[1]
                make = partial(METHODS[method][0], gamma=STREAMS[name]["gamma"], max_points=200)
                mistakes(make(random_state=0), X[:300], y[:300])  # compiled or loaded
                start = time.process_time()
                wrong = mistakes(make(random_state=0), X, y)
                now = f"{(time.process_time() - start) / len(y) * 1e6:.2f}"
                now += "" if wrong.sum() == run["mistakes_ours"] else " (other mistakes)"
            yield (
                name, method, run["mistakes"], run["mistakes_ours"], run["us"], run["us_ours"],
                run["us"] / run["us_ours"], now,
            )  # fmt: skip

    with threadpool_limits(1):
        show(
            "Time per sample, KOL and ours",
            ["stream", "method", "KOL's mistakes", "ours", "KOL, us", "ours, us", "times as fast",
             "ours now, us"],
            rows(),
        )  # fmt: skip
