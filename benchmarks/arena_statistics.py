"""Are methods different over many streams? Friedman's test, Nemenyi's distance, Wilcoxon and Holm.

J. Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006); for the
pairs A. Benavoli, G. Corani, F. Mangili, "Should we really use post-hoc tests based on
mean-ranks?", JMLR 17 (2016).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats


class Comparison(NamedTuple):
    """Methods over streams; ``names`` in order of their mean ranks."""

    names: list[str]
    ranks: NDArray[np.float64]  # mean ranks, 1 the best
    streams: int
    friedman: float  # p of «all methods are alike»
    distance: float  # Nemenyi: mean ranks that far apart differ at the level
    alike: NDArray[np.bool_]  # (k, k): pairs that Wilcoxon's test with Holm's correction leaves

    @property
    def groups(self) -> list[tuple[int, int]]:
        """First and last place of each longest run of methods that are all alike."""
        k, found = len(self.names), []
        for first in range(k):
            last = first
            while last + 1 < k and self.alike[first : last + 2, first : last + 2].all():
                last += 1
            if last > first and not any(last <= end for _, end in found):
                found.append((first, last))
        return found


def compare(names: list[str], errors: Any, level: float = 0.05) -> Comparison:
    """From (streams, methods) errors; infinite ones share the last places."""
    errors = np.asarray(errors, dtype=np.float64)
    streams, k = errors.shape
    ranks = stats.rankdata(errors, axis=1)
    mean = ranks.mean(axis=0)
    order = np.argsort(mean, kind="stable")
    p = stats.friedmanchisquare(*ranks.T).pvalue if k > 2 and streams > 1 else np.nan
    spread = stats.studentized_range.ppf(1.0 - level, k, np.inf) / np.sqrt(2.0) if k > 1 else 0.0
    distance = float(spread * np.sqrt(k * (k + 1) / (6.0 * streams)))
    return Comparison(
        [names[i] for i in order], mean[order], streams, float(p), distance,
        _alike(errors[:, order], level),
    )  # fmt: skip


def _alike(errors: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    k = errors.shape[1]
    pairs = list(itertools.combinations(range(k), 2))
    p_values = np.array([_wilcoxon(errors[:, i], errors[:, j]) for i, j in pairs])
    alike = np.ones((k, k), dtype=bool)
    for step, place in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[place] > level / (len(pairs) - step):  # Holm: from here on nothing differs
            break
        i, j = pairs[place]
        alike[i, j] = alike[j, i] = False
    return alike


def _wilcoxon(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """p of «neither is better»; errors are compared as ratios, so that no stream outweighs all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(first) - np.log(second)
    ratios = np.nan_to_num(ratios, nan=0.0, posinf=1e3, neginf=-1e3)
    if not ratios.any():
        return 1.0
    return float(stats.wilcoxon(ratios, zero_method="zsplit", method="approx").pvalue)
