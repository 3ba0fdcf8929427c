"""The methods of the arena, and the ranges in which their parameters are searched.

Methods come from the registry. A parameter that several methods share has one range for all of
them, and in each trial one value for all of them: nobody gets a finer search than the others. What
has no range here keeps its default.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

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
}
#: By method, where a parameter of that name means something else there.
OWN: dict[str, dict[str, Range]] = {
    "avm": {"alpha": between(1e-6, 1e-1)},
    "auto": {},
}
#: Of the parameters with a range, those that a method leaves alone.
LEFT_ALONE: dict[str, tuple[str, ...]] = {"auto": ("forget",)}


def contestants(numbers: bool) -> dict[str, type]:
    """Methods with a form for such targets, by name."""
    found = {
        name: method.regressor if numbers else method.classifier
        for name, method in registry.models().items()
    }
    return {name: kind for name, kind in found.items() if kind is not None}


def titles() -> dict[str, str]:
    """What pages call the methods, and what stands for no method at all."""
    named = {name: method.title for name, method in registry.models().items()}
    return named | {"no-change": "no change", "prior": "majority or mean"}


def candidate(name: str, kind: type, trial: int, features: int) -> dict[str, Any]:
    """The parameters of a trial; the first are the defaults."""
    if trial == 0:
        return {}
    known = parameters_of(kind)
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
