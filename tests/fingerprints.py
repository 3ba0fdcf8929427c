"""Fingerprints of many fits, to be computed in processes that differ in what they did before.

``python -m tests.fingerprints FOLDER SEED RUN...`` starts a process for each run, one after the
other, and writes what it finds to ``FOLDER/RUN.json``. `tests/test_bits.py` compares.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import multiprocessing
import pkgutil
import random
import re
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import networkx
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from scipy.sparse import csr_array

import kernelstream.core
from kernelstream import (
    AhpatronClassifier,
    AutoClassifier,
    AutoRegressor,
    AVMClassifier,
    AVMRegressor,
    BOGDClassifier,
    BPANNClassifier,
    BPAPClassifier,
    BPASClassifier,
    BSGDClassifier,
    COLKClassifier,
    COLKRegressor,
    CompositionalLearner,
    Coverage,
    DualSGDClassifier,
    DualSGDRegressor,
    FixedBudgetKRLSRegressor,
    FOGDClassifier,
    FOGDRegressor,
    ForgetronClassifier,
    KernelExpansion,
    KernelPAClassifier,
    KernelPARegressor,
    KernelPerceptronClassifier,
    KernelPolicyEvaluation,
    KLMSRegressor,
    KNLMSRegressor,
    KRLSRegressor,
    KRLSTClassifier,
    KRLSTRegressor,
    Loss,
    NOGDClassifier,
    NORMAClassifier,
    NORMARegressor,
    NPBSGDClassifier,
    OGDClassifier,
    PegasosClassifier,
    POLKClassifier,
    POLKRegressor,
    ProjectronClassifier,
    ProjectronPlusClassifier,
    QKLMSRegressor,
    RandomFeatureClassifier,
    RBPClassifier,
    SlidingKRLSRegressor,
    Steps,
    WindowedOGDRegressor,
    fit_sharded,
    load,
    make_multidist,
    make_regression_outliers,
    merge,
)
from kernelstream.core import ahead
from kernelstream.features import (
    KernelFeatures,
    OnlineKernelFeatureClassifier,
    OnlineKernelFeatureRegressor,
    OnlineKernelFeatures,
)
from kernelstream.kernels import Gaussian, Laplacian, Matern12, Matern32, Matern52, Polynomial
from kernelstream.losses import _TABLE
from kernelstream.network import ConsensusNetwork, ProximityNetwork
from kernelstream.preparation import Preparation
from kernelstream.streams import make_robot_arm
from kernelstream.streams.batch import Batch
from tests.features.tools import VARIANTS

Stream = dict[str, Any]

# ---- streams ------------------------------------------------------------------------------


def plane(n: int = 300, seed: int = 8) -> Stream:
    X, y = make_multidist(n, random_state=seed)
    return {"X": X, "y": y}


def two_classes(n: int = 300) -> Stream:
    made = plane(n)
    return {**made, "y": made["y"] < 2}


def curve(n: int = 300) -> Stream:
    X, y = make_regression_outliers(n, random_state=0)
    return {"X": X, "y": y}


def wide(n: int = 200, features: int = 24, classes: int = 0) -> Stream:
    """More features than distances are computed from one by one."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, features))
    y = X[:, 0] * X[:, -1] + np.sin(2.0 * X[:, 0])
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    return {"X": X, "y": y}


def sparse(n: int = 200, classes: int = 0, ones: bool = False) -> Stream:
    """Rows with few entries; rows of ones are counted instead of multiplied."""
    made = wide(n, 40, classes)
    X = np.where(np.random.default_rng(1).random((n, 40)) < 0.3, made["X"], 0.0)
    return {**made, "X": csr_array((X != 0.0).astype(float) if ones else X)}


def several(n: int = 200) -> Stream:
    """Three numbers per sample."""
    X, Y = make_robot_arm(n, random_state=0)
    return {"X": X, "y": Y}


def weighted(made: Stream) -> Stream:
    weights = np.random.default_rng(2).integers(0, 3, len(made["y"]))
    return {**made, "sample_weight": weights.astype(float)}


