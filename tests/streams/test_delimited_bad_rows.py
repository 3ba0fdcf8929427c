"""Bad rows of CSV files: found exactly, skipped, counted, put aside once."""

import json

import pytest

from kernelstream.streams import StreamError, open_stream, records
from tests.streams.tools import read_all

# 100 rows in batches of 10; what is wrong with which line is known.
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


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e151"])
def test_numbers_that_no_model_takes_are_bad_rows(value, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,2\n" + f"{value},3\n" + "4,\n")
    with pytest.raises(StreamError, match=r"line 3.*not a finite number"):
        list(open_stream(path))
    (batch,) = open_stream(path, on_bad="skip")
    assert batch.columns["x"].tolist() == [1.0, 4.0]
