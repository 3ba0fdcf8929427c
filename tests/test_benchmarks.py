"""The names of the benchmarks lead somewhere, and the long ones run when they are made short."""

import hashlib
import os
import re
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from benchmarks import (
    auto,
    auto_programs,
    auto_streams,
    fuzz,
    fuzz_files,
    kill,
    policy,
    raw_tables,
    soak,
)
from benchmarks.__main__ import BENCHMARKS, USUAL


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_name_is_a_function(name):
    module, function = BENCHMARKS[name].split(".")
    assert callable(getattr(import_module(f"benchmarks.{module}"), function))


def test_the_usual_ones_are_there():
    assert set(USUAL) <= set(BENCHMARKS)


def cells(table, name):
    """The row of a Markdown table that begins with a name."""
    row = next(line for line in table.splitlines() if line.startswith(f"| {name} "))
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("name", soak.RUNS)
def test_a_short_soak(name):
    _, _, size, grown, each, ratio, residual, _, error = soak._soak(name, 1000)
    assert all(int(number.replace(",", "")) > 0 for number in re.split(", ", size))
    assert grown < 100.0
    assert ratio > 0.0
    assert all(float(number) > 0.0 for number in each.split(", "))
    assert residual == "none" if name == "AVM" else 0.0 <= residual < 1e-6
    assert all(0.0 <= float(number) < 100.0 for number in error.split(", "))


def test_a_soak_that_fails_is_shown(monkeypatch, capsys):
    # The process that learns it does not know this name.
    monkeypatch.setattr(soak, "RUNS", {"broken": soak.RUNS["POLK"]})
    monkeypatch.setenv("KERNELSTREAM_BENCH_SHARE", "1e-5")
    soak.main()
    assert cells(capsys.readouterr().out, "broken")[1:3] == ["1,000", "FAILED: KeyError('broken')"]


def test_the_drifting_value_function_is_right():
    """Against the rewards of many walks from the same state."""
    random = np.random.default_rng(0)
    phase, discounts = 0.3, policy.DISCOUNT ** np.arange(100)
    angle = 2.0 * np.pi * phase
    centre = soak.RADIUS * np.array([np.cos(angle), np.sin(angle)])
    states, rewards, _, truth = soak.rewarded_walk(phase, 50, random)
    away = states - centre
    assert np.allclose(rewards, -np.einsum("ij,jk,ik->i", away, policy.COST, away))
    x, returns = np.repeat(states[:1], 20_000, axis=0), 0.0
    for discount in discounts:
        away = x - centre
        returns -= discount * np.einsum("ij,jk,ik->i", away, policy.COST, away)
        x = x @ policy.A.T + random.multivariate_normal(np.zeros(2), policy.NOISE, len(x))
    assert abs(returns.mean() - truth[0]) < 5.0 * returns.std() / np.sqrt(len(returns))


@pytest.mark.slow
def test_killing_a_little(monkeypatch, capsys):
    polk = [command for command in kill.commands() if command.name == "learn --model polk"]
    chosen = [command for command in polk if command.rows_from == "pipe"]
    monkeypatch.setattr(kill, "commands", lambda: chosen)
    monkeypatch.setattr(kill, "ROWS", 2000)
    monkeypatch.setenv("KERNELSTREAM_BENCH_SHARE", "0.08")
    kill.main()
    out = capsys.readouterr().out
    row = cells(out, "learn --model polk")
    assert row[:3] == ["learn --model polk", "pipe", "2"]
    assert row[-2:] == [f"{row[-3]} of {row[-3]}"] * 2
    assert "No failures." in out


@pytest.mark.slow
def test_a_run_that_ends_otherwise_is_reported(monkeypatch, capsys):
    words = ["learn", "rows.csv", "--target", "nothing"]
    chosen = [kill.Command("wrong", words, "file", "place/checkpoint.ks", "aside.csv")]
    monkeypatch.setattr(kill, "commands", lambda: chosen)
    monkeypatch.setattr(kill, "ROWS", 200)
    kill.main()
    out = capsys.readouterr().out
    assert cells(out, "wrong")[2] == "0"
    assert "has no column 'nothing'" in out