def transitions(n: int = 200) -> Stream:
    generator = np.random.default_rng(0)
    states = np.cumsum(0.1 * generator.normal(size=(n + 1, 2)), axis=0)
    return {
        "states": states[:-1],
        "rewards": np.sin(states[1:, 0]),
        "next_states": states[1:],
        "terminal": generator.random(n) < 0.05,
    }


def rows(n: int = 200) -> Stream:
    return {"X": np.random.default_rng(0).normal(size=(1500, 6))[:n]}


def only_rows(made: Stream) -> Stream:
    return {"X": made["X"]}


# ---- models that learn from a stream -------------------------------------------------------


def partial_fit(model: Any, stream: Stream) -> Any:
    return model.partial_fit(**stream)


def rounds(batch: int) -> Callable[[Any, Stream], Any]:
    """Learning of a network."""
    return lambda network, stream: network.run((stream["X"], stream["y"]), batch=batch)


class Fit(NamedTuple):
    make: Callable[[], Any]
    stream: Callable[[], Stream]
    learn: Callable[[Any, Stream], Any] = partial_fit


SEED = {"random_state": 0}
CAP = {"compression_error": 0.0, "max_points": 40, **SEED}
#: Enough points for blocks of removals and for products that BLAS computes.
BLOCKS = {"gamma": 20.0, "compression_error": 0.0, "max_points": 200, "batch_size": 60, **SEED}
TOGETHER = {"gamma": 0.8, "eta0": 1.0, "compression_error": 0.05, "classes": range(5), **SEED}
KERNELS = [
    Laplacian(0.5),
    Matern12(1.0),
    Matern32(1.0),
    Matern52(1.0) * Gaussian(0.1),
    Polynomial(2, 0.5, 1.0) + 2.0 * Gaussian(2.0),
]

