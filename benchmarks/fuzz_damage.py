"""Damage to files: of their bytes, and of their content with the checksum put right again."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelstream.storage import DIGEST_BYTES, DTYPES, LENGTH_BYTES, MAGIC

Random = np.random.Generator

#: What a value of a header is replaced by.
NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63),
    10**18, -(10**18), 10**30, 10**400, 0.0, -0.0, 0.5, 1.5, -1.5, 1e-300, 5e-324, 1e150, 1e308,
    -1e308, float("nan"), float("inf"), float("-inf"), "", "x", "nan", "1", "number", "text", ",i8",
    "<f8", "O", "\0", "\ud800", "é" * 1000, [], [0], [None], [[]], [1, 2, 3], [1.0] * 5000, {},
    {"a": 1}, {"name": "Linear"}, {"kernel": {}}, {"loss": []}, {"coverage": {}},
)  # fmt: skip


def choose(random: Random, values: Any) -> Any:
    """One of them; `Random.choice` would make NumPy values of them."""
    return values[int(random.integers(len(values)))]


# ---- bytes ----------------------------------------------------------------------------


def flip_bits(data: bytes, random: Random) -> bytes:
    """One to eight bits."""
    damaged = bytearray(data)
    for _ in range(int(random.integers(1, 9))):
        damaged[int(random.integers(len(data)))] ^= 1 << int(random.integers(8))
    return bytes(damaged)


def truncate(data: bytes, random: Random) -> bytes:
    """The end is missing, or the start."""
    place = int(random.integers(len(data)))
    return data[:place] if random.random() < 0.8 else data[place:]


def insert(data: bytes, random: Random) -> bytes:
    """Bytes between the others."""
    place, count = int(random.integers(len(data) + 1)), int(random.integers(1, 300))
    filler = random.bytes(count) if random.random() < 0.5 else bytes(count)
    return data[:place] + filler + data[place:]


def repeat(data: bytes, random: Random) -> bytes:
    """A part twice or more, or the whole."""
    first, end = _part(data, random)
    return data[:end] + data[first:end] * int(random.integers(1, 4)) + data[end:]


def overwrite(data: bytes, random: Random) -> bytes:
    """A part is zeros, ones, noise, or what stands elsewhere."""
    first, end = _part(data, random)
    count = end - first
    elsewhere = int(random.integers(len(data) - count + 1))
    filler = choose(random, [bytes(count), b"\xff" * count, random.bytes(count),
                             data[elsewhere : elsewhere + count]])  # fmt: skip
    return data[:first] + filler + data[end:]


def cut_out(data: bytes, random: Random) -> bytes:
    """A part is missing."""
    first, end = _part(data, random)
    return data[:first] + data[end:]


def replace_byte(data: bytes, random: Random) -> bytes:
    """A byte becomes one that means something."""
    damaged = bytearray(data)
    for _ in range(int(random.integers(1, 4))):
        damaged[int(random.integers(len(data)))] = choose(
            random, b'\0\n\r",;:\t{}[]-+.e0197#\x1a\xff'
        )
    return bytes(damaged)


def _part(data: bytes, random: Random) -> tuple[int, int]:
    first = int(random.integers(len(data)))
    longest = len(data) - first if random.random() < 0.2 else min(64, len(data) - first)
    return first, first + int(random.integers(1, longest + 1))


BYTES = (flip_bits, truncate, insert, repeat, overwrite, cut_out, replace_byte)


# ---- documents whose checksum is right ------------------------------------------------


class Parts:
    """A model file taken apart: the content of its header, and the arrays' bytes."""

    def __init__(self, data: bytes) -> None:
        start = len(MAGIC) + LENGTH_BYTES
        length = int.from_bytes(data[len(MAGIC) : start], "little")
        self.content: dict[str, Any] = json.loads(data[start : start + length])
        self.payload = []
        place = start + length
        for entry in self.content["arrays"]:
            size = int(np.prod(entry["shape"], dtype=np.int64)) * DTYPES[entry["dtype"]].itemsize
            self.payload.append(data[place : place + size])
            place += size

    def array(self, place: int) -> np.ndarray:
        entry = self.content["arrays"][place]
        return np.frombuffer(self.payload[place], DTYPES[entry["dtype"]]).reshape(entry["shape"])

    def put(self, place: int, array: np.ndarray) -> None:
        entry = self.content["arrays"][place]
        entry["shape"], entry["dtype"] = list(array.shape), array.dtype.name
        self.payload[place] = array.tobytes()

    def seal(self, text: bytes | None = None) -> bytes:
        """The file, with this text for its header, and a right checksum."""
        if text is None:
            text = json.dumps(self.content, separators=(",", ":")).encode()
        body = b"".join([MAGIC, len(text).to_bytes(LENGTH_BYTES, "little"), text, *self.payload])
        return body + hashlib.sha256(body).digest()


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside a tree of dicts and lists."""
    found = []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += places(value, (*path, key))
    return found


def _holder(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        tree = tree[key]
    return tree


def replace_value(parts: Parts, random: Random, other: Parts) -> bytes:
    """One to three values of the header become something else."""
    for _ in range(int(random.integers(1, 4))):
        path = choose(random, places(parts.content))
        _holder(parts.content, path)[path[-1]] = copy.deepcopy(choose(random, NASTY))
    return parts.seal()


def replace_parameter(parts: Parts, random: Random, other: Parts) -> bytes:
    """A value inside the header proper, where the arrays' names and shapes stay."""
    path = choose(random, places(parts.content["header"]))
    _holder(parts.content["header"], path)[path[-1]] = copy.deepcopy(choose(random, NASTY))
    return parts.seal()