def test_quality_of_probabilities():
    """Ten rows said to be right with .8 of which seven are; votes of 0 are no knowledge."""
    y = np.array([0] * 7 + [1] * 3)
    found = auto.quality(np.tile([4.0, 1.0], (10, 1)), y)
    assert found["error"] == pytest.approx(30.0)
    assert found["ece"] == pytest.approx(10.0)
    assert found["log_loss"] == pytest.approx(-(7 * np.log(0.8) + 3 * np.log(0.2)) / 10)
    assert auto.quality(np.zeros((10, 2)), y)["log_loss"] == pytest.approx(np.log(2.0))


def test_units_of_targets_know_nothing_of_the_future():
    y = np.random.default_rng(0).normal(5.0, 2.0, size=200)
    changed = np.where(np.arange(200) >= 100, 0.0, y)
    whole, other = auto_programs.target_units(y), auto_programs.target_units(changed)
    assert all(np.array_equal(a[:101], b[:101]) for a, b in zip(whole, other, strict=True))
    assert whole[0][100] == pytest.approx(y[:100].mean())
    assert whole[1][100] == pytest.approx(y[:100].std())


def test_probabilities_of_false_and_true_are_told_apart():
    class Certain:
        def predict_proba_one(self, x):
            return {False: 0.3, True: 0.7}

        def learn_one(self, x, y):
            pass

    stream = auto_streams.Stream("two", np.zeros((2, 1)), np.array([0, 1]), False)
    assert auto_programs._river(lambda many: Certain(), stream).tolist() == [[0.3, 0.7]] * 2


