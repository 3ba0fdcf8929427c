"""Files of every kind that the package writes or reads, and a close look at damaged ones."""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from sklearn.base import is_classifier
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import NotFittedError

import kernelstream
from kernelstream import (
    AutoClassifier,
    AutoRegressor,
    AVMClassifier,
    AVMRegressor,
    CapWarning,
    COLKClassifier,
    COLKRegressor,
    Coverage,
    DivergenceError,
    IllConditionedError,
    KernelExpansion,
    KernelPolicyEvaluation,
    ModelFileError,
    NoveltyDetector,
    POLKClassifier,
    POLKRegressor,
    Preparation,
    StreamModel,
    registry,
    storage,
)
from kernelstream.cli import main as tool
from kernelstream.feature_stream import StreamFeatures
from kernelstream.features import (
    KernelFeatures,
    OnlineKernelFeatureClassifier,
    OnlineKernelFeatureRegressor,
    OnlineKernelFeatures,
)
from kernelstream.kernels import Gaussian, Polynomial
from kernelstream.network import ConsensusNetwork, ProximityNetwork
from kernelstream.network._agent import Agent
from kernelstream.parameters import parameters_of
from kernelstream.streams.batch import Batch, Text

#: Rows of the streams that all files are made of.
ROWS = 60
#: What a model may say of good rows when its file was changed and the checksum put right.
MAY_RAISE = (ValueError, DivergenceError, IllConditionedError)
#: A residual of the Gram factor beyond which a model is not one: the library gives up at 1e-3.
WORST_RESIDUAL = 0.1

_random = np.random.default_rng(0)
X = _random.normal(size=(ROWS, 2))
NUMBERS = np.sin(2.0 * X[:, 0]) + 0.1 * _random.normal(size=ROWS)
LABELS = np.array(["high", "low", "middle"])[np.digitize(NUMBERS, [-0.4, 0.4])]
CITIES = np.array(["Ulm", "Bonn", "Köln"])[_random.integers(3, size=ROWS)]
DAYS = np.datetime64("2024-01-01", "us") + 3600 * 10**6 * np.arange(ROWS)


class Outcome(NamedTuple):
    """What came of a damaged file."""

    what: str  # refused, unnamed (the file was not), same, another, read; wrong, error
    detail: str = ""


# ---- models ---------------------------------------------------------------------------


def _text(values: Any) -> Text:
    known, codes = np.unique(values, return_inverse=True)
    return Text(codes.astype(np.int32), known.tolist())


def rows(numbers: bool) -> Batch:
    """Rows as a stream hands them out, with a target of numbers or of classes."""
    columns = {
        "x": np.where(np.arange(ROWS) % 9, X[:, 0], np.nan), "y": X[:, 1], "city": _text(CITIES),
        "day": DAYS, "target": NUMBERS if numbers else _text(LABELS),
    }  # fmt: skip
    return Batch(columns, None, np.arange(ROWS))


def _rows_for(model: StreamModel) -> Batch:
    return rows(model.task == "regression" and model.target == "target")


def _preparation(numbers: bool, warm_up: int = 40) -> Preparation:
    schema = {"x": "number", "y": "number", "city": "text", "day": "date"}
    schema["target"] = "number" if numbers else "text"
    made = Preparation(schema, ignore=["target"], warm_up=warm_up, buckets=8)
    return made.start(rows(numbers))


def _stream_model(estimator: Any, numbers: bool, warm_up: int = 40) -> StreamModel:
    task = "regression" if numbers else "classification"
    model = StreamModel(estimator, _preparation(numbers, warm_up), "target", task)
    return model.learn(rows(numbers))


def _followed(estimator: Any) -> StreamModel:
    model = StreamModel(estimator, _preparation(False), "target", "classification")
    return model.follow_importances().follow_novelty().learn(rows(False))


def _stream_features() -> StreamFeatures:
    made = StreamFeatures(OnlineKernelFeatures(3, max_points=9, random_state=0), _preparation(True))
    made.learn(rows(True))
    return made


