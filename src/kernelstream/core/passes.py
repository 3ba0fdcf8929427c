"""What the compiled passes of all methods share: why they come back, and their limits."""

from kernelstream.core.jit import inner
from kernelstream.core.loss import FIRST_REGRESSION_LOSS

#: Why a pass came back before all samples were consumed.
DONE, FULL, DIVERGED, PROBE, UNUSABLE, ROOMY = range(6)

#: Larger coefficients count as divergence: sums of their squares must stay finite.
LARGEST_WEIGHT = 1e70
#: A sample with a larger squared norm, or none at all (NaN), is not usable.
LARGEST_SQUARE_NORM = 1e306


@inner
def target_of(loss, outputs, label):
    """Class 0 or 1 of a single-output classifier is -1 or +1 in the loss."""
    if outputs == 1 and loss < FIRST_REGRESSION_LOSS:
        return 2.0 * label - 1.0
    return label
