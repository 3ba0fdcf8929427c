"""Files that take the place of others in one go: a crash leaves the old one or the new one."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from kernelstream.errors import naming


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file that takes its place in one go: see :func:`replacing`."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, which takes its place in one go when the block ends without error.

    A crash at any moment leaves the old file or the new one.

    Parameters
    ----------
    path : str or path-like
        Where to write. A symbolic link stays, and the file it points to is replaced. A file that
        is replaced passes on its permissions.

    Raises
    ------
    OSError
        If the file cannot be written, e.g. because the folder is missing. No file is left behind.

    Notes
    -----
    The new file grows under the name ``.kernelstream-*.tmp`` in the same folder. It remains there
    only if the process is killed, and may then be deleted.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "no such folder to write to", folder)
    old_mode = _mode_of_regular_file(target)
    temporary = os.path.join(folder, f".kernelstream-{secrets.token_hex(8)}.tmp")

    def create(name: str, flags: int) -> int:
        # With the old mode from the start: a private file is not readable for even a moment.
        return os.open(name, flags, 0o666 if old_mode is None else old_mode)

    try:
        with naming(path), open(temporary, "xb", opener=create) as file:
            yield file
            if old_mode is not None:
                os.chmod(temporary, old_mode)  # the bits the umask took away
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename == temporary:
            error.filename, error.filename2 = os.fspath(path), None
        raise
    if os.name == "posix":  # the rename survives a power cut; other systems open no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            with naming(folder):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mode_of_regular_file(path: str) -> int | None:
    """Return the permission bits of a file to replace, None if there is none."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):  # a rename would put a file in the place of, say, /dev/null
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(code, "not a regular file", path)
    return stat.S_IMODE(mode)