def _network(kind: Any, **settings: Any) -> Any:
    network = kind(networkx.path_graph(3), gamma=0.7, random_state=0, **settings)
    return network.run((X, LABELS), batch=4)


def _small(kind: Any) -> Any:
    """A new estimator with few points, where it can be told how many, that learned the rows."""
    known = parameters_of(kind)
    wanted = {"random_state": 0, "max_points": 9, "gamma": 0.7, "n_components": 6}
    model = kind(**{name: value for name, value in wanted.items() if name in known})
    return model.partial_fit(X, LABELS if is_classifier(model) else NUMBERS)


#: Models whose parameters show more of what a file can hold than those of `_small` do.
_CHOSEN: dict[str, Callable[[], Any]] = {
    "POLKClassifier": lambda: POLKClassifier(gamma=0.7, batch_size=7, random_state=0).partial_fit(
        X, LABELS
    ),
    "POLKRegressor": lambda: POLKRegressor(
        kernel=0.5 * Gaussian(1.0) + Polynomial(2), average=True, random_state=0
    ).partial_fit(X, NUMBERS),
    "POLKRegressor of vectors": lambda: POLKRegressor(gamma=0.7, random_state=0).partial_fit(
        X, np.stack([NUMBERS, X[:, 1]], axis=1)
    ),
    "AVMClassifier": lambda: AVMClassifier(
        coverage=Coverage("hyperrectangle", 1.0).fit(X[:20]), random_state=0
    ).partial_fit(X, LABELS),
    "AVMRegressor": lambda: AVMRegressor("huber", random_state=0).partial_fit(X, NUMBERS),
    "COLKClassifier": lambda: COLKClassifier(gamma=0.7, random_state=0).partial_fit(
        X, LABELS == "low"
    ),
    "COLKRegressor": lambda: COLKRegressor(gamma=0.7, risk="cvar", random_state=0).partial_fit(
        X[:-1], NUMBERS[:-1]
    ),
    "KernelPolicyEvaluation": lambda: KernelPolicyEvaluation(gamma=0.7, random_state=0).partial_fit(
        X[:-1], NUMBERS[:-1], X[1:]
    ),
    "OnlineKernelFeatures": lambda: OnlineKernelFeatures(
        3, max_points=9, random_state=0
    ).partial_fit(X),
    "OnlineKernelFeatures, tracking": lambda: OnlineKernelFeatures(
        3, max_points=9, step_size="tracking", align=True, removal="exact", random_state=0
    ).partial_fit(X),
    "OnlineKernelFeatureClassifier": lambda: OnlineKernelFeatureClassifier(
        3, max_points=9, random_state=0
    ).partial_fit(X, LABELS),
    "OnlineKernelFeatureRegressor": lambda: OnlineKernelFeatureRegressor(
        3, max_points=9, random_state=0
    ).partial_fit(X, NUMBERS),
    "KernelFeatures": lambda: KernelFeatures(3, random_state=0).fit(X[:20]),
    "StreamModel": lambda: _stream_model(POLKClassifier(gamma=0.7, random_state=0), False),
    "StreamModel of numbers": lambda: _stream_model(AVMRegressor(random_state=0), True),
    "StreamModel, waiting": lambda: _stream_model(COLKRegressor(random_state=0), True, 100),
    "StreamModel, automatic": lambda: _stream_model(AutoClassifier(random_state=0), False),
    "StreamModel, automatic, of numbers": lambda: _stream_model(
        AutoRegressor(random_state=0), True
    ),
    "StreamModel with importances and novelty": lambda: _followed(
        POLKClassifier(gamma=0.7, random_state=0)
    ),
    "NoveltyDetector": lambda: NoveltyDetector(max_points=9).partial_fit(X),
    "StreamFeatures": _stream_features,
    "ConsensusNetwork": lambda: _network(ConsensusNetwork, penalty=0.2),
    "ProximityNetwork": lambda: _network(ProximityNetwork, tolerance=0.1),
    "KernelExpansion": lambda: KernelExpansion(Gaussian(1.0), X[:9], X[:9]),
}


