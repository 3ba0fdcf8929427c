"""``kernelstream inspect``, ``merge`` and ``compress``: model files themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.markup import escape
from rich.table import Table

from kernelstream import models
from kernelstream.cli.display import grid, in_percent, rounded, size
from kernelstream.cli.errors import UserError, check_outputs
from kernelstream.cli.methods import NOT_OPTIONS
from kernelstream.cli.options import AsJson
from kernelstream.cli.predict import ModelFile, load_stream_model
from kernelstream.cli.spelling import option
from kernelstream.cli.terminal import Console, print_json, say
from kernelstream.evaluation.metrics import DEFAULT_METRICS
from kernelstream.models._files import stored_bytes
from kernelstream.models.merging import needs_its_points
from kernelstream.pipeline import StreamModel
from kernelstream.report.points import influential_points
from kernelstream.runs._page import units_in_words

#: Inputs shared by texts of which `inspect` says what they hold.
_INPUTS_SHOWN = 3
Out = Annotated[Path, typer.Option(help="Where to write the resulting model.")]
Error = Annotated[
    Optional[float], typer.Option(help="The error in the RKHS norm that may be made.")
]
MaxPoints = Annotated[Optional[int], typer.Option(min=1, help="Points that may remain.")]


def inspect(
    model: ModelFile,
    points: Annotated[int, typer.Option(min=0, help="Most influential points to list.")] = 10,
    report: Annotated[
        Optional[Path], typer.Option(help="Also as an HTML page, with a picture of the model.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What a model file holds: what it is, its points or experts, and which inputs matter."""
    check_outputs({"--report": report}, model)
    learned = load_taught(model)
    estimator = learned.model
    names = learned.preparation.feature_names_out
    expands = hasattr(estimator, "dual_coef_")  # one function on stored points
    facts: dict[str, Any] = {
        "file": str(model),
        "target": learned.target,
        "task": learned.task,
        "method": type(estimator).__name__,
        "kernel": repr(estimator.kernel_) if expands else None,
        "classes": learned.classes_.tolist() if learned.task == "classification" else None,
        "inputs": [f"{name} ({kind})" for name, kind in learned.preparation.inputs.items()],
        "features": len(names),
        "units": units_in_words(learned.preparation),
        "other_texts": learned.preparation.shared_texts or None,
        "samples": estimator.n_seen_,
        "points": estimator.model_order_,
        "bytes": stored_bytes(estimator),
        "error_spent": estimator.error_spent_ if expands else None,
        "what_it_did": learned.what_it_did() or None,
        "importances": learned.column_importances_ or None,
        **estimator._facts(),
        **estimator._forced_facts(),
        "parameters": {
            name: value for name, value in estimator.get_params().items()
            if isinstance(value, str | int | float | None) and name not in NOT_OPTIONS
        },
    }  # fmt: skip
    table = [
        {"weight": point.size, "votes_for": point.vote, "inputs": dict(point.entries)}
        for point in influential_points(estimator, names, points)
    ] if expands else []  # fmt: skip
    if report is not None:
        _write_page(report, learned, _in_words(facts, estimator))
    if as_json:
        print_json({**facts, "influential": table})
        return
    console = Console()
    overview = grid(overflow="fold")
    for name, text in _in_words(facts, estimator).items():
        overview.add_row(name, escape(text))
    console.print(overview)
    if not expands:
        return
    largest = "largest inputs" + " (standardised)" * learned.preparation.standardises
    listing = Table("weight", "votes for", largest, title_justify="left",
                    title=f"The {len(table)} most influential points")  # fmt: skip
    for row in table:
        inputs = ", ".join(f"{k} {v:+.2f}" for k, v in row["inputs"].items())
        listing.add_row(f"{row['weight']:.4g}", escape(str(row["votes_for"])), escape(inputs))
    console.print(listing)


