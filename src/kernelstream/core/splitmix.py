"""Random numbers from the state's own generator (splitmix64): no global state."""

import numpy as np

from kernelstream.core.jit import lean


@lean
def uniform(status):
    """A uniform number in [0, 1)."""
    status.random += np.uint64(0x9E3779B97F4A7C15)
    z = status.random
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)