def change_number(parts: Parts, random: Random, other: Parts) -> bytes:
    """A number becomes a little larger or smaller, negative, or much larger."""
    paths = [path for path in places(parts.content)
             if type(_holder(parts.content, path)[path[-1]]) in (int, float)]  # fmt: skip
    for _ in range(int(random.integers(1, 4))):
        path = choose(random, paths)
        holder = _holder(parts.content, path)
        number = holder[path[-1]]
        holder[path[-1]] = choose(
            random,
            [
                number + 1,
                number - 1,
                -number,
                number * 2,
                number / 2,
                number * 10**15,
                float(number),
            ],
        )
    return parts.seal()


def drop_key(parts: Parts, random: Random, other: Parts) -> bytes:
    """A key or an item is missing."""
    path = choose(random, places(parts.content))
    del _holder(parts.content, path)[path[-1]]
    return parts.seal()


def add_key(parts: Parts, random: Random, other: Parts) -> bytes:
    """A key or an item too many."""
    path = choose(random, places(parts.content))
    holder, value = _holder(parts.content, path), copy.deepcopy(choose(random, NASTY))
    if isinstance(holder, dict):
        holder[
            choose(
                random, ["extra", "", "random_state", "kernel", "__class__", str(path[-1]) + "_"]
            )
        ] = value
    else:
        holder.insert(path[-1], value)
    return parts.seal()


def swap_values(parts: Parts, random: Random, other: Parts) -> bytes:
    """Two values change places, also those of different meaning."""
    found = places(parts.content)
    one, two = choose(random, found), choose(random, found)
    try:
        first, second = _holder(parts.content, one), _holder(parts.content, two)
        values = copy.deepcopy([first[one[-1]], second[two[-1]]])
        first[one[-1]], second[two[-1]] = values[1], values[0]
    except (KeyError, IndexError, TypeError):
        return parts.seal()  # one was inside the other
    return parts.seal()


def edit_text(parts: Parts, random: Random, other: Parts) -> bytes:
    """The header's text is damaged as any other."""
    text = json.dumps(parts.content, separators=(",", ":")).encode()
    return parts.seal(choose(random, BYTES)(text, random))


def repeat_key(parts: Parts, random: Random, other: Parts) -> bytes:
    """A key twice in the same object."""
    text = json.dumps(parts.content, separators=(",", ":")).encode()
    place = choose(random, [i for i, sign in enumerate(text) if sign == ord("{")]) + 1
    key = choose(random, [b'"name":1,', b'"kind":"x",', b'"kernel":{},', b'"header":{},'])
    return parts.seal(text[:place] + key + text[place:])


