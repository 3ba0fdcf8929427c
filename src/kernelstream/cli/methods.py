"""Methods by name, and their parameters as options of the command line."""

from __future__ import annotations

import inspect
import re
from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions, make_constraint

from kernelstream import models
from kernelstream.cli.errors import UserError, not_accepted
from kernelstream.kernels import make_kernel
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES

#: What ``--model`` accepts: the classifier and the regressor of each method.
METHODS: dict[str, tuple[type[Any], type[Any]]] = {
    "polk": (models.POLKClassifier, models.POLKRegressor),
    "avm": (models.AVMClassifier, models.AVMRegressor),
    "colk": (models.COLKClassifier, models.COLKRegressor),
}

#: What to change first in a method that does badly.
TO_TRY = {"polk": ("gamma", "eta0"), "avm": ("gamma", "alpha", "delta"), "colk": ("gamma", "eta0")}

#: Options that mean something else in each method.
OF_EACH = {"average", "beta"}

#: Set by the tool itself: one pass over the stream, in its order.
NOT_OPTIONS = {"n_epochs", "shuffle"}

#: Words of the estimators that the tool refuses.
REFUSED = {"scale"}

#: How the values of some rules are typed.
_WORDS = {"boolean": ["true", "false"], None: ["none"]}

#: Numbers that may be typed in other ways too.
_EXAMPLES = {"max_bytes": " such as 65536, 64K or 2M"}

#: Defaults of the tool where they differ from the estimators'. A step costs the square of the
#: points, and a stream is long; the same command gives the same model.
DEFAULTS = {"max_points": 300, "random_state": 0}

#: The tool's gamma in every method: ``Preparation.suggested_gamma``.
GAMMA = "1 / inputs; of LIBSVM rows 1 / their mean squared norm"

#: What the help adds to the docstring's first sentence.
_MORE = {
    "coverage": " hypersphere: balls, delta across; hyperrectangle: boxes with sides of 2 delta / "
    "sqrt(features).",
    "max_points": " In Python 1000 by default; fewer here, since a stream is long and more points "
    "make every step slower.",
}


def estimator_class(method: str, task: str) -> type[Any]:
    """The estimator of a method for a task."""
    if method not in METHODS:
        raise not_accepted("--model", method, list(METHODS))
    return METHODS[method][task == "regression"]


def make_estimator(method: str, task: str, given: dict[str, str | None], **defaults: Any) -> Any:
    """An estimator with the parameters given on the command line.

    ``defaults`` take the place of the estimator's own where nothing is given.
    """
    estimator = estimator_class(method, task)
    known = _parameters(estimator)
    settings = {k: v for k, v in {**DEFAULTS, **defaults}.items() if k in known}
    for name, text in given.items():
        if text is None:
            continue
        if name not in known:
            raise UserError(f"{method} has no option --{name.replace('_', '-')}",
                            f"it has: {', '.join(option(name) for name in known)}")  # fmt: skip
        settings[name] = value_of(text)
        check_value(estimator, name, text)
    if settings.get("gamma") == "scale":
        raise UserError("--gamma scale depends on how the stream is cut",
                        f"give a number, or leave it out ({GAMMA})")  # fmt: skip
    model = estimator(**settings)
    try:
        model._check_parameters(anew=True)
    except (ValueError, TypeError) as error:
        problem = " ".join(str(error).split()).rstrip(".")
        raise UserError(problem, f"see kernelstream learn --help ({method})") from error
    return model


def method_options(*only: str) -> dict[str, str]:
    """Every parameter of any of these methods, by default of all: what it does, its defaults."""
    methods = {name: METHODS[name] for name in only or METHODS}
    options: dict[str, str] = {}
    for name in dict.fromkeys(name for pair in methods.values() for name in _parameters(pair[0])):
        holders = {method: pair for method, pair in methods.items() if name in _parameters(pair[0])}
        if name == "loss":
            text = (
                f"{', '.join(CLASSIFICATION_LOSSES)}; of numbers: {', '.join(REGRESSION_LOSSES)}."
            )
        elif name in OF_EACH:
            text = _of_each(holders, name)
        else:
            text = _description(next(iter(holders.values()))[0], name) + _MORE.get(name, "")
        defaults = "; ".join(_default(*item, name) for item in holders.items())
        options[name] = f"{text} \\[{GAMMA if name == 'gamma' else defaults}]"
    return options


