"""What can go wrong while learning, as types to catch."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class DivergenceError(ArithmeticError):
    """The step size is too large for the data: the weights would overflow.

    The model still holds what it had learned before the offending sample.
    """


class IllConditionedError(ArithmeticError):
    """The kernel matrix of the stored points cannot be factorised in double precision."""


class CapWarning(UserWarning):
    """A cap on points or bytes was reached: a model with more room might do better."""


def callers_level() -> int:
    """The ``stacklevel`` of a warning that points at the line which called this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("kernelstream."):
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within, an error of the system names this file: those of writing name none.

    >>> with naming("model.ks"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'model.ks'
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


@contextmanager
def prefixed(owner: str) -> Iterator[None]:
    """Within, a ``ValueError`` says whose it is.

    >>> with prefixed("states"):
    ...     raise ValueError("2-D numbers expected")
    Traceback (most recent call last):
    ValueError: states: 2-D numbers expected
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{owner}: {error}") from error
