"""Tests of CSV and TSV sources: what is read, what is refused, and going on after a stop."""

import csv
import datetime
import gzip
import io
import json
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream.streams import StreamError, Text, open_stream, records
from kernelstream.streams.arrow_columns import MISSING
from kernelstream.streams.python_rows import as_batch
from tests.streams.tools import as_list, read_all, same_batches


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="file.csv"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return write_file


NASTY = {
    "plain": ("a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}, [2, 3]),
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,x\n", {"a": [1], "b": ["x"]}, [2]),
    "crlf": ("a,b\r\n1,x\r\n2,y\r\n", {"a": [1, 2], "b": ["x", "y"]}, [2, 3]),
    "cr": ("a,b\r1,x\r2,y\r", {"a": [1, 2], "b": ["x", "y"]}, [2, 3]),
    "cr without end": ("a,b\r1,x\r2,y", {"a": [1, 2], "b": ["x", "y"]}, [2, 3]),
    "mixed line ends": ("a,b\r\n1,x\n2,y\r3,z", {"a": [1, 2, 3], "b": list("xyz")}, [2, 3, 4]),
    "no last newline": ("a,b\n1,x\n2,y", {"a": [1, 2], "b": ["x", "y"]}, [2, 3]),
    "blank lines": ("\na,b\n\n1,x\n\n\n2,y\n\n\n", {"a": [1, 2], "b": ["x", "y"]}, [4, 7]),
    "blank crlf": ("a,b\r\n\r\n1,x\r\n\r\n", {"a": [1], "b": ["x"]}, [3]),
    "quotes": (
        'a,b\n1,"x,y"\n2,"p\nq"\n3,"say ""hi"""\n',
        {"a": [1, 2, 3], "b": ["x,y", "p\nq", 'say "hi"']},
        [2, 3, 5],
    ),
    "inches": (
        'a,b\n1,5" pipe\n2,"p\nq"\n3,6" x 2"\n',
        {"a": [1, 2, 3], "b": ['5" pipe', "p\nq", '6" x 2"']},
        [2, 3, 5],
    ),
    "spaces in names": ('house price, "b c\n1,x\n', {"house price": [1], '"b c': ["x"]}, [2]),
    "quoted names": ('"a\nb","c,d"\n1,x\n', {"a\nb": [1], "c,d": ["x"]}, [3]),
    "nameless": (",b\n1,x\n", {"c0": [1], "b": ["x"]}, [2]),
    "one column": ("a\n1\n\n2\n", {"a": [1, 2]}, [2, 4]),
    "one column missing": ('a\n1\n""\n2\n', {"a": [1, None, 2]}, [2, 3, 4]),
    "missing": (
        "a,b\n,x\nNA,\nNaN,null\n3,NA\n",
        {"a": [None, None, None, 3], "b": ["x", None, None, None]},
        [2, 3, 4, 5],
    ),
    "all missing": ("a,b\n,1\n,2\n", {"a": [None, None], "b": [1, 2]}, [2, 3]),
    "truth": ("a,b\ntrue,False\nfalse,\n", {"a": [1, 0], "b": [0, None]}, [2, 3]),
    "hexadecimal": ("a,b\n0x1F,1\n10,2\n", {"a": ["0x1F", "10"], "b": [1, 2]}, [2, 3]),
    "large": ("a\n99999999999999999999\n1\n", {"a": [1e20, 1]}, [2, 3]),
    "time of day": (
        "a,b\n10:30:00,1\n",
        {"a": [datetime.datetime(1970, 1, 1, 10, 30)], "b": [1]},
        [2],
    ),
    "padded": ("a,b\n 1 ,2\n", {"a": [1], "b": [2]}, [2]),
    "long line": (f"a,b\n1,{'x' * 5000}\n2,y\n", {"a": [1, 2], "b": ["x" * 5000, "y"]}, [2, 3]),
    "mark inside": ("a,b\n\ufeffx,1\n", {"a": ["\ufeffx"], "b": [1]}, [2]),
}


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
@pytest.mark.parametrize("case", NASTY)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_nasty_files(write, monkeypatch, case, block_bytes, suffix):
    content, expected, lines = NASTY[case]
    monkeypatch.setattr(records, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(records, "_HEADER_BYTES", block_bytes)
    rows, found_lines, stream = read_all(write(content, f"file.csv{suffix}"))
    assert rows == expected
    assert found_lines == lines
    assert stream.bad.count == 0


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


def test_options(write):
    path = write("1;x;5\n2;y;6\n")
    rows, lines, _ = read_all(path, header=False, delimiter=";", schema={"c0": "text"})
    assert rows == {"c0": ["1", "2"], "c1": ["x", "y"], "c2": [5, 6]}
    assert lines == [1, 2]
    rows, _, _ = read_all(
        path, header=False, delimiter=";", columns=["c1"], target="c2", schema={"absent": "text"}
    )
    assert rows == {"c1": ["x", "y"], "c2": [5, 6]}
    rows, _, _ = read_all(write("a\tb\n1\t2\n", "file.tsv.gz"))
    assert rows == {"a": [1], "b": [2]}


def test_standard_input(monkeypatch):
    data = b"a,b\n" + b"".join(b"%d,x\n" % i for i in range(100))
    for content in (data, gzip.compress(data)):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdin", stdin)
        stream = open_stream("-", batch_rows=30)
        first, second = next(stream), next(stream)
        assert second.columns["a"].tolist() == list(range(30, 60))
        stream.close()
        assert not stdin.closed
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        resumed = open_stream("-", batch_rows=30, position=stream.position, schema=stream.schema)
        assert next(resumed).columns["a"].tolist() == list(range(60, 90))
        assert len(first) == 30


def test_standard_input_goes_on_far_ahead(monkeypatch):
    """Skipping must not swallow what follows: a pipe cannot seek back."""
    data = b"a,b\n" + b"".join(b"%d,x\n" % i for i in range(100_000))
    for content in (data, gzip.compress(data)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        stream = open_stream("-", batch_rows=1000)
        for _ in range(70):
            next(stream)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        resumed = open_stream("-", batch_rows=1000, position=stream.position, schema=stream.schema)
        assert next(resumed).columns["a"].tolist() == list(range(70_000, 71_000))


def test_columns_can_be_left_out(write):
    path = write("a,b,c\n1,?,3\n2,5,4\n")
    rows, _, _ = read_all(path, drop=["b"], target="c")
    assert rows == {"a": [1, 2], "c": [3, 4]}
    with pytest.raises(StreamError, match=r"'d'.*Its columns: a, b, c"):
        open_stream(path, drop=["d"])
    with pytest.raises(StreamError, match="target 'c' cannot be left out"):
        open_stream(path, drop=["c"], target="c")
    with pytest.raises(StreamError, match="no column names"):
        open_stream((np.ones((2, 1)), np.ones(2)), drop=["a"])


REFUSED = {
    "empty": ("", {}, "is empty"),
    "only a mark": (b"\xef\xbb\xbf", {}, "is empty"),
    "only blanks": ("\n\n", {}, "is empty"),
    "header only": ("a,b\n", {}, "header and no rows"),
    "names twice": ("a,b,a\n1,2,3\n", {}, "'a' twice"),
    "utf-16": ("a,b\n1,2\n".encode("utf-16"), {}, "UTF-16.*iconv"),
    "utf-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), {}, "a NUL byte.*UTF-16.*iconv"),
    "latin-1 header": ("größe\n1\n".encode("latin-1"), {}, "header is not UTF-8.*iconv"),
    "latin-1": ("a,b\n1,2\n2,größe\n".encode("latin-1"), {}, "line 3: column 'b'.*UTF-8.*iconv"),
    "target": ("load,b\n1,2\n", {"target": "laod"}, "'laod'. Did you mean 'load'.*load, b"),
    "column": ("load,b\n1,2\n", {"columns": ["zzz"]}, "no column 'zzz'. Its columns: load, b"),
    "few": ("a,b\n1,2\n3\n", {}, "line 3: the row has 1 field, not 2.*--on-bad skip"),
    "many": ("a,b\n1,2\n3,4,5\n", {}, "line 3: the row has 3 fields, not 2"),
    "open quote": ('a,b\n1,x\n2,"y\n', {}, "line 3: a quote is never closed"),
    "kind": ("a\n1\nx\n", {"schema": {"a": "number"}}, "line 3: column 'a' holds 'x', not a num"),
    "date": ("a\n2020-01-01\nx\n", {"schema": {"a": "date"}}, "line 3: .* not a date"),
    "schema": ("a\n1\n", {"schema": {"a": "float"}}, "'a' must be one of number, text, date"),
    "delimiter": ("a\n1\n", {"delimiter": "ab"}, "delimiter must be one"),
    "no batch": ("a\n1\n", {"batch_rows": 0}, "batch_rows"),
    "policy": ("a\n1\n", {"on_bad": "drop"}, "on_bad must be one of raise, skip, quarantine"),
    "no quarantine": ("a\n1\n", {"on_bad": "quarantine"}, "quarantine="),
    "no schema": (
        "a\n1\n",
        {"position": {"format": "csv", "offset": 2, "line": 2, "rows": 0}},
        "needs the schema",
    ),
    "shorter": (
        "a\n1\n",
        {"position": {"format": "csv", "offset": 9, "line": 2, "rows": 0}, "schema": {"a": "text"}},
        "shorter than when it was left",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(write, case):
    content, options, message = REFUSED[case]
    path = write(content)
    with pytest.raises(StreamError, match=message) as caught:
        read_all(path, **options)
    assert "\n" not in str(caught.value)


def test_paths(tmp_path, write):
    with pytest.raises(StreamError, match="no such file"):
        open_stream(tmp_path / "absent.csv")
    with pytest.raises(StreamError, match="is a directory"):
        open_stream(tmp_path)
    with pytest.raises(StreamError, match=r"suffix '.xls'.*csv, tsv, libsvm.*\.parquet"):
        open_stream(write("a\n1\n", "file.xls"))
    assert read_all(write("a\n1\n", "file.xls"), format="csv")[0] == {"a": [1]}
    with pytest.raises(StreamError, match="format must be one of"):
        open_stream(write("a\n1\n"), format="excel")
    with pytest.raises(StreamError, match="this is 'csv'"):
        open_stream(write("a\n1\n"), position={"format": "parquet", "row": 3})
    for line in (-1, 1.0, "2", None, 2**62):
        position = {"format": "csv", "offset": 2, "line": line, "rows": 0}
        with pytest.raises(StreamError, match="no valid line: start again"):
            open_stream(write("a\n1\n"), position=position, schema={"a": "number"})


def test_without_pyarrow(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'kernelstream\[cli\]'"):
        open_stream(write("a\n1\n"))


@pytest.mark.parametrize("on_bad", ["raise", "skip"])
def test_truncated_gzip_gives_the_rows_before(tmp_path, on_bad):
    rng = np.random.default_rng(0)
    content = "a\n" + "".join(f"{value}\n" for value in rng.normal(size=50_000))
    whole = gzip.compress(content.encode())
    path = tmp_path / "file.csv.gz"
    for keep in (len(whole) * 2 // 3, len(whole) - 1):
        path.write_bytes(whole[:keep])
        stream = open_stream(path, batch_rows=1000, on_bad=on_bad)
        values = []
        with pytest.raises(StreamError, match=r"file.csv.gz: the gzip data ends too early"):  # noqa: PT012
            for batch in stream:
                values += batch.columns["a"].tolist()
        assert len(values) > 0.6 * 50_000
        assert values == [float(line) for line in content.split("\n")[1 : len(values) + 1]]
    assert len(values) == 50_000
    path.write_bytes(whole[:1000] + b"\xff" * 50 + whole[1050:])
    with pytest.raises(StreamError, match=r"gzip data is damaged|too early"):
        read_all(path)


def test_members_of_gzip(tmp_path):
    path = tmp_path / "file.csv.gz"
    path.write_bytes(gzip.compress(b"a\n1\n") + gzip.compress(b"2\n") + b"\0" * 10)
    assert read_all(path)[0] == {"a": [1, 2]}


# Bad rows: 100 rows in batches of 10; what is wrong with which line is known.
WRONG = {
    20: (b"abc,x\n", "column 'load' holds 'abc', not a number"),
    21: (b"5\n", "1 field, not 2"),
    47: (b'7,"p\nq",\n', "3 fields, not 2"),
    81: (b"1,\xff\n", "not UTF-8"),
    85: (b"0\x001,x\n", "column 'load' holds a NUL byte"),
    86: (b'1,"a,b\nc\0"\n', "column 'city' holds a NUL byte"),
    87: (b"1_000,y\n", "holds '1_000', not a number"),
    90: (b"2020-01-01,y\n", "holds '2020-01-01', not a number"),
}


def bad_file():
    raw = [b"load,city\n"]
    good, good_lines, bad_lines, line = [], [], [], 2
    for row in range(100):
        record = WRONG[row][0] if row in WRONG else b'%d,"c\n%d"\n' % (row, row % 7)
        raw.append(record)
        if row in WRONG:
            bad_lines.append(line)
        else:
            good.append(row)
            good_lines.append(line)
        line += record.count(b"\n")
    return b"".join(raw), good, good_lines, bad_lines


@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_bad_rows_are_found_exactly(write, tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr(records, "BLOCK_BYTES", block_bytes)
    content, good, good_lines, bad_lines = bad_file()
    path = write(content)
    put_aside = tmp_path / "bad.csv"
    for on_bad in ("skip", "quarantine"):
        rows, lines, stream = read_all(path, batch_rows=10, on_bad=on_bad, quarantine=put_aside)
        assert rows == {"load": good, "city": [f"c\n{row % 7}" for row in good]}
        assert lines == good_lines
        assert stream.bad.count == len(WRONG)
        assert [line for line, _ in stream.bad.first] == bad_lines
        for (_, reason), (_, expected) in zip(stream.bad.first, WRONG.values(), strict=True):
            assert expected in reason
        assert put_aside.exists() == (on_bad == "quarantine")
    expected = b"load,city\n" + b"".join(record for record, _ in WRONG.values())
    assert put_aside.read_bytes() == expected

    stream = open_stream(path, batch_rows=10)
    assert len(next(stream)) + len(next(stream)) == 20
    position = stream.position
    for _ in range(2):  # and stays so
        with pytest.raises(StreamError, match=rf"line {bad_lines[0]}: column 'load' holds 'abc'"):
            next(stream)
    assert stream.position == position


def test_a_nul_byte_does_not_decide_what_a_column_is(write):
    content = b"load,city,note\n1,Ulm,a\n0\x001,Ulm,b\n2,Bo\0nn,c\n3,Ulm,d\0\n4,Ulm,e\n"
    rows, _, stream = read_all(write(content), on_bad="skip", drop=["note"])
    assert stream.schema == {"load": "number", "city": "text"}
    assert rows == {"load": [1, 3, 4], "city": ["Ulm"] * 3}  # what is not read does no harm
    assert stream.bad.first == [
        (3, "column 'load' holds a NUL byte, which no text has"),
        (4, "column 'city' holds a NUL byte, which no text has"),
    ]
    with pytest.raises(StreamError, match="line 3: column 'load' holds a NUL byte"):
        read_all(write(content))


def test_a_column_that_turns_to_text_late(write):
    content = "load\n" + "1\n" * 69_999 + "abc\n" + "2\n" * 10
    with pytest.raises(
        StreamError, match=r"line 70001: column 'load' holds 'abc', not a number; .*load=text"
    ):
        read_all(write(content))
    assert len(read_all(write(content), schema={"load": "text"})[0]["load"]) == 70_010
    rows, _, stream = read_all(write(content), on_bad="skip")
    assert len(rows["load"]) == 70_009
    assert len(stream.bad.first) == stream.bad.count == 1


def test_only_the_first_bad_rows_are_remembered(write):
    content = "a\n1\n" + "x\n" * 50 + "2\n"
    rows, _, stream = read_all(write(content), batch_rows=1, on_bad="skip")
    assert rows == {"a": [1, 2]}
    assert stream.bad.count == 50
    assert [line for line, _ in stream.bad.first] == list(range(3, 13))


def test_quarantine_after_a_resume_has_each_row_once(write, tmp_path):
    path = write(bad_file()[0])
    expected = b"load,city\n" + b"".join(record for record, _ in WRONG.values())
    for stop in range(10):
        put_aside = tmp_path / f"bad{stop}.csv"
        options = {"batch_rows": 10, "on_bad": "quarantine", "quarantine": put_aside}
        stream = open_stream(path, **options)
        for _ in range(stop):
            next(stream)
        position = json.loads(json.dumps(stream.position))
        for _ in stream:  # goes on after the checkpoint, then dies
            pass
        resumed = open_stream(path, position=position, schema=stream.schema, **options)
        for _ in resumed:
            pass
        assert put_aside.read_bytes() == expected
        assert resumed.bad.count == stream.bad.count
        assert resumed.bad.first == stream.bad.first
        assert resumed.position == stream.position


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


fields = st.one_of(
    st.sampled_from(["", "NA", "1", "x", '"', '""', ",", "\n", "\r", "\r\n", " ", "é", "\ufeff"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
)


@st.composite
def tables(draw):
    width = draw(st.integers(1, 4))
    texts = draw(
        st.lists(st.lists(fields, min_size=width, max_size=width), min_size=1, max_size=12)
    )
    number = st.one_of(st.none(), st.floats(-1e150, 1e150), st.integers(-(10**6), 10**6))
    numbers = draw(st.lists(number, min_size=len(texts), max_size=len(texts)))
    return texts, numbers


@settings(max_examples=150)
@given(
    table=tables(),
    block_bytes=st.integers(1, 60),
    batch_rows=st.integers(1, 6),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    delimiter=st.sampled_from(",;|"),
)
def test_what_csv_writes_is_read_back(
    tmp_path_factory, table, block_bytes, batch_rows, line_end, quoting, delimiter
):
    texts, numbers = table
    if line_end != "\r\n" and any(set("\r\n") & set(field) for row in texts for field in row):
        quoting = csv.QUOTE_ALL  # Python quotes only those line breaks that it writes itself
    names = [f"t{place}" for place in range(len(texts[0]))]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator=line_end, quoting=quoting, delimiter=delimiter)
    writer.writerow([*names, "n"])
    starts = []
    for row, number in zip(texts, numbers, strict=True):
        starts.append(_count_lines(buffer.getvalue()) + 1)
        writer.writerow([*row, number])
    path = tmp_path_factory.getbasetemp() / "property.csv"
    path.write_bytes(buffer.getvalue().encode())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK_BYTES", block_bytes)
        patch.setattr(records, "_HEADER_BYTES", block_bytes)
        options = {"batch_rows": batch_rows, "delimiter": delimiter}
        stream = open_stream(path, schema=dict.fromkeys(names, "text"), **options)
        positions, batches = [stream.position], []
        for batch in stream:
            batches.append(batch)
            positions.append(stream.position)

        for place, name in enumerate(names):
            expected = [None if row[place] in MISSING else row[place] for row in texts]
            assert [
                value for batch in batches for value in as_list(batch.columns[name])
            ] == expected
        assert [value for batch in batches for value in as_list(batch.columns["n"])] == numbers
        assert np.concatenate([batch.lines for batch in batches]).tolist() == starts
        assert [len(batch) for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)

        patch.setattr(records, "BLOCK_BYTES", 1 << 20)  # blocks after a resume are others
        for done, position in enumerate(positions):
            position = json.loads(json.dumps(position))
            resumed = open_stream(path, position=position, schema=stream.schema, **options)
            assert same_batches(list(resumed), batches[done:])
            assert resumed.position == stream.position


def _count_lines(text):
    return text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


@settings(max_examples=150)
@given(
    content=st.text(alphabet='ab1,"\n\r', min_size=1, max_size=40),
    block_bytes=st.integers(1, 30),
    batch_rows=st.integers(1, 4),
)
def test_any_text_is_read_alike_in_blocks_of_any_size(
    tmp_path_factory, content, block_bytes, batch_rows
):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text("x,y\n" + content, newline="")
    results = []
    for size in (block_bytes, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, "BLOCK_BYTES", size)
            try:
                stream = open_stream(path, batch_rows=batch_rows, on_bad="skip")
            except StreamError as error:
                results.append(str(error))
                continue
            batches = list(stream)
            results.append((batches, stream.schema, stream.bad.state, stream.position))
    if isinstance(results[0], tuple):
        assert same_batches(results[0][0], results[1][0])
        assert results[0][1:] == results[1][1:]
    else:
        assert results[0] == results[1]


def test_memory_is_flat(tmp_path):
    path = tmp_path / "long.csv"
    piece = "".join(f"{i},{i / 7:.6f},name{i % 100}\n" for i in range(10_000))
    with path.open("w") as file:
        file.write("a,b,c\n")
        for _ in range(100):
            file.write(piece)
    arrow = pytest.importorskip("pyarrow")
    next(open_stream(path))  # what is imported on the way is not what is held
    held = []
    tracemalloc.start()
    n_rows = 0
    for batch in open_stream(path):
        n_rows += len(batch)
        held.append(tracemalloc.get_traced_memory()[0] + arrow.total_allocated_bytes())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows == 1_000_000
    early, late = held[: len(held) // 2], held[len(held) // 2 :]
    assert np.median(late) <= 1.1 * np.median(early)
    assert max(late) <= 1.5 * max(early)  # Arrow's threads free when they like
    assert peak < 5 * records.BLOCK_BYTES


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e151"])
def test_numbers_that_no_model_takes_are_bad_rows(value, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,2\n" + f"{value},3\n" + "4,\n")
    with pytest.raises(StreamError, match=r"line 3.*not a finite number"):
        list(open_stream(path))
    (batch,) = open_stream(path, on_bad="skip")
    assert batch.columns["x"].tolist() == [1.0, 4.0]


@pytest.mark.parametrize("last", ["2", '"2"'])
def test_lines_after_a_last_one_without_an_end(last, tmp_path):
    path = tmp_path / "grows.csv"
    path.write_text(f"a\n1\n{last}")
    stream = open_stream(path)
    list(stream)
    assert stream.position["line"] == 3
    with path.open("a") as file:
        file.write("\n3\n")
    (batch,) = open_stream(path, position=stream.position, schema=stream.schema)
    assert batch.lines.tolist() == [4]


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
    with pytest.raises(StreamError, match="holds '13:05 PM', and it holds dates"):
        as_batch({"at": ["13:05 PM"]}, {"at": "date"})