MODELS = {
    # The first two had other bits on Intel's processors after a function had been compressed, but
    # not where the code for single samples, say, was loaded before it.
    "POLK, blocks": Fit(partial(POLKRegressor, "squared_error", **BLOCKS), partial(plane, 2400)),
    "POLK, blocks of 32": Fit(
        partial(POLKRegressor, **{**BLOCKS, "batch_size": 32}), partial(plane, 600, 0)
    ),
    "POLK": Fit(partial(POLKClassifier, **SEED), two_classes),
    "POLK, classes": Fit(partial(POLKClassifier, "log_loss", average=True, **SEED), plane),
    "POLK, cap": Fit(partial(POLKRegressor, gamma=5.0, **CAP), plane),
    "POLK, random removals": Fit(
        partial(POLKRegressor, "huber", projection="random", **CAP), curve
    ),
    "POLK, blocks of classes": Fit(
        partial(POLKClassifier, "log_loss", average=True, **BLOCKS), partial(plane, 600)
    ),
    "POLK, pairs": Fit(
        partial(POLKRegressor, batch_size=2, average=True, average_horizon=3, **SEED), curve
    ),
    "POLK, wide": Fit(partial(POLKRegressor, **CAP), wide),
    "POLK, wide batches": Fit(
        partial(POLKClassifier, batch_size=30, **CAP), partial(wide, classes=3)
    ),
    "POLK, sparse": Fit(partial(POLKRegressor, **CAP), sparse),
    "POLK, sparse blocks": Fit(
        partial(POLKRegressor, **{**BLOCKS, "gamma": 0.1, "eta0": 0.1}), partial(sparse, 600)
    ),
    "POLK, weights": Fit(partial(POLKRegressor, **SEED), lambda: weighted(curve())),
    "POLK, several numbers": Fit(partial(POLKRegressor, "huber", **CAP), several),
    "POLK, batches of several numbers": Fit(partial(POLKRegressor, batch_size=5, **CAP), several),
    "POLK, given steps": Fit(
        partial(POLKRegressor, learning_rate=Steps(np.geomspace(0.5, 0.01, 200)), **SEED), curve
    ),
    "POLK, falling steps": Fit(
        partial(POLKClassifier, "margin_log_loss", learning_rate="inverse_time", **SEED), plane
    ),
    **{
        f"POLK, {type(kernel).__name__}": Fit(
            partial(POLKRegressor, kernel=kernel, max_points=50, batch_size=5, eta0=0.05, **SEED),
            plane,
        )
        for kernel in KERNELS
    },
    "POLK, slack": Fit(
        partial(POLKRegressor, gamma=5.0, slack=7, average=True, **CAP), partial(plane, 400)
    ),
    "POLK, random removals with slack": Fit(
        partial(POLKRegressor, "huber", projection="random", slack=3, **CAP), curve
    ),
    "automatic": Fit(partial(AutoClassifier, **SEED), partial(plane, 2600)),
    "automatic, numbers": Fit(partial(AutoRegressor, **SEED), partial(plane, 2600)),
    "automatic, wide": Fit(partial(AutoRegressor, max_bytes=200_000, **SEED), wide),
    "automatic, sparse": Fit(partial(AutoClassifier, **SEED), partial(sparse, classes=3)),
    "RBP": Fit(partial(RBPClassifier, max_points=10, **SEED), plane),
    "Forgetron": Fit(partial(ForgetronClassifier, max_points=10, **SEED), two_classes),
    "Forgetron, sparse": Fit(
        partial(ForgetronClassifier, max_points=20, **SEED), partial(sparse, classes=3)
    ),
    "perceptron": Fit(partial(KernelPerceptronClassifier, max_points=30, **SEED), two_classes),
    "OGD": Fit(partial(OGDClassifier, "log_loss", **SEED), plane),
    "OGD in a window": Fit(partial(WindowedOGDRegressor, max_points=30, **SEED), curve),
    "Pegasos": Fit(partial(PegasosClassifier, **SEED), partial(sparse, classes=3)),
    "NORMA": Fit(partial(NORMAClassifier, max_points=30, **SEED), plane),
    "NORMA, numbers": Fit(partial(NORMARegressor, max_points=30, **SEED), curve),
    "PA": Fit(partial(KernelPAClassifier, C=0.1, **SEED), lambda: weighted(plane())),
    "PA, numbers": Fit(partial(KernelPARegressor, variant=2, **SEED), wide),
    "BOGD": Fit(partial(BOGDClassifier, max_points=20, **SEED), plane),
    "BOGD, uniform": Fit(
        partial(BOGDClassifier, sampling="uniform", max_points=20, **SEED), two_classes
    ),
    "BSGD": Fit(partial(BSGDClassifier, max_points=20, **SEED), plane),
    "NPBSGD": Fit(
        partial(
            NPBSGDClassifier, initial_points=10, growth_delay=50.0, max_points=40, **SEED
        ),
        plane,
    ),
    "Projectron": Fit(partial(ProjectronClassifier, max_points=20, **SEED), plane),
    "Projectron++, sparse": Fit(
        partial(ProjectronPlusClassifier, novelty=1e-3, **SEED), partial(sparse, classes=2)
    ),
    "BPA-S": Fit(partial(BPASClassifier, max_points=20, **SEED), plane),
    "BPA-NN, sparse": Fit(
        partial(BPANNClassifier, max_points=20, **SEED), partial(sparse, classes=3)
    ),
    "BPA-P": Fit(partial(BPAPClassifier, max_points=20, **SEED), two_classes),
    "Ahpatron, sparse": Fit(
        partial(AhpatronClassifier, max_points=20, **SEED), partial(sparse, classes=3)
    ),
    "BSGD, projection": Fit(
        partial(BSGDClassifier, policy="projection", max_points=20, **SEED), plane
    ),
    "BSGD, merging": Fit(partial(BSGDClassifier, policy="merging", max_points=20, **SEED), plane),
    "BSGD, merging, sparse": Fit(
        partial(BSGDClassifier, policy="merging", search="golden", max_points=20, **SEED),
        partial(sparse, classes=2),
    ),
    "AVM": Fit(partial(AVMClassifier, **SEED), two_classes),
    "AVM, classes": Fit(partial(AVMClassifier, "margin_log_loss", **SEED), plane),
    "AVM, average": Fit(
        partial(AVMClassifier, "log_loss", average=True, average_horizon=0.5, **SEED), plane
    ),
    "AVM, rectangles": Fit(
        partial(
            AVMClassifier, coverage="hyperrectangle", delta=0.5, exact_probability=0.1, **SEED
        ), two_classes
    ),
    "AVM, margins": Fit(partial(AVMClassifier, delta=1.0, exact_margin=0.0, **SEED), plane),
    "AVM, several numbers": Fit(partial(AVMRegressor, average=True, **SEED), several),
    "AVM, numbers": Fit(partial(AVMRegressor, **SEED), curve),
    "AVM, ball and cap": Fit(
        partial(AVMRegressor, average=True, delta=0.1, max_points=20, **SEED), curve
    ),
    "AVM, wide": Fit(partial(AVMClassifier, delta=4.0, **SEED), partial(wide, classes=3)),
    "AVM, sparse": Fit(partial(AVMRegressor, "epsilon_insensitive", **SEED), sparse),
    "AVM, ones": Fit(
        partial(AVMClassifier, delta=3.0, **SEED), partial(sparse, classes=2, ones=True)
    ),
    "AVM, weights": Fit(
        partial(AVMRegressor, "huber", delta=0.2, **SEED), lambda: weighted(curve())
    ),
    "COLK": Fit(partial(COLKClassifier, **SEED), two_classes),
    "COLK, classes": Fit(partial(COLKClassifier, "log_loss", average=True, **SEED), plane),
    "COLK, cap": Fit(partial(COLKRegressor, **CAP), curve),
    "COLK, semivariance": Fit(
        partial(COLKRegressor, risk="semivariance", tracking="average", **SEED), curve
    ),
    "COLK, tail": Fit(partial(COLKRegressor, "absolute_error", risk="cvar", **SEED), curve),
    "COLK, blocks": Fit(
        partial(COLKRegressor, **{**BLOCKS, "max_points": 130, "batch_size": 30}), plane
    ),
    "COLK, sparse": Fit(partial(COLKClassifier, **CAP), partial(sparse, classes=3)),
    "COLK, wide": Fit(partial(COLKRegressor, batch_size=10, **CAP), lambda: weighted(wide())),
    "KLMS": Fit(partial(KLMSRegressor, max_points=20, **SEED), lambda: weighted(curve())),
    "QKLMS": Fit(partial(QKLMSRegressor, max_points=20, **SEED), wide),
    "KNLMS": Fit(partial(KNLMSRegressor, max_points=20, **SEED), sparse),
    "KRLS-ALD": Fit(partial(KRLSRegressor, max_points=20, **SEED), wide),
    "sliding-window KRLS": Fit(partial(SlidingKRLSRegressor, max_points=20, **SEED), sparse),
    "fixed-budget KRLS": Fit(partial(FixedBudgetKRLSRegressor, max_points=20, **SEED), curve),
    "FOGD": Fit(partial(FOGDClassifier, "log_loss", max_points=20, **SEED), plane),
    "FOGD, sparse": Fit(partial(FOGDRegressor, max_points=20, **SEED), sparse),
    "random features": Fit(partial(RandomFeatureClassifier, max_points=20, **SEED), two_classes),
    "NOGD": Fit(partial(NOGDClassifier, max_points=20, **SEED), plane),
    "DualSGD": Fit(partial(DualSGDClassifier, max_points=20, **SEED), plane),
    "DualSGD, sparse": Fit(partial(DualSGDRegressor, max_points=20, **SEED), sparse),
    "KRLS-T": Fit(partial(KRLSTRegressor, max_points=40, **SEED), curve),
    "KRLS-T, classes": Fit(partial(KRLSTClassifier, learn_scales=True, **SEED), plane),
    "KRLS-T, sparse": Fit(partial(KRLSTClassifier, forget=0.9, **SEED), partial(sparse, classes=3)),
    "policy": Fit(
        partial(KernelPolicyEvaluation, gamma=1.0, tracking_rate=0.001, **SEED),
        transitions,
    ),
    "policy, gradient": Fit(
        partial(
            KernelPolicyEvaluation, method="gradient", tracking_rate=0.001, average=True, **CAP
        ),
        transitions,
    ),
    "policy, scalar": Fit(
        partial(KernelPolicyEvaluation, method="scalar", tracking_rate=0.001, **SEED), transitions
    ),
    "consensus": Fit(
        partial(ConsensusNetwork, networkx.cycle_graph(4), **TOGETHER), partial(plane, 240),
        rounds(5),
    ),
    "proximity": Fit(
        partial(ProximityNetwork, networkx.path_graph(3), two_way=True, **TOGETHER),
        partial(plane, 240), rounds(4),
    ),
    "consensus, blocks": Fit(
        partial(
            ConsensusNetwork, networkx.cycle_graph(3), loss="squared_error", gamma=20.0,
            compression_error=0.0, max_points=200, **SEED,
        ),
        partial(plane, 1440), rounds(60),
    ),
    "features": Fit(partial(OnlineKernelFeatures, **SEED), partial(rows, 1000)),
    "features, aligned": Fit(partial(OnlineKernelFeatures, 5, align=True), rows),
    "features, wide": Fit(partial(OnlineKernelFeatures, 20), lambda: only_rows(wide())),
    "features, sparse": Fit(
        partial(OnlineKernelFeatures, 5, max_points=40), lambda: only_rows(sparse())
    ),
    **{
        f"features, {name}": Fit(
            partial(
                OnlineKernelFeatures, **{"n_components": 5, "max_points": 11, **parameters}
            ), rows
        )
        for name, parameters in VARIANTS.items()
    },
    "features and classes": Fit(partial(OnlineKernelFeatureClassifier, **SEED), plane),
    "features and numbers": Fit(partial(OnlineKernelFeatureRegressor, **SEED), wide),
    "features and numbers, sparse": Fit(
        partial(OnlineKernelFeatureRegressor, 5, loss="huber", step_size="tracking", **SEED), sparse
    ),
}  # fmt: skip


