"""The compiled core as the tests call it."""

from dataclasses import asdict

import numba
import numpy as np
from scipy.sparse import csr_array

from kernelstream.core import kernel, schedule
from kernelstream.core.blocks import block_pass
from kernelstream.core.direct import GRADIENT
from kernelstream.core.grow import SPAN
from kernelstream.core.grow.block import take_in_block
from kernelstream.core.kernel import Program, Rows
from kernelstream.core.loop import sample_pass
from kernelstream.core.passes import FULL, PROBE
from kernelstream.core.reduce import KOMP
from kernelstream.core.reduce.komp import GREEDY
from kernelstream.core.settings import make_settings
from kernelstream.core.state import allocate, resize
from kernelstream.kernels import (
    KERNEL_NAMES,
    Gaussian,
    Laplacian,
    Linear,
    Matern52,
    Polynomial,
    make_kernel,
)
from kernelstream.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Loss
from tests.naive import kernels as naive

COMPILED = not numba.config.DISABLE_JIT


def from_python(function):
    """A function of the compiled core that has no wrapper for Python, with one."""
    return numba.njit(lambda *arguments: function(*arguments)) if COMPILED else function


def size(compiled, interpreted):
    """A problem size: the interpreter is some hundred times slower."""
    return compiled if COMPILED else interpreted


def kinds_of_rows(n):
    """Ordinary and degenerate rows of three numbers, by name: each makes ``n`` of them."""
    return {
        "random": lambda random: random.normal(size=(n, 3)),
        "duplicates": lambda random: random.normal(size=(9, 3))[random.integers(0, 9, n)],
        "collinear": lambda random: np.outer(random.normal(size=n), [1.0, -2.0, 0.5]),
        "constant": lambda random: np.ones((n, 3)),
        "huge": lambda random: 1e3 * random.normal(size=(n, 3)),
        "tiny": lambda random: 1e-4 * random.normal(size=(n, 3)),
    }


def program(*instructions):
    """A kernel program from (code, number, number, number) in postfix order."""
    codes = np.array([i[0] for i in instructions], np.int64)
    numbers = np.array([[*i[1:], 0.0, 0.0, 0.0][:3] for i in instructions], float)
    depth = deepest = 0
    for code in codes:
        depth += {kernel.ADD: -1, kernel.MULTIPLY: -1, kernel.SCALE: 0}.get(int(code), 1)
        deepest = max(deepest, depth)
    return Program(
        codes,
        numbers,
        bool(np.isin(codes, [kernel.POLYNOMIAL, kernel.LINEAR]).any()),
        bool(
            np.isin(
                codes, [kernel.GAUSSIAN, kernel.MATERN12, kernel.MATERN32, kernel.MATERN52]
            ).any()
        ),
        bool((codes == kernel.LAPLACIAN).any()),
        deepest,
    )


def gaussian(gamma):
    return program((kernel.GAUSSIAN, gamma))


def with_twin(name):
    """The program of a kernel that estimators know by name, and its twin."""
    gamma = {"gaussian": 0.7, "laplacian": 0.3, "matern32": 0.4, "matern52": 0.4}.get(name, 0.5)
    made = make_kernel(name, gamma, 3, 1.5)
    return made.program, getattr(naive, name)(**asdict(made))


#: name: (program, twin)
KERNELS = {
    **{
        name: with_twin(name)
        for name in sorted({c.__name__.lower() for c in KERNEL_NAMES.values()})
    },
    "degree 1": (Polynomial(1, 0.5, 0.0).program, naive.polynomial(0.5, 0.0, 1)),
    "scaled sum": (
        (0.25 * (Linear() + 3.0 * Gaussian(0.7))).program,
        naive.scale(naive.add(naive.linear(), naive.scale(naive.gaussian(0.7), 3.0)), 0.25),
    ),
    # four values on the stack
    "product of sums": (
        (
            (Linear() + Matern52(0.4)) * (Laplacian(0.3) + Gaussian(0.7) * Polynomial(2, 0.5, 1.5))
        ).program,
        naive.multiply(
            naive.add(naive.linear(), naive.matern52(0.4)),
            naive.add(
                naive.laplacian(0.3),
                naive.multiply(naive.gaussian(0.7), naive.polynomial(0.5, 1.5, 2)),
            ),
        ),
    ),
}

LOSSES = {name: Loss(name).code for name in (*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES)}
LOSS_NUMBERS = {
    "smooth_hinge": 0.5, "epsilon_insensitive": 0.1, "huber": 0.8, "quantile": 0.3,
}  # fmt: skip
SCHEDULES = {
    "constant": schedule.CONSTANT,
    "inverse_time": schedule.INVERSE_TIME,
    "inverse_sqrt": schedule.INVERSE_SQRT,
}
BUDGETS = {
    "fixed": schedule.FIXED,
    "three_halves": schedule.THREE_HALVES,
    "square": schedule.SQUARE,
}


def sets(n, features, seed=0, share=0.3):
    """Samples of zeros and ones; one is empty, one full."""
    X = (np.random.default_rng(seed).random((n, features)) < share).astype(float)
    X[1], X[-1] = 0.0, 1.0
    return X


