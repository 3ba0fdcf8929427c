"""How long something takes on a machine that others use, too."""

import time
from collections.abc import Callable
from typing import Any


def best(function: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the quickest of several calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
