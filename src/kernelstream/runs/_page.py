"""The page about a run."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelstream._version import __version__

if TYPE_CHECKING:
    from kernelstream.runs.learning import Run


def write_page(path: str | os.PathLike[str], run: Run, before: Mapping[str, str]) -> None:
    """A report that says what was run: first ``before``, then what the run knows itself."""
    from kernelstream.report import write_report

    model, settings = run.model.model, run.settings
    parameters = {k: v for k, v in settings["parameters"].items() if v is not None}
    facts = {
        **before,
        "data": data_name(run.name),
        "target": settings["target"],
        "task": run.model.task,
        "method": settings["method"],
        "parameters": ", ".join(f"{k}={v}" for k, v in parameters.items()) or "defaults",
        "risk": _risk_in_words(model),
        "kernel": repr(model.kernel_),
        "delta": delta_of(model),
        **closing_facts(run, run.samples),
    }
    losses = {}
    if run.score.losses is not None:
        losses[settings["method"]] = run.score.losses
    if run.neutral is not None and run.neutral.score.losses is not None:
        losses["the same without risk (polk)"] = run.neutral.score.losses
    write_report(
        path,
        title=f"{settings['target']} from {Path(data_name(run.name)).name}",
        facts={name: value for name, value in facts.items() if value},
        trace=run.score.trace,
        model=model,
        feature_names=run.model.preparation.feature_names_out,
        target=settings["target"],
        sample=run.sample,
        notes=run._row_notes(),  # the report tells of the cap by itself
        losses=losses,
    )


def data_name(source: str) -> str:
    """The source of a run, in words."""
    return "standard input" if source == "-" else source


def closing_facts(run: Any, samples: int) -> dict[str, str]:
    """What the page of every run says last."""
    facts = {
        "samples": f"{samples:,}",
        "wall time": f"{run.seconds:.1f} s",
        "version": __version__,
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    return facts if run.stopped_by is None else {**facts, "stopped by": run.stopped_by}


def _risk_in_words(model: Any) -> str:
    """The risk that the model learned with, given or by default; nothing for a neutral one."""
    if not hasattr(model, "risk_weight"):
        return ""
    own = {"moments": "order", "cvar": "level"}.get(model.risk)
    number = f", {own} {getattr(model, own)}" if own else ""
    return f"{model.risk}, weight {model.risk_weight}{number}"


def delta_of(model: Any) -> str:
    """The diameter of a model's cells; nothing where there are none, or none yet.

    >>> from kernelstream import AVMClassifier
    >>> delta_of(AVMClassifier(delta=0.5).fit([[0.0], [1.0]], [0, 1]))
    '0.5'
    """
    if not hasattr(model, "delta_"):
        return ""
    return f"{model.delta_:.3g}{' (auto)' if model.delta == 'auto' else ''}"
