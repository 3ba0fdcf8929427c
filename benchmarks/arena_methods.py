"""The methods of the arena, and the ranges in which their parameters are searched.

Methods come from the registry. A parameter that several methods share has one range for all of
them, and in each trial one value for all of them: nobody gets a finer search than the others. What
has no range here keeps its default.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernelstream import registry
from kernelstream.parameters import parameters_of

#: A number in [0, 1) and the features of a stream -> a value.
Range = Callable[[float, int], Any]


def between(low: float, high: float) -> Range:
    """From ``low`` to ``high``, every order of magnitude as likely as the others."""
    return lambda u, features: float(low * (high / low) ** u)


def per_feature(low: float, high: float) -> Range:
    """The same, divided by the number of features: squared distances grow with it."""
    return lambda u, features: float(low * (high / low) ** u / features)


def of_a_distance(low: float, high: float) -> Range:
    """The same, times the length of a row in units: a distance."""
    return lambda u, features: float(low * (high / low) ** u * np.sqrt(features))


def one_of(*values: Any) -> Range:
    """Any of these."""
    return lambda u, features: values[int(u * len(values))]


#: By the name of the parameter.
RANGES: dict[str, Range] = {
    "gamma": per_feature(1 / 16, 16.0),
    "eta0": between(0.02, 2.0),
    "alpha": between(1e-7, 1e-2),
    "average": one_of(False, True),
    "compression_error": between(1e-3, 0.5),
    "delta": of_a_distance(0.1, 2.0),
    "forget": one_of(1.0, 0.9999, 0.999, 0.99),
    "C": between(0.01, 10.0),
    "novelty": between(0.03, 0.6),
    "radius": of_a_distance(0.1, 1.0),
    "coherence": one_of(0.3, 0.5, 0.7, 0.8, 0.9, 0.95),
    "ridge": between(1e-3, 1.0),
    "rank": one_of(0.1, 0.2, 0.4, 0.8),
    "nu": one_of(0.05, 0.1, 0.2, 0.4),
    "margin": one_of(0.0, 0.25, 0.5, 0.75),
}
#: Steps of 1 / (alpha t) begin with 1 / alpha: larger values than where alpha only regularises.
_OF_STEPS = {"alpha": between(1e-5, 1e-1)}
#: By method, where a parameter of that name means something else there.
OWN: dict[str, dict[str, Range]] = {
    "avm": _OF_STEPS, "bsgd": _OF_STEPS, "npbsgd": _OF_STEPS, "pegasos": _OF_STEPS,
    "rf-sgd": _OF_STEPS, "dualsgd": _OF_STEPS,
    "krls": {"novelty": between(1e-4, 0.1)},  # a squared distance
}  # fmt: skip
#: Of the parameters with a range, those that a method leaves alone.
LEFT_ALONE: dict[str, tuple[str, ...]] = {"auto": ("forget",), "ahpatron": ("radius",)}
#: Methods that are several: what each of them is called, and its fixed parameters.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "bsgd": {f"bsgd ({p})": {"policy": p} for p in ("removal", "projection", "merging")},
    "bogd": {f"bogd ({s})": {"sampling": s} for s in ("uniform", "weighted")},
    "pa": {"pa (I)": {"variant": 1}, "pa (II)": {"variant": 2}},
}


class Contestant(NamedTuple):
    """A method with a form for the targets of a stream."""

    method: str  # as the registry has it
    kind: type
    fixed: dict[str, Any]  # parameters that make it what it is
    title: str


def contestants(numbers: bool) -> dict[str, Contestant]:
    """Methods with a form for such targets, by name."""
    found: dict[str, Contestant] = {}
    for name, method in registry.models().items():
        kind = method.regressor if numbers else method.classifier
        if kind is None:
            continue
        known = parameters_of(kind)
        usable = {
            variant: fixed
            for variant, fixed in VARIANTS.get(name, {}).items()
            if all(p in known and known[p].accepts(value) for p, value in fixed.items())
        }
        for variant, fixed in (usable or {name: {}}).items():
            title = method.title + variant.removeprefix(name)
            found[variant] = Contestant(name, kind, fixed, title)
    return found


def titles() -> dict[str, str]:
    """What pages call the methods, and what stands for no method at all."""
    both = contestants(False) | contestants(True)
    named = {name: each.title for name, each in both.items()}
    return named | {"no-change": "no change", "prior": "majority or mean"}


def candidate(contestant: Contestant, trial: int, features: int) -> dict[str, Any]:
    """The parameters of a trial, without the fixed ones; the first are the defaults."""
    if trial == 0:
        return {}
    name, known = contestant.method, parameters_of(contestant.kind)
    chosen = {}
    for parameter, values in (RANGES | OWN.get(name, {})).items():
        if parameter not in known or parameter in LEFT_ALONE.get(name, ()):
            continue
        # One number per trial and parameter, whatever the method.
        u = np.random.default_rng([trial, zlib.crc32(parameter.encode())]).random()
        value = values(u, features)
        if known[parameter].accepts(value):
            chosen[parameter] = value
    return chosen
