"""Files as they come: other delimiters, units beside numbers, names with spaces, Latin-1."""

import json

import numpy as np
import pytest

from kernelstream.streams import open_stream
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
    rows = [f"{'?' if i % 20 == 3 else f'{x:.2f}'},{x > 3}" for i, x in enumerate(X)]
    (note,) = (n for n in notes_of(tool, tmp_path, "x,target", rows) if "'?'" in n)
    assert "an empty field or NA" in note


def test_latin_1_gets_the_command_that_converts_it(tool, tmp_path):
    file = write(tmp_path / "wine.csv", "x,cépage", ["1,a", "2,b"], "latin-1")
    message = tool("learn", file, "--target", "x", code=2).err
    assert f"iconv -f LATIN1 -t UTF-8 {file} > new.csv" in message
