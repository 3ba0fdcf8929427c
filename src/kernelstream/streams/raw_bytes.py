"""The bytes of a text file: plain, gzip or standard input."""

from __future__ import annotations

import os
import select
import sys
import weakref
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

from kernelstream.streams.errors import StreamError

_GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 18


class ByteStream:
    """Bytes in order, decompressed where the content is gzip; the path "-" is standard input."""

    def __init__(self, path: str) -> None:
        self.can_rewind = path != "-"  # whether the same bytes can be opened once more
        self.name = path if self.can_rewind else "standard input"
        self._file: BinaryIO = open_file(path) if self.can_rewind else _standard_input()
        #: What is called with the file before each read that may have to wait.
        self.wait: Callable[[BinaryIO], None] = lambda file: None
        if self.can_rewind:  # also when an error leaves nobody to call `close`
            weakref.finalize(self, self._file.close)
        start = b""
        while len(start) < len(_GZIP_MAGIC) and (piece := self._read_raw(1)):
            start += piece
        self._is_gzip = start == _GZIP_MAGIC
        self._unread = start
        self._inflate: Any = zlib.decompressobj(wbits=31) if self._is_gzip else None
        self.offset = 0  # of the next byte that `read` returns

    def read(self, size: int) -> bytes:
        """Up to about `size` bytes; fewer when a pipe has no more for now; none at the end.

        StreamError where gzip data is damaged or cut off: all bytes before were returned.
        """
        pieces: list[bytes] = []
        have = 0
        while have < size:
            try:
                piece = self._read_piece(size - have)
            except StreamError:
                if not pieces:
                    raise
                break  # it is raised again by the next call
            if not piece:
                break
            pieces.append(piece)
            have += len(piece)
            if not self.can_rewind and not _more_is_waiting(self._file):
                break
        self.offset += have
        return b"".join(pieces)

    def skip_to(self, offset: int) -> None:
        """Go on with the byte at `offset`, which is not before the present one."""
        too_short = StreamError(
            f"{self.name} is shorter than when it was left: it has no byte {offset}. "
            "Resume with the file that was read before, or start again."
        )
        if self.can_rewind and not self._is_gzip:
            if offset > os.fstat(self._file.fileno()).st_size:
                raise too_short
            self._file.seek(offset)
            self._unread = b""
            self.offset = offset
        while self.offset < offset:
            if not self.read(min(offset - self.offset, 1 << 20)):
                raise too_short

    def close(self) -> None:
        if self.can_rewind:
            self._file.close()

    def _read_piece(self, size: int) -> bytes:
        if self._is_gzip:
            return self._inflate_piece(size)
        if self._unread:
            piece, self._unread = self._unread, b""
            return piece
        # A pipe holds little at a time: room for much more would be got ready in vain.
        return self._read_raw(size if self.can_rewind else min(size, _PIECE_BYTES))

    def _read_raw(self, size: int) -> bytes:
        """One read that does not wait for more than there is."""
        file: Any = self._file
        self.wait(file)
        try:
            return (file.read1(size) if hasattr(file, "read1") else file.read(size)) or b""
        except OSError as error:
            raise StreamError(f"{self.name} cannot be read: {error.strerror}.") from None

    def _inflate_piece(self, size: int) -> bytes:
        while True:
            raw = self._unread or self._read_raw(_PIECE_BYTES)
            if self._inflate.eof:
                raw = raw.lstrip(b"\0")  # padding between members is allowed
                if not raw:
                    raw = self._read_raw(_PIECE_BYTES).lstrip(b"\0")
                    if not raw:
                        return b""
                self._inflate = zlib.decompressobj(wbits=31)
            elif not raw:
                raise StreamError(
                    f"{self.name}: the gzip data ends too early; the rows before were read. "
                    "Fetch or compress the file again."
                )
            try:
                piece: bytes = self._inflate.decompress(raw, size)
            except zlib.error as error:
                self._unread = raw
                raise StreamError(
                    f"{self.name}: the gzip data is damaged ({error}); the rows before were read. "
                    "Fetch or compress the file again."
                ) from None
            self._unread = self._inflate.unconsumed_tail or self._inflate.unused_data
            if piece:
                return piece


def open_file(path: str) -> BinaryIO:
    """Open for reading, or say what is wrong with the path."""
    if os.path.isdir(path):
        raise StreamError(f"{path} is a directory: name one of the files in it.")
    try:
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        raise StreamError(f"{path}: no such file. The folder is {os.getcwd()}.") from None
    except OSError as error:
        raise StreamError(f"{path} cannot be read: {error.strerror}.") from None


def _standard_input() -> BinaryIO:
    file = getattr(sys.stdin, "buffer", None)  # none where it is closed, or a notebook's
    if file is None:
        raise StreamError("Standard input is closed: name a file, or send rows through a pipe.")
    return file  # type: ignore[no-any-return]


def _more_is_waiting(file: BinaryIO) -> bool:
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError):  # not a pipe, or not on this system
        return True
