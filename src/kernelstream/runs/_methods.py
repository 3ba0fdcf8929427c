"""Methods by name, as runs and the command line take them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier

from kernelstream import registry
from kernelstream.models._files import _plain
from kernelstream.parameters import parameters_of
from kernelstream.registry import Method
from kernelstream.runs._reading import RunError, Spelling, in_python
from kernelstream.schedules import Parsimony
from kernelstream.targets import as_given, names_of

#: Parameters of methods by name where they differ from the estimators' defaults: the same run gives
#: the same model.
DEFAULTS = {"random_state": 0}


def method_of(model: Any) -> Method | None:
    """The method of a name or an estimator; None for an estimator that belongs to no method."""
    if not isinstance(model, str):
        return registry.method_of(type(model))
    known = registry.models()
    if model not in known:
        raise ValueError(f"model must be an estimator or one of {', '.join(known)}: {model!r}")
    return known[model]


def estimator_class(method: str, task: str, spelling: Spelling = in_python) -> type[Any]:
    """The estimator of a method for a task."""
    found = _kind(registry.models()[method], task)
    if found is None:
        able = ", ".join(name for name, other in registry.models().items() if _kind(other, task))
        cure = f"take another {spelling('model')} ({able})"
        if task == "regression":
            cure += f", or {spelling('task', 'classification')} if the target's values are classes"
        raise RunError(f"{spelling('model', method)} does not learn {task}", cure)
    return found


def make_estimator(method: str, task: str, parameters: Mapping[str, Any], **defaults: Any) -> Any:
    """The estimator of a method for a task; ``defaults`` count where nothing is given."""
    kind = estimator_class(method, task)
    known = parameters_of(kind)
    usual = {name: value for name, value in {**DEFAULTS, **defaults}.items() if name in known}
    return kind(**{**usual, **parameters})


def without_risk(method: Method, estimator: Any) -> Any:
    """The same without risk, with the settings that the two share."""
    task = "classification" if is_classifier(estimator) else "regression"
    kind = estimator_class(method.without_risk, task)
    known = parameters_of(kind)
    return kind(**{name: v for name, v in estimator.get_params().items() if name in known})


def _kind(method: Method, task: str) -> type[Any] | None:
    return method.regressor if task == "regression" else method.classifier


def compile_for(estimator: Any) -> None:
    """Load or make the machine code that an estimator needs, before any time is measured."""
    estimator = clone(estimator)
    # Instead of looking at many samples first; and one feature needs other memory.
    given = {"gamma": 1.0, "delta": 1.0, "max_bytes": None}
    known = estimator.get_params()
    estimator.set_params(**{name: value for name, value in given.items() if name in known})
    X, y = np.zeros((2, 1)), np.array([0.0, 1.0])
    for features in (X, csr_array(X)):
        fresh = clone(estimator).partial_fit(features, y)
        fresh.predict_then_learn(features, y)
        fresh.predict(features)


# ---- values -----------------------------------------------------------------------------


def value_of(text: str) -> Any:
    """A parameter's value as it was meant: a number, true or false, none, a word, or Parsimony.

    >>> value_of("1e-3"), value_of("64K"), value_of("none"), value_of("hinge")
    (0.001, 65536, None, 'hinge')
    >>> value_of("yes=3,no=1"), value_of("0=1,1=2.5")
    ({'yes': 3, 'no': 1}, {0: 1, 1: 2.5})
    >>> value_of("parsimony:0.04")
    Parsimony(factor=0.04, power=1.5)
    """
    lowered = text.strip().lower()
    words = {"true": True, "false": False, "yes": True, "no": False, "none": None}
    if lowered in words:
        return words[lowered]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if "=" in text:  # classes and their weights
        pairs = [pair.rpartition("=") for pair in text.split(",")]
        return {_label(label.strip()): value_of(weight) for label, _, weight in pairs}
    if match := re.fullmatch(r"([0-9.]+)\s*([kmg])i?b?", lowered):  # 64M, 1.5GiB
        return int(float(match[1]) * 1024 ** ("kmg".index(match[2]) + 1))
    return Parsimony.from_text(text) or text


def _label(text: str) -> Any:
    """A class as it was meant."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        return text


def as_stored(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as checkpoints hold and compare them: the values, typed or given in Python.

    None is "none" there: in the checkpoints of version 0.1 it stood for what was not given.

    >>> as_stored({"eta0": ".5", "slack": 0}) == as_stored({"eta0": 0.5, "slack": "0"})
    True
    """
    values = {k: _plain(value_of(v) if isinstance(v, str) else v) for k, v in parameters.items()}
    return {name: "none" if value is None else value for name, value in values.items()}


def check_several(estimator: Any, targets: list[str], spelling: Spelling) -> None:
    """Refuse several targets for an estimator that learns one."""
    if len(targets) == 1 or getattr(estimator, "_several", False):
        return
    able = [
        name
        for name, method in registry.models().items()
        if getattr(method.regressor, "_several", False)
    ]
    raise RunError(
        f"{type(estimator).__name__} learns one target, not {len(targets)}",
        f"take {spelling('model', 'krlst')} or another of {', '.join(able)}, for numbers; or learn "
        "each target in a run of its own",
    )


def check_like(like: Any, settings: Mapping[str, Any], spelling: Spelling) -> None:
    """Refuse to prepare rows as a model of something else does."""
    targets, task = names_of(settings["target"]), settings["task"] or like.task
    if (targets, task) != (like.targets, like.task):
        raise RunError(
            f"{settings['like']} predicts {like.target!r} ({like.task})",
            f"give {spelling('target', as_given(like.targets))} and {spelling('task', like.task)}, "
            f"or another model to {spelling('like')}",
        )
    if not like.preparation.inputs:
        raise RunError(
            f"{settings['like']} was learned from earlier targets alone",
            f"give another model to {spelling('like')}",
        )


def refuse_like(estimator: Any, spelling: Spelling) -> NoReturn:
    """Of a method whose models cannot be merged."""
    raise RunError(
        f"{spelling('like')} is for models that are to be merged: {type(estimator).__name__} "
        "cannot be",
        f"leave it out, or take {spelling('model', 'polk')}",
    )
