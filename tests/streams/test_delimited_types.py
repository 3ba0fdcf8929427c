"""What columns of CSV files hold: numbers, texts, truth, dates and times of day."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest

from kernelstream.streams import StreamError, Text, open_stream
from kernelstream.streams.python_rows import as_batch
from tests.streams.tools import read_all


def test_kinds_and_dtypes(write):
    content = "n,t,d,s,z\n1,x,2020-01-02,2020-01-02 03:04:05.678901,2020-01-02T03:04:05Z\n,,,,\n"
    stream = open_stream(write(content))
    assert stream.schema == {"n": "number", "t": "text", "d": "date", "s": "date", "z": "date"}
    batch = next(stream)
    assert batch.columns["n"].dtype == np.float64
    assert isinstance(batch.columns["t"], Text)
    assert batch.columns["t"].codes.dtype == np.int32
    dates = {"d": "2020-01-02", "s": "2020-01-02T03:04:05.678901", "z": "2020-01-02T03:04:05"}
    for name, date in dates.items():
        expected = np.array([date, "NaT"], "datetime64[us]")
        assert batch.columns[name].dtype == expected.dtype
        assert batch.columns[name].tobytes() == expected.tobytes()


def test_kinds_of_the_first_batch_do_not_depend_on_later_rows(write):
    path = write("a,b\n1,\n2,\nx,y\n3,4\n")
    rows, _, stream = read_all(path, batch_rows=2, on_bad="skip")
    assert stream.schema == {"a": "number", "b": "number"}
    assert rows == {"a": [1, 2, 3], "b": [None, None, 4]}


def test_numbers_and_truth_mix(write):
    assert read_all(write("a\ntrue\nfalse\n3\n"), batch_rows=2)[0] == {"a": [1, 0, 3]}
    assert read_all(write("a\n3\n2\ntrue\n"), batch_rows=2)[0] == {"a": [3, 2, 1]}
    dates = "a\n2020-01-01\n2020-01-02\n2020-01-03 04:00:00.123456789\n2020-01-03T04:00:00Z\n"
    rows, _, stream = read_all(write(dates), batch_rows=2)
    assert stream.schema == {"a": "date"}
    assert [str(value) for value in rows["a"][2:]] == [
        "2020-01-03 04:00:00.123456",
        "2020-01-03 04:00:00",
    ]


@pytest.mark.parametrize(
    "texts",
    [
        ["1.3.2024 8:05", "01.03.2024 08:05:30", "", "31.12.2023"],
        ["01.03.2024", "2024-03-02 01:00"],  # the second in another batch
        ["2024-03-02 01:00", "01.03.2024"],
        ["2024/3/1 8:05", "2024/03/01T08:05:30", "", "2023/12/31"],
    ],
)
def test_dates_with_dots_or_slashes(tmp_path, texts):
    path = tmp_path / "dates.csv"
    path.write_text("when,x\n" + "".join(f"{text},1\n" for text in texts))
    expected = [pd.to_datetime(text, dayfirst="." in text).to_datetime64() for text in texts]
    for kinds in ({}, {"when": "date"}):
        source = open_stream(path, batch_rows=1 if len(texts) == 2 else 10, schema=kinds)
        assert source.schema["when"] == "date"
        found = np.concatenate([batch.columns["when"] for batch in source])
        assert np.array_equal(found, np.array(expected).astype(found.dtype), equal_nan=True)


@pytest.mark.parametrize("text", ["1.2.3", "03.13.2024", "1.3.24", "03/01/2024", "2024/13/01"])
def test_other_texts_with_dots_or_slashes_are_not_dates(tmp_path, text):
    (tmp_path / "a.csv").write_text(f"version,x\n{text},1\n{text},2\n")
    assert open_stream(tmp_path / "a.csv").schema["version"] == "text"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["11:38:36", "", "23:59:59"], ["11:38:36", None, "23:59:59"]),
        (["9:05", "11:38", "0:00"], ["09:05", "11:38", "00:00"]),
        (["9:05 PM", "12:00 AM", "12:30pm"], ["21:05", "00:00", "12:30"]),
        (["11:38:36.5", "9:05:01.25", "1:00"], ["11:38:36.5", "09:05:01.25", "01:00"]),
        (["9:05", "25:00", "1:00"], None),
        (["9:05", "13:05 PM", "1:00"], None),
        (["9:05", "2024/01/02", "1:00"], None),
    ],
)
def test_times_of_day_are_dates_of_one_day(write, texts, expected):
    path = write("at,x\n" + "".join(f"{text},1\n" for text in texts))
    stream = open_stream(path, batch_rows=2)
    columns = [batch.columns["at"] for batch in stream]
    if expected is None:  # as two rows say
        again = open_stream(path)
        next(again)
        assert again.schema["at"] == "text"
        return
    assert stream.schema["at"] == "date"
    moments = [text and f"1970-01-01T{text}" for text in expected]
    found = np.concatenate(columns)
    assert np.array_equal(found, np.array(moments, "M8[us]"), equal_nan=True)
    # Rows of Python are read alike, and a bad one spoils only itself.
    rows, _ = as_batch([{"at": text or None} for text in texts], {"at": "date"})
    assert np.array_equal(rows.columns["at"], found, equal_nan=True)
    lines = "".join(f"{text},1\n" for text in [*texts, "noon"])
    bad = open_stream(write("at,x\n" + lines), schema={"at": "date"}, on_bad="skip")
    assert np.array_equal(next(bad).columns["at"], found, equal_nan=True)
    assert bad.bad.count == 1


@pytest.mark.parametrize("day", ["2024-01-0{}", "{}.1.2024"])
def test_a_time_of_day_is_no_date_in_a_column_of_dates(write, day):
    texts = [day.format(k) for k in range(1, 6)]
    lines = [f"{text},1\n" for text in [*texts, "9:05", "9:05 PM", texts[0]]]
    stream = open_stream(write("at,x\n" + "".join(lines)), batch_rows=2, on_bad="skip")
    found = np.concatenate([batch.columns["at"] for batch in stream])
    assert found.astype("M8[D]").astype(str).tolist() == [
        *(f"2024-01-0{k}" for k in range(1, 6)), "2024-01-01"
    ]  # fmt: skip
    assert stream.bad.count == 2


def test_times_of_python_and_of_frames(tmp_path):
    times = [datetime.time(11, 38, 36), datetime.time(0, 1)]
    expected = np.array(["1970-01-01T11:38:36", "1970-01-01T00:01"], "M8[us]")
    frame = pd.DataFrame({"at": times, "x": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "rows.parquet")
    for source in (frame, str(tmp_path / "rows.parquet")):
        assert np.array_equal(next(open_stream(source)).columns["at"], expected)
    for rows in (frame, {"at": times}, [{"at": time} for time in times]):
        batch, kinds = as_batch(rows)
        assert kinds["at"] == "date"
        assert np.array_equal(batch.columns["at"], expected)
    batch, _ = as_batch({"at": ["9:05:07.25", "9:05:07 pm"]}, {"at": "date"})
    assert batch.columns["at"].astype(str).tolist() == [
        "1970-01-01T09:05:07.250000",
        "1970-01-01T21:05:07.000000",
    ]
    zoned = datetime.time(9, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    for odd in ("13:05 PM", "9:05:07.25 PM", zoned):
        with pytest.raises(StreamError, match=re.escape(f"{odd!r}"[:60]) + ", and it holds dates"):
            as_batch({"at": [odd]}, {"at": "date"})
