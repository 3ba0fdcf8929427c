"""The page about a run."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelstream._version import __version__
from kernelstream.evaluation import quality

if TYPE_CHECKING:
    from kernelstream.preparation import Preparation
    from kernelstream.runs.learning import Run


def write_page(path: str | os.PathLike[str], run: Run, before: Mapping[str, str]) -> None:
    """A report that says what was run: first ``before``, then what the run knows itself."""
    from kernelstream.report import write_report

    model, settings = run.model.model, run.settings
    parameters = settings["parameters"]
    facts = {
        **before,
        "data": data_name(run.name),
        "target": run.model.target,
        "task": run.model.task,
        "method": settings["method"],
        "parameters": ", ".join(f"{k}={v}" for k, v in parameters.items()) or "defaults",
        "units": units_in_words(run.model.preparation) or "",
        "kernel": repr(model.kernel_) if hasattr(model, "kernel_") else "",
        **model._facts_in_words(),
        **{f"of {name}": words for name, words in of_each_target(run).items()},
        **closing_facts(run, run.samples),
    }
    losses = {}
    if run.score.losses is not None:
        losses[settings["method"]] = run.score.losses
    if run.method and run.neutral is not None and run.neutral.score.losses is not None:
        losses[f"the same without risk ({run.method.without_risk})"] = run.neutral.score.losses
    write_report(
        path,
        title=f"{run.model.target} from {Path(data_name(run.name)).name}",
        facts={name: value for name, value in facts.items() if value},
        trace=run.score.trace,
        model=model,
        feature_names=run.model.preparation.feature_names_out,
        target=run.model.targets,
        sample=run.sample,
        notes=run._row_notes(),  # the report has its own note about the cap
        losses=losses,
        importances=run.model.column_importances_,
        what_it_did=run.model.what_it_did(),
        frozen=run.frozen,
    )


def of_each_target(run: Run) -> dict[str, str]:
    """The metrics of each of several targets, over all rows and over the last ones."""
    metrics, window, result = run.score.trace.metrics, run.settings["window"], {}
    for name, values in by_target(run).items():
        parts = [
            f"{metric} {quality.number(values[metric])} "
            f"(last {window}: {quality.number(values[f'{metric}_window'])})"
            for metric in metrics
        ]
        result[name] = ", ".join(parts)
    return result


def by_target(run: Run) -> dict[str, dict[str, float]]:
    """By name; nothing where there is one target."""
    targets = run.model.targets
    if len(targets) == 1 or not len(run.score.trace):
        return {}
    return dict(zip(targets, run.score.values_by_output(), strict=True))


def units_in_words(preparation: Preparation) -> str | None:
    """Whether the units of numbers follow the stream; None where there are none."""
    if not preparation.standardises:
        return None
    return "frozen" if preparation.frozen else preparation.units


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
