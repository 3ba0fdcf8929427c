"""Programs by name: ours, River's, CapyMOA's, scikit-learn's, and rules that know no features.

``polk``, ``polk(eta0=2,loss=log_loss)``, ``river:forest.ARFClassifier(n_models=5)``,
``river:preprocessing.StandardScaler|linear_model.LogisticRegression``, ``capymoa:SAMkNN``,
``sklearn:SGDClassifier``, ``python:package.module.Class``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.base import clone

from kernelstream import registry
from kernelstream._version import __version__
from kernelstream.evaluation.learner import Learner
from kernelstream.evaluation.metrics import METRICS
from kernelstream.evaluation.programs import (
    RULES,
    CapyMOAProgram,
    OneByOne,
    PartialFitProgram,
    Program,
    RiverProgram,
    Rule,
)
from kernelstream.evaluation.programs.capymoa import numeric_schema
from kernelstream.evaluation.programs.river import final_step
from kernelstream.pipeline import StreamModel
from kernelstream.runs._methods import estimator_class, make_estimator, value_of
from kernelstream.runs._reading import RunError, Spelling
from kernelstream.streams.columns import nearest

#: Packages, and how they are installed.
_INSTALL = {
    "river": ("River", "kernelstream[river]"),
    "capymoa": ("CapyMOA", "kernelstream[capymoa]"),
}
#: Parameters that fix random numbers, in the packages' words.
_SEEDS = ("random_state", "random_seed", "seed")

#: What is compared where nothing is named: what everybody has, and is quick.
DEFAULT_PROGRAMS = {
    "classification": ("auto", "polk", "avm", "krlst", "sklearn:SGDClassifier"),
    "regression": ("auto", "polk", "avm", "krlst", "sklearn:SGDRegressor"),
}


class WrongTaskError(Exception):
    """A program for classes was given numbers, or the other way round."""


class UnusableError(RunError):
    """A program that cannot be imported or made here: it is out, and the others go on."""

    def __init__(self, program: str, problem: str, cure: str) -> None:
        super().__init__(f"{program} {problem}", cure)
        self.problem = f"{problem}; {cure}"  # without its name


@dataclass(frozen=True)
class Stream:
    """What is known of the stream before the first row is learned."""

    reader: StreamModel  # admits rows; its own model is never taught
    classes: Any  # sorted labels of the first rows; None: the target is a number
    units: tuple[float, float]  # mean and deviation of the first targets, where they are numbers
    metrics: Sequence[str]

    @property
    def task(self) -> str:
        """Of the target."""
        return self.reader.task

    @property
    def names(self) -> list[str]:
        """Of the columns as programs get them."""
        return self.reader.preparation.feature_names_out


@dataclass(frozen=True)
class Entry:
    """A program that takes part: its name, where it is from, and how it is made for a stream."""

    name: str
    package: str
    make: Callable[[Stream], Learner]


def split(text: str, at: str = ",") -> list[str]:
    """Parts of a text, cut outside parentheses.

    >>> split("polk(eta0=2,alpha=0), capymoa:SAMkNN")
    ['polk(eta0=2,alpha=0)', 'capymoa:SAMkNN']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == at and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def entries(models: Any, task: str | None, spelling: Spelling) -> list[Entry]:
    """Programs from names (a text, or a list) or models by name (a dict); checks all it can."""
    if isinstance(models, str):
        models = split(models)
    if isinstance(models, Mapping):
        found = [entry(model, task, spelling, str(name)) for name, model in models.items()]
    else:
        found = [entry(model, task, spelling) for model in models]
    names = [each.name for each in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        cure = "name each once, with parameters in parentheses where they differ"
        raise RunError(f"{spelling('models')} has {twice!r} twice", cure)
    if not found:
        raise RunError(f"{spelling('models')} is empty", "name some: auto, polk, river:...")
    return found


def entry(given: Any, task: str | None, spelling: Spelling, name: str = "") -> Entry:
    """One program."""
    if not isinstance(given, str):
        return _of_object(given, name or type(given).__name__)
    if given in RULES:
        return Entry(name or given, "rule", lambda stream: _rule(given, stream))
    package, _, path = given.partition(":")
    if not path:
        return _ours(given, task, spelling, name or given)
    makers = {
        "river": _river, "capymoa": _capymoa, "sklearn": _sklearn, "python": _python,
    }  # fmt: skip
    if package not in makers:
        cure = f"before the colon stands one of: {', '.join(makers)}"
        raise RunError(f"there are no programs of {package!r} ({given})", cure)
    try:
        return makers[package](path, given, name or given)
    except UnusableError as error:
        return Entry(name or given, package, partial(_raise, error))


def _raise(error: UnusableError, stream: Stream) -> Learner:
    raise error


def _rule(rule: str, stream: Stream) -> Learner:
    able = {"probability"} if rule == "majority" else set[str]()
    return Rule(rule, stream.task, _measurable(stream.metrics, able))


# ---- ours -------------------------------------------------------------------------------------


def _ours(given: str, task: str | None, spelling: Spelling, name: str) -> Entry:
    (method, parameters), known = _called(given), registry.models()
    if method not in known:
        near = nearest(method, [*known, *RULES])
        hint = f"did you mean {near}? " if near else ""
        raise RunError(
            f"there is no program {method!r}",
            f"{hint}take some of {', '.join(known)}, or name the package: river:{method}",
        )
    if task is not None:
        estimator_class(method, task, spelling)

    def make(stream: Stream) -> Learner:
        preparation = stream.reader.preparation
        fitting = {
            "gamma": preparation.suggested_gamma,
            "standardize": not preparation.in_moving_units,
        }
        estimator_class(method, stream.task, spelling)
        with _making(name):
            estimator = make_estimator(method, stream.task, parameters, **fitting)
            estimator._check_parameters(fresh=True)
        return _own_learner(estimator, stream)

    return Entry(name, f"kernelstream {__version__}", make)


def _own_learner(estimator: Any, stream: Stream) -> Learner:
    reader = stream.reader
    taught = StreamModel(estimator, reader.preparation, reader.target, reader.task)
    able = {"decision", "probability"} if hasattr(estimator, "predict_proba") else {"decision"}
    return Learner(taught.estimator, _measurable(stream.metrics, able))


def _one_by_one(program: Program, stream: Stream) -> Learner:
    if program.classification != (stream.task == "classification"):
        kind = "classes" if program.classification else "numbers"
        raise WrongTaskError(
            f"predicts {kind}, and {stream.reader.target!r} asks for {stream.task}"
        )
    able = {"decision", "probability"} if program.probabilities else set[str]()
    return OneByOne(program, _measurable(stream.metrics, able), stream.units)


# ---- others -----------------------------------------------------------------------------------


def _river(path: str, given: str, name: str) -> Entry:
    package = _installed("river", given)
    steps = [_called(step) for step in split(path, "|")]
    kinds = [
        (_attribute("river", step, given, [] if "." in step else _modules("river")), parameters)
        for step, parameters in steps
    ]

    def make(stream: Stream) -> Learner:
        with _making(name):
            parts = [kind(**_seeded(kind, parameters)) for kind, parameters in kinds]
            model = parts[0]
            for part in parts[1:]:
                model = model | part
        return _river_learner(model, stream)

    return Entry(name, package, make)


def _river_learner(model: Any, stream: Stream) -> Learner:
    zeros = not stream.reader.preparation.matrix_width  # rows of a table, not sparse ones
    program = RiverProgram(model, stream.names, zeros=zeros)
    if program.classification and len(stream.classes) > 2 and not final_step(model)._multiclass:
        from river import multiclass

        model = multiclass.OneVsRestClassifier(model)
        program = RiverProgram(model, stream.names, zeros=zeros)
    return _one_by_one(program, stream)


def _capymoa(path: str, given: str, name: str) -> Entry:
    if shutil.which("java") is None:
        raise UnusableError(given, "needs Java", "install a Java runtime (17 or later): java")
    package = _installed("capymoa", given)
    kind_name, parameters = _called(path)
    modules = [] if "." in kind_name else ["classifier", "regressor"]
    kind = _attribute("capymoa", kind_name, given, modules)

    def make(stream: Stream) -> Learner:
        with _making(name):
            return _capymoa_learner(kind, parameters, stream)

    return Entry(name, package, make)


def _capymoa_learner(kind: Any, parameters: Mapping[str, Any], stream: Stream) -> Learner:
    classes = 0 if stream.classes is None else len(stream.classes)
    schema = numeric_schema(len(stream.names), classes)
    model = kind(schema=schema, **_seeded(kind, parameters))
    return _one_by_one(CapyMOAProgram(model, stream.classes), stream)


def _sklearn(path: str, given: str, name: str) -> Entry:
    kind_name, parameters = _called(path)
    if "." in kind_name:
        kind = _attribute("sklearn", kind_name, given)
    else:
        from sklearn.utils import all_estimators

        able = {n: each for n, each in all_estimators() if hasattr(each, "partial_fit")}
        if kind_name not in able:
            near = nearest(kind_name, list(able))
            cure = f"did you mean sklearn:{near}?" if near else "name one with partial_fit"
            raise RunError(f"scikit-learn has no {kind_name} that learns with partial_fit", cure)
        kind = able[kind_name]
    return _of_kind(kind, parameters, name, f"scikit-learn {version('scikit-learn')}")


def _python(path: str, given: str, name: str) -> Entry:
    kind_name, parameters = _called(path)
    package = kind_name.split(".")[0]
    kind = _attribute("", kind_name, given)
    with suppress(PackageNotFoundError):  # a file that was not installed
        package = f"{package} {version(package)}"
    return _of_kind(kind, parameters, name, package)


def _of_kind(kind: Any, parameters: Mapping[str, Any], name: str, package: str) -> Entry:
    if not hasattr(kind, "partial_fit"):
        raise RunError(f"{name} has no partial_fit", "name a class that learns row by row")

    def make(stream: Stream) -> Learner:
        with _making(name):
            model = kind(**_seeded(kind, parameters))
        return _partial_fit_learner(model, stream)

    return Entry(name, package, make)


def _partial_fit_learner(model: Any, stream: Stream) -> Learner:
    program = PartialFitProgram(model, stream.classes)
    return _one_by_one(program, stream)


def _of_object(model: Any, name: str) -> Entry:
    """A model in Python: a new one of this package, of River, of CapyMOA, or with partial_fit."""
    kind = model if isinstance(model, type) else type(model)
    package = kind.__module__.split(".")[0]
    if hasattr(model, "predict_then_learn"):
        return Entry(name, package, lambda stream: _own_learner(clone(model), stream))
    if RiverProgram.takes(model):
        return Entry(name, package, lambda stream: _river_learner(model.clone(), stream))
    if package == "capymoa" and isinstance(model, type):
        return Entry(name, package, lambda stream: _capymoa_learner(model, {}, stream))
    if hasattr(model, "partial_fit"):
        return Entry(name, package, lambda stream: _partial_fit_learner(clone(model), stream))
    raise RunError(
        f"{name} is no program: {model!r:.80}",
        "give a name, an estimator with partial_fit, a model of River or a class of CapyMOA",
    )


# ---- words ------------------------------------------------------------------------------------


def _called(text: str) -> tuple[str, dict[str, Any]]:
    """A name and the parameters in parentheses after it.

    >>> _called("polk(eta0=2, loss=log_loss)")
    ('polk', {'eta0': 2, 'loss': 'log_loss'})
    """
    name, opened, rest = text.strip().partition("(")
    if not opened:
        return name, {}
    parameters = {}
    for part in split(rest.removesuffix(")")):
        key, equals, value = part.partition("=")
        if not equals or not rest.endswith(")"):
            raise RunError(f"{text} is not understood", f"write {name}(name=value,...)")
        parameters[key.strip()] = value_of(value.strip().strip("'\""))
    return name, parameters


def _attribute(package: str, path: str, given: str, modules: Sequence[str] = ()) -> Any:
    """A class by its path in a package; of ``modules`` where the path names none."""
    folder, _, name = path.rpartition(".")
    places = [f"{package}.{module}" for module in modules]
    if not modules:
        places = [".".join(part for part in (package, folder) if part)]
    known: list[str] = []
    for place in places:
        module = _module(place, given)
        if hasattr(module, name):
            return getattr(module, name)
        known += [word for word in dir(module) if word[:1].isupper()]
    near = nearest(name, known)
    cure = f"did you mean {near}?" if near else f"it has: {', '.join(known[:12])}"
    where = package if len(places) > 2 else " and ".join(places)
    raise RunError(f"{given}: {where} has no {name!r}", cure)


def _modules(package: str) -> list[str]:
    """All public modules of a package."""
    paths = importlib.import_module(package).__path__
    return [found.name for found in pkgutil.iter_modules(paths) if found.name[0] != "_"]


def _module(place: str, given: str) -> Any:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            cure = f"name a module of {place.partition('.')[0]}" if "." in place else "install it"
            raise RunError(f"{given}: {error}", cure) from None
        raise _unusable(given, "imported", "mend it, or leave it out", error) from error
    except Exception as error:  # of other packages, any
        raise _unusable(given, "imported", "mend it, or leave it out", error) from error


def _unusable(program: str, what: str, cure: str, error: Exception) -> UnusableError:
    message = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return UnusableError(program, f"cannot be {what}: {message}", cure)


def _installed(package: str, given: str) -> str:
    """Name and version, or how to get it."""
    title, install = _INSTALL[package]
    try:
        _module(package, given)
    except UnusableError:
        raise
    except RunError:
        problem = f"needs {title}, which is not installed"
        raise UnusableError(given, problem, f"pip install '{install}'") from None
    return f"{title} {version(package)}"


def _seeded(kind: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with random numbers that are the same in every run."""
    known = inspect.signature(kind).parameters
    seeds = {name: 0 for name in _SEEDS if name in known}
    return {**seeds, **parameters}


@contextmanager
def _making(name: str) -> Iterator[None]:
    """Within, what is wrong is wrong with the program's parameters."""
    try:
        yield
    except WrongTaskError:
        raise
    except Exception as error:  # of other packages, any
        raise _unusable(name, "made", "give it other parameters", error) from error


def _measurable(metrics: Sequence[str], able: Set[str]) -> list[str]:
    """The metrics that a program can be measured by, which is ``able`` to say what some need.

    Where there are none, any: it takes part, and has no value of those that were asked for.
    """
    return [name for name in metrics if METRICS[name].needs in {"", *able}] or ["accuracy"]
