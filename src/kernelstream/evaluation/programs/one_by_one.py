"""A learner of another package, asked about each row and then taught it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.evaluation.learner import Learner, Predictions

#: The place of the likeliest class and the votes for all classes; or a number.
Answer = tuple[int, NDArray[np.float64]] | float


class Program:
    """What a package makes of rows and targets. Classes are numbers 0, 1, ..."""

    model: Any
    classification: bool
    probabilities = True  #: Whether the votes are probabilities.
    classes: NDArray[Any] | None = None  #: All there can be, where the model knows them.

    def rows(self, X: Any, targets: NDArray[Any]) -> list[Any]:
        """Rows as the package takes them; not part of the time that is measured."""
        raise NotImplementedError

    def predict(self, row: Any, classes: int) -> Answer:
        """What the model says, of so many classes."""
        raise NotImplementedError

    def learn(self, row: Any, target: Any) -> None:
        """Learn a row. A class beyond those that the model can learn is left out."""
        raise NotImplementedError

    def column_names(self, X: Any) -> None:
        """Look at rows as they were given, for names of the columns."""

    def nbytes(self) -> float:
        """Memory that the model holds; here the size of its pickle."""
        return float(len(pickle.dumps(self.model)))


class OneByOne(Learner):
    """A program in a run: each row is predicted by the model just before it, then learned.

    Converting rows to what the package takes is not part of the time that is measured. Numbers are
    learned in ``units``, a mean and a deviation: linear models need a target near 0.
    """

    def __init__(
        self,
        program: Program,
        metrics: Sequence[str] | None = None,
        units: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.program, self.units = program, units
        self._met = set[int]()  # classes that it was taught
        super().__init__(program.model, metrics)
        if self.labels is not None and program.classes is not None:
            self.labels.encode(program.classes)  # in the order that the model has them in

    def _is_classification(self) -> bool:
        return self.program.classification

    def _has_learned(self) -> bool:
        return False  # not that anyone could know

    def _has_probabilities(self) -> bool:
        return self.program.classification and self.program.probabilities

    def _has_decisions(self) -> bool:
        return self._has_probabilities()

    def _check_model(self) -> None:
        pass

    def steps(self, every: int) -> tuple[int, int]:
        """It may be called with any number of rows."""
        return 1, 0

    def check_rows(self, X: Any) -> None:
        """What is wrong with rows is the package's to say."""
        self.program.column_names(X)

    def converted(self, X: Any, y: NDArray[Any]) -> Any:
        """Rows as the package takes them."""
        return self.program.rows(X, self._targets(y))

    def learn(self, X: Any, y: NDArray[Any]) -> None:
        """Learning alone."""
        rows = X if isinstance(X, list) else self.converted(X, y)
        for row, target in zip(rows, self._targets(y).tolist(), strict=True):
            self._teach(row, target)
        self.fresh = False

    def _teach(self, row: Any, target: Any) -> None:
        self.program.learn(row, target)
        if self.labels is not None:
            self._met.add(target)

    def predict(self, X: Any, y: NDArray[Any], unmeasured: int) -> Predictions:
        """Predicting alone."""
        return self._answers(X, y, learn=False)

    def predict_then_learn(self, X: Any, y: NDArray[Any], unmeasured: int) -> Predictions:
        """Row by row."""
        return self._answers(X, y, learn=True)

    def _answers(self, X: Any, y: NDArray[Any], learn: bool) -> Predictions:
        rows = X if isinstance(X, list) else self.converted(X, y)
        targets, program = self._targets(y).tolist(), self.program
        if self.labels is None:
            numbers = np.empty(len(targets))
            for i, (row, target) in enumerate(zip(rows, targets, strict=True)):
                numbers[i] = program.predict(row, 0)
                if learn:
                    self._teach(row, target)
            if not np.isfinite(numbers).all():
                raise ValueError(f"it predicts {numbers[~np.isfinite(numbers)][0]}")
            return Predictions(self.units[0] + self.units[1] * numbers)
        winners, probability = np.empty(len(targets), dtype=np.int64), np.empty(len(targets))
        known = len(self.labels)
        decision, second = np.full(len(targets), np.nan), self.labels.sorted_codes()[1:]
        for i, (row, target) in enumerate(zip(rows, targets, strict=True)):
            winners[i], votes = program.predict(row, known)  # type: ignore[misc]
            total = votes.sum()
            # Who says nothing finds all classes equally likely.
            share = votes[target] / total if target < len(votes) and total > 0.0 else 0.0
            probability[i] = share if total > 0.0 else 1.0 / known
            if len(second) == 1 and len(self._met) == 2:
                decision[i] = votes[second[0]] / total if total > 0.0 else 0.5
            if learn:
                self._teach(row, target)
        return Predictions(
            self.labels.decode(winners),
            probability if "probability" in self.needs else None,
            decision if "decision" in self.needs else None,
        )

    def _targets(self, y: NDArray[Any]) -> NDArray[Any]:
        """As the package gets them."""
        if self.labels is not None:
            return self.labels.encode(y)
        return (y - self.units[0]) / self.units[1]  # type: ignore[no-any-return]

    def nbytes(self) -> float:
        """Memory that the model holds."""
        return self.program.nbytes()
