"""A search for parameters: who stays, what it comes to, stopped and resumed."""

import json

import numpy as np
import pytest

from kernelstream import Run, TuningRun, storage, tune
from kernelstream.cli.tune import _shown
from kernelstream.runs import RunError
from kernelstream.runs.tuning import _rungs
from tests.cli.tools import Tool, write_rows


def rings(n=900):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 2))
    return X, (np.hypot(*X.T) > 1.2).astype(int)


SETTINGS = {"model": "polk", "trials": 9, "rows": 900, "batch_rows": 200}


def outline(result):
    return [(each.number, each.rows, each.value, each.parameters) for each in result.trials]


def test_the_worse_leave_early_and_the_best_see_all_rows():
    found = tune(rings(), **SETTINGS)
    assert sorted(each.number for each in found.trials) == list(range(9))
    assert [each.rows for each in found.trials] == [900] * 4 + [300] * 5
    finalists, others = found.trials[:4], found.trials[4:]
    assert found.default in finalists  # so that both are measured on the same rows
    values = [each.value for each in finalists]
    assert values == sorted(values, reverse=True)
    assert [each.value for each in others] == sorted((e.value for e in others), reverse=True)
    # Who left was worse after 300 rows than who stayed.
    early = TuningRun(rings(), **{**SETTINGS, "rows": 300}).run()
    drawn = [each for each in early.trials if each.number]
    assert {each.number for each in drawn[:3]} | {0} == {each.number for each in finalists}
    assert drawn[3].value == others[0].value


def test_the_value_is_that_of_a_run(tmp_path):
    file = write_rows(tmp_path / "rows.csv", 400)
    found = tune(file, "label", "avm", trials=4, rows=400, parameters={"loss": "log_loss"})
    assert found.parameters["loss"] == "log_loss"
    assert "loss" not in found.best.parameters
    again = Run(file, "label", "avm", parameters=found.parameters).run()
    assert again.metrics["accuracy"] == found.best.value
    usual = Run(file, "label", "avm", parameters={"loss": "log_loss"}).run()
    assert usual.metrics["accuracy"] == found.default.value


def test_numbers_are_searched_by_their_error(tmp_path):
    file = write_rows(tmp_path / "rows.csv", 600, numbers=True)
    found = tune(file, "height", "polk", trials=4, rows=600, warm_up=50, only=["gamma", "eta0"])
    assert found.metric == "mae"
    assert set(found.parameters) <= {"gamma", "eta0"}
    values = [each.value for each in found.trials if each.rows == 600]
    assert values == sorted(values)
    assert len(values) >= 3


def test_it_goes_on_as_if_nothing_had_happened(tmp_path):
    settings = {**SETTINGS, "checkpoint": tmp_path / "search", "checkpoint_seconds": 0.0}
    first = TuningRun(rings(), **settings)
    for _ in first:
        if first.samples >= 500:
            break
    del first  # as if it was killed
    again = TuningRun(rings(), **settings, resume=True)
    assert 300 <= again.samples < 900
    assert len(again.left) == 4
    assert outline(again.run()) == outline(tune(rings(), **SETTINGS))
    finished = TuningRun(rings(), **settings, resume=True).run()
    assert outline(finished) == outline(again.result())
    with pytest.raises(RunError, match="holds a search already"):
        TuningRun(rings(), **settings)
    with pytest.raises(RunError, match=r"other settings: trials \(9 then, 8 now\)"):
        TuningRun(rings(), **{**settings, "trials": 8}, resume=True)


def test_files_that_are_no_search(tmp_path):
    settings = {**SETTINGS, "checkpoint": tmp_path, "resume": True}
    (tmp_path / "tuning.ks").write_bytes(b"nothing")
    with pytest.raises(RunError, match="delete it"):
        TuningRun(rings(), **settings)
    storage.write(tmp_path / "tuning.ks", "Other", {}, {})
    with pytest.raises(RunError, match="is no search"):
        TuningRun(rings(), **settings)
    storage.write(tmp_path / "tuning.ks", "Tuning", {"plan": {"parameters": {}}}, {})
    with pytest.raises(RunError):
        TuningRun(rings(), **settings)


def test_short_streams_and_stops():
    found = tune(rings(250), **SETTINGS)
    assert found.samples == 250
    assert {each.rows for each in found.trials} == {250}
    assert any("rows of the 900" in note for note in found.notes)
    run = TuningRun(rings(), **SETTINGS)
    for _ in run:
        run.stop("enough")
    assert run.result().stopped_by == "enough"


def test_who_fails_leaves(monkeypatch):
    from kernelstream.evaluation.prequential import Prequential

    taught = Prequential._update_prepared

    def fails(self, X, y):
        if self.model.eta0 > 1.0:
            raise ValueError("too far " * 50)
        taught(self, X, y)

    monkeypatch.setattr(Prequential, "_update_prepared", fails)
    found = tune(rings(), **SETTINGS)
    failed = [each for each in found.trials if each.problem]
    assert failed
    assert all(each.parameters["eta0"] > 1.0 for each in failed)
    assert found.trials[-1].problem == "failed at row 0: " + " ".join(["too far"] * 50)
    assert not found.best.problem
    note = next(note for note in found.notes if f"{len(failed)} of 9 candidates failed" in note)
    assert note.endswith("too far")
    longer = found._replace(trials=[*found.trials[:1] * 9, *failed])
    assert any(each.problem for each in _shown(longer))


def test_rungs():
    assert _rungs(27, 27_000, 300) == [3000, 9000]
    assert _rungs(3, 1000, 300) == []
    assert _rungs(81, 27_000, 2000) == [2000, 3000, 9000]
    assert _rungs(81, 1000, 2000) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "auto"}, "no parameters to search"),
        ({"only": ["max_points"]}, "has no range"),
        ({"trials": 1}, "leaves nothing to compare"),
        ({"model": "rbp", "task": "regression"}, "does not learn regression"),
        ({"target": "y"}, "y"),
    ],
)
def test_mistakes_have_a_cure(settings, message):
    with pytest.raises(ValueError, match=message):
        tune(rings(50), **{**SETTINGS, **settings})


def test_the_command(tmp_path, capsys, monkeypatch):
    tool = Tool(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv", 400)
    words = ("tune", "rows.csv", "--target", "label", "--model", "polk", "--trials", "4", "--rows",
             "400", "--only", "gamma,eta0", "--buckets", "16", "--no-standardise")  # fmt: skip
    shown = tool(*words).out
    command = next(line for line in shown.splitlines() if "kernelstream learn rows.csv" in line)
    numbers = json.loads(tool(*words, "--json").out)
    assert numbers["command"] in command
    assert "--buckets 16" in command
    assert "--no-standardise" in command
    typed = numbers["command"].split()[1:]
    learned = json.loads(tool(*typed, "--json").out)
    assert learned["accuracy"] == numbers["value"]
    first = ("tune", "rows.csv", "--target", "label")
    assert "has no range" in tool(*first, "--only", "nothing", code=2).err
    assert "add --checkpoint" in tool(*first, "--resume", code=2).err
    assert "--eta0 x is not accepted" in tool(*first, "--eta0", "x", code=2).err
