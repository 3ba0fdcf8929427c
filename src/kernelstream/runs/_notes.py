"""What the user of a run should know: rows, columns, and whether the model is worth it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import issparse

from kernelstream import registry
from kernelstream.evaluation import quality
from kernelstream.evaluation.metrics import METRICS
from kernelstream.models import _class_weights as class_weights
from kernelstream.models.in_units import InUnits
from kernelstream.runs._kept import COVERAGE
from kernelstream.runs._reading import in_python, naming_note
from kernelstream.streams.bad_rows import counted

if TYPE_CHECKING:
    from kernelstream.runs.learning import Run

#: The usual row of the last ones (at least so many) may be this many deviations from the mean where
#: the model does badly, and where it does not: seasons may take a healthy column beyond the first.
FEWEST_ROWS, FAR, VERY_FAR = 20, 5.0, 10.0
#: Intervals of the saved model that contain fewer targets are noted.
FEW_COVERED = 0.8
#: A class with this part of the rows is nearly always right: the others are rare.
NEARLY_ALL = 0.8


#: More whole numbers than these as targets may be meant as numbers.
_FEW = 5


def row_notes(run: Run) -> list[str]:
    """All but what a cap on the points did."""
    model, spelling = run.model, run._spelling
    notes = _quality_notes(run)
    if isinstance(model.estimator, InUnits):
        rows = min(run.settings["warm_up"], run.score.samples)
        notes.append(
            f"the first {rows:,} rows only set the units of the target: until then its mean was "
            f"predicted ({spelling('warm_up')})"
        )
    classes = len(getattr(model.model, "classes_", ()))
    notes += _weight_notes(run)
    method = registry.models().get(run.settings["method"])
    guessed = run.settings["task"] is None and method is not None and method.regressor is not None
    if guessed and classes > _FEW and model.classes_.dtype.kind in "iuf":
        cure = spelling("task", "regression")
        notes.append(f"the {classes} whole numbers of the target are classes; or {cure}")
    if "auc" in run.score.trace.metrics and classes > 2:
        notes.append(f"auc is for two classes, and there are {classes}: try balanced_accuracy")
    noted = [note.split("'")[1] for note in run._noted if note.startswith("column '")]
    naming = (name for name in model.preparation.naming_columns if name not in noted)
    notes += [naming_note(name, spelling) for name in naming]
    if model.unlabelled_:
        notes.append(f"{counted(model.unlabelled_)} had no target: not learned")
    return notes


def _weight_notes(run: Run) -> list[str]:
    """Classes that a weight was given for, and that never came."""
    model = run.model.model
    given, known = getattr(model, "class_weight", None), getattr(model, "classes_", None)
    absent = [] if known is None else class_weights.absent(given, known)
    if known is None or not absent:
        return []
    name = run._spelling("class_weight")
    classes = ", ".join(map(repr, run.model.as_written(known.tolist())))
    return [f"{name} names {', '.join(map(repr, absent))}, and the classes are {classes:.200}"]


def _quality_notes(run: Run) -> list[str]:
    """Where a rule without a model does as well, and inputs that harm or may be why."""
    if not len(run.score.trace):
        return []
    model, spelling = run.model, run._spelling
    metric, values = run.score.trace.metrics[0], run.score.trace.summary()
    names = ", ".join(spelling(name) for name in (run.method.try_first if run.method else ()))
    cure = f"try another {f'{names} or ' if names else ''}{spelling('model')}"
    if run.method is not None and run.method.name == registry.DEFAULT:  # others are no better
        cure = "other columns may say more about the target"
    worse, often = [], _often(run)
    # Until the units of a target are known the mean is all that is predicted.
    waits = isinstance(model.estimator, InUnits)
    if not waits or run.score.samples > run.settings["warm_up"]:
        for when, suffix in (("", ""), ("lately ", "_window")):
            if rule := quality.beaten_by(metric, values, model.task, suffix):
                worse.append(f"{when}{rule}: {often or cure}")
    frozen = [] if worse and often else _frozen_notes(run, metric, values)
    return worse[:1] + frozen + _far_inputs(run, FAR if worse else VERY_FAR)


def _often(run: Run) -> str:
    """What to do where nearly all rows are of one class; nothing where they are not."""
    if run.model.task != "classification":
        return ""
    model, spelling = run.model.model, run._spelling
    counts = run.score._metrics.class_counts()
    label, count = max(counts.items(), key=lambda item: item[1], default=(None, 0.0))
    part = count / max(1.0, sum(counts.values()))
    if len(counts) < 2 or part < NEARLY_ALL:
        return ""
    (often,) = run.model.as_written([label])
    metrics = ["auc" if len(counts) == 2 else "balanced_accuracy"]
    cures = []
    if hasattr(model, "predict_proba"):
        metrics.append("log_loss")
        words = "predict_proba" if spelling is in_python else "predict --probabilities"
        cures.append(f"{words} shows how likely each class is")
    if not set(metrics) <= set(run.score.trace.metrics):
        words = spelling("metrics", metrics)
        cures.insert(0, f"{words} measures how well rows of rare classes are told apart")
    if getattr(model, "class_weight", "balanced") is None:
        words = spelling("class_weight", "balanced")
        cures.append(f"{words} makes the model predict rare classes more often")
    return f"{100.0 * part:.1f} % of the rows are {often!r:.40}; {', '.join(cures)}"


def _frozen_notes(run: Run, metric: str, values: Mapping[str, float]) -> list[str]:
    """Where the saved model is of use only as long as it learns."""
    frozen = run.frozen
    if frozen is None:
        return []
    return _worse_when_frozen(run, frozen, metric, values) + _narrow_intervals(frozen)


def _narrow_intervals(frozen: Mapping[str, float]) -> list[str]:
    covered = frozen.get("interval_coverage", COVERAGE)
    if covered >= FEW_COVERED:
        return []
    return [
        f"intervals of {COVERAGE:.0%} of the saved model contained the target in {covered:.0%} of "
        f"the last {frozen['rows']:,} rows, which it did not learn from: let it learn on"
    ]


def _worse_when_frozen(
    run: Run, frozen: Mapping[str, float], metric: str, values: Mapping[str, float]
) -> list[str]:
    constant, sign = values["majority_window"], -1.0
    if METRICS[metric].lower_is_better:
        sign = 1.0
    if not sign * frozen[metric] > sign * constant:  # or there is no such baseline
        rules = {name: values[f"{name}_window"] for name in ("no_change", "majority")}
        rule = quality.beaten_by(metric, {**frozen, **rules}, run.model.task)
        return [f"once it no longer learns, {rule}: let it learn on"] if rule else []
    rule = "the majority" if run.model.task == "classification" else "the mean"
    model, other = quality.number(frozen[metric]), quality.number(constant)
    return [
        f"the stream changes so fast that the saved model does worse than {rule} ({metric} {model} "
        f"instead of {other}) once it no longer learns: let it learn on"
    ]


def _far_inputs(run: Run, far: float) -> list[str]:
    """Notes about numbers that have left the range of the rows their units were taken from."""
    preparation, spelling = run.model.preparation, run._spelling
    if run.sample is None or not preparation.standardise or preparation.units == "moving":
        return []
    X, notes = run.sample[0], []
    names = preparation.feature_names_out
    for name, kind in preparation.inputs.items():
        if kind != "number" or name not in names or X.shape[0] < FEWEST_ROWS:
            continue
        values = X[:, [names.index(name)]]
        away = float(np.median(np.abs(values.toarray() if issparse(values) else values)))
        if away > far:
            notes.append(
                f"column {name!r} has left the range of the first {run.settings['warm_up']:,} "
                f"rows: it is {away:,.0f} deviations away; let them move "
                f"({spelling('units', 'moving')}), leave it out ({spelling('drop', [name])}) or "
                f"let more rows set them ({spelling('warm_up')})"
            )
    return notes
