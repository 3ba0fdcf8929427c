"""Tests of LIBSVM sources."""

import gzip
import io
import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from kernelstream.streams import StreamError, open_stream, records
from kernelstream.streams.libsvm import largest_index, looks_like_libsvm
from tests.streams.tools import same_batches


def make(tmp_path, n=100, p=12, name="file.libsvm"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * (rng.uniform(size=(n, p)) < 0.4)
    y = rng.integers(2, size=n) * 2 - 1
    X[-1, -1] = 5  # the widest row is the last
    buffer = io.BytesIO()
    dump_svmlight_file(X, y, buffer, zero_based=False)
    path = tmp_path / name
    path.write_bytes(gzip.compress(buffer.getvalue()) if name.endswith("gz") else buffer.getvalue())
    return path, X, y


@pytest.mark.parametrize("name", ["file.libsvm", "file.svm.gz"])
@pytest.mark.parametrize("block_bytes", [50, 1 << 20])
def test_read_back_and_resumed(tmp_path, monkeypatch, name, block_bytes):
    monkeypatch.setattr(records, "BLOCK_BYTES", block_bytes)
    path, X, y = make(tmp_path, name=name)
    stream = open_stream(path, batch_rows=7, target="target")
    assert stream.matrix_width == 12
    assert stream.schema == {"target": "number"}
    positions, batches = [stream.position], []
    for batch in stream:
        batches.append(batch)
        positions.append(json.loads(json.dumps(stream.position)))
    found = np.concatenate([batch.matrix.toarray() for batch in batches])
    np.testing.assert_allclose(found, X)
    assert np.concatenate([batch.columns["target"] for batch in batches]).tolist() == y.tolist()
    assert np.concatenate([batch.lines for batch in batches]).tolist() == list(range(1, 101))
    assert {len(batch) for batch in batches[:-1]} == {7}
    for done, position in enumerate(positions):
        resumed = open_stream(path, batch_rows=7, position=position, schema=stream.schema)
        assert same_batches(list(resumed), batches[done:])


def test_comments_queries_and_blank_lines(tmp_path):
    path = tmp_path / "file.libsvm"
    path.write_text("# all\n1 qid:3 1:2 3:4 # about 99:1\n\n-1\n  # more\n2.5 2:-1e3")
    batch = next(open_stream(path))
    assert batch.matrix.toarray().tolist() == [[2, 0, 4], [0, 0, 0], [0, -1000, 0]]
    assert batch.columns["target"].tolist() == [1, -1, 2.5]
    assert batch.lines.tolist() == [2, 4, 6]


WRONG = {
    "x 1:2": "the target is 'x', not a number",
    "1 1:2 2:abc": "feature 2 is 'abc', not a number",
    "1 0:2": "indices begin at 1",
    "1 3:1 2:1": "index 2 follows 3",
    "1 2:1 2:1": "index 2 follows 2",
    "1 13:1": "index 13 is beyond the 12 features",
    "1 99999999999999999999:1": "index '99999999999999999999' is larger than 2147483647",
    "1 2147483648:1": "index '2147483648' is larger than 2147483647",
    f"1 1{'0' * 5000}:1": "is larger than 2147483647",
    "1_0 1:2": "the target is '1_0', not a number",
    "1 1:1_0": "feature 1 is '1_0', not a number",
    "1 1:0\x001": r"feature 1 is '0\\x001', not a number",
    "0\x001 1:1": r"the target is '0\\x001', not a number",
    "inf 1:1": "the target is 'inf', not a finite number",
    "1 1:-1e200": "feature 1 is '-1e200', not a finite number of at most",
    "1 1:nan": "feature 1 is 'nan', not a finite number",
    "1 2": "'2' is not of the form index:value",
    "1 a:2": "'a:2' is not of the form",
}


@pytest.mark.parametrize("line", WRONG)
@pytest.mark.parametrize("block_bytes", [50, 1 << 20])
def test_bad_rows(tmp_path, monkeypatch, line, block_bytes):
    monkeypatch.setattr(records, "BLOCK_BYTES", block_bytes)
    path, X, _ = make(tmp_path)
    lines = path.read_text().splitlines()
    lines[41] = line
    path.write_text("\n".join(lines))
    aside = tmp_path / "bad.libsvm"
    options = {"batch_rows": 10, "n_features": 12}
    stream = open_stream(path, on_bad="quarantine", quarantine=aside, **options)
    batches = list(stream)
    np.testing.assert_allclose(
        np.concatenate([batch.matrix.toarray() for batch in batches]), np.delete(X, 41, axis=0)
    )
    assert [len(batch) for batch in batches] == [10] * 4 + [9] + [10] * 5
    assert stream.bad.count == 1
    assert aside.read_text() == line + "\n"
    with pytest.raises(StreamError, match=rf"line 42: .*{WRONG[line]}"):
        list(open_stream(path, **options))


def test_an_index_that_is_too_large_does_not_count_for_the_width(tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_text("1 2147483648:1\n1 2:1\n")
    stream = open_stream(path, on_bad="skip")
    assert next(stream).matrix.toarray().tolist() == [[0, 1]]
    path.write_text("1 2147483648:1\n")
    with pytest.raises(StreamError, match="line 1: index '2147483648' is larger than 2147483647"):
        next(open_stream(path))


def test_targets_may_be_missing(tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_text("nan 1:1\n1 2:1\n# all\nnan 1:2\n")
    assert np.isnan(next(open_stream(path)).columns["target"]).tolist() == [True, False, True]


def test_refused(tmp_path, monkeypatch):
    path, _, _ = make(tmp_path)
    with pytest.raises(StreamError, match="its target is 'target', not 'load'"):
        open_stream(path, target="load")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"1 1:2\n"))))
    with pytest.raises(StreamError, match="n_features="):
        open_stream("-", format="libsvm")
    stream = open_stream("-", format="libsvm", n_features=3)
    assert next(stream).matrix.toarray().tolist() == [[2, 0, 0]]
    path.write_bytes(b"")
    with pytest.raises(StreamError, match="is empty"):
        open_stream(path)


@given(st.lists(st.integers(0, 2**31 - 1), max_size=20), st.booleans())
def test_largest_index(indices, has_comment):
    data = b"".join(b"1 qid:77 %d:1.5e10 3:2:4\n" % index for index in indices)
    data += b"# 4000000:1\n" * has_comment + b"1 99999999999:1"
    assert largest_index(data) == max([*indices, 3]) if indices else largest_index(data) == 0


@pytest.mark.parametrize(
    ("line", "is_row"),
    [
        (b"1 1:0.5 3:2\n", True),
        (b"+1\t7:-1e-3\r\n", True),
        (b"2.5 qid:4 1:.5 # a note\n", True),
        (b"1\n", False),
        (b"label 1:0.5\n", False),
        (b"1 1:0.5,2\n", False),
        (b"1 10:30 o'clock\n", False),
        (b"1,2:3\n", False),
        (b"# 1 1:2\n", False),
    ],
)
def test_looks_like_libsvm(line, is_row):
    assert looks_like_libsvm(line) == is_row


def test_read_as_csv(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\n1 1:0.5 3:2\n0 2:1\n")
    with pytest.raises(StreamError, match="begins with a row of LIBSVM text"):
        open_stream(path)
    assert len(next(open_stream(path, format="libsvm"))) == 2
    assert len(next(open_stream(path, header=False))) == 2  # texts that only look like it
