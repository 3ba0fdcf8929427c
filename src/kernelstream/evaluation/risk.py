"""How losses are distributed: not only their mean, but their tail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.losses import make_loss
from kernelstream.models.in_units import InUnits

#: Losses in between are told apart to 6 %; smaller and larger ones fall into the outer bins.
SMALLEST, LARGEST, PER_DECADE = 1e-12, 1e12, 40
EDGES = np.logspace(
    np.log10(SMALLEST), np.log10(LARGEST), round(np.log10(LARGEST / SMALLEST)) * PER_DECADE + 1
)


class LossDistribution:
    """The distribution of a stream of losses, in 23 KiB however long the stream.

    A histogram with bins of equal ratio, each with the count, the sum and the sum of the squares
    of its losses: mean and deviation are exact, quantiles are known to the width of a bin (6 %),
    and of a tail mean only the share of its last bin is estimated. Any chunking gives the same
    bits.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.evaluation import LossDistribution
    >>> losses = LossDistribution()
    >>> losses.update(np.random.default_rng(0).exponential(size=100_000))
    >>> round(losses.mean, 2), round(losses.deviation, 2), round(losses.cvar(0.9), 2)
    (1.0, 1.0, 3.3)
    """

    #: Levels of the tail means in :meth:`summary`.
    LEVELS = (0.9, 0.95, 0.99)

    def __init__(self) -> None:
        self._counts = np.zeros(len(EDGES) + 1, dtype=np.int64)
        self._sums = np.zeros(len(EDGES) + 1)
        self._squares = np.zeros(len(EDGES) + 1)
        self._largest = 0.0

    def update(self, losses: ArrayLike) -> None:
        """Count the next losses, none of them negative. Those that are not finite do not count."""
        values = np.asarray(losses, dtype=np.float64)
        values = values[np.isfinite(values)]
        if not len(values):
            return
        bins = np.searchsorted(EDGES, values, side="right")
        # One after the other: the order of the sums does not depend on how the stream is cut.
        np.add.at(self._counts, bins, 1)
        np.add.at(self._sums, bins, values)
        with np.errstate(over="ignore"):
            np.add.at(self._squares, bins, values * values)
        self._largest = max(self._largest, float(values.max()))

    @property
    def count(self) -> int:
        """How many losses there were."""
        return int(self._counts.sum())

    @property
    def mean(self) -> float:
        """Their mean; NaN if there are none."""
        return float(self._sums.sum()) / self.count if self.count else float("nan")

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        if not self.count:
            return float("nan")
        square = float(self._squares.sum()) / self.count
        return float(np.sqrt(max(0.0, square - self.mean**2))) if square < np.inf else np.inf

    @property
    def semideviation(self) -> float:
        """Root of the mean square by which they exceed their mean, where they do."""
        if not self.count:
            return float("nan")
        mean, used = self.mean, self._counts > 0
        counts, sums, squares = self._counts[used], self._sums[used], self._squares[used]
        if not squares.sum() < np.inf:
            return float("inf")
        about = squares - 2.0 * mean * sums + counts * mean**2
        total = about[sums / counts > mean].sum()
        return float(np.sqrt(max(0.0, total / self.count)))

    def cvar(self, level: float) -> float:
        """Conditional value at risk: the mean of the worst 1 - level of them."""
        if not 0.0 <= level < 1.0:
            raise ValueError(f"level must be in [0, 1), got {level!r}")
        if not self.count:
            return float("nan")
        wanted = (1.0 - level) * self.count
        counts, sums = self._counts[::-1], self._sums[::-1]
        last = int(np.searchsorted(np.cumsum(counts), wanted))  # bin that counts in part
        left = wanted - int(counts[:last].sum())
        mean = float(sums[last]) / int(counts[last])
        # The worst share of a bin, as if its losses were uniform with their mean and deviation.
        square = 3.0 * (float(self._squares[::-1][last]) / int(counts[last]) - mean * mean)
        spread = np.sqrt(square) if 0.0 < square < np.inf else 0.0
        total = float(sums[:last].sum()) + left * (mean + (1.0 - left / counts[last]) * spread)
        return float(total / wanted)

    def quantile(self, level: float) -> float:
        """The loss that this share of them does not exceed, to the width of a bin."""
        if not self.count:
            return float("nan")
        place = int(np.searchsorted(np.cumsum(self._counts), level * self.count))
        place = min(place, int(np.flatnonzero(self._counts)[-1]))
        return float(self._sums[place] / max(1, self._counts[place]))

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
            "semideviation": self.semideviation, **tails, "largest": self._largest,
        }  # fmt: skip

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, as plain arrays."""
        return {
            "counts": self._counts.copy(), "sums": self._sums.copy(),
            "squares": self._squares.copy(), "largest": np.array([self._largest]),
        }  # fmt: skip

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """What :meth:`arrays` returned."""
        self._counts, self._sums = arrays["counts"].copy(), arrays["sums"].copy()
        self._squares, self._largest = arrays["squares"].copy(), float(arrays["largest"][0])


def sample_losses(model: Any, said: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.float64]:
    """The losses of what a model said, by its own loss and in the units it learns in.

    ``said`` are numbers, or a classifier's decision values for its classes. NaN for samples of a
    class that it did not know.
    """
    if isinstance(model, InUnits):
        _, unit = model._mean_and_unit()
        return make_loss(model.regressor.loss).value(said / unit, y / unit)  # type: ignore[no-any-return]
    loss = make_loss(model.loss)
    if loss.for_regression:
        return loss.value(said, y)  # type: ignore[no-any-return]
    places = np.searchsorted(model.classes_, y)
    own = said if said.ndim == 1 else said[np.arange(len(y)), places]
    known = np.isfinite(own)
    targets = 2 * places - 1 if said.ndim == 1 else places
    losses = np.full(len(y), np.nan)
    losses[known] = loss.value(said[known], targets[known])
    return losses
