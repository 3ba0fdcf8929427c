"""What grows with the classes: the chains of labels, and linear experts that see the last one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.core.experts.linear import LinearState
from kernelstream.core.experts.targets import chain_pass
from kernelstream.models._auto._sizes import DECAYS, chained, lagged_inputs


class Chains:
    """Experts that count which class followed which, and how often each came.

    With many classes only those that were the last one lately have a row of counts.
    """

    def __init__(self, classes: int) -> None:
        rows = chained(classes)
        self.counts = np.zeros((len(DECAYS), rows + 1, classes))
        self.owners, self.times = np.arange(rows), np.zeros(rows, np.int64)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"counts": self.counts, "owners": self.owners, "times": self.times}

    def run(self, last: Any, targets: Any, out: Any, first: int) -> None:
        """Predict into ``out``, then count where there are targets."""
        decays = np.array(DECAYS)
        chain_pass(last, self.counts, self.owners, self.times, decays, targets, out, first)

    def add_class(self, place: int) -> None:
        """Room for one more class, at ``place``."""
        self.counts = np.insert(self.counts, place, 0.0, axis=2)
        self.owners[self.owners >= place] += 1
        if chained(self.counts.shape[2]) == self.counts.shape[2]:
            self.counts = np.insert(self.counts, place, 0.0, axis=1)
            self.owners = np.insert(self.owners, place, place)
            self.times = np.insert(self.times, place, 0)
        else:
            self.keep(self.times)

    def keep(self, order: NDArray[Any]) -> None:
        """Keep as many rows as there may be, those that are largest in ``order``."""
        rows = np.argsort(-order, kind="stable")[: chained(self.counts.shape[2])]
        rows.sort()
        self.owners, self.times = self.owners[rows], self.times[rows]
        self.counts = self.counts[:, [*rows, -1]]


def with_class(linear: LinearState, features: int, place: int) -> LinearState:
    """A linear expert with one more class, at ``place``."""
    status, covariance, weights = linear
    inputs, column = 1 + features, 1 + features + place
    weights = np.insert(weights, place, 0.0, axis=0)
    if weights.shape[1] > inputs:
        if not lagged_inputs(len(weights), numbers=False):
            covariance = covariance[:inputs, :inputs].copy()
            weights = weights[:, :inputs].copy()
        else:
            weights = np.insert(weights, column, 0.0, axis=1)
            alone = len(covariance) == 1
            covariance = np.insert(covariance, column, 1.0 if alone else 0.0, axis=1)
            if not alone:
                covariance = np.insert(covariance, column, 0.0, axis=0)
                covariance[column, column] = 1.0
    if status[0]["last"] >= place:
        status["last"] += 1.0
    return LinearState(status, covariance, weights)
