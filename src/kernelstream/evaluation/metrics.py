"""Metrics of a stream: over all samples, over the last ones, and fading.

Each is fed with whole arrays, and gives the same bits however these are cut: totals are summed
strictly one sample after another, windows are computed again from the samples they hold
(``sums.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from kernelstream.evaluation.each_output import EachOutput
from kernelstream.evaluation.labels import Codes, Labels
from kernelstream.evaluation.sums import Counts, Floats, Recent, Sums, all_codes, copied, enlarged

#: Of classes, and of numbers.
DEFAULT_METRICS = {True: ("accuracy", "kappa"), False: ("mae", "rmse")}

#: Probabilities below this count as this, as in scikit-learn.
SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


# ---- what a metric is ---------------------------------------------------------------------


@dataclass(frozen=True)
class ClassSummary:
    """What the metrics of a classifier are made of."""

    confusion: Floats  # (C, C): how often row was the truth and column was predicted; labels sorted
    loss: float  # mean of -log(probability of the true class)
    decisions: tuple[NDArray[np.bool_], Floats] | None  # is it the second class? and f(x)
    repeated: float = np.nan  # part of the samples that have the label of the one before


@dataclass(frozen=True)
class NumberSummary:
    """What the metrics of a regressor are made of."""

    weight: float  # samples, or what fading left of them
    absolute: float  # sum of |y - predicted|
    squares: float  # sum of (y - predicted)^2
    spread: float  # sum of (y - mean y)^2


@dataclass(frozen=True)
class Metric:
    """A metric by name: how to compute it, and what for."""

    value: Callable[[Any], float]
    classification: bool
    lower_is_better: bool = False
    needs: str = ""  # "probability": probability of the true class; "decision": f(x) of two classes


def _accuracy(s: ClassSummary) -> float:
    return _ratio(np.trace(s.confusion), s.confusion.sum())


def _balanced_accuracy(s: ClassSummary) -> float:
    truth = s.confusion.sum(axis=1)
    present = truth > 0.0
    return _ratio((np.diag(s.confusion)[present] / truth[present]).sum(), present.sum())


def _kappa(s: ClassSummary) -> float:
    total = s.confusion.sum()
    if not total > 0.0:
        return np.nan
    by_chance = (s.confusion.sum(axis=0) / total) @ (s.confusion.sum(axis=1) / total)
    agreed = np.trace(s.confusion) / total
    return _ratio(agreed - by_chance, 1.0 - by_chance)


def _kappa_temporal(s: ClassSummary) -> float:
    """Better than the label before? 0: no better; 1: never wrong."""
    return _ratio(_accuracy(s) - s.repeated, 1.0 - s.repeated)


def _f1(s: ClassSummary) -> float:
    hits = 2.0 * np.diag(s.confusion)
    calls = s.confusion.sum(axis=0) + s.confusion.sum(axis=1)
    if len(hits) < 2:
        return np.nan
    if len(hits) == 2:
        return _ratio(hits[1], calls[1])
    present = calls > 0.0
    return _ratio((hits[present] / calls[present]).sum(), present.sum())


def _auc(s: ClassSummary) -> float:
    if s.decisions is None:
        return np.nan
    positive, decision = s.decisions
    n, n_positive = len(positive), int(positive.sum())
    if n_positive in (0, n):
        return np.nan
    rank_sum = rankdata(decision)[positive].sum()
    return _ratio(rank_sum - n_positive * (n_positive + 1) / 2, n_positive * (n - n_positive))


def _ratio(upper: Any, lower: Any) -> float:
    """NaN where there is nothing to divide by: the metric is not defined."""
    return float(upper / lower) if lower > 0.0 else np.nan


METRICS: dict[str, Metric] = {
    "accuracy": Metric(_accuracy, True),
    "error": Metric(lambda s: 1.0 - _accuracy(s), True, True),
    "balanced_accuracy": Metric(_balanced_accuracy, True),
    "kappa": Metric(_kappa, True),
    "kappa_temporal": Metric(_kappa_temporal, True),
    "f1": Metric(_f1, True),
    "log_loss": Metric(lambda s: s.loss, True, True, "probability"),
    "auc": Metric(_auc, True, False, "decision"),
    "mae": Metric(lambda s: _ratio(s.absolute, s.weight), False, True),
    "rmse": Metric(lambda s: _ratio(s.squares, s.weight) ** 0.5, False, True),
    "r2": Metric(lambda s: 1.0 - _ratio(s.squares, s.spread), False),
}


# ---- all metrics of a stream --------------------------------------------------------------

_Summary = TypeVar("_Summary", ClassSummary, NumberSummary)


class _StreamMetrics(Generic[_Summary]):
    """Metrics by name, each over all samples, over the last ``window`` and fading."""

    classification: bool

    def __init__(
        self, metrics: Sequence[str], *, window: int = 1000, fading: float | None = 0.999
    ) -> None:
        self.names = check_names(metrics, self.classification)
        if window < 1:
            raise ValueError(f"window must be at least 1 sample, got {window!r}")
        if fading is not None and not 0.0 < fading <= 1.0:
            raise ValueError(f"fading must be a factor in (0, 1], got {fading!r}")
        self.window = window
        self.fading = fading
        #: How much a sample still counts when the next one comes.
        self._factors = {"": 1.0} if fading is None else {"": 1.0, "_fading": fading}
        self._recent = Recent(window, 2)
        self._sums: dict[str, Sums] = {}

    def _add_sums(self, name: str, columns: int) -> None:
        self._sums |= {name + end: Sums(factor, columns) for end, factor in self._factors.items()}

    def _summary(self, suffix: str) -> _Summary:
        raise NotImplementedError

    def _window_summary(self) -> _Summary:
        raise NotImplementedError

    def values(self) -> dict[str, float]:
        """For each metric: ``m`` over all samples, ``m_window`` over the last, ``m_fading``."""
        with np.errstate(over="ignore", invalid="ignore"):
            summaries = {"": self._summary(""), "_window": self._window_summary()}
            summaries |= {end: self._summary(end) for end in self._factors if end}
            return {
                name + suffix: float(METRICS[name].value(summary))
                for name in self.names
                for suffix, summary in summaries.items()
            }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that was taken in, but for the labels."""
        places = np.array([self._recent.count, *self._places()], dtype=np.int64)
        sums = {name: sums.last.copy() for name, sums in self._sums.items()}
        return {"recent": self._recent.ring.copy(), "places": places, **sums}

    def _places(self) -> list[int]:
        return []

    def set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what :meth:`arrays` returned."""
        places = copied(arrays["places"], self.arrays()["places"])
        self._recent.restore(arrays["recent"], int(places[0]))
        for name, sums in self._sums.items():
            sums.last = copied(arrays[name], sums.last)
            if sums.last[0] < 0.0:  # weights, or squares
                raise ValueError("the sums of a metric are negative")


class ClassMetrics(_StreamMetrics[ClassSummary]):
    """Metrics of a classifier on a stream, over all samples, over the last ones and fading.

    Parameters
    ----------
    metrics : sequence of str
        ``accuracy``, ``error``, ``balanced_accuracy``, ``kappa`` (Cohen's: 0 is chance),
        ``kappa_temporal`` (0 is the label before, again), ``f1`` (of the second class; the mean
        over the classes that occur when more than two are known), ``log_loss`` or ``auc`` (two
        classes; over the window only).
    window : int, default=1000
        Samples in the window.
    fading : float or None, default=0.999
        What a sample's weight is multiplied with when the next one comes; None: no fading ones.
    labels : Labels, optional
        Classes known beforehand, or shared with others.

    Notes
    -----
    What is not defined is NaN: ``kappa`` and ``auc`` with a single class, ``kappa_temporal`` while
    the label never changes, ``f1`` when the second
    class neither occurs nor is predicted, ``auc`` over all samples or with a third class known.
    Like scikit-learn's, ``balanced_accuracy`` is over the classes that occur.

    Examples
    --------
    >>> from kernelstream.evaluation import ClassMetrics
    >>> metrics = ClassMetrics(["accuracy"], window=2)
    >>> metrics.update(["a", "a", "b"], ["b", "a", "b"])
    >>> metrics.values()
    {'accuracy': 0.66..., 'accuracy_window': 1.0, 'accuracy_fading': 0.667...}
    """

    classification = True

    def __init__(
        self,
        metrics: Sequence[str] = ("accuracy", "kappa"),
        *,
        window: int = 1000,
        fading: float | None = 0.999,
        labels: Labels | None = None,
    ) -> None:
        super().__init__(metrics, window=window, fading=fading)
        self.labels = Labels() if labels is None else labels
        needs = {METRICS[name].needs for name in self.names}
        self._extras = [name for name in ("probability", "decision") if name in needs]  # in order
        self._recent = Recent(window, 2 + len(self._extras))
        self._counts = {suffix: Counts(factor) for suffix, factor in self._factors.items()}
        self._add_sums("losses", 2)
        self._follows = "kappa_temporal" in self.names
        self._before = -1  # the label before the first sample, where that is known
        if self._follows:  # samples with one before, and how many have its label
            self._add_sums("repeated", 2)

    def update(
        self,
        truth: ArrayLike,
        predicted: ArrayLike,
        *,
        probability: ArrayLike | None = None,
        decision: ArrayLike | None = None,
    ) -> None:
        """Take in the next samples.

        Parameters
        ----------
        truth, predicted : (n,) labels
        probability : (n,) array, for ``log_loss``
            The probability that was given to the true class.
        decision : (n,) array, for ``auc``
            Larger for the second class. NaN leaves a sample out.
        """
        codes = [self.labels.encode(np.asarray(labels)) for labels in (truth, predicted)]
        self.update_codes(*codes, probability=probability, decision=decision)

    def update_codes(self, truth: Codes, predicted: Codes, **extras: ArrayLike | None) -> None:
        """:meth:`update` with labels that were encoded already."""
        if len(truth) != len(predicted):
            raise ValueError(f"{len(truth)} labels, but {len(predicted)} predictions")
        if not len(truth):
            return
        for counts in self._counts.values():
            counts.add(truth, predicted, len(self.labels))
        if self._follows:
            self._count_repeated(truth)
        columns: list[NDArray[Any]] = [truth, predicted]
        for name in self._extras:
            if extras.get(name) is None:
                raise ValueError(f"{', '.join(self.names)}: update needs {name}=")
            extra = np.asarray(extras[name], dtype=np.float64)
            if name == "probability":
                extra = -np.log(np.clip(extra, SMALLEST_PROBABILITY, 1.0))
                for suffix in self._factors:
                    sums = self._sums[f"losses{suffix}"]
                    sums.run(np.stack([np.ones(len(extra)), extra], axis=1))
            columns.append(extra)
        self._recent.extend(np.stack(columns, axis=1, dtype=np.float64))

    def class_counts(self) -> dict[Any, float]:
        """How many of all samples were of each class."""
        counted = self._counts[""].matrix.sum(axis=1)
        return {label: float(counted[code]) for label, code in self.labels.codes.items()
                if code < len(counted)}  # fmt: skip

    def skip_codes(self, truth: Codes) -> None:
        """The next samples were not predicted; they only come before others."""
        if self._follows and len(truth) and not self._recent.count:
            self._before = int(truth[-1])

    def _count_repeated(self, truth: Codes) -> None:
        last = self._recent.samples()[-1:, 0].astype(np.int64)
        if not len(last) and self._before >= 0:
            last = np.array([self._before])
        whole = np.concatenate([last, truth])
        same = whole[1:] == whole[:-1]
        if len(same):
            for suffix in self._factors:
                self._sums[f"repeated{suffix}"].run(np.stack([np.ones(len(same)), same], axis=1))

    def _summary(self, suffix: str) -> ClassSummary:
        weight, loss = self._sums[f"losses{suffix}"].last
        matrix, repeated = self._ordered(self._counts[suffix].matrix), np.nan
        if self._follows:
            pairs, same = self._sums[f"repeated{suffix}"].last
            repeated = _ratio(same, pairs)
        return ClassSummary(matrix, _ratio(loss, weight), None, repeated)

    def _window_summary(self) -> ClassSummary:
        samples = self._recent.samples()
        truth, predicted = samples[:, :2].T.astype(np.int64)
        side = len(self.labels)
        matrix = np.bincount(truth * side + predicted, minlength=side * side).reshape(side, side)
        extras = dict(zip(self._extras, samples[:, 2:].T, strict=True))
        losses, decision = extras.get("probability", np.empty(0)), extras.get("decision")
        decisions = None
        if decision is not None and side == 2:
            usable = ~np.isnan(decision)
            second = self.labels.sorted_codes()[1]
            decisions = truth[usable] == second, decision[usable]
        repeated = _ratio((truth[1:] == truth[:-1]).sum(), len(truth) - 1)
        confusion = self._ordered(matrix.astype(np.float64))
        return ClassSummary(confusion, _ratio(losses.sum(), len(losses)), decisions, repeated)

    def _ordered(self, matrix: Floats) -> Floats:
        """Sorted by label: sums over classes do not depend on who came first."""
        order = self.labels.sorted_codes()
        return enlarged(matrix, len(order))[np.ix_(order, order)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        counts = {f"counts{end}": counts.matrix.copy() for end, counts in self._counts.items()}
        return super().arrays() | counts

    def _places(self) -> list[int]:
        places = [counts.place for counts in self._counts.values()]
        return [*places, self._before] if self._follows else places

    def set_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        super().set_arrays(arrays)
        classes, places = len(self.labels), arrays["places"][1:].tolist()
        if self._follows:
            self._before = min(places.pop(), classes - 1)
        for (suffix, counts), place in zip(self._counts.items(), places, strict=True):
            matrix = arrays[f"counts{suffix}"]
            counts.matrix, counts.place = copied(matrix, np.zeros((len(matrix),) * 2)), place
            if len(matrix) > classes or place not in range(len(counts.rising)):
                raise ValueError("the counts of a run contradict its labels")
        if not all_codes(self._recent.samples()[:, :2], classes):
            raise ValueError("the last samples of a run contradict its labels")


class NumberMetrics(_StreamMetrics[NumberSummary]):
    """Metrics of a regressor on a stream, over all samples, over the last ones and fading.

    Parameters
    ----------
    metrics : sequence of str
        ``mae``, ``rmse`` or ``r2``; ``r2`` is NaN as long as all targets are the same.
    window, fading
        As for :class:`ClassMetrics`.

    Examples
    --------
    >>> from kernelstream.evaluation import NumberMetrics
    >>> metrics = NumberMetrics(["mae"], window=2, fading=0.5)
    >>> metrics.update([1.0, 2.0, 3.0], [1.0, 1.0, 3.0])
    >>> metrics.values()
    {'mae': 0.33..., 'mae_window': 0.5, 'mae_fading': 0.28...}
    """

    classification = False

    def __init__(
        self,
        metrics: Sequence[str] = ("mae", "rmse"),
        *,
        window: int = 1000,
        fading: float | None = 0.999,
    ) -> None:
        super().__init__(metrics, window=window, fading=fading)
        self._add_sums("sums", 4)
        self._add_sums("spread", 1)

    def update(self, truth: ArrayLike, predicted: ArrayLike) -> None:
        """Take in the next samples: (n,) numbers and what was predicted for them."""
        y, prediction = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
        if y.shape != prediction.shape:
            raise ValueError(f"targets of shape {y.shape}, but predictions {prediction.shape}")
        if not len(y):
            return
        error = np.abs(y - prediction)
        with np.errstate(over="ignore"):
            columns = np.stack([np.ones(len(y)), error, error * error, y], axis=1)
        for suffix in self._factors:
            sums = self._sums[f"sums{suffix}"]
            before = sums.last[3] / sums.last[0] if sums.last[0] else 0.0
            series = sums.run(columns)
            means = series[:, 3] / series[:, 0]
            # Welford's update of the squared deviations: no difference of large squares.
            old_means = np.concatenate([[before], means[:-1]])
            self._sums[f"spread{suffix}"].run(((y - old_means) * (y - means))[:, None])
        self._recent.extend(np.stack([y, prediction], axis=1))

    def _summary(self, suffix: str) -> NumberSummary:
        weight, absolute, squares, _ = self._sums[f"sums{suffix}"].last
        return NumberSummary(weight, absolute, squares, self._sums[f"spread{suffix}"].last[0])

    def _window_summary(self) -> NumberSummary:
        y, predicted = self._recent.samples().T
        if not len(y):
            return NumberSummary(0.0, 0.0, 0.0, 0.0)
        error, deviation = np.abs(y - predicted), y - y.mean()
        return NumberSummary(
            float(len(y)), error.sum(), (error * error).sum(), (deviation * deviation).sum()
        )


def check_names(metrics: Sequence[str], classification: bool) -> tuple[str, ...]:
    """The names, if they are metrics for this task."""
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    task = "classification" if classification else "regression"
    choice = [name for name, metric in METRICS.items() if metric.classification == classification]
    wrong = [name for name in names if name not in choice]
    if wrong or not names or len(set(names)) < len(names):
        raise ValueError(
            f"metrics for {task} are some of {', '.join(choice)}, each once; "
            f"got {', '.join(map(str, names)) or 'none'}"
        )
    return names


def make_metrics(
    names: Sequence[str], labels: Labels | None, *, window: int, fading: float | None = None
) -> Any:
    """Metrics of labels, or of numbers where there are none."""
    if labels is None:
        return EachOutput(lambda: NumberMetrics(names, window=window, fading=fading))
    return ClassMetrics(names, window=window, fading=fading, labels=labels)
