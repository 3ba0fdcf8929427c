"""COLK's stochastic quasi-gradient of a mean loss plus a risk (Algorithm 1).

A step consumes pairs of independent samples. In (47) one of the two bears the loss, the other
one feeds the tracker; here both take both roles, and the two directions are averaged: the same
mean and never more variance, and without a risk the step is POLK's with the pair as its batch.

Several numbers per sample have one loss, the sum of theirs (of squared errors |f(x) - y|^2 / 2):
its risk is the risk, and (47) holds as printed with vectors for the two derivatives.
"""

import numpy as np

from kernelstream.core.jit import inner, lean, merged
from kernelstream.core.loss import (
    FIRST_REGRESSION_LOSS,
    loss_derivative,
    loss_value,
    target_of,
    vector_derivative,
    vector_value,
)
from kernelstream.core.schedule import step_size

#: What is added to the mean loss ...
DISPERSION, SEMIDEVIATION, CVAR = range(3)
#: ... and how the mean is tracked.
AVERAGE, MOMENTUM = range(2)

#: Unit of the quantile's steps where the quantile itself is smaller.
SMALLEST_THRESHOLD = 1e-3


@lean
def tracking_rate(rule, steps):
    """beta, after a plain average over the first steps: no starting value is needed."""
    rate = step_size(rule.tracking_schedule, rule.tracking_rate, rule.tracking_decay, steps)
    return max(rate, 1.0 / (steps + 1.0))


@lean
def partner(r, count):
    """The other sample of the pair; a sample without one is its own."""
    other = r + 1 if r % 2 == 0 else r - 1
    return other if other < count else r


@inner
def _pressure(rule, deviation):
    """eta sum_p p (l - g)^(p - 1) of (47), the deviation l - g cut: the multiple of the loss's
    gradient that the risk adds. Semideviations count only what is above the tracker: the
    square of the positive part is smooth as it is."""
    if rule.risk_weight == 0.0:  # not 0 times infinity
        return 0.0
    d = min(max(deviation, -rule.cut), rule.cut)
    if rule.risk == SEMIDEVIATION:
        d = max(d, 0.0)
    power, total = 1.0, 0.0
    for p in range(2, rule.moments + 1):
        power *= d
        total += p * power
    return rule.risk_weight * total


@inner
def _loss_of(rule, f, targets, extra, i):
    """Of sample ``i``; several numbers of it lie in ``extra``."""
    outputs = rule.outputs
    if outputs > 1 and rule.loss >= FIRST_REGRESSION_LOSS:
        return vector_value(rule.loss, rule.loss_number, f, outputs, extra, i)
    target = target_of(rule.loss, outputs, targets[i])
    return loss_value(rule.loss, rule.loss_number, f, outputs, target)


@inner
def _derivative_of(rule, f, targets, extra, i, out):
    """Into ``out``; whether any of it is not zero."""
    outputs = rule.outputs
    if outputs > 1 and rule.loss >= FIRST_REGRESSION_LOSS:
        return vector_derivative(rule.loss, rule.loss_number, f, outputs, extra, i, out)
    target = target_of(rule.loss, outputs, targets[i])
    return loss_derivative(rule.loss, rule.loss_number, f, outputs, target, out)


@merged
def quasi_gradients(rule, status, f, earlier, targets, extra, sample_weights, first, direction):
    """The quasi-gradient at each sample, and the tracker and threshold after the step."""
    count = f.shape[0]
    outputs = rule.outputs
    rate = tracking_rate(rule, status.steps)
    losses = np.empty(count)
    trackers = np.empty(count)  # the tracker after this sample alone
    sloped = np.empty(count, np.bool_)  # where the derivative is not zero, as in POLK
    exceeding = 0.0
    smallest = np.inf
    for r in range(count):
        losses[r] = _loss_of(rule, f[r], targets, extra, first + r)
        ceiling = status.tracker + rule.cut
        now = min(losses[r], ceiling)
        if rule.tracking == MOMENTUM:  # (20)
            then = _loss_of(rule, earlier[r], targets, extra, first + r)
            trackers[r] = (1.0 - rate) * (status.tracker - min(then, ceiling)) + now
        else:  # (19)
            trackers[r] = (1.0 - rate) * status.tracker + rate * now
        exceeding += losses[r] > status.threshold
        smallest = min(smallest, losses[r])
        sloped[r] = _derivative_of(rule, f[r], targets, extra, first + r, direction[r])
    tracker = 0.0
    for r in range(count):
        other = partner(r, count)
        if rule.risk == CVAR:  # Rockafellar and Uryasev: u + E max(l - u, 0) / (1 - level)
            tail = losses[r] > status.threshold
            multiple = 1.0 + rule.risk_weight / (1.0 - rule.level) if tail else 1.0
        else:  # (47), averaged over both roles of the pair
            multiple = 1.0 + (
                _pressure(rule, losses[r] - trackers[other])
                - _pressure(rule, losses[other] - trackers[r])
            )
        for c in range(outputs):
            direction[r, c] *= multiple * sample_weights[first + r] if sloped[r] else 0.0
        tracker += trackers[r] / count
    # The subgradient in u, in units of u itself: no outlier moves it far.
    threshold = status.threshold
    if status.steps == 0:
        threshold = smallest
    else:
        unit = rate * (threshold + SMALLEST_THRESHOLD)
        threshold += unit * (exceeding / count - (1.0 - rule.level))
    return tracker, max(threshold, 0.0)
