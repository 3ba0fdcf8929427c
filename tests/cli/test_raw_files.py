"""Files as they come: other delimiters, units beside numbers, names with spaces, Latin-1."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kernelstream
from kernelstream.runs import Run
from kernelstream.streams import StreamError, open_stream
from kernelstream.streams.python_rows import as_batch
from tests.cli.tools import as_stdin
from tests.streams.tools import read_all

random = np.random.default_rng(0)
X = random.normal(3.0, 1.0, 120)


def write(path, header, rows, encoding="utf-8"):
    path.write_text("\n".join([header, *rows]) + "\n", encoding=encoding)
    return path


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_the_header_tells_what_stands_between_fields(tool, tmp_path, mark):
    rows = [mark.join([f"{x:.3f}", f"a,{i % 3}", str(int(x > 3))]) for i, x in enumerate(X)]
    file = write(tmp_path / "rows.csv", mark.join(["x", "text", "target"]), rows)
    read, _, _ = read_all(str(file))
    assert read == read_all(str(file), delimiter=mark)[0]
    assert read["text"][:2] == ["a,0", "a,1"]
    tool("learn", file, "--model", "polk", "--out", "model.ks")
    said = tool("predict", "model.ks", file).out
    assert said == tool("predict", "model.ks", file, "--delimiter", mark).out
    stream = open_stream(str(file), batch_rows=50)  # and so it does for a run that goes on
    first = next(stream)
    rest = open_stream(str(file), batch_rows=50, position=stream.position, schema=stream.schema)
    assert [len(first), *map(len, rest)] == [50, 50, 20]


#: Headers that leave it open, or were read otherwise before: the columns.
OPEN = {
    "a,b;c": ["a", "b;c"],
    "a;b|c": ["a;b|c"],
    '"a;b"': ["a;b"],
    '"a;b";"c\nd"': ["a;b", "c\nd"],
}


@pytest.mark.parametrize("header", OPEN)
def test_only_a_header_without_a_comma_and_with_one_other_mark_does(tmp_path, header):
    names = OPEN[header]
    mark = ";" if header.count(";") == 3 else ","
    file = write(tmp_path / "rows.csv", header, [mark.join("1" * len(names))] * 3)
    assert list(open_stream(str(file)).schema) == names
    assert len(open_stream(str(file), delimiter=",").schema) == header.count(",") + 1


def notes_of(tool, tmp_path, header, rows, *more):
    write(tmp_path / "rows.csv", header, rows)
    return json.loads(tool("learn", "rows.csv", "--model", "polk", "--json", *more).out)["notes"]


def test_units_beside_numbers_are_noted(tool, tmp_path):
    rows = [f'"€ {1000 * x:,.2f}",{x:.1f} %,v{i},{x > 3}' for i, x in enumerate(X)]
    notes = notes_of(tool, tmp_path, "price,share,name,target", rows)
    (price,) = (note for note in notes if "'price'" in note)  # and not that it names its rows
    (share,) = (note for note in notes if "'share'" in note)
    (name,) = (note for note in notes if "'name'" in note)
    assert "because of '€'" in price
    assert "because of '%'" in share
    assert "write them alone" in share
    assert "differs in (nearly) every row" in name


def test_one_note_about_dates_is_enough_and_names_are_quoted(tool, tmp_path):
    rows = [f"{i % 28 + 1:02}/{i // 28 + 1:02}/2021,{x:.2f},{x > 3}" for i, x in enumerate(X)]
    notes = notes_of(tool, tmp_path, "first visit,x,target", rows)
    (note,) = (note for note in notes if "'first visit'" in note)
    assert "--drop 'first visit'" in note


def test_gaps_in_other_words_are_noted_with_how_to_write_them(tool, tmp_path):
    rows = [f"{'none' if i % 20 == 3 else f'{x:.2f}'},{x > 3}" for i, x in enumerate(X)]
    (note,) = (n for n in notes_of(tool, tmp_path, "x,target", rows) if "'none'" in n)
    assert "an empty field or NA" in note


def test_latin_1_gets_the_command_that_converts_it(tool, tmp_path):
    file = write(tmp_path / "wine.csv", "x,cépage", ["1,a", "2,b"], "latin-1")
    message = tool("learn", file, "--target", "x", code=2).err
    assert f"iconv -f LATIN1 -t UTF-8 {file} > new.csv" in message


@pytest.mark.parametrize("written", ['"{:,.2f}"', "${:.2f}", "{:.2f} kg"])
def test_a_target_of_numbers_written_as_texts_is_refused_with_what_to_do(tool, tmp_path, written):
    rows = [f"{k % 7},{written.format(700.5 + 31.7 * k)}" for k in range(60)]
    file = write(tmp_path / "sales.csv", "day,total", rows)
    said = tool("learn", str(file), "--target", "total", code=2).err
    assert "each 'total' is a text such as" in said
    assert "write numbers alone" in said
    assert "--task classification" in said
    few = write(tmp_path / "few.csv", "day,total", [f"{k % 7},${k % 3}" for k in range(60)])
    tool("learn", str(few), "--target", "total")  # names of classes


def test_the_only_input_is_not_to_be_left_out(tool, tmp_path):
    rows = [f"{1 + k % 28}/{1 + k // 28}/2024,{k % 5}.5" for k in range(200)]
    alone = write(tmp_path / "alone.csv", "day,price", rows)
    said = tool("learn", str(alone), "--target", "price").out
    assert "column 'day' is taken as text" in said
    assert "--drop" not in said
    more = write(tmp_path / "more.csv", "load,day,price", [f"1,{row}" for row in rows])
    assert "--drop day" in tool("learn", str(more), "--target", "price").out


def test_an_index_without_a_name_is_the_same_column_in_data_frames(tool, tmp_path):
    frame = pd.DataFrame({"x": np.arange(300) % 7, "y": np.arange(300) % 7 * 1.5 + 0.25})
    frame.to_csv(tmp_path / "rows.csv")
    out = str(tmp_path / "model.ks")
    tool("learn", str(tmp_path / "rows.csv"), "--target", "y", "--out", out)
    model = kernelstream.load(out)
    again = model.predict(pd.read_csv(tmp_path / "rows.csv"))
    assert (again == model.predict(pl.read_csv(tmp_path / "rows.csv"))).all()
    named = frame.rename_axis("c0").reset_index()
    assert (again == model.predict(named)).all()
    with pytest.raises(StreamError, match="no column 'c0'"):
        model.predict(frame)


def test_rows_before_a_bad_one_are_answered_and_the_advice_fits(tool, tmp_path, monkeypatch):
    rows = [f"{k % 7},{k % 7 * 1.5 + 0.25}" for k in range(60)]
    file, out = write(tmp_path / "rows.csv", "x,y", rows), str(tmp_path / "model.ks")
    tool("learn", str(file), "--target", "y", "--out", out)
    as_stdin(monkeypatch, b"x\n3\n5\nmany\n4\n")
    said = tool("predict", out, "-", code=2)
    assert len(said.out.splitlines()) == 3  # a header and two rows
    assert "line 4: column 'x' holds 'many', not a number; the model has learned so" in said.err
    assert "--column" not in said.err


def test_thousands_are_noted_and_lists_are_not(tool, tmp_path):
    rows = [f'"{905.5 + 700 * k:,.2f}","{k % 2},{k % 3},1",{k % 2}' for k in range(60)]
    file = write(tmp_path / "rows.csv", "price,list,label", rows)
    said = tool("learn", str(file), "--target", "label").out
    assert "column 'price' is taken as text: the comma in '1,605.50' may be" in said
    assert "column 'list' is taken as text" not in said
    assert "because of  in" not in said


def test_the_empty_text_is_missing_in_python_as_in_files(tool, tmp_path):
    words = ["red", "", "blue"]
    rows = [f"{words[k % 3]},{k % 3 + 0.25 * (k % 2)}" for k in range(300)]
    file, out = write(tmp_path / "rows.csv", "t,y", rows), str(tmp_path / "model.ks")
    tool("learn", str(file), "--target", "y", "--out", out)
    model = kernelstream.load(out)
    empty, missing, other = model.predict({"t": ["", None, "green"]})
    assert empty == missing != other


@pytest.mark.parametrize("day", ["2024-03-01 8:05", "2024/3/1 8:05", "1.3.2024 8:05"])
def test_hours_of_one_digit_are_the_same_dates_in_python(day):
    column = stream_of({"d": ["2024-03-01T08:05"]}), stream_of({"d": [day]})
    assert column[0] == column[1]


def stream_of(rows):
    batch, _ = as_batch(rows, {"d": "date"})
    return batch.columns["d"].tolist()


def test_json_is_not_taken_for_a_header(tool, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text('{"a": 1, "b": 2}\n{"a": 2, "b": 3}\n')
    assert "begins with JSON" in tool("learn", str(file), "--target", "b", code=2).err


def test_a_target_that_nobody_named_is_not_guessed(tool, tmp_path):
    file = write(tmp_path / "rows.csv", "age,sex", ["1,2", "3,4"])
    said = tool("learn", str(file), code=2).err
    assert "Name the column to predict: --target" in said
    assert "Did you mean" not in said


@pytest.mark.parametrize("lag", ["3", None, -1])
def test_a_lag_is_a_whole_number(lag):
    with pytest.raises(ValueError, match="lag must be a whole number"):
        Run({"x": X, "y": X}, "y", "polk", lag=lag)
