"""Exponentials that vectorise, with the same bits alone and in a vector.

``math.exp`` is a call per element, or another function where the compiler finds one for vectors.
"""

import numpy as np

from kernelstream.core.jit import inline
from kernelstream.core.lanes import fma

LOG2_E = 1.4426950408889634
_ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it rounds, the low bits hold the integer
#: exp(-x) counts as 0 from here on.
UNDERFLOW = 708.0
LARGEST_RATE = np.finfo(np.float64).max / 1.5
# (2^r - 1) / r for |r| <= 1/2, interpolated at Chebyshev's nodes: 6e-16 of 2^r at most.
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9 = (
    0.6931471805599462, 0.24022650695910075, 0.05550410866465167, 0.009618129107618665,
    0.0013333558200794592, 0.00015403530424776529, 1.5252672924850737e-05,
    1.3215451633221434e-06, 1.0205905413765595e-07, 7.070977866508138e-09,
)  # fmt: skip


@inline
def decay(x, binary_rate, end):
    """2^(-binary_rate x) for 0 <= x < end, and 0 from there on; exactly 1 at 0.

    -binary_rate x is an integer, which goes into the exponent's bits, and a rest r of at most 1/2.
    """
    power = min(x, end) * -binary_rate
    shifted = power + _ROUNDER
    r = power - (shifted - _ROUNDER)
    r2 = r * r
    r4 = r2 * r2
    low = fma(r2, fma(r, _C3, _C2), fma(r, _C1, _C0))
    high = fma(r4, fma(r, _C9, _C8), fma(r2, fma(r, _C7, _C6), fma(r, _C5, _C4)))
    fraction = fma(r, fma(r4, high, low), 1.0)
    bits = np.float64(shifted).view(np.int64) << np.int64(52)
    bits = bits + np.float64(fraction).view(np.int64)
    return np.int64(bits).view(np.float64) if x < end else 0.0
