"""Cells of bounded diameter: built in advance, merged when a cap is lowered, and their size."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.core import coverage as core
from kernelstream.core.kernel import Rows
from kernelstream.core.passes import FULL
from kernelstream.core.state import SMALLEST_CAPACITY, State, allocate, resize
from kernelstream.core.threads import one_thread
from kernelstream.kernels import Kernel
from kernelstream.parameters import Number, Parameters
from kernelstream.rows import as_finite_rows, count_rows, plain_matrix, slice_rows

SHAPES = {"hypersphere": core.HYPERSPHERE, "hyperrectangle": core.HYPERRECTANGLE}

#: ``delta="auto"`` looks at the first samples, this many.
FIRST_SAMPLES = 200

#: It is never less than this share of the mean distance.
SMALLEST_SHARE = 0.25


class Coverage(Parameters):
    """Cells that cover the data, each around a core point, of a size given by delta.

    A sample outside all cells becomes the core point of a new one: the order of the rows has a
    little to say in where cells lie and how many there are. There are as many as the rows need,
    whatever a model's ``max_points``; one that may not hold them all refuses the coverage.

    AVM builds its coverage on the fly. Given one of these it begins with these cells, and adds
    others for samples outside all of them.

    Examples
    --------
    >>> coverage = Coverage(delta=2.0).fit([[0.0], [0.9], [1.0], [1.5]])
    >>> coverage
    Coverage('hypersphere', 2.0) of 2 cells
    >>> coverage.core_points_
    array([[0.],
           [1.]])
    """

    shape: Annotated[
        Literal["hypersphere", "hyperrectangle"],
        """Balls of diameter delta: a sample belongs to the nearest core point if closer than
        delta / 2.""",
        """Or boxes: it belongs to the first core point with abs(x - c) < delta / sqrt(p) for every
        feature, where p counts the features. Their sides are 2 delta / sqrt(p), their diagonal is
        2 delta.""",
    ] = field(default="hypersphere", kw_only=False)
    delta: Annotated[
        float | Literal["auto"],
        Number(above=0.0),
        "The size of the cells.",
        """``auto``: mean less standard deviation of the distances of the first 200 samples, but at
        least a quarter of the mean.""",
    ] = field(default="auto", kw_only=False)

    core_points_: Annotated[
        NDArray[np.float64], "(M, p): the points in the middle of the cells."
    ] = field(init=False)
    delta_: Annotated[float, "The size of the cells."] = field(init=False)

    def __post_init__(self) -> None:
        self._check_values()

    def __repr__(self) -> str:
        made = f"Coverage({self.shape!r}, {self.delta!r})"
        if not hasattr(self, "core_points_"):
            return made
        cells = len(self.core_points_)
        return f"{made} of {cells} cell{'s' if cells != 1 else ''}"

    def fit(self, X: ArrayLike) -> Self:
        """Build the cells of these samples, in their order (Algorithms 3 and 4)."""
        rows = as_finite_rows(X)
        first = slice_rows(rows, 0, min(FIRST_SAMPLES, count_rows(rows)))
        self.delta_ = suggested_delta(first) if self.delta == "auto" else float(self.delta)
        state = allocate(rows.dense.shape[1], 1, SMALLEST_CAPACITY, seed=0, factored=False)
        done, reason = 0, FULL
        while reason == FULL:
            reason, done = core.cover(*state, SHAPES[self.shape], self.delta_, *rows, done)
            if reason == FULL:
                state = resize(state, 2 * state.capacity)
        self.core_points_ = np.ascontiguousarray(state.points[:, : state.order].T)
        return self

    def to_config(self) -> dict[str, Any]:
        """Plain data that :meth:`from_config` turns back into this coverage."""
        if not hasattr(self, "core_points_"):
            return {"shape": self.shape, "delta": self.delta}
        points = self.core_points_.tolist()
        return {"shape": self.shape, "delta": self.delta, "used": self.delta_, "points": points}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Coverage:
        """The coverage behind :meth:`to_config`; ``ValueError`` if it describes none."""
        coverage = cls(config["shape"], config["delta"])
        if "points" in config:
            points, used = np.array(config["points"], np.float64), float(config["used"])
            if points.ndim != 2 or not np.isfinite(points).all() or not 0.0 < used < math.inf:
                raise ValueError("the core points are not a finite matrix, or delta is not a size")
            coverage.core_points_, coverage.delta_ = points, used
        return coverage


def suggested_delta(rows: Rows) -> float:
    """A diameter for samples like these: mean less standard deviation of their distances.

    Half the lower end of what Section 9.2 looks at: twice the mean pairwise distance, within two
    standard deviations. About half of all the data lies in a cell of twice the mean; with these the
    errors are lower, also where there are more of them than ``max_points``.
    """
    mean, deviation = distance_statistics(rows)
    if not mean > 1e-100:  # one sample, or always the same
        return 1.0
    return max(mean - deviation, SMALLEST_SHARE * mean)


@one_thread()
def distance_statistics(rows: Rows) -> tuple[float, float]:
    """Mean and standard deviation of the distances between any two samples; 0, 0 for one."""
    n = count_rows(rows)
    if n < 2:
        return 0.0, 0.0
    matrix = plain_matrix(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        products = matrix @ matrix.T
        products = products.toarray() if rows.sparse else products
        lengths = products.diagonal()
        squares = lengths[:, None] + lengths[None, :] - 2.0 * products
    squares = np.nan_to_num(squares[np.triu_indices(n, 1)], nan=0.0, posinf=1e300)
    distances = np.sqrt(np.maximum(squares, 0.0))
    return float(distances.mean()), float(distances.std())


@one_thread()
def merge_points(state: State, kernel: Kernel, outputs: int, most: int) -> None:
    """Keep the ``most`` heaviest points; the weights of the others go to the nearest of them."""
    n, status = state.order, state.status[0]
    weights = state.weights[:, :n].T
    sizes = np.sqrt((weights[:, :outputs] ** 2).sum(axis=1))
    kept = np.sort(np.argsort(-sizes, kind="stable")[:most])
    dropped = np.setdiff1d(np.arange(n), kept)
    points = state.points[:, :n].T
    squares = ((points[dropped, None] - points[None, kept]) ** 2).sum(axis=2)
    nearest = squares.argmin(axis=1)
    merged = weights[kept]
    np.add.at(merged, nearest, weights[dropped])
    values = kernel(points)
    lost = np.maximum(2.0 - 2.0 * values[dropped, kept[nearest]], 0.0)
    status["error_spent"] += float((status["scale"] * sizes[dropped] * np.sqrt(lost)).sum())
    status["forced"] += len(dropped)
    status["removed"] += len(dropped)
    for array in (state.square_norms, state.absolute_norms, state.self_kernels):
        array[: len(kept)] = array[kept]
    state.points[:, : len(kept)] = state.points[:, kept]
    state.weights[:, : len(kept)] = merged.T
    status["cells"] = int((kept < status["cells"]).sum())
    status["order"] = len(kept)
    true = merged[:, :outputs] * status["scale"]
    if status["square_norm"] > 0.0:
        status["square_norm"] = max(0.0, float((true * (values[kept][:, kept] @ true)).sum()))
