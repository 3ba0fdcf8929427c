"""How losses are distributed: not only their mean, but their tail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.evaluation.sums import copied
from kernelstream.losses import make_loss
from kernelstream.models.in_units import InUnits

#: Losses in between are distinguished to 6 %; smaller and larger ones fall into the outer bins.
SMALLEST, LARGEST, PER_DECADE = 1e-12, 1e12, 40
EDGES = np.logspace(
    np.log10(SMALLEST), np.log10(LARGEST), round(np.log10(LARGEST / SMALLEST)) * PER_DECADE + 1
)


class LossDistribution:
    """The distribution of a stream of losses, in 31 KiB however long the stream.

    A histogram with bins of equal ratio, each with the count of its losses, and the sum and the
    sum of the squares of what they differ from its first one: mean and deviation are exact,
    quantiles are known to the width of a bin (6 %), and of a tail mean only the share of its last
    bin is estimated. Any chunking gives the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.evaluation import LossDistribution
    >>> losses = LossDistribution()
    >>> losses.update(np.random.default_rng(0).exponential(size=100_000))
    >>> round(losses.mean, 2), round(losses.deviation, 2), round(losses.cvar(0.9), 2)
    (1.0, 1.0, 3.31)
    """

    #: Levels of the tail means in :meth:`summary`.
    LEVELS = (0.9, 0.95, 0.99)

    def __init__(self) -> None:
        self._counts = np.zeros(len(EDGES) + 1, dtype=np.int64)
        self._firsts = np.zeros(len(EDGES) + 1)
        self._sums = np.zeros(len(EDGES) + 1)  # of what the losses differ from the first
        self._squares = np.zeros(len(EDGES) + 1)
        self._smallest, self._largest = np.inf, -np.inf

    def update(self, losses: ArrayLike) -> None:
        """Count the next losses, none of them negative. Those that are not finite do not count."""
        values = np.asarray(losses, dtype=np.float64)
        values = values[np.isfinite(values)]
        if not len(values):
            return
        bins = np.searchsorted(EDGES, values, side="right")
        filled, first = np.unique(bins, return_index=True)
        new = self._counts[filled] == 0
        self._firsts[filled[new]] = values[first[new]]
        # One after the other: the order of the sums does not depend on how the stream is cut.
        apart = values - self._firsts[bins]
        np.add.at(self._counts, bins, 1)
        np.add.at(self._sums, bins, apart)
        with np.errstate(over="ignore"):
            np.add.at(self._squares, bins, apart * apart)
        self._smallest = min(self._smallest, float(values.min()))
        self._largest = max(self._largest, float(values.max()))

    def _bins(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Counts, means and sums of the squared distances to the mean, of the bins in use."""
        used = self._counts > 0
        counts, sums = self._counts[used], self._sums[used]
        with np.errstate(over="ignore", invalid="ignore"):
            about = self._squares[used] - sums * sums / counts
        about[np.isnan(about)] = np.inf
        return counts, self._firsts[used] + sums / counts, np.maximum(about, 0.0)

    @property
    def count(self) -> int:
        """How many losses there were."""
        return int(self._counts.sum())

    @property
    def mean(self) -> float:
        """Their mean; NaN if there are none."""
        if not self.count:
            return float("nan")
        counts, means, _ = self._bins()
        with np.errstate(over="ignore"):
            mean = float((counts * means).sum()) / self.count
        return min(max(mean, self._smallest), self._largest)

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        return self._root_about_mean(above=False)

    @property
    def semideviation(self) -> float:
        """Root of the mean square by which they exceed their mean, where they do."""
        return self._root_about_mean(above=True)

    def _root_about_mean(self, above: bool) -> float:
        """Sums within bins and between them (Chan), which does not cancel."""
        if not self.count:
            return float("nan")
        counts, means, about = self._bins()
        chosen = means > self.mean if above else np.full(len(means), True)
        with np.errstate(over="ignore"):
            total = (about + counts * (means - self.mean) ** 2)[chosen].sum()
        return float(np.sqrt(total / self.count))

    def cvar(self, level: float) -> float:
        """Conditional value at risk: the mean of the worst 1 - level of them."""
        if not 0.0 <= level < 1.0:
            raise ValueError(f"level must be in [0, 1), got {level!r}")
        if not self.count:
            return float("nan")
        wanted = (1.0 - level) * self.count
        counts, means, about = (part[::-1] for part in self._bins())
        last = int(np.searchsorted(np.cumsum(counts), wanted))  # bin that counts in part
        left = wanted - int(counts[:last].sum())
        # The worst share of a bin, as if its losses were uniform with their mean and deviation.
        square = 3.0 * float(about[last]) / int(counts[last])
        spread = np.sqrt(square) if square < np.inf else 0.0
        worst = min(float(means[last]) + (1.0 - left / counts[last]) * spread, self._largest)
        with np.errstate(over="ignore"):
            total = float((counts * means)[:last].sum()) + left * worst
        return min(float(total / wanted), self._largest)

    def quantile(self, level: float) -> float:
        """The loss that this share of them does not exceed, to the width of a bin.

        The smallest one for level 0, the largest one for level 1.
        """
        if not 0.0 <= level <= 1.0:
            raise ValueError(f"level must be in [0, 1], got {level!r}")
        if not self.count:
            return float("nan")
        if level in (0.0, 1.0):
            return self._largest if level else self._smallest
        counts, means, _ = self._bins()
        return float(means[np.searchsorted(np.cumsum(counts), level * self.count)])

    def histogram(self, per_decade: int = 5) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Middles of wider bins, from the first that is filled to the last, and the share in each.

        Losses below 1e-12 are in none.
        """
        wide = PER_DECADE // per_decade
        inner = self._counts[1:-1].reshape(-1, wide).sum(axis=1)
        filled = np.flatnonzero(inner)
        if not len(filled):
            return np.empty(0), np.empty(0)
        part = slice(filled[0], filled[-1] + 1)
        middles = np.sqrt(EDGES[:-1:wide] * EDGES[wide::wide])
        return middles[part], inner[part] / self.count

    def summary(self) -> dict[str, float]:
        """Count, mean, deviation, semideviation, tail means and the largest."""
        tails = {f"cvar_{100 * level:g}": self.cvar(level) for level in self.LEVELS}
        return {
            "count": self.count, "mean": self.mean, "deviation": self.deviation,
            "semideviation": self.semideviation, **tails, "largest": self.quantile(1.0),
        }  # fmt: skip

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, as plain arrays."""
        return {
            "counts": self._counts.copy(), "firsts": self._firsts.copy(),
            "sums": self._sums.copy(), "squares": self._squares.copy(),
            "extremes": np.array([self._smallest, self._largest]),
        }  # fmt: skip

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """What :meth:`arrays` returned."""
        parts = {name: copied(arrays[name], like) for name, like in self.arrays().items()}
        self._counts, self._firsts = parts["counts"], parts["firsts"]
        self._sums, self._squares = parts["sums"], parts["squares"]
        self._smallest, self._largest = parts["extremes"].tolist()


