"""Probabilities of classes, and the step whose gradient is taken at its own end (implicit)."""

import math

from kernelstream.core.jit import inner


@inner
def softmax(values, i, shrink, out, t, e):
    """out[t, e] = softmax(shrink * values[i])."""
    classes = values.shape[1]
    top = -math.inf
    for c in range(classes):
        top = max(top, shrink * values[i, c])
    total = 0.0
    for c in range(classes):
        out[t, e, c] = math.exp(shrink * values[i, c] - top)
        total += out[t, e, c]
    for c in range(classes):
        out[t, e, c] /= total


@inner
def logistic(w):
    """1 / (1 + exp(-w)) without overflow."""
    e = math.exp(-abs(w))
    return 1.0 / (1.0 + e) if w >= 0.0 else e / (1.0 + e)


@inner
def solve_logistic(margin, reach):
    """s = 1 / (1 + exp(margin + reach s)), by Newton on w = -(margin + reach s).

    From w = 0, where the logistic function bends, Newton comes from one side. On the loss itself,
    or from elsewhere, it oscillates where the reach is large. The error after a change is less than
    its square.
    """
    w, s = 0.0, 0.5
    for _ in range(60):
        change = (w + margin + reach * s) / (1.0 + reach * s * (1.0 - s))
        w -= change
        s = logistic(w)
        if abs(change) <= 1e-5 * (1.0 + abs(w)):
            break
    return s


@inner
def implicit_step(values, i, target, reach, gradient):
    """The multiples g by which outputs move: values[i] + reach * g is where the step ends.

    There the log loss has the derivative -g along the direction that the wrong classes have at
    the beginning.
    """
    classes = values.shape[1]
    if classes == 1:
        gradient[0] = 0.0
        return
    top = -math.inf
    for c in range(classes):
        if c != target:
            top = max(top, values[i, c])
    total = 0.0
    for c in range(classes):
        gradient[c] = 0.0 if c == target else math.exp(values[i, c] - top)
        total += gradient[c]
    squares = 0.0
    for c in range(classes):
        gradient[c] /= total
        squares += gradient[c] * gradient[c]
    margin = values[i, target] - top - math.log(total)
    s = solve_logistic(margin, (1.0 + squares) * reach)
    for c in range(classes):
        gradient[c] *= -s
    gradient[target] = s


@inner
def curvature(values, i, reach, gradient):
    """The largest 2 p (1 - p) of a class where a step with these multiples ends."""
    classes = values.shape[1]
    top = -math.inf
    for c in range(classes):
        top = max(top, values[i, c] + reach * gradient[c])
    total = 0.0
    for c in range(classes):
        total += math.exp(values[i, c] + reach * gradient[c] - top)
    largest = 0.0
    for c in range(classes):
        p = math.exp(values[i, c] + reach * gradient[c] - top) / total
        largest = max(largest, 2.0 * p * (1.0 - p))
    return largest


@inner
def thinned(gain, variance, draw):
    """A gain of the covariance that changes it rarely where it changes little: same on average."""
    shrinks = gain * variance
    if shrinks >= 0.1:
        return gain
    return 0.1 / variance if draw * 0.1 < shrinks else 0.0


@inner
def follow_noise(status, error, variance):
    """The variance of the noise, after an error where the model was uncertain by ``variance``.

    Half of what the model's own uncertainty explains is taken off; all of it made the second-order
    experts overconfident, nothing made them slow where there is hardly any noise.
    """
    rate = max(3.0 / (status.seen + 10.0), 1e-3)
    noise = status.noise
    share = 1.0 - 0.5 * variance / (noise + variance)
    noise += rate * (min(9.0 * noise, error * error) * share - noise)
    status.noise = max(noise, 1e-8)


@inner
def follow_noises(status, noises, errors, variance):
    """The noise of each of several targets."""
    for c in range(len(errors)):
        status.noise = noises[c]
        follow_noise(status, errors[c], variance)
        noises[c] = status.noise
