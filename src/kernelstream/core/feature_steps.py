"""The steps of online kernel features: as the paper prints them, or kept from overshooting."""

import math

from kernelstream.core.feature_basis import power_of_two
from kernelstream.core.jit import inner
from kernelstream.core.lanes import dot

PARAMETRIC, NONPARAMETRIC = range(2)
PRINTED, LIMITED, BOUNDED = range(3)
INVERSE, INVERSE_SQUARE, TRACKING, TRACKING_SQUARE = range(4)

#: No step as printed lengthens A by more.
LARGEST_GROWTH = 1e30


@inner
def feature_step(state, settings, square, norm, n):
    """mu / s^2, and mu lambda / n, for A~ with A = s A~.

    As printed; limited, so that the term with lambda does not turn A round; or bounded: the steps
    of (19), except c / n^2, are then divided by ``norm``, that of the matrix step size D_n of (20),
    and none is longer than 1 / (norm (|q|^2 + lambda / n)), the steps of Propositions 2 and 3,
    beyond which an update overshoots its sample.
    """
    exponent = state.status[0].exponent
    fade = settings.regularisation / n * power_of_two(2 * exponent)
    if settings.step == TRACKING:
        mu = settings.pace * power_of_two(-exponent) / math.sqrt(square)
    elif settings.step == TRACKING_SQUARE:
        mu = settings.pace / square
    else:
        mu = settings.pace / n * power_of_two(-2 * exponent)
        if settings.step == INVERSE_SQUARE:
            mu /= n
    if settings.bounded == LIMITED:
        mu = min(mu, 1.0 / max(norm * fade, 1e-300))
    elif settings.bounded == BOUNDED:
        if settings.solver == NONPARAMETRIC and settings.step != INVERSE_SQUARE:
            mu /= norm
        mu = min(mu, 1.0 / (norm * (square + fade)))
    return mu, mu * fade


@inner
def explodes(state, settings, values, k_xx, square):
    """Whether a step as printed would make A longer by a factor that no number can carry on."""
    if settings.bounded != PRINTED:
        return False
    status, norm = state.status[0], 1.0
    if settings.solver == NONPARAMETRIC:
        own = 2.0 * dot(values, 0, values, 0, 0, status.order)
        norm = math.sqrt(status.gram_square + own + k_xx * k_xx)
    mu, fade = feature_step(state, settings, square, norm, status.seen + 1)
    return not norm * (mu * square + fade) <= LARGEST_GROWTH
