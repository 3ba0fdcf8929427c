"""Programs that predict, then learn: ours and others, with their defaults.

Each takes a stream and returns its predictions: (n,) numbers, (n, classes) probabilities, or (n,)
labels where it has no probabilities. Rows at the beginning that are not to be scored are NaN.
"""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from benchmarks.auto_streams import Stream
from kernelstream import POLKClassifier, POLKRegressor, registry, tune
from kernelstream.core.units import ColumnUnits, moving_units
from kernelstream.errors import CapWarning
from kernelstream.evaluation.programs import CapyMOAProgram, RiverProgram
from kernelstream.evaluation.programs import Program as ProgramOfOthers
from kernelstream.evaluation.programs.capymoa import numeric_schema

FEATURES, WARM_UP, CHUNK = 400, 1000, 100  # of Nystroem + SGD
#: River and CapyMOA see so many rows.
PEER_ROWS = 10_000


class Program(NamedTuple):
    """A learner; ``classes`` or ``numbers`` is None where it has no such form."""

    name: str
    classes: Callable[[Stream], Any] | None
    numbers: Callable[[Stream], Any] | None
    rows: int | None = None  # at most

    def runner(self, numbers: bool) -> Callable[[Stream], Any] | None:
        """For the kind of target."""
        return self.numbers if numbers else self.classes


# ---- ours -------------------------------------------------------------------------------------


def _ours(estimator: Callable[..., Any], moving: bool, stream: Stream) -> Any:
    """A model of this package; ``moving``: of rows and targets in units that move."""
    model = estimator(random_state=0)
    X, y = in_units(stream.X) if moving else stream.X, stream.y
    with warnings.catch_warnings(category=CapWarning, action="ignore"):
        if not stream.numbers:
            values = model.decide_then_learn(X, y, classes=stream.classes)
            if not hasattr(model, "predict_proba"):
                return values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(int)
            if values.ndim == 2:
                return softmax(values, axis=1)
            return np.column_stack([expit(-values), expit(values)])
        if not moving:
            return model.predict_then_learn(X, y)
        center, scale = target_units(y)
        return center + scale * model.predict_then_learn(
            X, np.clip((y - center) / scale, -10.0, 10.0)
        )


def in_units(X: Any) -> Any:
    """Columns in units of the rows so far, as the automatic model measures them."""
    units, out = ColumnUnits(*np.zeros((len(ColumnUnits._fields), X.shape[1]))), np.empty_like(X)
    moving_units(units, X, True, out)
    return out


def target_units(y: Any) -> tuple[Any, Any]:
    """Mean and deviation of the targets before each, as the automatic model follows them."""
    center, scale = np.zeros(len(y)), np.ones(len(y))
    mean = variance = 0.0
    for t, value in enumerate(y.tolist()):
        if variance > 0.0:
            scale[t] = np.sqrt(variance)
        center[t] = mean
        rate = max(1.0 / (t + 1), 1.0 / 4000.0)
        apart = value - mean
        mean += rate * apart
        variance = (1.0 - rate) * (variance + rate * apart * apart)
    return center, scale


def _registered(name: str, method: str, moving: bool, rows: int | None = None) -> list[Program]:
    found = registry.methods().get(method)
    if found is None:
        return []
    kinds = (found.classifier, found.regressor)
    forms = [k and (lambda stream, k=k: _ours(k, moving, stream)) for k in kinds]
    return [Program(name, *forms, rows)]


def _tuned_polk(stream: Stream) -> Any:
    """POLK with the best of 27 candidates for its parameters on these very rows: `tune`."""
    task, metric = ("regression", "rmse") if stream.numbers else ("classification", "accuracy")
    source = stream.X, stream.y
    with warnings.catch_warnings(category=CapWarning, action="ignore"):
        found = tune(source, model="polk", task=task, metric=metric, rows=max(2, len(stream.y)))
    kind = POLKRegressor if stream.numbers else POLKClassifier
    return _ours(partial(kind, **found.parameters), True, stream)


def _no_change(stream: Stream) -> Any:
    """The last label or value again."""
    return np.concatenate([[np.nan], stream.y[:-1]])


# ---- scikit-learn -----------------------------------------------------------------------------


