"""What the tool notes about columns and models, and that it notes the same everywhere."""

import json
import re

import numpy as np
import pytest

from kernelstream import CapWarning, load, make_multidist
from kernelstream.cli.display import size
from kernelstream.evaluation import quality
from kernelstream.models._words import cap_note
from tests.cli.tools import LEARN, write_rows


def test_notes_of_a_column_that_runs_away_and_of_a_poor_model(tool, tmp_path):
    """A counter leaves its range for good, and with it whatever the model knows."""
    random = np.random.default_rng(0)
    x, label = random.normal(size=4000), np.arange(4000) // 50 % 2
    file = tmp_path / "counted.csv"
    lines = [f"{i},{x[i]:.6f},{label[i]}\n" for i in range(4000)]
    file.write_text("count,x,label\n" + "".join(lines))
    words = ("learn", file, "--target", "label", "--model", "polk", "--warm-up", "200", "--json")
    notes = json.loads(tool(*words).out)["notes"]
    assert not any("range" in note for note in notes)  # units move with it
    words = (*words, "--units", "frozen")
    notes = json.loads(tool(*words).out)["notes"]
    assert any("column 'count' has left the range" in note for note in notes)
    assert any("no change would have done better" in note for note in notes)
    assert not any("'x'" in note for note in notes)
    notes = json.loads(tool(*words, "--drop", "count").out)["notes"]
    assert not any("range" in note for note in notes)


def test_a_column_that_runs_away_is_noted_for_a_model_better_than_none(tool, tmp_path):
    """A counter that ends 10 deviations away is named; a season that goes up to 7 is not."""
    random = np.random.default_rng(0)
    x, n = random.normal(size=6000), np.arange(6000)
    season = 7.0 * np.sin(n / 4000) ** 2 + random.normal(size=6000)
    file = tmp_path / "counted.csv"
    lines = [f"{i},{season[i]:.4f},{x[i]:.6f},{int(x[i] > 0)}\n" for i in n]
    file.write_text("id,season,x,label\n" + "".join(lines))
    words = ("learn", file, "--target", "label", "--model", "polk")
    words = (*words, "--units", "frozen", "--json")
    # A last batch of a single row is no reason to look no further.
    for more, told in (((), ["id"]), (("--batch-rows", "5999"), ["id"]), (("--drop", "id"), [])):
        notes = json.loads(tool(*words, *more).out)["notes"]
        assert not any("would have done better" in note for note in notes)
        assert [note.split("'")[1] for note in notes if "has left the range" in note] == told


@pytest.mark.parametrize("numbers", [False, True])
def test_evaluate_shows_what_rules_without_a_model_come_to(tool, tmp_path, numbers):
    rows = write_rows(tmp_path / "rows.csv", 1500, numbers=numbers)
    target, metric, constant = ("height", "mae", "mean") if numbers else LABEL
    tool("learn", rows, "--target", target, "--warm-up", 500, "--out", "m.ks")
    result = json.loads(tool("evaluate", "m.ks", rows, "--json").out)
    learned = json.loads(tool("learn", rows, "--target", target, "--json").out)
    for rule in ("no_change", "majority"):  # of the same rows, by the same rules
        assert result[rule] == learned[rule]
    assert result["notes"] == []
    shown = tool("evaluate", "m.ks", rows).out
    assert (
        f"{metric} of no change {quality.number(result['no_change'])}, of the {constant}" in shown
    )
    assert "note" not in shown


LABEL = ("label", "accuracy", "majority")


