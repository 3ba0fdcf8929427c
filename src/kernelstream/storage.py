"""The model file: a JSON header and plain arrays, checked before they are believed.

Layout, all numbers little-endian::

    8 bytes    magic
    8 bytes    uint64, length of the header
    ...        header, UTF-8 JSON: {"format", "kind", "header", "arrays"},
               where arrays is a list of {"name", "dtype", "shape"}
    ...        the arrays' bytes in C order, in the order of the table, without gaps
    32 bytes   SHA-256 of everything before

Reading never runs code from the file and never allocates what the header asks for before it is
known to agree with the file's true length.
"""

import hashlib
import itertools
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.errors import naming
from kernelstream.replacement import replace_file, replacing

__all__ = [
    "ChecksumError",
    "Document",
    "MalformedFileError",
    "ModelFileError",
    "NewerFormatError",
    "NotAModelFileError",
    "TruncatedFileError",
    "dumps",
    "loads",
    "read",
    "replace_file",
    "replacing",
    "write",
]

# A byte above 127, both line endings and ctrl-Z: a transfer in text mode is noticed, as in PNG.
MAGIC = b"\x8bKSM\r\n\x1a\n"
FORMAT = 1
LENGTH_BYTES = 8
DIGEST_BYTES = 32
MAX_HEADER_BYTES = 4 * 2**20  # parsed JSON takes up to 30 times its text
MAX_HEADER_DEPTH = 64
MAX_DIMENSIONS = 64  # NumPy's own limit

# The closing quote is optional, so that an unfinished string is skipped once, not rescanned.
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_NESTING = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}

DTYPES: dict[str, np.dtype[Any]] = {
    "float64": np.dtype("<f8"),
    "float32": np.dtype("<f4"),
    "int64": np.dtype("<i8"),
    "int32": np.dtype("<i4"),
    "uint64": np.dtype("<u8"),
    "uint8": np.dtype("u1"),
    "bool": np.dtype("?"),
}


class ModelFileError(ValueError):
    """The file cannot be read as a model."""


class NotAModelFileError(ModelFileError):
    """The file is something else altogether."""


class TruncatedFileError(ModelFileError):
    """The file ends too early."""


class ChecksumError(ModelFileError):
    """The file has changed since it was written."""


class NewerFormatError(ModelFileError):
    """The file was written by a later version of kernelstream."""


class MalformedFileError(ModelFileError):
    """The checksum is right, but the content makes no sense: not written by kernelstream."""