def learned(name: str) -> Any:
    """A model after its whole stream."""
    fit = MODELS[name]
    return fit.learn(fit.make(), fit.stream())


def resumed(name: str, folder: Path) -> Any:
    """The same, saved half-way by the first process that came here, and loaded."""
    fit, path = MODELS[name], folder / f"{name}.ks"
    stream = fit.stream()
    half = next(iter(stream.values())).shape[0] // 2
    if not path.exists():
        first = {key: array[:half] for key, array in stream.items()}
        fit.learn(fit.make(), first).save(path)
    return fit.learn(load(path), {key: array[half:] for key, array in stream.items()})


def digest(*values: Any) -> str:
    """Of arrays, numbers and texts."""
    found = hashlib.sha256()
    for value in values:
        found.update(value.encode() if isinstance(value, str) else np.asarray(value).tobytes())
    return found.hexdigest()


def described(name: str, model: Any) -> str:
    """A model and what it says of its stream."""
    X = next(iter(MODELS[name].stream().values()))
    methods = ("decision_function", "predict", "transform", "inverse_fit_error")
    said = [getattr(model, method)(X) for method in methods if hasattr(model, method)]
    return digest(model.fingerprint(), *said)


# ---- everything else -----------------------------------------------------------------------


def function(points: int = 300, outputs: int = 2) -> KernelExpansion:
    generator = np.random.default_rng(points)
    weights = generator.normal(size=(points, outputs))
    return KernelExpansion(Gaussian(1.0), generator.normal(size=(points, 3)), weights)