def sample_losses(
    model: Any, predicted: NDArray[np.float64], y: NDArray[Any]
) -> NDArray[np.float64]:
    """The losses of what a model predicted, by its own loss and in the units it learns in.

    ``predicted`` are numbers, or a classifier's decision values for ``classes_``, not finite for a
    class that it did not know when it predicted. NaN for a sample whose own class was not known
    then, or none beside it: there was nothing to decide. So it does not matter for what classes the
    values are laid out by now.
    """
    if isinstance(model, InUnits):
        _, unit = model._mean_and_unit()
        return make_loss(model.regressor.loss).value(predicted / unit, y / unit)  # type: ignore[no-any-return]
    loss = make_loss(model.loss)
    if loss.for_regression:
        found = loss.value(predicted.reshape(-1), y.reshape(-1)).reshape(y.shape)
        return found.sum(axis=1) if y.ndim > 1 else found  # type: ignore[no-any-return]
    losses = np.full(len(y), np.nan)
    classes = model.classes_
    if len(classes) < 2:
        return losses
    if predicted.ndim == 1:  # positive for the second of two classes; infinite where it knew one
        predicted = np.stack([np.zeros(len(predicted)), predicted], axis=1)
        predicted[~np.isfinite(predicted[:, 1])] = -np.inf
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    finite = np.isfinite(predicted)
    usable = (classes[places] == y) & finite[np.arange(len(y)), places] & (finite.sum(axis=1) > 1)
    if not usable.any():
        return losses
    for known in np.unique(finite[usable], axis=0):
        rows = np.flatnonzero(usable & (finite == known).all(axis=1))
        values, targets = predicted[rows][:, known], np.cumsum(known)[places[rows]] - 1
        if values.shape[1] == 2:  # one output, as the model has then
            values, targets = values[:, 1] - values[:, 0], 2 * targets - 1
        losses[rows] = loss.value(values, targets)
    return losses
