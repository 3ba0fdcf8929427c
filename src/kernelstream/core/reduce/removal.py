"""Points leave without a trace: one at random, or the oldest.

Points in the order in which they came are a ring: ``status.oldest`` is where it begins, and the
newest point takes the place of the one that leaves.
"""

import math

import numpy as np

from kernelstream.core.dictionary import move, random_below
from kernelstream.core.jit import compiled, inner, lean
from kernelstream.core.lanes import fma


@inner
def square_length(state, j):
    """|w_j|^2 k(x_j, x_j) at scale 1."""
    square = 0.0
    for c in range(state.weights.shape[0]):
        square = fma(state.weights[c, j], state.weights[c, j], square)
    return square * state.self_kernels[j]


@inner
def _length(state, j):
    """The norm of what point ``j`` contributes to the function."""
    return state.status[0].scale * math.sqrt(square_length(state, j))


@inner
def drop(state, j):
    """Drop point ``j`` because there are too many; the last one takes its place."""
    status = state.status[0]
    last = status.order - 1
    if j != last:
        move(state, last, j, 0)
    status.order = last
    status.removed += 1
    status.forced += 1


@inner
def remove(state, j):
    """Drop point ``j``. Books the distance to the function before."""
    state.status[0].error_spent += _length(state, j)
    drop(state, j)


@lean
def remove_random(state):
    """Drop any but the newest point."""
    remove(state, random_below(state.status[0], state.status[0].order - 1))


@inner
def remove_oldest(state):
    """Drop the oldest point; the one just appended takes its place in the ring."""
    status = state.status[0]
    j = status.oldest
    remove(state, j)
    status.oldest = j + 1 if j + 1 < status.order else 0


@compiled
def keep_newest(state, kept):
    """Drop all but the newest points; the ring then begins at the first place."""
    status = state.status[0]
    ages = (np.arange(status.order) + status.oldest) % status.order
    for i in range(status.order - kept):
        status.error_spent += _length(state, ages[i])
        status.removed += 1
        status.forced += 1
    ages = ages[status.order - kept :]
    status.order = n = kept
    for array in (state.square_norms, state.absolute_norms, state.self_kernels):
        array[:n] = array[ages]
    for q in range(state.points.shape[0]):
        state.points[q, :n] = state.points[q][ages]
    for c in range(state.weights.shape[0]):
        state.weights[c, :n] = state.weights[c][ages]
    status.oldest = 0