def rows_of(X, sparse=False):
    """Samples for the core, dense or CSR."""
    if sparse:
        matrix = csr_array(X)
        return Rows(
            np.empty((0, X.shape[1])),
            matrix.data.astype(float),
            matrix.indices.astype(np.int32),
            matrix.indptr.astype(np.int64),
            True,
        )
    dense = np.ascontiguousarray(X, dtype=float)
    return Rows(dense, np.empty(0), np.empty(0, np.int32), np.zeros(1, np.int64), False)


def kernel_matrix(kernel_program, X, Z, sparse=False):
    """Kernel values of the samples X with the points Z, and the samples' norms."""
    out = np.full((len(X), len(Z)), np.nan)
    norms = np.full((len(X), 2), np.nan)
    with np.errstate(over="ignore"):
        squares = np.square(Z).sum(axis=1)
    kernel.kernel_rows(
        kernel_program, rows_of(X, sparse), 0, len(X), np.ascontiguousarray(Z.T),
        squares, np.abs(Z).sum(axis=1), len(Z), out, norms,
    )  # fmt: skip
    return out, norms


def filled_state(kernel_program, Z, weights, columns=None, capacity=None, seed=0):
    """A state that holds the points Z with these weights, appended block by block."""
    columns = weights.shape[1] if columns is None else columns
    capacity = len(Z) + 1 if capacity is None else capacity
    state = allocate(Z.shape[1], columns, capacity, seed)
    error = 0.0
    for first in range(0, len(Z), 16):
        block = np.ascontiguousarray(Z[first : first + 16])
        n = state.order
        values = np.empty((len(block), n))
        norms = np.empty((len(block), 2))
        kernel.kernel_rows(
            kernel_program, rows_of(block), 0, len(block), state.points, state.square_norms,
            state.absolute_norms, n, values, norms,
        )  # fmt: skip
        error += take_in_block(
            state, kernel_program, block.copy(), values, norms,
            np.ascontiguousarray(weights[first : first + 16]).copy(), len(block), columns,
        )  # fmt: skip
    return state, error


def points_of(state):
    """The stored points, one per row."""
    return state.points[:, : state.order].T.copy()


def weights_of(state, outputs):
    """True weights: the averaged columns are held unscaled."""
    weights = state.weights[:, : state.order].T.copy()
    weights[:, :outputs] *= state.status[0]["scale"]
    return weights


def residual(state, K):
    """max |S S^T K - I| and the largest k(x, x) diag(S S^T), which bounds it."""
    n = state.order
    S = state.factor[:n, :n]
    if n == 0:
        return 0.0, 1.0
    return np.abs(S @ S.T @ K - np.eye(n)).max(), (np.diag(K) * (S * S).sum(axis=1)).max()


def settings(
    loss="hinge", loss_number=None, regularisation=0.0, schedule="constant", initial_step=0.5,
    decay=0.0, budget="fixed", budget_number=0.1, most=10**9, batch=1, averaging=0.0,
    horizon=np.inf, projection=GREEDY, outputs=1, **others,
):  # fmt: skip
    """Settings of a pass by the names that the twin uses."""
    chosen = make_settings(
        direct=GRADIENT,
        grow=SPAN,
        reduce=KOMP,
        compressed=outputs * (2 if averaging > 0.0 else 1),
        loss=LOSSES[loss],
        loss_number=float(LOSS_NUMBERS.get(loss, 0.0) if loss_number is None else loss_number),
        regularisation=float(regularisation),
        schedule=SCHEDULES[schedule],
        initial_step=float(initial_step),
        decay=float(decay),
        budget=BUDGETS[budget],
        budget_number=float(budget_number),
        most=most,
        batch=batch,
        averaging=float(averaging),
        horizon=float(horizon),
        projection=projection,
        outputs=outputs,
    )[0]
    for name, value in others.items():
        chosen[name] = value
    return chosen


def call_pass(
    compiled_pass, state, chosen, kernel_program, rows, labels, weights, first, predictions=None,
    extra=None,
):  # fmt: skip
    """One call of a pass: the reason why it came back, and the next sample."""
    predictions = np.empty((0, 1)) if predictions is None else predictions
    extra = np.empty((0, 1)) if extra is None else extra
    return compiled_pass(
        *state, np.array([chosen]), *kernel_program, *rows, labels, weights, extra, first,
        predictions,
    )  # fmt: skip


def learn(
    kernel_program, X, labels, chosen, state=None, weights=None, sparse=False, first=0,
    compiled_pass=None, on_probe=None, capacity=16, seed=1, predictions=None,
):  # fmt: skip
    """Run a pass to its end, growing the state and answering probes; returns state, reason, next.

    Labels of classifiers are 0 .. k - 1.
    """
    if compiled_pass is None:
        single = chosen.batch == 1
        compiled_pass = sample_pass(chosen.reduce) if single else block_pass(chosen.direct)
    if state is None:
        columns = chosen.outputs * (2 if chosen.averaging > 0.0 else 1)
        state = allocate(X.shape[1], columns, capacity, seed)
    rows = rows_of(X, sparse)
    labels = np.ascontiguousarray(labels, dtype=float)
    weights = np.ones(len(X)) if weights is None else np.ascontiguousarray(weights, dtype=float)
    i = first
    while True:
        reason, i = call_pass(
            compiled_pass, state, chosen, kernel_program, rows, labels, weights, i, predictions
        )
        if reason == FULL:
            state = resize(state, 2 * state.capacity + chosen.batch)
        elif reason == PROBE:
            if on_probe is not None:
                on_probe(state)
            state.status[0]["changes"] = 0
        else:
            return state, reason, i