def _in_words(facts: dict[str, Any], estimator: Any) -> dict[str, str]:
    """The facts for people: what is not known is left out."""
    shared = {
        name: f"{name}: " + ", ".join(f"{text} ({count:,})" for text, count in texts.items())
        for name, texts in (facts["other_texts"] or {}).items()
    }
    listed = list(shared.values())[:_INPUTS_SHOWN]
    if len(shared) > len(listed):
        listed.append(f"{len(shared) - len(listed)} more inputs (--json has all)")
    words = {
        "other_texts": "; ".join(listed),
        "bytes": size(float(facts["bytes"])),
        "importances": in_percent(facts["importances"] or {}),
        **estimator._facts_in_words(),
    }
    if facts["error_spent"] is not None:
        words["error_spent"] = rounded(facts["error_spent"])
    for name, value in facts.items():
        if isinstance(value, dict):
            value = [f"{k}={v}" for k, v in value.items()]
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        words.setdefault(name, "" if value is None else str(value))
    return {name.replace("_", " "): words[name] for name in facts if words[name]}


def load_taught(path: Path) -> StreamModel:
    """A model that has learned something."""
    learned = load_stream_model(path)
    if not hasattr(learned.model, "_state"):
        raise UserError(f"{path} has not learned from any row yet", "let it learn more first")
    return learned


def _load_free_points(path: Path) -> StreamModel:
    """A model whose points can be replaced by others."""
    learned = load_taught(path)
    if why := needs_its_points(learned.model):
        cure = f"learn with {learned.model._smaller(option)}"
        if hasattr(learned.model, "expansion_"):
            cure += (
                "; in Python the function alone can be, with f = load(FILE).model.expansion_: "
                "f.compress(max_points=N), KernelExpansion.merge([f, ...])"
            )
        else:
            cure += ", or with --model polk, whose models can be"
        name = type(learned.model).__name__
        raise UserError(f"{path} ({name}) cannot be compressed or merged: {why}", cure)
    return learned


def merge(
    files: Annotated[list[Path], typer.Argument(help="Models to be merged.")],
    out: Out,
    error: Error = None,
    max_points: MaxPoints = None,
    as_json: AsJson = False,
) -> None:
    """The mean function of several models, compressed: one model for all of them.

    Their rows must be prepared alike: learn the later ones with --like FIRST.
    """
    check_outputs({"--out": out})
    learned = [_load_free_points(path) for path in files]
    first = learned[0]
    for path, other in zip(files, learned, strict=True):
        if other.target != first.target or other.task != first.task:
            raise UserError(f"{path} predicts another target than {files[0]}", "merge like models")
        if not other.prepares_like(first):
            raise UserError(
                f"{path} prepares its rows in another way than {files[0]}",
                f"learn it with --like {files[0]} (it takes that model's units and texts, frozen "
                "as they are in the file), and learn no more with the first",
            )
    estimators = [model.model for model in learned]
    _write(first, estimators, out, as_json, error=error, max_points=max_points)


def compress(
    model: ModelFile, out: Out, error: Error = None, max_points: MaxPoints = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """The same model with fewer points, and what that costs."""
    if error is None and max_points is None:
        raise UserError("nothing says how small", "give --max-points N or --error E")
    check_outputs({"--out": out})
    learned = _load_free_points(model)
    _write(learned, [learned.model], out, as_json, error=error, max_points=max_points)


def _write(
    first: StreamModel, estimators: list[Any], out: Path, as_json: bool, **small: Any
) -> None:
    before = sum(estimator.model_order_ for estimator in estimators)
    merged = models.merge(estimators, **small)
    first.with_model(merged).save(out)
    spent = merged.error_spent_ - sum(estimator.error_spent_ for estimator in estimators)
    if as_json:
        print_json({"points_before": before, "points": merged.model_order_,
                    "error": spent, "out": str(out)})  # fmt: skip
    else:
        say(f"{before:,} points became {merged.model_order_:,}, "
            f"at a distance of {spent:.4g} in the RKHS: {out}")  # fmt: skip


def _write_page(path: Path, learned: StreamModel, facts: dict[str, str]) -> None:
    from kernelstream.evaluation import Trace
    from kernelstream.report import write_report

    trace = Trace(DEFAULT_METRICS[learned.task == "classification"], 1)
    names, title = learned.preparation.feature_names_out, f"A model of {learned.target}"
    write_report(
        path, title=title, facts=facts, trace=trace, model=learned.model, feature_names=names,
        target=learned.targets, importances=learned.column_importances_,
        what_it_did=learned.what_it_did(),
    )  # fmt: skip
