"""A new model for rows: what each column holds, how it is prepared, and an estimator that suits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone, is_classifier

from kernelstream import registry
from kernelstream.parameters import parameters_of
from kernelstream.preparation import Preparation
from kernelstream.streams.errors import StreamError
from kernelstream.streams.python_rows import as_batch, is_unnamed
from kernelstream.targets import guess_task, names_of


def parts_for(
    rows: Any, target: str | Sequence[str], model: Any, task: str | None, preparing: dict[str, Any]
) -> tuple[Any, Preparation, list[str], str]:
    """Estimator, preparation, target and task; see ``StreamModel.for_rows``."""
    unnamed = is_unnamed(rows)
    batch, schema = as_batch(rows, unnamed=unnamed)
    targets = names_of(target)
    for name in targets:
        if name not in batch.columns:
            raise StreamError(f"the rows have no column {name!r}; they have {list(schema)!r:.300}")
    width = batch.matrix.shape[1] if unnamed else None
    preparing = {"alone": registry.looks_back(model), **preparing}
    preparation = Preparation(schema, ignore=targets, matrix_width=width, **preparing)
    preparation.start(batch)
    if task is None and isinstance(model, str):
        several = len(targets) > 1
        task = "regression" if several else guess_task(batch.columns[targets[0]])
    elif task is None:
        task = "classification" if is_classifier(model) else "regression"
    return _estimator(model, task, preparation), preparation, targets, task


def _estimator(model: Any, task: str, preparation: Preparation) -> Any:
    """A new estimator, its parameters as rows prepared like this need them."""
    if not isinstance(model, str):
        model = clone(model)
        if getattr(model, "gamma", None) == "auto":
            model.set_params(gamma=preparation.suggested_gamma)
        return model
    known = registry.models()
    if model not in known:
        raise ValueError(f"model must be an estimator or one of {', '.join(known)}: {model!r:.80}")
    kind = known[model].regressor if task == "regression" else known[model].classifier
    if kind is None:
        raise ValueError(f"{model} does not learn {task}: take another model")
    suiting = {
        "random_state": 0,
        "gamma": preparation.suggested_gamma,
        "standardize": not preparation.in_moving_units,
    }
    return kind(**{name: value for name, value in suiting.items() if name in parameters_of(kind)})