def nest(parts: Parts, random: Random, other: Parts) -> bytes:
    """Brackets in brackets: more than any parser likes."""
    path = choose(random, places(parts.content))
    _holder(parts.content, path)[path[-1]] = "HERE"
    depth = int(choose(random, [10, 60, 70, 1000, 100_000]))
    pair = choose(
        random, [(b"[", b"]"), (b'{"a":', b"}"), (b'{"name":"Scaled","factor":1.0,"kernel":', b"}")]
    )
    text = json.dumps(parts.content, separators=(",", ":")).encode()
    return parts.seal(text.replace(b'"HERE"', pair[0] * depth + b"1" + pair[1] * depth, 1))


def edit_table(parts: Parts, random: Random, other: Parts) -> bytes:
    """The description of an array: type, shape, name."""
    entry = choose(random, parts.content["arrays"])
    shape = entry["shape"]
    what = int(random.integers(5))
    if what == 0:
        entry["dtype"] = choose(random, [*DTYPES, "float16", "object", "O", ",i8", "", 8, None])
    elif what == 1:
        entry["shape"] = choose(random, [
            shape[::-1], [*shape, 1], shape[1:], [n + 1 for n in shape], [-n for n in shape],
            [float(n) for n in shape], [2**40], [2**62, 4], [0, 2**62], [2**31, 0], [10**30],
            [1] * 65, [True], "x", None, {}, [None],
        ])  # fmt: skip
    elif what == 2:
        entry["name"] = choose(
            random, ["", "x", choose(random, parts.content["arrays"])["name"], 1, None]
        )
    elif what == 3:
        place = parts.content["arrays"].index(entry)
        del parts.content["arrays"][place]
        if random.random() < 0.5:
            del parts.payload[place]
    else:
        random.shuffle(parts.content["arrays"])
    return parts.seal()


_PER_POINT = ("norms", "kernels", "diagonal", "factor", "recency", "numbers")


def empty_but_huge(parts: Parts, random: Random, other: Parts) -> bytes:
    """Arrays without a byte whose other side is endless: nothing contradicts the file's length."""
    side = int(choose(random, [10**4, 10**5, 10**6, 10**9, 2**40]))
    wide = random.random() < 0.5  # many features, or else many components
    for place, entry in enumerate(parts.content["arrays"]):
        name, shape = entry["name"], entry["shape"]
        if len(shape) == 2 and name.endswith("points"):
            entry["shape"] = [side if wide else shape[0], 0]
        elif len(shape) == 2 and name.endswith("weights"):
            entry["shape"] = [0, shape[1]] if wide else [side, 0]
        elif len(shape) == 2 and name.endswith(("dictionary", "rows", "dense")):
            entry["shape"] = [0, side]
        elif shape and (name.endswith(_PER_POINT) or random.random() < 0.1):
            entry["shape"] = [0] * len(shape)
            if name.endswith("factor") and not wide:
                entry["shape"] = [0, side]
        else:
            continue
        parts.payload[place] = b""
    huge = ("features", "matrix_width", "buckets") if wide else ("n_components", "max_points")
    for path in places(parts.content["header"]):
        holder = _holder(parts.content["header"], path)
        if path[-1] in huge:
            holder[path[-1]] = side
        elif path[-1] in ("order", "rank", "cells", "ghosts"):
            holder[path[-1]] = 0
    return parts.seal()


