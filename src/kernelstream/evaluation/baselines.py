"""What one gets without learning: the last label again, or the most frequent one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.evaluation.each_output import EachOutput
from kernelstream.evaluation.labels import Labels
from kernelstream.evaluation.metrics import METRICS, make_metrics
from kernelstream.evaluation.sums import Floats, Sums, all_codes, copied
from kernelstream.parts import part_of, prefixed


class Rules:
    """What two rules say of each target, before it has come.

    ``no_change`` says the last label or number that has come, ``majority`` the most frequent
    label so far (in a tie: the one that got there first) or the mean. The label of sample t has
    come when sample t + ``lag`` + 1 is predicted; before the first one they say nothing. Without
    labels the targets are numbers.
    """

    def __init__(self, labels: Labels | None, *, lag: int) -> None:
        self.labels = labels
        #: Of the last call without a lag, the part of all labels before that were the true one.
        self.shares = np.empty(0)
        #: What each says from now on, known labels only: (lag + 1, 2), oldest first.
        self._waiting = np.full((lag + 1, 2), np.nan)
        self._counts = np.zeros(0, dtype=np.int64)  # per class so far
        self._sums = Sums(1.0, 2)  # how many numbers so far, and their sum
        self._leader = np.nan

    def predict_then_learn(self, truth: NDArray[Any]) -> Floats:
        """(n, 2): what each rule says of the next targets, codes of labels or numbers.

        NaN where it says nothing.
        """
        if self.labels is None:
            series = self._sums.run(np.stack([np.ones(len(truth)), truth], axis=1))
            favourites = series[:, 1] / series[:, 0]
        else:
            favourites = self._leaders(truth)
        upcoming = np.stack([truth, favourites], axis=1)
        predicted = np.concatenate([self._waiting, upcoming])
        self._waiting = predicted[len(truth) :]
        return predicted[: len(truth)]

    def _leaders(self, truth: NDArray[np.int64]) -> Floats:
        """The most frequent class after each sample."""
        most, before = self._counts.max(initial=0), int(self._counts.sum())
        self._counts = np.append(
            self._counts, np.zeros(len(self.labels or ()) - len(self._counts), dtype=np.int64)
        )
        order = np.argsort(truth, kind="stable")
        groups = truth[order]
        starts = np.searchsorted(groups, groups)
        frequency = np.empty(len(truth), dtype=np.int64)  # of the sample's class, itself included
        frequency[order] = np.arange(len(truth)) - starts + 1 + self._counts[groups]
        self.shares = (frequency - 1) / np.maximum(before + np.arange(len(truth)), 1)
        # Whoever is more frequent than anyone before takes the lead, and keeps it until beaten.
        record = np.maximum.accumulate(frequency)
        takes_lead = frequency > np.concatenate([[most], np.maximum(record[:-1], most)])
        last = np.maximum.accumulate(np.where(takes_lead, np.arange(len(truth)), -1))
        leaders = np.where(last >= 0, truth[last], self._leader)
        self._leader = leaders[-1]
        self._counts += np.bincount(truth, minlength=len(self._counts))
        return leaders

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that was taken in, but for the labels."""
        return {
            "waiting": self._waiting.copy(),
            "counts": self._counts.copy(),
            "numbers": np.array([*self._sums.last, self._leader]),
        }

    def set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what :meth:`arrays` returned."""
        self._waiting = copied(arrays["waiting"], self._waiting)
        self._counts = copied(arrays["counts"], np.zeros(len(arrays["counts"]), dtype=np.int64))
        numbers = copied(arrays["numbers"], np.zeros(3))
        self._sums.last, self._leader = numbers[:2], float(numbers[2])
        if numbers[0] < 0.0:
            raise ValueError("the baselines of a run have counted less than nothing")
        if self.labels is not None:
            predicted = np.append(self._waiting, self._leader)
            known = all_codes(predicted[~np.isnan(predicted)], len(self.labels))
            if not known or len(self._counts) > len(self.labels) or (self._counts < 0).any():
                raise ValueError("the baselines of a run contradict its labels")


def make_baselines(metric: str, labels: Labels | None, *, window: int, lag: int) -> Any:
    """:class:`Baselines`, of numbers those of each output."""
    if labels is None:
        return EachOutput(lambda: Baselines(metric, labels, window=window, lag=lag))
    return Baselines(metric, labels, window=window, lag=lag)


class Baselines:
    """``no_change`` and ``majority`` (:class:`Rules`), measured by one metric along with a model.

    Where they say nothing, nothing is counted. A metric that needs probabilities or decision values
    is NaN.
    """

    def __init__(self, metric: str, labels: Labels | None, *, window: int, lag: int) -> None:
        self.metric = metric
        self.labels = labels
        self._scored = not METRICS[metric].needs
        self._metrics: dict[str, Any] = {}
        if self._scored:
            rules = ("no_change", "majority")
            self._metrics = {rule: make_metrics([metric], labels, window=window) for rule in rules}
        self._rules = Rules(labels, lag=lag)

    def update(self, truth: NDArray[Any]) -> None:
        """Take in the next targets: codes of labels, or numbers."""
        if not self._scored or not len(truth):
            return
        predicted = self._rules.predict_then_learn(truth)
        for metrics, prediction in zip(self._metrics.values(), predicted.T, strict=True):
            known = ~np.isnan(prediction)
            if self.labels is None:
                metrics.update(truth[known], prediction[known])
            else:
                metrics.update_codes(truth[known], prediction[known].astype(np.int64))

    def values(self) -> dict[str, float]:
        """``no_change``, ``no_change_window``, ``majority``, ``majority_window``."""
        values = {}
        for name, metrics in self._metrics.items():
            for measured, value in metrics.values().items():
                values[name + measured.removeprefix(self.metric)] = value
        return values

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that was taken in, but for the labels."""
        arrays = self._rules.arrays()
        for name, metrics in self._metrics.items():
            arrays |= prefixed(f"{name}_", metrics.arrays())
        return arrays

    def set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what :meth:`arrays` returned."""
        self._rules.set_arrays(arrays)
        for name, metrics in self._metrics.items():
            metrics.set_arrays(part_of(f"{name}_", arrays))
