"""Learners of CapyMOA, which run in Java."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from kernelstream.evaluation.programs.one_by_one import Answer, Program


class CapyMOAProgram(Program):
    """A classifier or regressor of CapyMOA.

    Parameters
    ----------
    model : CapyMOA learner
        New, made for a schema of numeric columns, such as :func:`numeric_schema` makes. Rows of
        classes that are not in its schema are predicted, not learned.
    classes : array, optional
        The labels of the stream, in the order of the schema's; by default the schema's own words,
        as numbers where they are.
    """

    def __init__(self, model: Any, classes: ArrayLike | None = None) -> None:
        self.model, schema = model, model.schema
        self.classification = schema.is_classification()
        if self.classification:
            words = schema.get_label_values()
            if classes is None:
                classes = list(map(int, words)) if all(map(str.isdecimal, words)) else words
            self.classes = np.asarray(classes)

    @staticmethod
    def takes(model: Any) -> bool:
        """Whether this is a learner of CapyMOA."""
        return hasattr(model, "train") and hasattr(model, "schema")

    def rows(self, X: Any, targets: NDArray[Any]) -> list[Any]:
        """Instances with their targets; a class that the schema lacks is missing there."""
        from capymoa.core import LabeledInstance, RegressionInstance

        X = np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)
        kind = LabeledInstance if self.classification else RegressionInstance
        if self.classes is not None:
            targets = np.where(targets < len(self.classes), targets, -1)
        values = targets.tolist()
        return [
            kind.from_array(self.model.schema, row, value)
            for row, value in zip(X, values, strict=True)
        ]

    def predict(self, row: Any, classes: int) -> Answer:
        """Votes, as many as there are classes so far."""
        if not self.classification:
            value = self.model.predict(row)
            return 0.0 if value is None else float(value)
        given, votes = self.model.predict_proba(row), np.zeros(classes)
        if given is not None:
            votes[: len(given)] = given
        return int(votes.argmax()), votes

    def learn(self, row: Any, target: Any) -> None:
        """A class that the schema lacks is left out."""
        if self.classes is None or target < len(self.classes):
            self.model.train(row)

    def nbytes(self) -> float:
        """What Java writes of the learner: without an agent of its own it knows no sizes."""
        from jpype import JClass

        learner = getattr(self.model, "moa_learner", None)
        if learner is None:  # written in Python
            return super().nbytes()
        counter = JClass("java.util.zip.Deflater")(0)
        nowhere = JClass("java.io.OutputStream").nullOutputStream()
        through = JClass("java.util.zip.DeflaterOutputStream")(nowhere, counter)
        written = JClass("java.io.ObjectOutputStream")(through)
        written.writeObject(learner)
        written.close()
        return float(counter.getBytesRead())


def numeric_schema(columns: int, classes: int, names: Sequence[str] | None = None) -> Any:
    """Of rows of numbers with so many classes; 0 classes: the target is a number, too."""
    from capymoa.stream import Schema

    target = "target"
    features = list(names or (f"x{place}" for place in range(columns)))
    while target in features:
        target += "_"
    labels = {target: [str(place) for place in range(classes)]} if classes else {}
    return Schema.from_custom(
        features=[*features, target], target=target, categories=labels, name="stream"
    )
