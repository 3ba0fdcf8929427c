"""What the tool says of AVM: its cells, and the options that it has."""

import inspect
import json
import re

import pytest

from kernelstream import KernelExpansion, load
from kernelstream.cli.methods import METHODS, method_options
from kernelstream.registry import DEFAULT
from tests.cli.tools import write_rows


@pytest.fixture
def learn(tool, tmp_path):
    """``learn --model avm`` with more options; more cells than there is room for."""
    write_rows(tmp_path / "rows.csv", 600)

    def learn(*words):
        return tool(
            "learn", "rows.csv", "--target", "label", "--model", "avm", "--max-points", 5,
            "--out", "m.ks", *words,
        )  # fmt: skip

    return learn


def test_a_cap_removes_nothing(tool, learn):
    learn()
    assert "samples outside cells" in tool("inspect", "m.ks").out
    facts = json.loads(tool("inspect", "m.ks", "--json").out)
    assert facts["samples_outside_cells"] > 0
    assert "forced_removals" not in facts


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("avm", "try another --gamma, --alpha, --delta or --model"),
        ("polk", "try another --gamma, --eta0 or --model"),
        ("colk", "try another --gamma, --eta0 or --model"),
    ],
)
def test_advice_names_options_of_the_method(tool, tmp_path, method, advice):
    """Labels by the row: no change is right but for once."""
    lines = [f"{i % 7},{'no' if i < 300 else 'yes'}" for i in range(600)]
    (tmp_path / "runs.csv").write_text("x,label\n" + "\n".join(lines) + "\n")
    words = ("learn", "runs.csv", "--target", "label", "--model", method, "--report", "r.html")
    assert any(advice in note for note in json.loads(tool(*words, "--json").out)["notes"])
    assert advice in (tmp_path / "r.html").read_text()


def test_every_method_has_what_is_advised():
    for name, method in METHODS.items():
        for kind in method.estimators:
            assert set(method.try_first) <= set(inspect.signature(kind).parameters)
        assert method.try_first or name == DEFAULT  # there is nothing to choose


def test_delta_is_shown(tool, learn, tmp_path):
    delta = json.loads(learn("--json", "--report", "r.html").out)["delta"]
    words = f"{delta:.3g} (auto)"
    assert f"delta  {words}" in learn().out
    assert f"delta  {words}" in tool("inspect", "m.ks", "--report", "page.html").out
    assert json.loads(tool("inspect", "m.ks", "--json").out)["delta"] == delta
    assert words in (tmp_path / "r.html").read_text()
    assert words in (tmp_path / "page.html").read_text()
    assert re.search(r"delta  2 *\n", learn("--delta", 2).out)


@pytest.mark.parametrize("words", [("compress", "m.ks", "--max-points", 3), ("merge", "m.ks")])
def test_what_can_be_done_instead_of_compressing(tool, learn, words):
    learn()
    said = tool(*words, "--out", "small.ks", code=2).err
    assert said.startswith("kernelstream: m.ks (AVMClassifier) cannot be compressed or merged")
    assert said.count("\n") == 1
    function = load("m.ks").model.expansion_  # as it says
    assert len(function.compress(max_points=3)) == 3
    assert len(KernelExpansion.merge([function, function])) <= 5
    for word in ("--delta", "expansion_", "f.compress(max_points=N)", "KernelExpansion.merge"):
        assert word in said


def test_other_methods_have_no_delta(tool, model):
    assert "delta" not in json.loads(tool("inspect", model, "--json").out)


def test_help_says_what_average_is_in_each_method():
    text = method_options()["average"]
    assert "colk, polk: Predict with an average" in text
    for word in ("avm: Predict with the mean", "True", "False", '"auto"'):
        assert word in text
    text = method_options()["average_horizon"]
    assert "colk, polk: Of average: how many steps" in text
    assert "avm: Of average: the last part of the stream" in text


def test_only_kernels_that_avm_takes_are_offered(tool, rows):
    words = ("learn", rows, "--target", "label", "--model", "avm", "--kernel", "rbff")
    said = tool(*words, code=2).err
    offered = "gaussian, laplacian, matern12, matern32, matern52, rbf"
    assert said.endswith(f"did you mean rbf? Use one of: {offered}\n")