def edit_array(parts: Parts, random: Random, other: Parts) -> bytes:
    """What an array holds."""
    place = int(random.integers(len(parts.payload)))
    array = parts.array(place).copy()
    flat = array.reshape(-1)
    if len(flat):
        which = random.integers(len(flat), size=int(random.integers(1, 4)))
        numbers: Any = [0, 1, -1, np.iinfo(np.int64).max]
        if array.dtype.kind == "f":
            numbers = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e150, 5e-324, 0.0, -1.0, 1e10]
        with np.errstate(all="ignore"):
            match int(random.integers(6)):
                case 0:
                    flat[which] = np.array(choose(random, numbers)).astype(array.dtype)
                case 1:
                    flat[...] = np.array(choose(random, numbers)).astype(array.dtype)
                case 2:
                    random.shuffle(flat)
                case 3 if array.dtype.kind in "fi":
                    flat[which] = -flat[which]
                case 4 if array.dtype.kind == "f":
                    flat *= float(choose(random, [-1.0, 0.5, 1.001, 1e6, 1e-6, 1e200]))
                case _:
                    parts.payload[place] = flip_bits(parts.payload[place], random)
                    return parts.seal()
    parts.put(place, array)
    return parts.seal()


def reshape_array(parts: Parts, random: Random, other: Parts) -> bytes:
    """Rows or columns missing or too many, another type."""
    place = int(random.integers(len(parts.payload)))
    array = parts.array(place)
    match int(random.integers(5)):
        case 0:
            array = array[:-1] if array.ndim else array.reshape(1)
        case 1:
            array = np.concatenate([array, array]) if array.ndim else array.reshape(1, 1)
        case 2:
            array = array.T
        case 3:
            array = array[:0] if array.ndim else np.zeros(0, array.dtype)
        case _:
            with np.errstate(all="ignore"):
                array = array.astype(choose(random, list(DTYPES.values())))
    parts.put(place, np.ascontiguousarray(array))
    return parts.seal()


def swap_arrays(parts: Parts, random: Random, other: Parts) -> bytes:
    """Arrays of another model, under their own names or under those of this one."""
    theirs = {entry["name"]: place for place, entry in enumerate(other.content["arrays"])}
    ours = [entry["name"] for entry in parts.content["arrays"]]
    common = [name for name in ours if name in theirs]
    if common and random.random() < 0.8:
        for name in common:
            if random.random() < 0.6:
                parts.put(ours.index(name), other.array(theirs[name]))
    elif theirs and ours:
        place = choose(random, list(theirs.values()))
        parts.put(int(random.integers(len(ours))), other.array(place))
    return parts.seal()


def swap_headers(parts: Parts, random: Random, other: Parts) -> bytes:
    """The header of one model over the arrays of another, or only its name or a part of it."""
    match int(random.integers(3)):
        case 0:
            parts.content["header"] = other.content["header"]
        case 1:
            kinds = [other.content["kind"], "CompositionalLearner", "SavedModel", "Agent"]
            parts.content["kind"] = choose(random, kinds)
        case _:
            mine, theirs = parts.content["header"], other.content["header"]
            common = [name for name in mine if name in theirs]
            if common:
                name = choose(random, common)
                mine[name] = theirs[name]
    return parts.seal()


def wrong_frame(parts: Parts, random: Random, other: Parts) -> bytes:
    """The length of the header, the magic, bytes at the end; the checksum is right."""
    data = parts.seal()[:-DIGEST_BYTES]
    start = len(MAGIC)
    match int(random.integers(3)):
        case 0:
            length = int(choose(random, [0, 1, 2**40, 2**63, 2**64 - 1, len(data), 5_000_000]))
            data = (
                data[:start]
                + length.to_bytes(LENGTH_BYTES, "little")
                + data[start + LENGTH_BYTES :]
            )
        case 1:
            data = data + random.bytes(int(random.integers(1, 100)))
        case _:
            data = random.bytes(start) + data[start:]
    return data + hashlib.sha256(data).digest()


SEALED: tuple[Callable[[Parts, Random, Parts], bytes], ...] = (
    replace_value, replace_parameter, replace_parameter, change_number, drop_key, add_key,
    swap_values, edit_text, repeat_key, nest, edit_table, empty_but_huge, edit_array, edit_array,
    reshape_array, swap_arrays, swap_headers, wrong_frame,
)  # fmt: skip


# ---- files of rows --------------------------------------------------------------------


