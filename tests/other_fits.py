"""Fingerprints of what is not a model that learns from one stream: functions, merges, shards ..."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelstream import (
    AVMClassifier,
    BSGDClassifier,
    COLKClassifier,
    CompositionalLearner,
    Coverage,
    ForgetronClassifier,
    KernelExpansion,
    Loss,
    POLKClassifier,
    RBPClassifier,
    fit_sharded,
    merge,
)
from kernelstream.core.experts.group import independent_points
from kernelstream.features import (
    KernelFeatures,
)
from kernelstream.kernels import Gaussian
from kernelstream.losses import _TABLE
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch
from tests.fingerprints import CAP, KERNELS, SEED, digest
from tests.fit_streams import plane, sparse, wide


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


def independent() -> str:
    """What the automatic model does where points have come too near to one another."""
    return digest(independent_points(Gaussian(0.5)(plane(90)["X"]), 0.01))


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
    "independent points": independent,
}
