"""``kernelstream tune``: parameters of one method for one stream."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Optional

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kernelstream.cli import options
from kernelstream.cli.display import TuningDisplay, grid, show_notes
from kernelstream.cli.errors import UserError, checked
from kernelstream.cli.methods import METHODS, make_estimator, method_options
from kernelstream.cli.options import of_run
from kernelstream.cli.running import Stop, command_typed, in_words_of_the_tool
from kernelstream.cli.spelling import as_option, option
from kernelstream.cli.terminal import Console, print_json
from kernelstream.errors import CapWarning
from kernelstream.evaluation import quality
from kernelstream.pipeline import TASKS
from kernelstream.runs import Tuning, TuningRun
from kernelstream.runs._trials import Trial

#: Candidates in the table.
_SHOWN = 8


def tune(
    file: options.File, as_json: options.AsJson = False, quiet: options.Quiet = False, **given: Any
) -> None:
    """Search for good parameters of one method, many candidates in one pass over the stream.

    The first candidate has the defaults, the others are drawn at random. By successive halving two
    of three leave after a part of the rows, those whose predictions were worse, until three are
    left, which see all --rows, as the defaults do. Parameters that are given, such as --loss
    log_loss, are the same in all of them. At the end it prints the command to learn with.
    """
    settings = {name: given.pop(name) for name in _OWN}
    reading, parameters = options.taken(given, "raise", "skip")
    checked("--task", settings["task"], list(TASKS))
    checked("--model", settings["model"], list(METHODS))
    if settings["only"] is not None:
        settings["only"] = [
            name.strip().removeprefix("--").replace("-", "_")
            for name in settings["only"].split(",")
        ]
    checkpoint = settings["checkpoint"]
    if settings["resume"] and checkpoint is None:
        raise UserError("--resume needs a checkpoint", "add --checkpoint FOLDER")
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_dir():
        raise UserError(f"--checkpoint {checkpoint} is a file", "name a folder")
    console, stop = Console(stderr=True), Stop()
    with stop.listening():
        with in_words_of_the_tool(), warnings.catch_warnings():
            warnings.simplefilter("ignore", CapWarning)
            run = _Run(
                file, parameters=parameters, **settings, **reading, make=_make, spelling=as_option
            )
            with run:
                stop.watch(run, console, quiet)
                with TuningDisplay(console, run, quiet) as display:
                    for _ in run:
                        display.update()
            result = run.result()
        command = _command(file, settings, reading, given, result)
        again = f"{command_typed('--resume')} --resume"
        can_go_on = run.stopped_by is not None and checkpoint is not None
        if as_json:
            print_json(_summary(result, command) | {"go_on_with": again if can_go_on else None})
        else:
            _print_result(result, command)
            if run.stopped_by is not None:
                how = (
                    f"Go on with: {again}"
                    if can_go_on
                    else "--checkpoint FOLDER lets it go on later."
                )
                Console().print(f"Stopped by {run.stopped_by}. {how}", markup=False, soft_wrap=True)
    stop.exit(run)


class _Run(TuningRun):
    bad_rows_cure = "--on-bad skip"


def _make(method: str, task: str, given: Mapping[str, Any], **defaults: Any) -> Any:
    """An estimator from what was typed and what was drawn."""
    typed = {name: _typed(value) for name, value in given.items()}
    return make_estimator(method, task, typed, **defaults)


def _typed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _command(
    file: str, settings: Mapping[str, Any], reading: Mapping[str, Any], given: Any, result: Tuning
) -> str:
    """What to type to learn with the parameters that were found."""
    words = ["kernelstream", "learn", file, "--target", settings["target"]]
    words += ["--model", settings["model"]]
    if settings["task"] is not None:
        words += ["--task", settings["task"]]
    for name, value in result.parameters.items():
        words += [option(name), _typed(value)]
    for name, (_, default) in options.READING.items():
        value = given.get(name)
        if value == default or (not value and value is not False):
            continue
        if isinstance(value, list):
            words += [word for each in value for word in (option(name), each)]
        elif isinstance(value, bool):
            words.append(option(name) if value else f"--no-{name.replace('_', '-')}")
        else:
            words += [option(name), str(value)]
    return shlex.join(words)


def _summary(result: Tuning, command: str) -> dict[str, Any]:
    return {
        "method": result.method,
        "metric": result.metric,
        "value": result.best.value,
        "default_value": result.default.value,
        "parameters": result.parameters,
        "samples": result.samples,
        "trials": [
            {
                "number": trial.number,
                "parameters": trial.parameters,
                "rows": trial.rows,
                "value": trial.value,
                "problem": trial.problem or None,
            }
            for trial in result.trials
        ],
        "notes": list(result.notes),
        "command": command,
        "stopped_by": result.stopped_by,
    }


def _print_result(result: Tuning, command: str) -> None:
    console = Console()
    names = list(dict.fromkeys(name for trial in result.trials for name in trial.parameters))
    title = f"{len(result.trials)} candidates for {result.method}, {result.samples:,} rows"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0)
    for name in ("rows", result.metric, *(name.replace("_", "\n") for name in names)):
        table.add_column(Text(name), justify="right")
    for trial in _shown(result):
        values = [_typed(trial.parameters.get(name, "default")) for name in names]
        value = "failed" if trial.problem else quality.number(trial.value)
        cells = [f"{trial.rows:,}", value, *map(escape, values)]
        table.add_row(*cells, style="bold" if trial is result.best else None)
    console.print(table)
    about = grid()
    if result.best is result.default:
        about.add_row("best", "the defaults")
    else:
        other = result.default
        rows = "the same" if other.rows == result.best.rows else f"{other.rows:,}"
        compared = f"the defaults {quality.number(other.value)} on {rows} rows"
        about.add_row("best", f"{result.metric} {quality.number(result.best.value)}; {compared}")
    show_notes(about, list(result.notes))
    console.print(about, soft_wrap=True)
    console.print(f"Learn with: {command}", soft_wrap=True, markup=False, highlight=False)


def _shown(result: Tuning) -> list[Trial]:
    """The best candidates, and one that failed, if any did."""
    best, others = list(result.trials[:_SHOWN]), result.trials[_SHOWN:]
    failed = [trial for trial in others if trial.problem][:1]
    return [*best[: _SHOWN - len(failed)], *failed]


_of_what = partial(options.added, "What is searched")

_OWN = {
    "target": _of_what(str, "The column to predict.", "target"),
    "model": _of_what(str, f"The method: {', '.join(METHODS)}.", "polk"),
    "task": _of_what(Optional[str], options.TASK),
    "trials": _of_what(int, "Candidates.", 27, min=2),
    "only": _of_what(
        Optional[str],
        "The parameters to choose, such as gamma,eta0; by default all that have a range and are "
        "not given.",
    ),
    "metric": _of_what(
        Optional[str], "What decides, as learn's --metrics; by default accuracy or mae."
    ),
    "rows": of_run(int, "Rows to compare on.", 20_000, min=2),
    "random_state": of_run(int, "For the candidates.", 0, "--search-seed", min=0),
    "checkpoint": of_run(Optional[Path], "A folder for checkpoints: the search can go on."),
    "checkpoint_seconds": of_run(float, "Seconds between two checkpoints.", 30.0, min=0.0),
    "resume": of_run(bool, "Go on from the checkpoint, if there is one.", False, "--resume"),
}
_PARAMETERS = {name: text for name, text in method_options().items() if name not in _OWN}
options.add_options(
    tune,
    _OWN,
    options.READING,
    options.of_methods(_PARAMETERS, "Parameters that are the same in all candidates"),
)