def contents(expansion: KernelExpansion) -> str:
    return digest(expansion.points, expansion.weights)


def compressed() -> str:
    return digest(*map(contents, (function().compress(max_points=100), function().compress(1.0))))


def algebra() -> str:
    f, g = function(), function(40)
    X = np.random.default_rng(1).normal(size=(500, 3))
    merged = KernelExpansion.merge([f, g], max_points=150)
    numbers = [f.inner(g), f.norm(), f.distance(g)]
    return digest(f(X), f(csr_array(X)), contents(f + g), contents(merged), numbers)


def merged() -> str:
    made = plane(600)
    make = partial(POLKClassifier, gamma=20.0, compression_error=0.0, batch_size=10, **SEED)
    parts = [make().partial_fit(made["X"][i::2], made["y"][i::2]) for i in range(2)]
    model = merge(parts, max_points=150)
    return digest(model.fingerprint(), model.partial_fit(**plane(100)).fingerprint())


def sharded() -> str:
    made = plane(600)
    shards = [(made["X"][i::3], made["y"][i::3]) for i in range(3)]
    model = fit_sharded(POLKClassifier(**SEED), shards, max_points=20, merge_every=100)
    return model.fingerprint()


def kernel_values() -> str:
    streams = [plane(90), wide(90), sparse(90), sparse(90, ones=True)]
    return digest(*(kernel(made["X"]) for kernel in [Gaussian(0.5), *KERNELS] for made in streams))


