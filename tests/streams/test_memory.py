"""Tests of array and .npz sources."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelstream.streams import StreamError, Text, open_stream
from tests.streams.tools import as_list, same_batches

X = np.arange(20.0).reshape(10, 2)
Y = np.arange(10)


@pytest.mark.parametrize("features", [X, csr_array(X), X.astype(np.float32), X.tolist()])
def test_arrays(features):
    stream = open_stream((features, Y), batch_rows=4, target="target")
    assert stream.schema == {"target": "number"}
    assert stream.matrix_width == 2
    positions, batches = [stream.position], []
    for batch in stream:
        batches.append(batch)
        positions.append(stream.position)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    for batch in batches:
        matrix = batch.matrix
        assert matrix.dtype == np.float64
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        assert dense.tolist() == X[batch.lines].tolist()
        assert batch.columns["target"].tolist() == batch.lines.tolist()
    for done, position in enumerate(positions):
        resumed = open_stream((features, Y), batch_rows=4, position=position)
        assert same_batches(list(resumed), batches[done:])


def test_no_copies():
    sparse = csr_array(X)
    assert np.shares_memory(next(open_stream((X, Y))).matrix, X)
    assert np.shares_memory(next(open_stream((sparse, Y), batch_rows=3)).matrix.data, sparse.data)


def test_targets():
    words = np.array(["b", "a", "b"] * 3 + ["c"])
    batch = next(open_stream((X, words)))
    assert isinstance(batch.columns["target"], Text)
    assert batch.columns["target"].values == ["b", "a", "c"]
    missing = np.array(["b", None, float("nan")] * 3 + ["c"], object)
    column = next(open_stream((X, missing))).columns["target"]
    assert as_list(column) == ["b", None, None] * 3 + ["c"]
    assert next(open_stream((X, Y > 3))).columns["target"].tolist() == [0.0] * 4 + [1.0] * 6
    alone = open_stream((X, None))
    assert alone.schema == {}
    assert next(alone).columns == {}


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ((X, Y), {"target": "load"}, "its target is 'target', not 'load'"),
        ((X, None), {"target": "target"}, "no target y"),
        ((X, Y[:3]), {}, "one value for each of the 10 rows"),
        ((Y, Y), {}, "rows and columns"),
        ((X[:0], Y[:0]), {}, "no rows"),
        ((X.astype(str), Y), {}, "X must hold numbers"),
        ((X, Y.astype(complex)), {}, "y must hold"),
    ],
)
def test_refused(source, options, message):
    with pytest.raises(StreamError, match=message):
        open_stream(source, **options)


def test_npz(tmp_path):
    path = tmp_path / "file.npz"
    np.savez(path, X=X, y=Y)
    assert next(open_stream(path)).matrix.tolist() == X.tolist()
    np.savez(path, X_train=X[:7], y_train=Y[:7], X_test=X[7:], y_test=Y[7:])
    assert len(next(open_stream(path, target="target"))) == 7
    np.savez(path, images=X)
    with pytest.raises(StreamError, match="but: images"):
        open_stream(path)
    np.savez(path, X=np.array([{}], object), y=Y[:1])
    with pytest.raises(StreamError, match=r"is no \.npz file of plain arrays"):
        open_stream(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(StreamError, match=r"is no \.npz file"):
        open_stream(path)
    path.unlink()
    with pytest.raises(StreamError, match="no such file"):
        open_stream(path)
