import hashlib
import json
import os
import pickle
import random
import signal
import stat
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelstream import storage

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions, links and signals")

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
plain_arrays = hnp.arrays(
    st.sampled_from(sorted(storage.DTYPES)),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


def frame(header, payload=b""):
    """Return a file with a right checksum around any header at all."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = storage.MAGIC + len(text).to_bytes(8, "little") + text + payload
    return body + hashlib.sha256(body).digest()


def header_of(*arrays, **fields):
    return {"format": 1, "kind": "k", "header": {}, "arrays": list(arrays), **fields}


def entry(dtype="float64", shape=(), name="a"):
    return {"name": name, "dtype": dtype, "shape": shape}


@pytest.fixture
def small_file():
    return storage.dumps("small", {"gamma": 0.1}, {"w": np.arange(3.0), "b": np.array([True])})


def assert_refused(data, error=storage.ModelFileError, match=None):
    """The error comes soon and without memory."""
    tracemalloc.start()
    started = time.perf_counter()
    try:
        with pytest.raises(error, match=match):
            storage.loads(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - started < 5
    assert peak < 2**20 + 10 * len(data)


# Round trip


@given(
    kind=st.text(),
    header=st.dictionaries(st.text(), json_values, max_size=4),
    arrays=st.dictionaries(st.text(), plain_arrays, max_size=4),
)
def test_round_trip(kind, header, arrays):
    data = storage.dumps(kind, header, arrays)
    document = storage.loads(data)
    assert document.kind == kind
    assert repr(document.header) == repr(header)  # repr tells -0.0 from 0.0 and 1 from True
    assert list(document.arrays) == list(arrays)
    for name, array in arrays.items():
        loaded = document.arrays[name]
        assert loaded.dtype == array.dtype
        assert loaded.shape == array.shape
        assert loaded.tobytes() == array.tobytes()  # NaN payloads too
        assert loaded.flags.writeable
        assert loaded.flags.c_contiguous
        assert loaded.flags.aligned
    assert storage.dumps(*document) == data


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(12.0)[::-2],
        np.arange(5, dtype=">i8"),
        np.empty((0, 2**61), dtype=np.uint8),
    ],
    ids=["fortran", "strided", "big-endian", "empty-huge"],
)
def test_layout_of_the_input_does_not_matter(array):
    loaded = storage.loads(storage.dumps("k", {}, {"a": array})).arrays["a"]
    assert loaded.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(loaded, array)


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.array(["text"]),
        np.array([1j]),
        np.zeros(1, dtype=[("x", "f8")]),
        np.array(["2026-01-01"], dtype="M8[D]"),
    ],
    ids=["object", "text", "complex", "structured", "datetime"],
)
def test_other_dtypes_are_not_written(array):
    with pytest.raises(TypeError, match="array 'a' has dtype"):
        storage.dumps("k", {}, {"a": array})


@pytest.mark.parametrize(
    "header",
    [{"a": (1, 2)}, {1: "a"}, {"a": object()}, {"a": np.int64(1)}],
    ids=["tuple", "integer-key", "object", "numpy-integer"],
)
def test_headers_that_json_would_change_are_not_written(header):
    with pytest.raises(TypeError):
        storage.dumps("k", header, {})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "x" * storage.MAX_HEADER_BYTES])
def test_headers_that_could_not_be_read_are_not_written(value):
    with pytest.raises(ValueError, match=r"JSON compliant|longer than"):
        storage.dumps("k", {"a": value}, {})


# Damage


def test_every_changed_byte_is_noticed(small_file):
    for position in range(len(small_file)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(small_file)
            damaged[position] ^= flip
            with pytest.raises(storage.ModelFileError):
                storage.loads(bytes(damaged))


def test_every_truncation_is_noticed(small_file):
    for length in range(len(small_file)):
        with pytest.raises(storage.ModelFileError):
            storage.loads(small_file[:length])


def test_damage_is_named(small_file):
    with pytest.raises(storage.TruncatedFileError):
        storage.loads(b"")
    with pytest.raises(storage.TruncatedFileError):
        storage.loads(small_file[:-1])
    with pytest.raises(storage.ChecksumError):
        storage.loads(small_file[:-40] + b"?" + small_file[-39:])
    with pytest.raises(storage.ChecksumError):
        storage.loads(small_file + b"more")
    with pytest.raises(storage.ChecksumError):
        storage.loads(small_file.replace(b'"format":1', b'"format":2'))


def test_pickle_is_refused():
    class Trap:
        def __reduce__(self):
            return os.abort, ()

    assert_refused(pickle.dumps(Trap()), storage.NotAModelFileError, "not a kernelstream")


def test_newer_format_asks_for_an_upgrade():
    header = {"format": 2, "something": "new"}
    assert_refused(frame(header), storage.NewerFormatError, "upgrade")


@pytest.mark.parametrize(
    "shape",
    [
        [2**62, 2**62],
        [2**63],
        [10**4000],
        [0, 2**62, 2**62],
        [-1],
        [-1, -1],
        [1.0],
        ["1"],
        [True],
        [None],
        [[1]],
        [1] * 65,
        "1",
        1,
        None,
        {"0": 1},
    ],
    ids=lambda shape: str(shape)[:20],
)
def test_hostile_shapes(shape):
    assert_refused(frame(header_of(entry(shape=shape)), bytes(8)), storage.MalformedFileError)


@pytest.mark.parametrize(
    "dtype", ["object", "O", "|O", "<f8", "float16", "U1000000000", "", 8, None]
)
def test_hostile_dtypes(dtype):
    assert_refused(frame(header_of(entry(dtype=dtype)), bytes(8)), storage.MalformedFileError)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'"' + b'\\"' * 100_000,
        b'{"format": 1' + b"0" * 5000 + b"}",
        b"[" + b"[]," * (storage.MAX_HEADER_BYTES // 3) + b"[]]",
        json.dumps(header_of()).encode().replace(b"{}", b'{"a": NaN}'),
        json.dumps(header_of()).encode().replace(b"{}", b'{"a": -Infinity}'),
        json.dumps(header_of()).encode().replace(b"{}", b'{"a": 1e999}'),
        json.dumps(header_of()).encode().replace(b"{}", b'{"a": 1, "a": 1}'),
        {},
        header_of(format=0),
        header_of(format=-1),
        header_of(format=True),
        header_of(format=1.0),
        header_of(format="1"),
        header_of(kind=1),
        header_of(header=[]),
        header_of(arrays={}),
        header_of(extra=1),
        header_of("a"),
        header_of({}),
        header_of({**entry(), "extra": 1}),
        header_of(entry(name=1)),
        header_of(entry(shape=[0]), entry(shape=[0])),
    ],
    ids=lambda header: str(header)[:40],
)
def test_hostile_headers(header):
    assert_refused(frame(header), storage.MalformedFileError)


@pytest.mark.parametrize("nbytes", [0, 7, 9, 16])
def test_arrays_must_fill_the_file_exactly(nbytes):
    assert_refused(
        frame(header_of(entry(shape=[1])), bytes(nbytes)), storage.MalformedFileError, "8 bytes"
    )


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 10**6])
def test_hostile_header_length(length):
    body = storage.MAGIC + length.to_bytes(8, "little") + b"{}"
    assert_refused(body + hashlib.sha256(body).digest(), storage.TruncatedFileError)


def test_bool_bytes_other_than_0_and_1_are_refused():
    assert_refused(
        frame(header_of(entry("bool", [2])), b"\x01\x02"), storage.MalformedFileError, "bool"
    )


@given(st.binary(max_size=200))
def test_no_header_gives_anything_but_our_error(text):
    with pytest.raises(storage.ModelFileError):
        storage.loads(frame(text))


# Files


@pytest.mark.parametrize("as_path", [str, Path])
def test_files(tmp_path, as_path):
    path = as_path(tmp_path / "model")
    storage.write(path, "k", {"a": 1}, {"w": np.ones(2)})
    storage.write(path, "k", {"a": 2}, {"w": np.zeros(2)})
    document = storage.read(path)
    assert document.header == {"a": 2}
    np.testing.assert_array_equal(document.arrays["w"], np.zeros(2))
    assert os.listdir(tmp_path) == ["model"]


def test_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage.write("model", "k", {}, {})
    assert storage.read("model").kind == "k"


def test_error_names_the_file(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("some text, long enough to be anything")
    with pytest.raises(storage.NotAModelFileError, match=r"notes\.txt: not a kernelstream"):
        storage.read(path)


def test_missing_folder_is_the_plain_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        storage.write(tmp_path / "missing" / "model", "k", {}, {})
    with pytest.raises(FileNotFoundError):
        storage.read(tmp_path / "missing")


@pytest.mark.parametrize("function", ["replace", "fsync", "chmod"])
def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch, function):
    path = tmp_path / "model"
    storage.write(path, "old", {}, {})

    def fail(*args):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(OSError, match="disk full"):
            storage.write(path, "new", {}, {})
    assert storage.read(path).kind == "old"
    assert os.listdir(tmp_path) == ["model"]


@posix
def test_full_disk_leaves_the_old_file(tmp_path):
    import resource

    path = tmp_path / "model"
    storage.write(path, "old", {}, {})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            storage.write(path, "new", {}, {"a": np.zeros(2**18)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert storage.read(path).kind == "old"
    assert os.listdir(tmp_path) == ["model"]


def test_refused_document_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    storage.write(path, "old", {}, {})
    with pytest.raises(TypeError):
        storage.write(path, "new", {}, {"a": np.array([object()])})
    assert storage.read(path).kind == "old"


def test_folder_is_not_replaced(tmp_path):
    with pytest.raises(OSError, match="not a regular file"):
        storage.write(tmp_path, "k", {}, {})


@posix
def test_special_file_is_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        storage.write(path, "k", {}, {})
    assert stat.S_ISFIFO(path.stat().st_mode)


@posix
def test_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real/model")
    for kind in ("first", "second"):  # first through a dangling link, then over a file
        storage.write(link, kind, {}, {})
        assert link.is_symlink()
        assert storage.read(tmp_path / "real" / "model").kind == kind


@posix
def test_permissions(tmp_path):
    path = tmp_path / "model"
    umask = os.umask(0o027)
    try:
        storage.write(path, "k", {}, {})
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        for mode in (0o600, 0o666, 0o444):
            path.chmod(mode)
            storage.write(path, "k", {}, {})
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(umask)


@posix
def test_kill_at_any_moment_leaves_a_whole_file(tmp_path):
    # The module is loaded by itself: importing the whole package 15 times would take a minute.
    writer = textwrap.dedent(
        """
        import importlib.util, itertools, sys
        import numpy as np

        spec = importlib.util.spec_from_file_location("storage", sys.argv[1])
        storage = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(storage)
        for i in itertools.count():
            storage.write(sys.argv[2], "k", {"value": i % 2}, {"a": np.full(300_000, i % 2)})
            if i == 0:
                print("started", flush=True)
        """
    )
    path = tmp_path / "model"
    storage.write(path, "k", {"value": 0}, {"a": np.full(300_000, 0)})
    moments = random.Random(0)
    for _ in range(15):
        process = subprocess.Popen(
            [sys.executable, "-c", writer, storage.__file__, path],
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdout.readline() == "started\n"
            time.sleep(moments.uniform(0, 0.03))
            process.kill()
        assert process.returncode == -signal.SIGKILL
        document = storage.read(path)
        assert document.header["value"] in (0, 1)
        assert (document.arrays["a"] == document.header["value"]).all()
