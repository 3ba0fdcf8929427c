"""Tests of numbers with a decimal comma: where they are read, where not, and that it stays so."""

import json

import numpy as np
import pytest

from kernelstream.streams import StreamError, open_stream
from tests.streams.tools import read_all, same_batches

SEMICOLON = {"delimiter": ";"}

#: What a file holds, how it is read, and what comes of its columns.
READ = {
    "semicolons": ("a;b\n5,5;x\n-0,25;y\n7;x\n", SEMICOLON, [5.5, -0.25, 7.0]),
    "quoted": ('a,b\n"5,5",x\n"1,2e3",y\n', {}, [5.5, 1200.0]),
    "gaps and spaces": ("a;b\n 5,5;x\n;y\nNA;x\n,5 ;y\n", SEMICOLON, [5.5, None, None, 0.5]),
    "one that is certain": ("a;b\n1,234;x\n0,125;y\n", SEMICOLON, [1.234, 0.125]),
    "beside a certain column": ("a;b\n1,234;0,5\n2,345;1,5\n", SEMICOLON, [1.234, 2.345]),
    "told": ("a;b\n1,234;x\n", {**SEMICOLON, "decimal": ","}, [1.234]),
    "told that it is a number": ("a;b\n5,5;x\n", {**SEMICOLON, "schema": {"a": "number"}}, [5.5]),
    "told beside points": ("a;b\n5,5;0.5\n", {**SEMICOLON, "decimal": ","}, [5.5]),
    "told where there are none": ("a;b\n5.5;0.5\n", {**SEMICOLON, "decimal": ","}, [5.5]),
}

#: The same for columns that stay texts.
TEXTS = {
    "thousands": ("a;b\n1,234;x\n12,345;y\n999;x\n", SEMICOLON),
    "millions": ("a;b\n1,234,567;x\n0,5;y\n", SEMICOLON),
    "a word": ("a;b\n5,5;x\nmuch;y\n", SEMICOLON),
    "both marks": ("a;b\n1.234,5;x\n0,5;y\n", SEMICOLON),
    "beside points": ("a;b\n5,5;0.5\n7,5;1.5\n", SEMICOLON),
    "told that marks are points": ("a;b\n5,5;x\n", {**SEMICOLON, "decimal": "."}),
    "told that it is a text": ("a;b\n5,5;x\n", {**SEMICOLON, "schema": {"a": "text"}}),
}


def write(tmp_path, text):
    path = tmp_path / "file.csv"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", READ)
def test_numbers_with_a_decimal_comma_are_numbers(tmp_path, name):
    text, options, numbers = READ[name]
    rows, _, stream = read_all(write(tmp_path, text), **options)
    assert stream.schema["a"] == "number"
    assert rows["a"] == numbers


@pytest.mark.parametrize("name", TEXTS)
def test_what_may_be_something_else_stays_a_text(tmp_path, name):
    text, options = TEXTS[name]
    _, _, stream = read_all(write(tmp_path, text), **options)
    assert stream.schema["a"] == "text"


def test_whole_numbers_of_such_a_file_may_have_decimals_later(tmp_path):
    path = write(tmp_path, "a;b;c\n5,5;1;\n6,5;2;\n7,5;2,5;0,5\n")
    rows, _, _ = read_all(path, batch_rows=2, **SEMICOLON)
    assert rows == {"a": [5.5, 6.5, 7.5], "b": [1.0, 2.0, 2.5], "c": [None, None, 0.5]}


BAD = "a;b\n5,5;1\n6,5;2\n7.5;3\n1,234,5;4\nmuch;5\n8,5;6\n1,0e999;7\n"


def test_rows_with_another_mark_are_refused_one_by_one(tmp_path):
    rows, lines, stream = read_all(write(tmp_path, BAD), batch_rows=2, on_bad="skip", **SEMICOLON)
    assert (rows["a"], rows["b"], lines) == ([5.5, 6.5, 8.5], [1.0, 2.0, 6.0], [2, 3, 7])
    assert stream.bad.count == 4
    reasons = dict(stream.bad.first)
    assert "--decimal ." in reasons[4]
    assert "not a number" in reasons[6]
    assert "finite" in reasons[8]


def test_files_with_points_refuse_commas_as_before_and_say_what_to_do(tmp_path):
    path = write(tmp_path, "a;b\n5.5;1\n6.5;2\n7,5;3\n")
    with pytest.raises(StreamError, match=r"line 4.*'7,5'.*--decimal ,"):
        read_all(path, batch_rows=2, **SEMICOLON)
    path = write(tmp_path, "a;b\n5;1\n6;2\n7,5;3\n")  # nor does it begin somewhere in the file
    with pytest.raises(StreamError, match=r"line 4.*'7,5'.*--decimal ,"):
        read_all(path, batch_rows=2, **SEMICOLON)
    assert read_all(path, batch_rows=2, decimal=",", **SEMICOLON)[0]["a"] == [5.0, 6.0, 7.5]


def test_a_bad_row_among_the_first_does_not_hide_commas_that_are_known(tmp_path):
    path = write(tmp_path, "a;b\nmuch;1\n5,5;2\n6,5;2\n")
    reading = {"schema": {"a": "number"}, "decimal": ",", "on_bad": "skip", **SEMICOLON}
    assert read_all(path, **reading)[0]["a"] == [5.5, 6.5]


@pytest.mark.parametrize("batch_rows", [1, 3])
def test_going_on_reads_what_never_stopping_does(tmp_path, batch_rows):
    """Also where what is left looks different: whole numbers, thousands, points."""
    numbers = ["5,5;1", "0,5;2", "7,125;3", "1,234;4", "5;5", "6;6", "7.5;7", "8;8,5"]
    path = write(tmp_path, "\n".join(["a;b", *numbers]) + "\n")
    reading = {"batch_rows": batch_rows, "on_bad": "skip", **SEMICOLON}
    whole = list(open_stream(path, **reading))
    for stop in range(1, len(whole)):
        stream = open_stream(path, **reading)
        first = [next(stream) for _ in range(stop)]
        position = json.loads(json.dumps(stream.position))
        again = open_stream(path, position=position, schema=stream.schema, **reading)
        assert same_batches([*first, *again], whole)
        assert again.bad.count == 1


def test_positions_of_other_files_are_as_before(tmp_path):
    stream = open_stream(write(tmp_path, "a;b\n5.5;1\n"), **SEMICOLON)
    assert "commas" not in stream.position
    position = {**stream.position, "commas": 7}
    with pytest.raises(StreamError, match="commas"):
        open_stream(stream.name, position=position, schema=stream.schema, **SEMICOLON)


def test_any_cut_into_batches_reads_the_same_numbers(tmp_path):
    numbers = np.random.default_rng(0).normal(size=500).round(3)
    text = "a\n" + "".join(f"{number}\n" for number in numbers).replace(".", ",")
    path = write(tmp_path, text)
    for batch_rows in (3, 64, 1000):
        rows, _, _ = read_all(path, batch_rows=batch_rows, **SEMICOLON)
        assert rows["a"] == numbers.tolist()
    with pytest.raises(StreamError, match="decimal must be one of"):
        open_stream(path, decimal="'")
