"""Kernel orthogonal matching pursuit outside a learning loop, and the watch over its factor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from kernelstream.core.dictionary import random_below
from kernelstream.core.gram import DEPENDENT
from kernelstream.core.grow.block import rebuild
from kernelstream.core.reduce.komp import BLOCK, GREEDY, prune_block
from kernelstream.core.state import State, allocate
from kernelstream.core.threads import one_thread
from kernelstream.errors import IllConditionedError
from kernelstream.kernels import Kernel, Points, kernel_matrix
from kernelstream.rows import dense_rows

#: A probed residual above this one leads to a factorisation from scratch ...
REBUILD_ABOVE = 1e-6
#: ... unless even a fresh factor is hardly better.
WORTHWHILE = 10.0
#: If a fresh factor is above this one, double precision cannot hold it.
HOPELESS_ABOVE = 1e-3
#: A factor that is further off than this one is not that of the points.
FOREIGN_ABOVE = 0.1
#: Columns of the residual looked at in a probe, and when a file is read.
PROBED, PROBED_READ = 4, 16


@one_thread()
def compressed_state(
    kernel: Kernel,
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    error: float,
    max_points: int,
) -> State:
    """Remove points, cheapest first, all weights projected again; learning can go on from it.

    ``error`` is the distance in the RKHS that may be lost; removal goes on beyond it until no more
    than ``max_points`` are left. The status says what was lost.
    """
    n, columns = weights.shape
    state = allocate(points.shape[1], columns, n + BLOCK, seed=0)
    state.points[:, :n] = points.T
    state.weights[:, :n] = weights.T
    state.status[0]["order"] = n
    spent = rebuild(state, kernel.program, columns)  # dependent points go here
    state.status[0]["cheapest"] = 0.0
    prune_block(state, columns, spent, error * error, max_points, GREEDY, BLOCK)
    return state


def residual(state: State, kernel: Kernel) -> float:
    """max |S S^T K - I| over all points in the factor, K with a unit diagonal: 0 if perfect."""
    return _column_residual(state, kernel, np.arange(state.factored_order))


@one_thread()
def watch(state: State, kernel: Kernel, outputs: int) -> None:
    """Probe some columns of the residual; rebuild the factor where it has lost digits.

    They are drawn with the state's own random numbers.
    """
    status, n = state.status[0], state.factored_order
    drawn = [random_below(status, n) for _ in range(PROBED if n else 0)]
    status["changes"] = 0
    status["residual"] = _column_residual(state, kernel, np.array(drawn, dtype=np.int64))
    if status["residual"] <= max(REBUILD_ABOVE, WORTHWHILE * status["floor"]):
        return
    if not _refactorise(state, kernel):
        unit = status["scale"]
        status["error_spent"] += unit * np.sqrt(rebuild(state, kernel.program, outputs))
    status["residual"] = status["floor"] = residual(state, kernel)
    if not status["residual"] <= HOPELESS_ABOVE:
        raise IllConditionedError(
            f"The kernel matrix of the {state.factored_order} stored points cannot be factorised "
            f"(residual {status['residual']:.1e}). Scale the input (StandardScaler), choose a "
            "larger gamma, a larger error budget or fewer points."
        )


def _refactorise(state: State, kernel: Kernel) -> bool:
    """A fresh factor of the same points, from LAPACK; False if some of them are dependent."""
    n = state.factored_order
    gram = _gram_columns(state, kernel, np.arange(n))
    gram[np.arange(n), np.arange(n)] = state.self_kernels[:n]
    try:
        factor = solve_triangular(np.linalg.cholesky(gram), np.eye(n), lower=True).T
    except np.linalg.LinAlgError:
        return False
    diagonal = (factor**2).sum(axis=1)
    if not (diagonal * state.self_kernels[:n]).max() <= 1.0 / DEPENDENT:
        return False
    state.factor[:n, :n] = factor
    state.diagonal[:n] = diagonal
    state.status[0]["cheapest"] = 0.0
    state.status[0]["rebuilds"] += 1
    return True


def _column_residual(state: State, kernel: Kernel, chosen: NDArray[np.int64]) -> float:
    if not len(chosen):
        return 0.0
    factor = state.factor[: state.factored_order, : state.factored_order]
    columns = factor @ (factor.T @ _gram_columns(state, kernel, chosen))
    columns[chosen, np.arange(len(chosen))] -= 1.0
    size = np.sqrt(state.self_kernels[: state.factored_order])  # as if all k(d, d) were 1
    return float(np.abs(columns * size[:, None] / size[chosen]).max())


def _gram_columns(state: State, kernel: Kernel, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    rows = dense_rows(np.ascontiguousarray(state.points[:, chosen].T))
    return kernel_matrix(kernel, rows, Points(*state[:3], state.factored_order)).T.copy()


def check_read(state: State, kernel: Kernel) -> None:
    """Refuse, with ValueError, a state from a file that is not one of this kernel."""
    with np.errstate(all="ignore"):
        k_xx = kernel.diagonal(state.points[:, : state.extent].T)
    if not np.allclose(state.self_kernels[: state.extent], k_xx, 1e-6, 0.0):
        raise ValueError("the kernel's values contradict the points")
    if state.factored and state.factored_order:
        chosen = np.linspace(
            0, state.factored_order - 1, min(state.factored_order, PROBED_READ)
        ).astype(np.int64)
        if not _column_residual(state, kernel, chosen) <= FOREIGN_ABOVE:
            raise ValueError("the factor contradicts the points")
