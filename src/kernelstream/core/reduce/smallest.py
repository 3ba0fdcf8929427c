"""The point that contributes least leaves: the smallest |w_j|^2 k(x_j, x_j).

With steps 1 / (lambda t) and the hinge loss all weights are of the same size, but for rounding:
where contributions tie, the search goes round, beginning after the point that left last. With
k(x, x) = 1 the oldest point leaves then.

``GROWING`` lets the model keep the point too many by chance: see ``keep_or_grow``.
"""

from kernelstream.core.jit import inner, lean
from kernelstream.core.reduce.removal import remove, square_length
from kernelstream.core.splitmix import uniform

#: Contributions that differ by less, relatively, tie.
TIE = 1e-6

#: Place, among the state's own numbers, of the points that NPBSGD has grown to.
GROWN = 0


@lean
def remove_smallest(state):
    """Drop the point of least norm; the newest one takes its place."""
    status = state.status[0]
    ring = status.order - 1  # the newest point stands after the others
    least, found = square_length(state, ring), ring
    first = status.oldest if status.oldest < ring else 0
    for i in range(ring):
        j = first + i if first + i < ring else first + i - ring
        square = square_length(state, j)
        # the newest one leaves only where it is smaller than all others
        if square < least * (1.0 - TIE) or (found == ring and square <= least * (1.0 + TIE)):
            least, found = square, j
    remove(state, found)
    if found < ring:
        status.oldest = found + 1 if found + 1 < ring else 0


@inner
def keep_or_grow(state, rule):
    """NPBSGD: with probability min(1, beta / t) the least point leaves, else the model grows."""
    status = state.status[0]
    if status.order <= max(rule.start, status.own[GROWN]) and status.order <= rule.most:
        return
    forced = status.forced
    if status.order > rule.most:
        remove_smallest(state)
    elif uniform(status) * (status.steps + 1) < rule.delay:
        remove_smallest(state)
        status.forced = forced  # by the method's own rule
    else:
        status.own[GROWN] = status.order