def edit_lines(data: bytes, random: Random) -> bytes:
    """Lines missing, twice, swapped, joined, without end, or ended otherwise."""
    lines = data.splitlines(keepends=True)
    place, other = (int(random.integers(len(lines))) for _ in range(2))
    match int(random.integers(7)):
        case 0:
            del lines[place]
        case 1:
            lines.insert(place, lines[other])
        case 2:
            lines[place], lines[other] = lines[other], lines[place]
        case 3:
            lines[place] = lines[place].rstrip(b"\r\n")
        case 4:
            lines[place] = b"\n" * int(random.integers(1, 5))
        case 5:
            return data.replace(b"\n", choose(random, [b"\r\n", b"\r", b"\n\n", b"\0\n"]))
        case _:
            lines[place] = lines[place].rstrip(b"\r\n") * int(random.integers(2, 200)) + b"\n"
    return b"".join(lines)


#: What a field of text is replaced by.
FIELDS = (
    b"", b"nan", b"inf", b"-inf", b"1e999", b"-1e308", b"1e151", b"1_000", b"0x1F", b"--1", b"1e",
    b".", b'"', b'""', b'"a', b'a"b"', b"\xff\xfe", b"\xc3\x28", b"true", b"NULL", b"2024-02-30",
    b"1,5", b"9" * 400, b"x" * 70_000, b"\xef\xbb\xbf", b"=1+1", b"1:2", b":", b"0:1", b"-5:1",
    b"99999999999:1", b"1:", b"#", b" ", b"\t",
)  # fmt: skip


def edit_field(data: bytes, random: Random) -> bytes:
    """A field of one line, also of the first, becomes something else."""
    lines = data.split(b"\n")
    for _ in range(int(random.integers(1, 4))):
        place = 0 if random.random() < 0.2 else int(random.integers(len(lines)))
        mark = next((m for m in (b",", b"\t", b" ") if m in lines[place]), b",")
        fields = lines[place].split(mark)
        fields[int(random.integers(len(fields)))] = choose(random, FIELDS)
        lines[place] = mark.join(fields)
    return b"\n".join(lines)


TEXT = (*BYTES, edit_lines, edit_field, edit_lines, edit_field)


def edit_npz(data: bytes, random: Random) -> bytes:
    """The header or the content of an array inside, and the archive's own checksum right again."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = choose(random, list(members))
    member = members[name]
    if random.random() < 0.3:
        members[name] = choose(random, BYTES)(member, random)
    else:
        length = int.from_bytes(member[8:10], "little")
        text = choose(random, [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 3), }",
            "{'descr': '|O', 'fortran_order': False, 'shape': (3, 3), }",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (60,), }",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (-1, 3), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
            "{'descr': '<c16', 'fortran_order': False, 'shape': (30, 3), }",
            "{'descr': '<U4', 'fortran_order': False, 'shape': (30, 3), }",
            "{'descr': '<M8[us]', 'fortran_order': False, 'shape': (60,), }",
            "{'descr': '<f8', 'shape': (3, 3), }", "{'descr': " + "[" * 300, "1", "",
        ]).encode()  # fmt: skip
        header = text.ljust(length - 1)[: max(length, len(text))] + b"\n"
        members[name] = (member[:8] + len(header).to_bytes(2, "little") + header
                         + member[10 + length :])  # fmt: skip
    if random.random() < 0.1:
        members[choose(random, ["X.npy", "y.npy", "Z.npy", "X"])] = members.pop(name)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, value in members.items():
            archive.writestr(key, value)
    return out.getvalue()


def inside_gzip(data: bytes, random: Random) -> bytes:
    """The text is damaged, and compressed as if it were right."""
    return gzip.compress(choose(random, TEXT)(gzip.decompress(data), random), mtime=0)


#: How the formats of rows are damaged; the others as bytes.
ROWS_OF: dict[str, tuple[Callable[[bytes, Random], bytes], ...]] = {
    "csv": TEXT,
    "tsv": TEXT,
    "libsvm": TEXT,
    "csv.gz": (*BYTES, inside_gzip, inside_gzip),
    "libsvm.gz": (*BYTES, inside_gzip, inside_gzip),
    "npz": (*BYTES, *[edit_npz] * 4),
}