def test_evaluate_says_when_the_model_is_no_better(tool, tmp_path):
    random = np.random.default_rng(0)
    rows = [f"{x:.4f},{int(x > 0)}" for x in random.normal(size=400)]
    (tmp_path / "learned.csv").write_text("\n".join(["x,target", *rows]))
    tool("learn", "learned.csv", "--model", "polk", "--out", "m.ks")

    def measured(*rows):
        (tmp_path / "rows.csv").write_text("\n".join(["x,target", *rows]))
        result = json.loads(tool("evaluate", "m.ks", "rows.csv", "--json").out)
        note = result["notes"][0] if result["notes"] else ""
        assert note in " ".join(tool("evaluate", "m.ks", "rows.csv").out.split())
        return note

    assert measured(*rows) == ""
    turned = [row[:-1] + str(1 - int(row[-1])) for row in rows]
    assert "would have done better than the model (accuracy 0." in measured(*turned)
    assert "no change would have done as well as the model (accuracy 1)" in measured(
        *(row for row in rows if row.endswith("1") and not row.startswith("0.0"))
    )
    # Right where the label is 1, never right where it is 0, and no rule gets that many right.
    alternating = ["2.0,1", "2.0,0"] * 50 + ["2.0,1"]
    assert "no better than chance (kappa 0)" in measured(*alternating)


def test_learn_says_nothing_of_a_model_that_waits_for_its_units(tool, tmp_path):
    rows = write_rows(tmp_path / "rows.csv", 300, numbers=True)
    words = ("learn", rows, "--target", "height", "--json")
    notes = json.loads(tool(*words, "--model", "polk").out)["notes"]
    assert not any("would have done" in note for note in notes)
    assert any("the first 300 rows only set the units" in note for note in notes)
    notes = json.loads(tool(*words).out)["notes"]  # predicts from the second row on
    assert not any("set the units" in note for note in notes)


@pytest.mark.parametrize("method", ["auto", "polk", "avm", "colk"])
@pytest.mark.parametrize("numbers", [False, True])
def test_a_model_has_one_size(tool, tmp_path, method, numbers):
    """Also once it is loaded, when it has less spare room."""
    rows = write_rows(tmp_path / "rows.csv", 1500, numbers=numbers)
    words = ("learn", rows, "--target", "height" if numbers else "label", "--model", method)
    words = (*words, "--warm-up", 100, "--out", "m.ks", "--report", "learn.html")
    learned = json.loads(tool(*words, "--json").out)
    inspected = json.loads(tool("inspect", "m.ks", "--report", "inspect.html", "--json").out)
    assert learned["bytes"] == inspected["bytes"] > 10_000
    told = size(learned["bytes"])
    assert told in tool(*words).out
    assert told in tool("inspect", "m.ks").out
    cards = [re.search(r"<dt>Size</dt>.*?</div>", (tmp_path / f"{name}.html").read_text(), re.S)
             for name in ("learn", "inspect")]  # fmt: skip
    assert cards[0][0] == cards[1][0]
    model = load("m.ks").model
    assert learned["bytes"] <= model.nbytes_  # that has room for more


@pytest.mark.parametrize("method", ["polk", "avm"])
def test_a_cap_is_noted_in_the_same_words_everywhere(tool, tmp_path, method):
    rows = write_rows(tmp_path / "rows.csv", 600)
    words = ("learn", rows, "--target", "label", "--model", method, "--out", "m.ks")
    words = (*words, "--report", "page.html", "--json")
    assert not any("room" in note for note in json.loads(tool(*words).out)["notes"])
    told = json.loads(tool(*words, "--max-points", 5).out)["notes"][-1]
    model = load("m.ks").model
    note = cap_note(model)
    assert note.startswith("max_points=5 ")
    assert f" {model.n_forced_} " in note
    assert told == note.replace("max_points=5", "--max-points 5")
    assert f"{note}." in (tmp_path / "page.html").read_text()
    assert not re.search("would avoid|larger --compression-error|little harm", told)
    if method == "avm":
        X, y = make_multidist(300, random_state=0)
        with pytest.warns(CapWarning) as warned:
            model = type(model)(max_points=5).partial_fit(X, y)
        same = re.sub(r"of \d+ samples", f"of {model.n_forced_} samples", str(warned[0].message))
        assert same.startswith(f"{cap_note(model)}. n_forced_ ")
    wide = json.loads(tool(*words, "--max-bytes", "20K").out)["notes"][-1]
    assert wide.startswith("--max-bytes 20480 ")


