"""The compiled functions of the core, and their machine code in Numba's cache."""

from __future__ import annotations

import importlib
import pkgutil
import random
import re

from numba.core.dispatcher import Dispatcher

import kernelstream.core

#: What an instruction may be allowed: to reorder, to fuse, to ignore NaN and so on.
_FREEDOM = re.compile(
    r"= (?:(?:tail |musttail |notail )?\w+ (?:fast|reassoc|contract|afn|arcp|nnan|ninf|nsz)\b.*"
    r"|.*@llvm\.fmuladd\b.*)"
)


def dispatchers() -> dict[str, Dispatcher]:
    """All compiled functions of the core by name."""
    found = {}
    for module in pkgutil.walk_packages(kernelstream.core.__path__, "kernelstream.core."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == module.name:
                found[f"{module.name.rpartition('.')[2]}.{name}"] = value
    return found


def called() -> dict[str, Dispatcher]:
    """Those that have machine code of their own: the others are a part of their callers."""
    return {
        name: function
        for name, function in dispatchers().items()
        if function.targetoptions.get("inline") != "always"
    }


def load_everything(seed: int) -> None:
    """All that the cache holds of the core for this processor, in some order."""
    everything = [
        (dispatcher, signature)
        for dispatcher in dispatchers().values()
        for signature, processor, _ in dispatcher._cache._cache_file._load_index()
        if processor == dispatcher.targetctx.codegen().magic_tuple()
    ]
    random.Random(seed).shuffle(everything)
    for dispatcher, signature in everything:
        dispatcher.compile(signature)


def freedoms() -> dict[str, str | None]:
    """An instruction with freedom for each function that was loaded; None where there is none."""
    found = {}
    for name, dispatcher in dispatchers().items():
        for result in dispatcher.overloads.values():
            instruction = _FREEDOM.search(str(result.library._get_module_for_linking()))
            found[name] = found.get(name) or (instruction and instruction.group())
    return found