def losses() -> str:
    f, y = np.random.default_rng(0).normal(size=(2, 50))
    made = [Loss(name) for name in _TABLE]
    values = [loss.value(f, np.sign(y)) for loss in made]
    return digest(*values, *(loss.derivative(f, np.sign(y)) for loss in made))


def coverage() -> str:
    shapes = [Coverage(shape).fit(plane()["X"]) for shape in ("hypersphere", "hyperrectangle")]
    return digest(*(cells.core_points_ for cells in shapes))


def batch_features() -> str:
    X = wide()["X"]
    model = KernelFeatures(5, max_iter=5, **SEED).fit(X)
    return digest(model.fingerprint(), model.transform(X), model.inverse_fit_error(X))


def epochs() -> str:
    made = plane(200)
    models = [POLKClassifier(n_epochs=2, **SEED), AVMClassifier(n_epochs=2, **SEED)]
    return digest(*(model.fit(**made).fingerprint() for model in models))


def predicted_first() -> str:
    made = plane(200)
    models = [POLKClassifier("log_loss", average=True, **SEED), COLKClassifier(**SEED)]
    return digest(*(model.predict_then_learn(**made, classes=range(5)) for model in models))


def other_caps() -> str:
    made = plane(300)
    models = [
        kind(max_points=12, **SEED) for kind in (ForgetronClassifier, RBPClassifier, BSGDClassifier)
    ]
    for cap, first in ((12, 0), (5, 100), (9, 200)):
        part = {key: array[first : first + 100] for key, array in made.items()}
        models = [model.set_params(max_points=cap).partial_fit(**part) for model in models]
    return digest(*(model.fingerprint() for model in models))


def loss_of(value: Any, x: Any, y: Any) -> Any:
    return 0.5 * (value - y) ** 2


def slope_of(value: Any, x: Any, y: Any) -> Any:
    return value - y


def outer_slopes(value: Any, mean: Any, x: Any, y: Any) -> Any:
    excess = 0.5 * (value - y) ** 2 - mean
    return (1.0 + 2.0 * excess) * (value - y), -2.0 * excess


def compositional() -> str:
    made = {key: array[:100] for key, array in plane().items()}
    model = CompositionalLearner(loss_of, slope_of, outer_slopes, eta0=0.02, **CAP)
    model.partial_fit(**made)
    return digest(model.dual_coef_, model.dictionary_, model.predict(made["X"]))


def means() -> str:
    made = plane()["X"]
    made[::7, 0] = np.nan
    batch = Batch({"a": made[:, 0], "b": made[:, 1]}, lines=np.arange(len(made)))
    preparation = Preparation({"a": "number", "b": "number"}, standardise=False)
    return digest(preparation.transform(batch, learn=True), preparation.transform(batch))