def makers() -> dict[str, Callable[[], Any]]:
    """How a model of each kind is made: of every method that is registered, and those above."""
    kinds = [kind for method in registry.methods().values() for kind in method.estimators]
    return {kind.__name__: partial(_small, kind) for kind in kinds} | _CHOSEN


#: Files that are not read by `kernelstream.load`.
AGENT = "Agent"
CHECKPOINTS = {
    "Checkpoint": "learn rows.csv --target target --model polk --lag 2 --out learned.ks",
    "Checkpoint of numbers": "learn rows.csv --target y --model avm --warm-up 30 --out learned.ks",
    "Checkpoint, automatic": "learn rows.csv --target target --importances --anomalies "
    "--out learned.ks",
    "Checkpoint, two models": "learn rows.csv --target y --model colk --report page.html "
    "--out learned.ks",
    "Search": "tune rows.csv --target target --model polk --trials 3",
}
GO_ON = " --batch-rows 20 --checkpoint place --resume --json --quiet"


def write_models(folder: Path) -> dict[str, Path]:
    """One file of each kind; the folder is then ready for `look_at_model`."""
    files = {}
    for name, make in makers().items():
        files[name] = folder / f"{name}.ks"
        made = make()
        made.save(files[name])
        if name == "ProximityNetwork":
            files[AGENT] = folder / "Agent.ks"
            storage.write(files[AGENT], AGENT, *made.agents_[1].state())
    (folder / "rows.csv").write_bytes(FORMATS["csv"](*_columns()))
    for name, words in CHECKPOINTS.items():
        head, tail = (folder / "rows.csv").read_bytes(), b""
        head, tail = head[: len(head) // 2], head[len(head) // 2 :]
        cut = head.rfind(b"\n") + 1
        (folder / "rows.csv").write_bytes(head[:cut])  # stopped here, and gone on with later
        place = folder / _place(name)
        place.unlink(missing_ok=True)
        code, said = run_tool((words + GO_ON).split())
        if code != 0:
            raise RuntimeError(f"{words}: {said}")
        files[name] = place.rename(folder / f"{name}.ks")
        (folder / "rows.csv").write_bytes(head + tail)
    return files


def look_at_model(name: str, path: Path, sealed: bool, right: Any) -> Outcome:
    """Load a damaged file; if that works, the model must be the right one, or (where the checksum
    was put right) one that is consistent in itself."""
    try:
        if name in CHECKPOINTS:
            model, refused = _go_on(name, path)
            if refused:
                return refused
        else:
            model = kernelstream.load(path)
    except ModelFileError as error:
        named = str(path) in str(error)
        return Outcome("refused") if named else Outcome("error", f"names no file: {error}")
    if not sealed:
        same = fingerprint(model) == right[0]
        return Outcome("same") if same else Outcome("wrong", "another model was loaded")
    if width(model) > 1000:  # all that follows would take as much memory as such a model needs
        return Outcome("another")
    said = say(model)
    if problem := inconsistency(model, said, path.with_name("again.ks")):
        return Outcome("wrong", problem)
    return Outcome("same" if alike(said, right[1]) else "another")


def what_is_right(name: str, path: Path) -> Any:
    """Fingerprint and predictions of an undamaged file."""
    if name in CHECKPOINTS:
        model, refused = _go_on(name, path)
        if refused:
            raise RuntimeError(refused)
    else:
        model = kernelstream.load(path)
    right = fingerprint(model), say(model)
    if problem := inconsistency(model, right[1], path.with_name("again.ks")):
        raise RuntimeError(f"{name}: {problem}")
    return right


def fingerprint(model: Any) -> Any:
    """Equal if and only if the models are."""
    if isinstance(model, KernelExpansion):
        return repr(model.kernel), model.points.tobytes(), model.weights.tobytes()
    if isinstance(model, storage.Document):
        found = [{**trial, "score": None} for trial in model.header["trials"]]  # with its seconds
        return repr(found), [array.tobytes() for array in model.arrays.values()]
    return model.fingerprint()


def say(model: Any) -> list[np.ndarray] | None:
    """What a model says of the rows; None if it refuses to say anything of them."""
    try:
        if isinstance(model, storage.Document):  # where a search stands
            return [np.array([trial["value"] for trial in model.header["trials"]], float)]
        if isinstance(model, StreamModel):
            return _said(model, _rows_for(model), _has_classes(model.model))
        if isinstance(model, StreamFeatures):
            return [model.transform(rows(True)), model.fit_error(rows(True))]
        if isinstance(model, ConsensusNetwork | ProximityNetwork):
            return [model.agents_[name].predict(_samples(model)) for name in model.agents_]
        samples = _samples(model)
        if isinstance(model, KernelExpansion):
            return [model(samples)]
        if isinstance(model, KernelFeatures | OnlineKernelFeatures):
            return [model.transform(samples), model.inverse_fit_error(samples)]
        return _said(model, samples, _has_classes(model))
    except (*MAY_RAISE, NotFittedError):
        return None


def _said(model: Any, rows: Any, classes: bool) -> list[np.ndarray]:
    """All that a model predicts of rows."""
    said = [model.predict(rows)]
    if classes:
        said += [model.decision_function(rows), model.predict_proba(rows)]
    elif isinstance(model, NoveltyDetector):
        said += [model.decision_function(rows), model.novelty(rows)]
    elif hasattr(getattr(model, "model", model), "predict_interval"):
        said += [model.predict_interval(rows)]
    return [*said, model.novelty(rows)] if getattr(model, "detector", None) else said


def _has_classes(model: Any) -> bool:
    return hasattr(model, "classes_") and not isinstance(model, Agent)


def width(model: Any) -> int:
    """Features that a model takes, where it says so."""
    if isinstance(model, ConsensusNetwork | ProximityNetwork):
        model = next(iter(model._engine._agents.values()))
    model = model.model if isinstance(model, Agent) else model
    if isinstance(model, KernelExpansion):
        return model.points.shape[1]
    return getattr(model, "n_features_in_", 0)


def _samples(model: Any) -> Any:
    """As many features as the model takes."""
    return X if width(model) == 2 else np.resize(X, (ROWS, width(model)))


def inconsistency(model: Any, said: list[np.ndarray] | None, place: Path) -> str:
    """Why it cannot be what the package made, if anything."""
    if isinstance(model, storage.Document):
        return ""  # a search leaves numbers, and candidates that failed have none
    for part in said or ():
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            return "it predicts what is not finite"
    if not alike(said, say(model)):
        return "it does not say the same twice"
    if getattr(model, "residual_", 0.0) > WORST_RESIDUAL:
        return f"its Gram factor is off by {model.residual_:.3g}"
    if not isinstance(model, Agent):
        model.save(place)
        again = kernelstream.load(place)
        if fingerprint(again) != fingerprint(model) or not alike(say(again), said):
            return "it is another after saving"
    try:
        learn(model)
    except MAY_RAISE:
        return ""
    for part in say(model) or ():
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            return "after learning it predicts what is not finite"
    return ""


def learn(model: Any) -> None:
    """Go on with the same rows."""
    if isinstance(model, StreamModel):
        model.learn(_rows_for(model))
    elif isinstance(model, StreamFeatures):
        model.learn(rows(True))
    elif isinstance(model, KernelExpansion):
        model.compress(max_points=3)
    elif isinstance(model, ConsensusNetwork | ProximityNetwork):
        samples = _samples(model)
        agents = model.agents_
        model.partial_fit_round({n: _labelled(agents[n].model, samples) for n in agents})
    elif isinstance(model, KernelPolicyEvaluation):
        samples = _samples(model)
        model.partial_fit(samples, NUMBERS[: samples.shape[0]], samples)
    elif isinstance(model, OnlineKernelFeatures | NoveltyDetector):
        model.partial_fit(_samples(model))
    elif not isinstance(model, KernelFeatures | Agent):
        model.partial_fit(*_labelled(model, _samples(model)))


def _labelled(model: Any, samples: Any) -> tuple[Any, Any]:
    count = samples.shape[0]
    if hasattr(model, "classes_"):
        return samples, np.resize(model.classes_, count)
    vectors = np.ndim(model.predict(samples[:1])) == 2
    return samples, np.stack([NUMBERS, X[:, 1]], axis=1)[:count] if vectors else NUMBERS[:count]


def alike(one: list[np.ndarray] | None, two: list[np.ndarray] | None) -> bool:
    """Whether the same was said."""
    if one is None or two is None:
        return one is two
    return len(one) == len(two) and all(map(np.array_equal, one, two))


def _place(name: str) -> Path:
    """Where a run or a search looks for what it goes on from."""
    return Path("place", "tuning.ks" if name == "Search" else "checkpoint.ks")


def _go_on(name: str, path: Path) -> tuple[Any, Outcome | None]:
    """The model that a run from a checkpoint ends in, or how it was refused."""
    place = _place(name)
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(path.read_bytes())
    outcome = run((CHECKPOINTS[name] + GO_ON).split(), "place")
    if outcome.what == "unnamed":  # it was believed at first: the rows are named, if anything
        outcome = Outcome("refused", outcome.detail)
    if outcome.what != "read":
        return None, outcome
    return storage.read(place) if name == "Search" else kernelstream.load("learned.ks"), None


# ---- the tool -------------------------------------------------------------------------


def run(words: list[str], file: str, stdin: Path | None = None) -> Outcome:
    """Run a command that reads a file which may be damaged."""
    try:
        code, said = run_tool(words, stdin)
    except Exception as error:  # what a user would see as a traceback
        return Outcome("error", f"{type(error).__name__}: {error}")
    if code == 0:
        return Outcome("read")
    last = said.strip().splitlines()[-1:] or [""]
    if code != 2 or not last[0].startswith("kernelstream: ") or "Traceback" in said:
        return Outcome("error", f"exit code {code}: {said[-300:]}")
    return Outcome("refused" if file in said else "unnamed", last[0])


def run_tool(words: list[str], stdin: Path | None = None) -> tuple[int, str]:
    """Exit code and standard error of a command, run in this process."""
    before = sys.argv, sys.stdin
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    sys.argv = ["kernelstream", *words]
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.ExitStack() as stack,
        ):
            if stdin is not None:
                sys.stdin = stack.enter_context(stdin.open())
            tool()
    except SystemExit as ended:
        return int(ended.code or 0), err.getvalue()
    finally:
        sys.argv, sys.stdin = before
    return 0, err.getvalue()


