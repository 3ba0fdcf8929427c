"""Methods by name, and their parameters as options of the command line."""

from __future__ import annotations

import inspect
import re
from typing import Any

from kernelstream import models
from kernelstream.cli.errors import UserError

#: What ``--model`` accepts: the classifier and the regressor of each method.
METHODS: dict[str, tuple[type[Any], type[Any]]] = {
    "polk": (models.POLKClassifier, models.POLKRegressor),
    "avm": (models.AVMClassifier, models.AVMRegressor),
}

#: Set by the tool itself: one pass over the stream, in its order.
_NOT_OPTIONS = {"n_epochs", "shuffle"}


def estimator_class(method: str, task: str) -> type[Any]:
    """The estimator of a method for a task."""
    if method not in METHODS:
        raise UserError(f"no method {method!r}", f"use one of: {', '.join(METHODS)}")
    return METHODS[method][task == "regression"]


def make_estimator(method: str, task: str, given: dict[str, str | None], **defaults: Any) -> Any:
    """An estimator with the parameters given on the command line.

    ``defaults`` take the place of the estimator's own where nothing is given.
    """
    estimator = estimator_class(method, task)
    known = _parameters(estimator)
    settings = {name: value for name, value in defaults.items() if name in known}
    for name, text in given.items():
        if text is None:
            continue
        if name not in known:
            raise UserError(f"{method} has no option --{name.replace('_', '-')}",
                            f"it has: {', '.join(option(name) for name in known)}")  # fmt: skip
        settings[name] = value_of(text)
    if settings.get("gamma") == "scale":
        raise UserError("--gamma scale depends on how the stream is cut",
                        "give a number, or leave it out: 1 / inputs is taken")  # fmt: skip
    model = estimator(**settings)
    try:
        model._check_parameters(anew=True)
    except (ValueError, TypeError) as error:
        raise UserError(
            re.sub(r"\s+", " ", str(error)), f"see kernelstream learn --help ({method})"
        ) from error
    return model


def method_options() -> dict[str, str]:
    """Every parameter of any method with its one-line description."""
    options: dict[str, str] = {}
    for pair in METHODS.values():
        for estimator in pair:
            for name in _parameters(estimator):
                options.setdefault(name, _description(estimator, name))
    return options


def option(name: str) -> str:
    """A parameter as it is written on the command line."""
    return "--" + name.replace("_", "-")


def value_of(text: str) -> Any:
    """A parameter's value as it was meant: a number, true or false, none, or a word."""
    lowered = text.strip().lower()
    words = {"true": True, "false": False, "yes": True, "no": False, "none": None}
    if lowered in words:
        return words[lowered]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if match := re.fullmatch(r"([0-9.]+)\s*([kmg])i?b?", lowered):  # 64M, 1.5GiB
        return int(float(match[1]) * 1024 ** ("kmg".index(match[2]) + 1))
    return text


def _parameters(estimator: type[Any]) -> list[str]:
    names = list(inspect.signature(estimator).parameters)
    return [name for name in names if name not in _NOT_OPTIONS]


def _description(estimator: type[Any], name: str) -> str:
    """The parameter's type, default and first sentence, from the docstring."""
    text = inspect.cleandoc(estimator.__doc__ or "")
    match = re.search(
        rf"^(?:\w+, )*{name}(?:, \w+)* : (.*)\n((?:    .*\n|\n)*)", text, re.MULTILINE
    )
    if not match:
        return ""
    body = " ".join(match[2].split()).replace("``", "")
    body = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", body)  # what Sphinx would make a link
    sentence = re.split(r"(?<=[.;])\s", body, maxsplit=1)[0].rstrip(";")
    return f"{sentence} ({match[1]})" if sentence else match[1]
