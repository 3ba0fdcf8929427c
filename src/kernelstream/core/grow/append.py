"""Any sample becomes a point. There is no factor."""

from kernelstream.core.dictionary import store
from kernelstream.core.jit import inner


@inner
def append(state, rows, i, square, absolute, k_xx, new):
    """Add ``new`` k(x_i, .) to the function; a capacity for one more point is assumed."""
    status = state.status[0]
    store(state, status.order, rows, i, square, absolute, k_xx)
    for c in range(state.weights.shape[0]):
        state.weights[c, status.order] = new[c]
    status.order += 1