# ---- files of rows --------------------------------------------------------------------


def _columns() -> tuple[dict[str, Any], Any, Any]:
    """The rows as named columns, and as a matrix with its target."""
    table = {
        "x": [None if i % 9 == 0 else float(value) for i, value in enumerate(X[:, 0])],
        "y": X[:, 1].tolist(), "z": X[::-1, 0].tolist(), "city": CITIES.tolist(),
        "day": DAYS.astype(str).tolist(), "target": LABELS.tolist(),
    }  # fmt: skip
    return table, X, np.digitize(NUMBERS, [-0.4, 0.4]).astype(float)


def _delimited(mark: str) -> Callable[..., bytes]:
    def write(table: dict[str, Any], *_: Any) -> bytes:
        out = pa.BufferOutputStream()
        pyarrow.csv.write_csv(pa.table(table), out, pyarrow.csv.WriteOptions(delimiter=mark))
        return bytes(out.getvalue())

    return write


def _typed(table: dict[str, Any]) -> pa.Table:
    city = pa.array(table["city"]).dictionary_encode()
    return pa.table({**table, "day": pa.array(DAYS), "city": city})


def _parquet(table: dict[str, Any], *_: Any) -> bytes:
    out = pa.BufferOutputStream()
    pyarrow.parquet.write_table(_typed(table), out, row_group_size=25)
    return bytes(out.getvalue())


