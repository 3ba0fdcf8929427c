"""The same stream through other programs.

Every peer has one interface, `peer.run(X, y, ...)`, and gives one row, `PeerResult`. The rules,
all in the peers' favour:

* A sample is predicted, then learned; both count in the time. Converting the data to what a
  program wants to read (dictionaries, parsed examples, sparse rows) does not, nor does set-up.
* One thread, the kernel width `gamma` that kernelstream gets too, and the other settings as the
  program's documentation uses them. One number is chosen per stream where it matters (the
  regularisation of SGD, the step of River's linear models): the best of a few on the first
  rows, untimed, although a stream could not do that.
* Programs too slow for a whole stream see its beginning: as many rows as `max_rows` or
  `max_seconds` allow, given in the row. Compare errors only over the same rows.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Measured = tuple[float, float, str, int, str]  # microseconds, error %, size, rows, settings

N_FEATURES = 400  # size of the random and Nystroem feature maps
NYSTROEM_ROWS = 1000  # rows the Nystroem map is fitted on
CHUNK = 100  # rows per call in the chunked runs
SGD_ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3)
SGD_TUNING_ROWS = 2000
RIVER_STEPS = (0.001, 0.01, 0.1, 1.0)
RIVER_TUNING_ROWS = 250
SPARSE_BELOW = 0.3  # share of non-zeros under which a program gets its sparse format


@dataclass(frozen=True)
class PeerResult:
    """One row of the comparison; numbers are NaN where nothing was measured."""

    name: str
    microseconds: float  # per sample, predict then learn
    error_percent: float  # prequential mistakes, or test error for a batch program
    model_size: str
    rows: int  # samples the two numbers rest on
    settings: str


@dataclass(frozen=True)
class Stream:
    """What a peer is given. Labels are 0 .. n_classes - 1."""

    X: NDArray[np.float64]  # (n, p)
    y: NDArray[np.int64]  # (n,)
    X_test: NDArray[np.float64] | None
    y_test: NDArray[np.int64] | None
    gamma: float  # of the Gaussian kernel exp(-gamma |x - x'|^2)
    max_seconds: float
    seed: int

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def is_sparse(self) -> bool:
        return bool(np.count_nonzero(self.X) < SPARSE_BELOW * self.X.size)


@dataclass(frozen=True)
class Peer:
    """A program with its settings: `run` measures it on a stream."""

    name: str
    package: str  # as imported
    distribution: str  # as installed
    max_rows: int
    measure: Callable[[Stream], Measured]

    def run(
        self,
        X: Any,
        y: Any,
        X_test: Any = None,
        y_test: Any = None,
        *,
        gamma: float,
        max_rows: int | None = None,
        max_seconds: float = 20.0,
        seed: int = 0,
    ) -> PeerResult:
        """Predict, then learn, row by row; a batch program fits X and is tested on X_test."""
        if importlib.util.find_spec(self.package) is None:
            return PeerResult(self.name, math.nan, math.nan, "not installed", 0, "")
        from threadpoolctl import threadpool_limits

        n = min(len(X), max_rows or self.max_rows)
        classes = np.unique(y)
        stream = Stream(
            X=np.ascontiguousarray(X[:n], dtype=np.float64),
            y=np.searchsorted(classes, y[:n]),
            X_test=None if X_test is None else np.asarray(X_test, dtype=np.float64),
            y_test=None if y_test is None else np.searchsorted(classes, y_test),
            gamma=gamma,
            max_seconds=max_seconds,
            seed=seed,
        )
        with threadpool_limits(1):
            microseconds, error, size, rows, settings = self.measure(stream)
        label = f"{self.name} ({self.distribution} {version(self.distribution)})"
        return PeerResult(label, microseconds, error, size, rows, settings)


def run_all(
    X: Any, y: Any, X_test: Any = None, y_test: Any = None, **kwargs: Any
) -> Iterator[PeerResult]:
    """Results of every peer in `PEERS`, one after the other as they are measured."""
    for peer in PEERS:
        yield peer.run(X, y, X_test, y_test, **kwargs)


# ---- the two loops ----------------------------------------------------------------------------


def _one_by_one(
    step: Callable[[Any, int], Any], samples: Sequence[Any], labels: Iterable[int], seconds: float
) -> tuple[float, float, int]:
    """Time `step(x, y) -> prediction made before learning`; (us per sample, error %, rows)."""
    mistakes = 0
    rows = 0
    start = time.perf_counter()
    for x, label in zip(samples, labels, strict=True):
        mistakes += step(x, label) != label
        rows += 1
        if rows % 16 == 0 and time.perf_counter() - start > seconds:
            break
    elapsed = time.perf_counter() - start
    return 1e6 * elapsed / rows, 100 * mistakes / rows, rows


def _in_chunks(
    predict: Callable[[Array], Array],
    learn: Callable[[Array, Array], None],
    X: Array,
    y: Array,
    seconds: float,
) -> tuple[float, float, int]:
    """The same for chunks. The first chunk is learned without being scored."""
    mistakes = 0
    rows = 0
    start = time.perf_counter()
    for first in range(0, len(X), CHUNK):
        chunk, labels = X[first : first + CHUNK], y[first : first + CHUNK]
        if first > 0:
            mistakes += int(np.sum(predict(chunk) != labels))
        learn(chunk, labels)
        rows += len(chunk)
        if time.perf_counter() - start > seconds:
            break
    elapsed = time.perf_counter() - start
    return 1e6 * elapsed / rows, 100 * mistakes / max(1, rows - CHUNK), rows


# ---- scikit-learn -----------------------------------------------------------------------------


class _FeatureMapSGD:
    """A fixed feature map and a linear SVM by stochastic gradient descent."""

    def __init__(self, feature_map: Any, n_classes: int, alpha: float, seed: int) -> None:
        from sklearn.linear_model import SGDClassifier

        self.feature_map = feature_map
        self.classes = np.arange(n_classes)
        self.linear = SGDClassifier("hinge", alpha=alpha, average=True, random_state=seed)
        self.fitted = False

    def predict(self, X: Array) -> Array:
        self.features = self.feature_map.transform(X)
        return np.asarray(self.linear.predict(self.features))

    def learn(self, X: Array, y: Array) -> None:
        # The features that were predicted from are learned from: they are computed once.
        features = self.features if self.fitted else self.feature_map.transform(X)
        self.linear.partial_fit(features, y, classes=self.classes)
        self.fitted = True

    def step(self, x: Array, label: int) -> int | None:
        prediction = int(self.predict(x)[0]) if self.fitted else None
        self.learn(x, np.array([label]))
        return prediction


def _feature_map_sgd(
    stream: Stream, feature_map: Any, rows_used: int, chunked: bool
) -> tuple[float, float, int, str]:
    from sklearn import config_context

    X, y = stream.X[rows_used:], stream.y[rows_used:]

    def learner(alpha: float) -> _FeatureMapSGD:
        return _FeatureMapSGD(feature_map, stream.n_classes, alpha, stream.seed)

    def tuning_error(alpha: float) -> float:
        model = learner(alpha)
        head = slice(0, SGD_TUNING_ROWS)
        return _in_chunks(model.predict, model.learn, X[head], y[head], stream.max_seconds)[1]

    alpha = min(SGD_ALPHAS, key=tuning_error)
    model = learner(alpha)
    # Without the checks of input and parameters, which scikit-learn lets one switch off.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        if chunked:
            measured = _in_chunks(model.predict, model.learn, X, y, stream.max_seconds)
        else:
            samples = [X[i : i + 1] for i in range(len(X))]
            measured = _one_by_one(model.step, samples, y.tolist(), stream.max_seconds)
    microseconds, error, rows = measured
    settings = f"hinge, average, alpha {alpha:g}"
    settings += f", chunks of {CHUNK}" if chunked else ", one by one"
    return microseconds, error, rows, settings


def _random_features(stream: Stream, chunked: bool) -> Measured:
    from sklearn.kernel_approximation import RBFSampler

    feature_map = RBFSampler(
        gamma=stream.gamma, n_components=N_FEATURES, random_state=stream.seed
    ).fit(stream.X[:1])
    microseconds, error, rows, settings = _feature_map_sgd(stream, feature_map, 0, chunked)
    return microseconds, error, f"{N_FEATURES} random features", rows, settings


def _nystroem(stream: Stream, chunked: bool) -> Measured:
    from sklearn.kernel_approximation import Nystroem

    rows_used = min(NYSTROEM_ROWS, len(stream.X) // 2)
    feature_map = Nystroem(
        gamma=stream.gamma, n_components=min(N_FEATURES, rows_used), random_state=stream.seed
    ).fit(stream.X[:rows_used])
    microseconds, error, rows, settings = _feature_map_sgd(stream, feature_map, rows_used, chunked)
    settings += f", map fitted on the first {rows_used} rows, which are not scored"
    return microseconds, error, f"{feature_map.n_components} landmarks", rows, settings


def _batch_svc(stream: Stream) -> Measured:
    """Fit time per training sample; error on the test set, or on a third held out."""
    from scipy.sparse import csr_array
    from sklearn.svm import SVC

    X, y, X_test, y_test = stream.X, stream.y, stream.X_test, stream.y_test
    if X_test is None or y_test is None:
        n_train = 2 * len(X) // 3
        X, X_test, y, y_test = X[:n_train], X[n_train:], y[:n_train], y[n_train:]
    # Drawn, not cut off: test files are often sorted.
    chosen = np.random.default_rng(stream.seed).permutation(len(X_test))[:10_000]
    X_test, y_test = X_test[chosen], y_test[chosen]
    if stream.is_sparse:
        X, X_test = csr_array(X), csr_array(X_test)
    start = time.perf_counter()
    model = SVC(gamma=stream.gamma, C=1.0, cache_size=500).fit(X, y)
    elapsed = time.perf_counter() - start
    error = 100 * float(np.mean(model.predict(X_test) != y_test))
    n = X.shape[0]
    settings = f"C 1, batch: time of fit alone, error on {len(y_test)} test rows"
    return 1e6 * elapsed / n, error, f"{int(model.n_support_.sum())} support vectors", n, settings


# ---- River ------------------------------------------------------------------------------------


def _as_dicts(X: Array, sparse: bool) -> list[dict[int, float]]:
    if sparse:
        return [{int(i): float(row[i]) for i in np.flatnonzero(row)} for row in X]
    return [dict(enumerate(row)) for row in X.tolist()]


def _river(
    stream: Stream, model: Any, sparse: bool, n_rows: int | None = None
) -> tuple[float, float, int]:
    samples = _as_dicts(stream.X[:n_rows], sparse)

    def step(x: dict[int, float], label: int) -> Any:
        prediction = model.predict_one(x)
        model.learn_one(x, label)
        return prediction

    return _one_by_one(step, samples, stream.y[:n_rows].tolist(), stream.max_seconds)


def _river_linear(
    stream: Stream, pipeline: Callable[[Any], Any], sparse: bool
) -> tuple[float, float, int, str]:
    """A linear model behind some transformer, with the best of a few step sizes."""
    from river import linear_model, multiclass, optim

    def model(step_size: float) -> Any:
        linear = linear_model.LogisticRegression(optimizer=optim.SGD(step_size), l2=1e-6)
        return pipeline(linear if stream.n_classes == 2 else multiclass.OneVsRestClassifier(linear))

    def tuning_error(step_size: float) -> float:
        return _river(stream, model(step_size), sparse, RIVER_TUNING_ROWS)[1]

    step_size = min(RIVER_STEPS, key=tuning_error)
    microseconds, error, rows = _river(stream, model(step_size), sparse)
    return microseconds, error, rows, f"SGD step {step_size:g}, l2 1e-6"


def _river_logistic(stream: Stream) -> Measured:
    from river import preprocessing

    # River's scaler skips what a dictionary does not hold, so it needs the zeros too. Rows of
    # mostly zeros go without it, as sparse dictionaries.
    def pipeline(linear: Any) -> Any:
        return linear if stream.is_sparse else preprocessing.StandardScaler() | linear

    microseconds, error, rows, settings = _river_linear(stream, pipeline, stream.is_sparse)
    settings += ", sparse rows" if stream.is_sparse else ", StandardScaler"
    return microseconds, error, f"{stream.X.shape[1]} weights per class", rows, settings


def _river_random_features(stream: Stream) -> Measured:
    """River's map takes the cosines of each feature alone, `n_components` of them per feature.

    Its inner products are thus not those of the Gaussian kernel of the whole sample. Sparse
    rows give it the non-zeros only, which spares it the cosines of the zeros.
    """
    from river import feature_extraction

    def pipeline(linear: Any) -> Any:
        sampler = feature_extraction.RBFSampler(
            gamma=stream.gamma, n_components=N_FEATURES, seed=stream.seed
        )
        return sampler | linear

    microseconds, error, rows, settings = _river_linear(stream, pipeline, stream.is_sparse)
    size = f"{stream.X.shape[1]} x {N_FEATURES} cosines"
    return microseconds, error, size, rows, settings


def _river_hoeffding_tree(stream: Stream) -> Measured:
    from river import tree

    model = tree.HoeffdingAdaptiveTreeClassifier(seed=stream.seed)
    microseconds, error, rows = _river(stream, model, sparse=False)
    return microseconds, error, f"nodes: {model.n_nodes}", rows, "defaults"


def _river_forest(stream: Stream) -> Measured:
    from river import forest

    model = forest.ARFClassifier(n_models=10, seed=stream.seed)
    microseconds, error, rows = _river(stream, model, sparse=False)
    nodes = sum(tree.n_nodes for tree in model)
    return microseconds, error, f"10 trees, nodes: {nodes}", rows, "n_models 10"


def _river_neighbours(stream: Stream) -> Measured:
    from river import neighbors

    window = 1000
    model = neighbors.KNNClassifier(n_neighbors=5, engine=neighbors.LazySearch(window_size=window))
    microseconds, error, rows = _river(stream, model, stream.is_sparse)
    return microseconds, error, f"window of {window} samples", rows, "k 5, exact search"


# ---- Vowpal Wabbit ----------------------------------------------------------------------------


def _vowpal_ksvm(stream: Stream) -> Measured:
    """`vw --ksvm`: LASVM, an online SVM with process and reprocess steps; two classes.

    `learn` leaves in the example the score it had before the update, so one call is predict
    then learn, as when vw reads a file. More classes take one machine per class.
    """
    import vowpalwabbit

    n_machines = 1 if stream.n_classes == 2 else stream.n_classes
    arguments = f"--ksvm --kernel rbf --bandwidth {stream.gamma:.9g} --reprocess 1"
    machines = [vowpalwabbit.Workspace(arguments, enable_logging=True) for _ in range(n_machines)]
    features = [" ".join(f"{i}:{row[i]:.7g}" for i in np.flatnonzero(row)) for row in stream.X]
    positive = [1] if n_machines == 1 else list(range(n_machines))
    examples = [
        [
            machine.example(f"{1 if label == target else -1} | {text}")
            for machine, target in zip(machines, positive, strict=True)
        ]
        for text, label in zip(features, stream.y.tolist(), strict=True)
    ]

    def step(views: list[Any], label: int) -> int:
        scores = []
        for machine, example in zip(machines, views, strict=True):
            machine.learn(example)
            scores.append(example.get_simplelabel_prediction())
        return int(scores[0] > 0) if n_machines == 1 else scores.index(max(scores))

    microseconds, error, rows = _one_by_one(step, examples, stream.y.tolist(), stream.max_seconds)
    for views in examples:
        for machine, example in zip(machines, views, strict=True):
            machine.finish_example(example)
    size = sum(_vowpal_support_vectors(machine) for machine in machines)
    settings = "--reprocess 1" + (f", {n_machines} machines one-vs-all" if n_machines > 1 else "")
    return microseconds, error, f"{size} support vectors", rows, settings


def _vowpal_support_vectors(machine: Any) -> int:
    machine.finish()
    lines = [line for line in machine.get_log() if line.startswith("Num support")]
    return int(lines[-1].split("=")[1])


def _sklearn(name: str, max_rows: int, measure: Callable[[Stream], Measured]) -> Peer:
    return Peer(name, "sklearn", "scikit-learn", max_rows, measure)


def _river_peer(name: str, max_rows: int, measure: Callable[[Stream], Measured]) -> Peer:
    return Peer(name, "river", "river", max_rows, measure)


PEERS: tuple[Peer, ...] = (
    _sklearn("RBFSampler + SGD, single", 2000, lambda stream: _random_features(stream, False)),
    _sklearn("RBFSampler + SGD, chunks", 60_000, lambda stream: _random_features(stream, True)),
    _sklearn("Nystroem + SGD, single", 3000, lambda stream: _nystroem(stream, False)),
    _sklearn("Nystroem + SGD, chunks", 60_000, lambda stream: _nystroem(stream, True)),
    _sklearn("SVC, batch", 10_000, _batch_svc),
    _river_peer("logistic regression", 10_000, _river_logistic),
    _river_peer("RBFSampler + logistic", 1000, _river_random_features),
    _river_peer("Hoeffding adaptive tree", 10_000, _river_hoeffding_tree),
    _river_peer("adaptive random forest", 5000, _river_forest),
    _river_peer("k nearest neighbours", 2000, _river_neighbours),
    Peer("vw --ksvm", "vowpalwabbit", "vowpalwabbit", 5000, _vowpal_ksvm),
)
