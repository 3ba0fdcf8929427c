"""What all compiled passes share: why they come back, and their limits."""

from kernelstream.core.jit import lean
from kernelstream.core.state import SMALLEST_CAPACITY

#: Why a pass came back before all samples were consumed. ``FULL``: give the state a larger capacity
#: and call again. ``PROBE``: check the factor's residual and call again. ``LATE``: project what was
#: put off (``core/grow/later.py``) and call again. ``ROOMY``: done, but the capacity is far larger
#: than needed.
DONE, FULL, DIVERGED, PROBE, UNUSABLE, ROOMY, LATE = range(7)

#: Larger coefficients count as divergence: sums of their squares must stay finite.
LARGEST_WEIGHT = 1e70
#: A sample with a larger squared norm, or none at all (NaN), is not usable.
LARGEST_SQUARE_NORM = 1e306
#: Changes of the factor between two probes of its residual.
PROBE_EVERY = 512
#: Folded into the weights before it underflows.
SMALLEST_SCALE = 1e-9


@lean
def roomy(state, batch):
    """``ROOMY`` when the order has fallen so far that the state should give memory back."""
    status = state.status[0]
    needed = max(SMALLEST_CAPACITY, status.order + status.ghosts) + batch
    return ROOMY if state.diagonal.shape[0] > 4 * needed else DONE
