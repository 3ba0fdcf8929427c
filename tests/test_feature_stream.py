"""Features of raw rows: preparation and extractor together, and their file."""

import numpy as np
import pytest

import kernelstream
from kernelstream import storage
from kernelstream.feature_stream import StreamFeatures
from kernelstream.features import KernelFeatures, OnlineKernelFeatures
from kernelstream.preparation import Preparation
from kernelstream.streams.batch import Batch, Text

SCHEMA = {"a": "number", "b": "number", "zone": "text"}


def rows(n, seed=0):
    random = np.random.default_rng(seed)
    zone = Text(random.integers(2, size=n).astype(np.int32), ["north", "coast"])
    a, b = random.normal(5.0, 2.0, (2, n))
    return Batch({"a": a, "b": b, "zone": zone}, lines=np.arange(n))


def cut(batch, first, end):
    zone = batch.columns["zone"]
    columns = {name: batch.columns[name][first:end] for name in "ab"}
    columns["zone"] = Text(zone.codes[first:end], zone.values)
    return Batch(columns, lines=batch.lines[first:end])


def new(**settings):
    preparation = Preparation(SCHEMA, buckets=8, warm_up=100)
    extractor = OnlineKernelFeatures(4, max_points=12, gamma=0.3, random_state=0, **settings)
    return StreamFeatures(extractor, preparation)


def test_same_as_the_two_parts():
    batch, stream = rows(300), new()
    errors = stream.learn(batch)
    preparation = Preparation(SCHEMA, buckets=8, warm_up=100)
    X = preparation.transform(batch, learn=True)
    extractor = OnlineKernelFeatures(4, max_points=12, gamma=0.3, random_state=0)
    assert np.array_equal(errors, extractor.partial_fit_errors(X), equal_nan=True)
    fresh = rows(20, seed=1)
    expected = preparation.transform(fresh)
    assert np.array_equal(stream.transform(fresh), extractor.transform(expected))
    assert np.array_equal(stream.fit_error(fresh), extractor.inverse_fit_error(expected))


def test_batches_do_not_matter():
    batch, whole, parts = rows(300), new(), new()
    whole.preparation.start(batch)
    parts.preparation.start(batch)
    whole.learn(batch)
    for first in range(0, 300, 37):
        parts.learn(cut(batch, first, first + 37))
    assert parts.fingerprint() == whole.fingerprint()


def test_goes_on_after_a_file(tmp_path):
    batch, stream = rows(300), new(step_size="tracking")
    stream.learn(cut(batch, 0, 170))
    stream.save(tmp_path / "features.ks")
    again = kernelstream.load(tmp_path / "features.ks")
    assert isinstance(again, StreamFeatures)
    stream.learn(cut(batch, 170, 300))
    again.learn(cut(batch, 170, 300))
    assert again.fingerprint() == stream.fingerprint()


def test_a_bad_row_changes_nothing():
    stream = new()
    stream.learn(rows(200))
    before = stream.fingerprint()
    bad = rows(50, seed=1)
    bad.columns["a"][40] = np.inf
    with pytest.raises(ValueError, match="40"):
        stream.learn(bad)
    assert stream.fingerprint() == before


def test_parts_that_do_not_belong_together(tmp_path):
    with pytest.raises(ValueError, match="suggested_gamma"):
        StreamFeatures(OnlineKernelFeatures(gamma="scale"), Preparation(SCHEMA))
    with pytest.raises(ValueError, match="KernelFeatures"):
        StreamFeatures(KernelFeatures(), Preparation(SCHEMA))
    stream = new()
    stream.learn(rows(200))
    header, arrays = stream._document()
    header["preparation"]["buckets"] = 9
    storage.write(tmp_path / "bad.ks", "StreamFeatures", header, arrays)
    with pytest.raises(storage.ModelFileError, match="not those of the preparation"):
        StreamFeatures.load(tmp_path / "bad.ks")
