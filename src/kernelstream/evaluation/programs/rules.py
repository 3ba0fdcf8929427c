"""Rules that know no features, as learners: what a model has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.evaluation.baselines import Rules
from kernelstream.evaluation.learner import Learner, Predictions

#: Names, and for which tasks.
RULES = {
    "no change": ("classification", "regression"),
    "majority": ("classification",),
    "mean": ("regression",),
}


class Rule(Learner):
    """One of the rules: the last label or number again, the most frequent label, or the mean.

    ``majority`` gives the classes' shares so far as probabilities; ``no change`` has none.
    """

    def __init__(self, name: str, task: str, metrics: Sequence[str] | None = None) -> None:
        if task not in RULES.get(name, ()):
            able = ", ".join(rule for rule, tasks in RULES.items() if task in tasks)
            raise ValueError(f"there is no rule {name!r} for {task}: {able}")
        self._task, self._last = task, name == "no change"
        super().__init__(self, metrics)
        self._rules = Rules(self.labels, lag=0)

    def _is_classification(self) -> bool:
        return self._task == "classification"

    def _has_learned(self) -> bool:
        return False

    def _has_probabilities(self) -> bool:
        return self._is_classification() and not self._last

    def _has_decisions(self) -> bool:
        return False

    def _check_model(self) -> None:
        pass

    def steps(self, every: int) -> tuple[int, int]:
        """It may be called with any number of rows."""
        return 1, 0

    def check_rows(self, X: Any) -> None:
        """Rows are not looked at."""

    def learn(self, X: Any, y: NDArray[Any]) -> None:
        """Learning alone."""
        self.predict_then_learn(X, y, 0)
        self.fresh = False

    def predict(self, X: Any, y: NDArray[Any], unmeasured: int) -> Predictions:
        """Not without learning."""
        raise NotImplementedError("a rule is measured with labels that come at once")

    def predict_then_learn(self, X: Any, y: NDArray[Any], unmeasured: int) -> Predictions:
        """What the rule says of each row."""
        targets = y if self.labels is None else self.labels.encode(y)
        answers = self._rules.predict_then_learn(targets)[:, 0 if self._last else 1]
        if self.labels is None:
            return Predictions(answers)
        known = ~np.isnan(answers)  # all but the first of a stream
        labels = self.labels.decode(np.where(known, answers, 0).astype(np.int64))
        wanted = self._rules.shares if "probability" in self.needs else None
        return Predictions(labels, wanted)

    def nbytes(self) -> float:
        """A few numbers."""
        return float(sum(array.nbytes for array in self._rules.arrays().values()))
