"""One thread for BLAS where its products reach a model.

How BLAS shares a product among threads decides the order of its sums: more than half of all shapes
give other bits with two threads than with one. And on a busy machine threads wait for each other
at the end of every small product, which made an epoch of MNIST 17 times slower.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import scipy.linalg  # noqa: F401  the library that compiled code calls is loaded with it
from threadpoolctl import ThreadpoolController

_lock = Lock()
_inside = 0
_before: list[int] = []


@cache
def _libraries() -> list[Any]:
    return [library for library in ThreadpoolController().lib_controllers
            if library.user_api == "blas"]  # fmt: skip


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """BLAS runs in the thread that calls it; the number of threads is what it was afterwards.

    It belongs to the process: the first one who comes in changes it, the last one who leaves
    changes it back. It takes some microseconds: ``wanted`` is false where no product is large
    enough for BLAS to share it.
    """
    global _inside
    if not wanted:
        yield
        return
    with _lock:
        if _inside == 0:
            _before[:] = [library.get_num_threads() for library in _libraries()]
            for library, number in zip(_libraries(), _before, strict=True):
                if number != 1:
                    library.set_num_threads(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for library, number in zip(_libraries(), _before, strict=True):
                    if number != 1:
                        library.set_num_threads(number)
