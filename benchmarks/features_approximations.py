"""OK-FEB and what its paper compares with: approximations of a kernel matrix of the same rank.

Figures 6 and 8 of the paper, its measure: |K - K^|_F / 100 over all windows of 100 consecutive
samples. OK-FEB sees the samples once, and a window's features are those of the subspace at the
window's end; the others are fitted to all samples at once.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem
from threadpoolctl import threadpool_limits

from benchmarks.features import TRACKERS, standardised
from benchmarks.share import share
from benchmarks.tables import show
from kernelstream.batch import improved_nystroem, meka, shifted_nystroem
from kernelstream.features import KernelFeatures, OnlineKernelFeatures
from kernelstream.kernels import Gaussian
from kernelstream.streams import make_turning_ellipsoid

WINDOW = 100
ROWS = 2000
DRAWS = 3
RANKS = (5, 10, 20)
CLUSTERS = 5
#: Stored samples of OK-FEB per feature: the paper's, for its data that change and for real data.
CHANGING, REAL = 2.0, 1.5
#: Where time and memory are measured.
SIZES = (1000, 2000, 4000)
STREAMS = ("elec2", "cadata", "casp", "stream_hyp0")

#: Samples, gamma, rank, seed -> the matrix.
Approximation = Callable[[Any, float, int, int], Any]


def _pca(X: Any, gamma: float, rank: int, seed: int) -> Any:
    """What scikit-learn centres away is given back exactly: ``rank`` directions and the centre."""
    K = Gaussian(gamma)(X)
    Z = KernelPCA(rank, kernel="precomputed", random_state=seed).fit_transform(K)
    means = K.mean(axis=1)
    return Z @ Z.T + means[:, None] + means[None] - means.mean()


def _features(make: Callable[..., Any]) -> Approximation:
    def approximate(X: Any, gamma: float, rank: int, seed: int) -> Any:
        Z = make(rank, gamma=gamma, random_state=seed).fit_transform(X)
        return Z @ Z.T

    return approximate


BATCH: dict[str, Approximation] = {
    "BKFE (Algorithm 1)": _features(KernelFeatures),
    "kernel PCA (scikit-learn, centred)": _pca,
    "Nystrom (scikit-learn)": _features(lambda r, **given: Nystroem(n_components=r, **given)),
    "improved Nystrom": lambda X, gamma, r, seed: improved_nystroem(
        Gaussian(gamma), X, r, random_state=seed
    ).matrix(),
    "SS-Nystrom": lambda X, gamma, r, seed: shifted_nystroem(
        Gaussian(gamma), X, r, random_state=seed
    ).matrix(),
    "MEKA, rank r": lambda X, gamma, r, seed: meka(
        Gaussian(gamma), X, r, clusters=CLUSTERS, random_state=seed
    ).matrix(),
    "MEKA, r numbers a sample": lambda X, gamma, r, seed: meka(
        Gaussian(gamma), X, CLUSTERS * r, clusters=CLUSTERS, random_state=seed
    ).matrix(),
}
#: Algorithm 4 as the paper runs it, and with the defaults of this package.
ONLINE: dict[str, dict[str, Any]] = {
    f"OK-FEB, {name}": {
        "solver": "parametric", "step_size": "tracking", "basis": "printed", **TRACKERS[name]
    }
    for name in ("beta = 1", "beta = 0.9")
} | {"OK-FEB, defaults": {}}  # fmt: skip


def main() -> None:
    """Errors over ranks, then time and memory."""
    rows, draws = _part(ROWS), max(1, round(share() * DRAWS))
    sizes = [_part(size) for size in SIZES]
    with threadpool_limits(1):
        show(
            f"Kernel mismatch over moving windows of {WINDOW}, {rows} samples, mean of {draws}",
            ["data", "gamma", "method", *(f"r = {rank}" for rank in RANKS)],
            _mismatch_rows(rows, draws),
        )
        show(
            "Turning ellipsoid, r = 10: microseconds a sample, and memory at its peak in kB",
            ["method", *(f"us, {n} samples" for n in sizes), *(f"kB, {n}" for n in sizes)],
            _cost_rows(sizes),
        )


def _part(rows: int) -> int:
    return max(2 * WINDOW, int(share() * rows))


def _mismatch_rows(rows: int, draws: int) -> Iterator[tuple[Any, ...]]:
    ellipsoids = [make_turning_ellipsoid(rows, random_state=seed)[0] for seed in range(draws)]
    yield from _of_data("turning ellipsoid", ellipsoids, 0.5, CHANGING)
    for name in STREAMS:
        data = standardised(name)
        if data is None:
            yield name, "", "data not present", *("" for _ in RANKS)
            continue
        parts = [data[0][draw * rows : (draw + 1) * rows] for draw in range(draws)]
        yield from _of_data(name, parts, 1.0 / data[0].shape[1], REAL)


def _of_data(name: str, parts: list[Any], gamma: float, budget: float) -> Iterator[tuple[Any, ...]]:
    for method, settings in ONLINE.items():
        yield _row(
            name, gamma, f"{method}, B = {budget:g} r", parts,
            lambda X, rank, seed, settings=settings: _online_mismatch(
                X, gamma, _online(rank, gamma, budget, seed, settings)
            ),
        )  # fmt: skip
    for method, approximate in BATCH.items():
        yield _row(
            name, gamma, method, parts,
            lambda X, rank, seed, approximate=approximate: _window_mismatch(
                Gaussian(gamma)(X), approximate(X, gamma, rank, seed)
            ),
        )  # fmt: skip


def _row(
    name: str, gamma: float, method: str, parts: list[Any], mismatch: Callable[..., float]
) -> tuple[Any, ...]:
    means = [np.mean([mismatch(X, rank, seed) for seed, X in enumerate(parts)]) for rank in RANKS]
    return name, f"{gamma:.3g}", method, *(f"{mean:.4f}" for mean in means)


def _online(
    rank: int, gamma: float, budget: float, seed: int, settings: dict[str, Any]
) -> OnlineKernelFeatures:
    return OnlineKernelFeatures(
        rank, gamma=gamma, max_points=round(budget * rank), random_state=seed, **settings
    )


def _online_mismatch(X: Any, gamma: float, model: OnlineKernelFeatures) -> float:
    """Each window with the subspace as it is at the window's end."""
    K = Gaussian(gamma)(X)
    model.partial_fit(X[: WINDOW - 1])
    mismatch = []
    for end in range(WINDOW, len(X) + 1):
        model.partial_fit(X[end - 1 : end])
        part = slice(end - WINDOW, end)
        Z = model.transform(X[part])
        mismatch.append(np.linalg.norm(K[part, part] - Z @ Z.T) / WINDOW)
    return float(np.mean(mismatch))


