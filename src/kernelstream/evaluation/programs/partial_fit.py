"""Anything with ``partial_fit`` and ``predict``, row by row."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from kernelstream.evaluation.programs.one_by_one import Answer, Program


class PartialFitProgram(Program):
    """An estimator that learns with ``partial_fit``.

    Parameters
    ----------
    model : estimator
        New: it has learned nothing yet.
    classes : array, optional
        All that a classifier can learn, as ``partial_fit`` of scikit-learn's wants to know at
        first. Rows of other classes are predicted, not learned.
    """

    def __init__(self, model: Any, classes: ArrayLike | None = None) -> None:
        self.model = model
        # What is not derived from scikit-learn's classes declares nothing.
        declares = hasattr(model, "__sklearn_tags__")
        self.classification = is_classifier(model) if declares else classes is not None
        self.classes = None if classes is None else np.asarray(classes)
        self.probabilities = hasattr(model, "predict_proba")
        self._sparse = declares and get_tags(model).input_tags.sparse
        self._first: dict[str, Any] = {}
        if self.classes is not None and "classes" in signature(model.partial_fit).parameters:
            self._first = {"classes": np.arange(len(self.classes))}

    def rows(self, X: Any, targets: NDArray[Any]) -> list[Any]:
        """Arrays of one row; sparse ones, for who takes them, with scikit-learn's short indices."""
        if issparse(X) and not self._sparse:
            X = X.toarray()
        elif issparse(X):
            X = csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
        return [X[i : i + 1] for i in range(X.shape[0])]

    def predict(self, row: Any, classes: int) -> Answer:
        """Probabilities, or a label where the model has none."""
        if not self.classification:
            return float(np.ravel(self.model.predict(row))[0])
        votes = np.zeros(classes)
        if self.probabilities:
            votes[self.model.classes_] = self.model.predict_proba(row)[0]
            return int(votes.argmax()), votes
        label = int(self.model.predict(row)[0])
        votes[label] = 1.0
        return label, votes

    def learn(self, row: Any, target: Any) -> None:
        """A class that was not announced is left out."""
        if self.classes is None or target < len(self.classes):
            self.model.partial_fit(row, [target], **self._first)
            self._first = {}