@pytest.mark.slow
def test_the_automatic_model_is_compared_and_the_cells_are_kept(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELSTREAM_BENCH_SHARE", "0.02")
    monkeypatch.setattr(auto_streams, "folder", lambda: None)
    chosen = [
        p for p in auto_programs.programs() if p.name in ("automatic", "AVM", "Nystroem + SGD")
    ]
    names = ("moving squares", "season and trend")
    streams = {name: auto_streams.all_streams()[name] for name in names}
    monkeypatch.setattr(auto, "programs", lambda: chosen)
    monkeypatch.setattr(auto, "all_streams", lambda: streams)
    auto.main()
    out = capsys.readouterr().out
    assert len([float(cell) for cell in cells(out, "moving squares")[1:]]) == 3
    assert cells(out, "times the first, geometric mean")[1] == "1.00"
    # Nothing is measured again.
    monkeypatch.setattr(auto, "measure", None)
    auto.main()
    assert cells(capsys.readouterr().out, "moving squares") == cells(out, "moving squares")


def test_damage_is_the_same_every_time(tmp_path):
    files = {}
    for name in ("KernelExpansion", "KernelFeatures"):
        files[name] = tmp_path / f"{name}.ks"
        fuzz_files.makers()[name]().save(files[name])
    cases = list(fuzz.damaged_models(files, 200))
    assert cases == list(fuzz.damaged_models(files, 200))
    unchanged = [case for case in cases if case.data == files[case.kind].read_bytes()]
    assert len(unchanged) < 20
    # Behind a right checksum the damage is not noticed at once.
    sealed = [case for case in cases if case.how == (True,)]
    right = [c for c in sealed if hashlib.sha256(c.data[:-32]).digest() == c.data[-32:]]
    assert right == sealed


def test_a_wrong_model_is_no_harmless_change(tmp_path):
    path, name = tmp_path / "function.ks", "KernelExpansion"
    function = fuzz_files.makers()[name]()
    function.save(path)
    right = fuzz_files.what_is_right(name, path)
    assert fuzz_files.look_at_model(name, path, False, right).what == "same"
    (2.0 * function).save(path)
    assert fuzz_files.look_at_model(name, path, False, right).what == "wrong"
    assert fuzz_files.look_at_model(name, path, True, right).what == "another"
    path.write_bytes(path.read_bytes()[:-1])
    assert fuzz_files.look_at_model(name, path, True, right).what == "refused"


def test_a_factor_of_other_points_is_reported(tmp_path):
    model = fuzz_files.makers()["POLKClassifier"]()
    assert fuzz_files.inconsistency(model, fuzz_files.say(model), tmp_path / "again") == ""
    model._state.factor[...] *= 1.5
    found = fuzz_files.inconsistency(model, fuzz_files.say(model), tmp_path / "again")
    assert found.startswith("its Gram factor is off by 1.25")


def misbehave(connection, folder, originals):
    """In place of the process that looks at files."""
    connection.send(originals)
    case = connection.recv()
    if case.kind == "hang":
        while True:
            pass
    if case.kind == "crash":
        os.abort()
    connection.send(fuzz.Seen("same", "", 0.0, 200 * 10**6))


@pytest.mark.slow
def test_hangs_crashes_and_memory_are_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(fuzz, "_work", misbehave)
    monkeypatch.setattr(fuzz, "MOST_WORK", 0.2)
    kinds = ("hang", "crash", "large")
    cases = (fuzz.Case(kind, "somehow", b"", ()) for kind in kinds)
    failures = []
    with fuzz.Worker(tmp_path) as worker:
        rows = list(fuzz._table(worker, cases, ("same",), failures))
    assert [row[:6] for row in rows] == [
        ("hang", 1, 0, 0, 1, 0), ("crash", 1, 0, 0, 1, 0), ("large", 1, 1, 0, 0, 1),
        ("all", 3, 1, 0, 2, 1),
    ]  # fmt: skip
    assert [failure.partition(",")[0] for failure in failures] == [f"* {kind}" for kind in kinds]


@pytest.mark.slow
def test_a_little_damage(monkeypatch, capsys):
    monkeypatch.setattr(fuzz, "MODEL_FILES", 66)
    monkeypatch.setattr(fuzz, "ROW_FILES", 5)
    fuzz.main()
    out = capsys.readouterr().out
    assert cells(out, "all")[1] == "66"
    assert cells(out, "csv")[1] == "1"
    assert "No failures." in out


def test_whole_sets_in_several_orders(monkeypatch, capsys, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    np.savez(tmp_path / "a9a.npz", X_train=X[:300], X_test=X[300:],
             y_train=X[:300, 0] > 0, y_test=X[300:, 0] > 0)  # fmt: skip
    monkeypatch.setattr(auto_streams, "folder", lambda: tmp_path)
    auto.whole()
    out = capsys.readouterr().out
    row = cells(out, "a9a")
    errors = [float(cell) for cell in row[2:]]
    assert row[1] == "400"
    assert 0.0 < max(errors) < 20.0
    assert errors[-1] == pytest.approx(np.mean(errors[1:-1]), abs=0.01)
    assert "ijcnn1" not in out  # not there


@pytest.mark.parametrize("numbers", [True, False])
def test_the_linear_baseline_is_ridge_regression_on_the_rows_before(numbers):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = X @ [1.0, -2.0, 0.5] + random.normal(size=60)
    y = y if numbers else np.digitize(y, [-1.0, 1.0])
    apart = [(X[t] - X[: t + 1].mean(axis=0)) / X[: t + 1].std(axis=0) for t in range(1, 60)]
    inputs = np.column_stack([np.ones(60), np.vstack([np.zeros(3), apart])])
    unit = (y - y[:20].mean()) / y[:20].std()
    truth = unit[:, None] if numbers else np.eye(3)[y]
    made = np.zeros(truth.shape)
    for t in range(1, 60):
        Z = inputs[:t]
        made[t] = inputs[t] @ np.linalg.solve(Z.T @ Z + np.eye(4), Z.T @ truth[:t])
    expected = (made[1:].argmax(axis=1) == y[1:]).mean()
    if numbers:
        expected = (
            1.0
            - np.square(truth - made)[1:].sum()
            / np.square(y[1:] - y[1:].mean()).sum()
            * y[:20].var()
        )
    halves = [(X[:25], y[:25]), (X[25:], y[25:])]
    assert raw_tables._linear(halves, numbers) == pytest.approx(expected)


def test_targets_of_raw_tables():
    n = 200
    table = pd.DataFrame({
        "rownames": np.arange(n), "id": np.arange(n) * 3, "height": np.sin(np.arange(n)),
        "sex": ["f", "m"] * (n // 2), "name": [f"n{i}" for i in range(n)],
    })  # fmt: skip
    assert list(raw_tables._targets(table, "any")) == [("height", True), ("sex", False)]


def test_a_raw_table_is_measured_as_it_is_learned(tmp_path):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"x": random.normal(size=300), "city": random.choice(["a", "b"], 300)})
    table["y"] = table.x + (table.city == "a")
    table.to_csv(tmp_path / "table.csv", index=False)
    found = raw_tables._measure(tmp_path / "table.csv", "y", True, "table, y")
    assert found.rows == 300
    assert found.no_change < -0.5
    assert found.usual < 0.0 < 0.8 < min(found.ours, found.linear)
    assert found.ahead == found.ours - found.usual
    assert raw_tables._split(np.array([0.1, 0.0, -0.01, -0.5]), 0.02) == (1, 2, 1)
