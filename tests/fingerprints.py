"""Fits of every method, and their fingerprints.

`tests/test_bits.py` compares them in processes that differ in what they did before,
`tests/test_reference.py` with those of earlier versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import networkx
import numpy as np

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
    DualSGDClassifier,
    DualSGDRegressor,
    FixedBudgetKRLSRegressor,
    FOGDClassifier,
    FOGDRegressor,
    ForgetronClassifier,
    KernelPAClassifier,
    KernelPARegressor,
    KernelPerceptronClassifier,
    KernelPolicyEvaluation,
    KLMSRegressor,
    KNLMSRegressor,
    KRLSRegressor,
    KRLSTClassifier,
    KRLSTRegressor,
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
    load,
)
from kernelstream.features import (
    OnlineKernelFeatureClassifier,
    OnlineKernelFeatureRegressor,
    OnlineKernelFeatures,
)
from kernelstream.kernels import Gaussian, Laplacian, Matern12, Matern32, Matern52, Polynomial
from kernelstream.network import ConsensusNetwork, ProximityNetwork
from tests.features.tools import VARIANTS
from tests.fit_streams import (
    Stream,
    curve,
    only_rows,
    plane,
    rows,
    several,
    sparse,
    transitions,
    two_classes,
    weighted,
    wide,
)


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
    "automatic, several numbers": Fit(partial(AutoRegressor, **SEED), partial(several, 1200)),
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
    methods = (
        "decision_function", "predict", "predict_proba", "transform", "inverse_fit_error",
    )  # fmt: skip
    said = [getattr(model, method)(X) for method in methods if hasattr(model, method)]
    return digest(model.fingerprint(), *said)