class Document(NamedTuple):
    """What a model file holds.

    Attributes
    ----------
    kind : str
        What the file describes, e.g. the name of a class.
    header : dict
        Plain JSON values.
    arrays : dict of str to ndarray
        Writable, C-ordered arrays of their own, in the machine's byte order.
    """

    kind: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def dumps(kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Turn a document into the bytes of a model file.

    Parameters
    ----------
    kind : str
        What the document describes.
    header : dict
        Plain JSON values: dict with string keys, list, str, int, finite float, bool and None.
        Floats are kept to the last bit.
    arrays : dict of str to ndarray
        Arrays of float64, float32, int64, int32, uint64, uint8 or bool.

    Returns
    -------
    bytes
        The same for the same document, always.

    Raises
    ------
    TypeError
        If an array has another dtype, or the header would not come back as it is.
    ValueError
        If the header holds NaN or infinity, or is too long or too deep.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import storage
    >>> data = storage.dumps("example", {"gamma": 0.1}, {"weights": np.arange(3.0)})
    >>> storage.loads(data)
    Document(kind='example', header={'gamma': 0.1}, arrays={'weights': array([0., 1., 2.])})
    """
    table = []
    payload = []
    for name, array in arrays.items():
        array = np.asarray(array)
        dtype = DTYPES.get(array.dtype.name)
        if dtype is None:
            raise TypeError(
                f"array {name!r} has dtype {array.dtype}; a model file holds {', '.join(DTYPES)}"
            )
        table.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape)})
        payload.append(array.astype(dtype, copy=False).tobytes())

    content = {"format": FORMAT, "kind": kind, "header": dict(header), "arrays": table}
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    if _parse_header(text)[1] != content["header"]:  # what is written can be read
        raise TypeError(
            "header would change when saved; use only dict with string keys, list, str, int, "
            "float, bool and None"
        )
    body = b"".join([MAGIC, len(text).to_bytes(LENGTH_BYTES, "little"), text, *payload])
    return body + hashlib.sha256(body).digest()


def loads(data: bytes) -> Document:
    """Read a document from the bytes of a model file.

    Parameters
    ----------
    data : bytes
        What `dumps` returned. May come from anyone: nothing in it is executed.

    Returns
    -------
    Document
        The document, exactly as it was given to `dumps`.

    Raises
    ------
    ModelFileError
        If the bytes are not a complete, undamaged model file of a known format.
    """
    view = memoryview(data)
    if not MAGIC.startswith(view[: len(MAGIC)]):
        raise NotAModelFileError("not a kernelstream model file")
    header_start = len(MAGIC) + LENGTH_BYTES
    header_room = len(view) - header_start - DIGEST_BYTES
    header_length = int.from_bytes(view[len(MAGIC) : header_start], "little")
    if header_room < 0 or header_length > header_room:
        raise TruncatedFileError("the file is cut short, or its header length is damaged")
    payload_start = header_start + header_length
    payload = view[payload_start:-DIGEST_BYTES]

    # The header is parsed even if the checksum is wrong: a short file is not a changed one.
    intact = hashlib.sha256(view[:-DIGEST_BYTES]).digest() == view[-DIGEST_BYTES:]
    try:
        kind, header, table = _parse_header(bytes(view[header_start:payload_start]))
    except ModelFileError:
        if intact:
            raise
        raise ChecksumError("checksum mismatch: the file is damaged") from None
    expected = sum(entry.nbytes for entry in table)
    if not intact:
        if expected > len(payload):
            raise TruncatedFileError("the file is cut short")
        raise ChecksumError("checksum mismatch: the file is damaged")
    if expected != len(payload):
        raise MalformedFileError(
            f"the header describes {expected} bytes of arrays, the file holds {len(payload)}"
        )

    arrays = {}
    start = 0
    for entry in table:
        arrays[entry.name] = _parse_array(entry, payload[start : start + entry.nbytes])
        start += entry.nbytes
    return Document(kind, header, arrays)


def write(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a model file so that a crash at any moment leaves the old file or the new one.

    Parameters
    ----------
    path : str or path-like
        Where to write, as for `replacing`.
    kind, header, arrays
        As for `dumps`.

    Raises
    ------
    TypeError, ValueError
        As for `dumps`.
    OSError
        As for `replacing`.
    """
    replace_file(path, dumps(kind, header, arrays))


def read(path: str | os.PathLike[str]) -> Document:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
        A file that `write` made. May come from anyone: nothing in it is executed.

    Returns
    -------
    Document
        The document, exactly as it was given to `write`.

    Raises
    ------
    ModelFileError
        If the file is not a complete, undamaged model file of a known format.
    OSError
        If the file cannot be opened.
    """
    with naming(path), open(path, "rb") as file:
        start = file.read(len(MAGIC))  # a huge file of another sort is not read to its end
        data = start if start != MAGIC else start + file.read()
    try:
        return loads(data)
    except ModelFileError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


@contextmanager
def believing(path: str | os.PathLike[str], document: Document) -> Iterator[None]:
    """Within, a model is made of a document; whatever goes wrong is the fault of its file.

    A file with the right checksum may still hold anything: which errors that leads to is up to
    NumPy, Numba and Python.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelFileError(
            f"{os.fspath(path)} is not a valid {document.kind}: {reason}"
        ) from error


class _TableEntry(NamedTuple):
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    nbytes: int


def _parse_header(text: bytes) -> tuple[str, dict[str, Any], list[_TableEntry]]:
    content = _parse_json(text)
    if not isinstance(content, dict):
        raise MalformedFileError("the header is not a JSON object")
    version = content.get("format")
    if type(version) is not int or version < 1:
        raise MalformedFileError("the header has no valid format version")
    if version > FORMAT:
        raise NewerFormatError(
            f"the file has format {version}, this version of kernelstream reads up to {FORMAT}; "
            "upgrade kernelstream to read it"
        )
    match content:
        case {"kind": str(kind), "header": dict(header), "arrays": list(arrays), **rest}:
            if unknown := sorted(rest.keys() - {"format"}):
                raise MalformedFileError(f"the header has unknown fields: {unknown}")
        case _:
            raise MalformedFileError("the header lacks kind, header or arrays")
    table = [_parse_table_entry(entry) for entry in arrays]
    if len({entry.name for entry in table}) != len(table):
        raise MalformedFileError("two arrays have the same name")
    return kind, header, table


def _parse_table_entry(entry: Any) -> _TableEntry:
    match entry:
        case {"name": str(name), "dtype": str(dtype_name), "shape": list(shape)} if len(entry) == 3:
            dtype = DTYPES.get(dtype_name)
        case _:
            raise MalformedFileError("an array's description is not {name, dtype, shape}")
    if dtype is None:
        raise MalformedFileError(f"array {name!r} has an unknown dtype")
    if len(shape) > MAX_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise MalformedFileError(f"array {name!r} has an invalid shape")
    # NumPy refuses (0, 2**62, 2**62) too, although it holds no bytes.
    if math.prod(n for n in shape if n) * dtype.itemsize > sys.maxsize:
        raise MalformedFileError(f"array {name!r} has an impossible size")
    return _TableEntry(name, dtype, tuple(shape), math.prod(shape) * dtype.itemsize)


def _parse_array(entry: _TableEntry, data: memoryview) -> NDArray[Any]:
    array = np.empty(entry.shape, entry.dtype)
    content = array.reshape(-1).view(np.uint8)
    content[:] = data
    if entry.dtype == np.bool_ and content.max(initial=0) > 1:
        raise MalformedFileError(f"array {entry.name!r} holds bytes that are not bool")
    return array.astype(entry.dtype.newbyteorder("="), copy=False)


def _parse_json(text: bytes) -> Any:
    """Parse JSON more strictly than `json` does: no NaN, no repeated keys, limited in size."""
    if len(text) > MAX_HEADER_BYTES:
        raise MalformedFileError(f"the header is longer than {MAX_HEADER_BYTES} bytes")
    if _is_too_deep(text):
        raise MalformedFileError(f"the header is nested deeper than {MAX_HEADER_DEPTH} levels")
    try:
        return json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_without_repeats,
            parse_float=_finite_float,
            parse_constant=_finite_float,
        )
    except (ValueError, RecursionError) as error:
        raise MalformedFileError(f"the header is not valid JSON: {error}") from None


def _is_too_deep(text: bytes) -> bool:
    """Tell whether the brackets of a JSON text are nested too deep to parse safely."""
    steps = (_NESTING.get(text[found.start()], 0) for found in _STRING_OR_BRACKET.finditer(text))
    return any(depth > MAX_HEADER_DEPTH for depth in itertools.accumulate(steps))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value