def _arrow(make: Any) -> Callable[..., bytes]:
    def write(table: dict[str, Any], *_: Any) -> bytes:
        out, made = pa.BufferOutputStream(), _typed(table)
        with make(out, made.schema) as writer:
            writer.write_table(made, max_chunksize=25)
        return bytes(out.getvalue())

    return write


def _feather(table: dict[str, Any], *_: Any) -> bytes:
    out = io.BytesIO()
    pyarrow.feather.write_feather(_typed(table), out)
    return out.getvalue()


def _libsvm(table: Any, matrix: Any, target: Any) -> bytes:
    out = io.BytesIO()
    dump_svmlight_file(matrix, target, out, zero_based=False)
    return out.getvalue()


def _npz(table: Any, matrix: Any, target: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, X=matrix, y=target)
    return out.getvalue()


FORMATS: dict[str, Callable[..., bytes]] = {
    "csv": _delimited(","),
    "tsv": _delimited("\t"),
    "csv.gz": lambda *parts: gzip.compress(FORMATS["csv"](*parts), mtime=0),
    "libsvm": _libsvm,
    "libsvm.gz": lambda *parts: gzip.compress(_libsvm(*parts), mtime=0),
    "parquet": _parquet,
    "arrow": _arrow(pa.ipc.new_file),
    "arrow stream": _arrow(pa.ipc.new_stream),
    "feather": _feather,
    "npz": _npz,
}
#: Formats that a pipe may carry.
PIPED = ("csv", "csv.gz", "libsvm")
#: FILE is the damaged file, MODEL a model of the same rows undamaged.
COMMANDS = (
    "learn FILE --model polk --eta0 1 --compression-error 0.2 --out learned.ks --quiet",
    "learn FILE --model krlst --on-bad skip --batch-rows 20 --json --quiet",
    "learn FILE --on-bad quarantine --quarantine aside.csv --batch-rows 7 --model avm --quiet",
    "predict MODEL FILE --out predictions.csv",
    "predict MODEL FILE --on-bad skip --scores --probabilities --novelty --out predictions.csv",
    "evaluate MODEL FILE --on-bad skip",
    "features FILE --target target --n-components 3 --out table.csv --on-bad skip --quiet",
    "diameter FILE --deltas 1,2 --on-bad skip",
    "datasets convert FILE --out converted.csv",
    "datasets convert FILE --on-bad skip --out converted.parquet",
    "learn FILE --on-bad skip --importances --anomalies --batch-rows 20 --report page.html --quiet",
    "predict MODEL FILE --on-bad skip --explain --out predictions.csv",
    "compare FILE --models polk,rbp,bpa-s --on-bad skip --json --quiet",
    "tune FILE --model polk --trials 3 --on-bad skip --json --quiet",
    "learn FILE --out learned.ks --json --quiet",
    "policy FILE --reward y --drop x --drop city --drop day --drop target --on-bad skip",
)
#: Formats without names of columns, which the last command needs.
_UNNAMED = ("libsvm", "libsvm.gz", "npz")