def _of_each(holders: dict[str, tuple[type[Any], type[Any]]], name: str) -> str:
    """What a parameter does in each method, once for methods that say the same."""
    methods: dict[str, list[str]] = {}
    for method, pair in holders.items():
        methods.setdefault(_description(pair[0], name), []).append(method)
    return " ".join(f"{', '.join(names)}: {text}" for text, names in methods.items())


def _default(method: str, pair: tuple[type[Any], type[Any]], name: str) -> str:
    """The default of a parameter, also where classes and numbers have different ones."""
    if name in DEFAULTS:
        return f"{method}: {DEFAULTS[name]}"
    classes, numbers = (inspect.signature(kind).parameters[name].default for kind in pair)
    if classes == numbers:
        return f"{method}: {classes}".lower()
    return f"{method}: {classes}, of numbers {numbers}"


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


def check_value(estimator: type[Any], name: str, given: Any) -> None:
    """Refuse what the estimator's table of parameters does not have, in words of the tool."""
    rules = estimator._parameter_constraints[name]
    value = value_of(given) if isinstance(given, str) else given
    if any(make_constraint(rule).is_satisfied_by(value) for rule in rules):
        return
    words: list[str] = []
    numbers: list[str] = []
    for rule in rules:  # those for objects are left out: nobody can type one
        if isinstance(rule, StrOptions):
            words += sorted(_accepted(estimator, name, rule.options - REFUSED))
        elif isinstance(rule, Interval):
            numbers.append(_range(rule) + _EXAMPLES.get(name, ""))
        elif rule == "random_state":
            numbers.append("a whole number")
        elif rule in _WORDS:
            words += _WORDS[rule]
    raise not_accepted(option(name), given, words if isinstance(given, str) else [], numbers)


def _accepted(estimator: type[Any], name: str, words: set[str]) -> set[str]:
    """Of the words of a parameter those that suit the estimator: cells need isotropic kernels."""
    if name == "kernel" and estimator.has_cells:
        return {word for word in words if make_kernel(word, 1.0, 3, 1.0).isotropic}
    return words


def _range(rule: Interval) -> str:
    """An interval in words.

    >>> _range(Interval(Integral, 1, 64, closed="both"))
    'a whole number of at least 1 and at most 64'
    """
    bounds = []
    if rule.left is not None:
        least = "of at least" if rule.closed in ("left", "both") else "above"
        bounds.append(f"{least} {rule.left:.10g}")
    if rule.right is not None:
        most = "at most" if rule.closed in ("right", "both") else "below"
        bounds.append(f"{most} {rule.right:.10g}")
    return f"a {'whole ' * (rule.type is Integral)}number {' and '.join(bounds)}"


def _parameters(estimator: type[Any]) -> list[str]:
    names = list(inspect.signature(estimator).parameters)
    return [name for name in names if name not in NOT_OPTIONS]


def _description(estimator: type[Any], name: str) -> str:
    """The parameter's first sentence, from the docstring."""
    text = inspect.cleandoc(estimator.__doc__ or "")
    match = re.search(
        rf"^(?:\w+, )*{name}(?:, \w+)* : (.*)\n((?:    .*\n|\n)*)", text, re.MULTILINE
    )
    if not match:
        return ""
    body = " ".join(match[2].split()).replace("``", "")
    body = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", body)  # what Sphinx would make a link
    sentence = re.split(r"(?<=[.;])\s", body, maxsplit=1)[0].rstrip(";")
    return sentence or match[1]
