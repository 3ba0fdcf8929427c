"""Tests of CSV and TSV sources: what is read, what is refused, and going on after a stop."""

import csv
import datetime
import gzip
import io
import json
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream.streams import StreamError, open_stream, records
from kernelstream.streams.arrow_columns import MISSING
from tests.streams.tools import as_list, read_all, same_batches

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
    "missing, as other programs write it": (
        "a,b\n.,x\n2,?\n?,.\n",
        {"a": [None, 2, None], "b": ["x", None, None]},
        [2, 3, 4],
    ),
    "names of rows, as R writes them": (
        '"a","b"\n"1",5,"x"\n"2",6,"y"\n',
        {"row names": [1, 2], "a": [5, 6], "b": ["x", "y"]},
        [2, 3],
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
    "many in the only row": ("a,b\n1,2,3\n", {}, "line 2: the row has 3 fields, not 2"),
    "a comma at the end": ("a,b\n1,2,\n3,4,\n5,6,\n", {}, "line 2: the row has 3 fields, not 2"),
    "many in the first row": ("a,b\n1,2,3\n3,4\n", {}, "line 2: the row has 3 fields, not 2"),
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
