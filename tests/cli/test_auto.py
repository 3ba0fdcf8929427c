"""The automatic model, which is what the tool uses where nothing is given."""

import json

import pytest

from kernelstream import load
from tests.cli.tools import write_rows


@pytest.fixture(params=[False, True], ids=["classes", "numbers"])
def told(request, tool, tmp_path):
    """What learn says of it, with a model and a page."""
    rows = write_rows(tmp_path / "rows.csv", 1500, numbers=request.param)
    words = ("learn", rows, "--target", "height" if request.param else "label", "--window", 400)
    words = (*words, "--out", "m.ks", "--report", "page.html")
    return request.param, words, json.loads(tool(*words, "--json").out)


def test_what_it_did_is_told(tool, tmp_path, told):
    numbers, words, shown = told
    assert sum(shown["experts"].values()) == pytest.approx(1.0)
    assert set(shown["importances"]) >= {"x", "y", "city", "one"}
    assert max(shown["importances"], key=shown["importances"].get) in ("x", "y", "city")
    assert shown["drifts"] == []
    metric = "mae" if numbers else "accuracy"
    assert shown["frozen"]["rows"] == 1500 - 800
    text = " ".join(tool(*words).out.split())
    assert shown["what_it_did"] in text
    assert "last 400: " in text
    assert f"saved model {metric} " in text
    assert "on the last 700 rows, not learned from them" in text
    page = (tmp_path / "page.html").read_text()
    for part in ("What the model did", "Shares of the experts", "Which columns matter",
                 "Saved model", "The model in a picture", shown["what_it_did"]):  # fmt: skip
        assert part in page
    for part in ("Error spent", "Error budget", "most influential"):
        assert part not in page


def test_the_last_rows_of_a_short_file_are_all(tool, tmp_path):
    rows = write_rows(tmp_path / "rows.csv", 300)
    assert "last 1" not in tool("learn", rows, "--target", "label").out


def test_inspect(tool, tmp_path, told):
    _, _, shown = told
    seen = json.loads(tool("inspect", "m.ks", "--json", "--report", "inspect.html").out)
    for name in ("experts", "importances", "drifts", "what_it_did"):
        assert seen[name] == shown[name]
    assert seen["kernel"] is seen["error_spent"] is None
    assert seen["influential"] == []
    text = " ".join(tool("inspect", "m.ks").out.split())
    assert shown["what_it_did"] in text
    assert "influential" not in text
    assert "Shares of the experts" in (tmp_path / "inspect.html").read_text()
    tool("evaluate", "m.ks", "rows.csv")
    assert len(tool("predict", "m.ks", "rows.csv").out.splitlines()) == 1501


@pytest.mark.parametrize("words", [
    ("compress", "m.ks", "--max-points", 5, "--out", "s.ks"), ("merge", "m.ks", "--out", "s.ks"),
])  # fmt: skip
def test_it_is_not_one_function(tool, tmp_path, rows, words):
    tool("learn", rows, "--target", "label", "--out", "m.ks")
    refused = tool(*words, code=2).err
    assert "(AutoClassifier) cannot be compressed or merged: it is many experts" in refused
    assert "or with --model polk" in refused


def test_it_is_like_no_other(tool, model, rows):
    words = ("learn", rows, "--target", "label", "--like", model)
    refused = tool(*words, code=2).err
    assert "--like is for models that are to be merged: AutoClassifier cannot be" in refused
    tool(*words, "--model", "polk", "--out", "alike.ks")
    assert load("alike.ks").prepares_like(load(model))
