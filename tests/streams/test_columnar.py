"""Tests of Parquet, Arrow and data frame sources."""

import contextlib
import datetime
import decimal
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest

from kernelstream.streams import StreamError, open_stream
from tests.streams.tools import as_list, read_all, same_batches

N = 100


def make_table():
    rng = np.random.default_rng(0)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=row) for row in range(N)]
    return pa.table(
        {
            "whole": pa.array([None if row % 9 == 0 else row for row in range(N)], pa.int32()),
            "real": rng.normal(size=N),
            "truth": [row % 2 == 0 for row in range(N)],
            "exact": pa.array([decimal.Decimal(row) / 4 for row in range(N)], pa.decimal128(9, 2)),
            "word": [None if row % 7 == 0 else f"w{row % 5}" for row in range(N)],
            "code": pa.array([f"k{row % 3}" for row in range(N)]).dictionary_encode(),
            "day": pa.array(days, pa.date32()),
            "moment": pa.array(
                [None, *(row * 10**9 for row in range(1, N))], pa.timestamp("ns", "UTC")
            ),
            "nothing": pa.nulls(N),
        }
    )


KINDS = {
    **dict.fromkeys(["whole", "real", "truth", "exact"], "number"),
    **dict.fromkeys(["word", "code"], "text"),
    **dict.fromkeys(["day", "moment"], "date"),
    "nothing": "number",
}


def save(kind, folder, table):
    path = folder / f"file.{kind.split()[0]}"
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=23)
    elif kind == "feather":
        feather.write_feather(table, path, chunksize=17)
    elif kind == "arrow file":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=9)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=9)
    return path


FILES = ["parquet", "feather", "arrow file", "arrow stream"]


@pytest.mark.parametrize("batch_rows", [1, 10, 23, 64, 1000])
@pytest.mark.parametrize("kind", FILES)
def test_read_back_and_resumed(tmp_path, kind, batch_rows):
    table = make_table()
    path = save(kind, tmp_path, table)
    stream = open_stream(path, batch_rows=batch_rows, target="real")
    assert stream.schema == KINDS
    positions, batches = [stream.position], []
    for batch in stream:
        batches.append(batch)
        positions.append(json.loads(json.dumps(stream.position)))
    assert {len(batch) for batch in batches[:-1]} <= {batch_rows}
    assert np.concatenate([batch.lines for batch in batches]).tolist() == list(range(N))
    for name in ("whole", "real", "truth", "exact", "word", "code", "nothing"):
        found = [value for batch in batches for value in as_list(batch.columns[name])]
        assert found == table[name].to_pylist()
    for name in ("day", "moment"):
        column = np.concatenate([batch.columns[name] for batch in batches])
        assert column.dtype == np.dtype("datetime64[us]")
        expected = table[name].to_numpy().astype("datetime64[us]")
        assert column.tobytes() == expected.tobytes()
    for done in range(0, len(positions), max(1, len(positions) // 10)):
        position = positions[done]
        resumed = open_stream(path, batch_rows=batch_rows, position=position, schema=stream.schema)
        assert same_batches(list(resumed), batches[done:])


@pytest.mark.parametrize("kind", FILES)
def test_columns_and_refusals(tmp_path, kind):
    table = make_table().append_column("pair", pa.array([[1, 2]] * N))
    path = save(kind, tmp_path, table)
    with pytest.raises(StreamError, match=r"column 'pair' holds list.*columns="):
        open_stream(path)
    rows, _, _ = read_all(path, columns=["word"], target="whole", schema={"whole": "text"})
    assert list(rows) == ["whole", "word"]
    assert rows["whole"][:3] == [None, "1", "2"]
    with pytest.raises(StreamError, match="Did you mean 'real'"):
        open_stream(path, target="reel")
    with pytest.raises(StreamError, match="column 'word' does not convert to number"):
        read_all(path, columns=["word"], schema={"word": "number"})
    save(kind, tmp_path, table.slice(0, 0))
    with pytest.raises(StreamError, match="has no rows"):
        open_stream(path, columns=["word"])
    path.write_bytes(b"nonsense")
    with pytest.raises(StreamError, match=r"is no .* file .*format="):
        open_stream(path)


@pytest.mark.parametrize("kind", FILES)
def test_damage_raises_an_error_that_names_the_file(tmp_path, kind):
    words = pa.array([f"{number:x}" * 40 for number in range(N)])
    path = save(kind, tmp_path, pa.table({"word": words}))
    data = bytearray(path.read_bytes())
    place = len(data) // 4  # before the footer
    # No text, no compressed data, no lengths; more than the statistics that nobody reads.
    data[place : place + 320] = bytes(range(200, 240)) * 8
    path.write_bytes(data)
    with pytest.raises(
        StreamError, match=rf"{re.escape(str(path))} is damaged after row \d+ \(.+\)"
    ):
        read_all(path)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_frames(library):
    columns = {"a": [1, 2, None, 4], "b": ["x", None, "y", "x"], "c": [True, False, True, True]}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[library](columns)
    rows, lines, stream = read_all(frame, batch_rows=3, target="b")
    assert rows == columns
    assert lines == [0, 1, 2, 3]
    assert stream.schema == {"a": "number", "b": "text", "c": "number"}
    first = open_stream(frame, batch_rows=2)
    next(first)
    rows, lines, _ = read_all(
        frame, batch_rows=2, position=first.position, schema=first.schema, columns=["a"]
    )
    assert rows == {"a": [None, 4]}
    assert lines == [2, 3]


def test_frame_with_an_index_of_its_own():
    frame = pd.DataFrame({"a": [1.0, 2.0], "t": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    frame.index = [7, 9]
    rows, _, stream = read_all(frame)
    assert rows["a"] == [1, 2]
    assert stream.schema == {"a": "number", "t": "date"}
    with pytest.raises(StreamError, match="has no column 'b'"):
        open_stream(frame, target="b")


def test_frames_with_numbers_for_names_and_with_mixed_columns():
    pandas = pytest.importorskip("pandas")
    rows, _, _ = read_all(pandas.DataFrame([[1.0, 2.0], [3.0, 4.0]]), batch_rows=1)
    assert rows == {"0": [1.0, 3.0], "1": [2.0, 4.0]}
    mixed = pandas.DataFrame({"a": [1, "x"]})
    with pytest.raises(StreamError, match=r"the data frame cannot be read .*column a .*Convert"):
        read_all(mixed)


def test_something_else_is_refused():
    with pytest.raises(StreamError, match="a path, '-', arrays"):
        open_stream(42)


def test_types_that_arrow_does_not_know_are_a_damaged_file(tmp_path):
    """A byte of an Arrow file that says integers have 65 bits."""
    path = tmp_path / "rows.arrow"
    with pa.ipc.new_file(path, pa.schema([("a", pa.int64())])) as writer:
        writer.write_table(pa.table({"a": [1, 2, 3]}))
    data = path.read_bytes()
    said = set()
    for place in [i for i, byte in enumerate(data) if byte == 64]:
        path.write_bytes(data[:place] + b"\x41" + data[place + 1 :])
        with contextlib.suppress(StopIteration):
            try:
                next(open_stream(path))
            except StreamError as error:
                assert str(path) in str(error)  # noqa: PT017
                said.add(str(error))
    assert any("not implemented" in text for text in said)