def suffix(name: str) -> str:
    """How a file of a format ends."""
    return name.replace(" stream", "")


def write_rows(folder: Path) -> dict[str, Path]:
    """One file of each format, and a model that learned it."""
    files = {}
    for name, make in FORMATS.items():
        files[name] = folder / f"{name}.{suffix(name)}"
        files[name].write_bytes(make(*_columns()))
        words = ["learn", str(files[name]), "--quiet", "--anomalies", "--out", f"{name}.model"]
        code, said = run_tool(words)
        if code != 0:
            raise RuntimeError(f"{name}: {said}")
    return files


def read_rows(name: str, path: Path, command: int, piped: bool) -> Outcome:
    """Run a command over a damaged file."""
    known = COMMANDS[:-1] if name in _UNNAMED else COMMANDS
    words = known[command % len(known)].split()
    piped = piped and name in PIPED
    if name == "libsvm" and piped:
        words += ["--format", "libsvm"]
        if words[0] not in ("predict", "evaluate"):
            words += ["--n-features", "2"]
    meant = {"FILE": "-" if piped else str(path), "MODEL": f"{name}.model"}
    words = [meant.get(word, word) for word in words]
    return run(words, "standard input" if piped else str(path), path if piped else None)


@contextlib.contextmanager
def strictly() -> Any:
    """Warnings are errors, but those about caps."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CapWarning)
        yield
