"""Step sizes and error budgets as functions of the step count."""

import math

from kernelstream.core.jit import lean

CONSTANT, INVERSE_TIME, INVERSE_SQRT, GIVEN = range(4)
FIXED, THREE_HALVES, SQUARE = range(3)


@lean
def step_size(code, initial, decay, t):
    """eta_t for t = 0, 1, 2, ...; steps that are given lie in ``initial`` when they are taken."""
    if code == CONSTANT or code == GIVEN:
        return initial
    if code == INVERSE_TIME:
        return initial / (1.0 + decay * t)
    return initial / math.sqrt(1.0 + decay * t)


@lean
def error_budget(code, number, eta):
    """eps_t: given, K eta^(3/2) or K eta^2 (POLK, Table 1)."""
    if code == FIXED:
        return number
    if code == THREE_HALVES:
        return number * eta * math.sqrt(eta)
    return number * eta * eta
