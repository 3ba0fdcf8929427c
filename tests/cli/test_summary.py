"""What `learn` says at its end: rare classes, nameless columns, importances, time, few rows."""

import json
import time

import numpy as np
import pytest

from kernelstream import Run, make_multidist
from kernelstream.cli.spelling import as_option
from kernelstream.evaluation import Prequential
from kernelstream.evaluation import learner as learners
from kernelstream.models import POLKClassifier


def write_rare(path, classes=("no", "yes")):
    """No column says anything about the classes, of which one is rare."""
    random = np.random.default_rng(0)
    label = np.where(random.random(600) < 0.03, classes[-1], classes[0])
    label[[100, 300]] = classes[1]
    lines = [f"{x:.3f},{y}" for x, y in zip(random.normal(size=600), label, strict=True)]
    path.write_text("\n".join(["x,label", *lines]))


def test_rare_classes_get_a_note_that_says_what_helps(tool, tmp_path):
    write_rare(tmp_path / "rows.csv")
    words = ("learn", "rows.csv", "--target", "label", "--json")
    notes = json.loads(tool(*words).out)["notes"]
    (note,) = (note for note in notes if "would have done" in note)  # and none about saved models
    assert "% of the rows are 'no'" in note
    for option in ("--metrics auc,log_loss", "predict --probabilities", "--class-weight balanced"):
        assert option in note
    assert "another --model" not in note
    # All of these options are there.
    more = ("--metrics", "auc,log_loss", "--class-weight", "balanced", "--out", "model.ks")
    found = json.loads(tool(*words, *more).out)
    assert {"auc", "log_loss"} <= set(found)
    assert "probability_yes" in tool("predict", "model.ks", "rows.csv", "--probabilities").out


def test_the_note_on_rare_classes_suits_the_classes_and_python(tmp_path):
    write_rare(tmp_path / "rows.csv", ("no", "maybe", "yes"))
    run = Run(tmp_path / "rows.csv", "label", parameters={"class_weight": "balanced"})
    (note,) = (note for note in run.run().notes if "% of the rows" in note)
    assert "metrics=['balanced_accuracy', 'log_loss']" in note
    assert "predict_proba" in note
    assert "class_weight" not in note  # it is there already
    assert as_option("metrics", ["auc", "log_loss"]) == "--metrics auc,log_loss"


@pytest.mark.parametrize(("rows", "shown"), [(1001, False), (1019, False), (1020, True)])
def test_a_handful_of_rows_says_nothing_of_the_saved_model(tool, tmp_path, rows, shown):
    x = np.random.default_rng(0).normal(size=rows)
    lines = [f"{each:.4f},{int(each > 0)}" for each in x]
    (tmp_path / "rows.csv").write_text("\n".join(["x,target", *lines]))
    out = tool("learn", "rows.csv", "--model", "polk").out
    assert ("saved model" in out) == shown


#: A header, the first value of its first column, and what a note must say.
HEADERS = {
    "no name": (",x,target", 0, ["'c0'", "row number", "--drop c0"]),
    "no name, from 1": (",x,target", 1, ["'c0'", "row number", "--drop c0"]),
    "no name, from 7": (",x,target", 7, ["no name", "'c0'"]),
    "pandas": ("Unnamed: 0,x,target", 0, ["'Unnamed: 0'", "row number", "--drop"]),
    "a name": ("t,x,target", 0, []),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_column_without_a_name_is_noted(tool, tmp_path, name):
    header, first, wanted = HEADERS[name]
    x = np.random.default_rng(0).normal(size=300)
    lines = [f"{first + i},{each:.4f},{int(each > 0)}" for i, each in enumerate(x)]
    (tmp_path / "rows.csv").write_text("\n".join([header, *lines]))
    words = ("learn", "rows.csv", "--model", "polk", "--json")
    notes = [note for note in json.loads(tool(*words).out)["notes"] if header.split(",")[0] in note]
    if not wanted:
        assert not [note for note in notes if "row number" in note or "no name" in note]
        return
    (note,) = (note for note in notes if "row number" in note or "no name" in note)
    assert all(word in note for word in wanted)
    assert ("row number" in note) == (first < 2)
    column = header.split(",")[0] or "c0"
    notes = json.loads(tool(*words, "--drop", column).out)["notes"]
    assert not [note for note in notes if "row number" in note or "no name" in note]


def test_the_sentence_and_the_importances_say_the_same(tool, tmp_path):
    """A steep but narrow column has the largest slopes, and is hardly ever needed."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 1500))
    y = 3.0 * np.tanh(b) + 0.5 * np.sin(12.0 * a)
    lines = [f"{i:.4f},{j:.4f},{k:.4f}" for i, j, k in zip(a, b, y, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *lines]))
    words = ("learn", "rows.csv", "--target", "y", "--importances")
    found = json.loads(tool(*words, "--json").out)
    first = next(iter(found["importances"]))
    assert f"{first} matters most" in found["what_it_did"]
    out = tool(*words).out
    assert f"importances  {first} {100.0 * found['importances'][first]:.0f} %" in out
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *lines[:100]]))
    assert "none yet: columns are shuffled every 256 rows" in tool(*words).out


def test_compiling_is_no_part_of_the_time(monkeypatch):
    from numba.core.compiler_lock import global_compiler_lock

    X, y = make_multidist(100, random_state=0)
    learn = learners.Learner.predict_then_learn

    def compile_first(*arguments):
        with global_compiler_lock:
            time.sleep(0.5)
        return learn(*arguments)

    monkeypatch.setattr(learners.Learner, "predict_then_learn", compile_first)
    run = Prequential(POLKClassifier())
    begin = time.perf_counter()
    run.update(X, y)
    assert time.perf_counter() - begin - run.seconds >= 0.5