def _window_mismatch(K: Any, approximation: Any) -> float:
    """(1 / 100) |K_w - K^_w|_F, the mean over all windows of 100."""
    sums = np.pad(((K - approximation) ** 2).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    first = np.arange(len(K) - WINDOW + 1)
    last = first + WINDOW
    block = sums[last, last] - sums[first, last] - sums[last, first] + sums[first, first]
    return float(np.mean(np.sqrt(np.maximum(block, 0.0)))) / WINDOW


# ---- time and memory --------------------------------------------------------------------------


def _cost_rows(sizes: list[int]) -> Iterator[tuple[Any, ...]]:
    """What it takes to find the approximation; none is written out as a matrix."""
    kernel = Gaussian(0.5)
    learners: dict[str, Callable[[Any], Any]] = {
        "OK-FEB, B = 20": lambda X: _online(
            10, 0.5, CHANGING, 0, ONLINE["OK-FEB, beta = 0.9"]
        ).partial_fit(X),
        "BKFE (Algorithm 1)": lambda X: KernelFeatures(10, gamma=0.5, random_state=0).fit(X),
        "improved Nystrom": lambda X: improved_nystroem(kernel, X, 10, random_state=0),
        "SS-Nystrom": lambda X: shifted_nystroem(kernel, X, 10, random_state=0),
        "MEKA, rank r": lambda X: meka(kernel, X, 10, clusters=CLUSTERS, random_state=0),
    }
    for name, learn in learners.items():
        micros, peaks = [], []
        for size in sizes:
            X = make_turning_ellipsoid(size, random_state=0)[0]
            learn(X[: 2 * WINDOW])  # compile
            start = time.process_time()
            learn(X)
            micros.append(f"{1e6 * (time.process_time() - start) / size:.1f}")
            tracemalloc.start()
            learn(X)
            peaks.append(f"{tracemalloc.get_traced_memory()[1] / 1000:,.0f}")
            tracemalloc.stop()
        yield name, *micros, *peaks
