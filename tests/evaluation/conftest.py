"""Pictures are closed after each test."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
