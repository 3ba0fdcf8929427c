"""Put together what the page says, and write it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelstream._version import __version__
from kernelstream.models._words import cap_note
from kernelstream.report import progress
from kernelstream.report.charts import three_digits
from kernelstream.report.picture import picture
from kernelstream.report.points import influential_points
from kernelstream.report.risk import risk_section
from kernelstream.report.told import told_section
from kernelstream.storage import replace_file

LONG_FACT = 300  # characters; longer ones are folded


def write_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    facts: Mapping[str, Any],
    trace: Any,
    model: Any,
    feature_names: Sequence[str] | None = None,
    target: str | Sequence[str] | None = None,
    sample: Any = None,
    notes: Iterable[str] = (),
    losses: Mapping[str, Any] | None = None,
    importances: Mapping[str, float] | None = None,
    what_it_did: str = "",
    frozen: Mapping[str, float] | None = None,
) -> None:
    """Write what happened in a run as one HTML file that needs nothing else, not even a network.

    Parameters
    ----------
    path : str or path-like
        The file to write; an old one is replaced in one go, or stays if anything goes wrong.
    title : str
        The heading.
    facts : dict
        What was run, in the order to show it: command, data, method, version, date. A value
        may itself be a dict, e.g. of parameters.
    trace : object with ``to_columns() -> dict of str to array``
        The record of the run. Columns: ``samples``, ``seconds``, ``model_order``, ``bytes``,
        ``error_spent``; for each metric m ``m``, ``m_window``, ``m_fading``; the baselines
        ``no_change`` and ``majority`` of the first metric, also ``_window``; where samples were
        held out, ``held_out``, ``held_out_risk`` and ``risk``. Any may be missing, and values may
        be NaN.
    model : fitted estimator of kernelstream.models
        As it was at the end.
    feature_names : sequence of str, optional
        Names of the model's features; ``feature_names_in_`` of the model otherwise, or x0, x1, ...
    target : str or sequence of str, optional
        The name of what is predicted, or the names; the first of several is drawn.
    sample : (n, p) array or CSR matrix, or a pair (X, y) of it and its targets, optional
        Some samples as the model gets them, to draw around its points; 800 of them at most.
    notes : iterable of str, optional
        What the reader should be warned of. That a cap was in the way is noted by itself.
    losses : dict of str to LossDistribution, optional
        How losses are distributed: the model's first, then those to compare it with. Makes a
        section on risk.
    importances : dict of str to float, optional
        How much columns matter, as parts of 1; by default those of the model's features, where it
        has ``column_importances_``.
    what_it_did : str, optional
        A sentence about a model of many experts.
    frozen : dict, optional
        What the model does on the last rows without learning from them: how many ``rows``, and
        the first metric.

    Raises
    ------
    ImportError
        If Jinja or Matplotlib is missing.
    ValueError
        If the names or the sample do not fit the model.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelstream import POLKClassifier, make_multidist
    >>> from kernelstream.report import write_report
    >>> X, y = make_multidist(500, random_state=0)
    >>> class Trace:
    ...     def to_columns(self):
    ...         return {"samples": [250, 500], "accuracy": [0.8, 0.9]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "report.html")
    ...     facts = {"data": "make_multidist", "method": "POLK"}
    ...     model = POLKClassifier().partial_fit(X, y)
    ...     write_report(file, title="Five classes", facts=facts, trace=Trace(), model=model)
    ...     "<h1>Five classes</h1>" in file.read_text()
    True
    """
    template = find_template("page.html.j2")
    names = _feature_names(model, feature_names)
    record = progress.Progress(trace.to_columns(), of_classes=hasattr(model, "classes_"))
    quality, cost = progress.cards(record, model, frozen)
    if importances is None and hasattr(model, "column_importances_"):
        importances = dict(zip(names, model.column_importances_.tolist(), strict=True))
    expands = hasattr(model, "dual_coef_")  # one function on stored points
    order = model.model_order_
    targets = [target] if isinstance(target, str) else list(target or [])
    cap = cap_note(model)
    write_page(
        path,
        template,
        title,
        facts,
        [*notes, f"{cap}."] if cap else notes,
        quality=quality,
        cost=cost,
        metric_chart=progress.metric_chart(record),
        metrics=progress.metrics_table(record),
        risk_chart=progress.regularised_risk_chart(record),
        cost_charts=progress.cost_charts(record),
        budget_charts=progress.budget_charts(record) if expands else [],
        risk=risk_section(losses) if losses else None,
        told=told_section(model, importances or {}, what_it_did),
        approximation=model._approximation(),
        expands=expands,
        points=influential_points(model, names) if expands else [],
        model_order=order,
        target=", ".join(targets),
        classifier=hasattr(model, "classes_"),
        kernel=repr(model.kernel_) if expands else "",
        picture=picture(model, names, [*targets, "target"][0], sample) if order else None,
    )


def write_page(
    path: str | os.PathLike[str],
    template: Any,
    title: str,
    facts: Mapping[str, Any],
    notes: Iterable[str],
    **parts: Any,
) -> None:
    """Fill in a template and write the page in one go."""
    page = template.render(
        title=title,
        facts=[(str(name), _fact(value)) for name, value in facts.items()],
        long_fact=LONG_FACT,
        notes=list(map(str, notes)),
        version=__version__,
        **parts,
    )
    # A name that is no valid text (from a file system, say) must not prevent the report.
    replace_file(path, page.encode("utf-8", "replace"))


def find_template(name: str) -> Any:
    """A page to fill in; an error where a package that it needs is missing."""
    try:
        import matplotlib  # noqa: F401  (the picture needs it: say so before any work is done)
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise ImportError(
            f"The report needs {error.name or 'Jinja and Matplotlib'}, which is not installed: "
            "pip install 'kernelstream[cli]'"
        ) from error
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # names and labels come from the data
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["three_digits"] = three_digits
    return environment.get_template(name)


def _feature_names(model: Any, names: Sequence[str] | None) -> list[str]:
    count = model.n_features_in_
    if names is None:
        names = getattr(model, "feature_names_in_", [f"x{number}" for number in range(count)])
    if len(names) != count:
        raise ValueError(
            f"feature_names holds {len(names)} names, the model has {count} features: pass the "
            "names of the columns that the model gets, in their order"
        )
    return [str(name) for name in names]


def _fact(value: Any) -> str | list[tuple[str, str]]:
    """A value in words; the parts of a dict separately."""
    if isinstance(value, Mapping):
        return [(str(name), str(part)) for name, part in value.items()]
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
