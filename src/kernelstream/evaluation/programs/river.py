"""Models of River."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from kernelstream.evaluation.programs.one_by_one import Answer, Program


class RiverProgram(Program):
    """A classifier or regressor of River, or a pipeline that ends in one: rows are dicts.

    Parameters
    ----------
    model : River estimator
    names : sequence of str, optional
        Of the columns; by default those of a data frame, or x0, x1, ...
    classification : bool, optional
        Whether it predicts labels, of a model that is not derived from River's classes.
    zeros : bool, default=False
        Whether dicts have the zeros of sparse rows, too. To a tree of River what a row does not
        name is missing, and it learns nothing from it.
    """

    def __init__(
        self, model: Any, names: Sequence[str] | None = None, classification: bool | None = None,
        zeros: bool = False,
    ) -> None:  # fmt: skip
        self.model, self.zeros = model, zeros
        self.classification = _is_classifier(model) if classification is None else classification
        self.names = None if names is None else list(names)

    @staticmethod
    def takes(model: Any) -> bool:
        """Whether this is a model of River."""
        return hasattr(model, "learn_one") and hasattr(model, "predict_one")

    def column_names(self, X: Any) -> None:
        """Those of a data frame."""
        if self.names is None and hasattr(X, "columns"):
            self.names = [str(name) for name in X.columns]

    def rows(self, X: Any, targets: NDArray[Any]) -> list[Any]:
        """Dicts, one for each row."""
        names = self.names or [f"x{place}" for place in range(X.shape[1])]
        if not issparse(X) or self.zeros:
            rows = X.toarray() if issparse(X) else np.asarray(X)
            return [dict(zip(names, row, strict=True)) for row in rows.tolist()]
        edges, places, values = X.indptr.tolist(), X.indices.tolist(), X.data.tolist()
        return [
            {names[places[k]]: values[k] for k in range(first, end)}
            for first, end in itertools.pairwise(edges)
        ]

    def predict(self, row: Any, classes: int) -> Answer:
        """Probabilities, or a label where the model has none."""
        if not self.classification:
            value = self.model.predict_one(row)
            return 0.0 if value is None else float(value)
        votes = np.zeros(max(classes, 2))
        if self.probabilities:
            try:
                shares = self.model.predict_proba_one(row)
            except NotImplementedError:
                self.probabilities = False
            else:
                for label, share in shares.items():
                    votes[int(label)] = share  # False and True would be a mask
                # As River's own predict_one decides a tie.
                return int(max(shares, key=shares.get)) if shares else 0, votes
        label = self.model.predict_one(row)
        if label is not None:
            votes[int(label)] = 1.0
        return int(label or 0), votes

    def learn(self, row: Any, target: Any) -> None:
        """Two classes are 0 and 1, as River's binary classifiers want them."""
        self.model.learn_one(row, target)

    def nbytes(self) -> float:
        """What River counts."""
        counted = getattr(self.model, "_raw_memory_usage", None)
        return super().nbytes() if counted is None else float(counted)


def _is_classifier(model: Any) -> bool:
    from river import base

    last = final_step(model)
    if not isinstance(last, base.Classifier | base.Regressor):
        raise ValueError(f"{model} is neither a classifier nor a regressor of River")
    return isinstance(last, base.Classifier)


def final_step(model: Any) -> Any:
    """What a pipeline of River predicts with."""
    from river import compose

    while isinstance(model, compose.Pipeline):
        model = list(model.steps.values())[-1]
    return model
