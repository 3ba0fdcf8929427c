"""The parameters of methods as options of the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kernelstream import registry
from kernelstream.cli.errors import UserError, not_accepted
from kernelstream.cli.spelling import as_option, option
from kernelstream.parameters import Instance, Words, parameters_of
from kernelstream.registry import Method
from kernelstream.runs import _methods as runs
from kernelstream.runs._methods import DEFAULTS, estimator_class, value_of

#: What ``--model`` accepts.
METHODS: Mapping[str, Method] = registry.models()

#: Set by the tool itself: one pass over the stream, in its order.
NOT_OPTIONS = {"n_epochs", "shuffle"}

#: A word of the estimators that the tool refuses.
REFUSED = "scale"

#: Numbers that may be typed in other ways too.
_EXAMPLES = {"max_bytes": " such as 65536, 64K or 2M"}

#: The tool's gamma in every method: ``Preparation.suggested_gamma``.
GAMMA = "1 / inputs; of LIBSVM rows 1 / their mean squared norm"


def make_estimator(method: str, task: str, given: Mapping[str, str], **defaults: Any) -> Any:
    """An estimator with the parameters given on the command line.

    ``defaults`` take the place of the estimator's own where nothing is given.
    """
    kind = estimator_class(method, task, as_option)
    known = _parameters(kind)
    for name, text in given.items():
        if name not in known:
            raise UserError(
                f"{method} has no option {option(name)}", f"it has: {', '.join(map(option, known))}"
            )
        check_value(kind, name, text)
    values = {name: value_of(text) for name, text in given.items()}
    model = runs.make_estimator(method, task, values, **defaults)
    with refusing_parameters(f"learn --help ({method})"):
        model._check_parameters(fresh=True)
    return model


@contextmanager
def refusing_parameters(page: str) -> Iterator[None]:
    """Within, what is wrong with parameters is said with the page of the help to look at."""
    try:
        yield
    except (ValueError, TypeError) as error:
        problem = " ".join(str(error).split()).rstrip(".")
        raise UserError(problem, f"see kernelstream {page}") from error


def method_options(*only: str) -> dict[str, str]:
    """Every parameter of any of these methods, by default of all: what it does, its defaults."""
    chosen = [METHODS[name] for name in only or METHODS]
    options: dict[str, str] = {}
    for name in dict.fromkeys(name for method in chosen for name in _names(method)):
        holders = [method for method in chosen if name in _names(method)]
        defaults = _defaults(holders, name)
        options[name] = f"{_text(holders, name)} \\[{GAMMA if name == 'gamma' else defaults}]"
    return options


def parameter_options(
    kind: type[Any], defaults: Mapping[str, Any], without: Sequence[str] = ()
) -> dict[str, str]:
    """The parameters of one estimator: what they do, and what is taken where nothing is given."""
    return {
        name: f"{_summary(kind, name)} \\[{shown}]".replace("None", "none")
        for name, parameter in parameters_of(kind).items()
        if name not in without
        for shown in [GAMMA if name == "gamma" else defaults.get(name, parameter.default)]
    }


def _summary(kind: type[Any], name: str) -> str:
    """What a parameter does, and its words where that does not name them."""
    parameter = parameters_of(kind)[name]
    text = parameter.summary.replace("``", "")
    for rule in parameter.constraints:
        words = [word for word in rule.options if word != REFUSED]
        if isinstance(rule, Words) and len(words) > 1 and not all(word in text for word in words):
            text = f"{text} One of: {', '.join(words)}."
        if isinstance(rule, Instance) and rule.typed:
            text = f"{text} Or {rule.typed}."
    return text


def _text(holders: list[Method], name: str) -> str:
    """What a parameter does; where methods differ, in each of them."""
    methods: dict[str, list[str]] = {}
    for method in holders:
        texts = dict.fromkeys(
            _summary(kind, name) for kind in method.estimators if name in parameters_of(kind)
        )
        methods.setdefault(" Of numbers: ".join(texts), []).append(method.name)
    if len(methods) == 1:
        return next(iter(methods))
    return " ".join(f"{', '.join(names)}: {text}" for text, names in methods.items())


def _defaults(holders: list[Method], name: str) -> str:
    """What is taken where nothing is given, method by method; equal ones together."""
    methods: dict[str, list[str]] = {}
    for method in holders:
        methods.setdefault(_default(method, name), []).append(method.name)
    return "; ".join(f"{', '.join(names)}: {default}" for default, names in methods.items())


def _default(method: Method, name: str) -> str:
    """The default of a parameter, also where classes and numbers have different ones."""
    if name in DEFAULTS:
        return str(DEFAULTS[name])
    known = [parameters_of(kind) for kind in method.estimators]
    defaults = dict.fromkeys(each[name].default for each in known if name in each)
    if len(defaults) == 1:
        return str(next(iter(defaults))).lower()
    return ", of numbers ".join(map(str, defaults))


def check_value(estimator: type[Any], name: str, given: str) -> None:
    """Refuse what the parameter does not accept, in words of the tool."""
    parameter = parameters_of(estimator)[name]
    if given == REFUSED and parameter.accepts(given):
        raise UserError(
            f"{option(name)} {given} depends on how the stream is cut",
            f"give a number, or leave it out ({GAMMA})",
        )
    if parameter.accepts(value_of(given)):
        return
    rules = parameter.constraints
    options = (sorted(each.options) if isinstance(each, Words) else each.options for each in rules)
    words = [word for some in options for word in some if word != REFUSED]
    numbers = [rule.typed + _EXAMPLES.get(name, "") for rule in rules if rule.typed]
    needed = next((rule.needed for rule in rules if rule.needed), "")
    raise not_accepted(option(name), given, words, numbers, needed)


def _names(method: Method) -> list[str]:
    return list(dict.fromkeys(name for kind in method.estimators for name in _parameters(kind)))


def _parameters(estimator: type[Any]) -> list[str]:
    return [name for name in parameters_of(estimator) if name not in NOT_OPTIONS]
