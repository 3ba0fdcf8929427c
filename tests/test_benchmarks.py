"""The names of the benchmarks lead somewhere."""

from importlib import import_module

import pytest

from benchmarks.__main__ import BENCHMARKS, USUAL


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_name_is_a_function(name):
    module, function = BENCHMARKS[name].split(".")
    assert callable(getattr(import_module(f"benchmarks.{module}"), function))


def test_the_usual_ones_are_there():
    assert set(USUAL) <= set(BENCHMARKS)
