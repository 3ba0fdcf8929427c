"""The names of the benchmarks lead somewhere, and the long ones run when they are made short."""

import re
from importlib import import_module

import numpy as np
import pytest

from benchmarks import kill, policy, soak
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
    chosen = [command for command in kill.commands() if command.rows_from == "pipe"][:1]
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
def test_a_run_that_ends_otherwise_is_told(monkeypatch, capsys):
    words = ["learn", "rows.csv", "--target", "nothing"]
    chosen = [kill.Command("wrong", words, "file", "place/checkpoint.ks", "aside.csv")]
    monkeypatch.setattr(kill, "commands", lambda: chosen)
    monkeypatch.setattr(kill, "ROWS", 200)
    kill.main()
    out = capsys.readouterr().out
    assert cells(out, "wrong")[2] == "0"
    assert "has no column 'nothing'" in out
