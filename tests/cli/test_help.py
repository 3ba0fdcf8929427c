"""Every command explains itself, with an example that works."""

import inspect
import shlex
import subprocess
import sys
from typing import Any

import pytest
import typer

from kernelstream import __version__
from kernelstream.cli import commands as table
from kernelstream.cli import demo
from kernelstream.cli.app import app
from kernelstream.cli.methods import METHODS, method_options


def _commands(command: Any, name: str = "") -> dict[str, Any]:
    if not hasattr(command, "list_commands"):
        return {name: command}
    found = {}
    for word in command.list_commands(None):
        found |= _commands(command.get_command(None, word), f"{name} {word}".strip())
    return found


COMMANDS = _commands(typer.main.get_command(app))
EXAMPLES = {name: command.example for name, command in table.COMMANDS.items()}


def test_every_command_has_an_example_in_its_help(tool):
    assert set(COMMANDS) == set(EXAMPLES)
    for name, command in COMMANDS.items():
        assert EXAMPLES[name].startswith(f"kernelstream {name} ") or name == "datasets list"
        assert command.epilog == f"Example: {EXAMPLES[name]}"
        shown = tool(*name.split(), "--help").out
        assert "Example: kernelstream" in shown
        assert all(option.help for option in command.params), name


def test_what_commands_share_has_the_same_words():
    texts: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for option in command.params:
            texts.setdefault(option.name, set()).add(option.help)
    shared = (
        "format", "delimiter", "header", "task", "drop", "column", "buckets", "standardise",
        "n_features", "batch_rows", "as_json", "quiet",
    )  # fmt: skip
    assert [name for name in shared if len(texts[name]) > 1] == []


def test_the_examples_run_in_order(tool, tmp_path, monkeypatch):
    smaller = tuple((name, rows // 20, options) for name, rows, options in demo._STREAMS)
    monkeypatch.setattr(demo, "_STREAMS", smaller)
    examples = dict(EXAMPLES)
    polk = "kernelstream learn market.csv --target direction --model polk --out polk.ks"
    first = [name for name in examples if name.startswith("datasets")] + ["learn"]
    for line in [*map(examples.pop, first), polk, *examples.values()]:
        assert not tool(*shlex.split(line)[1:]).err
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {
        "market.csv", "market.parquet", "model.ks", "report.html", "predictions.csv", "small.ks",
        "merged.ks", "demo-output", "delta.png", "features.parquet", "features.html", "polk.ks",
        "model.html", "compare.html", "model.py", "values.csv",
    }  # fmt: skip
    assert len(list((tmp_path / "demo-output").iterdir())) == 6


def test_version_and_usage(tool):
    assert tool("--version").out.strip() == __version__
    for words in (("learn", "--no-such-option"), ("compress", "m", "--max-points", "0")):
        assert "Usage" in tool(*words, code=2).err
    assert "Commands" in tool(code=2).out  # nothing asked: the help


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(tool, monkeypatch, shell):
    monkeypatch.setenv("_KERNELSTREAM_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "kernelstream l")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "kernelstream l")
    assert "learn" in tool().out
    monkeypatch.setenv("_KERNELSTREAM_COMPLETE", f"source_{shell}")  # what --show-completion shows
    assert f"_KERNELSTREAM_COMPLETE=complete_{shell}" in tool().out


def test_as_a_program_and_into_a_closed_pipe(tmp_path):
    python = f"{shlex.quote(sys.executable)} -m kernelstream"
    command = f"{python} datasets generate multidist --rows 300000 --out - | head -1"
    run = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert (run.stdout, run.stderr) == ('"x","y","label"\n', "")


def test_gamma_depends_on_the_format():
    for text in (method_options()["gamma"], _text("features", "gamma"), _text("learn", "gamma")):
        assert text.count("1 / inputs; of LIBSVM rows 1 / their mean squared norm") == 1


def _text(command, name):
    return next(option.help for option in COMMANDS[command].params if option.name == name)


def test_help_shows_the_defaults_of_the_classes():
    text = method_options()["max_points"].rpartition("[")[2].removesuffix("]")
    shown = {
        name: default
        for names, _, default in (part.partition(": ") for part in text.split("; "))
        for name in names.split(", ")
    }
    assert shown == {
        name: str(inspect.signature(method.estimators[0]).parameters["max_points"].default).lower()
        for name, method in METHODS.items()
    }


def test_help_shows_how_an_object_is_typed():
    assert "Or parsimony:FACTOR" in method_options()["compression_error"]