def test_why_there_is_no_auc(tool, tmp_path):
    for classes in (2, 4):
        lines = [f"{i % 7},{i % classes}\n" for i in range(200)]
        (tmp_path / "rows.csv").write_text("x,target\n" + "".join(lines))
        result = json.loads(tool("learn", "rows.csv", "--metrics", "accuracy,auc", "--json").out)
        assert (result["auc_window"] is None) == (classes == 4)
        told = "auc is for two classes, and there are 4: try balanced_accuracy" in result["notes"]
        assert told == (classes == 4)


def test_a_stray_word_in_numbers_is_noted(tool, rows):
    lines = rows.read_text().splitlines()
    lines[7] = "oops" + lines[7][lines[7].index(",") :]
    rows.write_text("\n".join(lines))
    shown = " ".join(tool(*LEARN).out.split())
    assert "column 'x' is taken as text because of values like 'oops'" in shown


@pytest.mark.parametrize("written", ["01/03/2024 08:00", "Oct 02, 2020", "2 May 2021"])
def test_dates_that_are_read_as_texts_are_noted(tool, tmp_path, written):
    rows = "".join(f'"{written}",{i % 7},{i % 2}\n' for i in range(60))
    (tmp_path / "dates.csv").write_text("opened,x,y\n" + rows)
    shown = " ".join(tool("learn", "dates.csv", "--target", "y", "--model", "polk").out.split())
    assert "column 'opened' is taken as text: dates are read where they are written" in shown
    assert "leave the column out (--drop opened)" in shown


def test_texts_that_never_come_again_are_noted(tool, tmp_path):
    rows = "".join(f"order-{i},{'ab'[i % 2]},label-{i % 3}\n" for i in range(60))
    (tmp_path / "orders.csv").write_text("order_id,kind,y\n" + rows)
    words = ("learn", "orders.csv", "--target", "y", "--model", "polk")
    shown = " ".join(tool(*words).out.split())
    assert "column 'order_id' differs in (nearly) every row" in shown
    assert "(--drop order_id)" in shown
    assert "column 'kind' differs" not in shown
    assert "differs" not in tool(*words, "--drop", "order_id").out


def test_texts_that_never_come_again_later_are_noted_once(tool, tmp_path):
    """The first batch does not say it, or says it already."""
    for name, first in (("late", 300), ("early", 0)):
        names = ["walk-in"] * first + [f"order-{i}" for i in range(600)]
        rows = "".join(f"{order},{i % 5},{i % 3}\n" for i, order in enumerate(names))
        (tmp_path / f"{name}.csv").write_text("order_id,x,y\n" + rows)
        words = ("learn", f"{name}.csv", "--target", "y", "--model", "polk", "--json")
        notes = json.loads(tool(*words, "--batch-rows", "300").out)["notes"]
        found = [note for note in notes if "'order_id'" in note]
        assert len(found) == 1
        assert "after 256 texts it weighs nothing: leave it out (--drop order_id)" in found[0]


def test_features_applied_where_they_know_nothing(tool, tmp_path):
    random = np.random.default_rng(0)
    for name, shift in (("here", 0.0), ("far", 1e4)):
        np.savetxt(tmp_path / f"{name}.csv", random.normal(size=(600, 2)) + shift,
                   delimiter=",", header="a,b", comments="")  # fmt: skip
    words = ("features", "here.csv", "--warm-up", "100", "--out", "f.parquet", "--save", "f.ks")
    words = (*words, "--units", "frozen")  # moving ones keep rows within those that were learned
    assert "not what they were learned from" not in " ".join(tool(*words).out.split())
    shown = tool("features", "far.csv", "--apply", "f.ks", "--out", "g.parquet").out
    assert "not what they were learned from" in " ".join(shown.split())
