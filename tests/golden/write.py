"""``python -m tests.golden.write FOLDER``: one small file of every kind this version writes.

Run once with every release; the files stay for good, and `tests/test_golden.py` reads all of them.
Beside each model lies what it predicts of ``rows()``, and, where it learns, what it predicts after
it has learned from ``more()``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse import csr_array

from kernelstream import (
    AVMClassifier,
    AVMRegressor,
    COLKClassifier,
    COLKRegressor,
    KernelExpansion,
    KernelPolicyEvaluation,
    POLKClassifier,
    POLKRegressor,
)
from kernelstream.features import (
    KernelFeatures,
    OnlineKernelFeatureClassifier,
    OnlineKernelFeatureRegressor,
    OnlineKernelFeatures,
)
from kernelstream.kernels import Gaussian
from kernelstream.network import ConsensusNetwork, ProximityNetwork


def samples(n: int, seed: int) -> tuple[Any, Any, Any]:
    """Inputs, numbers and three classes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    X[random.random(X.shape) < 0.3] = 0.0
    y = X[:, 0] * X[:, -1] + np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=n)
    return X, y, np.digitize(y, [-0.4, 0.4])


def rows() -> Any:
    return samples(20, 1)[0]


def more() -> tuple[Any, Any, Any]:
    return samples(40, 2)


def learn(model: Any, X: Any, y: Any, classes: Any) -> Any:
    """As the model's task asks; two classes where it has met no more."""
    if isinstance(model, KernelPolicyEvaluation):
        return model.partial_fit(X[:-1], y[:-1], X[1:])
    if isinstance(model, ConsensusNetwork | ProximityNetwork):
        for i in range(0, len(y), 4):
            model.partial_fit_round(
                {a: (X[i + a : i + a + 1], y[i + a : i + a + 1]) for a in range(4)}
            )
        return model
    if isinstance(model, OnlineKernelFeatures):
        return model.partial_fit(X)
    if hasattr(model, "classes_") or "Classifier" in type(model).__name__:
        known = list(getattr(model, "classes_", range(3)))
        return model.partial_fit(X, np.array(known)[np.minimum(classes, len(known) - 1)])
    return model.partial_fit(X, y)


