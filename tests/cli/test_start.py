"""What the tool imports: nothing to say its version, little for a list, no more than it needs."""

import json
import os
import subprocess
import sys

import pytest
import sklearn

from kernelstream import POLKClassifier, StreamModel, __version__
from kernelstream.cli.commands import COMMANDS
from kernelstream.cli.starting import use_one_thread

OLD_SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
SCRIPT = """
import json, sys
from kernelstream.cli import main
sys.argv = ["kernelstream", *json.loads(sys.argv[1])]
try:
    main()
finally:
    print(json.dumps([name for name, module in sys.modules.items() if "." not in name
                      or name.startswith(("kernelstream", "scipy.stats"))]),
          file=sys.stderr)
"""


def imported(*words):
    """What is on standard output, and the modules that were imported for it."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(list(map(str, words)))],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ended.stdout, set(json.loads(ended.stderr.splitlines()[-1]))


def test_the_version_needs_nothing():
    out, modules = imported("--version")
    assert out == f"{__version__}\n"
    assert not {"numpy", "typer", "click", "rich"} & modules
    ours = {name for name in modules if name.startswith("kernelstream")}
    assert ours == {"kernelstream", "kernelstream._version", "kernelstream.cli"}


def test_a_list_of_commands_needs_no_command():
    out, modules = imported("--help")
    assert all(name in out for name in ("learn", "predict", "datasets"))
    assert not {"numpy", "numba", "scipy", "sklearn", "pyarrow", "matplotlib"} & modules
    assert not {"kernelstream.cli.learn", "kernelstream.streams"} & modules


@pytest.mark.slow
def test_predicting_needs_no_more_than_it_uses(tmp_path):
    rows = {"x": [0.0, 1.0, 2.0, 3.0], "s": ["a", "b", "a", "b"], "y": [0, 0, 1, 1]}
    StreamModel.for_rows(rows, "y", POLKClassifier()).learn(rows).save(tmp_path / "m.ks")
    (tmp_path / "rows.csv").write_text("x,s\n0.5,a\n,b\n")
    out, modules = imported("predict", tmp_path / "m.ks", tmp_path / "rows.csv")
    assert len(out.splitlines()) == 3
    assert "sklearn" in modules  # or this test would say nothing
    if not OLD_SKLEARN:  # which imports them itself
        assert not {"pandas", "scipy.stats", "matplotlib", "jinja2"} & modules
    assert not {"kernelstream.models.avm", "kernelstream.models._auto"} & modules
    assert not {"kernelstream.evaluation", "kernelstream.runs", "kernelstream.network"} & modules


def test_the_table_says_what_the_commands_say():
    for name, command in COMMANDS.items():
        loaded = command.load(name.split()[-1])
        assert loaded.name == name.split()[-1]
        assert loaded.help.partition("\n")[0] == command.summary
        assert command.example.startswith(f"kernelstream {name}")


RIVAL = """
import pandas, scipy
from sklearn.linear_model import SGDClassifier
from sklearn.utils.fixes import _mode
assert pandas.DataFrame({"x": [1]}).x.sum() == 1
assert _mode([1, 2, 2], axis=0).mode == 2 and scipy.stats.mode
class Rival(SGDClassifier):
    pass
"""


def test_programs_of_others_find_what_was_not_imported_with_scikit_learn(tmp_path):
    (tmp_path / "rival.py").write_text(RIVAL)
    (tmp_path / "broken.py").write_text("raise RuntimeError('not today')")
    (tmp_path / "rows.csv").write_text("x,y\n" + "0.5,a\n1.5,b\n" * 20)
    models = "python:rival.Rival,python:broken.Learner,river:linear_model.LogisticRegression"
    words = ("compare", "rows.csv", "--target", "y", "--models", models, "--json", "--quiet")
    ended = subprocess.run(
        [sys.executable, "-m", "kernelstream", *words],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    found = {each["name"]: each["problem"] for each in json.loads(ended.stdout)["programs"]}
    assert found.pop("python:broken.Learner").startswith("cannot be imported: not today")
    assert not any(found.values())


def test_the_environment_decides_how_many_threads_there_are(monkeypatch):
    monkeypatch.setattr(os, "environ", {"OPENBLAS_NUM_THREADS": "3"})
    use_one_thread()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
    assert os.environ["MKL_NUM_THREADS"] == "1"
