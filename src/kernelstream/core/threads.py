"""One thread for BLAS where its products reach a model.

How BLAS shares a product among threads decides the order of its sums: more than half of all shapes
give other bits with two threads than with one. And on a busy machine threads wait for each other
at the end of every small product, which made an epoch of MNIST 17 times slower.
"""

from contextlib import ContextDecorator, nullcontext
from functools import cache
from threading import Lock, get_ident, local, main_thread
from typing import Any

import scipy.linalg  # noqa: F401  the library that compiled code calls is loaded with it
from threadpoolctl import ThreadpoolController

_lock = Lock()
_inside = 0
_before: list[int] = []
_MAIN = main_thread().ident

#: How builds of OpenBLAS name what sets the number for the thread that calls it alone.
_LOCAL = (
    "openblas_set_num_threads_local",
    "scipy_openblas_set_num_threads_local",
    "scipy_openblas_set_num_threads_local64_",
)


@cache
def _libraries() -> list[Any]:
    return [library for library in ThreadpoolController().lib_controllers
            if library.user_api == "blas"]  # fmt: skip


class _Here(local):
    """What a thread other than the main one did for itself."""

    depth = 0
    changed: tuple[tuple[Any, int], ...] = ()  # what sets a number, and the number before


_here = _Here()


class _OneThread(ContextDecorator):
    """The number of threads belongs to the process: the first one who comes in changes it, the
    last one who leaves changes it back.

    OpenBLAS lets only the thread that lowered the number raise it again: where several threads
    learn at once and another one leaves last, it stays at one. And what a thread other than the
    main one says of the process may not be heard at all: then it has a number of its own.
    """

    def __enter__(self) -> None:
        global _inside
        with _lock:
            if _inside == 0:
                _before[:] = [library.get_num_threads() for library in _libraries()]
                _set(1)
            _inside += 1
        if get_ident() != _MAIN:
            if _here.depth == 0:
                _here.changed = _lower_here()
            _here.depth += 1

    def __exit__(self, *problem: object) -> None:
        global _inside
        if get_ident() != _MAIN:
            _here.depth -= 1
            if _here.depth == 0:
                for set_here, before in _here.changed:
                    set_here(before)
        with _lock:
            _inside -= 1
            if _inside == 0:
                _set(None)


def _lower_here() -> tuple[tuple[Any, int], ...]:
    """One thread for the libraries that still have more in the thread that calls."""
    changed = []
    for library in _libraries():
        before = library.get_num_threads()
        if before == 1:
            continue
        known = (getattr(library.dynlib, name, None) for name in _LOCAL)
        set_here = next((found for found in known if found is not None), None)
        if set_here is not None:  # an older build, or another library: nothing can be done
            set_here(1)
            changed.append((set_here, before))
    return tuple(changed)


def _set(number: int | None) -> None:
    """So many threads for each library; None: as many as before."""
    for library, before in zip(_libraries(), _before, strict=True):
        if before != 1:
            library.set_num_threads(before if number is None else number)


_ONE, _AS_IT_IS = _OneThread(), nullcontext()


def one_thread(wanted: bool = True) -> Any:
    """Within, or within the function decorated, BLAS runs in the thread that calls it.

    It takes some microseconds: ``wanted`` is false where no product is large enough for BLAS to
    share it.
    """
    return _ONE if wanted else _AS_IT_IS