def predict(model: Any, X: Any) -> Any:
    """What there is to compare."""
    if isinstance(model, KernelExpansion):
        return model(X)
    if isinstance(model, ConsensusNetwork | ProximityNetwork):
        return np.array([model.predict(X, agent) for agent in range(4)])
    for name in ("decision_function", "predict", "transform"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    raise TypeError(type(model))


def models() -> dict[str, Any]:
    """One of every kind, and of every form that changes what a file holds."""
    X, y, classes = samples(120, 0)
    two, sparse = np.minimum(classes, 1), csr_array(X)
    seeded = {"random_state": 0}
    made = {
        "polk-classes": POLKClassifier(**seeded).partial_fit(X, classes),
        "polk-two-averaged": POLKClassifier("log_loss", average=True, **seeded).partial_fit(X, two),
        "polk-waiting": POLKClassifier(batch_size=50, max_points=9, **seeded).partial_fit(
            X, classes
        ),
        "polk-sparse-waiting": POLKRegressor(batch_size=50, **seeded).partial_fit(sparse, y),
        "polk-texts": POLKClassifier(kernel="matern32", **seeded).partial_fit(
            X, np.array(["no", "yes", "böse"])[classes]
        ),
        "polk-sum": POLKRegressor(
            kernel=0.5 * Gaussian(0.3) + Gaussian(2.0), loss="huber", projection="random", **seeded
        ).partial_fit(X, y),
        "avm-classes": AVMClassifier(delta=1.0, **seeded).partial_fit(X, classes),
        "avm-two": AVMClassifier(
            delta=1.0, average=True, exact_probability=0.5, **seeded
        ).partial_fit(X, two),
        "avm-waiting": AVMRegressor(**seeded).partial_fit(X, y),
        "avm-numbers": AVMRegressor(
            delta=0.8, average=True, average_horizon=0.5, alpha=0.1, **seeded
        ).partial_fit(X, y),
        "colk-classes": COLKClassifier(**seeded).partial_fit(X[:119], classes[:119]),
        "colk-cvar": COLKRegressor(risk="cvar", average=True, **seeded).partial_fit(X, y),
        "policy": learn(KernelPolicyEvaluation(**seeded), X, y, classes),
        "features": OnlineKernelFeatures(n_components=4, max_points=20, **seeded).partial_fit(X),
        "features-aligned": OnlineKernelFeatures(
            n_components=4, max_points=20, align=True, **seeded
        ).partial_fit(X),
        "features-classes": OnlineKernelFeatureClassifier(
            n_components=4, max_points=20, **seeded
        ).partial_fit(X, classes),
        "features-numbers": OnlineKernelFeatureRegressor(
            n_components=4, max_points=20, **seeded
        ).partial_fit(X, y),
        "features-batch": KernelFeatures(n_components=4, **seeded).fit(X),
        "expansion": KernelExpansion(Gaussian(0.5), X[:9], np.stack([y[:9], -y[:9]], axis=1)),
    }  # fmt: skip
    for name, kind in {"consensus": ConsensusNetwork, "proximity": ProximityNetwork}.items():
        network = kind(nx.cycle_graph(4), loss="squared_error", eta0=0.5, **seeded)
        made[name] = learn(network, X, y, classes)
    return made


#: The command line's runs: rows as they are, with text, dates and gaps.
RUNS = {
    "tool-classes": "learn rows.csv --target label --drop height --buckets 4 --max-points 20",
    "tool-numbers": "learn rows.csv --target height --drop label --buckets 4 --max-points 20",
}
#: A saved extractor, and the features that it gives.
EXTRACTION = (
    "features rows.csv --drop label --drop height --n-components 4 --max-points 9 --buckets 4 "
    "--save tool-features.ks --out tool-features.csv",
    "features rows.csv --apply tool-features.ks --out tool-features.csv",
)


def write_table(path: Path, n: int) -> None:
    """Numbers with gaps, a category, a date and two targets."""
    X, y, classes = samples(300, 3)
    with path.open("w") as file:
        file.write("x,y,city,day,label,height\n")
        for i in range(n):
            gap = "" if i % 19 == 5 else repr(float(X[i, 0]))
            city, label = ("Ulm", "Bonn", "Berlin")[i % 3], ("no", "yes", "perhaps")[classes[i]]
            day = f"2024-{1 + i // 28:02}-{1 + i % 28:02}"
            file.write(f"{gap},{float(X[i, 2])!r},{city},{day},{label},{float(y[i])!r}\n")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    expected = {}
    for name, model in models().items():
        model.save(folder / f"{name}.ks")
        expected[name] = predict(model, rows())
        if hasattr(model, "partial_fit") or hasattr(model, "partial_fit_round"):
            expected[f"{name} later"] = predict(learn(model, *more()), rows())
    for name, words in RUNS.items():
        for part in ("", "-later"):  # the second goes on from the checkpoint of the first
            write_table(folder / "rows.csv", 300 if part else 200)
            command = [sys.executable, "-m", "kernelstream", *words.split(), "--quiet", "--resume"]
            command += ["--checkpoint", f"{name}-run", "--out", f"{name}{part}.ks"]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            if not part:
                shutil.copytree(folder / f"{name}-run", folder / f"{name}-checkpoint")
        shutil.rmtree(folder / f"{name}-run")
    tool = [sys.executable, "-m", "kernelstream"]
    for words in EXTRACTION:
        subprocess.run([*tool, *words.split(), "--quiet"], cwd=folder, check=True)
    (folder / "rows.csv").unlink()
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    main()
