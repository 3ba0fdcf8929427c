"""The one decorator under which everything in ``core`` is compiled."""

import hashlib
import os
import pickle
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

#: True when ``NUMBA_DISABLE_JIT=1``: the functions below then run as plain Python.
INTERPRETED = bool(numba.config.DISABLE_JIT)


def _private_cache() -> str:
    """A cache folder under the temporary folder that nobody else can write to.

    Numba's cache holds machine code, so a folder prepared by another user must never be
    trusted: an existing one is used only if it is ours and closed to others.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"kernelstream-numba-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if stat.S_ISDIR(found.st_mode) and ours and not found.st_mode & 0o022:
            return str(folder)
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="kernelstream-numba-")


def _sources() -> str:
    """What all files below this folder hold, as one short text."""
    contents = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        contents.update(path.read_bytes())
    return contents.hexdigest()


_SOURCES = _sources()


def _make_fresh(dispatcher: Any) -> Any:
    """Let the cache of a function depend on all sources in this folder.

    Numba looks at the time of the function's own file: a constant or a callee in another file may
    have changed all the same, and a process that began before may still write what it compiled.
    Nor does it expect an index that names classes of another version: such a one is empty.
    """
    file = getattr(dispatcher._cache, "_cache_file", None)
    if file is None or not hasattr(file, "_source_stamp"):  # not documented: see the tests
        return dispatcher
    load = file._load_index

    def load_index() -> Any:
        try:
            return load()
        except (AttributeError, ImportError, TypeError, ValueError, EOFError, pickle.PickleError):
            return {}

    file._source_stamp, file._load_index = _SOURCES, load_index
    return dispatcher


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Compile ``function`` to machine code, cached on disk wherever that is possible.

    Never with ``fastmath``: what a caller inlines is optimised once more, and freedom to reorder
    or fuse would give it other bits than the function alone: see ``core/lanes.py``.

    Without a writable package folder and home (a container, a service account) the cache
    goes to a private temporary folder instead of failing at import.
    """
    options = {
        "cache": True, "nogil": True, "error_model": "numpy",
        "no_cfunc_wrapper": True, "_nrt": True, **options,
    }  # fmt: skip
    if INTERPRETED:
        return function
    try:
        return _make_fresh(numba.njit(**options)(function))
    except RuntimeError:  # numba: "cannot cache function ...: no locator available"
        numba.config.CACHE_DIR = _private_cache()
        return _make_fresh(numba.njit(**options)(function))


def lean(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a ``function`` that neither makes nor returns arrays: it counts no references.

    Numba counts them with an atomic instruction for every array that a function is handed or
    takes out of a tuple, which was a quarter of the time of a step. Whoever calls holds the
    arrays as long as the call lasts.
    """
    return compiled(function, _nrt=False, **options)


def allocating(function: Callable[..., Any]) -> Any:
    """Compile ``function`` for calls from compiled code only: a fifth less time to compile."""
    return compiled(function, no_cpython_wrapper=True)


def inner(function: Callable[..., Any], **options: Any) -> Any:
    """The same for a ``function`` that neither makes nor returns arrays: see `lean`."""
    return lean(function, no_cpython_wrapper=True, **options)


def inline(function: Callable[..., Any]) -> Any:
    """The same, put where it is called.

    For what every sample goes through: an array is handed over as seven words, so that a call with
    a state, a sample and a kernel takes longer than looking at twenty points.
    """
    return inner(function, forceinline=True)


def merged(function: Callable[..., Any]) -> Any:
    """The same, made part of its caller before that is compiled: it takes no time of its own.

    Whoever calls a compiled function optimises it again, with all that it calls: each level of a
    long chain of calls costs seconds. For functions with one caller; not for what every sample goes
    through: their references are counted again (see `lean`).
    """
    return compiled(function, inline="always")


def named(name: str) -> Callable[[Any], Any]:
    """Compile a function under a name of its own, which the files of its machine code have too.

    For one that is made in several variants.
    """

    def compile_it(function: Any) -> Any:
        function.__name__ = function.__qualname__ = name
        return compiled(function)

    return compile_it


def entry(function: Any, arguments: tuple[Any, ...]) -> Any:
    """The machine code of ``function`` for arguments like these, whose types it does not look at.

    Numba finds out the types of all arguments of every call, which takes a third of a short step.
    The caller answers for them. A plain function stays what it is.
    """
    if not hasattr(function, "get_overload"):
        return function
    types = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(types)
    return function.get_overload(types)
