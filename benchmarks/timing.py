"""How long something takes on a machine that others use, too."""

import time
from collections.abc import Callable
from typing import Any


def best(
    function: Callable[[], Any], repeats: int = 3, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds of the quickest of several calls, by any clock."""
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)
