"""The fits of `tests/fingerprints.py` come to what they came to in version 0.1."""

from __future__ import annotations

import numpy as np
import pytest

from kernelstream.core.jit import INTERPRETED
from tests.reference import FILE, difference, numbers

pytestmark = pytest.mark.skipif(
    INTERPRETED, reason="takes minutes without the compiler; its tests compare with naive twins"
)

#: Another processor has another BLAS: sums in another order. Bit for bit `tests/reference.py`
#: compares, on the processor on which the file was written.
CLOSE = 1e-7


@pytest.mark.parametrize("name", np.load(FILE).files)
@pytest.mark.filterwarnings("ignore")
def test_numbers_are_those_of_the_first_version(name: str) -> None:
    assert difference(numbers(name), np.load(FILE)[name]) <= CLOSE
