"""Files written by every release so far load, predict the same and go on learning."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import kernelstream
from kernelstream import KernelExpansion, Run
from kernelstream.streams import open_stream
from tests.cli.tools import Tool
from tests.golden.write import EXTRACTION, RUNS, learn, more, predict, rows, write_table

FOLDER = Path(__file__).parent / "golden"
MODELS = sorted(
    path.relative_to(FOLDER) for path in FOLDER.glob("*/*.ks") if "tool" not in path.name
)
RELEASES = sorted(path.name for path in FOLDER.glob("*/"))


@pytest.mark.parametrize("name", MODELS, ids=str)
def test_old_models_predict_the_same_and_go_on(name):
    path = FOLDER / name
    expected = np.load(path.parent / "expected.npz", allow_pickle=False)
    load = KernelExpansion.load if name.stem == "expansion" else kernelstream.load
    model = load(path)
    np.testing.assert_allclose(predict(model, rows()), expected[name.stem], rtol=1e-9, atol=1e-9)
    if f"{name.stem} later" in expected:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kernelstream.CapWarning)
            later = predict(learn(model, *more()), rows())
        np.testing.assert_allclose(later, expected[f"{name.stem} later"], rtol=1e-7, atol=1e-7)


def columns(text):
    """Numbers and words of a table without its header."""
    table = [line.split(",") for line in text.splitlines()[1:]]
    return [float(field) if field[-1:].isdigit() else field for row in table for field in row]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", RUNS)
def test_old_runs_go_on(release, name, tmp_path, monkeypatch, capsys):
    tool = Tool(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "rows.csv", 300)
    shutil.copytree(FOLDER / release / f"{name}-checkpoint", "run")
    tool(*RUNS[name].split(), "--quiet", "--resume", "--checkpoint", "run", "--out", "again.ks")
    again, later = (
        columns(tool("predict", path, "rows.csv").out)
        for path in ("again.ks", FOLDER / release / f"{name}-later.ks")
    )
    assert again == pytest.approx(later, rel=1e-7) if "numbers" in name else again == later


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("name", "target", "other"), [
    ("tool-classes", "label", "height"), ("tool-numbers", "height", "label"),
])  # fmt: skip
def test_old_runs_go_on_in_python(release, name, target, other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "rows.csv", 300)
    shutil.copytree(FOLDER / release / f"{name}-checkpoint", "run")
    run = Run(
        "rows.csv", target, parameters={"max_points": 20}, drop=[other], buckets=4,
        checkpoint="run", resume=True,
    )  # fmt: skip
    assert run.samples == 200
    again, later = run.run().model, kernelstream.load(FOLDER / release / f"{name}-later.ks")
    assert again.model.n_seen_ == later.model.n_seen_
    found, expected = (
        model.predict(next(open_stream("rows.csv"))).tolist() for model in (again, later)
    )
    assert found == pytest.approx(expected, rel=1e-7) if "numbers" in name else found == expected


@pytest.mark.parametrize("release", RELEASES)
def test_old_extractors_give_the_same_features(release, tmp_path, monkeypatch, capsys):
    tool = Tool(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "rows.csv", 300)
    shutil.copy(FOLDER / release / "tool-features.ks", tmp_path)
    tool(*EXTRACTION[1].split())
    again, before = (
        columns((folder / "tool-features.csv").read_text())
        for folder in (tmp_path, FOLDER / release)
    )
    assert again == pytest.approx(before, abs=1e-9)