def _nystroem(stream: Stream) -> Any:
    """A map fitted on the first rows, which are not scored; then chunks, in units that move."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    X, y, classes = in_units(stream.X), stream.y, stream.classes
    warm_up = min(WARM_UP, len(y) // 2)
    features = Nystroem(n_components=min(FEATURES, warm_up), random_state=0).fit(X[:warm_up])
    if stream.numbers:
        center, scale = y[:warm_up].mean(), y[:warm_up].std() or 1.0
        model, known = SGDRegressor(average=True, random_state=0), {}
        y, out = (y - center) / scale, np.full(len(y), np.nan)
    else:
        model = SGDClassifier("log_loss", average=True, random_state=0)
        known, out = {"classes": classes}, np.full((len(y), len(classes)), np.nan)
    model.partial_fit(features.transform(X[:warm_up]), y[:warm_up], **known)
    for start in range(warm_up, len(y), CHUNK):
        part = slice(start, start + CHUNK)
        mapped = features.transform(X[part])
        if stream.numbers:
            out[part] = center + scale * model.predict(mapped)
        else:
            out[part] = model.predict_proba(mapped)
        model.partial_fit(mapped, y[part])
    return out


# ---- River ------------------------------------------------------------------------------------


def _river(make: Callable[[bool], Any], stream: Stream) -> Any:
    model = make(len(stream.classes) > 2)
    return _one_by_one(RiverProgram(model, classification=not stream.numbers), stream)


def _one_by_one(program: ProgramOfOthers, stream: Stream) -> Any:
    """Numbers, or votes, of a program that is asked about each row and then taught it."""
    classes = 0 if stream.numbers else len(stream.classes)
    out = np.zeros(len(stream.y) if stream.numbers else (len(stream.y), classes))
    rows = program.rows(stream.X, stream.y)
    for t, (row, target) in enumerate(zip(rows, stream.y.tolist(), strict=True)):
        answer = program.predict(row, classes)
        out[t] = answer if stream.numbers else answer[1][:classes]
        program.learn(row, target)
    return out


def _river_programs() -> list[Program]:
    """Scaled where it helps: neighbours, linear models, and trees with such models in leaves."""
    if importlib.util.find_spec("river") is None:
        print("River is left out: it is not installed (pip install '.[peers]').")
        return []
    from river import forest, linear_model, multiclass, neighbors, preprocessing, tree

    def scaled(model: Any) -> Any:
        return preprocessing.StandardScaler() | model

    def logistic(many: bool) -> Any:
        model = linear_model.LogisticRegression()
        return scaled(multiclass.OneVsRestClassifier(model) if many else model)

    def all_scaled(model: Any) -> Any:
        return scaled(preprocessing.TargetStandardScaler(model))

    pairs: dict[str, tuple[Callable[[bool], Any], Callable[[bool], Any]]] = {
        "ARF": (
            lambda _: forest.ARFClassifier(seed=0),
            lambda _: all_scaled(forest.ARFRegressor(seed=0)),
        ),
        "HAT": (
            lambda _: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
            lambda _: all_scaled(tree.HoeffdingAdaptiveTreeRegressor(seed=0)),
        ),
        "kNN": (
            lambda _: scaled(neighbors.KNNClassifier()),
            lambda _: scaled(neighbors.KNNRegressor()),
        ),
        "linear": (logistic, lambda _: all_scaled(linear_model.LinearRegression())),
    }

    def form(make: Callable[[bool], Any]) -> Callable[[Stream], Any]:
        return lambda stream: _river(make, stream)

    return [
        Program(f"River {name}", form(classifier), form(regressor), PEER_ROWS)
        for name, (classifier, regressor) in pairs.items()
    ]


# ---- CapyMOA ----------------------------------------------------------------------------------

CAPYMOA = {
    "HAT": "HoeffdingAdaptiveTree", "kNN": "KNN", "SAMkNN": "SAMkNN",
    "ARF(100)": "AdaptiveRandomForestClassifier", "leveraging bagging": "LeveragingBagging",
    "SRP": "StreamingRandomPatches",
}  # fmt: skip
CAPYMOA_NUMBERS = {
    "kNN": "KNNRegressor", "SOKNL": "SOKNL", "ARF(100)": "AdaptiveRandomForestRegressor"
}  # fmt: skip


def capymoa(module: str, name: str, stream: Stream, **settings: Any) -> Any:
    """A learner of CapyMOA, by the module and the name of its class."""
    kind = getattr(importlib.import_module(module), name)
    schema = numeric_schema(stream.X.shape[1], 0 if stream.numbers else len(stream.classes))
    return _one_by_one(CapyMOAProgram(kind(schema=schema, **settings)), stream)


def _capymoa_programs() -> list[Program]:
    if importlib.util.find_spec("capymoa") is None or shutil.which("java") is None:
        print("CapyMOA is left out: it needs Java and pip install '.[peers]'.")
        return []

    def form(module: str, kind: str | None) -> Callable[[Stream], Any] | None:
        return kind and (lambda s: capymoa(f"capymoa.{module}", kind, s))  # type: ignore[return-value]

    return [
        Program(
            f"CapyMOA {name}", form("classifier", CAPYMOA.get(name)),
            form("regressor", CAPYMOA_NUMBERS.get(name)), PEER_ROWS,
        )
        for name in dict.fromkeys([*CAPYMOA, *CAPYMOA_NUMBERS])
    ]  # fmt: skip


def programs() -> list[Program]:
    """All that are here, the quick ones first."""
    return [
        *_registered("automatic", "auto", False),
        *_registered("POLK", "polk", True),
        Program("POLK, tuned", _tuned_polk, _tuned_polk),
        *_registered("AVM", "avm", True),
        *_registered("KRLS-T", "krlst", True),
        Program("Nystroem + SGD", _nystroem, _nystroem),
        Program("no change", _no_change, _no_change),
        *_registered("automatic, the same rows", "auto", False, PEER_ROWS),
        *_river_programs(),
        *_capymoa_programs(),
    ]
