"""A new model for rows: what each column holds, how it is prepared, and an estimator that suits."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone, is_classifier

from kernelstream import registry
from kernelstream.parameters import parameters_of
from kernelstream.preparation import Preparation
from kernelstream.streams.errors import StreamError
from kernelstream.streams.python_rows import as_batch, is_unnamed
from kernelstream.targets import guess_task


def parts_for(
    rows: Any, target: str, model: Any, task: str | None, preparing: dict[str, Any]
) -> tuple[Any, Preparation, str, str]:
    """Estimator, preparation, target and task; see ``StreamModel.for_rows``."""
    unnamed = is_unnamed(rows)
    batch, schema = as_batch(rows, unnamed=unnamed)
    if target not in batch.columns:
        raise StreamError(f"the rows have no column {target!r}; they have {list(schema)!r:.300}")
    width = batch.matrix.shape[1] if unnamed else None
    preparation = Preparation(schema, ignore=[target], matrix_width=width, **preparing)
    preparation.start(batch)
    if task is None and isinstance(model, str):
        task = guess_task(batch.columns[target])
    elif task is None:
        task = "classification" if is_classifier(model) else "regression"
    return _estimator(model, task, preparation), preparation, target, task


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
