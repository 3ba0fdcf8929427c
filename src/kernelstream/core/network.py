"""The compiled step of one agent of a network: POLK's mini-batch step, pulled by the neighbours."""

import numpy as np

from kernelstream.core.blas import multiply
from kernelstream.core.jit import compiled
from kernelstream.core.kernel import Program, Rows, kernel_rows
from kernelstream.core.loss import loss_derivative, loss_value
from kernelstream.core.passes import DIVERGED, DONE, target_of
from kernelstream.core.polk import Settings, grow, settle
from kernelstream.core.state import State


@compiled
def coupled_step(
    points, square_norms, absolute_norms, self_kernels, state_weights, factor, diagonal, status,
    loss, loss_number, regularisation, schedule, initial_step, decay, budget, budget_number,
    most, batch, averaging, horizon, projection, outputs,
    codes, numbers, needs_dots, needs_squares, needs_l1, depth,
    dense, data, indices, indptr, sparse,
    labels, pulls, centres, f, losses,
):  # fmt: skip
    """One step of f~ = (1 - eta lambda) f - eta/n sum_r [l'_r + pull_r f(x_r) - centre_r] k(x_r, .)

    and KOMP: (17) and (19) of the survey, where pull = sum_j c_j and centre = sum_j c_j f_j(x)
    over the neighbours j. The first n = len(labels) samples are the agent's own; those after
    them are its neighbours' and have no label: only the pull acts there. A capacity for all of
    them is assumed.

    ``f`` (count, columns), full of zeros, receives the values and ``losses`` (n,) the losses before
    the step. Returns ``DONE``, or ``DIVERGED`` with nothing changed.
    """
    state = State(
        points, square_norms, absolute_norms, self_kernels, state_weights, factor, diagonal, status
    )
    settings = Settings(
        loss, loss_number, regularisation, schedule, initial_step, decay, budget, budget_number,
        most, batch, averaging, horizon, projection, outputs,
    )  # fmt: skip
    program = Program(codes, numbers, needs_dots, needs_squares, needs_l1, depth)
    rows = Rows(dense, data, indices, indptr, sparse)
    record = status[0]
    n = record.order
    columns = state_weights.shape[0]
    count, own = pulls.shape[0], labels.shape[0]
    values = np.empty((count, n))
    norms = np.empty((count, 2))
    zero = np.int64(0)  # a literal would be compiled for separately
    kernel_rows(program, rows, zero, count, points, square_norms, absolute_norms, n, values, norms)
    multiply(values, False, state_weights, True, f, count, columns, n, record.scale, 0.0)
    direction = np.zeros((count, outputs))
    for r in range(count):
        some = False
        if r < own:
            target = target_of(loss, outputs, labels[r])
            losses[r] = loss_value(loss, loss_number, f[r], outputs, target)
            some = loss_derivative(loss, loss_number, f[r], outputs, target, direction[r])
        if not some:
            direction[r] = 0.0
        if pulls[r] > 0.0:
            for c in range(outputs):
                direction[r, c] += pulls[r] * f[r, c] - centres[r, c]
    active, error = grow(state, settings, program, rows, zero, values, norms, direction, own)
    if active < 0:
        return DIVERGED
    settle(state, settings, active, error, own)
    return DONE
