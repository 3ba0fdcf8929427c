"""How many inputs texts get where nobody says it."""

import json

import numpy as np
import pandas as pd
import pytest

from kernelstream import Preparation, StreamModel
from kernelstream.streams.batch import Batch, Text
from tests.cli.tools import Tool


def texts(values, times):
    codes = np.tile(np.arange(values, dtype=np.int32), times)
    return Batch({"c": Text(codes, [f"v{i}" for i in range(values)])}, lines=np.arange(len(codes)))


@pytest.mark.parametrize(
    ("values", "times", "buckets"), [(96, 3, 128), (97, 2, 128), (97, 3, 256), (2000, 3, 256)]
)
def test_the_first_batch_decides_unless_it_is_said(values, times, buckets):
    batch = texts(values, times)
    preparation = Preparation({"c": "text"}).start(batch)
    assert preparation.width == buckets
    assert preparation.transform(batch, learn=True).shape[1] == buckets
    assert Preparation({"c": "text"}, buckets=9).start(batch).width == 9
    header, arrays = preparation.to_document()
    again = Preparation.from_document(json.loads(json.dumps(header)), arrays)
    assert again.width == buckets
    assert again.same_as(preparation)


def test_missing_texts_and_files_without_any_need_no_more():
    gaps = Batch({"c": Text(np.full(500, -1, np.int32), [])}, lines=np.arange(500))
    assert Preparation({"c": "text"}).start(gaps).width == 128
    with pytest.raises(ValueError, match="buckets must be a whole number"):
        Preparation({"c": "text"}, buckets=0)


def test_many_texts_are_told_apart(monkeypatch, capsys, tmp_path):
    """Each town has a mean of its own, which texts that share an input cannot show."""
    random = np.random.default_rng(0)
    town = random.integers(180, size=3000)
    rows = pd.DataFrame({"town": [f"t{i}" for i in town], "height": random.normal(size=180)[town]})

    def error(model):
        predicted, true = model.predict_then_learn(rows)
        return np.abs(predicted - true)[1500:].mean()

    more, few = (StreamModel.for_rows(rows, "height", buckets=n) for n in (None, 128))
    assert error(more) < 0.5 * error(few)

    rows.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    tool = Tool(monkeypatch, capsys)
    tool("learn", "rows.csv", "--target", "height", "--model", "polk", "--out", "model.ks")
    assert StreamModel.load("model.ks").preparation.buckets == 256