OTHERS: dict[str, Callable[[], str]] = {
    "means of columns": means,
    "compress": compressed,
    "functions": algebra,
    "merge": merged,
    "shards": sharded,
    "kernels": kernel_values,
    "losses": losses,
    "coverage": coverage,
    "features of a batch": batch_features,
    "epochs": epochs,
    "other caps": other_caps,
    "predict, then learn": predicted_first,
    "compositional": compositional,
}

NAMES = [*MODELS, *OTHERS]
#: What is compiled cold, too. All of it would keep a processor busy for some two minutes.
COLD = [name for name in MODELS if name.startswith("features")]


def fingerprints(names: list[str], folder: Path) -> dict[str, str]:
    """Of these fits; those of models once more with a stop half-way."""
    found = {}
    for name in names:
        if name in OTHERS:
            found[name] = OTHERS[name]()
            continue
        found[name] = described(name, learned(name))
        found[f"{name}, resumed"] = described(name, resumed(name, folder))
    return found


# ---- the compiled functions ----------------------------------------------------------------

#: What an instruction may be allowed: to reorder, to fuse, to ignore NaN and so on.
_FREEDOM = re.compile(
    r"= (?:(?:tail |musttail |notail )?\w+ (?:fast|reassoc|contract|afn|arcp|nnan|ninf|nsz)\b.*"
    r"|.*@llvm\.fmuladd\b.*)"
)


def dispatchers() -> dict[str, Dispatcher]:
    """All compiled functions of the core by name."""
    found = {}
    for module in pkgutil.walk_packages(kernelstream.core.__path__, "kernelstream.core."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == module.name:
                found[f"{module.name.rpartition('.')[2]}.{name}"] = value
    return found


def load_everything(seed: int) -> None:
    """All that the cache holds of the core for this processor, in some order."""
    everything = [
        (dispatcher, signature)
        for dispatcher in dispatchers().values()
        for signature, processor, _ in dispatcher._cache._cache_file._load_index()
        if processor == dispatcher.targetctx.codegen().magic_tuple()
    ]
    random.Random(seed).shuffle(everything)
    for dispatcher, signature in everything:
        dispatcher.compile(signature)


def freedoms() -> dict[str, str | None]:
    """An instruction with freedom for each function that was loaded; None where there is none."""
    found = {}
    for name, dispatcher in dispatchers().items():
        for result in dispatcher.overloads.values():
            instruction = _FREEDOM.search(str(result.library._get_module_for_linking()))
            found[name] = found.get(name) or (instruction and instruction.group())
    return found


# ---- the processes -------------------------------------------------------------------------


def run(name: str, folder: Path, seed: int) -> None:
    """What a process of this name does."""
    found: dict[str, Any] = {}
    names = list(NAMES)
    if name in ("cold", "warm"):
        names = COLD
        ahead.start = lambda kind: None  # features need nothing of what the second process compiles
    elif name == "loaded":
        load_everything(seed)
        found["freedoms"] = freedoms()
    elif name == "called":
        random.Random(seed).shuffle(names)
        names.sort(key=lambda fit: fit != "compress")
    elif name == "tested":
        distributed = "tests/network/test_ray.py::test_old_checkpoints_errors_and_death"
        words = ["-q", "-p", "no:cacheprovider", "-W", "default", "tests/test_expansion.py"]
        found["tests"] = int(pytest.main([*words, distributed]))
    found["fits"] = fingerprints(names, folder)
    (folder / f"{name}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # Nothing is compiled or loaded yet: each child begins where a fresh interpreter would be after
    # some seconds of imports.
    for name in sys.argv[3:]:
        child = multiprocessing.get_context("fork").Process(
            target=run, args=(name, Path(sys.argv[1]), int(sys.argv[2]))
        )
        child.start()
        child.join()
        if child.exitcode:
            sys.exit(f"{name} ended with {child.exitcode}")
