"""``kernelstream policy``: the value of a policy, from a log of its steps."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import typer
from rich.markup import escape

from kernelstream.cli import options
from kernelstream.cli.display import grid
from kernelstream.cli.errors import UserError, check_outputs, checked
from kernelstream.cli.methods import check_value, parameter_options, refusing_parameters
from kernelstream.cli.terminal import Console, print_json
from kernelstream.kernels import first_gamma
from kernelstream.models import KernelPolicyEvaluation
from kernelstream.rows import as_finite_rows
from kernelstream.runs._methods import value_of
from kernelstream.storage import replacing
from kernelstream.streams import LoggedTransitions, Transitions

_VALUE = "The value function (in brackets what is taken where nothing is given)"
#: Steps from which the kernel's gamma is taken, however the file is cut.
_FIRST = 1000


def policy(
    file: options.File,
    reward: Annotated[str, typer.Option(help="The column of what each step earned.")] = "reward",
    terminal: Annotated[
        Optional[str],
        typer.Option(help="The column that says whether a step was the last: 0 or 1."),
    ] = None,
    episode: Annotated[
        Optional[str], typer.Option(help="The column that tells episodes apart.")
    ] = None,
    next_prefix: Annotated[
        Optional[str],
        typer.Option(
            help="What stands before the names of the columns that a step led to: next_, say. "
            "By default it led to the next row."
        ),
    ] = None,
    out: Annotated[
        Optional[Path], typer.Option(help="Where to write the value function, a model file.")
    ] = None,
    values: Annotated[
        Optional[Path], typer.Option(help="Where to write the value of every row's state, as CSV.")
    ] = None,
    as_json: options.AsJson = False,
    **given: Any,
) -> None:
    """Learn what every state is worth under the policy that made a log, step by step.

    All other columns are the state, numbers in units of their own: bring them to similar units
    before, or leave them out (--drop). gamma is by default 1 / (columns times variance) of the
    first 1,000 steps.
    """
    check_outputs({"--out": out, "--values": values}, file)
    if file == "-" and values is not None:
        raise UserError("--values reads the rows a second time", "give a file in the place of -")
    reading = {name: given.pop(name) for name in _READING}
    checked("--on-bad", reading["on_bad"], ["raise", "skip"])
    reading["schema"] = options.given_kinds(reading.pop("column") or [])
    parameters = {name: text for name, text in given.items() if text is not None}
    for name, text in parameters.items():
        check_value(KernelPolicyEvaluation, name, text)
    log = LoggedTransitions(
        file, reward, terminal, episode, next_prefix, reading.pop("drop") or (), **reading
    )
    model = KernelPolicyEvaluation(**{name: value_of(text) for name, text in parameters.items()})
    with refusing_parameters("policy --help"):
        model._check_parameters(fresh=True)
    off = count = 0.0
    for some in _chunks(log):
        if not hasattr(model, "_state") and "gamma" not in parameters:
            model.set_params(gamma=first_gamma("scale", as_finite_rows(some.states[:_FIRST])))
        ends = None if terminal is None else some.terminal
        model.partial_fit(some.states, some.rewards, some.next_states, ends)
        wrong = model.temporal_differences(some.states, some.rewards, some.next_states, ends)
        off, count = off + float(np.sum(wrong)), count + len(wrong)
    if not count:
        raise UserError(
            f"{file} has no step whose next state is known", "see --episode, --terminal"
        )
    if out is not None:
        model.save(out)
    if values is not None:
        _write_values(values, log, model)
    facts = {
        "steps": model.n_seen_, "state": log.columns, "points": model.model_order_,
        "gamma": model.gamma, "mean_temporal_difference": off / count,
    }  # fmt: skip
    if as_json:
        print_json(facts)
        return
    table = grid(overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), escape(_shown(value)))
    for name, path in (("value function", out), ("values", values)):
        if path is not None:
            table.add_row(name, escape(str(path)))
    Console().print(table)


def _chunks(log: LoggedTransitions) -> Iterator[Transitions]:
    """The steps, the first of them together: they decide gamma."""
    first: list[Transitions] = []
    for some in log:
        first.append(some)
        if sum(len(part.rewards) for part in first) >= _FIRST:
            yield Transitions(*map(np.concatenate, zip(*first, strict=True)))
            first = []
    if first and any(len(part.rewards) for part in first):
        yield Transitions(*map(np.concatenate, zip(*first, strict=True)))


def _write_values(path: Path, log: LoggedTransitions, model: KernelPolicyEvaluation) -> None:
    with replacing(path) as file:
        stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["line", "value"])
        for lines, states in log.states():
            writer.writerows(zip(lines.tolist(), model.predict(states).tolist(), strict=True))
        stream.flush()
        stream.detach()


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"


_READING = ("drop", "column", "on_bad", "format", "delimiter", "header", "decimal", "batch_rows")

options.add_options(
    policy,
    {name: options.READING[name] for name in _READING},
    options.of_methods(parameter_options(KernelPolicyEvaluation, {}), _VALUE),
)
